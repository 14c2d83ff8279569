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
