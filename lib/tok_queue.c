#include "tok_queue.h"

#include <stdlib.h>

#include "tok.h"

enum {
    FEW = 64,        /* candidates: sorted by insertion */
    LARGE = 1 << 15, /* candidates: dealt into finer buckets */
};

static int push_heap(struct tok_queue *queue, uint64_t new, struct nl_error *error)
{
    if (nl_tok_grow(&queue->heap, &queue->heap_capacity, queue->heap_size + 1, sizeof *queue->heap, error) !=
        0)
        return -1;
    size_t at = queue->heap_size++;
    for (; at > 0 && new < queue->heap[(at - 1) / 2]; at = (at - 1) / 2)
        queue->heap[at] = queue->heap[(at - 1) / 2];
    queue->heap[at] = new;
    return 0;
}

static uint64_t pop_heap(struct tok_queue *queue)
{
    uint64_t *heap = queue->heap, top = heap[0], last = heap[--queue->heap_size];
    size_t at = 0, n = queue->heap_size;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* How many bits of the rank do not count for its bucket: none for low ranks, which are the frequent ones. */
static unsigned spare_bits(uint32_t rank)
{
    return rank >> NL_TOK_PART_BITS ? 31 - NL_TOK_PART_BITS - (unsigned)__builtin_clz(rank) : 0;
}

static uint32_t bucket_of(uint64_t candidate)
{
    uint32_t rank = (uint32_t)(candidate >> 32), bits = spare_bits(rank);
    return (bits << NL_TOK_PART_BITS) + (rank >> bits);
}

static uint32_t fine_of(uint64_t candidate)
{
    uint32_t rank = (uint32_t)(candidate >> 32), bits = spare_bits(rank);
    rank &= (1u << bits) - 1;
    return bits > NL_TOK_FINE_BITS ? rank >> (bits - NL_TOK_FINE_BITS) : rank;
}

void nl_tok_queue_start(struct tok_queue *queue)
{
    queue->heap_size = queue->run_at = queue->run_size = 0;
    memset(queue->buckets, 0, sizeof queue->buckets);
    if (queue->opened_fine < NL_TOK_FINE) /* a word that failed */
        memset(queue->fine, 0, sizeof queue->fine);
    queue->opened_fine = NL_TOK_FINE;
    queue->opened = queue->free = 0;
    queue->n_chunks = 1;
}

static int add_chunk(struct tok_queue *queue, struct tok_bucket *bucket, struct nl_error *error)
{
    uint32_t chunk = queue->free;
    if (chunk) {
        queue->free = queue->chunks[chunk].next;
    } else {
        if (queue->n_chunks == UINT32_MAX)
            return nl_fail_memory(error, "word");
        if (nl_tok_grow(&queue->chunks, &queue->chunks_capacity, queue->n_chunks + 1, sizeof *queue->chunks,
                        error) != 0)
            return -1;
        chunk = (uint32_t)queue->n_chunks++;
    }
    queue->chunks[chunk].next = 0;
    if (bucket->first)
        queue->chunks[bucket->last].next = chunk;
    else
        bucket->first = chunk;
    bucket->last = chunk;
    bucket->size = 0;
    return 0;
}

static int add_to(struct tok_queue *queue, struct tok_bucket *bucket, uint64_t candidate,
                  struct nl_error *error)
{
    if ((!bucket->first || bucket->size == NL_TOK_CHUNK) && add_chunk(queue, bucket, error) != 0)
        return -1;
    queue->chunks[bucket->last].candidates[bucket->size++] = candidate;
    return 0;
}

int nl_tok_queue_push(struct tok_queue *queue, uint64_t candidate, struct nl_error *error)
{
    uint32_t at = bucket_of(candidate);
    if (at >= queue->opened)
        return add_to(queue, &queue->buckets[at], candidate, error);
    if (at + 1 == queue->opened && fine_of(candidate) >= queue->opened_fine)
        return add_to(queue, &queue->fine[fine_of(candidate)], candidate, error);
    return push_heap(queue, candidate, error);
}

static bool is_sorted(const uint64_t *run, size_t size)
{
    for (size_t i = 1; i < size; i++)
        if (run[i] < run[i - 1])
            return false;
    return true;
}

static void insertion_sort(uint64_t *run, size_t size)
{
    for (size_t i = 1; i < size; i++) {
        uint64_t moved = run[i];
        size_t at = i;
        for (; at > 0 && moved < run[at - 1]; at--)
            run[at] = run[at - 1];
        run[at] = moved;
    }
}

/* Distributes the run by one of its bytes, the order within each value being kept. */
static void sort_by_byte(struct tok_queue *queue, unsigned shift)
{
    size_t starts[256] = {0}, start = 0;
    uint64_t *from = queue->run, *to = queue->spare;
    for (size_t i = 0; i < queue->run_size; i++)
        starts[from[i] >> shift & 0xff]++;
    for (unsigned byte = 0; byte < 256; byte++) {
        size_t count = starts[byte];
        starts[byte] = start;
        start += count;
    }
    for (size_t i = 0; i < queue->run_size; i++)
        to[starts[from[i] >> shift & 0xff]++] = from[i];
    queue->run = to;
    queue->spare = from;
}

static int sort_run(struct tok_queue *queue, struct nl_error *error)
{
    uint64_t *run = queue->run, differing = 0;
    if (is_sorted(run, queue->run_size))
        return 0;
    if (queue->run_size <= FEW) {
        insertion_sort(run, queue->run_size);
        return 0;
    }
    if (nl_tok_grow(&queue->spare, &queue->spare_capacity, queue->run_capacity, sizeof *queue->spare,
                    error) != 0)
        return -1;
    queue->run_capacity = queue->spare_capacity = /* they change places */
        queue->run_capacity < queue->spare_capacity ? queue->run_capacity : queue->spare_capacity;
    for (size_t i = 1; i < queue->run_size; i++)
        differing |= run[i] ^ run[0];
    for (unsigned shift = 0; shift < 64; shift += 8)
        if (differing >> shift & 0xff)
            sort_by_byte(queue, shift);
    return 0;
}

/* Takes the candidates out of a bucket. */
static int empty_bucket(struct tok_queue *queue, struct tok_bucket *bucket, struct nl_error *error)
{
    size_t n = 0;
    for (uint32_t chunk = bucket->first; chunk; chunk = queue->chunks[chunk].next) {
        uint32_t size = chunk == bucket->last ? bucket->size : NL_TOK_CHUNK;
        if (nl_tok_grow(&queue->run, &queue->run_capacity, n + size, sizeof *queue->run, error) != 0)
            return -1;
        memcpy(queue->run + n, queue->chunks[chunk].candidates, size * sizeof *queue->run);
        n += size;
    }
    queue->chunks[bucket->last].next = queue->free;
    queue->free = bucket->first;
    bucket->first = 0;
    queue->run_at = 0;
    queue->run_size = n;
    return 0;
}

/* Deals the run into the fine buckets. */
static int deal_run(struct tok_queue *queue, struct nl_error *error)
{
    queue->opened_fine = 0;
    for (; queue->run_at < queue->run_size; queue->run_at++) {
        uint64_t candidate = queue->run[queue->run_at];
        if (add_to(queue, &queue->fine[fine_of(candidate)], candidate, error) != 0)
            return -1;
    }
    return 0;
}

/* Fills the run from the lowest bucket that is not empty; 0 when there is none. */
static int open_bucket(struct tok_queue *queue, struct nl_error *error)
{
    for (;;) {
        while (queue->opened_fine < NL_TOK_FINE) {
            struct tok_bucket *bucket = &queue->fine[queue->opened_fine++];
            if (bucket->first)
                return empty_bucket(queue, bucket, error) == 0 && sort_run(queue, error) == 0 ? 1 : -1;
        }
        while (queue->opened < NL_TOK_BUCKETS && !queue->buckets[queue->opened].first)
            queue->opened++;
        if (queue->opened == NL_TOK_BUCKETS)
            return 0;
        if (empty_bucket(queue, &queue->buckets[queue->opened++], error) != 0)
            return -1;
        if (queue->run_size <= LARGE)
            return sort_run(queue, error) == 0 ? 1 : -1;
        if (deal_run(queue, error) != 0)
            return -1;
    }
}

int nl_tok_queue_pop(struct tok_queue *queue, uint64_t *candidate, struct nl_error *error)
{
    if (queue->run_at == queue->run_size && queue->heap_size == 0) {
        int got = open_bucket(queue, error);
        if (got <= 0)
            return got;
    }
    if (queue->run_at < queue->run_size &&
        (queue->heap_size == 0 || queue->run[queue->run_at] < queue->heap[0]))
        *candidate = queue->run[queue->run_at++];
    else
        *candidate = pop_heap(queue);
    return 1;
}

void nl_tok_queue_free(struct tok_queue *queue)
{
    free(queue->heap);
    free(queue->chunks);
    free(queue->run);
    free(queue->spare);
}
