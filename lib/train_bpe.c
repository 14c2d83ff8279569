/* The trainer: words counted by threads, special tokens, alphabet. */
#include "train_bpe.h"

#include <stdlib.h>

#include "train_bpe_parts.h"
#include "unicode.h"

struct nl_train_bpe_options nl_train_bpe_defaults(void)
{
    struct nl_train_bpe_options options = {
        .vocab_size = 30000, .max_token_length = UINT64_MAX, .limit_alphabet = UINT32_MAX, .threads = 1};
    memset(options.initial, true, sizeof options.initial);
    return options;
}

static int add_special(struct nl_train_bpe *t, const char *content, size_t size, const struct nl_json *source,
                       struct nl_error *error)
{
    uint32_t id, n = t->vocab.n;
    if (size == 0 || memchr(content, '\0', size) || nl_utf8_check(content, size, NULL) < size)
        return nl_fail(error, source ? NL_DATA : NL_USAGE,
                       size ? "special token is not UTF-8 without U+0000" : "special token is empty");
    if (nl_train_words_add(&t->vocab, content, size, 0, &id, error) != 0)
        return -1;
    if (id < n)
        return 0;
    if (nl_grow(&t->special, &t->special_capacity, t->n_special + 1, sizeof *t->special, "special tokens",
                error) != 0)
        return -1;
    t->special[t->n_special++] = (struct train_special){id, source};
    return 0;
}

/* Those among the form's added tokens that are special. */
static int add_form_special(struct nl_train_bpe *t, struct nl_error *error)
{
    const struct nl_json *array = nl_json_get(t->form, "added_tokens");
    struct nl_buf content = {0};
    int result = 0;
    if (array && !nl_json_is(array, NL_JSON_NULL) && !nl_json_is(array, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "not an array: added_tokens");
    for (const struct nl_json *token = array ? nl_json_first(array) : NULL; token && result == 0;
         token = nl_json_next(token)) {
        bool special = false;
        if (!nl_json_is(token, NL_JSON_OBJECT))
            result = nl_fail(error, NL_DATA, "not an object in added_tokens");
        else
            result = nl_tok_json_bool(token, "special", false, &special, error);
        if (result != 0 || !special)
            continue;
        result = nl_tok_json_string(token, "content", &content, error);
        if (result == 0)
            result = nl_fail(error, NL_DATA, "no string content in added_tokens");
        else if (result == 1)
            result = add_special(t, content.data, content.size, token, error);
    }
    nl_buf_free(&content);
    return result;
}

static int init(struct nl_train_bpe *t, const char *const *special, size_t n_special, struct nl_error *error)
{
    t->tokenizer = calloc(1, sizeof *t->tokenizer);
    t->workers = calloc(t->options.threads, sizeof *t->workers);
    if (!t->tokenizer || !t->workers)
        return nl_fail_memory(error, "trainer");
    if (nl_train_load_form(t->tokenizer, t->form, error) != 0 || add_form_special(t, error) != 0)
        return -1;
    for (size_t i = 0; i < n_special; i++)
        if (add_special(t, special[i], strlen(special[i]), NULL, error) != 0)
            return -1;
    t->pool = nl_pool_open(t->options.threads, error);
    if (!t->pool)
        return -1;
    for (unsigned i = 0; i < t->options.threads; i++) {
        t->workers[i].encoder = nl_encoder_open(t->tokenizer, error);
        if (!t->workers[i].encoder)
            return -1;
    }
    return 0;
}

struct nl_train_bpe *nl_train_bpe_open(const struct nl_train_bpe_options *options, const struct nl_json *form,
                                       const char *const *special, size_t n_special, struct nl_error *error)
{
    struct nl_train_bpe *t = calloc(1, sizeof *t);
    if (!t) {
        nl_fail_memory(error, "trainer");
        return NULL;
    }
    t->options = *options;
    t->form = form;
    if (init(t, special, n_special, error) != 0) {
        nl_train_bpe_close(t);
        return NULL;
    }
    return t;
}

void nl_train_bpe_close(struct nl_train_bpe *t)
{
    if (!t)
        return;
    if (t->pool)
        nl_pool_close(t->pool);
    for (unsigned i = 0; t->workers && i < t->options.threads; i++) {
        nl_encoder_close(t->workers[i].encoder);
        nl_train_words_free(&t->workers[i].words);
    }
    free(t->workers);
    nl_tokenizer_close(t->tokenizer);
    nl_train_words_free(&t->vocab);
    free(t->special);
    free(t->merges);
    free(t);
}

static int count_words(struct train_worker *worker, const char *text, size_t length, struct nl_error *error)
{
    struct nl_encoder *encoder = worker->encoder;
    const char *normalized;
    size_t size;
    if (nl_tok_normalize(encoder, text, length, &normalized, &size, error) != 0 ||
        nl_tok_split(encoder, normalized, size, true, error) != 0)
        return -1;
    for (size_t i = 0; i < encoder->ranges.count; i++) {
        struct tok_range range = encoder->ranges.data[i];
        if (nl_train_words_add(&worker->words, encoder->text + range.begin, range.end - range.begin, 1, NULL,
                               error) != 0)
            return -1;
    }
    return 0;
}

struct batch {
    struct nl_train_bpe *trainer;
    const char *text;
    const size_t *ends; /* [n] */
    size_t n;
};

static size_t begin_of(const struct batch *batch, size_t i)
{
    return i > 0 ? batch->ends[i - 1] : 0;
}

/* The first sequence that begins at or behind an offset. */
static size_t first_from(const struct batch *batch, size_t offset)
{
    size_t low = 0, high = batch->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (begin_of(batch, middle) < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The sequences that begin in this thread's share of the bytes. */
static void count_share(void *context, unsigned thread)
{
    const struct batch *batch = context;
    struct train_worker *worker = &batch->trainer->workers[thread];
    size_t begin, end;
    nl_share(batch->ends[batch->n - 1], thread, batch->trainer->options.threads, &begin, &end);
    worker->result = 0;
    for (size_t i = first_from(batch, begin), last = first_from(batch, end); i < last && worker->result == 0;
         i++) {
        size_t from = begin_of(batch, i);
        worker->result = count_words(worker, batch->text + from, batch->ends[i] - from, &worker->error);
    }
}

int nl_train_bpe_add(struct nl_train_bpe *t, const char *text, const size_t *ends, size_t n,
                     struct nl_error *error)
{
    struct batch batch = {t, text, ends, n};
    if (n == 0 || ends[n - 1] == 0)
        return 0;
    nl_pool_run(t->pool, count_share, &batch);
    for (unsigned i = 0; i < t->options.threads; i++)
        if (t->workers[i].result != 0) {
            *error = t->workers[i].error;
            return -1;
        }
    return 0;
}

/* The words of all threads become the first one's. */
static int join_words(struct nl_train_bpe *t, struct nl_error *error)
{
    for (unsigned k = 1; k < t->options.threads; k++) {
        struct train_words *words = &t->workers[k].words;
        for (uint32_t i = 0; i < words->n; i++)
            if (nl_train_words_add(&t->workers[0].words, words->bytes.data + words->words[i].at,
                                   words->words[i].size, words->words[i].count, NULL, error) != 0)
                return -1;
        nl_train_words_free(words);
    }
    return 0;
}

struct letter {
    uint64_t count;
    char text[3]; /* its character, the order of the alphabet */
    unsigned char byte;
    bool initial;
};

static int by_count(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    if (x->initial != y->initial)
        return x->initial ? -1 : 1;
    return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->text, y->text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct letter *)a)->text, ((const struct letter *)b)->text);
}

/* The letters that the alphabet has, in its order; returns how many, or -1. */
static int choose_letters(const struct nl_train_bpe *t, struct letter letters[256], struct nl_error *error)
{
    const struct train_words *words = &t->workers[0].words;
    uint64_t counts[256] = {0};
    struct nl_buf text = {0};
    int n = 0;
    for (uint32_t i = 0; i < words->n; i++) {
        const unsigned char *bytes = (const unsigned char *)words->bytes.data + words->words[i].at;
        for (size_t k = 0; k < words->words[i].size; k++)
            counts[bytes[k]] += words->words[i].count;
    }
    for (unsigned i = 0; i < 256 && !text.failed; i++) {
        char byte = (char)i;
        if (counts[i] == 0 && !t->options.initial[i])
            continue;
        nl_buf_clear(&text);
        nl_tok_bytes_to_chars(&byte, 1, &text);
        letters[n] = (struct letter){counts[i], "", (unsigned char)i, t->options.initial[i]};
        if (!text.failed)
            memcpy(letters[n++].text, text.data, text.size);
    }
    if (nl_buf_check(&text, "alphabet", error) != 0)
        return -1;
    nl_buf_free(&text);
    qsort(letters, (size_t)n, sizeof *letters, by_count);
    if (t->options.limit_alphabet < 256 && n > (int)t->options.limit_alphabet)
        n = (int)t->options.limit_alphabet;
    qsort(letters, (size_t)n, sizeof *letters, by_text);
    return n;
}

int nl_train_bpe_run(struct nl_train_bpe *t, nl_train_bpe_progress *progress, void *context,
                     struct nl_error *error)
{
    struct letter letters[256];
    uint32_t ids[256];
    if (join_words(t, error) != 0)
        return -1;
    memset(ids, 0xff, sizeof ids);
    int n = choose_letters(t, letters, error);
    for (int i = 0; i < n; i++)
        if (nl_train_words_add(&t->vocab, letters[i].text, strlen(letters[i].text), 0, &ids[letters[i].byte],
                               error) != 0)
            return -1;
    return n < 0 ? -1 : nl_train_merge(t, ids, progress, context, error);
}

struct nl_train_bpe_sizes nl_train_bpe_sizes(const struct nl_train_bpe *t)
{
    return (struct nl_train_bpe_sizes){t->workers[0].words.n, t->vocab.n, t->n_merges};
}
