build-address-undefined/obj/lib/json_scan.o: lib/json_scan.c \
 lib/json_scan.h lib/buf.h kernels/base.h lib/utf8.h
lib/json_scan.h:
lib/buf.h:
kernels/base.h:
lib/utf8.h:
