/*
 * Pairs, lists of positions, and the queue.
 *
 * What comes up in a step is logged and sorted by pair at its end: each list is then one stretch of
 * `positions`, and a position costs four bytes.
 */
#include <assert.h>
#include <stdlib.h>

#include "train_bpe_parts.h"

enum { FIRST_SLOTS = 1 << 12 };

static uint32_t slot_of(uint64_t key, uint32_t mask)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32 ^ hash) & mask;
}

static int grow_slots(struct train_pairs *p, struct nl_error *error)
{
    uint32_t count = p->slots ? (p->mask + 1) * 2 : FIRST_SLOTS;
    uint32_t *slots = count ? malloc(count * sizeof *slots) : NULL;
    if (!slots)
        return nl_fail_memory(error, "pairs");
    memset(slots, 0xff, count * sizeof *slots);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t at = slot_of(p->pairs[i].key, count - 1);
        while (slots[at] != NL_TOK_NONE)
            at = (at + 1) & (count - 1);
        slots[at] = i;
    }
    free(p->slots);
    p->slots = slots;
    p->mask = count - 1;
    return 0;
}

int nl_train_pairs_init(struct train_pairs *p, struct nl_error *error)
{
    *p = (struct train_pairs){0};
    return grow_slots(p, error);
}

void nl_train_pairs_free(struct train_pairs *p)
{
    free(p->pairs);
    free(p->slots);
    free(p->positions);
    free(p->queue);
    free(p->log);
    free(p->touched);
    *p = (struct train_pairs){0};
}

/* The index of a pair, made when it is new. */
static int get(struct train_pairs *p, uint64_t key, uint32_t *index, struct nl_error *error)
{
    uint32_t at = slot_of(key, p->mask);
    for (; p->slots[at] != NL_TOK_NONE; at = (at + 1) & p->mask)
        if (p->pairs[p->slots[at]].key == key) {
            *index = p->slots[at];
            return 0;
        }
    if (p->n > INT32_MAX)
        return nl_fail(error, NL_RESOURCE, "more than 2147483648 pairs");
    if (nl_grow(&p->pairs, &p->capacity, (size_t)p->n + 1, sizeof *p->pairs, "pairs", error) != 0)
        return -1;
    p->pairs[p->n] = (struct train_pair){.key = key};
    p->slots[at] = *index = p->n++;
    return p->n >= p->mask / 4 * 3 ? grow_slots(p, error) : 0;
}

static uint64_t key_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right;
}

int nl_train_pairs_count(struct train_pairs *p, uint32_t left, uint32_t right, int64_t change,
                         struct nl_error *error)
{
    uint32_t index;
    if (get(p, key_of(left, right), &index, error) != 0)
        return -1;
    p->pairs[index].count += change;
    return 0;
}

int nl_train_pairs_occur(struct train_pairs *p, uint32_t left, uint32_t right, uint32_t position,
                         int64_t change, struct nl_error *error)
{
    uint32_t index;
    if (get(p, key_of(left, right), &index, error) != 0 ||
        nl_grow(&p->log, &p->log_capacity, p->n_log + 1, sizeof *p->log, "pairs", error) != 0 ||
        nl_grow(&p->touched, &p->touched_capacity, p->n_touched + 1, sizeof *p->touched, "pairs", error) != 0)
        return -1;
    struct train_pair *pair = &p->pairs[index];
    pair->count += change;
    assert(!pair->listed);
    if (pair->n++ == 0)
        p->touched[p->n_touched++] = index;
    p->log[p->n_log++] = (struct train_occurrence){index, position};
    return 0;
}

/* Whether a comes out of the queue before b. */
static bool before(const struct train_queued *a, const struct train_queued *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->key < b->key;
}

static void sift_up(struct train_pairs *p, size_t at)
{
    struct train_queued moved = p->queue[at];
    for (size_t parent; at > 0 && before(&moved, &p->queue[parent = (at - 1) / 2]); at = parent)
        p->queue[at] = p->queue[parent];
    p->queue[at] = moved;
}

static void sift_down(struct train_pairs *p)
{
    struct train_queued moved = p->queue[0];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < p->n_queue) {
        if (child + 1 < p->n_queue && before(&p->queue[child + 1], &p->queue[child]))
            child++;
        if (!before(&p->queue[child], &moved))
            break;
        p->queue[at] = p->queue[child];
        at = child;
    }
    p->queue[at] = moved;
}

/* Room for a pair's positions, and its place in the queue. */
static int add_list(struct train_pairs *p, uint32_t index, struct nl_error *error)
{
    struct train_pair *pair = &p->pairs[index];
    if (nl_grow(&p->queue, &p->queue_capacity, p->n_queue + 1, sizeof *p->queue, "pairs", error) != 0 ||
        nl_grow(&p->positions, &p->positions_capacity, p->n_positions + pair->n, sizeof *p->positions,
                "pairs", error) != 0)
        return -1;
    pair->at = p->n_positions;
    p->n_positions += pair->n;
    p->queue[p->n_queue] = (struct train_queued){pair->count, pair->key, index};
    sift_up(p, p->n_queue++);
    return 0;
}

int nl_train_pairs_queue(struct train_pairs *p, struct nl_error *error)
{
    for (size_t i = 0; i < p->n_touched; i++) {
        struct train_pair *pair = &p->pairs[p->touched[i]];
        pair->listed = true;
        if (pair->count > 0 && add_list(p, p->touched[i], error) != 0)
            return -1;
        pair->n = 0;
    }
    for (size_t i = 0; i < p->n_log; i++) {
        struct train_pair *pair = &p->pairs[p->log[i].pair];
        if (pair->count > 0) /* else it came up and went in the same step */
            p->positions[pair->at + pair->n++] = p->log[i].position;
    }
    p->n_log = p->n_touched = 0;
    return 0;
}

const struct train_pair *nl_train_pairs_next(struct train_pairs *p)
{
    while (p->n_queue > 0) {
        struct train_queued *top = &p->queue[0];
        const struct train_pair *pair = &p->pairs[top->pair];
        bool current = top->count == pair->count;
        if (current && pair->count <= 0)
            break;
        if (current)
            *top = p->queue[--p->n_queue];
        else
            top->count = pair->count;
        if (p->n_queue > 0)
            sift_down(p);
        if (current)
            return pair;
    }
    return NULL;
}
