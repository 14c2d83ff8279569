/* cuda_backend.c: opens a device, brings a plan to it and runs steps. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda_host.h"

bool nl_cuda_early_start;

enum { TILE_QUERIES = 512 };

int nl_cuda_check(struct nl_error *error, cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return 0;
    static const cudaError_t resources[] = {
        cudaErrorMemoryAllocation,
        cudaErrorNoDevice,
        cudaErrorInvalidDevice,
        cudaErrorInsufficientDriver,
        cudaErrorDevicesUnavailable,
        cudaErrorNoKernelImageForDevice,
        cudaErrorSystemNotReady,
        cudaErrorSystemDriverMismatch,
        cudaErrorCompatNotSupportedOnDevice,
        cudaErrorUnsupportedPtxVersion,
        cudaErrorInitializationError,
    };
    bool resource = false;
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
        resource |= status == resources[i];
    (void)cudaGetLastError(); /* else cuBLAS would take it for its own, at the next sequence */
    return nl_fail(error, resource ? NL_RESOURCE : NL_IO, "CUDA: %s: %s", cudaGetErrorString(status), what);
}

void *nl_cuda_alloc(uint64_t bytes, const char *what, struct nl_error *error)
{
    void *memory = NULL;
    char text[120];
    snprintf(text, sizeof text, "%llu bytes for the %s", (unsigned long long)bytes, what);
    return nl_cuda_check(error, cudaMalloc(&memory, bytes ? bytes : 1), text) == 0 ? memory : NULL;
}

void nl_cuda_drop_graphs(struct cuda_backend *b)
{
    while (b->n_graphs > 0)
        if (b->graphs[--b->n_graphs].exec)
            cudaGraphExecDestroy(b->graphs[b->n_graphs].exec);
}

static void close_backend(struct nl_backend *base)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    (void)cudaSetDevice(b->device);
    if (b->stream)
        (void)cudaStreamSynchronize(b->stream);
    nl_cuda_drop_graphs(b);
    nl_cuda_blas_close(b->blas);
    nl_cuda_step_free(b);
    nl_cuda_weights_free(&b->weights);
    for (unsigned i = 0; i < NL_MAX_BUFFERS; i++)
        cudaFree(b->buffers[i]);
    for (size_t i = 0; i < b->cache.n_slabs; i++)
        cudaFree(b->cache.slabs[i]);
    free(b->cache.slabs);
    cudaFree(b->logits);
    cudaFree(b->best);
    cudaFree(b->argmax_space);
    cudaFree(b->arrived);
    cudaFree(b->partials);
    cudaFree(b->scratch);
    cudaFreeHost(b->host_best);
    free(b->plain);
    free(b->fused);
    if (b->stream)
        cudaStreamDestroy(b->stream);
    free(b);
}

static uint64_t available(struct nl_backend *base)
{
    const struct cuda_backend *b = (const struct cuda_backend *)base;
    size_t unused = 0, total = 0;
    return cudaSetDevice(b->device) == cudaSuccess && cudaMemGetInfo(&unused, &total) == cudaSuccess ? unused
                                                                                                     : 0;
}

/* Blocks stay with the device for the next sequence. */
static void release_block(struct nl_backend *base, uint32_t block)
{
    (void)base;
    (void)block;
}

/* Counters of attention for each row and query head, which are at least as many as its groups, and of
 * arg-max. */
static uint32_t attention_counters(const struct nl_plan *plan)
{
    uint32_t most = 0;
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == NL_OP_ATTENTION && plan->ops[i].attention.n_heads > most)
            most = plan->ops[i].attention.n_heads;
    return most * NL_CUDA_VECTORS;
}

static int allocate(struct cuda_backend *b, struct nl_error *error)
{
    const struct nl_plan *plan = b->plan;
    for (uint32_t i = 0; i < plan->n_buffers; i++)
        if (!(b->buffers[i] = nl_cuda_alloc((uint64_t)plan->max_tokens * plan->width[i] * sizeof(float),
                                            "activations", error)))
            return -1;
    size_t counters = (attention_counters(plan) + plan->max_outputs) * sizeof(uint32_t);
    b->logits =
        nl_cuda_alloc((uint64_t)plan->max_outputs * plan->vocab_size * sizeof(float), "logits", error);
    b->best = b->logits ? nl_cuda_alloc(plan->max_outputs * sizeof(uint32_t), "choices", error) : NULL;
    b->argmax_space =
        b->best ? nl_cuda_alloc((uint64_t)plan->max_outputs * NL_CUDA_ARGMAX_PARTS * sizeof(uint64_t),
                                "choices", error)
                : NULL;
    b->arrived = b->argmax_space ? nl_cuda_alloc(counters, "counters", error) : NULL;
    if (!b->arrived || NL_CUDA(error, cudaMemsetAsync(b->arrived, 0, counters, b->stream)) != 0)
        return -1;
    return NL_CUDA(error, cudaMallocHost((void **)&b->host_best, plan->max_outputs * sizeof(uint32_t)));
}

static int prepare_cache(struct cuda_backend *b, uint64_t n_blocks, struct nl_error *error)
{
    enum { SLAB_BYTES = 32 << 20 };
    b->cache.block_bytes = nl_plan_block_size(b->plan);
    b->cache.n_blocks = n_blocks;
    uint64_t lot = SLAB_BYTES / b->cache.block_bytes;
    lot = lot < 1 ? 1 : lot < n_blocks ? lot : n_blocks;
    b->cache.blocks_per_slab = (uint32_t)lot;
    b->cache.n_slabs = (n_blocks + lot - 1) / lot;
    b->cache.slabs = calloc(b->cache.n_slabs, sizeof *b->cache.slabs);
    return b->cache.slabs ? 0 : nl_fail_memory(error, "cache");
}

static int check_limit(const char *what, uint32_t value, uint32_t most, struct nl_error *error)
{
    return value <= most ? 0 : nl_fail(error, NL_UNSUPPORTED, "CUDA: %s: %u, at most %u", what, value, most);
}

/* What the kernels take for granted. */
static int check_plan(const struct nl_plan *plan, struct nl_error *error)
{
    uint32_t heads = plan->n_kv_heads, width = 0;
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == NL_OP_ATTENTION && plan->ops[i].attention.n_heads > heads)
            heads = plan->ops[i].attention.n_heads;
    for (uint32_t i = 0; i < plan->n_buffers; i++)
        width = plan->width[i] > width ? plan->width[i] : width;
    if (check_limit("elements of a head", plan->head_dim, NL_CUDA_HEAD_DIM, error) != 0 ||
        check_limit("heads", heads, NL_CUDA_HEADS, error) != 0)
        return -1;
    return check_limit("activations of a row", width, NL_CUDA_WIDTH, error);
}

static int load(struct nl_backend *base, const struct nl_plan *plan, uint64_t n_blocks,
                struct nl_error *error)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    b->plan = plan;
    if (NL_CUDA(error, cudaSetDevice(b->device)) != 0 || check_plan(plan, error) != 0 ||
        nl_cuda_weights_list(&b->weights, plan, error) != 0)
        return -1;
    uint64_t need = b->weights.size + nl_plan_block_size(plan), there = available(base);
    if (need > there)
        return nl_fail(error, NL_RESOURCE,
                       "not enough memory on the device: %llu MB of weights, %llu MB are available",
                       (unsigned long long)(b->weights.size >> 20), (unsigned long long)(there >> 20));
    if (nl_cuda_weights_upload(&b->weights, b->stream, error) != 0 || allocate(b, error) != 0 ||
        prepare_cache(b, n_blocks, error) != 0)
        return -1;
    return nl_cuda_plan(b, error);
}

/* One operation of n_tokens rows; many: as prefill does it. */
static int run_op(struct cuda_backend *b, const struct nl_cuda_op *op, const struct nl_step *step,
                  uint32_t splits, bool many, struct nl_error *error)
{
    const struct nl_cuda_step *device_step = (const struct nl_cuda_step *)b->step.device;
    uint32_t n = step->n_tokens, n_outputs = step->n_outputs;
    struct nl_cuda_attention attention;
    switch (op->kind) {
    case NL_OP_EMBED:
        return NL_CUDA(error, nl_cuda_run_embed(&op->embed, device_step, n, b->stream));
    case NL_OP_NORM:
        n = op->norm.at_outputs ? n_outputs : n;
        return n == 0 ? 0 : NL_CUDA(error, nl_cuda_run_row_norm(&op->norm, device_step, n, b->stream));
    case NL_OP_RESIDUAL:
        return NL_CUDA(error,
                       nl_cuda_run_residual(op->residual.out, op->residual.in, op->residual.scale,
                                            b->plan->bfloat16, (size_t)n * op->residual.width, b->stream));
    case NL_OP_LOGITS:
        n = n_outputs;
        if (n == 0)
            return 0;
        /* fall through */
    case NL_OP_LINEAR:
        return n > NL_CUDA_VECTORS ? nl_cuda_prefill_linear(b, &op->linear, n, error)
                                   : NL_CUDA(error, nl_cuda_run_matvec(&op->linear, n, b->stream));
    case NL_OP_QK_NORM:
        return NL_CUDA(error, nl_cuda_run_qk_norm(&op->rope, n, b->stream));
    case NL_OP_ROPE:
        return NL_CUDA(error, nl_cuda_run_rope(&op->rope, device_step, n, b->stream));
    case NL_OP_ATTENTION:
        attention = nl_cuda_with_splits(b, &op->attention, splits);
        return many ? nl_cuda_prefill_attention(b, &attention, step, error)
                    : NL_CUDA(error, nl_cuda_run_attention(&attention, device_step, 0, n, b->stream));
    case NL_OP_GATE:
        return NL_CUDA(error, nl_cuda_run_gate(&op->gate, n, b->stream));
    default:
        return n_outputs == 0
                   ? 0
                   : NL_CUDA(error, nl_cuda_run_argmax(b->best, b->logits, b->plan->vocab_size, n_outputs,
                                                       b->argmax_space,
                                                       b->arrived + attention_counters(b->plan), b->stream));
    }
}

/* Says where it happened. */
static int run_named(struct cuda_backend *b, const struct nl_cuda_op *op, const struct nl_step *step,
                     uint32_t splits, bool many, struct nl_error *error)
{
    static const char *const names[NL_OP_KINDS] = {"embedding",       "norm",     "residual",  "products",
                                                   "norm of q and k", "rotation", "attention", "activation",
                                                   "logits",          "arg-max"};
    struct nl_error inner = {0};
    if (run_op(b, op, step, splits, many, &inner) == 0)
        return 0;
    if (op->op->layer < 0)
        return nl_fail(error, inner.code, "%s: %s, %u rows", inner.message, names[op->kind], step->n_tokens);
    return nl_fail(error, inner.code, "%s: %s of layer %d, %u rows", inner.message, names[op->kind],
                   op->op->layer, step->n_tokens);
}

static int run_ops(struct cuda_backend *b, const struct nl_cuda_op *ops, size_t count,
                   const struct nl_step *step, uint32_t splits, struct nl_error *error)
{
    bool many = step->n_tokens > NL_CUDA_VECTORS;
    for (size_t i = 0; i < count; i++)
        if (run_named(b, &ops[i], step, splits, many, error) != 0)
            return -1;
    return 0;
}

/* Operation by operation; the buffers' rows are brought to the host after each, unless nobody looks. */
static int run_observed(struct cuda_backend *b, const struct nl_step *step, uint32_t splits,
                        const struct nl_observer *observer, struct nl_error *error)
{
    float *host[NL_MAX_BUFFERS] = {0};
    uint32_t n_buffers = observer->blind ? 0 : b->plan->n_buffers;
    int result = 0;
    for (uint32_t i = 0; i < n_buffers && result == 0; i++) {
        host[i] = calloc((size_t)b->plan->max_tokens * b->plan->width[i], sizeof(float));
        if (!host[i])
            result = nl_fail_memory(error, "copy of activations");
    }
    for (size_t i = 0; i < b->n_plain && result == 0; i++) {
        result = run_named(b, &b->plain[i], step, splits, step->n_tokens > NL_CUDA_VECTORS, error);
        for (uint32_t k = 0; k < n_buffers && result == 0; k++)
            result =
                NL_CUDA(error, cudaMemcpyAsync(host[k], b->buffers[k],
                                               (size_t)step->n_tokens * b->plan->width[k] * sizeof(float),
                                               cudaMemcpyDeviceToHost, b->stream));
        if (result == 0)
            result = NL_CUDA(error, cudaStreamSynchronize(b->stream));
        if (result == 0)
            observer->seen(observer->context, b->plain[i].op, observer->blind ? NULL : host);
    }
    for (uint32_t i = 0; i < n_buffers; i++)
        free(host[i]);
    return result;
}

static int capture(struct cuda_backend *b, const struct nl_step *step, struct nl_cuda_graph *graph,
                   struct nl_error *error)
{
    cudaGraph_t captured = NULL;
    if (NL_CUDA(error, cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal)) != 0)
        return -1;
    int result = run_ops(b, b->fused, b->n_fused, step, graph->splits, error);
    cudaError_t ended = cudaStreamEndCapture(b->stream, &captured);
    if (result == 0)
        result = nl_cuda_check(error, ended, "capture of a step");
    if (result == 0)
        result = NL_CUDA(error, cudaGraphInstantiate(&graph->exec, captured, 0));
    if (captured)
        cudaGraphDestroy(captured);
    return result;
}

/* The step's graph, captured at the second step of its kind: the first one, run plainly, has the driver load
   the kernels, which a capture may forbid. */
static int run_graph(struct cuda_backend *b, const struct nl_step *step, uint32_t splits,
                     struct nl_error *error)
{
    struct nl_cuda_graph *graph = b->graphs, *end = graph + b->n_graphs;
    while (graph < end && (graph->n_tokens != step->n_tokens || graph->n_outputs != step->n_outputs ||
                           graph->splits != splits))
        graph++;
    if (graph == end) {
        if (b->n_graphs == NL_CUDA_GRAPHS)
            nl_cuda_drop_graphs(b);
        b->graphs[b->n_graphs++] = (struct nl_cuda_graph){step->n_tokens, step->n_outputs, splits, NULL};
        return run_ops(b, b->fused, b->n_fused, step, splits, error);
    }
    if (!graph->exec && capture(b, step, graph, error) != 0)
        return -1;
    return NL_CUDA(error, cudaGraphLaunch(graph->exec, b->stream));
}

static int run_step(struct cuda_backend *b, const struct nl_step *step, const struct nl_observer *observer,
                    struct nl_error *error)
{
    uint32_t splits;
    if (nl_cuda_step_send(b, step, error) != 0 || nl_cuda_splits(b, step, &splits, error) != 0)
        return -1;
    if (observer)
        return run_observed(b, step, splits, observer, error);
    if (step->n_tokens > NL_CUDA_VECTORS || !b->use_fusion)
        return run_ops(b, b->plain, b->n_plain, step, splits, error);
    return b->use_graphs ? run_graph(b, step, splits, error)
                         : run_ops(b, b->fused, b->n_fused, step, splits, error);
}

static int run_and_fetch(struct cuda_backend *b, const struct nl_step *step,
                         const struct nl_observer *observer, struct nl_error *error)
{
    if (NL_CUDA(error, cudaSetDevice(b->device)) != 0 || run_step(b, step, observer, error) != 0)
        return -1;
    size_t n = step->n_outputs;
    if (n > 0 && NL_CUDA(error, cudaMemcpyAsync(b->host_best, b->best, n * sizeof(uint32_t),
                                                cudaMemcpyDeviceToHost, b->stream)) != 0)
        return -1;
    if (n > 0 && !step->best_only &&
        NL_CUDA(error, cudaMemcpyAsync(step->logits, b->logits, n * b->plan->vocab_size * sizeof(float),
                                       cudaMemcpyDeviceToHost, b->stream)) != 0)
        return -1;
    if (NL_CUDA(error, cudaStreamSynchronize(b->stream)) != 0)
        return -1;
    if (n > 0)
        memcpy(step->best, b->host_best, n * sizeof(uint32_t));
    return 0;
}

static int run(struct nl_backend *base, const struct nl_step *step, const struct nl_observer *observer,
               struct nl_error *error)
{
    struct cuda_backend *b = (struct cuda_backend *)base;
    if (step->n_tokens == 0 || run_and_fetch(b, step, observer, error) == 0)
        return 0;
    (void)cudaStreamSynchronize(
        b->stream); /* what was queued before the failure reads the step's host copy */
    (void)cudaGetLastError();
    return -1;
}

static const struct nl_backend_calls cuda_calls = {
    .close = close_backend, .load = load, .release_block = release_block, .available = available, .run = run};

/* A number from the environment, for tests. */
static uint32_t knob(const char *name, uint32_t otherwise, uint32_t most)
{
    const char *text = getenv(name);
    unsigned long value = text ? strtoul(text, NULL, 10) : otherwise;
    return value <= most ? (uint32_t)value : most;
}

static int open_device(struct cuda_backend *b, unsigned device, struct nl_error *error)
{
    struct cudaDeviceProp properties;
    bool wait = false;
    int count = 0, driver = 0;
    if (NL_CUDA(error, cudaGetDeviceCount(&count)) != 0)
        return -1;
    if (device >= (unsigned)count)
        return nl_fail(error, NL_RESOURCE, "no device: cuda:%u (there are %d)", device, count);
    b->device = (int)device;
    if (NL_CUDA(error, cudaSetDevice(b->device)) != 0 ||
        NL_CUDA(error, cudaGetDeviceProperties(&properties, b->device)) != 0 ||
        NL_CUDA(error, cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking)) != 0 ||
        NL_CUDA(error, nl_cuda_kernels_wait(&wait)) != 0 ||
        NL_CUDA(error, cudaDriverGetVersion(&driver)) != 0)
        return -1;
    /* graphs take early starts since CUDA 12.3 */
    nl_cuda_early_start = properties.major >= 9 && wait && driver >= 12030 && CUDART_VERSION >= 12030;
    b->multiplies_bf16 = properties.major >= 8;
    snprintf(b->base.name, sizeof b->base.name, "cuda %.60s", properties.name);
    return 0;
}

static struct nl_backend *open_backend(unsigned device, struct nl_error *error)
{
    struct cuda_backend *b = calloc(1, sizeof *b);
    if (!b) {
        nl_fail_memory(error, "backend");
        return NULL;
    }
    b->base.calls = &cuda_calls;
    b->base.rounds = true;
    b->use_graphs = knob("NL_CUDA_GRAPH", 1, 1) != 0;
    b->use_fusion = knob("NL_CUDA_FUSE", 1, 1) != 0;
    b->split = knob("NL_CUDA_SPLIT", NL_CUDA_SPLIT, NL_CUDA_SPLIT) / 4 * 4;
    b->split = b->split ? b->split : NL_CUDA_SPLIT;
    b->tile = knob("NL_CUDA_TILE", TILE_QUERIES, 1 << 16);
    b->tile = b->tile ? b->tile : TILE_QUERIES;
    if (open_device(b, device, error) == 0)
        return &b->base;
    close_backend(&b->base);
    return NULL;
}

__attribute__((visibility("default"))) extern const struct nl_backend_entry nl_backend_entry;
const struct nl_backend_entry nl_backend_entry = {NL_BACKEND_ABI, open_backend};
