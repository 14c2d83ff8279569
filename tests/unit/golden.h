/* golden.h: the tiny checkpoints of tests/data/models with what transformers said about them. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include "test.h"

#include "engine.h"
#include "file.h"
#include "json.h"

struct golden {
    char folder[300];
    uint32_t *prompt, *greedy;
    size_t n_prompt, n_greedy;
    struct nl_safetensors
        *tensors; /* logits [T][vocab], hidden_states.N [T][hidden]: the prompt's last T positions */
};

static inline uint32_t *golden_ids(const struct nl_json *root, const char *key, size_t *count)
{
    const struct nl_json *list = nl_json_get(root, key);
    uint32_t *ids = calloc(nl_json_count(list) + 1, sizeof *ids);
    *count = 0;
    for (const struct nl_json *v = nl_json_first(list); v; v = nl_json_next(v))
        ids[(*count)++] = (uint32_t)nl_json_number(v);
    return ids;
}

static inline void golden_open(struct golden *golden, const char *name)
{
    struct nl_error error = {0};
    char path[400];
    snprintf(golden->folder, sizeof golden->folder, "tests/data/models/%s", name);
    snprintf(path, sizeof path, "%s/golden.json", golden->folder);
    struct nl_json *root = nl_json_load(path, &error);
    if (!root)
        fail_msg("%s", error.message);
    golden->prompt = golden_ids(root, "prompt", &golden->n_prompt);
    golden->greedy = golden_ids(root, "greedy", &golden->n_greedy);
    nl_json_free(root);
    snprintf(path, sizeof path, "%s/golden.safetensors", golden->folder);
    golden->tensors = nl_safetensors_open(path, &error);
    if (!golden->tensors)
        fail_msg("%s", error.message);
}

static inline void golden_close(struct golden *golden)
{
    free(golden->prompt);
    free(golden->greedy);
    nl_safetensors_close(golden->tensors);
}

/* The processor may lack an instruction set, the machine the headers of CUDA; that is no failure of the
 * test.
 */
static inline bool isa_available(const char *isa)
{
    struct nl_error error;
    bool cuda = strcmp(isa, cuda_device()) == 0;
    struct nl_backend *backend = cuda ? nl_backend_open(isa, NULL, 1, &error) : nl_cpu_open(isa, 1, &error);
    nl_backend_close(backend);
    return backend != NULL;
}

static inline struct nl_engine *open_tiny_as(const char *folder, const char *isa, unsigned threads,
                                             bool bfloat16)
{
    struct nl_error error = {0};
    struct nl_engine_options options = {.device = isa && strcmp(isa, cuda_device()) == 0 ? isa : "cpu",
                                        .isa = isa,
                                        .threads = threads,
                                        .context = 4096,
                                        .max_outputs = 700};
    options.prefill_chunk = 1000;
    options.bfloat16 = bfloat16;
    struct nl_engine *engine = nl_engine_open(folder, &options, &error);
    if (!engine)
        fail_msg("%s", error.message);
    return engine;
}

static inline struct nl_engine *open_tiny(const char *folder, const char *isa, unsigned threads)
{
    return open_tiny_as(folder, isa, threads, false);
}

#endif
