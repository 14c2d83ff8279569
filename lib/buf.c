#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void nl_buf_free(struct nl_buf *buf)
{
    free(buf->data);
    *buf = (struct nl_buf){0};
}

void nl_buf_clear(struct nl_buf *buf)
{
    buf->size = 0;
}

char *nl_buf_reserve(struct nl_buf *buf, size_t extra)
{
    uint64_t need;
    if (buf->failed || !nl_add(buf->size, extra, &need) || !nl_add(need, 1, &need) || need > SIZE_MAX / 2) {
        buf->failed = true;
        return NULL;
    }
    if (need > buf->capacity) {
        size_t capacity = buf->capacity ? buf->capacity : 64;
        while (capacity < need)
            capacity *= 2;
        char *data = realloc(buf->data, capacity);
        if (!data) {
            buf->failed = true;
            return NULL;
        }
        buf->data = data;
        buf->capacity = capacity;
    }
    return buf->data + buf->size;
}

void nl_buf_add(struct nl_buf *buf, const void *bytes, size_t size)
{
    char *end = nl_buf_reserve(buf, size);
    if (!end)
        return;
    if (size)
        memcpy(end, bytes, size);
    end[size] = '\0';
    buf->size += size;
}

void nl_buf_puts(struct nl_buf *buf, const char *string)
{
    nl_buf_add(buf, string, strlen(string));
}

void nl_buf_putc(struct nl_buf *buf, char c)
{
    nl_buf_add(buf, &c, 1);
}

void nl_buf_pad(struct nl_buf *buf, size_t from, size_t width)
{
    while (!buf->failed && buf->size < from + width)
        nl_buf_putc(buf, ' ');
}

void nl_buf_printf(struct nl_buf *buf, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *end = length < 0 ? NULL : nl_buf_reserve(buf, (size_t)length);
    if (end) {
        vsnprintf(end, (size_t)length + 1, format, again);
        buf->size += (size_t)length;
    } else {
        buf->failed = true;
    }
    va_end(again);
}

int nl_buf_check(const struct nl_buf *buf, const char *what, struct nl_error *error)
{
    return buf->failed ? nl_fail_memory(error, what) : 0;
}

void nl_ids_free(struct nl_ids *ids)
{
    free(ids->data);
    *ids = (struct nl_ids){0};
}

int nl_ids_add(struct nl_ids *ids, const uint32_t *more, size_t count, struct nl_error *error)
{
    uint64_t total;
    if (!nl_add(ids->count, count, &total) || total > SIZE_MAX)
        return nl_fail_memory(error, "ids");
    if (nl_grow(&ids->data, &ids->capacity, (size_t)total, sizeof *more, "ids", error) != 0)
        return -1;
    if (count)
        memcpy(ids->data + ids->count, more, count * sizeof *more);
    ids->count += count;
    return 0;
}

int nl_grow(void *array, size_t *capacity, size_t count, size_t size, const char *what,
            struct nl_error *error)
{
    if (count <= *capacity)
        return 0;
    if (count > SIZE_MAX / 4 / size)
        return nl_fail_memory(error, what);
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < count)
        wanted *= 2;
    void *old;
    memcpy(&old, array, sizeof old); /* whatever the type that it points to */
    void *data = realloc(old, wanted * size);
    if (!data)
        return nl_fail_memory(error, what);
    memcpy(array, &data, sizeof data);
    *capacity = wanted;
    return 0;
}
