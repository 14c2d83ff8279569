/*
 * tensor_diff.h: two sets of tensors compared by name: what st-diff(1) does.
 *
 * A value a of the first agrees with b of the second when |a - b| <= atol + rtol * |b|, or when both are NaN
 * or the same infinity. All arithmetic is in double.
 */
#ifndef NL_TENSOR_DIFF_H
#define NL_TENSOR_DIFF_H

#include "checkpoint.h"

/* A new name for tensors of the first set. `from` and `to` have one wildcard each, or none: in `from` `*`
   (any text) or `{}` (a number), in `to` either, which what was found takes the place of. */
struct nl_rename {
    const char *from, *to; /* the caller's; `from` ends at the '=' */
    size_t from_length;
    const char *from_wildcard, *to_wildcard; /* in them; NULL: none */
};
/* "FROM=TO"; NL_USAGE. */
int nl_rename_parse(struct nl_rename *, const char *text, struct nl_error *error);

struct nl_diff_options {
    double atol, rtol;
    bool common;                     /* names that only one set has are left out */
    const struct nl_rename *renames; /* [n_renames]; the first that matches counts */
    size_t n_renames;
};

enum nl_verdict {
    NL_AGREES,
    NL_DIFFERS,
    NL_OTHER_SHAPE,
    NL_UNKNOWN_TYPE, /* one of a type that nl_elements cannot read, and the bytes are not the same */
    NL_ONLY_FIRST,
    NL_ONLY_SECOND,
    NL_VERDICTS,
};
const char *nl_verdict_name(enum nl_verdict); /* "agrees" */

/* One name of either set. */
struct nl_tensor_diff {
    char *name;                    /* the new one; owned */
    const struct nl_tensor *a, *b; /* NULL: that set lacks it */
    enum nl_verdict verdict;
    /* where both are there, of one shape, and of known types or the same bytes: */
    double max_abs, max_rel; /* of |a - b| and |a - b| / |b|; NaN where one is NaN, infinite for b = 0 */
    double cosine; /* of the angle between them as vectors, over what is finite in both; 1 of nothing */
    uint64_t bad, first_bad; /* elements that do not agree; the first's index */
    double first_a, first_b;
};

struct nl_diff {
    struct nl_tensor_diff *pairs; /* [count], in the order of execution */
    size_t count;
    size_t n_bad; /* whose verdict is not NL_AGREES */
};

/* Pairs and compares. NL_USAGE: two tensors of one name after renaming. The checkpoints have to outlive the
   result. */
int nl_diff_run(struct nl_diff *, const struct nl_checkpoint *a, const struct nl_checkpoint *b,
                const struct nl_diff_options *, struct nl_error *error);
void nl_diff_free(struct nl_diff *);
/* The first whose verdict is not NL_AGREES; NULL: none. */
const struct nl_tensor_diff *nl_diff_first(const struct nl_diff *);

/* Each appends to *out; out of memory shows in out->failed alone. The table ends with a line that names the
   first difference. */
void nl_diff_table(const struct nl_diff *, const struct nl_diff_options *, struct nl_buf *out);
/* name, verdict, shape, max abs, max rel, cosine, bad, first bad index, both values there; empty: has none.
 */
void nl_diff_tsv(const struct nl_diff *, struct nl_buf *out);
/* One object a line for each name. */
void nl_diff_json(const struct nl_diff *, struct nl_buf *out);

#endif
