/* The tiny checkpoints against transformers: logits and hidden states within 1e-4, greedy ids equal, on every
 * instruction set. */
#include "golden.h"

#include <math.h>

static const char *const models[] = {
    "gemma",
    "olmo2",
    "gemma2",
    "gemma3",
    "gpt2",
    "llama",
    "llama-dynamic",
    "llama-bf16-llama3rope-tied-sharded",
    "llama-long",
    "mistral-window",
    "llama-f16-linear-bias",
    "qwen2-yarn",
    "phi3-longrope",
    "mistral-window-long",
    "qwen3",
    "smollm3",
    "smollm3-window",
    "qwen3-types",
    "qwen2-window",
    "gpt2-erf",
    "phi3-partial",
    "granite",
    "gemma2-long",
    "gemma3-long",
};
static const char *const isas[] = {"reference", "portable", "avx2", "avx512"};
enum { N_MODELS = sizeof models / sizeof *models, N_ISAS = sizeof isas / sizeof *isas };

static double worst_difference(const float *got, const struct nl_tensor *want)
{
    double worst = 0;
    for (size_t i = 0; i < want->elements; i++) {
        float value;
        memcpy(&value, want->data + 4 * i, 4);
        double difference = fabs((double)got[i] - value);
        worst = difference > worst || difference != difference ? difference : worst;
    }
    return worst;
}

static const struct nl_tensor *golden_tensor(const struct golden *golden, const char *name)
{
    const struct nl_tensor *tensor = nl_safetensors_find(golden->tensors, name);
    assert_non_null(tensor);
    return tensor;
}

/* Compares the residual stream as each layer begins: what its first operation has added to it. */
struct states {
    const struct golden *golden;
    uint32_t hidden;
    double worst;
    int compared;
};

static void compare_states(void *context, const struct nl_op *op, float *const *buffers)
{
    struct states *states = context;
    bool begins_layer = op->layer >= 0 && op[-1].layer < op->layer;
    bool last_norm = op->kind == NL_OP_NORM && op->norm.at_outputs;
    if (!begins_layer && !last_norm)
        return;
    char name[50];
    snprintf(name, sizeof name, "hidden_states.%d", states->compared++);
    const struct nl_tensor *want = golden_tensor(states->golden, name);
    size_t skip_rows = states->golden->n_prompt - want->shape[0];
    const float *got = last_norm ? buffers[NL_BUF_NORMED] : buffers[NL_BUF_STREAM];
    double worst = worst_difference(got + (last_norm ? 0 : skip_rows) * states->hidden, want);
    states->worst = worst > states->worst || worst != worst ? worst : states->worst;
}

static void check_prompt(const struct golden *golden, struct nl_engine *engine, const char *isa)
{
    struct nl_error error = {0};
    const struct nl_tensor *want = golden_tensor(golden, "logits");
    struct nl_feed feed = {
        .ids = golden->prompt, .count = (uint32_t)golden->n_prompt, .n_outputs = (uint32_t)want->shape[0]};
    feed.sequence = nl_engine_new_sequence(engine, &error);
    struct states states = {.golden = golden, .hidden = nl_engine_model(engine)->config.hidden_size};
    struct nl_observer observer = {.seen = compare_states, .context = &states};
    if (nl_engine_step_observed(engine, &feed, 1, &observer, &error) != 0)
        fail_msg("%s", error.message);
    double worst = worst_difference(feed.logits, want);
    print_message("%s %s: logits differ by %.2g, hidden states by %.2g\n", golden->folder, isa, worst,
                  states.worst);
    assert_true(worst < 1e-4);
    assert_true(states.worst < 1e-4);
    assert_int_equal(states.compared, nl_engine_model(engine)->config.n_layers + 1);
    nl_engine_free_sequence(engine, feed.sequence);
}

static void check_greedy(const struct golden *golden, struct nl_engine *engine)
{
    struct nl_error error = {0};
    struct nl_feed feed = {.ids = golden->prompt, .count = (uint32_t)golden->n_prompt, .n_outputs = 1};
    feed.sequence = nl_engine_new_sequence(engine, &error);
    for (size_t i = 0; i < golden->n_greedy; i++) {
        if (nl_engine_step(engine, &feed, 1, &error) != 0)
            fail_msg("%s", error.message);
        assert_int_equal(feed.best[0], golden->greedy[i]);
        feed.ids = &golden->greedy[i];
        feed.count = 1;
    }
    nl_engine_free_sequence(engine, feed.sequence);
}

static void check_model(const char *name)
{
    struct golden golden;
    golden_open(&golden, name);
    for (int i = 0; i < N_ISAS; i++) {
        if (!isa_available(isas[i]))
            continue;
        struct nl_engine *engine = open_tiny(golden.folder, isas[i], 2);
        check_prompt(&golden, engine, isas[i]);
        check_greedy(&golden, engine);
        nl_engine_close(engine);
    }
    golden_close(&golden);
}

static void golden_model(void **state)
{
    check_model(*state);
}

int main(void)
{
    struct CMUnitTest tests[N_MODELS];
    for (int i = 0; i < N_MODELS; i++)
        tests[i] = (struct CMUnitTest){models[i], golden_model, NULL, NULL, (void *)(uintptr_t)models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
