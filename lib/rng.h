/*
 * rng.h: random numbers without state: Philox4x32-10, a counter-based generator.
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. It works on
 * 32-bit integers only, so the numbers are the same on every machine, and any of them can be had without the
 * ones before.
 */
#ifndef NL_RNG_H
#define NL_RNG_H

#include "base.h"

/* out = the block that belongs to this counter and key. */
void nl_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/*
 * A number in [0, 1) with 53 random bits. Key: the seed, low half first. Counter: position, 0, then the
 * sequence's number, low half first. Of the block's words w0, w1 the number is (floor(w0 / 32) 2^26 +
 * floor(w1 / 64)) / 2^53.
 */
double nl_uniform(uint64_t seed, uint64_t sequence, uint32_t position);

/* A seed from the system, below 2^53 so that JSON can report it. -1 (NL_RESOURCE) when there is none to be
 * had. */
int nl_random_seed(uint64_t *seed, struct nl_error *error);

#endif
