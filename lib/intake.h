/*
 * intake.h: the input side of the programs that run a model: an id stream, the model that it asks for, its
 * prompts.
 *
 * The model is opened when the first sequence begins: `model` if given, else what the stream's NLS1 names,
 * else the default (modelpath.h).
 */
#ifndef NL_INTAKE_H
#define NL_INTAKE_H

#include "engine.h"
#include "generation.h"
#include "stream.h"

struct nl_intake {
    /* set by the caller */
    struct nl_reader *reader;
    const char *model; /* -m, or NULL */
    struct nl_engine_options options;
    bool any_tokenizer;
    /* set when the first sequence begins */
    struct nl_engine *engine;
    char *folder;
    struct nl_generation generation;
    uint64_t n_sequences;             /* begun */
    struct nl_json *upstream_failure; /* the FAIL that was read */
};

/* A sequence as it comes in. */
struct nl_prompt {
    struct nl_json *header; /* its NLS1; owned */
    struct nl_json *done;   /* its DONE, once it came; owned */
    struct nl_ids ids;
    uint64_t seq;            /* of the NLS1; where that says none, counted */
    struct nl_error failure; /* code not NL_OK: it cannot run */
};

enum nl_intake_result { NL_INTAKE_END, NL_INTAKE_MORE, NL_INTAKE_PROMPT };

/*
 * Reads one frame into *prompt (zero-initialised for a new sequence). NL_INTAKE_PROMPT: its DONE came. -1 and
 * *error: the stream is bad or ended early, the model cannot be opened; an upstream that wrote FAIL is
 * NL_UPSTREAM with an empty message. A stream made with another tokenizer than the model's, or an upstream
 * DONE that says error, is in prompt->failure (the latter NL_UPSTREAM with an empty message: somebody else
 * has reported it).
 */
int nl_intake_next(struct nl_intake *, struct nl_prompt *prompt, struct nl_error *error);
/* True when the upstream's DONE says `finish`. */
bool nl_prompt_finish_is(const struct nl_prompt *, const char *finish);
/* The NLS1 for the output: the prompt's keys (not session: a stream needs its DONE), and model, vocab_size,
   eos. NULL when out of memory; the caller frees it. */
struct nl_json *nl_intake_header(const struct nl_intake *, const struct nl_prompt *prompt,
                                 struct nl_error *error);
/* Writes FAIL: the upstream's, passed on, or one that says `cause`. */
int nl_intake_write_failure(const struct nl_intake *, struct nl_writer *writer, const struct nl_error *cause);
/* BOS in place of an empty prompt; -1 and NL_DATA where the model has none. */
int nl_intake_fill_empty(const struct nl_intake *, struct nl_prompt *prompt, struct nl_error *error);
void nl_prompt_free(struct nl_prompt *);  /* zero-initialised again */
void nl_intake_close(struct nl_intake *); /* the reader stays the caller's */

#endif
