/* Rounding to bfloat16 against transformers' own runs in that type, on the reference and on CUDA.
 *
 * With `eager` attention all that torch does is known, sums apart: nearly all logits are the same bits. With
 * the default, torch's kernel approximates the exponential, and the first difference spreads: there the
 * distance to transformers' bfloat16 is to be no more than that of its bfloat16 from its float32. */
#include "golden.h"

#include <math.h>

#include "cpu.h"

/* Every way to round that ops.h names, and every type that weights are stored in. `equal`: at least so many
   percent of eager's logits, on the reference; a rounding left out or added leaves 4 to 35 (a step of the
   last soft-cap 88, or of a division of logits 74). In some, one sum is so near to the middle between two
   values that another order decides it, and what comes later differs. */
static const struct {
    const char *name;
    double equal;
} models[] = {
    {"llama", 99},      {"llama-f16-linear-bias", 99},
    {"qwen2-yarn", 99}, {"qwen3", 99},
    {"smollm3", 99},    {"phi3-longrope", 99},
    {"gemma", 60},      {"gemma2", 99},
    {"gemma3", 60},     {"olmo2", 99},
    {"granite", 99},    {"gpt2", 99},
    {"gpt2-erf", 99},   {"mistral-window-long", 60},
};
/* On CUDA other sums are near the middle; where one is on the reference, there is nothing to hold. */
enum { EQUAL_ON_CUDA = 40 };
/* Of prompts on CUDA: emulated, and all the more sanitised, they take long. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { LONGEST = 0 };
#else
enum { LONGEST = 100 };
#endif
enum {
    N_MODELS = sizeof models / sizeof *models,
    MAX_IDS = 320,
    BLOCKS = MAX_IDS / NL_BLOCK,
    MAX_STATES = 10
};

static float value_at(const struct nl_tensor *tensor, size_t i)
{
    uint16_t half;
    float value;
    if (tensor->dtype == NL_BF16) {
        memcpy(&half, tensor->data + 2 * i, 2);
        return nl_float_of_bf16(half);
    }
    memcpy(&value, tensor->data + 4 * i, 4);
    return value;
}

/* Of all values of `want`. */
static double share_of_equals(const struct nl_tensor *want, const float *got)
{
    size_t equal = 0;
    for (size_t i = 0; i < want->elements; i++)
        equal += got[i] == value_at(want, i);
    return (double)equal / (double)want->elements;
}

/* Root mean square; got NULL: of `other`. */
static double distance(const struct nl_tensor *want, const float *got, const struct nl_tensor *other)
{
    double sum = 0;
    for (size_t i = 0; i < want->elements; i++) {
        double difference = (double)(got ? got[i] : value_at(other, i)) - value_at(want, i);
        sum += difference * difference;
    }
    return sqrt(sum / (double)want->elements);
}

struct way {
    const char *name;
    bool cuda;
    uint32_t chunk;      /* rows of a step at most; up to 8 go through other kernels */
    const char *compute; /* compute capability, emulated; NULL: the usual */
};

struct run {
    double equal_at_least;
    struct golden golden;
    struct nl_safetensors *rounded; /* what transformers computed in bfloat16 */
    struct nl_model *model;
    bool watches;
    int n_states;
    double equal[MAX_STATES]; /* share of a hidden state's values */
};

static void compare_states(void *context, const struct nl_op *op, float *const *buffers)
{
    struct run *run = context;
    if (op->layer < 0 || op[-1].layer >= op->layer || run->n_states == MAX_STATES)
        return;
    char name[50];
    snprintf(name, sizeof name, "hidden_states.%d", run->n_states);
    const struct nl_tensor *want = nl_safetensors_find(run->rounded, name);
    size_t skip = run->golden.n_prompt - want->shape[0];
    run->equal[run->n_states++] = share_of_equals(want, buffers[NL_BUF_STREAM] + skip * want->shape[1]);
}

/* All logits of the prompt in steps of `chunk`, or of its last positions where only those are kept. */
static const float *logits_of(struct run *run, const struct way *way)
{
    static float all[MAX_IDS * 400];
    static uint32_t positions[MAX_IDS], slots[MAX_IDS], table[BLOCKS], best[MAX_IDS];
    static const uint32_t *const tables[] = {table};
    struct nl_error error = {0};
    uint32_t n = (uint32_t)run->golden.n_prompt, vocab = run->model->plan.vocab_size;
    if (way->compute)
        setenv("NL_EMU_CC", way->compute, 1);
    struct nl_backend *backend =
        way->cuda ? nl_backend_open(cuda_device(), NULL, 1, &error) : nl_cpu_open("reference", 1, &error);
    unsetenv("NL_EMU_CC");
    assert_true(backend && n <= MAX_IDS && vocab <= 400 && nl_backend_rounds(backend));
    if (nl_backend_load(backend, &run->model->plan, BLOCKS, &error) != 0)
        fail_msg("%s", error.message);
    for (uint32_t i = 0; i < n; i++)
        positions[i] = i;
    for (uint32_t i = 0; i < BLOCKS; i++)
        table[i] = i;
    struct nl_observer observer = {.seen = compare_states, .context = run};
    run->n_states = 0;
    for (uint32_t at = 0; at < n; at += way->chunk) {
        uint32_t count = n - at < way->chunk ? n - at : way->chunk;
        struct nl_step step = {.n_tokens = count, .n_outputs = count, .ids = run->golden.prompt + at};
        step.positions = positions + at;
        step.outputs = positions;
        step.slots = slots;
        step.tables = tables;
        step.logits = all + (size_t)at * vocab;
        step.best = best;
        for (uint32_t r = 0; r < run->model->plan.n_ropes; r++)
            step.frequencies[r] = run->model->frequencies[r];
        if (nl_backend_run(backend, &step, run->watches ? &observer : NULL, &error) != 0)
            fail_msg("%s", error.message);
    }
    nl_backend_close(backend);
    return all + (n - nl_safetensors_find(run->rounded, "logits")->shape[0]) * vocab;
}

static void check_run(struct run *run, const struct way *way)
{
    const struct nl_tensor *want = nl_safetensors_find(run->rounded, "logits");
    const struct nl_tensor *exact = nl_safetensors_find(run->golden.tensors, "logits");
    run->watches = way->chunk >= run->golden.n_prompt;
    const float *got = logits_of(run, way);
    double ours = distance(want, got, NULL), types = distance(want, NULL, exact);
    print_message("%s, %s: %.2g from transformers' bfloat16, which is %.2g from its float32\n",
                  run->golden.folder, way->name, ours, types);
    for (int i = 0; i < run->n_states; i++)
        print_message("  state %d: %.1f%% equal\n", i, 100 * run->equal[i]);
    assert_true(ours <= types);
    run->watches = false;
    for (struct nl_op *op = run->model->plan.ops; op < run->model->plan.ops + run->model->plan.n_ops; op++)
        if (op->kind == NL_OP_ATTENTION)
            op->attention.round_scores = true;
    double equal = share_of_equals(nl_safetensors_find(run->rounded, "eager.logits"), logits_of(run, way));
    print_message("%s, %s, eager: %.2f%% equal\n", run->golden.folder, way->name, 100 * equal);
    assert_true(100 * equal >= (!way->cuda                 ? run->equal_at_least
                                : run->equal_at_least > 90 ? EQUAL_ON_CUDA
                                                           : 0));
}

static void open_model(struct run *run)
{
    struct nl_error error = {0};
    run->model = nl_model_open(run->golden.folder, true, MAX_IDS, MAX_IDS, &error);
    if (!run->model)
        fail_msg("%s", error.message);
}

static void golden_model(void **state)
{
    static const struct way ways[] = {
        {"reference", false, MAX_IDS, NULL}, {"CUDA", true, MAX_IDS, NULL},
        {"CUDA, 9 at once", true, 9, NULL},  {"CUDA, 9 at once, without products of 16 bit", true, 9, "75"},
        {"CUDA, 5 at once", true, 5, NULL},
    };
    struct nl_error error = {0};
    struct run run = {0};
    char path[400];
    size_t model = (size_t)(uintptr_t)*state;
    run.equal_at_least = models[model].equal;
    golden_open(&run.golden, models[model].name);
    snprintf(path, sizeof path, "%s/golden-bf16.safetensors", run.golden.folder);
    run.rounded = nl_safetensors_open(path, &error);
    if (!run.rounded)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (ways[i].cuda && (run.golden.n_prompt > LONGEST || !isa_available(cuda_device())))
            continue;
        open_model(&run);
        check_run(&run, &ways[i]);
        nl_model_close(run.model);
    }
    nl_safetensors_close(run.rounded);
    golden_close(&run.golden);
}

/* test_bf16 [PATTERN]: only the tests whose names match */
int main(int argc, char **argv)
{
    struct CMUnitTest tests[N_MODELS];
    for (int i = 0; i < N_MODELS; i++)
        tests[i] = (struct CMUnitTest){models[i].name, golden_model, NULL, NULL, (void *)(uintptr_t)i};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
