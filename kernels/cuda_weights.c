/* cuda_weights.c: brings a plan's weights to the device, as they are stored, through two pinned buffers. */
#include <stdlib.h>

#include "cuda_host.h"

enum { STAGING = 8 << 20, ARENA_ALIGN = 256 };

struct nl_cuda_entry {
    const void *host;
    struct nl_cuda_matrix matrix; /* data: set when the arena is there */
    uint64_t offset;
};

static size_t element_size(enum nl_dtype dtype)
{
    return nl_dtype_bits(dtype) / 8;
}

static struct nl_cuda_entry *find(const struct nl_cuda_weights *weights, const void *host)
{
    for (size_t i = 0; i < weights->count; i++)
        if (weights->entries[i].host == host)
            return &weights->entries[i];
    return NULL;
}

static int add(struct nl_cuda_weights *weights, const struct nl_matrix *matrix, struct nl_error *error)
{
    if (!matrix->data || find(weights, matrix->data))
        return 0;
    if (weights->count % 256 == 0) {
        struct nl_cuda_entry *grown =
            realloc(weights->entries, (weights->count + 256) * sizeof *weights->entries);
        if (!grown)
            return nl_fail_memory(error, "list of weights");
        weights->entries = grown;
    }
    uint32_t lot = (uint32_t)(NL_CUDA_ALIGN / element_size(matrix->dtype));
    uint32_t pitch = (matrix->cols + lot - 1) / lot * lot;
    weights->entries[weights->count++] = (struct nl_cuda_entry){
        .host = matrix->data,
        .matrix = {.dtype = matrix->dtype, .rows = matrix->rows, .cols = matrix->cols, .pitch = pitch},
        .offset = weights->size};
    uint64_t bytes = (uint64_t)matrix->rows * pitch * element_size(matrix->dtype);
    weights->size += (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    return 0;
}

static int add_vector(struct nl_cuda_weights *weights, const float *vector, uint32_t count,
                      struct nl_error *error)
{
    return add(weights, &(struct nl_matrix){.data = vector, .dtype = NL_F32, .rows = 1, .cols = count},
               error);
}

static int add_op(struct nl_cuda_weights *w, const struct nl_plan *plan, const struct nl_op *op,
                  struct nl_error *error)
{
    int failed = 0;
    switch (op->kind) {
    case NL_OP_EMBED:
        failed |= add(w, &op->embed.table, error);
        failed |= add(w, &op->embed.positions, error);
        break;
    case NL_OP_NORM:
        failed |= add_vector(w, op->norm.weight, plan->width[op->in], error);
        failed |= add_vector(w, op->norm.bias, plan->width[op->in], error);
        break;
    case NL_OP_LINEAR:
        for (uint32_t s = 0; s < op->linear.n_segments; s++) {
            failed |= add(w, &op->linear.segment[s].weight, error);
            failed |= add_vector(w, op->linear.segment[s].bias, op->linear.segment[s].weight.rows, error);
        }
        break;
    case NL_OP_QK_NORM:
        for (int part = 0; part < 2; part++)
            failed |= add_vector(w, op->qk_norm.part[part].weight, op->qk_norm.part[part].width, error);
        break;
    case NL_OP_LOGITS:
        failed |= add(w, &op->logits.weight, error);
        break;
    default:
        break;
    }
    return failed;
}

int nl_cuda_weights_list(struct nl_cuda_weights *weights, const struct nl_plan *plan, struct nl_error *error)
{
    for (size_t i = 0; i < plan->n_ops; i++)
        if (add_op(weights, plan, &plan->ops[i], error) != 0)
            return -1;
    return 0;
}

struct staging {
    char *buffer[2];
    cudaEvent_t free[2]; /* recorded when a buffer's copy was queued */
    unsigned next;
    cudaStream_t stream;
};

/* Rows [first, first + n) of an entry: padded in a pinned buffer, copied while the other one is filled. */
static int send_rows(struct staging *staging, const struct nl_cuda_entry *entry, uint32_t first, uint32_t n,
                     struct nl_error *error)
{
    unsigned b = staging->next++ % 2;
    if (NL_CUDA(error, cudaEventSynchronize(staging->free[b])) != 0)
        return -1;
    size_t size = element_size(entry->matrix.dtype), row = entry->matrix.cols * size;
    size_t pitch = entry->matrix.pitch * size;
    for (uint32_t r = 0; r < n; r++) {
        memcpy(staging->buffer[b] + r * pitch, (const char *)entry->host + (first + (size_t)r) * row, row);
        memset(staging->buffer[b] + r * pitch + row, 0, pitch - row);
    }
    char *to = (char *)entry->matrix.data + first * pitch;
    if (NL_CUDA(error, cudaMemcpyAsync(to, staging->buffer[b], n * pitch, cudaMemcpyHostToDevice,
                                       staging->stream)) != 0)
        return -1;
    return NL_CUDA(error, cudaEventRecord(staging->free[b], staging->stream));
}

static int send_all(struct nl_cuda_weights *weights, struct staging *staging, struct nl_error *error)
{
    for (size_t i = 0; i < weights->count; i++) {
        struct nl_cuda_entry *entry = &weights->entries[i];
        size_t pitch = entry->matrix.pitch * element_size(entry->matrix.dtype);
        uint32_t rows = entry->matrix.rows, most = (uint32_t)(STAGING / pitch);
        entry->matrix.data = weights->arena + entry->offset;
        if (most == 0)
            return nl_fail(error, NL_UNSUPPORTED, "a row of weights of more than %d bytes: %zu", STAGING,
                           pitch);
        for (uint32_t first = 0; first < rows; first += most)
            if (send_rows(staging, entry, first, rows - first < most ? rows - first : most, error) != 0)
                return -1;
    }
    return NL_CUDA(error, cudaStreamSynchronize(staging->stream));
}

int nl_cuda_weights_upload(struct nl_cuda_weights *weights, cudaStream_t stream, struct nl_error *error)
{
    struct staging staging = {.stream = stream};
    int result = -1;
    weights->arena = nl_cuda_alloc(weights->size, "weights", error);
    if (!weights->arena)
        return -1;
    if (NL_CUDA(error, cudaMallocHost((void **)&staging.buffer[0], STAGING)) == 0 &&
        NL_CUDA(error, cudaMallocHost((void **)&staging.buffer[1], STAGING)) == 0 &&
        NL_CUDA(error, cudaEventCreateWithFlags(&staging.free[0], cudaEventDisableTiming)) == 0 &&
        NL_CUDA(error, cudaEventCreateWithFlags(&staging.free[1], cudaEventDisableTiming)) == 0)
        result = send_all(weights, &staging, error);
    (void)cudaStreamSynchronize(stream); /* after a failure copies may still read the buffers */
    for (int b = 0; b < 2; b++) {
        if (staging.free[b])
            cudaEventDestroy(staging.free[b]);
        cudaFreeHost(staging.buffer[b]);
    }
    return result;
}

void nl_cuda_weights_free(struct nl_cuda_weights *weights)
{
    cudaFree(weights->arena);
    free(weights->entries);
}

struct nl_cuda_matrix nl_cuda_weights_matrix(const struct nl_cuda_weights *weights, const void *host)
{
    const struct nl_cuda_entry *entry = host ? find(weights, host) : NULL;
    return entry ? entry->matrix : (struct nl_cuda_matrix){0};
}

const float *nl_cuda_weights_vector(const struct nl_cuda_weights *weights, const void *host)
{
    return nl_cuda_weights_matrix(weights, host).data;
}
