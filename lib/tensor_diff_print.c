/* tensor_diff_print.c: the forms in which st-diff(1) prints a comparison. */
#include <math.h>
#include <stdio.h>

#include "escape.h"
#include "inspect.h"
#include "tensor_diff.h"

/* Longer names and shapes than these push their own row's columns aside, not everyone's. */
enum { MAX_NAME_WIDTH = 100, MAX_SHAPE_WIDTH = 40 };

static void add_shape(struct nl_buf *out, const struct nl_tensor *tensor)
{
    nl_inspect_shape(tensor, ",", out);
}

/* A flat index as one for each dimension. */
static void add_index(struct nl_buf *out, const struct nl_tensor *tensor, uint64_t index)
{
    uint64_t inner = tensor->elements;
    nl_buf_putc(out, '[');
    for (unsigned i = 0; i < tensor->rank; i++) {
        inner /= tensor->shape[i];
        nl_buf_printf(out, "%s%llu", i ? "," : "", (unsigned long long)(index / inner));
        index %= inner;
    }
    nl_buf_putc(out, ']');
}

static bool has_values(const struct nl_tensor_diff *pair)
{
    return pair->verdict == NL_DIFFERS || pair->verdict == NL_AGREES;
}

static const struct nl_tensor *either(const struct nl_tensor_diff *pair)
{
    return pair->b ? pair->b : pair->a;
}

static void add_row(const struct nl_tensor_diff *pair, size_t name_width, size_t shape_width,
                    struct nl_buf *out)
{
    size_t begin = out->size;
    nl_escape(out, pair->name, 0);
    nl_buf_pad(out, begin, name_width + 2);
    begin = out->size;
    add_shape(out, either(pair));
    nl_buf_pad(out, begin, shape_width + 1);
    if (has_values(pair)) {
        nl_buf_printf(out, " %9.3g %9.3g %10.7f %8llu", pair->max_abs, pair->max_rel, pair->cosine,
                      (unsigned long long)pair->bad);
        if (pair->bad) {
            nl_buf_puts(out, "  ");
            add_index(out, either(pair), pair->first_bad);
        }
    } else {
        nl_buf_printf(out, " %s", nl_verdict_name(pair->verdict));
        if (pair->verdict == NL_OTHER_SHAPE) {
            nl_buf_puts(out, ": the first has ");
            add_shape(out, pair->a);
        }
    }
    nl_buf_putc(out, '\n');
}

static void add_summary(const struct nl_diff *diff, const struct nl_diff_options *options, struct nl_buf *out)
{
    const struct nl_tensor_diff *first = nl_diff_first(diff);
    nl_buf_printf(out, "\n%zu of %zu differ by more than %g + %g |b|", diff->n_bad, diff->count,
                  options->atol, options->rtol);
    if (first) {
        nl_buf_puts(out, "; the first: ");
        nl_escape(out, first->name, 0);
        nl_buf_puts(out, first->verdict == NL_DIFFERS ? " at " : ": ");
        if (first->verdict == NL_DIFFERS) {
            add_index(out, either(first), first->first_bad);
            nl_buf_printf(out, ": %.9g and %.9g", first->first_a, first->first_b);
        } else {
            nl_buf_puts(out, nl_verdict_name(first->verdict));
        }
    }
    nl_buf_putc(out, '\n');
}

static size_t wider(size_t width, size_t other, size_t limit)
{
    return other > width && other <= limit ? other : width;
}

void nl_diff_table(const struct nl_diff *diff, const struct nl_diff_options *options, struct nl_buf *out)
{
    size_t name_width = 4, shape_width = 5;
    struct nl_buf text = {0};
    for (size_t i = 0; i < diff->count; i++) {
        nl_buf_clear(&text);
        nl_escape(&text, diff->pairs[i].name, 0);
        name_width = wider(name_width, text.size, MAX_NAME_WIDTH);
        nl_buf_clear(&text);
        add_shape(&text, either(&diff->pairs[i]));
        shape_width = wider(shape_width, text.size, MAX_SHAPE_WIDTH);
    }
    out->failed = out->failed || text.failed;
    nl_buf_free(&text);
    nl_buf_printf(out, "%-*s  %-*s  %9s %9s %10s %8s  %s\n", (int)name_width, "name", (int)shape_width,
                  "shape", "max abs", "max rel", "cosine", "bad", "first bad");
    for (size_t i = 0; i < diff->count; i++)
        add_row(&diff->pairs[i], name_width, shape_width, out);
    add_summary(diff, options, out);
}

void nl_diff_tsv(const struct nl_diff *diff, struct nl_buf *out)
{
    for (size_t i = 0; i < diff->count; i++) {
        const struct nl_tensor_diff *pair = &diff->pairs[i];
        nl_escape(out, pair->name, 0);
        nl_buf_printf(out, "\t%s\t", nl_verdict_name(pair->verdict));
        add_shape(out, either(pair));
        if (has_values(pair))
            nl_buf_printf(out, "\t%.9g\t%.9g\t%.9g\t%llu\t", pair->max_abs, pair->max_rel, pair->cosine,
                          (unsigned long long)pair->bad);
        else
            nl_buf_puts(out, "\t\t\t\t\t");
        if (pair->bad)
            add_index(out, either(pair), pair->first_bad);
        if (pair->bad)
            nl_buf_printf(out, "\t%.9g\t%.9g", pair->first_a, pair->first_b);
        else
            nl_buf_puts(out, "\t\t");
        nl_buf_putc(out, '\n');
    }
}

/* What JSON has no number for is a string, as in nl-stream(5). */
static void add_number(struct nl_buf *out, const char *key, double value)
{
    if (isfinite(value))
        nl_buf_printf(out, ",\"%s\":%.9g", key, value);
    else
        nl_buf_printf(out, ",\"%s\":\"%s\"", key, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

void nl_diff_json(const struct nl_diff *diff, struct nl_buf *out)
{
    for (size_t i = 0; i < diff->count; i++) {
        const struct nl_tensor_diff *pair = &diff->pairs[i];
        nl_buf_puts(out, "{\"name\":");
        nl_escape_json(out, pair->name);
        nl_buf_printf(out, ",\"verdict\":\"%s\"", nl_verdict_name(pair->verdict));
        for (int set = 0; set < 2; set++) {
            const struct nl_tensor *tensor = set ? pair->b : pair->a;
            if (!tensor)
                continue;
            nl_buf_printf(out, ",\"%s\":{\"dtype\":\"%s\",\"shape\":", set ? "second" : "first",
                          nl_dtype_name(tensor->dtype));
            add_shape(out, tensor);
            nl_buf_putc(out, '}');
        }
        if (has_values(pair)) {
            add_number(out, "max_abs", pair->max_abs);
            add_number(out, "max_rel", pair->max_rel);
            add_number(out, "cosine", pair->cosine);
            nl_buf_printf(out, ",\"bad\":%llu", (unsigned long long)pair->bad);
        }
        if (pair->bad) {
            nl_buf_puts(out, ",\"first_bad\":");
            add_index(out, either(pair), pair->first_bad);
            add_number(out, "a", pair->first_a);
            add_number(out, "b", pair->first_b);
        }
        nl_buf_puts(out, "}\n");
    }
}
