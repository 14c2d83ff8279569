#include "logits_row.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_IDS = 1 << 24 };

static int make_room(struct nl_logits_row *row, size_t n, struct nl_error *error)
{
    row->n = n;
    if (n <= row->capacity)
        return 0;
    float *logits = realloc(row->logits, n * sizeof *logits);
    if (!logits)
        return nl_fail_memory(error, "logits");
    row->logits = logits;
    row->capacity = n;
    return 0;
}

static int spread(struct nl_logits_row *row, const struct nl_frame *frame, size_t least,
                  struct nl_error *error)
{
    size_t n = least ? least : 1;
    for (size_t i = 0; i < frame->count; i++)
        if (frame->ids[i] >= n)
            n = (size_t)frame->ids[i] + 1;
    if (n > MOST_IDS)
        return nl_fail(error, NL_DATA, "id too large for a vocabulary: %zu", n - 1);
    if (make_room(row, n, error) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        row->logits[i] = -INFINITY;
    for (size_t i = 0; i < frame->count; i++)
        row->logits[frame->ids[i]] = frame->logits[i];
    return 0;
}

int nl_logits_row_read(struct nl_logits_row *row, const struct nl_frame *frame, size_t least,
                       struct nl_error *error)
{
    row->position = frame->position;
    row->sparse = frame->kind == NL_LGTK;
    if (row->sparse)
        return spread(row, frame, least, error);
    if (make_room(row, frame->count, error) != 0)
        return -1;
    memcpy(row->logits, frame->logits, frame->count * sizeof *row->logits);
    return 0;
}

int nl_logits_row_write(struct nl_logits_row *row, struct nl_writer *writer, struct nl_error *error)
{
    if (!row->sparse)
        return nl_writer_logits(writer, row->position, row->logits, row->n, error);
    row->kept.count = 0;
    for (uint32_t id = 0; id < row->n; id++) {
        if (row->logits[id] == -INFINITY)
            continue;
        row->logits[row->kept.count] = row->logits[id]; /* never past id */
        if (nl_ids_add(&row->kept, &id, 1, error) != 0)
            return -1;
    }
    return nl_writer_sparse(writer, row->position, row->kept.data, row->logits, row->kept.count, error);
}

void nl_logits_row_free(struct nl_logits_row *row)
{
    free(row->logits);
    nl_ids_free(&row->kept);
    *row = (struct nl_logits_row){0};
}
