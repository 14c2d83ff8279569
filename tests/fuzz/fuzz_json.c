/* JSON: what is accepted prints as text that is accepted and prints the same. */
#include <stdlib.h>

#include "json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nl_error error;
    struct nl_json *json = nl_json_parse((const char *)data, size, "fuzz", &error);
    if (!json) {
        if (error.code != NL_DATA) /* the scan let through what cJSON refuses */
            abort();
        return 0;
    }
    struct nl_buf once = {0}, twice = {0};
    nl_json_print(json, &once);
    nl_json_free(json);
    json = nl_json_parse(once.data, once.size, "fuzz", &error);
    if (!json)
        abort();
    nl_json_print(json, &twice);
    nl_json_free(json);
    if (once.size != twice.size || memcmp(once.data, twice.data, once.size) != 0)
        abort();
    nl_buf_free(&once);
    nl_buf_free(&twice);
    return 0;
}
