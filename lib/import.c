#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import_parts.h"

const char *const nl_import_files[] = {
    "config.json",    "generation_config.json", "model.safetensors",
    "tokenizer.json", "tokenizer_config.json",  NULL,
};

struct routes {
    struct nl_route *list; /* [count], names owned */
    size_t count, capacity;
};

static void free_routes(struct routes *r)
{
    for (size_t i = 0; i < r->count; i++)
        free((char *)(uintptr_t)r->list[i].entry.name);
    free(r->list);
}

/* Where a tensor comes from and goes to. columns 0: a vector of `rows`. */
struct plan {
    char from[64], to[96];
    int64_t rows, columns, head_rows;
};

static int check_source(const struct nl_gguf *file, const struct plan *plan,
                        const struct nl_gguf_tensor *source, struct nl_error *error)
{
    if (!source)
        return nl_fail(error, NL_DATA, "tensor is missing: %s: %s", file->name, plan->from);
    if (!source->type->dequantize)
        return nl_fail(error, NL_UNSUPPORTED, "tensor type %s is not supported: %s: %s", source->type->name,
                       file->name, plan->from);
    uint64_t fastest = (uint64_t)(plan->columns ? plan->columns : plan->rows);
    uint64_t slowest = plan->columns ? (uint64_t)plan->rows : 1;
    if (source->dims[0] != fastest || source->dims[1] != slowest || source->dims[2] != 1 ||
        source->dims[3] != 1)
        return nl_fail(error, NL_DATA,
                       "tensor is [%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "], wanted [%" PRIu64
                       ", %" PRIu64 "]: %s: %s",
                       source->dims[0], source->dims[1], source->dims[2], source->dims[3], fastest, slowest,
                       file->name, plan->from);
    return 0;
}

static int add_route(struct routes *r, const struct nl_gguf *file, const struct plan *plan,
                     enum nl_dtype dtype, struct nl_error *error)
{
    const struct nl_gguf_tensor *source = nl_gguf_tensor(file, plan->from);
    if (check_source(file, plan, source, error) != 0)
        return -1;
    if (nl_grow(&r->list, &r->capacity, r->count + 1, sizeof *r->list, file->name, error) != 0)
        return -1;
    struct nl_route *route = &r->list[r->count];
    *route = (struct nl_route){
        .entry = {strdup(plan->to),
                  dtype,
                  plan->columns ? 2 : 1,
                  {(uint64_t)plan->rows, (uint64_t)plan->columns}},
        .source = source,
        .head_rows = (uint64_t)plan->head_rows,
    };
    if (!route->entry.name)
        return nl_fail_memory(error, file->name);
    r->count++;
    return 0;
}

/* The matrices of a layer: [rows][columns]. */
static int add_matrices(struct routes *r, const struct nl_gguf *file, const struct nl_import_config *c,
                        int64_t layer, enum nl_dtype dtype, struct nl_error *error)
{
    int64_t hidden = c->hidden_size, inner = c->intermediate_size, d = c->head_dim;
    const struct {
        const char *from, *to;
        int64_t rows, columns, head_rows;
        int bias; /* 1: there is one */
    } parts[] = {
        {"attn_q", "self_attn.q_proj", c->n_heads * d, hidden, d, c->attention_bias},
        {"attn_k", "self_attn.k_proj", c->n_kv_heads * d, hidden, d, c->attention_bias},
        {"attn_v", "self_attn.v_proj", c->n_kv_heads * d, hidden, 0, c->attention_bias},
        {"attn_output", "self_attn.o_proj", hidden, c->n_heads * d, 0, c->attention_bias},
        {"ffn_gate", "mlp.gate_proj", inner, hidden, 0, c->mlp_bias},
        {"ffn_up", "mlp.up_proj", inner, hidden, 0, c->mlp_bias},
        {"ffn_down", "mlp.down_proj", hidden, inner, 0, c->mlp_bias},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (int bias = 0; bias <= parts[i].bias; bias++) {
            struct plan plan = {.rows = parts[i].rows,
                                .columns = bias ? 0 : parts[i].columns,
                                .head_rows = parts[i].head_rows};
            const char *kind = bias ? "bias" : "weight";
            snprintf(plan.from, sizeof plan.from, "blk.%" PRId64 ".%s.%s", layer, parts[i].from, kind);
            snprintf(plan.to, sizeof plan.to, "model.layers.%" PRId64 ".%s.%s", layer, parts[i].to, kind);
            if (add_route(r, file, &plan, dtype, error) != 0)
                return -1;
        }
    return 0;
}

static int add_layer(struct routes *r, const struct nl_gguf *file, const struct nl_import_config *c,
                     int64_t layer, enum nl_dtype dtype, struct nl_error *error)
{
    static const char *const norms[][2] = {{"attn_norm", "input_layernorm"},
                                           {"ffn_norm", "post_attention_layernorm"}};
    for (int i = 0; i < 2; i++) {
        struct plan plan = {.rows = c->hidden_size};
        snprintf(plan.from, sizeof plan.from, "blk.%" PRId64 ".%s.weight", layer, norms[i][0]);
        snprintf(plan.to, sizeof plan.to, "model.layers.%" PRId64 ".%s.weight", layer, norms[i][1]);
        if (add_route(r, file, &plan, dtype, error) != 0)
            return -1;
    }
    return add_matrices(r, file, c, layer, dtype, error);
}

/* Every tensor of the file has to be used: one that is not known may be what makes another architecture. */
static int check_unused(const struct routes *r, const struct nl_gguf *file, struct nl_error *error)
{
    bool *used = calloc(file->n_tensors + 1, sizeof *used);
    if (!used)
        return nl_fail_memory(error, file->name);
    for (size_t i = 0; i < r->count; i++)
        used[r->list[i].source - file->tensors] = true;
    int result = 0;
    for (size_t i = 0; i < file->n_tensors && result == 0; i++) {
        const char *name = file->tensors[i].name;
        if (!used[i] && strcmp(name, "rope_freqs.weight") != 0) /* that is in config.json */
            result = nl_fail(error, NL_UNSUPPORTED, "tensor is not part of the llama architecture: %s: %s",
                             file->name, name);
    }
    free(used);
    return result;
}

static int make_routes(struct routes *r, const struct nl_gguf *file, const struct nl_import_config *c,
                       enum nl_dtype dtype, struct nl_error *error)
{
    const struct plan ends[] = {
        {"token_embd.weight", "model.embed_tokens.weight", c->vocab_size, c->hidden_size, 0},
        {"output_norm.weight", "model.norm.weight", c->hidden_size, 0, 0},
        {"output.weight", "lm_head.weight", c->vocab_size, c->hidden_size, 0},
    };
    for (int i = 0; i < (c->tied ? 2 : 3); i++)
        if (add_route(r, file, &ends[i], dtype, error) != 0)
            return -1;
    for (int64_t layer = 0; layer < c->n_layers; layer++)
        if (add_layer(r, file, c, layer, dtype, error) != 0)
            return -1;
    return check_unused(r, file, error);
}

static int create(const char *folder, const char *name, char **path, struct nl_error *error)
{
    *path = nl_path_join(folder, name, error);
    if (!*path)
        return -1;
    int fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        nl_fail_errno(error, "cannot create", *path);
        free(*path);
        *path = NULL;
    }
    return fd;
}

static int finish(int fd, char *path, int result, struct nl_error *error)
{
    if (close(fd) != 0 && result == 0)
        result = nl_fail_errno(error, "cannot write", path);
    free(path);
    return result;
}

static int write_text(const char *folder, const char *name, const struct nl_buf *text, struct nl_error *error)
{
    if (nl_buf_check(text, name, error) != 0)
        return -1;
    char *path;
    int fd = create(folder, name, &path, error);
    if (fd < 0)
        return -1;
    return finish(fd, path, nl_write_all(fd, text->data, text->size, path, error), error);
}

static int write_weights(const char *folder, const struct nl_gguf *file, struct routes *r,
                         const struct nl_import_options *options, struct nl_error *error)
{
    char *path;
    int fd = create(folder, "model.safetensors", &path, error);
    if (fd < 0)
        return -1;
    return finish(fd, path, nl_import_weights(fd, path, file, r->list, r->count, options, error), error);
}

int nl_import(const struct nl_gguf *file, const char *folder, const struct nl_import_options *options,
              struct nl_error *error)
{
    struct nl_import_config config;
    struct routes routes = {0};
    struct nl_buf texts[4] = {{0}};
    static const char *const names[4] = {"config.json", "generation_config.json", "tokenizer.json",
                                         "tokenizer_config.json"};
    /* Everything that can be wrong is found before the long part begins. */
    int result = nl_import_config(file, &config, error);
    if (result == 0)
        result = make_routes(&routes, file, &config, options->dtype, error);
    if (result == 0)
        result = nl_import_tokenizer(file, &config, &texts[2], &texts[3], error);
    if (result == 0) {
        nl_import_config_json(&config, options->dtype, &texts[0]);
        nl_import_generation_json(&config, &texts[1]);
    }
    for (int i = 0; i < 4 && result == 0; i++)
        result = write_text(folder, names[i], &texts[i], error);
    if (result == 0)
        result = write_weights(folder, file, &routes, options, error);
    for (int i = 0; i < 4; i++)
        nl_buf_free(&texts[i]);
    free_routes(&routes);
    return result;
}

int nl_import_name(const struct nl_gguf *file, struct nl_buf *out, struct nl_error *error)
{
    struct nl_gguf_string name = {0};
    if (nl_gguf_text(file, "general.name", &name, NULL) <= 0 || name.size == 0) {
        const char *slash = strrchr(file->name, '/'), *base = slash ? slash + 1 : file->name,
                   *dot = strrchr(base, '.');
        name = (struct nl_gguf_string){base, dot && dot > base ? (size_t)(dot - base) : strlen(base)};
    }
    size_t start = out->size;
    bool gap = false;
    for (size_t i = 0; i < name.size && out->size - start < 100; i++) {
        char c = name.data[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!plain && c != '.') {
            gap = true;
            continue;
        }
        if (out->size == start && c == '.') /* no hidden folder, no .. */
            continue;
        if (gap && out->size > start)
            nl_buf_putc(out, '-');
        gap = false;
        nl_buf_putc(out, c);
    }
    if (out->size == start)
        nl_buf_puts(out, "model");
    if (!out->failed && strcmp(out->data + start, "default") == 0)
        nl_buf_puts(out, "-model");
    return nl_buf_check(out, "name", error);
}
