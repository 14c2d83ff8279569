/*
 * trace.h: what a forward pass computes on its way, kept row by row and written as a .safetensors file.
 *
 * The tensors of a sequence of T ids, float32 but the ids, in the order of the computation; layer i of L:
 *
 *     ids                        I64 [T]
 *     hidden_states.0            [T][hidden_size] after the embedding
 *     layers.i.q                 [T][n_heads][head_dim]: projected, with bias and q/k norm; not rotated
 *     layers.i.k, layers.i.v     [T][n_kv_heads][head_dim], the same
 *     layers.i.q_rope            [T][n_heads][head_dim] as attention uses it (rotated, where layer i does)
 *     layers.i.k_rope            [T][n_kv_heads][head_dim], the same
 *     layers.i.attention         [n_heads][T][T]: softmax(cap(scale * q_rope . k_rope)), 0 where masked
 *     layers.i.heads             [T][n_heads][head_dim]: attention's result, before the output product
 *     layers.i.attention_output  [T][hidden_size]: after it, before any norm of the branch
 *     layers.i.mlp_output        [T][hidden_size]: before any norm of the branch
 *     hidden_states.i+1          [T][hidden_size]: the residual stream after the layer; the last after the
 *                                final norm (hidden_states are transformers' output_hidden_states)
 *     logits                     [T][vocab_size]
 *
 * No kernel keeps attention's probabilities, so they are computed here from q_rope and k_rope, in float32; a
 * kernel's fault in attention shows in `heads`. They are T * T floats for each head and layer: sequences of
 * more than NL_TRACE_ATTENTION ids have none.
 */
#ifndef NL_TRACE_H
#define NL_TRACE_H

#include "model.h"

enum { NL_TRACE_ATTENTION = 256 };

struct nl_trace;

struct nl_trace *nl_trace_new(struct nl_error *error); /* NULL: NL_RESOURCE */
void nl_trace_free(struct nl_trace *);                 /* NULL is fine */
/*
 * Makes room for the first `length` positions of one sequence, before the step that brings them; all is kept
 * in memory until it is written. NL_RESOURCE: it does not fit. The model is the same each time and outlives
 * the trace.
 */
int nl_trace_reserve(struct nl_trace *, const struct nl_model *model, uint32_t length,
                     struct nl_error *error);
/* For nl_engine_step_observed, with one feed all of whose rows are outputs; steps are joined by position. The
   trace must outlive the step. */
struct nl_observer nl_trace_observer(struct nl_trace *);
uint32_t nl_trace_length(const struct nl_trace *); /* T so far, the failed step included */
/* Writes the file to fd; `name` is for messages. */
int nl_trace_write(const struct nl_trace *, int fd, const char *name, struct nl_error *error);

#endif
