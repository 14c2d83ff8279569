/*
 * escape.h: names from outside, made fit for a terminal, a line, a message.
 *
 * A name is a C string, meant to be UTF-8, with U+0000 as the two bytes C0 80. Escaped are control
 * characters, line separators and what changes the direction of the text around it.
 */
#ifndef NL_ESCAPE_H
#define NL_ESCAPE_H

#include "buf.h"

/* Appends the name with \uXXXX, \xXX for a byte that is not UTF-8, and the backslash doubled: one line, no
   tab, unambiguous. Where that takes more than `limit` bytes (0: no limit) it is cut and "..." follows. */
void nl_escape(struct nl_buf *out, const char *name, size_t limit);
/* Appends the name as a JSON string; a byte that is not UTF-8 becomes U+FFFD. */
void nl_escape_json(struct nl_buf *out, const char *name);

enum { NL_SHOWN = 240 };
/* Escaped, at most NL_SHOWN bytes, in quotes, for messages: 'name'. Returns shown. */
const char *nl_show(char shown[NL_SHOWN], const char *name);

#endif
