/* Training: any options on any text; any JSON as a form. */
#include <stdlib.h>

#include "train_bpe.h"
#include "utf8.h"

static void train(const struct nl_train_bpe_options *options, const struct nl_json *form,
                  const struct nl_buf *text)
{
    struct nl_error error;
    struct nl_buf out = {0};
    const char *special[] = {"<s>", "a", "ab"};
    size_t ends[2] = {text->size / 2, text->size};
    while (ends[0] > 0 && ((unsigned char)text->data[ends[0]] & 0xc0) == 0x80)
        ends[0]--;
    struct nl_train_bpe *trainer = nl_train_bpe_open(options, form, special, options->vocab_size % 4, &error);
    if (trainer && nl_train_bpe_add(trainer, text->data, ends, 2, &error) == 0 &&
        nl_train_bpe_run(trainer, NULL, NULL, &error) == 0 &&
        nl_train_bpe_write(trainer, &out, &error) == 0) {
        struct nl_json *json = nl_json_parse(out.data, out.size, "tokenizer.json", &error);
        if (!json)
            abort();
        nl_json_free(json);
    }
    nl_buf_free(&out);
    nl_train_bpe_close(trainer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"gpt2", "llama3", "qwen2", "o200k", "smollm", "none"};
    struct nl_error error;
    struct nl_buf text = {0};
    struct nl_train_bpe_options options = nl_train_bpe_defaults();
    if (size < 4)
        return 0;
    options.vocab_size = 1 + data[0] * 3u;
    options.min_frequency = data[1] % 4;
    if (data[1] & 8)
        options.max_token_length = data[1] >> 4;
    memset(options.initial, data[2] & 1, sizeof options.initial);
    if (data[2] & 2)
        options.limit_alphabet = data[2] >> 2;
    nl_utf8_repair((const char *)data + 4, size - 4, &text);
    struct nl_json *form = data[3] & 128 ? nl_json_parse(text.data, text.size, "form", &error)
                                         : nl_train_bpe_form(names[data[3] % 6], &error);
    if (form)
        train(&options, form, &text);
    nl_json_free(form);
    nl_buf_free(&text);
    return 0;
}
