/*
 * backend.h: what a backend is to ops.c's callers: a table of calls, and where one comes from another file.
 */
#ifndef NL_BACKEND_H
#define NL_BACKEND_H

#include "ops.h"

/* The functions of ops.h by the same names; each gets its own backend. */
struct nl_backend_calls {
    void (*close)(struct nl_backend *);
    int (*load)(struct nl_backend *, const struct nl_plan *plan, uint64_t n_blocks, struct nl_error *error);
    void (*release_block)(struct nl_backend *, uint32_t block);
    uint64_t (*available)(struct nl_backend *); /* NULL: the host's memory */
    int (*run)(struct nl_backend *, const struct nl_step *step, const struct nl_observer *observer,
               struct nl_error *error);
};

/* The first member of every backend. */
struct nl_backend {
    const struct nl_backend_calls *calls;
    char name[80];
    void *library; /* that the backend's code is in, or NULL */
    bool rounds;   /* runs plans with bfloat16 set */
};

/* What a backend in a shared object exports as NL_BACKEND_SYMBOL. It is of use only to the programs it was
   built with: the number changes with every change of ops.h and this file. */
enum { NL_BACKEND_ABI = 3 };
#define NL_BACKEND_SYMBOL "nl_backend_entry"
struct nl_backend_entry {
    uint32_t abi;
    /* NL_RESOURCE: no such device. */
    struct nl_backend *(*open)(unsigned device, struct nl_error *error);
};

#endif
