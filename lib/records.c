#include "records.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "file.h"

enum { STEP = 1 << 16, WAIT_MS = 500 };

/* Waits until there is something to read. */
static int await(struct nl_records *records, struct nl_error *error)
{
    struct pollfd input = {.fd = records->fd, .events = POLLIN};
    for (int timeout = 0; poll(&input, 1, timeout) <= 0; timeout = WAIT_MS)
        if (records->wait && records->wait(records->context, error) != 0)
            return -1;
    return 0;
}

/* Reads more behind what is held. */
static int fill(struct nl_records *records, struct nl_error *error)
{
    struct nl_buf *held = &records->held;
    if (records->at > 0 && records->at == held->size)
        records->at = records->scanned = held->size = 0;
    if (records->at > STEP) {
        held->size -= records->at;
        records->scanned -= records->at;
        memmove(held->data, held->data + records->at, held->size);
        records->at = 0;
    }
    for (;;) {
        if (await(records, error) != 0)
            return -1;
        char *end = nl_buf_reserve(held, STEP);
        if (!end)
            return nl_fail_memory(error, records->name);
        ssize_t got = read(records->fd, end, STEP);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return nl_fail_io(error, "cannot read", records->name);
        held->size += (size_t)got;
        records->ended = got == 0;
        return 0;
    }
}

/* Where to part what is held, SIZE_MAX: nowhere yet. */
static size_t find_cut(struct nl_records *records)
{
    size_t length = records->held.size - records->at;
    if (records->kind != NL_RECORD_WHOLE || !records->cut || records->ended || length < records->piece ||
        length < records->next_cut)
        return SIZE_MAX;
    size_t cut = records->cut(records->context, records->held.data + records->at, length);
    records->next_cut = cut ? 0 : 2 * length;
    return cut ? records->at + cut : SIZE_MAX;
}

/* Gives out [at, end) without its last `drop` bytes, and goes on behind it. */
static int give(struct nl_records *records, size_t end, size_t drop, const char **text, size_t *length)
{
    *text = records->held.data ? records->held.data + records->at : "";
    *length = end - records->at - drop;
    records->at = records->scanned = end;
    records->begins = records->count == 0 || records->ends;
    records->ends = true;
    records->count++;
    return 1;
}

static bool ends_in(const struct nl_records *records, size_t end, char c)
{
    return end > records->at && records->held.data[end - 1] == c;
}

int nl_records_next(struct nl_records *records, const char **text, size_t *length, struct nl_error *error)
{
    struct nl_buf *held = &records->held;
    char terminator = records->kind == NL_RECORD_NUL ? '\0' : '\n';
    records->offset = records->next_offset;
    for (;;) {
        const char *found = NULL;
        if (records->kind != NL_RECORD_WHOLE && held->size > records->scanned)
            found = memchr(held->data + records->scanned, terminator, held->size - records->scanned);
        records->scanned = held->size;
        size_t end = found ? (size_t)(found - held->data) + 1 : held->size;
        if (found || (records->ended && (end > records->at || records->count == 0))) {
            records->next_offset += end - records->at;
            bool drop = ends_in(records, end, terminator) && !(records->raw && terminator == '\n');
            return give(records, end, drop, text, length);
        }
        if (records->ended)
            return 0;
        size_t cut = find_cut(records);
        if (cut != SIZE_MAX) {
            records->next_offset += cut - records->at;
            give(records, cut, 0, text, length);
            records->ends = false;
            return 1;
        }
        if (records->most && held->size - records->at >= records->most)
            return nl_fail(error, NL_DATA, "%zu MiB without a place to part the text: %s: byte %llu",
                           records->most >> 20, records->name, (unsigned long long)records->offset);
        if (fill(records, error) != 0)
            return -1;
    }
}

void nl_records_free(struct nl_records *records)
{
    nl_buf_free(&records->held);
}
