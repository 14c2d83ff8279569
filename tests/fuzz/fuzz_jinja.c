/* The Jinja interpreter: a template, then a NUL byte, then the JSON of its variable v. */
#include <stdlib.h>

#include "jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nl_error error = {0};
    const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
    size_t length = end ? (size_t)(end - data) : size;
    struct nl_jinja *template = nl_jinja_open((const char *)data, length, "fuzz", &error);
    struct nl_jinja_run *run = template ? nl_jinja_run_open(&error) : NULL;
    struct nl_buf out = {0};
    if (run && end)
        nl_jinja_set_json(run, "v", (const char *)end + 1, size - length - 1, &error);
    if (run && nl_jinja_render(run, template, &out, &error) == 0) {
        for (size_t i = 0; i < out.size; i++) /* all of it is there */
            if (out.data[i] == '\x01')
                error.code = NL_OK;
    } else if (error.code != NL_DATA && error.code != NL_UNSUPPORTED) {
        abort();
    }
    nl_buf_free(&out);
    nl_jinja_run_close(run);
    nl_jinja_close(template);
    return 0;
}
