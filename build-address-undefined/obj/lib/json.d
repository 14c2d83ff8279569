build-address-undefined/obj/lib/json.o: lib/json.c lib/json.h lib/buf.h \
 kernels/base.h lib/file.h lib/json_scan.h lib/utf8.h
lib/json.h:
lib/buf.h:
kernels/base.h:
lib/file.h:
lib/json_scan.h:
lib/utf8.h:
