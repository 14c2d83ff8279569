/*
 * The Precompiled normalizer: SentencePiece's precompiled_charsmap, base64 of
 *
 *   u32 size | a trie of `size` bytes: u32 units | replacements, each ended by a zero byte
 *
 * little-endian. The trie is a double array (darts-clone): a unit's low 8 bits are its label, bit 8 says that
 * a value hangs on it, bits 10 to 30 are the offset to its children, by 256 more if bit 9 is set; a unit with
 * bit 31 is a value: the offset of a replacement. As the reference: a grapheme cluster of less than six bytes
 * is replaced as a whole by what its shortest mapped beginning becomes, longer ones go character by
 * character.
 */
#include "tok.h"
#include "unicode.h"
#include "unicode_sets.h"

enum { SHORT_CLUSTER = 6 };

static int base64_value(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* In place; false when it is none. */
static bool decode_base64(struct nl_buf *text)
{
    size_t size = text->size, out = 0, padding = 0;
    if (size % 4 != 0)
        return false;
    while (padding < 2 && padding < size && text->data[size - 1 - padding] == '=')
        padding++;
    for (size_t at = 0; at < size; at += 4) {
        uint32_t bits = 0;
        size_t skip = at + 4 == size ? padding : 0;
        for (size_t i = 0; i < 4; i++) {
            int value = i < 4 - skip ? base64_value((unsigned char)text->data[at + i]) : 0;
            if (value < 0)
                return false;
            bits = bits << 6 | (uint32_t)value;
        }
        for (size_t i = 0; i < 3; i++) {
            unsigned char byte = (unsigned char)(bits >> (16 - 8 * i));
            if (i < 3 - skip)
                text->data[out++] = (char)byte;
            else if (byte != 0)
                return false;
        }
    }
    text->size = out;
    return true;
}

static uint32_t unit(const char *trie, size_t i)
{
    unsigned char bytes[4];
    memcpy(bytes, trie + 4 * i, 4);
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

int nl_tok_load_charsmap(struct nl_tokenizer *tok, const struct nl_json *json, struct tok_stage *stage,
                         struct nl_error *error)
{
    struct nl_buf map = {0};
    int got = nl_tok_json_string(json, "precompiled_charsmap", &map, error), result = -1;
    if (got == 0)
        nl_fail(error, NL_DATA, "no string precompiled_charsmap of Precompiled");
    if (got == 1) {
        bool good = decode_base64(&map) && map.size >= 4;
        size_t size = good ? unit(map.data, 0) / 4 * 4 : 0, rest = good ? map.size - 4 : 0;
        const char *trie = map.data + 4;
        if (!good || size == 0 || size > rest || nl_utf8_check(trie + size, rest - size, NULL) != rest - size)
            nl_fail(error, NL_DATA, "not a map of characters: precompiled_charsmap of Precompiled");
        else
            result = nl_tok_intern(tok, trie, size, &stage->text, error) != 0
                         ? -1
                         : nl_tok_intern(tok, trie + size, rest - size, &stage->more, error);
    }
    nl_buf_free(&map);
    return result;
}

/* Where a unit's children begin, as the other part of an exclusive or. */
static size_t offset_of(uint32_t u)
{
    return (size_t)(u >> 10) << ((u & 1u << 9) >> 6);
}

/* What the shortest mapped beginning of the text becomes; NULL when none is mapped. */
static const char *find(const char *trie, size_t n_units, struct tok_string more, const char *replacements,
                        const char *text, size_t length, size_t *size)
{
    size_t node = offset_of(unit(trie, 0));
    for (size_t i = 0; i < length && text[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)text[i];
        node ^= byte;
        if (node >= n_units)
            return NULL;
        uint32_t u = unit(trie, node);
        if ((u & (1u << 31 | 0xff)) != byte)
            return NULL;
        node ^= offset_of(u);
        if (!(u >> 8 & 1))
            continue;
        size_t at = node < n_units ? unit(trie, node) & 0x7fffffff : SIZE_MAX;
        if (at > more.size || (at < more.size && (replacements[at] & 0xc0) == 0x80))
            return NULL;
        const char *end = memchr(replacements + at, '\0', more.size - at);
        *size = end ? (size_t)(end - replacements) - at : more.size - at;
        return replacements + at;
    }
    return NULL;
}

int nl_tok_charsmap(const struct nl_tokenizer *tok, const struct tok_stage *stage, const char *text,
                    size_t length, struct nl_buf *out, struct nl_error *error)
{
    const char *trie = tok_text(tok, stage->text), *more = tok_text(tok, stage->more), *found;
    size_t n_units = stage->text.size / 4, size;
    for (size_t at = 0, end; at < length; at = end) {
        end = nl_reference_grapheme(text, length, at);
        if (end - at < SHORT_CLUSTER &&
            (found = find(trie, n_units, stage->more, more, text + at, end - at, &size))) {
            nl_buf_add(out, found, size);
            continue;
        }
        for (size_t step; at < end; at += step) {
            step = nl_utf8_size((unsigned char)text[at]);
            found = find(trie, n_units, stage->more, more, text + at, step, &size);
            nl_buf_add(out, found ? found : text + at, found ? size : step);
        }
    }
    return nl_buf_check(out, "text", error);
}
