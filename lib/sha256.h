/*
 * sha256.h: SHA-256 (FIPS 180-4).
 */
#ifndef NL_SHA256_H
#define NL_SHA256_H

#include "base.h"

struct nl_sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes so far */
    uint8_t block[64];
};

void nl_sha256_init(struct nl_sha256 *);
void nl_sha256_add(struct nl_sha256 *, const void *bytes, size_t size);
void nl_sha256_finish(struct nl_sha256 *, char hex[65]); /* lower case, NUL-terminated */

#endif
