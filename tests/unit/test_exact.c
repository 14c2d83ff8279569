/* On one instruction set the logits are the same bits however the prompt is cut, whoever shares the step,
   however many threads work, with the cache and without. */
#include "golden.h"

static const char *const models[] = {"llama-long", "mistral-window-long", "llama-f16-linear-bias"};
static const char *const isas[] = {"portable", "avx2", "avx512"};
enum {
    N_MODELS = 3,
    N_ISAS = 3,
    VOCAB = 317,
    OTHERS = 5,
    LONGEST = 270 /* four blocks of the cache and a bit */
};

struct run {
    struct nl_engine *engine;
    const struct golden *golden;
    float last[VOCAB];
};

static void must(int result, const struct nl_error *error)
{
    if (result != 0)
        fail_msg("%s", error->message);
}

/* Feeds ids in pieces of `chunk`, each with one piece of the same place of every other sequence; keeps the
 * last row of logits. */
static void feed_in_chunks(struct run *run, const uint32_t *ids, size_t count, size_t chunk, int others)
{
    struct nl_error error = {0};
    struct nl_feed feeds[OTHERS + 1] = {0};
    uint32_t *other_ids = malloc(count * sizeof *other_ids);
    for (size_t i = 0; i < count; i++)
        other_ids[i] = (ids[i] * 7 + (uint32_t)i) % VOCAB;
    for (int s = 0; s <= others; s++)
        feeds[s].sequence = nl_engine_new_sequence(run->engine, &error);
    for (size_t done = 0; done < count; done += feeds[0].count) {
        size_t step = count - done < chunk ? count - done : chunk;
        int me = others / 2; /* in the middle of the step */
        for (int s = 0; s <= others; s++) {
            feeds[s].ids = (s == me ? ids : other_ids) + done;
            feeds[s].count = (uint32_t)step;
            feeds[s].n_outputs = 1;
        }
        must(nl_engine_step(run->engine, feeds, (size_t)others + 1, &error), &error);
        memcpy(run->last, feeds[me].logits, sizeof run->last);
    }
    for (int s = 0; s <= others; s++)
        nl_engine_free_sequence(run->engine, feeds[s].sequence);
    free(other_ids);
}

static void expect_same(const struct run *a, const struct run *b, const char *what, size_t chunk)
{
    if (memcmp(a->last, b->last, sizeof a->last) != 0)
        fail_msg("%s: other bits: %s, chunks of %zu", a->golden->folder, what, chunk);
}

static struct nl_engine *open_with(const char *folder, const char *isa, unsigned threads)
{
    struct nl_error error = {0};
    struct nl_engine_options options = {
        .isa = isa, .threads = threads, .context = 1024, .prefill_chunk = 6000};
    struct nl_engine *engine = nl_engine_open(folder, &options, &error);
    if (!engine)
        fail_msg("%s", error.message);
    return engine;
}

static void check_cuts(const struct golden *golden, const char *isa)
{
    size_t n = golden->n_prompt < LONGEST ? golden->n_prompt : LONGEST;
    static const size_t chunks[] = {1, 7, 64, 65};
    struct run whole = {.golden = golden}, other = {.golden = golden};
    for (unsigned threads = 1; threads <= 2; threads++) {
        whole.engine = other.engine = open_with(golden->folder, isa, threads);
        if (threads == 1)
            feed_in_chunks(&whole, golden->prompt, n, n, 0);
        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
            feed_in_chunks(&other, golden->prompt, n, chunks[i], 0);
            expect_same(&whole, &other, "alone", chunks[i]);
            feed_in_chunks(&other, golden->prompt, n, chunks[i], OTHERS);
            expect_same(&whole, &other, "among five others", chunks[i]);
        }
        feed_in_chunks(&other, golden->prompt, n, n, OTHERS);
        expect_same(&whole, &other, "whole, among five others", n);
        nl_engine_close(other.engine);
    }
}

/* Decoding with the cache against the whole sequence anew for every id. */
static void check_cache(const struct golden *golden, const char *isa)
{
    struct nl_error error = {0};
    struct nl_engine *engine = open_with(golden->folder, isa, 2);
    struct run cached = {engine, golden, {0}}, fresh = {engine, golden, {0}};
    size_t count = golden->n_prompt + golden->n_greedy;
    uint32_t *ids = malloc(count * sizeof *ids);
    memcpy(ids, golden->prompt, golden->n_prompt * sizeof *ids);
    memcpy(ids + golden->n_prompt, golden->greedy, golden->n_greedy * sizeof *ids);
    struct nl_sequence *sequence = nl_engine_new_sequence(engine, &error);
    for (size_t n = golden->n_prompt; n < count; n += 1) {
        size_t done = nl_sequence_length(sequence);
        struct nl_feed feed = {
            .sequence = sequence, .ids = ids + done, .count = (uint32_t)(n - done), .n_outputs = 1};
        must(nl_engine_step(engine, &feed, 1, &error), &error);
        memcpy(cached.last, feed.logits, sizeof cached.last);
        if (n % 16 == 0) {
            feed_in_chunks(&fresh, ids, n, n, 0);
            expect_same(&cached, &fresh, "without the cache", n);
        }
    }
    nl_engine_free_sequence(engine, sequence);
    free(ids);
    nl_engine_close(engine);
}

static void same_bits(void **state)
{
    struct golden golden;
    golden_open(&golden, *state);
    for (int i = 0; i < N_ISAS; i++)
        if (isa_available(isas[i])) {
            check_cuts(&golden, isas[i]);
            check_cache(&golden, isas[i]);
        }
    golden_close(&golden);
}

int main(void)
{
    struct CMUnitTest tests[N_MODELS];
    for (int i = 0; i < N_MODELS; i++)
        tests[i] = (struct CMUnitTest){models[i], same_bits, NULL, NULL, (void *)(uintptr_t)models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
