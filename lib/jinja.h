/*
 * jinja.h: templates of the Jinja language, as chat templates use it.
 *
 * The language is what such templates use of jinja2 3.1 as transformers sets it up: a sandbox in which
 * nothing can be changed but namespaces, trim_blocks, lstrip_blocks, {% break %} and {% continue %}, {%
 * generation %}, an undefined that prints as nothing and fails when it is used, raise_exception,
 * strftime_now, a tojson that escapes no HTML. Values print as Python prints them. Integers are of 64 bits.
 * There is no with, call, include, import or block, and of filters, tests and methods only those of the
 * tables in jinja_filters.c, jinja_text.c and jinja_access.c.
 *
 * What is not understood is refused with its name and line (NL_UNSUPPORTED); faults of the template and
 * raise_exception are NL_DATA. Templates are hostile: nesting, steps, memory and output are bounded.
 *
 * A template is immutable once opened. A run holds the variables of one rendering, and what was computed.
 */
#ifndef NL_JINJA_H
#define NL_JINJA_H

#include <time.h>

#include "buf.h"

struct nl_jinja;
struct nl_jinja_run;

/* Compiles `length` bytes of UTF-8, at most 1 MiB, which are not needed afterwards; `name` is for messages.
 */
struct nl_jinja *nl_jinja_open(const char *source, size_t length, const char *name, struct nl_error *error);
void nl_jinja_close(struct nl_jinja *);

struct nl_jinja_run *nl_jinja_run_open(struct nl_error *error);
void nl_jinja_run_close(struct nl_jinja_run *);
/* A variable; everything is copied. A second value takes the place of the first. The value is that of JSON
   text as Python's json.loads reads it: of equal keys the last counts, 1 and 1.0 differ. */
int nl_jinja_set_json(struct nl_jinja_run *, const char *key, const char *text, size_t length,
                      struct nl_error *error);
/* The local time that strftime_now tells; without it the clock's. */
void nl_jinja_set_now(struct nl_jinja_run *, time_t now);
/* Appends the rendering of a template with the run's variables, at most 256 MiB. Once for each run. */
int nl_jinja_render(struct nl_jinja_run *, const struct nl_jinja *, struct nl_buf *out,
                    struct nl_error *error);

#endif
