#include "sha256.h"

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void schedule(const uint8_t block[64], uint32_t w[64])
{
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

/* The eight words do not move from round to round: their names do. */
static void compress(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64], s[8];
    schedule(block, w);
    memcpy(s, state, sizeof s);
#pragma GCC unroll 8
    for (unsigned i = 0; i < 64; i++) {
        uint32_t a = s[-i & 7], b = s[(1 - i) & 7], c = s[(2 - i) & 7], *d = &s[(3 - i) & 7];
        uint32_t e = s[(4 - i) & 7], f = s[(5 - i) & 7], g = s[(6 - i) & 7], *h = &s[(7 - i) & 7];
        uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25), choice = (e & f) ^ (~e & g);
        uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
        uint32_t t1 = *h + sum1 + choice + round_constants[i] + w[i];
        *d += t1;
        *h = t1 + sum0 + majority;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void nl_sha256_init(struct nl_sha256 *sha)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(sha->state, start, sizeof start);
    sha->size = 0;
}

void nl_sha256_add(struct nl_sha256 *sha, const void *bytes, size_t size)
{
    const uint8_t *rest = bytes;
    while (size > 0) {
        size_t have = sha->size % 64, step = 64 - have;
        if (step > size)
            step = size;
        if (step == 64) {
            compress(sha->state, rest);
        } else {
            memcpy(sha->block + have, rest, step);
            if (have + step == 64)
                compress(sha->state, sha->block);
        }
        sha->size += step;
        rest += step;
        size -= step;
    }
}

void nl_sha256_finish(struct nl_sha256 *sha, char hex[65])
{
    uint64_t bits = sha->size * 8;
    static const uint8_t padding[64] = {0x80};
    nl_sha256_add(sha, padding, 1 + (119 - sha->size % 64) % 64);
    uint8_t tail[8];
    for (unsigned i = 0; i < 8; i++)
        tail[i] = (uint8_t)(bits >> (56 - 8 * i));
    nl_sha256_add(sha, tail, 8);
    for (unsigned i = 0; i < 64; i++)
        hex[i] = "0123456789abcdef"[sha->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = '\0';
}
