build-address-undefined/tests/test_json: tests/unit/test_json.c \
 tests/unit/test.h kernels/base.h lib/json.h lib/buf.h
tests/unit/test.h:
kernels/base.h:
lib/json.h:
lib/buf.h:
