/*
 * tok_queue.h: the merges that a word may still take, the lowest rank first, of one rank the leftmost.
 *
 * A heap of millions would miss the cache at every step. So candidates lie in buckets of neighbouring ranks,
 * of which the one being emptied is sorted, after it was dealt into smaller ones when it is large; what comes
 * meanwhile and belongs there or before goes to a heap, which stays small.
 */
#ifndef NL_TOK_QUEUE_H
#define NL_TOK_QUEUE_H

#include "base.h"

/* A candidate: the rank, then the position. */
static inline uint64_t tok_candidate(uint32_t rank, uint32_t position)
{
    return (uint64_t)rank << 32 | position;
}

struct tok_bucket {
    uint32_t first, last; /* chunks, 0: none */
    uint32_t size;        /* of the last chunk */
};
enum {
    NL_TOK_CHUNK = 31,
    NL_TOK_PART_BITS = 6, /* each power of two of ranks has so many buckets */
    NL_TOK_BUCKETS = (32 - NL_TOK_PART_BITS + 1) << NL_TOK_PART_BITS,
    NL_TOK_FINE_BITS = 10, /* a large bucket is dealt into so many */
    NL_TOK_FINE = 1 << NL_TOK_FINE_BITS,
};
struct tok_chunk {
    uint64_t candidates[NL_TOK_CHUNK];
    uint32_t next; /* 0: none */
};
struct tok_queue { /* zeroed at first */
    uint64_t *heap;
    size_t heap_size, heap_capacity;
    struct tok_bucket buckets[NL_TOK_BUCKETS], fine[NL_TOK_FINE]; /* fine: of the bucket before `opened` */
    uint32_t opened, opened_fine; /* lower buckets are gone: their candidates go to the heap */
    struct tok_chunk *chunks;     /* [0] is not used */
    size_t n_chunks, chunks_capacity;
    uint32_t free;           /* the first chunk that is free again, 0: none */
    uint64_t *run, *spare;   /* the bucket that is being emptied; to sort it */
    size_t run_at, run_size; /* what is left of it */
    size_t run_capacity, spare_capacity;
};

/* Empties the queue. */
void nl_tok_queue_start(struct tok_queue *);
int nl_tok_queue_push(struct tok_queue *, uint64_t candidate, struct nl_error *error);
/* 1 and the next; 0 when there is none; -1. */
int nl_tok_queue_pop(struct tok_queue *, uint64_t *candidate, struct nl_error *error);
void nl_tok_queue_free(struct tok_queue *);

#endif
