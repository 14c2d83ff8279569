/*
 * faults.h: what is wrong with a file: the first fault as an error, or every one for a checker.
 */
#ifndef NL_FAULTS_H
#define NL_FAULTS_H

#include "base.h"

struct nl_faults {
    /* Set: stop at the first fault, which becomes this error (NL_DATA, with ": path" behind it). */
    struct nl_error *error;
    /* Else called for each fault: "what is wrong: where", without the path; may be NULL. */
    void (*report)(void *context, const char *path, const char *message);
    void *context;
    const char *path; /* the file being read; set by who reads it */
    long count;
    bool no_memory; /* not a fault of the file, but nothing can follow */
};

/* Counts and passes on a fault; true when the caller should go on. */
bool nl_fault(struct nl_faults *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Notes that memory ran out; false. */
bool nl_fault_memory(struct nl_faults *);

#endif
