#include "safetensors_write.h"

#include <inttypes.h>
#include <stdlib.h>

#include "file.h"
#include "json.h"
#include "safetensors.h"

static int compare(const void *a, const void *b)
{
    const struct nl_st_entry *x = a, *y = b;
    return x->dtype != y->dtype ? (x->dtype > y->dtype ? -1 : 1) : strcmp(x->name, y->name);
}

void nl_st_sort(struct nl_st_entry *entries, size_t count)
{
    qsort(entries, count, sizeof *entries, compare);
}

bool nl_st_size(const struct nl_st_entry *entry, uint64_t *out)
{
    uint64_t bits = nl_dtype_bits(entry->dtype);
    for (unsigned i = 0; i < entry->rank; i++)
        if (!nl_mul(bits, entry->shape[i], &bits))
            return false;
    *out = bits / 8;
    return bits % 8 == 0;
}

static void add_entry(struct nl_buf *out, const struct nl_st_entry *entry, uint64_t begin, uint64_t end)
{
    nl_buf_putc(out, ',');
    nl_json_quote(out, entry->name, strlen(entry->name));
    nl_buf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", nl_dtype_name(entry->dtype));
    for (unsigned i = 0; i < entry->rank; i++)
        nl_buf_printf(out, "%s%" PRIu64, i ? "," : "", entry->shape[i]);
    nl_buf_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end);
}

static int make_header(struct nl_st_writer *writer, struct nl_buf *out, const struct nl_st_entry *entries,
                       size_t count, struct nl_error *error)
{
    uint64_t begin = 0, size, end;
    nl_buf_add(out, "\0\0\0\0\0\0\0\0", 8);
    nl_buf_puts(out, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < count; i++) {
        if (i && strcmp(entries[i - 1].name, entries[i].name) == 0)
            return nl_fail(error, NL_DATA, "two tensors of one name: %s: %s", writer->name, entries[i].name);
        if (!nl_st_size(&entries[i], &size) || !nl_add(begin, size, &end))
            return nl_fail(error, NL_DATA, "tensor's size overflows: %s: %s", writer->name, entries[i].name);
        add_entry(out, &entries[i], begin, end);
        begin = end;
    }
    nl_buf_putc(out, '}');
    while (out->size % 8 != 0 && !out->failed)
        nl_buf_putc(out, ' ');
    writer->left = begin;
    if (nl_buf_check(out, "header", error) != 0)
        return -1;
    if (out->size - 8 > NL_ST_MAX_HEADER)
        return nl_fail(error, NL_DATA, "header would be larger than %d bytes: %s", NL_ST_MAX_HEADER,
                       writer->name);
    for (int i = 0; i < 8; i++)
        out->data[i] = (char)((uint64_t)(out->size - 8) >> 8 * i & 255);
    return 0;
}

int nl_st_writer_start(struct nl_st_writer *writer, int fd, const char *name,
                       const struct nl_st_entry *entries, size_t count, struct nl_error *error)
{
    *writer = (struct nl_st_writer){.fd = fd, .name = name};
    struct nl_buf header = {0};
    int result = make_header(writer, &header, entries, count, error);
    if (result == 0)
        result = nl_write_all(fd, header.data, header.size, name, error);
    nl_buf_free(&header);
    return result;
}

int nl_st_writer_add(struct nl_st_writer *writer, const void *bytes, size_t size, struct nl_error *error)
{
    if (size > writer->left)
        return nl_fail(error, NL_DATA, "more data than the header says: %s", writer->name);
    writer->left -= size;
    return nl_write_all(writer->fd, bytes, size, writer->name, error);
}

int nl_st_writer_finish(struct nl_st_writer *writer, struct nl_error *error)
{
    return writer->left ? nl_fail(error, NL_DATA, "less data than the header says: %s", writer->name) : 0;
}
