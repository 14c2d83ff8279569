/* test.h: what every unit test includes, in the order that cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base.h"

/* Skips the test, saying why, where a folder of data is not there. */
static inline const char *shared_folder(void)
{
    const char *shared = getenv("NL_SHARED");
    if (!shared) {
        print_message("no shared test data\n");
        skip();
    }
    return shared;
}

/* The device that CUDA's code is tested on: "emu", or "cuda" where NL_TEST_DEVICE says so. */
static inline const char *cuda_device(void)
{
    const char *device = getenv("NL_TEST_DEVICE");
    return device ? device : "emu";
}
