build-address-undefined/obj/lib/buf.o: lib/buf.c lib/buf.h kernels/base.h
lib/buf.h:
kernels/base.h:
