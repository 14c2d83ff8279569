#include "inspect_values.h"

#include <math.h>
#include <stdlib.h>

#include "escape.h"
#include "inspect.h"
#include "json.h"

enum form { TABLE, TSV, JSON };

/* A number as the form spells it, right-aligned in a table. */
static void add_number(struct nl_buf *out, enum form form, bool there, double value)
{
    if (form == TABLE && there)
        nl_buf_printf(out, "  %12.5g", value);
    else if (form == TABLE)
        nl_buf_printf(out, "  %12s", "-");
    else if (form == TSV && there)
        nl_buf_printf(out, "\t%.9g", value);
    else if (form == TSV)
        nl_buf_puts(out, "\t-");
    else if (there && isfinite(value))
        nl_json_print_number(value, out);
    else
        nl_buf_puts(out, there ? (value > 0 ? "\"inf\"" : "\"-inf\"") : "null");
}

static void add_numbers(struct nl_buf *out, enum form form, const struct nl_values *values)
{
    static const char *const keys[] = {",\"min\":", ",\"max\":", ",\"mean\":"};
    const double numbers[] = {values->min, values->max, values->mean};
    for (int i = 0; i < 3; i++) {
        if (form == JSON)
            nl_buf_puts(out, keys[i]);
        add_number(out, form, values->finite > 0, numbers[i]);
    }
}

static void add_row(struct nl_buf *out, const struct nl_tensor *tensor, const struct nl_values *values)
{
    nl_buf_printf(out, "%-11s  %8llu  %8llu", nl_dtype_name(tensor->dtype), (unsigned long long)values->nan,
                  (unsigned long long)values->infinite);
    add_numbers(out, TABLE, values);
    nl_buf_puts(out, "  ");
    nl_escape(out, tensor->name, 0);
    nl_buf_putc(out, '\n');
}

static void add_line(struct nl_buf *out, const struct nl_tensor *tensor, const struct nl_values *values)
{
    nl_escape(out, tensor->name, 0);
    nl_buf_printf(out, "\t%s\t", nl_dtype_name(tensor->dtype));
    nl_inspect_shape(tensor, ",", out);
    nl_buf_printf(out, "\t%llu\t%llu\t%llu", (unsigned long long)tensor->elements,
                  (unsigned long long)values->nan, (unsigned long long)values->infinite);
    add_numbers(out, TSV, values);
    nl_buf_putc(out, '\n');
}

static void add_object(struct nl_buf *out, const struct nl_tensor *tensor, const struct nl_values *values)
{
    nl_buf_puts(out, "{\"name\":");
    nl_escape_json(out, tensor->name);
    nl_buf_printf(out, ",\"dtype\":\"%s\",\"shape\":", nl_dtype_name(tensor->dtype));
    nl_inspect_shape(tensor, ",", out);
    nl_buf_printf(out, ",\"elements\":%llu,\"nan\":%llu,\"infinite\":%llu",
                  (unsigned long long)tensor->elements, (unsigned long long)values->nan,
                  (unsigned long long)values->infinite);
    add_numbers(out, JSON, values);
    nl_buf_putc(out, '}');
}

static void add_tensors(const struct nl_checkpoint *checkpoint, enum form form,
                        struct nl_inspect_values *inspect, struct nl_buf *out)
{
    static void (*const add[])(struct nl_buf *, const struct nl_tensor *,
                               const struct nl_values *) = {add_row, add_line, add_object};
    const struct nl_tensor **tensors = nl_inspect_order(checkpoint, out);
    for (size_t i = 0; tensors && i < checkpoint->count && !(inspect->signal && *inspect->signal); i++) {
        struct nl_values values;
        nl_values_scan(tensors[i], inspect->signal, &values);
        inspect->n_bad += values.nan || values.infinite;
        if (form == JSON && i)
            nl_buf_putc(out, ',');
        add[form](out, tensors[i], &values);
    }
    free(tensors);
}

void nl_inspect_values_table(const struct nl_checkpoint *checkpoint, struct nl_inspect_values *inspect,
                             struct nl_buf *out)
{
    nl_buf_printf(out, "%-11s  %8s  %8s  %12s  %12s  %12s  name\n", "dtype", "NaN", "infinite", "min", "max",
                  "mean");
    add_tensors(checkpoint, TABLE, inspect, out);
}

void nl_inspect_values_tsv(const struct nl_checkpoint *checkpoint, struct nl_inspect_values *inspect,
                           struct nl_buf *out)
{
    add_tensors(checkpoint, TSV, inspect, out);
}

void nl_inspect_values_json(const struct nl_checkpoint *checkpoint, const char *path,
                            struct nl_inspect_values *inspect, struct nl_buf *out)
{
    nl_buf_puts(out, "{\"path\":");
    nl_escape_json(out, path);
    nl_buf_puts(out, ",\"tensors\":[");
    add_tensors(checkpoint, JSON, inspect, out);
    nl_buf_puts(out, "]}\n");
}
