/*
 * random-model.c: random-model SHAPE FOLDER: a Llama checkpoint with weights drawn by a counter, for
 * measuring and for comparing two programs at true shapes. SHAPE: tiny, 1b (Llama 3.2), 8b (Llama 3.1). BF16,
 * one file.
 *
 * Element i of tensor t is (uniform in [-1, 1)) * sqrt(3) * 0.02, from splitmix64 of t * 2^40 + i; norm
 * weights are 1.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base.h"

struct shape {
    const char *name;
    unsigned hidden, inner, layers, heads, kv_heads, head_dim, vocab;
    bool tied;
};

static const struct shape shapes[] = {
    {"tiny", 64, 160, 2, 4, 2, 16, 317, true},
    {"1b", 2048, 8192, 16, 32, 8, 64, 128256, true},
    {"8b", 4096, 14336, 32, 32, 8, 128, 128256, false},
};

struct tensor {
    char name[80];
    unsigned rows, cols; /* cols 0: a norm's weight [rows] */
};

static uint16_t element(uint64_t tensor, uint64_t i)
{
    uint64_t z = ((tensor << 40) + i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    float uniform = (float)(int32_t)((z ^ z >> 31) >> 40) * 0x1p-23f - 1;
    return nl_bf16_of_float(uniform * 0.034641016f);
}

static size_t list(const struct shape *s, struct tensor *out)
{
    size_t n = 0;
    unsigned q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    const struct {
        const char *name;
        unsigned rows, cols;
    } parts[] = {
        {"input_layernorm", s->hidden, 0},      {"self_attn.q_proj", q, s->hidden},
        {"self_attn.k_proj", kv, s->hidden},    {"self_attn.v_proj", kv, s->hidden},
        {"self_attn.o_proj", s->hidden, q},     {"post_attention_layernorm", s->hidden, 0},
        {"mlp.gate_proj", s->inner, s->hidden}, {"mlp.up_proj", s->inner, s->hidden},
        {"mlp.down_proj", s->hidden, s->inner},
    };
    out[n++] = (struct tensor){"model.embed_tokens.weight", s->vocab, s->hidden};
    for (unsigned layer = 0; layer < s->layers; layer++)
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            snprintf(out[n].name, sizeof out[n].name, "model.layers.%u.%s.weight", layer, parts[p].name);
            out[n].rows = parts[p].rows;
            out[n++].cols = parts[p].cols;
        }
    out[n++] = (struct tensor){"model.norm.weight", s->hidden, 0};
    if (!s->tied)
        out[n++] = (struct tensor){"lm_head.weight", s->vocab, s->hidden};
    return n;
}

static int write_header(FILE *file, const struct tensor *tensors, size_t n)
{
    uint64_t offset = 0;
    char *text = NULL;
    size_t size = 0;
    FILE *header = open_memstream(&text, &size);
    if (!header)
        return -1;
    fputc('{', header);
    for (size_t t = 0; t < n; t++) {
        uint64_t bytes = 2ull * tensors[t].rows * (tensors[t].cols ? tensors[t].cols : 1);
        fprintf(header, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%u", t ? "," : "", tensors[t].name,
                tensors[t].rows);
        if (tensors[t].cols)
            fprintf(header, ",%u", tensors[t].cols);
        fprintf(header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
                (unsigned long long)(offset + bytes));
        offset += bytes;
    }
    fputc('}', header);
    fclose(header);
    uint64_t length = size;
    fwrite(&length, 8, 1, file);
    fwrite(text, 1, size, file);
    free(text);
    return ferror(file) ? -1 : 0;
}

static int write_data(FILE *file, const struct tensor *tensors, size_t n)
{
    enum { LOT = 1 << 16 };
    static uint16_t lot[LOT];
    for (size_t t = 0; t < n; t++) {
        uint64_t count = (uint64_t)tensors[t].rows * (tensors[t].cols ? tensors[t].cols : 1);
        for (uint64_t i = 0; i < count; i += LOT) {
            uint64_t some = count - i < LOT ? count - i : LOT;
            for (uint64_t k = 0; k < some; k++)
                lot[k] = tensors[t].cols ? element(t, i + k) : 0x3f80;
            if (fwrite(lot, 2, some, file) != some)
                return -1;
        }
    }
    return 0;
}

static int write_config(const char *folder, const struct shape *s)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    fprintf(
        file,
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": %u,\n"
        " \"intermediate_size\": %u, \"num_hidden_layers\": %u, \"num_attention_heads\": %u,\n"
        " \"num_key_value_heads\": %u, \"head_dim\": %u, \"vocab_size\": %u, \"tie_word_embeddings\": %s,\n"
        " \"max_position_embeddings\": 8192, \"rms_norm_eps\": 1e-05, \"rope_theta\": 500000.0,\n"
        " \"hidden_act\": \"silu\", \"torch_dtype\": \"bfloat16\", \"bos_token_id\": 1, \"eos_token_id\": "
        "2}\n",
        s->hidden, s->inner, s->layers, s->heads, s->kv_heads, s->head_dim, s->vocab,
        s->tied ? "true" : "false");
    return fclose(file);
}

static int write_model(const char *folder, const struct shape *s)
{
    char path[4096];
    struct tensor *tensors = calloc(9 * (size_t)s->layers + 3, sizeof *tensors);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *file = tensors ? fopen(path, "wb") : NULL;
    if (!file) {
        free(tensors);
        return -1;
    }
    size_t n = list(s, tensors);
    int failed = write_header(file, tensors, n) != 0 || write_data(file, tensors, n) != 0;
    free(tensors);
    return fclose(file) != 0 || failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    const struct shape *shape = NULL;
    for (size_t i = 0; argc == 3 && i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(argv[1], shapes[i].name) == 0)
            shape = &shapes[i];
    if (!shape) {
        fprintf(stderr, "usage: random-model tiny|1b|8b FOLDER\n");
        return 2;
    }
    if ((mkdir(argv[2], 0777) != 0 && errno != EEXIST) || write_config(argv[2], shape) != 0 ||
        write_model(argv[2], shape) != 0) {
        perror(argv[2]);
        return 9;
    }
    return 0;
}
