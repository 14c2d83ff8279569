/* Any bytes as a tokenizer.json; what is taken encodes and decodes a text. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "file.h"
#include "tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "Hello  w\xc3\xb6rld, it's 12345 <s> \xe6\xbc\xa2\xe5\xad\x97\n\n \xf0\x9f\xa6\x9c ab";
    char path[] = "/tmp/fuzz_tokenizer_XXXXXX";
    struct nl_error error;
    struct nl_ids ids = {0};
    struct nl_buf out = {0};
    int fd = mkstemp(path);
    if (fd < 0 || nl_write_all(fd, data, size, path, &error) != 0)
        abort();
    close(fd);
    struct nl_tokenizer *tokenizer = nl_tokenizer_open(path, &error);
    unlink(path);
    if (!tokenizer)
        return 0;
    if (nl_tokenizer_encode(tokenizer, text, sizeof text - 1, true, &ids, &error) == 0) {
        struct nl_decoder *decoder = nl_decoder_open(tokenizer, 0, &error);
        for (size_t i = 0; decoder && i < ids.count; i++)
            nl_decoder_push(decoder, ids.data[i], &out, &error);
        if (decoder)
            nl_decoder_finish(decoder, &out, &error);
        nl_decoder_close(decoder);
    }
    nl_tokenizer_close(tokenizer);
    nl_ids_free(&ids);
    nl_buf_free(&out);
    return 0;
}
