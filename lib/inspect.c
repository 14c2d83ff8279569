#include "inspect.h"

#include <stdio.h>
#include <stdlib.h>

#include "escape.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int nl_natural_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;
    while (*x && *y) {
        if (!is_digit(*x) || !is_digit(*y)) {
            if (*x != *y)
                return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            x++;
            y++;
            continue;
        }
        x += strspn(x, "0");
        y += strspn(y, "0");
        size_t n = strspn(x, "0123456789"), m = strspn(y, "0123456789");
        int order = n < m ? -1 : n > m ? 1 : memcmp(x, y, n);
        if (order)
            return order;
        x += n;
        y += m;
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b); /* 01 and 1 */
}

static int by_nature(const void *a, const void *b)
{
    return nl_natural_compare((*(const struct nl_tensor *const *)a)->name,
                              (*(const struct nl_tensor *const *)b)->name);
}

const struct nl_tensor **nl_inspect_order(const struct nl_checkpoint *checkpoint, struct nl_buf *out)
{
    const struct nl_tensor **tensors = malloc((checkpoint->count + 1) * sizeof *tensors);
    if (!tensors) {
        out->failed = true;
        return NULL;
    }
    if (checkpoint->count)
        memcpy(tensors, checkpoint->tensors, checkpoint->count * sizeof *tensors);
    qsort(tensors, checkpoint->count, sizeof *tensors, by_nature);
    return tensors;
}

/* Where a tensor's bytes begin in its file. */
static uint64_t place(const struct nl_tensor *tensor)
{
    return 8 + tensor->file->header_size + tensor->begin;
}

static uint64_t bytes(const struct nl_tensor *tensor)
{
    return tensor->end - tensor->begin;
}

struct totals {
    uint64_t tensors, elements, bytes;
};

/* each: [NL_DTYPES]. The elements saturate: tensors without bytes may claim any number that is below 2^64 for
 * each. */
static void count_totals(const struct nl_checkpoint *checkpoint, struct totals *each, struct totals *all)
{
    memset(each, 0, NL_DTYPES * sizeof *each);
    *all = (struct totals){0};
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct nl_tensor *tensor = checkpoint->tensors[i];
        struct totals *sums[] = {&each[tensor->dtype], all};
        for (int k = 0; k < 2; k++) {
            sums[k]->tensors++;
            if (!nl_add(sums[k]->elements, tensor->elements, &sums[k]->elements))
                sums[k]->elements = UINT64_MAX;
            sums[k]->bytes += bytes(tensor); /* bounded by the sizes of the mapped files */
        }
    }
}

const char *nl_inspect_amount(char text[32], uint64_t value, unsigned unit, bool human)
{
    static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    static const char *const counts[] = {"", "k", "M", "G", "T", "P", "E"};
    if (!human || value < unit) {
        snprintf(text, 32, "%llu%s", (unsigned long long)value, human && unit == 1024 ? "B" : "");
        return text;
    }
    double scaled = (double)value;
    int power = 0;
    while (scaled >= unit && power < 6) {
        scaled /= unit;
        power++;
    }
    snprintf(text, 32, "%.1f%s", scaled, unit == 1024 ? sizes[power] : counts[power]);
    return text;
}

void nl_inspect_shape(const struct nl_tensor *tensor, const char *comma, struct nl_buf *out)
{
    nl_buf_putc(out, '[');
    for (unsigned i = 0; i < tensor->rank; i++)
        nl_buf_printf(out, "%s%llu", i ? comma : "", (unsigned long long)tensor->shape[i]);
    nl_buf_putc(out, ']');
}

static size_t longer(size_t width, size_t other)
{
    return width > other ? width : other;
}

/* Longer shapes than this push their own line's columns aside, not everyone's. */
enum { MAX_SHAPE_WIDTH = 40 };

static void add_tensors(const struct nl_checkpoint *checkpoint, const struct nl_tensor **tensors, bool human,
                        struct nl_buf *out)
{
    struct nl_buf shape = {0};
    char text[32];
    size_t widths[] = {5, 5, 5}; /* dtype, shape, bytes */
    for (size_t i = 0; i < checkpoint->count; i++) {
        nl_buf_clear(&shape);
        nl_inspect_shape(tensors[i], ", ", &shape);
        widths[0] = longer(widths[0], strlen(nl_dtype_name(tensors[i]->dtype)));
        if (shape.size <= MAX_SHAPE_WIDTH)
            widths[1] = longer(widths[1], shape.size);
        widths[2] = longer(widths[2], strlen(nl_inspect_amount(text, bytes(tensors[i]), 1024, human)));
    }
    nl_buf_printf(out, "%-*s  %-*s  %*s  name\n", (int)widths[0], "dtype", (int)widths[1], "shape",
                  (int)widths[2], "bytes");
    for (size_t i = 0; i < checkpoint->count; i++) {
        nl_buf_printf(out, "%-*s  ", (int)widths[0], nl_dtype_name(tensors[i]->dtype));
        size_t begin = out->size;
        nl_inspect_shape(tensors[i], ", ", out);
        nl_buf_pad(out, begin, widths[1]);
        nl_buf_printf(out, "  %*s  ", (int)widths[2],
                      nl_inspect_amount(text, bytes(tensors[i]), 1024, human));
        nl_escape(out, tensors[i]->name, 0);
        nl_buf_putc(out, '\n');
    }
    out->failed |= shape.failed;
    nl_buf_free(&shape);
}

static void add_totals(const struct nl_checkpoint *checkpoint, bool human, struct nl_buf *out)
{
    struct totals each[NL_DTYPES], all;
    count_totals(checkpoint, each, &all);
    char elements[32], size[32];
    size_t widths[] = {7, 10, 5}; /* tensors, parameters, bytes: each as wide as the sum or its heading */
    widths[1] = longer(widths[1], strlen(nl_inspect_amount(elements, all.elements, 1000, human)));
    widths[2] = longer(widths[2], human ? 9 : strlen(nl_inspect_amount(size, all.bytes, 1024, false)));
    nl_buf_printf(out, "%-11s  %*s  %*s  %*s\n", "dtype", (int)widths[0], "tensors", (int)widths[1],
                  "parameters", (int)widths[2], "bytes");
    for (int i = 0; i <= NL_DTYPES; i++) {
        const struct totals *row = i < NL_DTYPES ? &each[i] : &all;
        if (i < NL_DTYPES && row->tensors == 0)
            continue;
        nl_buf_printf(out, "%-11s  %*llu  %*s  %*s\n",
                      i < NL_DTYPES ? nl_dtype_name((enum nl_dtype)i) : "all", (int)widths[0],
                      (unsigned long long)row->tensors, (int)widths[1],
                      nl_inspect_amount(elements, row->elements, 1000, human), (int)widths[2],
                      nl_inspect_amount(size, row->bytes, 1024, human));
    }
}

void nl_inspect_table(const struct nl_checkpoint *checkpoint, bool human, struct nl_buf *out)
{
    const struct nl_tensor **tensors = nl_inspect_order(checkpoint, out);
    if (!tensors)
        return;
    if (checkpoint->count) {
        add_tensors(checkpoint, tensors, human, out);
        nl_buf_putc(out, '\n');
    }
    add_totals(checkpoint, human, out);
    free(tensors);
}

void nl_inspect_tsv(const struct nl_checkpoint *checkpoint, struct nl_buf *out)
{
    const struct nl_tensor **tensors = nl_inspect_order(checkpoint, out);
    for (size_t i = 0; tensors && i < checkpoint->count; i++) {
        const struct nl_tensor *tensor = tensors[i];
        nl_escape(out, tensor->name, 0);
        nl_buf_printf(out, "\t%s\t", nl_dtype_name(tensor->dtype));
        nl_inspect_shape(tensor, ",", out);
        nl_buf_printf(out, "\t%llu\t%llu\t%llu\t", (unsigned long long)tensor->elements,
                      (unsigned long long)bytes(tensor), (unsigned long long)place(tensor));
        nl_escape(out, tensor->file->path, 0);
        nl_buf_putc(out, '\n');
    }
    free(tensors);
}

static void add_line(struct nl_buf *out, const char *file, const char *key, const char *value)
{
    if (file) {
        nl_escape(out, file, 0);
        nl_buf_putc(out, '\t');
    }
    nl_escape(out, key, 0);
    nl_buf_putc(out, '\t');
    nl_escape(out, value, 0);
    nl_buf_putc(out, '\n');
}

static void add_index_metadata(const struct nl_index *index, bool with_file, struct nl_buf *out)
{
    struct nl_buf text = {0};
    const struct nl_json *value = nl_json_first(nl_json_get(index->root, "metadata"));
    for (; value; value = nl_json_next(value)) {
        nl_buf_clear(&text);
        if (!nl_json_is(value, NL_JSON_STRING))
            nl_json_print(value, &text);
        add_line(out, with_file ? index->path : NULL, nl_json_key(value),
                 text.size ? text.data : nl_json_string(value));
    }
    out->failed |= text.failed;
    nl_buf_free(&text);
}

void nl_inspect_metadata(const struct nl_checkpoint *checkpoint, bool with_file, struct nl_buf *out)
{
    const struct nl_index *index = checkpoint->shards.index;
    if (index && nl_json_is(nl_json_get(index->root, "metadata"), NL_JSON_OBJECT))
        add_index_metadata(index, with_file, out);
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        const struct nl_safetensors *file = checkpoint->files[i];
        for (size_t k = 0; k < file->n_metadata; k++)
            add_line(out, with_file ? file->path : NULL, file->metadata[k].key, file->metadata[k].value);
    }
}

static uint64_t alignment(uint64_t offset)
{
    return offset % 4096 ? offset & -offset : 4096;
}

/* One line of the byte map, up to the type. `element`: bytes, 0 where alignment does not matter. */
static void add_range(struct nl_buf *out, uint64_t begin, uint64_t end, uint64_t element, int width,
                      bool human)
{
    char size[32];
    uint64_t align = alignment(begin);
    nl_buf_printf(out, "%*llu  %*llu  %*s  %5llu%c  ", width, (unsigned long long)begin, width,
                  (unsigned long long)end, width, nl_inspect_amount(size, end - begin, 1024, human),
                  (unsigned long long)align, element && align < element ? '!' : ' ');
}

static void add_map(const struct nl_safetensors *file, bool human, struct nl_buf *out)
{
    char text[32];
    uint64_t size = 8 + file->header_size + file->data_size;
    int digits = snprintf(text, sizeof text, "%llu", (unsigned long long)size);
    int width = human ? 9 : 5;
    width = digits > width ? digits : width;
    nl_escape(out, file->path, 0);
    nl_buf_printf(out, ": %s\n%*s  %*s  %*s  align   dtype        name\n",
                  nl_inspect_amount(text, size, 1024, human), width, "from", width, "to", width, "bytes");
    add_range(out, 0, 8, 0, width, human);
    nl_buf_puts(out, "-            (header length)\n");
    add_range(out, 8, 8 + file->header_size, 0, width, human);
    nl_buf_puts(out, "-            (header)\n");
    for (size_t i = 0; i < file->count; i++) {
        const struct nl_tensor *tensor = &file->tensors[i];
        uint64_t begin = place(tensor), element = tensor->elements ? nl_dtype_bits(tensor->dtype) / 8 : 0;
        add_range(out, begin, begin + bytes(tensor), element, width, human);
        nl_buf_printf(out, "%-11s  ", nl_dtype_name(tensor->dtype));
        nl_escape(out, tensor->name, 0);
        nl_buf_putc(out, '\n');
    }
}

void nl_inspect_offsets(const struct nl_checkpoint *checkpoint, bool human, struct nl_buf *out)
{
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        if (i)
            nl_buf_putc(out, '\n');
        add_map(checkpoint->files[i], human, out);
    }
}

static void json_key(struct nl_buf *out, const char *key, const char *value)
{
    nl_buf_printf(out, "\"%s\":", key);
    if (value)
        nl_escape_json(out, value);
    else
        nl_buf_puts(out, "null");
}

static void json_file(const struct nl_safetensors *file, struct nl_buf *out)
{
    nl_buf_putc(out, '{');
    json_key(out, "path", file->path);
    nl_buf_printf(out, ",\"size\":%llu,\"header_size\":%llu,\"metadata\":",
                  (unsigned long long)(8 + file->header_size + file->data_size),
                  (unsigned long long)file->header_size);
    if (!file->has_metadata) {
        nl_buf_puts(out, "null}");
        return;
    }
    for (size_t i = 0; i < file->n_metadata; i++) {
        nl_buf_puts(out, i ? "," : "{");
        nl_escape_json(out, file->metadata[i].key);
        nl_buf_putc(out, ':');
        nl_escape_json(out, file->metadata[i].value);
    }
    nl_buf_puts(out, file->n_metadata ? "}}" : "{}}");
}

static void json_tensor(const struct nl_tensor *tensor, struct nl_buf *out)
{
    nl_buf_putc(out, '{');
    json_key(out, "name", tensor->name);
    nl_buf_printf(out, ",\"dtype\":\"%s\",\"shape\":", nl_dtype_name(tensor->dtype));
    nl_inspect_shape(tensor, ",", out);
    nl_buf_printf(out, ",\"elements\":%llu,\"bytes\":%llu,\"data_offsets\":[%llu,%llu],\"offset\":%llu,",
                  (unsigned long long)tensor->elements, (unsigned long long)bytes(tensor),
                  (unsigned long long)tensor->begin, (unsigned long long)tensor->end,
                  (unsigned long long)place(tensor));
    json_key(out, "file", tensor->file->path);
    nl_buf_putc(out, '}');
}

static void json_sums(struct nl_buf *out, const struct totals *sums)
{
    nl_buf_printf(out, "\"tensors\":%llu,\"parameters\":%llu,\"bytes\":%llu",
                  (unsigned long long)sums->tensors, (unsigned long long)sums->elements,
                  (unsigned long long)sums->bytes);
}

static void json_totals(const struct nl_checkpoint *checkpoint, struct nl_buf *out)
{
    struct totals each[NL_DTYPES], all;
    count_totals(checkpoint, each, &all);
    nl_buf_puts(out, "{");
    json_sums(out, &all);
    nl_buf_puts(out, ",\"dtypes\":{");
    const char *comma = "";
    for (int i = 0; i < NL_DTYPES; i++)
        if (each[i].tensors) {
            nl_buf_printf(out, "%s\"%s\":{", comma, nl_dtype_name((enum nl_dtype)i));
            json_sums(out, &each[i]);
            nl_buf_putc(out, '}');
            comma = ",";
        }
    nl_buf_puts(out, "}}");
}

void nl_inspect_json(const struct nl_checkpoint *checkpoint, const char *path, const char *model,
                     struct nl_buf *out)
{
    const struct nl_tensor **tensors = nl_inspect_order(checkpoint, out);
    if (!tensors)
        return;
    nl_buf_putc(out, '{');
    json_key(out, "path", path);
    nl_buf_putc(out, ',');
    json_key(out, "index", checkpoint->shards.index ? checkpoint->shards.index->path : NULL);
    nl_buf_puts(out, ",\"files\":[");
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        nl_buf_puts(out, i ? "," : "");
        json_file(checkpoint->files[i], out);
    }
    nl_buf_puts(out, "],\"tensors\":[");
    for (size_t i = 0; i < checkpoint->count; i++) {
        nl_buf_puts(out, i ? "," : "");
        json_tensor(tensors[i], out);
    }
    nl_buf_puts(out, "],\"totals\":");
    json_totals(checkpoint, out);
    nl_buf_printf(out, ",\"model\":%s}\n", model);
    free(tensors);
}
