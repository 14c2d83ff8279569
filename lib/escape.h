/*
 * escape.h: names from outside, made fit for a terminal, a line, a message.
 */
#ifndef NL_ESCAPE_H
#define NL_ESCAPE_H

#include "buf.h"

/* Appends a C string of UTF-8 (U+0000 as C0 80) with control and direction-changing characters
   written \uXXXX and the backslash doubled: one line, no tab, unambiguous. Where that takes more than `limit`
   bytes (0: no limit) it is cut and "..." follows. */
void nl_escape(struct nl_buf *out, const char *name, size_t limit);

enum { NL_SHOWN = 240 };
/* The same into a fixed array for messages, quoted: 'name'. Returns shown. */
const char *nl_show(char shown[NL_SHOWN], const char *name);

#endif
