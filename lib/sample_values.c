/* The table of processors, and their values read from text and from JSON. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "number.h"
#include "sample_chain.h"

#define WHOLE 0, 4294967295.0

/* name, apply, value, low, high, off, warper, reads_ids, reads_eos */
const struct nl_processor nl_processors[] = {
    {"sequence_bias", nl_apply_sequence_bias, NL_VALUE_BIASES, WHOLE, NAN, false, true, false},
    {"encoder_repetition_penalty", nl_apply_encoder_repetition_penalty, NL_VALUE_NUMBER, FLT_MIN, FLT_MAX, 1,
     false, true, false},
    {"repetition_penalty", nl_apply_repetition_penalty, NL_VALUE_NUMBER, FLT_MIN, FLT_MAX, 1, false, true,
     false},
    {"no_repeat_ngram_size", nl_apply_no_repeat_ngram, NL_VALUE_WHOLE, WHOLE, 0, false, true, false},
    {"encoder_no_repeat_ngram_size", nl_apply_encoder_no_repeat_ngram, NL_VALUE_WHOLE, WHOLE, 0, false, true,
     false},
    {"bad_words_ids", nl_apply_bad_words, NL_VALUE_WORDS, WHOLE, NAN, false, true, false},
    {"min_length", nl_apply_min_length, NL_VALUE_WHOLE, WHOLE, 0, false, false, true},
    {"min_new_tokens", nl_apply_min_new_tokens, NL_VALUE_WHOLE, WHOLE, 0, false, false, true},
    {"forced_bos_token_id", nl_apply_forced_bos, NL_VALUE_IDS, 1, 1, NAN, false, false, false},
    {"forced_eos_token_id", nl_apply_forced_eos, NL_VALUE_IDS, 1, FLT_MAX, NAN, false, false, false},
    {"exponential_decay_length_penalty", nl_apply_length_decay, NL_VALUE_DECAY, FLT_MIN, FLT_MAX, NAN, false,
     false, true},
    {"suppress_tokens", nl_apply_suppress, NL_VALUE_IDS, 0, FLT_MAX, NAN, false, false, false},
    {"begin_suppress_tokens", nl_apply_begin_suppress, NL_VALUE_IDS, 0, FLT_MAX, NAN, false, false, false},
    {"temperature", nl_apply_temperature, NL_VALUE_NUMBER, 0, FLT_MAX, 1, true, false, false},
    {"top_k", nl_apply_top_k, NL_VALUE_WHOLE, WHOLE, 0, true, false, false},
    {"top_p", nl_apply_top_p, NL_VALUE_NUMBER, 0, 1, 1, true, false, false},
    {"min_p", nl_apply_min_p, NL_VALUE_NUMBER, 0, 1, 0, true, false, false},
    {"typical_p", nl_apply_typical_p, NL_VALUE_NUMBER, DBL_MIN, 1, 1, true, false, false},
    {"epsilon_cutoff", nl_apply_epsilon_cutoff, NL_VALUE_NUMBER, 0, 1 - DBL_EPSILON, 0, true, false, false},
    {"eta_cutoff", nl_apply_eta_cutoff, NL_VALUE_NUMBER, 0, 1 - DBL_EPSILON, 0, true, false, false},
    {"top_n_sigma", nl_apply_top_n_sigma, NL_VALUE_NUMBER, 0, FLT_MAX, 0, true, false, false},
    {"allowed_token_ids", nl_apply_allowed, NL_VALUE_IDS, 1, FLT_MAX, NAN, false, false, false},
    {"presence_penalty", nl_apply_presence_penalty, NL_VALUE_NUMBER, -FLT_MAX, FLT_MAX, 0, false, true,
     false},
    {"frequency_penalty", nl_apply_frequency_penalty, NL_VALUE_NUMBER, -FLT_MAX, FLT_MAX, 0, false, true,
     false},
    {NULL, NULL, NL_VALUE_NUMBER, 0, 0, 0, false, false, false},
};

static bool same_name(const char *name, const char *wanted)
{
    for (; *name && *wanted; name++, wanted++)
        if (*name != *wanted && !(*name == '-' && *wanted == '_'))
            return false;
    return *name == *wanted;
}

const struct nl_processor *nl_processor_find(const char *name)
{
    if (same_name(name, "logit_bias")) /* what other programs call it */
        name = "sequence_bias";
    for (const struct nl_processor *processor = nl_processors; processor->name; processor++)
        if (same_name(name, processor->name))
            return processor;
    return NULL;
}

/* One id into the setting; 1, 0 when there is none, -1 out of memory. */
static int take_id(const char **text, struct nl_setting *setting, struct nl_error *error)
{
    uint64_t number;
    if (!nl_take_whole(text, UINT32_MAX, &number))
        return 0;
    uint32_t id = (uint32_t)number;
    return nl_ids_add(&setting->ids, &id, 1, error) == 0 ? 1 : -1;
}

/* One word: ids with one blank between them, a bias where `biased`. */
static int take_word(const char **text, struct nl_setting *setting, bool biased, struct nl_error *error)
{
    struct nl_word word = {.first = setting->ids.count, .bias = -INFINITY};
    int got;
    do
        got = take_id(text, setting, error);
    while (got > 0 && nl_take_char(text, ' '));
    if (got <= 0)
        return got;
    word.count = setting->ids.count - word.first;
    double bias;
    if (biased) {
        if (!nl_take_char(text, ':') || !nl_take_number(text, &bias))
            return 0;
        word.bias = (float)bias;
    }
    if (nl_grow(&setting->words, &setting->words_capacity, setting->n_words + 1, sizeof *setting->words,
                setting->processor->name, error) != 0)
        return -1;
    setting->words[setting->n_words++] = word;
    return 1;
}

static int take_words(const char **text, struct nl_setting *setting, bool biased, struct nl_error *error)
{
    if (!**text)
        return 1;
    int got;
    do
        got = take_word(text, setting, biased, error);
    while (got > 0 && nl_take_char(text, ','));
    return got;
}

static int take_value(const char **text, struct nl_setting *setting, struct nl_error *error)
{
    uint64_t whole;
    switch (setting->processor->value) {
    case NL_VALUE_NUMBER:
        return nl_take_number(text, &setting->number);
    case NL_VALUE_WHOLE:
        if (!nl_take_whole(text, UINT32_MAX, &whole))
            return 0;
        setting->number = (double)whole;
        return 1;
    case NL_VALUE_IDS:
        return **text ? nl_take_ids(text, &setting->ids, error) : 1;
    case NL_VALUE_WORDS:
    case NL_VALUE_BIASES:
        return take_words(text, setting, setting->processor->value == NL_VALUE_BIASES, error);
    case NL_VALUE_DECAY:
        if (!nl_take_whole(text, UINT32_MAX, &whole) || !nl_take_char(text, ',') ||
            !nl_take_number(text, &setting->number))
            return 0;
        setting->start = (size_t)whole;
        return 1;
    }
    return 0;
}

static bool in_range(const struct nl_setting *setting)
{
    double number = setting->number;
    switch (setting->processor->value) {
    case NL_VALUE_IDS:
        number = (double)setting->ids.count;
        break;
    case NL_VALUE_WORDS:
    case NL_VALUE_BIASES:
        number = (double)setting->n_words;
        break;
    default:
        break;
    }
    return number >= setting->processor->low && number <= setting->processor->high;
}

static const char *wanted(const struct nl_processor *processor, char *text, size_t size)
{
    switch (processor->value) {
    case NL_VALUE_NUMBER:
        if (processor->high == FLT_MAX)
            snprintf(text, size, "a number%s",
                     processor->low == 0  ? " from 0 on"
                     : processor->low > 0 ? " above 0"
                                          : "");
        else
            snprintf(text, size, "a number %s 0 %s 1", processor->low == 0 ? "from" : "above",
                     processor->high < 1 ? "to under" : "to");
        break;
    case NL_VALUE_WHOLE:
        return "a whole number";
    case NL_VALUE_IDS:
        return processor->high == 1 ? "one id" : "ids with commas between them";
    case NL_VALUE_WORDS:
        return "words with commas between them, each of ids with blanks between them";
    case NL_VALUE_BIASES:
        return "ID:BIAS or ID ID...:BIAS with commas between them";
    case NL_VALUE_DECAY:
        return "START,FACTOR";
    }
    return text;
}

int nl_setting_parse(struct nl_setting *setting, const struct nl_processor *processor, const char *text,
                     struct nl_error *error)
{
    setting->processor = processor;
    const char *rest = text;
    int got = take_value(&rest, setting, error);
    if (got > 0 && !*rest && in_range(setting))
        return 0;
    nl_setting_free(setting);
    if (got < 0)
        return -1;
    char range[100];
    return nl_fail(error, NL_USAGE, "%s takes %s, not '%.200s'", processor->name,
                   wanted(processor, range, sizeof range), text);
}

/* Whether numbers stand that deep in lists. */
static bool depth_fits(enum nl_value kind, int depth)
{
    switch (kind) {
    case NL_VALUE_NUMBER:
    case NL_VALUE_WHOLE:
        return depth == 0;
    case NL_VALUE_IDS:
        return depth <= 1;
    case NL_VALUE_WORDS:
        return depth == 2;
    case NL_VALUE_BIASES:
        return depth == 2 || depth == 3;
    case NL_VALUE_DECAY:
        return depth == 1;
    }
    return false;
}

/* A JSON value in the syntax of the option: numbers as they are, lists with ',' or, inside a list of lists, '
 * '. */
static bool spell(const struct nl_json *value, enum nl_value kind, int depth, struct nl_buf *out)
{
    if (nl_json_is(value, NL_JSON_NUMBER)) {
        nl_json_print_number(nl_json_number(value), out);
        return depth_fits(kind, depth);
    }
    if (!nl_json_is(value, NL_JSON_ARRAY) || depth > 2)
        return false;
    bool pair = kind == NL_VALUE_BIASES && depth == 1; /* [[ids], bias] */
    if ((pair && nl_json_count(value) != 2) || (depth > 0 && !nl_json_first(value)))
        return false;
    for (const struct nl_json *item = nl_json_first(value); item; item = nl_json_next(item)) {
        if (item != nl_json_first(value))
            nl_buf_putc(out, pair ? ':' : depth == 0 ? ',' : ' ');
        if (!spell(item, kind, depth + 1, out))
            return false;
    }
    return true;
}

int nl_setting_parse_json(struct nl_setting *setting, const struct nl_processor *processor,
                          const struct nl_json *value, struct nl_error *error)
{
    struct nl_buf text = {0};
    nl_buf_puts(&text, "");
    bool good = spell(value, processor->value, 0, &text);
    int result = nl_buf_check(&text, processor->name, error);
    if (result == 0 && good)
        result = nl_setting_parse(setting, processor, text.data, error);
    else if (result == 0)
        result = nl_fail(error, NL_USAGE, "malformed value: %s", processor->name);
    nl_buf_free(&text);
    if (result != 0 && error && error->code == NL_USAGE)
        error->code = NL_DATA;
    return result;
}

void nl_setting_free(struct nl_setting *setting)
{
    nl_ids_free(&setting->ids);
    free(setting->words);
    *setting = (struct nl_setting){0};
}

bool nl_setting_is_off(const struct nl_setting *setting)
{
    switch (setting->processor->value) {
    case NL_VALUE_NUMBER:
    case NL_VALUE_WHOLE:
        return setting->number == setting->processor->off;
    case NL_VALUE_IDS:
    case NL_VALUE_WORDS:
    case NL_VALUE_BIASES:
        return setting->ids.count == 0;
    case NL_VALUE_DECAY:
        break;
    }
    return false;
}
