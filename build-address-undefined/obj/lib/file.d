build-address-undefined/obj/lib/file.o: lib/file.c lib/file.h lib/buf.h \
 kernels/base.h
lib/file.h:
lib/buf.h:
kernels/base.h:
