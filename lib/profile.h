/*
 * profile.h: where the time of a model's steps goes: by operation, and by layer.
 *
 * An operation's time is the wall clock between its end and the end of the one before it, threads' waiting
 * for each other included; the first one's counts from the step's begin. So operations, and layers, add up to
 * the whole.
 */
#ifndef NL_PROFILE_H
#define NL_PROFILE_H

#include "model.h"

struct nl_profile;

struct nl_profile *nl_profile_new(struct nl_error *error); /* NULL: NL_RESOURCE */
void nl_profile_free(struct nl_profile *);                 /* NULL is fine */
/* Before a step of the model, the same each time. NL_RESOURCE. */
int nl_profile_reserve(struct nl_profile *, const struct nl_model *model, struct nl_error *error);
/* For nl_engine_step_observed. The profile must outlive the step. */
struct nl_observer nl_profile_observer(struct nl_profile *);
/*
 * Appends a table, tabs between: a heading; a line for each operation in the order of a layer,
 * "operation NAME CALLS MS SHARE"; for each layer, "layer NUMBER CALLS MS SHARE", where CALLS counts
 * operations, and the number of what is before and after the layers is empty; and "total", its number the ids
 * that went through, its calls the steps. SHARE is of the total's time, 0 to 1. Out of memory shows in *out.
 */
void nl_profile_print(const struct nl_profile *, struct nl_buf *out);

#endif
