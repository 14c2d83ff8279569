/* Traces of the tiny checkpoints: what transformers recorded, and what has to hold between their tensors. */
#include "golden.h"

#include <math.h>
#include <unistd.h>

#include "trace.h"

static const char *const models[] = {
    "llama", "gemma2",         "gemma3",
    "gpt2",  "olmo2",          "phi3-longrope",
    "qwen3", "mistral-window", "mistral-window-long",
};
enum { N_MODELS = sizeof models / sizeof *models };

struct traced {
    struct golden golden;
    struct nl_engine *engine;
    struct nl_trace *trace;
    struct nl_sequence *sequence;
    struct nl_safetensors *file;
};

static void step(struct traced *t, const uint32_t *ids, size_t count)
{
    struct nl_error error = {0};
    struct nl_observer observer = nl_trace_observer(t->trace);
    struct nl_feed feed = {.sequence = t->sequence, .ids = ids, .count = (uint32_t)count};
    feed.n_outputs = feed.count;
    feed.whole = (uint32_t)t->golden.n_prompt;
    if (nl_trace_reserve(t->trace, nl_engine_model(t->engine), nl_sequence_length(t->sequence) + feed.count,
                         &error) != 0 ||
        nl_engine_step_observed(t->engine, &feed, 1, &observer, &error) != 0)
        fail_msg("%s", error.message);
}

static void write_and_open(struct traced *t)
{
    struct nl_error error = {0};
    char path[] = "/tmp/nl-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    if (nl_trace_write(t->trace, fd, path, &error) != 0)
        fail_msg("%s", error.message);
    close(fd);
    t->file = nl_safetensors_open(path, &error);
    if (!t->file)
        fail_msg("%s", error.message);
    unlink(path);
}

/* The prompt in steps of at most `chunk` ids. */
static void open_traced(struct traced *t, const char *name, const char *isa, size_t chunk)
{
    struct nl_error error = {0};
    golden_open(&t->golden, name);
    t->engine = open_tiny(t->golden.folder, isa, 2);
    t->trace = nl_trace_new(&error);
    t->sequence = nl_engine_new_sequence(t->engine, &error);
    assert_non_null(t->trace);
    for (size_t done = 0; done < t->golden.n_prompt; done += chunk) {
        size_t rest = t->golden.n_prompt - done;
        step(t, t->golden.prompt + done, rest < chunk ? rest : chunk);
    }
    assert_int_equal(nl_trace_length(t->trace), t->golden.n_prompt);
    write_and_open(t);
}

static void close_traced(struct traced *t)
{
    nl_safetensors_close(t->file);
    nl_trace_free(t->trace);
    nl_engine_free_sequence(t->engine, t->sequence);
    nl_engine_close(t->engine);
    golden_close(&t->golden);
}

/* A float32 tensor of the trace as an array to be freed. */
static float *values(const struct traced *t, size_t *count, const char *format, int layer)
{
    char name[64];
    snprintf(name, sizeof name, format, layer); // NOLINT
    const struct nl_tensor *tensor = nl_safetensors_find(t->file, name);
    if (!tensor)
        fail_msg("no tensor %s", name);
    assert_int_equal(tensor->dtype, NL_F32);
    float *out = malloc(tensor->elements * sizeof *out + 1);
    memcpy(out, tensor->data, tensor->elements * sizeof *out);
    if (count)
        *count = tensor->elements;
    return out;
}

/* Every tensor of the golden file (the last positions of a long prompt) is that of the trace. */
static void check_golden(const struct traced *t)
{
    for (size_t i = 0; i < t->golden.tensors->count; i++) {
        const struct nl_tensor *want = &t->golden.tensors->tensors[i];
        size_t count;
        float *got = values(t, &count, want->name, 0), value;
        assert_int_equal(count, t->golden.n_prompt * want->shape[1]);
        double worst = 0;
        for (size_t k = 0; k < want->elements; k++) {
            memcpy(&value, want->data + 4 * k, 4);
            worst = fmax(worst, fabs((double)value - got[count - want->elements + k]));
        }
        free(got);
        if (!(worst < 1e-4))
            fail_msg("%s: %s differs by %g", t->golden.folder, want->name, worst);
    }
}

/* heads = attention . v, and the probabilities are some: 0 outside the window, 1 in sum. */
static void check_attention(const struct traced *t, uint32_t layer)
{
    const struct nl_config *c = &nl_engine_model(t->engine)->config;
    size_t n = t->golden.n_prompt, dim = c->head_dim, group = c->n_heads / c->n_kv_heads;
    float *probabilities = values(t, NULL, "layers.%d.attention", (int)layer);
    float *v = values(t, NULL, "layers.%d.v", (int)layer),
          *heads = values(t, NULL, "layers.%d.heads", (int)layer);
    double worst = 0, worst_sum = 0;
    for (size_t h = 0; h < c->n_heads; h++)
        for (size_t i = 0; i < n; i++) {
            const float *row = probabilities + (h * n + i) * n;
            double sum = 0;
            for (size_t p = 0; p < n; p++) {
                bool seen = p <= i && i - p < c->windows[layer];
                assert_true(seen ? row[p] >= 0 : row[p] == 0);
                sum += row[p];
            }
            worst_sum = fmax(worst_sum, fabs(sum - 1));
            for (size_t d = 0; d < dim; d++) {
                double want = 0;
                for (size_t p = 0; p < n; p++)
                    want += (double)row[p] * v[(p * c->n_kv_heads + h / group) * dim + d];
                worst = fmax(worst, fabs(want - heads[(i * c->n_heads + h) * dim + d]));
            }
        }
    assert_true(worst_sum < 1e-5);
    assert_true(worst < 1e-4);
    free(probabilities);
    free(v);
    free(heads);
}

/* The rotation is none at position 0, and keeps lengths. */
static void check_rotation(const struct traced *t, uint32_t layer, const char *before, const char *after)
{
    const struct nl_config *c = &nl_engine_model(t->engine)->config;
    size_t count, rotated;
    float *x = values(t, &count, before, (int)layer), *y = values(t, &rotated, after, (int)layer);
    assert_int_equal(count, rotated);
    bool plain = c->layer_rope[layer] == NL_NO_LAYER_ROPE;
    double scale = plain ? 1 : c->ropes[c->layer_rope[layer]].attention_factor, a = 0, b = 0, moved = 0;
    for (size_t i = 0; i < count; i++) {
        if (i < c->head_dim)
            assert_true(fabs(x[i] * scale - y[i]) < 1e-5);
        moved += fabs((double)x[i] - y[i]);
        a += (double)x[i] * x[i] * scale * scale;
        b += (double)y[i] * y[i];
    }
    assert_true(fabs(a - b) < 1e-5 * a);
    assert_true(plain ? moved == 0 : moved > 1);
    free(x);
    free(y);
}

static void check_model(void **state)
{
    struct traced t;
    open_traced(&t, *state, NULL, 7);
    check_golden(&t);
    for (uint32_t layer = 0; layer < nl_engine_model(t.engine)->config.n_layers; layer++) {
        if (t.golden.n_prompt <= NL_TRACE_ATTENTION)
            check_attention(&t, layer);
        else
            assert_null(nl_safetensors_find(t.file, "layers.0.attention"));
        check_rotation(&t, layer, "layers.%d.q", "layers.%d.q_rope");
        check_rotation(&t, layer, "layers.%d.k", "layers.%d.k_rope");
    }
    close_traced(&t);
}

/* However the ids are cut, ids that come one by one included, the file is the same. */
static void steps_are_joined(void **state)
{
    (void)state;
    struct traced whole, cut;
    open_traced(&whole, "llama", NULL, 100);
    open_traced(&cut, "llama", NULL, 1);
    assert_int_equal(whole.file->count, cut.file->count);
    for (size_t i = 0; i < whole.file->count; i++) {
        const struct nl_tensor *a = &whole.file->tensors[i], *b = &cut.file->tensors[i];
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->end, b->end);
        assert_memory_equal(a->data, b->data, a->end - a->begin);
    }
    const struct nl_tensor *ids = nl_safetensors_find(whole.file, "ids");
    assert_int_equal(ids->elements, whole.golden.n_prompt);
    for (size_t i = 0; i < ids->elements; i++) {
        uint64_t id;
        memcpy(&id, ids->data + 8 * i, 8);
        assert_int_equal(id, whole.golden.prompt[i]);
    }
    close_traced(&whole);
    close_traced(&cut);
}

/* Past longrope's border the cache is computed anew: the trace is of what attention then used. */
static void crossing(void **state)
{
    (void)state;
    struct traced t;
    open_traced(&t, "phi3-longrope", NULL, 100);
    nl_safetensors_close(t.file);
    t.golden.n_prompt = 0; /* nothing says how long it will be */
    size_t n = nl_sequence_length(t.sequence);
    for (size_t i = 0; i < 20; i++)
        step(&t, &t.golden.greedy[i], 1);
    t.golden.n_prompt = n + 20;
    write_and_open(&t);
    for (uint32_t layer = 0; layer < nl_engine_model(t.engine)->config.n_layers; layer++)
        check_attention(&t, layer);
    close_traced(&t);
}

/* Where the buffers are elsewhere and come to the host for the trace, the logits last: CUDA's code on the
 * CPU. */
static void on_a_device(void **state)
{
    (void)state;
    struct traced t;
    if (!isa_available("emu")) {
        print_message("no headers of CUDA to emulate it\n");
        skip();
    }
    open_traced(&t, "qwen3", "emu", 10);
    check_golden(&t);
    for (uint32_t layer = 0; layer < nl_engine_model(t.engine)->config.n_layers; layer++) {
        check_attention(&t, layer);
        check_rotation(&t, layer, "layers.%d.k", "layers.%d.k_rope");
    }
    close_traced(&t);
}

int main(void)
{
    struct CMUnitTest tests[N_MODELS + 3] = {
        cmocka_unit_test(steps_are_joined),
        cmocka_unit_test(crossing),
        cmocka_unit_test(on_a_device),
    };
    for (int i = 0; i < N_MODELS; i++)
        tests[i + 3] = (struct CMUnitTest){models[i], check_model, NULL, NULL, (void *)(uintptr_t)models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
