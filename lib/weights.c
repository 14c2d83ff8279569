#include "weights.h"

#include <stdio.h>
#include <stdlib.h>

#include "buf.h"
#include "element.h"

enum { CHUNK = 256 }; /* elements that are converted at once */

int nl_weights_open(struct nl_weights *weights, const char *folder, struct nl_error *error)
{
    *weights = (struct nl_weights){.folder = folder, .error = error};
    weights->checkpoint = nl_checkpoint_open(folder, error);
    if (!weights->checkpoint)
        return -1;
    weights->used = calloc(weights->checkpoint->count + 1, sizeof *weights->used);
    return weights->used ? 0 : nl_fail_memory(error, "weights");
}

void nl_weights_close(struct nl_weights *weights)
{
    for (size_t i = 0; i < weights->n_copies; i++)
        free(weights->copies[i]);
    free(weights->copies);
    free(weights->used);
    nl_checkpoint_close(weights->checkpoint);
    *weights = (struct nl_weights){0};
}

void *nl_weights_alloc(struct nl_weights *weights, size_t size)
{
    struct nl_error ignored;
    bool room = nl_grow(&weights->copies, &weights->capacity, weights->n_copies + 1, sizeof *weights->copies,
                        "weights", &ignored) == 0;
    void *memory = room && size < SIZE_MAX / 2 ? malloc(size ? size : 1) : NULL;
    if (memory) {
        weights->copies[weights->n_copies++] = memory;
    } else if (!weights->failed) {
        weights->failed = true;
        nl_fail_memory(weights->error, "weights");
    }
    return memory;
}

static void full_name(const struct nl_weights *weights, const char *name, const char *suffix, char *out,
                      size_t size)
{
    snprintf(out, size, "%s%s.%s", weights->layer, name, suffix);
    const char *word = strchr(out, '.');
    if (weights->without_prefix && word && strncmp(out, "lm_head", 7) != 0)
        memmove(out, word + 1, strlen(word));
}

bool nl_weights_has(const struct nl_weights *weights, const char *name)
{
    char full[300];
    full_name(weights, name, "weight", full, sizeof full);
    return nl_checkpoint_find(weights->checkpoint, full) != NULL;
}

static void shape_text(const uint64_t *shape, unsigned rank, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "[");
    for (unsigned i = 0; i < rank && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%llu", i ? ", " : "",
                                   (unsigned long long)shape[i]);
    if (length < size)
        snprintf(text + length, size - length, "]");
}

static bool is_weight(enum nl_dtype dtype)
{
    return dtype == NL_F32 || dtype == NL_F16 || dtype == NL_BF16 || dtype == NL_F64 || dtype == NL_F8_E4M3 ||
           dtype == NL_F8_E5M2;
}

/* Marks a tensor used and checks its type and shape: [rows][cols], or [rows] where cols is 0. NULL after a
 * fault. */
static const struct nl_tensor *take(struct nl_weights *weights, const char *name, uint64_t rows,
                                    uint64_t cols)
{
    if (weights->failed)
        return NULL;
    const struct nl_tensor *tensor = nl_checkpoint_find(weights->checkpoint, name);
    uint64_t want[2] = {rows, cols};
    unsigned rank = cols ? 2 : 1;
    if (!tensor) {
        nl_fail(weights->error, NL_DATA, "tensor is missing: %s: %s", name, weights->folder);
    } else if (tensor->rank != rank || memcmp(tensor->shape, want, rank * sizeof *want) != 0) {
        char wanted[100], found[200];
        shape_text(want, rank, wanted, sizeof wanted);
        shape_text(tensor->shape, tensor->rank, found, sizeof found);
        nl_fail(weights->error, NL_DATA, "tensor has shape %s, the config asks for %s: %s: %s", found, wanted,
                name, tensor->file->path);
    } else if (!is_weight(tensor->dtype)) {
        nl_fail(
            weights->error, NL_UNSUPPORTED,
            "weight of an unsupported type (supported: F32, F16, BF16, F64, F8_E4M3, F8_E5M2): %s: %s: %s",
            nl_dtype_name(tensor->dtype), name, tensor->file->path);
    } else {
        for (size_t i = 0; i < weights->checkpoint->count; i++)
            if (weights->checkpoint->tensors[i] == tensor)
                weights->used[i] = true;
        weights->bytes += tensor->end - tensor->begin;
        return tensor;
    }
    weights->failed = true;
    return NULL;
}

/* The elements from `first` on, at most CHUNK and up to `count`, as float32; returns how many. */
static size_t widen(const struct nl_tensor *tensor, size_t first, size_t count, float out[CHUNK])
{
    double wide[CHUNK];
    size_t n = count - first < CHUNK ? count - first : CHUNK;
    nl_elements(tensor, first, n, wide);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)wide[i];
    return n;
}

/* [cols][rows] to [rows][cols], elements of `size` bytes. */
static void transpose(const uint8_t *from, uint8_t *to, size_t rows, size_t cols, size_t size)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            memcpy(to + (r * cols + c) * size, from + (c * rows + r) * size, size);
}

/* To BF16 where all are, else to F32. */
static void convert(struct nl_weights *weights, const struct nl_tensor *tensor, size_t count,
                    struct nl_matrix *matrix)
{
    size_t size = weights->bfloat16 ? sizeof(uint16_t) : sizeof(float);
    uint8_t *copy = nl_weights_alloc(weights, count * size);
    float values[CHUNK];
    for (size_t first = 0, n; copy && first < count; first += n) {
        n = widen(tensor, first, count, values);
        for (size_t i = 0; i < n; i++) {
            uint16_t half = nl_bf16_of_float(values[i]);
            memcpy(copy + (first + i) * size, weights->bfloat16 ? (void *)&half : (void *)&values[i], size);
        }
    }
    matrix->data = copy;
    matrix->dtype = weights->bfloat16 ? NL_BF16 : NL_F32;
}

struct nl_matrix nl_weights_matrix(struct nl_weights *weights, const char *name, uint32_t rows, uint32_t cols,
                                   bool transposed)
{
    char full[300];
    full_name(weights, name, "weight", full, sizeof full);
    const struct nl_tensor *tensor = take(weights, full, transposed ? cols : rows, transposed ? rows : cols);
    if (!tensor)
        return (struct nl_matrix){0};
    struct nl_matrix matrix = {tensor->data, tensor->dtype, rows, cols};
    size_t count = (size_t)rows * cols;
    bool stays = !weights->bfloat16 && (tensor->dtype == NL_F32 || tensor->dtype == NL_F16);
    if (!stays && tensor->dtype != NL_BF16)
        convert(weights, tensor, count, &matrix);
    if (transposed && matrix.data) {
        size_t size = matrix.dtype == NL_F32 ? 4 : 2;
        uint8_t *turned = nl_weights_alloc(weights, count * size);
        if (turned)
            transpose(matrix.data, turned, rows, cols, size);
        matrix.data = turned;
    }
    return matrix;
}

const float *nl_weights_vector(struct nl_weights *weights, const char *name, const char *suffix,
                               uint32_t count, float plus)
{
    char full[300];
    full_name(weights, name, suffix, full, sizeof full);
    const struct nl_tensor *tensor = take(weights, full, count, 0);
    float *out = tensor ? nl_weights_alloc(weights, count * sizeof *out) : NULL;
    float values[CHUNK];
    for (size_t first = 0, n; out && first < count; first += n) {
        n = widen(tensor, first, count, values);
        for (size_t i = 0; i < n; i++)
            out[first + i] = nl_rounded(values[i], weights->bfloat16) + plus;
    }
    return out;
}

/* Older checkpoints carry the rotary frequencies, which the config decides, and GPT-2's its causal mask. */
static bool ignored(const char *name)
{
    static const char *const suffixes[] = {"rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i]);
        if (length >= n && strcmp(name + length - n, suffixes[i]) == 0)
            return true;
    }
    return false;
}

const char **nl_weights_unused(const struct nl_weights *weights, size_t *count)
{
    const char **names = calloc(weights->checkpoint->count + 1, sizeof *names);
    *count = 0;
    for (size_t i = 0; names && i < weights->checkpoint->count; i++)
        if (!weights->used[i] && !ignored(weights->checkpoint->tensors[i]->name))
            names[(*count)++] = weights->checkpoint->tensors[i]->name;
    return names;
}
