/*
 * tensor_order.h: names of tensors in the order in which a forward pass comes to them.
 *
 * Embeddings, then for each layer hidden_states.i, then the layer's tensors in the order of its operations,
 * then the final norm, the head, the logits. Knows the names of traces (trace.h) and of checkpoints; what it
 * does not know stands at the end of its layer, or of all, in natural order.
 */
#ifndef NL_TENSOR_ORDER_H
#define NL_TENSOR_ORDER_H

/* As strcmp; 0 only for equal strings. */
int nl_execution_compare(const char *a, const char *b);

#endif
