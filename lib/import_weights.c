#include <math.h>
#include <stdlib.h>

#include "import_parts.h"

/* Elements on their way, a piece at a time. */
enum { PIECE = 64 * NL_GGML_MAX_BLOCK, OUT_SIZE = 1 << 20 };

struct converter {
    struct nl_st_writer writer;
    const struct nl_gguf *file;
    const struct nl_import_options *options;
    uint64_t done, total;
    float values[PIECE];
    size_t used;
    uint8_t out[OUT_SIZE];
};

static int flush(struct converter *v, struct nl_error *error)
{
    if (nl_st_writer_add(&v->writer, v->out, v->used, error) != 0)
        return -1;
    v->done += v->used;
    v->used = 0;
    if (v->options->progress && v->options->progress(v->options->context, v->done, v->total) != 0) {
        if (error)
            *error = (struct nl_error){.code = NL_NO};
        return -1;
    }
    return 0;
}

/* Appends n values in the new type, little-endian; false when a finite one has become infinite. */
static bool store(struct converter *v, size_t n)
{
    uint8_t *out = v->out + v->used;
    bool fits = true;
    for (size_t i = 0; i < n; i++) {
        float value = v->values[i];
        if (v->options->dtype == NL_F32) {
            uint32_t bits = nl_bits_of_float(value);
            for (int k = 0; k < 4; k++)
                *out++ = (uint8_t)(bits >> 8 * k);
            continue;
        }
        uint16_t half;
        if (v->options->dtype == NL_F16) {
            half = nl_f16_of_float(value);
            fits = fits && ((half & 0x7fff) != 0x7c00 || isinf(value));
        } else {
            half = nl_bf16_of_float(value);
            fits = fits && ((half & 0x7fff) != 0x7f80 || isinf(value));
        }
        *out++ = (uint8_t)half;
        *out++ = (uint8_t)(half >> 8);
    }
    v->used = (size_t)(out - v->out);
    return fits;
}

/* A run of whole blocks. */
static int convert_run(struct converter *v, const struct nl_gguf_tensor *tensor, const uint8_t *at,
                       uint64_t n_blocks, struct nl_error *error)
{
    const struct nl_ggml_type *type = tensor->type;
    while (n_blocks > 0) {
        size_t step = PIECE / type->elements, bytes_left = OUT_SIZE - v->used;
        if (step > n_blocks)
            step = (size_t)n_blocks;
        if (step * type->elements * 4 > bytes_left) {
            if (flush(v, error) != 0)
                return -1;
        }
        nl_dequantize(type, at, step, v->values);
        if (!store(v, step * type->elements))
            return nl_fail(error, NL_DATA, "value is too large for %s (try --dtype f32): %s: %s",
                           nl_dtype_name(v->options->dtype), v->file->name, tensor->name);
        at += step * type->bytes;
        n_blocks -= step;
    }
    return 0;
}

static int convert_tensor(struct converter *v, const struct nl_route *route, struct nl_error *error)
{
    const struct nl_gguf_tensor *tensor = route->source;
    if (!route->head_rows)
        return convert_run(v, tensor, tensor->data, tensor->elements / tensor->type->elements, error);
    /* A bias is a column: its rows are single elements. */
    uint64_t row_elements = route->entry.rank == 1 ? 1 : tensor->dims[0];
    uint64_t rows = tensor->elements / row_elements, half = route->head_rows / 2;
    if (row_elements % tensor->type->elements != 0)
        return nl_fail(error, NL_UNSUPPORTED, "quantised bias is not supported: %s: %s", v->file->name,
                       tensor->name);
    uint64_t row_blocks = row_elements / tensor->type->elements;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t head = row / route->head_rows, i = row % route->head_rows;
        uint64_t from = head * route->head_rows + (i < half ? 2 * i : 2 * (i - half) + 1);
        if (convert_run(v, tensor, tensor->data + from * row_blocks * tensor->type->bytes, row_blocks,
                        error) != 0)
            return -1;
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct nl_route *)a)->entry.name, ((const struct nl_route *)b)->entry.name);
}

static int start(struct converter *v, int fd, const char *name, const struct nl_route *routes, size_t count,
                 struct nl_error *error)
{
    struct nl_st_entry *entries = calloc(count ? count : 1, sizeof *entries);
    if (!entries)
        return nl_fail_memory(error, "tensors");
    for (size_t i = 0; i < count; i++)
        entries[i] = routes[i].entry;
    int result = nl_st_writer_start(&v->writer, fd, name, entries, count, error);
    v->total = v->writer.left;
    free(entries);
    return result;
}

int nl_import_weights(int fd, const char *name, const struct nl_gguf *file, struct nl_route *routes,
                      size_t count, const struct nl_import_options *options, struct nl_error *error)
{
    struct converter *v = calloc(1, sizeof *v);
    if (!v)
        return nl_fail_memory(error, "buffer");
    v->file = file;
    v->options = options;
    qsort(routes, count, sizeof *routes, by_name); /* one element type: the order of nl_st_sort */
    int result = start(v, fd, name, routes, count, error);
    for (size_t i = 0; i < count && result == 0; i++)
        result = convert_tensor(v, &routes[i], error);
    if (result == 0)
        result = flush(v, error) == 0 ? nl_st_writer_finish(&v->writer, error) : -1;
    free(v);
    return result;
}
