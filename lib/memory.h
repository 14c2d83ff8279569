/*
 * memory.h: how much memory a process may still take.
 */
#ifndef NL_MEMORY_H
#define NL_MEMORY_H

#include "base.h"

/* The smallest of what the system says is available and what the cgroups and RLIMIT_AS leave; UINT64_MAX when
 * nothing says. */
uint64_t nl_memory_available(void);

#endif
