/* The sampler's settings and rows. Input: a line with a processor's name, or a JSON object as a
   generation_config; a line with the value; the rest is a row of float32 logits. What is accepted must run,
   and choose an id that is not excluded. */
#include <math.h>
#include <stdlib.h>

#include "json.h"
#include "sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *take_line(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
    size_t length = end ? (size_t)(end - *data) : *size;
    char *line = malloc(length + 1);
    if (!line)
        abort();
    if (length)
        memcpy(line, *data, length);
    line[length] = '\0';
    *data += end ? length + 1 : length;
    *size -= end ? length + 1 : length;
    return line;
}

static bool configure(struct nl_sampler *sampler, const char *name, const char *value)
{
    if (name[0] != '{')
        return nl_sampler_add(sampler, name, value, NULL) == 0;
    struct nl_json *json = nl_json_parse(name, strlen(name), "fuzz", NULL);
    bool good = json && nl_sampler_set_generation(sampler, json, NULL) == 0;
    nl_json_free(json);
    return good;
}

static void run(struct nl_sampler *sampler, float *row, size_t n)
{
    static const uint32_t ids[] = {1, 2, 1, 0, 3, 1, 2}, eos[] = {0, 3};
    const struct nl_history history = {.ids = ids, .count = 7, .n_prompt = 3};
    uint32_t id;
    if (nl_sampler_set_eos(sampler, eos, 2, NULL) != 0 ||
        nl_sampler_apply(sampler, row, n, &history, NULL) != 0 ||
        nl_sampler_choose(sampler, row, n, &history, &id, NULL) != 0)
        return;
    if (id >= n || !(row[id] > -INFINITY))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nl_sampler *sampler = nl_sampler_open(NULL);
    if (!sampler)
        return 0;
    char *name = take_line(&data, &size), *value = take_line(&data, &size);
    size_t n = size / sizeof(float);
    float *row = malloc(n * sizeof *row + 1);
    if (row && n)
        memcpy(row, data, n * sizeof *row);
    if (row && configure(sampler, name, value))
        run(sampler, row, n);
    free(row);
    free(value);
    free(name);
    nl_sampler_close(sampler);
    return 0;
}
