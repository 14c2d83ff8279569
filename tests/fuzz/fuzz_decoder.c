/* Any ids through the decoders of the small tokenizers: the first byte chooses the tokenizer, the second the
   flags, then two bytes an id. Decoding piece by piece and all at once must give the same, and valid UTF-8.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tokenizer.h"
#include "unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"merges_pairs",       "bytelevel_added", "byte_fallback",
                                    "byte_fallback_hole", "metaspace_first", "normalized",
                                    "prepend_specials"};
enum { COUNT = sizeof names / sizeof *names };

static struct nl_tokenizer *tokenizer(unsigned which)
{
    static struct nl_tokenizer *open[COUNT];
    struct nl_error error;
    char path[200];
    snprintf(path, sizeof path, "tests/data/tokenizer/%s.json", names[which]);
    if (!open[which] && !(open[which] = nl_tokenizer_open(path, &error))) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    return open[which];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nl_error error;
    struct nl_buf whole = {0}, steps = {0};
    if (size < 2)
        return 0;
    const struct nl_tokenizer *tok = tokenizer(data[0] % COUNT);
    struct nl_decoder *a = nl_decoder_open(tok, data[1] & 3, &error),
                      *b = nl_decoder_open(tok, data[1] & 3, &error);
    if (!a || !b)
        abort();
    for (size_t i = 2; i + 1 < size; i += 2) {
        uint32_t id = (data[i] | (uint32_t)data[i + 1] << 8) % (nl_tokenizer_vocab_size(tok) + 1);
        struct nl_buf step = {0};
        nl_decoder_push(a, id, &whole, &error);
        nl_decoder_push(b, id, &step, &error);
        if (nl_utf8_check(step.data ? step.data : "", step.size, NULL) != step.size)
            abort(); /* part of a character */
        nl_buf_add(&steps, step.data ? step.data : "", step.size);
        nl_buf_free(&step);
    }
    if (nl_decoder_finish(a, &whole, &error) != 0 || nl_decoder_finish(b, &steps, &error) != 0)
        abort();
    if (whole.size != steps.size || (whole.size && memcmp(whole.data, steps.data, whole.size) != 0))
        abort();
    if (nl_utf8_check(whole.data ? whole.data : "", whole.size, NULL) != whole.size)
        abort();
    nl_decoder_close(a);
    nl_decoder_close(b);
    nl_buf_free(&whole);
    nl_buf_free(&steps);
    return 0;
}
