/* CUDA's code, emulated or on a device, on the tiny checkpoints: transformers' ids and logits, whole and in
   chunks, with small splits and tiles; the same bits fused and not, as a graph and not, alone and beside
   others, in every order of threads. */
#include "golden.h"

#include <assert.h>
#include <math.h>

static const char *const models[] = {
    "llama",          "llama-bf16-llama3rope-tied-sharded",
#if !defined __SANITIZE_THREAD__ /* under which a model takes a minute */
    "llama-long",     "llama-f16-linear-bias",
    "qwen2-yarn",     "llama-dynamic",
    "qwen3",          "mistral-window",
    "gpt2",           "mistral-window-long",
    "gemma",          "phi3-longrope",
    "gemma2",         "gemma3",
    "olmo2",          "granite",
    "gpt2-erf",       "phi3-partial",
    "smollm3-window",
#endif
};
/* Emulated and sanitised, a thread of a kernel costs a hundred times as much: fewer ids, and short prompts
 * only. */
#if defined __SANITIZE_THREAD__
enum { IDS = 6, GROWN = 12, LONGEST = 100, ROUNDED = 0 };
#elif defined __SANITIZE_ADDRESS__
enum { IDS = 6, GROWN = 12, LONGEST = 100, ROUNDED = 1 };
#else
enum { IDS = 64, GROWN = 64, LONGEST = 1000, ROUNDED = 6 };
#endif
enum { N_MODELS = sizeof models / sizeof *models, MAX_VOCAB = 1024, FEW = 6 };

/* What the environment asks of the backend and the emulation. */
struct setting {
    const char *name, *value;
};

static struct nl_engine *open_cuda_as(const struct golden *golden, const struct setting *settings, size_t n,
                                      bool bfloat16)
{
    for (size_t i = 0; i < n; i++)
        setenv(settings[i].name, settings[i].value, 1);
    struct nl_engine *engine = open_tiny_as(golden->folder, cuda_device(), 1, bfloat16);
    for (size_t i = 0; i < n; i++)
        unsetenv(settings[i].name);
    return engine;
}

static struct nl_engine *open_cuda(const struct golden *golden, const struct setting *settings, size_t n)
{
    return open_cuda_as(golden, settings, n, false);
}

static void must(int result, const struct nl_error *error)
{
    if (result != 0)
        fail_msg("%s", error->message);
}

/* Feeds ids in chunks of at most `chunk`; copies the last row of logits. */
static uint32_t feed(struct nl_engine *engine, struct nl_sequence *sequence, const uint32_t *ids, size_t n,
                     size_t chunk, float *logits)
{
    struct nl_error error = {0};
    struct nl_feed f = {.sequence = sequence, .whole = (uint32_t)(nl_sequence_length(sequence) + n)};
    for (size_t done = 0; done < n; done += f.count) {
        f.ids = ids + done;
        f.count = (uint32_t)(n - done < chunk ? n - done : chunk);
        f.n_outputs = done + f.count == n;
        must(nl_engine_step(engine, &f, 1, &error), &error);
    }
    if (logits)
        memcpy(logits, f.logits, nl_engine_model(engine)->config.vocab_size * sizeof *logits);
    return f.best[0];
}

static double worst_of(const struct golden *golden, const float *logits)
{
    const struct nl_tensor *want = nl_safetensors_find(golden->tensors, "logits");
    size_t vocab = want->shape[1], skip = (want->shape[0] - 1) * vocab;
    double worst = 0;
    for (size_t i = 0; i < vocab; i++) {
        float value;
        memcpy(&value, want->data + 4 * (skip + i), 4);
        double difference = fabs((double)logits[i] - value);
        worst = difference > worst || difference != difference ? difference : worst;
    }
    return worst;
}

/* The prompt in chunks, then n greedy ids. */
static void check_greedy(const struct golden *golden, struct nl_engine *engine, size_t chunk, size_t n)
{
    struct nl_error error = {0};
    float logits[MAX_VOCAB];
    assert_true(nl_engine_model(engine)->config.vocab_size <= MAX_VOCAB);
    struct nl_sequence *sequence = nl_engine_new_sequence(engine, &error);
    uint32_t best = feed(engine, sequence, golden->prompt, golden->n_prompt, chunk, logits);
    double worst = worst_of(golden, logits);
    if (!(worst < 2e-4))
        fail_msg("%s: logits differ by %g", golden->folder, worst);
    for (size_t i = 0; i < n && i < golden->n_greedy; i++) {
        assert_int_equal(best, golden->greedy[i]);
        best = feed(engine, sequence, &golden->greedy[i], 1, 1, NULL);
    }
    nl_engine_free_sequence(engine, sequence);
}

static void golden_ids_and_logits(void **state)
{
    static const struct setting small[] = {{"NL_CUDA_SPLIT", "16"}, {"NL_CUDA_TILE", "16"}};
    static const struct setting old = {"NL_EMU_CC", "75"};
    struct golden golden;
    golden_open(&golden, *state);
    struct nl_engine *engine = open_cuda(&golden, NULL, 0);
    check_greedy(&golden, engine, 1000, golden.n_prompt <= LONGEST ? IDS : 1);
    nl_engine_close(engine);
    if (golden.n_prompt > LONGEST) {
        golden_close(&golden);
        return;
    }
    engine = open_cuda(&golden, &old, 1);
    check_greedy(&golden, engine, 1000, 1);
    nl_engine_close(engine);
    engine = open_cuda(&golden, small, 2);
    check_greedy(&golden, engine, 1000, FEW);
    check_greedy(&golden, engine, 100, 1);
    check_greedy(&golden, engine, golden.n_prompt > 100 ? 8 : 5, 1);
    nl_engine_close(engine);
    golden_close(&golden);
}

/* A long sequence, for which buffers grow that graphs know of, then a short one again. */
static void growing(void **state)
{
    static const struct setting small = {"NL_CUDA_SPLIT", "16"};
    struct golden golden;
    golden_open(&golden, *state);
    struct nl_engine *engine = open_cuda(&golden, &small, 1);
    check_greedy(&golden, engine, 8, FEW);
    check_greedy(&golden, engine, 8, GROWN); /* more splits */
    check_greedy(&golden, engine, 8, FEW);
    nl_engine_close(engine);
    golden_close(&golden);
}

/* All logits of a short prompt in chunks of 3 and of FEW ids after it, among `others` sequences. */
static void collect(const struct golden *golden, const struct setting *settings, size_t n_settings,
                    uint32_t others, bool bfloat16, float *out)
{
    struct nl_error error = {0};
    struct nl_engine *engine = open_cuda_as(golden, settings, n_settings, bfloat16);
    size_t vocab = nl_engine_model(engine)->config.vocab_size;
    struct nl_feed feeds[5] = {0};
    for (uint32_t s = 0; s <= others; s++)
        feeds[s].sequence = nl_engine_new_sequence(engine, &error);
    const uint32_t me = others / 2;
    for (size_t done = 0; done < 3 * FEW; done += feeds[0].count) {
        for (uint32_t s = 0; s <= others; s++) {
            feeds[s].ids = golden->prompt + done + (s == me ? 0 : 1);
            feeds[s].count = done < 2 * FEW && others == 0 ? 3 : 1;
            feeds[s].n_outputs = 1;
        }
        must(nl_engine_step(engine, feeds, others + 1, &error), &error);
        memcpy(out + (done + feeds[0].count - 1) * vocab, feeds[me].logits, vocab * sizeof *out);
    }
    nl_engine_close(engine);
}

static void check_bits(const char *name, bool bfloat16)
{
    static const struct setting ways[] = {
        {"NL_CUDA_GRAPH", "0"},
        {"NL_CUDA_FUSE", "0"},
#if !defined __SANITIZE_THREAD__
        {"NL_EMU_ORDER", "rev"},
        {"NL_EMU_ORDER", "rand1"},
        {"NL_EMU_ORDER", "rand2"},
        {"NL_EMU_ORDER", "rand3"},
#endif
        {"NL_CUDA_GRAPH", "1"},
    };
    enum { N_WAYS = sizeof ways / sizeof *ways };
    struct golden golden;
    golden_open(&golden, name);
    size_t size = (size_t)3 * FEW * MAX_VOCAB * sizeof(float);
    float *want = calloc(1, size), *got = calloc(1, size);
    collect(&golden, NULL, 0, 0, bfloat16, want);
    for (int w = 0; w < N_WAYS; w++) { /* the last way is: among four others */
        uint32_t others = w == N_WAYS - 1 ? 4 : 0;
        memset(got, 0, size);
        collect(&golden, &ways[w], 1, others, bfloat16, got);
        size_t vocab = nl_safetensors_find(golden.tensors, "logits")->shape[1];
        for (size_t i = 2; i < 3 * FEW; i += i < 2 * FEW - 1 ? 3 : 1)
            if (memcmp(want + i * vocab, got + i * vocab, vocab * sizeof *want) != 0)
                fail_msg("%s: other bits with %s=%s at position %zu", golden.folder, ways[w].name,
                         ways[w].value, i);
    }
    free(want);
    free(got);
    golden_close(&golden);
}

static void same_bits(void **state)
{
    check_bits(*state, false);
}

static void same_bits_rounded(void **state)
{
    check_bits(*state, true);
}

/* test_cuda [PATTERN]: only the tests whose names match */
int main(int argc, char **argv)
{
    static const char *const bits[] = {
        "qwen3",
#if !defined __SANITIZE_THREAD__
        "llama-f16-linear-bias",
        "mistral-window",
        "gpt2",
        "gemma2",
        "olmo2",
#endif
    };
    enum { N_BITS = sizeof bits / sizeof *bits, N_ALL = N_BITS + ROUNDED };
    static_assert((int)ROUNDED <= (int)N_BITS, "the first of them");
    static char names[N_ALL][60];
    struct CMUnitTest tests[N_MODELS + N_ALL + 1];
    for (int i = 0; i < N_MODELS; i++)
        tests[i] =
            (struct CMUnitTest){models[i], golden_ids_and_logits, NULL, NULL, (void *)(uintptr_t)models[i]};
    for (int i = 0; i < N_ALL; i++) {
        bool rounded = i >= N_BITS;
        const char *name = bits[i % N_BITS];
        snprintf(names[i], sizeof names[i], "the same bits%s: %s", rounded ? " in bfloat16" : "", name);
        tests[N_MODELS + i] = (struct CMUnitTest){names[i], rounded ? same_bits_rounded : same_bits, NULL,
                                                  NULL, (void *)(uintptr_t)name};
    }
    tests[N_MODELS + N_ALL] =
        (struct CMUnitTest){"growing: llama", growing, NULL, NULL, (void *)(uintptr_t) "llama"};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    if (!isa_available(cuda_device())) {
        puts("1..0 # SKIP CUDA is not emulated here: no headers of its toolkit");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
