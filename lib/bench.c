#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

enum { DECODES = 4 }; /* timed at a depth for each repetition: one alone is short */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool stopped(const struct nl_bench *bench)
{
    return bench->signal && *bench->signal;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts times[count]. */
static struct nl_timing timing_of(double *times, size_t count)
{
    qsort(times, count, sizeof *times, by_size);
    return (struct nl_timing){
        .min = times[0], .median = (times[(count - 1) / 2] + times[count / 2]) / 2, .max = times[count - 1]};
}

uint32_t nl_bench_id(uint32_t position, uint32_t vocab_size)
{
    return (position * UINT32_C(2654435761) >> 8) % vocab_size;
}

static void fill_ids(const struct nl_bench *bench, uint32_t *ids, size_t count)
{
    uint32_t vocab_size = nl_engine_model(bench->engine)->config.vocab_size;
    for (size_t i = 0; i < count; i++)
        ids[i] = bench->n_ids ? bench->ids[i % bench->n_ids] : nl_bench_id((uint32_t)i, vocab_size);
}

/* Sends ids through in chunks; the arg-max of the last in *best. */
static int feed(struct nl_bench *bench, struct nl_sequence *sequence, const uint32_t *ids, uint32_t count,
                uint32_t *best, struct nl_error *error)
{
    uint32_t chunk = nl_engine_chunk(bench->engine);
    struct nl_feed step = {.sequence = sequence, .whole = nl_sequence_length(sequence) + count};
    for (uint32_t done = 0; done < count && !stopped(bench); done += step.count) {
        step.ids = ids + done;
        step.count = count - done < chunk ? count - done : chunk;
        step.n_outputs = done + step.count == count;
        if (nl_engine_step(bench->engine, &step, 1, error) != 0)
            return -1;
        if (step.n_outputs)
            *best = *step.best;
        if (bench->progress)
            bench->progress(bench->context, step.count);
    }
    return 0;
}

/* The same with the time that it takes. */
static int timed_feed(struct nl_bench *bench, struct nl_sequence *sequence, const uint32_t *ids,
                      uint32_t count, uint32_t *best, double *seconds, struct nl_error *error)
{
    double start = now();
    int result = feed(bench, sequence, ids, count, best, error);
    *seconds = now() - start;
    return result;
}

/* What a loop works on. */
struct loop {
    struct nl_sequence *sequence;
    uint32_t *ids;   /* [prompt + n_new] */
    double *times;   /* [2][n_new + 1][repeat]: cached, naive; a row for each step, the last for the total */
    double *scratch; /* where a warm-up's times go, [n_new + 1] */
};

/* Where step `step` (from 0; n_new: the total) of a run puts its time; run < 0 is a warm-up. */
static double *time_of(const struct nl_bench *bench, const struct loop *loop, bool naive, int run,
                       uint32_t step)
{
    if (run < 0)
        return loop->scratch + step;
    size_t row = (size_t)naive * (bench->n_new + 1) + step;
    return loop->times + row * bench->repeat + (size_t)run;
}

static int run_cached(struct nl_bench *bench, struct loop *loop, int run, struct nl_error *error)
{
    double total = 0;
    nl_sequence_cut(loop->sequence, 0);
    for (uint32_t step = 0; step < bench->n_new && !stopped(bench); step++) {
        uint32_t first = step ? bench->prompt + step - 1 : 0, count = step ? 1 : bench->prompt;
        double *time = time_of(bench, loop, false, run, step);
        if (timed_feed(bench, loop->sequence, loop->ids + first, count, &loop->ids[bench->prompt + step],
                       time, error) != 0)
            return -1;
        total += *time;
    }
    *time_of(bench, loop, false, run, bench->n_new) = total;
    return 0;
}

static int run_naive(struct nl_bench *bench, struct loop *loop, int run, struct nl_error *error)
{
    double total = 0;
    uint32_t best = 0;
    bench->agreed = 0;
    for (uint32_t step = 0; step < bench->n_new && !stopped(bench); step++) {
        double *time = time_of(bench, loop, true, run, step);
        nl_sequence_cut(loop->sequence, 0);
        if (timed_feed(bench, loop->sequence, loop->ids, bench->prompt + step, &best, time, error) != 0)
            return -1;
        bench->agreed += best == loop->ids[bench->prompt + step];
        total += *time;
    }
    *time_of(bench, loop, true, run, bench->n_new) = total;
    return 0;
}

static int run_loop(struct nl_bench *bench, struct loop *loop, struct nl_error *error)
{
    for (int run = -(int)bench->warm_up; run < (int)bench->repeat && !stopped(bench); run++) {
        if (run_cached(bench, loop, run, error) != 0)
            return -1;
        if (bench->naive && run >= 0 && run_naive(bench, loop, run, error) != 0)
            return -1;
    }
    return 0;
}

static int report_loop(struct nl_bench *bench, const struct loop *loop, bool naive, struct nl_error *error)
{
    for (uint32_t step = 0; step < bench->n_new; step++) {
        struct nl_bench_row row = {.kind = naive ? NL_BENCH_NAIVE : NL_BENCH_CACHED,
                                   .step = step + 1,
                                   .length = bench->prompt + step,
                                   .n_new = 1};
        row.ids = naive || step == 0 ? row.length : 1;
        row.time = timing_of(time_of(bench, loop, naive, 0, step), bench->repeat);
        if (bench->row(bench->context, &row, error) != 0)
            return -1;
    }
    return 0;
}

static int report_total(struct nl_bench *bench, const struct loop *loop, bool naive, struct nl_error *error)
{
    uint32_t n = bench->n_new, last = bench->prompt + n - 1;
    struct nl_bench_row row = {.kind = naive ? NL_BENCH_NAIVE_TOTAL : NL_BENCH_CACHED_TOTAL,
                               .length = last,
                               .ids = naive ? (uint64_t)n * (bench->prompt + last) / 2 : last,
                               .n_new = n};
    row.time = timing_of(time_of(bench, loop, naive, 0, n), bench->repeat);
    return bench->row(bench->context, &row, error);
}

static int loop_and_report(struct nl_bench *bench, struct loop *loop, struct nl_error *error)
{
    fill_ids(bench, loop->ids, bench->prompt);
    if (nl_engine_check(bench->engine, NULL, loop->ids, bench->prompt, error) != 0 ||
        run_loop(bench, loop, error) != 0)
        return -1;
    if (stopped(bench))
        return 0;
    if (report_loop(bench, loop, false, error) != 0 ||
        (bench->naive && report_loop(bench, loop, true, error) != 0) ||
        report_total(bench, loop, false, error) != 0)
        return -1;
    return bench->naive ? report_total(bench, loop, true, error) : 0;
}

int nl_bench_check_length(const struct nl_bench *bench, uint64_t length, struct nl_error *error)
{
    if (length <= nl_engine_context(bench->engine))
        return 0;
    return nl_fail(error, NL_TOO_LONG, "%llu ids do not fit into the context of %u",
                   (unsigned long long)length, nl_engine_context(bench->engine));
}

int nl_bench_loop(struct nl_bench *bench, struct nl_error *error)
{
    struct loop loop = {0};
    size_t rows = 2 * ((size_t)bench->n_new + 1);
    int result = -1;
    /* The last id is chosen, but does not go in. */
    if (nl_bench_check_length(bench, (uint64_t)bench->prompt + bench->n_new - 1, error) != 0)
        return -1;
    loop.ids = calloc((size_t)bench->prompt + bench->n_new, sizeof *loop.ids);
    loop.times = calloc(rows, bench->repeat * sizeof *loop.times);
    loop.scratch = calloc(rows, sizeof *loop.scratch);
    if (!loop.ids || !loop.times || !loop.scratch)
        nl_fail_memory(error, "times");
    else if ((loop.sequence = nl_engine_new_sequence(bench->engine, error)) != NULL)
        result = loop_and_report(bench, &loop, error);
    nl_engine_free_sequence(bench->engine, loop.sequence);
    free(loop.ids);
    free(loop.times);
    free(loop.scratch);
    return result;
}

/* A sequence cut back to `depth` again and again, each time followed by `count` ids, `times` times in all. */
static int repeat_feed(struct nl_bench *bench, const uint32_t *ids, uint32_t depth, uint32_t count,
                       double *times, uint32_t n_times, struct nl_error *error)
{
    struct nl_sequence *sequence = nl_engine_new_sequence(bench->engine, error);
    double ignored;
    uint32_t best;
    int result = sequence ? 0 : -1;
    if (result == 0 && depth > 0)
        result = feed(bench, sequence, ids, depth, &best, error);
    for (uint32_t i = 0; result == 0 && i < bench->warm_up + n_times && !stopped(bench); i++) {
        nl_sequence_cut(sequence, depth);
        result = timed_feed(bench, sequence, ids + depth, count, &best,
                            i < bench->warm_up ? &ignored : &times[i - bench->warm_up], error);
    }
    nl_engine_free_sequence(bench->engine, sequence);
    return result;
}

/* `count` ids after `depth` others. */
static int measure(struct nl_bench *bench, enum nl_bench_kind kind, uint32_t depth, uint32_t count,
                   struct nl_error *error)
{
    uint64_t length = (uint64_t)depth + count;
    uint32_t n_times = kind == NL_BENCH_DECODE ? bench->repeat * DECODES : bench->repeat;
    if (nl_bench_check_length(bench, length, error) != 0)
        return -1;
    uint32_t *ids = malloc(length * sizeof *ids);
    double *times = calloc(n_times, sizeof *times);
    int result = ids && times ? 0 : nl_fail_memory(error, "ids");
    if (result == 0) {
        fill_ids(bench, ids, length);
        result = nl_engine_check_ids(bench->engine, ids, length, error);
    }
    if (result == 0)
        result = repeat_feed(bench, ids, depth, count, times, n_times, error);
    if (result == 0 && !stopped(bench)) {
        struct nl_bench_row row = {.kind = kind, .length = (uint32_t)length, .ids = count, .n_new = count};
        row.time = timing_of(times, n_times);
        result = bench->row(bench->context, &row, error);
    }
    free(ids);
    free(times);
    return result;
}

int nl_bench_prefill(struct nl_bench *bench, uint32_t length, struct nl_error *error)
{
    return measure(bench, NL_BENCH_PREFILL, 0, length, error);
}

int nl_bench_decode(struct nl_bench *bench, uint32_t depth, struct nl_error *error)
{
    return measure(bench, NL_BENCH_DECODE, depth, 1, error);
}

uint64_t nl_bench_loop_work(const struct nl_bench *bench)
{
    uint64_t n = bench->n_new, cached = bench->prompt + n - 1;
    uint64_t naive = bench->naive ? n * bench->prompt + n * (n - 1) / 2 : 0;
    return (bench->warm_up + bench->repeat) * cached + bench->repeat * naive;
}

uint64_t nl_bench_prefill_work(const struct nl_bench *bench, uint32_t length)
{
    return (uint64_t)(bench->warm_up + bench->repeat) * length;
}

uint64_t nl_bench_decode_work(const struct nl_bench *bench, uint32_t depth)
{
    return depth + bench->warm_up + (uint64_t)bench->repeat * DECODES;
}

uint64_t nl_bench_parameters(const struct nl_model *model)
{
    const struct nl_checkpoint *checkpoint = model->weights.checkpoint;
    uint64_t count = 0;
    for (size_t i = 0; i < checkpoint->count; i++)
        if (model->weights.used[i])
            count += checkpoint->tensors[i]->elements;
    return count;
}

enum nl_dtype nl_bench_dtype(const struct nl_model *model)
{
    const struct nl_checkpoint *checkpoint = model->weights.checkpoint;
    uint64_t bytes[NL_DTYPES] = {0};
    enum nl_dtype best = NL_F32;
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct nl_tensor *tensor = checkpoint->tensors[i];
        if (model->weights.used[i])
            bytes[tensor->dtype] += tensor->end - tensor->begin;
        if (bytes[tensor->dtype] > bytes[best])
            best = tensor->dtype;
    }
    return best;
}

void nl_machine_name(char *name, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[500];
    struct utsname system;
    name[0] = '\0';
    while (file && !name[0] && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (value && strncmp(line, "model name", 10) == 0)
            snprintf(name, size, "%s", value + 1 + strspn(value + 1, " "));
    }
    if (file)
        fclose(file);
    if (!name[0] && uname(&system) == 0) /* other processors have no such line */
        snprintf(name, size, "%s", system.machine);
    name[strcspn(name, "\n")] = '\0';
}
