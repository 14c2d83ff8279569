#include "tensor_diff.h"

#include <math.h>
#include <stdlib.h>

#include "element.h"
#include "escape.h"
#include "tensor_order.h"

enum { CHUNK = 1024 }; /* elements turned into doubles at once */

const char *nl_verdict_name(enum nl_verdict verdict)
{
    static const char *const names[NL_VERDICTS] = {"agrees",       "differs",           "other shape",
                                                   "unknown type", "only in the first", "only in the second"};
    return names[verdict];
}

/* A pattern's wildcard: its length, 0 where there is none. */
static size_t wildcard(const char *at)
{
    return *at == '*' ? 1 : at[0] == '{' && at[1] == '}' ? 2 : 0;
}

static const char *find_wildcard(const char *pattern, size_t length)
{
    for (const char *at = pattern; at < pattern + length; at++)
        if (wildcard(at) && at + wildcard(at) <= pattern + length)
            return at;
    return NULL;
}

int nl_rename_parse(struct nl_rename *rename, const char *text, struct nl_error *error)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return nl_fail(error, NL_USAGE, "--map takes FROM=TO: %s", text);
    *rename = (struct nl_rename){.from = text, .to = equals + 1, .from_length = (size_t)(equals - text)};
    const char *a = find_wildcard(rename->from, rename->from_length);
    const char *b = find_wildcard(rename->to, strlen(rename->to));
    if ((a == NULL) != (b == NULL))
        return nl_fail(error, NL_USAGE, "--map has a wildcard on one side only: %s", text);
    rename->from_wildcard = a;
    rename->to_wildcard = b;
    size_t rest = a ? rename->from_length - (size_t)(a + wildcard(a) - rename->from) : 0;
    if (a &&
        (find_wildcard(a + wildcard(a), rest) || find_wildcard(b + wildcard(b), strlen(b + wildcard(b)))))
        return nl_fail(error, NL_USAGE, "--map takes one wildcard on each side: %s", text);
    return 0;
}

/* Appends the new name; false, and nothing appended, where the pattern does not match. */
static bool apply(const struct nl_rename *rename, const char *name, struct nl_buf *out)
{
    const char *star = rename->from_wildcard, *place = rename->to_wildcard;
    size_t length = strlen(name);
    if (!star) {
        if (length != rename->from_length || memcmp(name, rename->from, length) != 0)
            return false;
        nl_buf_puts(out, rename->to);
        return true;
    }
    size_t before = (size_t)(star - rename->from), after = rename->from_length - before - wildcard(star);
    if (length < before + after || memcmp(name, rename->from, before) != 0 ||
        memcmp(name + length - after, star + wildcard(star), after) != 0)
        return false;
    size_t found = length - before - after;
    if (*star == '{' && (found == 0 || strspn(name + before, "0123456789") < found))
        return false;
    nl_buf_add(out, rename->to, (size_t)(place - rename->to));
    nl_buf_add(out, name + before, found);
    nl_buf_puts(out, place + wildcard(place));
    return true;
}

static char *new_name(const struct nl_diff_options *options, const char *name)
{
    struct nl_buf out = {0};
    size_t i = 0;
    while (i < options->n_renames && !apply(&options->renames[i], name, &out))
        i++;
    if (i == options->n_renames)
        nl_buf_puts(&out, name);
    if (out.failed) {
        nl_buf_free(&out);
        return NULL;
    }
    return out.data;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct nl_tensor_diff *)a)->name, ((const struct nl_tensor_diff *)b)->name);
}

static int by_execution(const void *a, const void *b)
{
    return nl_execution_compare(((const struct nl_tensor_diff *)a)->name,
                                ((const struct nl_tensor_diff *)b)->name);
}

/* All names of both sets, each alone. */
static int list_names(struct nl_diff *diff, const struct nl_checkpoint *a, const struct nl_checkpoint *b,
                      const struct nl_diff_options *options, struct nl_error *error)
{
    diff->pairs = calloc(a->count + b->count + 1, sizeof *diff->pairs);
    if (!diff->pairs)
        return nl_fail_memory(error, "comparison");
    for (size_t i = 0; i < a->count + b->count; i++) {
        struct nl_tensor_diff *pair = &diff->pairs[i];
        if (i < a->count) {
            pair->a = a->tensors[i];
            pair->name = new_name(options, pair->a->name);
        } else {
            pair->b = b->tensors[i - a->count];
            pair->name = strdup(pair->b->name);
        }
        if (!pair->name)
            return nl_fail_memory(error, "comparison");
        diff->count++;
    }
    return 0;
}

/* Joins what has one name. */
static int join(struct nl_diff *diff, struct nl_error *error)
{
    size_t count = 0;
    qsort(diff->pairs, diff->count, sizeof *diff->pairs, by_name);
    for (size_t i = 0; i < diff->count; i++) {
        struct nl_tensor_diff *pair = &diff->pairs[i], *last = count ? &diff->pairs[count - 1] : NULL;
        if (!last || strcmp(last->name, pair->name) != 0) {
            struct nl_tensor_diff moved = *pair;
            *pair = (struct nl_tensor_diff){0}; /* so that each name is owned once, also after an error */
            diff->pairs[count++] = moved;
            continue;
        }
        if ((last->a && pair->a) || (last->b && pair->b)) {
            char shown[NL_SHOWN];
            return nl_fail(error, NL_USAGE, "two tensors have one name after --map: %s",
                           nl_show(shown, pair->name));
        }
        last->a = last->a ? last->a : pair->a;
        last->b = last->b ? last->b : pair->b;
        free(pair->name);
        *pair = (struct nl_tensor_diff){0};
    }
    diff->count = count;
    return 0;
}

/* Leaves out what only one set has. */
static void keep_common(struct nl_diff *diff)
{
    size_t count = 0;
    for (size_t i = 0; i < diff->count; i++) {
        struct nl_tensor_diff pair = diff->pairs[i];
        if (pair.a && pair.b)
            diff->pairs[count++] = pair;
        else
            free(pair.name);
    }
    diff->count = count;
}

/* What is summed over the elements of a pair: the squares of doubles need a wider range. */
struct sums {
    long double product, a, b;
};

static double larger(double a, double b)
{
    return a != a || b != b ? NAN : a > b ? a : b; // NOLINT: NaN wins
}

static void compare_element(struct nl_tensor_diff *pair, struct sums *sums, uint64_t index, const double v[2],
                            const struct nl_diff_options *options)
{
    double a = v[0], b = v[1];
    if (isfinite(a) && isfinite(b)) {
        sums->product += (long double)a * b;
        sums->a += (long double)a * a;
        sums->b += (long double)b * b;
    }
    if (a == b || (isnan(a) && isnan(b)))
        return;
    double difference = fabs(a - b);
    pair->max_abs = larger(pair->max_abs, difference);
    pair->max_rel = larger(pair->max_rel, isinf(b) ? INFINITY : difference / fabs(b));
    if (isfinite(a) && isfinite(b) && difference <= options->atol + options->rtol * fabs(b))
        return;
    if (pair->bad++ == 0) {
        pair->first_bad = index;
        pair->first_a = a;
        pair->first_b = b;
    }
}

static void compare_values(struct nl_tensor_diff *pair, const struct nl_diff_options *options)
{
    double a[CHUNK], b[CHUNK];
    struct sums sums = {0};
    for (uint64_t done = 0; done < pair->a->elements; done += CHUNK) {
        uint64_t rest = pair->a->elements - done;
        size_t count = rest < CHUNK ? (size_t)rest : CHUNK;
        nl_elements(pair->a, done, count, a);
        nl_elements(pair->b, done, count, b);
        for (size_t i = 0; i < count; i++)
            compare_element(pair, &sums, done + i, (double[2]){a[i], b[i]}, options);
    }
    if (sums.a > 0 && sums.b > 0)
        pair->cosine = (double)(sums.product / (sqrtl(sums.a) * sqrtl(sums.b)));
    else
        pair->cosine = sums.a == sums.b ? 1 : 0;
    pair->verdict = pair->bad ? NL_DIFFERS : NL_AGREES;
}

static void compare(struct nl_tensor_diff *pair, const struct nl_diff_options *options)
{
    const struct nl_tensor *a = pair->a, *b = pair->b;
    if (!a || !b) {
        pair->verdict = a ? NL_ONLY_FIRST : NL_ONLY_SECOND;
    } else if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) {
        pair->verdict = NL_OTHER_SHAPE;
    } else if (nl_element_known(a->dtype) && nl_element_known(b->dtype)) {
        compare_values(pair, options);
    } else {
        size_t size = a->end - a->begin;
        bool same = a->dtype == b->dtype && memcmp(a->data, b->data, size) == 0;
        pair->verdict = same ? NL_AGREES : NL_UNKNOWN_TYPE;
        pair->cosine = 1;
    }
}

int nl_diff_run(struct nl_diff *diff, const struct nl_checkpoint *a, const struct nl_checkpoint *b,
                const struct nl_diff_options *options, struct nl_error *error)
{
    *diff = (struct nl_diff){0};
    if (list_names(diff, a, b, options, error) != 0 || join(diff, error) != 0) {
        nl_diff_free(diff);
        return -1;
    }
    if (options->common)
        keep_common(diff);
    qsort(diff->pairs, diff->count, sizeof *diff->pairs, by_execution);
    for (size_t i = 0; i < diff->count; i++) {
        compare(&diff->pairs[i], options);
        diff->n_bad += diff->pairs[i].verdict != NL_AGREES;
    }
    return 0;
}

void nl_diff_free(struct nl_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++)
        free(diff->pairs[i].name);
    free(diff->pairs);
    *diff = (struct nl_diff){0};
}

const struct nl_tensor_diff *nl_diff_first(const struct nl_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++)
        if (diff->pairs[i].verdict != NL_AGREES)
            return &diff->pairs[i];
    return NULL;
}
