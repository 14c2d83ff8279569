/*
 * buf.h: growing arrays: a buffer of bytes, ids, any.
 *
 * Zero-initialised is empty. After a failed allocation the buffer keeps what it had, `failed` stays set, and
 * further additions do nothing: a caller adds freely and checks once, at the end, with nl_buf_check.
 */
#ifndef NL_BUF_H
#define NL_BUF_H

#include "base.h"

struct nl_buf {
    char *data; /* NUL-terminated once anything was added; owned */
    size_t size, capacity;
    bool failed;
};

void nl_buf_free(struct nl_buf *);
void nl_buf_clear(struct nl_buf *); /* size 0; keeps the memory */
/* Room for `extra` more bytes and a NUL behind the present end; returns where they go, NULL when out of
 * memory. */
char *nl_buf_reserve(struct nl_buf *, size_t extra);
void nl_buf_add(struct nl_buf *, const void *bytes, size_t size);
void nl_buf_puts(struct nl_buf *, const char *string);
void nl_buf_putc(struct nl_buf *, char c);
/* Blanks, until what was added from `from` on is `width` bytes wide. */
void nl_buf_pad(struct nl_buf *, size_t from, size_t width);
void nl_buf_printf(struct nl_buf *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* 0, or -1 with *error filled when any addition ran out of memory; `what` names the buffer. */
int nl_buf_check(const struct nl_buf *, const char *what, struct nl_error *error);

struct nl_ids {
    uint32_t *data; /* owned */
    size_t count, capacity;
};

void nl_ids_free(struct nl_ids *);
/* Appends; NL_RESOURCE. */
int nl_ids_add(struct nl_ids *ids, const uint32_t *more, size_t count, struct nl_error *error);

/* Makes room for `count` elements of `size` bytes in an array from malloc(3): `array` is the address of the
   pointer to it, *capacity its room in elements, which at least doubles. NL_RESOURCE, `what` names it. */
int nl_grow(void *array, size_t *capacity, size_t count, size_t size, const char *what,
            struct nl_error *error);

#endif
