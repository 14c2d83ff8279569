#include "stream.h"

/*
 * Eight bytes a step: table[k][b] is the remainder of byte b followed by k zero bytes. The remainder is
 * linear over xor, so each table follows from those of the eight bytes with one bit set, which are all that
 * is written down here: 64 successive states of the shift register of the polynomial 0xEDB88320.
 */
#define ONE(i, b0, b1, b2, b3, b4, b5, b6, b7)                                                               \
    ((i)&1 ? b0 : 0) ^ ((i)&2 ? b1 : 0) ^ ((i)&4 ? b2 : 0) ^ ((i)&8 ? b3 : 0) ^ ((i)&16 ? b4 : 0) ^          \
        ((i)&32 ? b5 : 0) ^ ((i)&64 ? b6 : 0) ^ ((i)&128 ? b7 : 0)
#define FOUR(i, ...)                                                                                         \
    ONE(i, __VA_ARGS__), ONE((i) + 1, __VA_ARGS__), ONE((i) + 2, __VA_ARGS__), ONE((i) + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                                                      \
    FOUR(i, __VA_ARGS__), FOUR((i) + 4, __VA_ARGS__), FOUR((i) + 8, __VA_ARGS__), FOUR((i) + 12, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)                                                                                   \
    SIXTEEN(i, __VA_ARGS__), SIXTEEN((i) + 16, __VA_ARGS__), SIXTEEN((i) + 32, __VA_ARGS__),                 \
        SIXTEEN((i) + 48, __VA_ARGS__)
#define ALL(...)                                                                                             \
    SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__), SIXTY_FOUR(128, __VA_ARGS__),                   \
        SIXTY_FOUR(192, __VA_ARGS__)

/* clang-format off */
static const uint32_t table[8][256] = {
    {ALL(0x77073096u, 0xee0e612cu, 0x076dc419u, 0x0edb8832u, 0x1db71064u, 0x3b6e20c8u, 0x76dc4190u, 0xedb88320u)},
    {ALL(0x191b3141u, 0x32366282u, 0x646cc504u, 0xc8d98a08u, 0x4ac21251u, 0x958424a2u, 0xf0794f05u, 0x3b83984bu)},
    {ALL(0x01c26a37u, 0x0384d46eu, 0x0709a8dcu, 0x0e1351b8u, 0x1c26a370u, 0x384d46e0u, 0x709a8dc0u, 0xe1351b80u)},
    {ALL(0xb8bc6765u, 0xaa09c88bu, 0x8f629757u, 0xc5b428efu, 0x5019579fu, 0xa032af3eu, 0x9b14583du, 0xed59b63bu)},
    {ALL(0x3d6029b0u, 0x7ac05360u, 0xf580a6c0u, 0x30704bc1u, 0x60e09782u, 0xc1c12f04u, 0x58f35849u, 0xb1e6b092u)},
    {ALL(0xcb5cd3a5u, 0x4dc8a10bu, 0x9b914216u, 0xec53826du, 0x03d6029bu, 0x07ac0536u, 0x0f580a6cu, 0x1eb014d8u)},
    {ALL(0xa6770bb4u, 0x979f1129u, 0xf44f2413u, 0x33ef4e67u, 0x67de9cceu, 0xcfbd399cu, 0x440b7579u, 0x8816eaf2u)},
    {ALL(0xccaa009eu, 0x4225077du, 0x844a0efau, 0xd3e51bb5u, 0x7cbb312bu, 0xf9766256u, 0x299dc2edu, 0x533b85dau)},
};
/* clang-format on */

uint32_t nl_crc32(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        uint32_t low, high;
        memcpy(&low, p, 4); /* little-endian: see stream_internal.h */
        memcpy(&high, p + 4, 4);
        low ^= crc;
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
              table[4][low >> 24] ^ table[3][high & 255] ^ table[2][high >> 8 & 255] ^
              table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    for (; size > 0; size--)
        crc = table[0][(crc ^ *p++) & 255] ^ crc >> 8;
    return ~crc;
}
