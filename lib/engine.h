/*
 * engine.h: a model with its KV cache, advanced step by step for several sequences at once.
 *
 * The results for a sequence are the same bits however its ids are cut into calls and whatever other
 * sequences share them (ops.h).
 */
#ifndef NL_ENGINE_H
#define NL_ENGINE_H

#include "model.h"

enum { NL_MAX_BATCH = 64, NL_DEFAULT_BATCH = 8, NL_DEFAULT_CHUNK = 512 };

struct nl_engine_options {
    const char *device;     /* see nl_backend_open; NULL: $NL_DEVICE, else auto */
    const char *isa;        /* see nl_cpu_open; NULL: $NL_ISA, else the best */
    unsigned threads;       /* 0: $NL_THREADS, else nl_pool_default_threads() */
    uint32_t context;       /* positions of a sequence; 0: max_position_embeddings */
    uint32_t batch;         /* sequences at once, up to NL_MAX_BATCH; 0: 8 */
    uint32_t prefill_chunk; /* rows of a step that do not choose; 0: 512 */
    uint32_t max_outputs;   /* rows of logits of a step; at least batch is made */
    bool bfloat16;          /* activations are rounded as transformers' are in that type (ops.h) */
};

struct nl_engine;
struct nl_sequence;

/* Opens a model folder. Errors: nl_model_open's; NL_UNSUPPORTED: bfloat16 on this device; NL_RESOURCE when
   weights, cache and activations do not fit in memory (only a context that was asked for counts in full; else
   memory is looked at as the cache grows).
 */
struct nl_engine *nl_engine_open(const char *folder, const struct nl_engine_options *options,
                                 struct nl_error *error);
void nl_engine_close(struct nl_engine *);
const struct nl_model *nl_engine_model(const struct nl_engine *);
const char *nl_engine_backend(const struct nl_engine *); /* "cpu avx2" */
unsigned nl_engine_threads(const struct nl_engine *);
uint32_t nl_engine_context(const struct nl_engine *);
uint32_t nl_engine_batch(const struct nl_engine *);
uint32_t nl_engine_max_outputs(const struct nl_engine *);
uint32_t nl_engine_chunk(const struct nl_engine *);

/* An empty sequence; at most `batch` at a time (NULL and NL_RESOURCE beyond). */
struct nl_sequence *nl_engine_new_sequence(struct nl_engine *, struct nl_error *error);
void nl_engine_free_sequence(struct nl_engine *, struct nl_sequence *);
uint32_t nl_sequence_length(const struct nl_sequence *); /* positions in the cache */
/* Forgets all positions from `length` on. */
void nl_sequence_cut(struct nl_sequence *, uint32_t length);

/* Ids to append to one sequence in a step, and the answer. */
struct nl_feed {
    struct nl_sequence *sequence;
    const uint32_t *ids;
    uint32_t count;
    uint32_t whole;       /* length of the sequence with all ids that belong to this input; 0: with these */
    uint32_t n_outputs;   /* logits are wanted for the last so many of the ids; 0 to count */
    bool best_only;       /* the logits are not looked at: a device need not send them */
    float *logits;        /* out: [n_outputs][vocab_size], until the next step; may be changed in place */
    const uint32_t *best; /* out: [n_outputs], the arg-max of each, lowest id first */
};

/*
 * One step: at most chunk + batch ids and max_outputs outputs over all feeds, each sequence once. NL_DATA: an
 * id outside the vocabulary, named by its position; NaN logits, naming the first layer that made one.
 * NL_TOO_LONG: past the context. NL_RESOURCE: no memory for the cache. After an error the sequences are as
 * before.
 */
int nl_engine_step(struct nl_engine *, struct nl_feed *feeds, size_t n_feeds, struct nl_error *error);
/* The same with an observer of every operation, also of those that compute the cache anew where longrope
   crosses its border: they go over positions that were seen before. */
int nl_engine_step_observed(struct nl_engine *, struct nl_feed *feeds, size_t n_feeds,
                            const struct nl_observer *, struct nl_error *error);

/* Checks ids against the vocabulary alone: NL_DATA. */
int nl_engine_check_ids(const struct nl_engine *, const uint32_t *ids, size_t count, struct nl_error *error);
/* Checks ids against the vocabulary and the room that is left, before any work: NL_DATA or NL_TOO_LONG. */
int nl_engine_check(const struct nl_engine *, const struct nl_sequence *, const uint32_t *ids, size_t count,
                    struct nl_error *error);

#endif
