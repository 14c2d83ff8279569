/* Processors that look at the history, at the end ids or at lists of ids. Named after transformers' classes.
 */
#include <math.h>

#include "sample_chain.h"

static void exclude(struct nl_row *row, uint32_t id)
{
    if (id < row->n)
        row->logits[id] = -INFINITY;
}

static void exclude_all(struct nl_row *row, const struct nl_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        exclude(row, ids->data[i]);
}

static bool is_end(const struct nl_row *row, uint32_t id)
{
    for (size_t i = 0; i < row->eos->count; i++)
        if (row->eos->data[i] == id)
            return true;
    return false;
}

static bool ends_with(const struct nl_history *history, const uint32_t *ids, size_t count)
{
    return count <= history->count &&
           (count == 0 || memcmp(history->ids + history->count - count, ids, count * sizeof *ids) == 0);
}

/* Adds up each last id's bias in the scratch row first: one sum, one addition to the logit, as transformers
   does. Of several entries for one single id the last counts, as in its dictionary. */
static void add_biases(const struct nl_setting *setting, struct nl_row *row, bool skip_ends)
{
    float *bias = row->floats;
    for (int pass = 0; pass < 4; pass++)
        for (size_t i = 0; i < setting->n_words; i++) {
            const struct nl_word *word = &setting->words[i];
            const uint32_t *ids = setting->ids.data + word->first;
            uint32_t last = ids[word->count - 1];
            if (skip_ends && word->count == 1 && is_end(row, last))
                continue;
            if (pass == 0)
                bias[last] = 0;
            else if (pass == 1 && word->count == 1)
                bias[last] = word->bias;
            else if (pass == 2 && word->count > 1 && ends_with(row->history, ids, word->count - 1))
                bias[last] += word->bias;
            else if (pass == 3 && row->logits[last] > -INFINITY) {
                row->logits[last] += bias[last];
                bias[last] = 0;
            }
        }
}

void nl_apply_sequence_bias(const struct nl_setting *setting, struct nl_row *row)
{
    add_biases(setting, row, false);
}

/* A word that is just an end id is not held to be bad. */
void nl_apply_bad_words(const struct nl_setting *setting, struct nl_row *row)
{
    add_biases(setting, row, true);
}

/* Each id seen once: score < 0 times the penalty, else divided by it. */
static void penalise(struct nl_row *row, size_t count, float penalty)
{
    const uint32_t *ids = row->history->ids;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= row->n || row->counts[ids[i]]++)
            continue;
        float *logit = &row->logits[ids[i]];
        *logit = *logit < 0 ? *logit * penalty : *logit / penalty;
    }
    for (size_t i = 0; i < count; i++)
        if (ids[i] < row->n)
            row->counts[ids[i]] = 0;
}

void nl_apply_repetition_penalty(const struct nl_setting *setting, struct nl_row *row)
{
    penalise(row, row->history->count, (float)setting->number);
}

/* In a model without an encoder, transformers takes the prompt for the encoder's input. */
void nl_apply_encoder_repetition_penalty(const struct nl_setting *setting, struct nl_row *row)
{
    penalise(row, row->history->n_prompt, (float)(1 / setting->number));
}

/* Excludes what would complete an n-gram that stands in the first `count` ids. */
static void exclude_ngrams(struct nl_row *row, size_t size, size_t count)
{
    const struct nl_history *history = row->history;
    if (history->count + 1 < size)
        return;
    const uint32_t *prefix = history->ids + history->count - (size - 1);
    for (size_t i = 0; i + size <= count; i++)
        if (memcmp(history->ids + i, prefix, (size - 1) * sizeof *prefix) == 0)
            exclude(row, history->ids[i + size - 1]);
}

void nl_apply_no_repeat_ngram(const struct nl_setting *setting, struct nl_row *row)
{
    exclude_ngrams(row, (size_t)setting->number, row->history->count);
}

void nl_apply_encoder_no_repeat_ngram(const struct nl_setting *setting, struct nl_row *row)
{
    exclude_ngrams(row, (size_t)setting->number, row->history->n_prompt);
}

void nl_apply_min_length(const struct nl_setting *setting, struct nl_row *row)
{
    if ((double)row->history->count < setting->number)
        exclude_all(row, row->eos);
}

static size_t new_count(const struct nl_row *row)
{
    return row->history->count - row->history->n_prompt;
}

void nl_apply_min_new_tokens(const struct nl_setting *setting, struct nl_row *row)
{
    if ((double)new_count(row) < setting->number)
        exclude_all(row, row->eos);
}

/* These ids, and no other, get the score 0. */
static void force(struct nl_row *row, const struct nl_ids *ids)
{
    for (size_t i = 0; i < row->n; i++)
        row->logits[i] = -INFINITY;
    for (size_t i = 0; i < ids->count; i++)
        if (ids->data[i] < row->n)
            row->logits[ids->data[i]] = 0;
}

void nl_apply_forced_bos(const struct nl_setting *setting, struct nl_row *row)
{
    if (row->history->count == 1)
        force(row, &setting->ids);
}

void nl_apply_forced_eos(const struct nl_setting *setting, struct nl_row *row)
{
    if (row->limit != UINT64_MAX && new_count(row) + 1 == row->limit)
        force(row, &setting->ids);
}

void nl_apply_length_decay(const struct nl_setting *setting, struct nl_row *row)
{
    if (new_count(row) <= setting->start)
        return;
    float factor = (float)(pow(setting->number, (double)(new_count(row) - setting->start)) - 1);
    for (size_t i = 0; i < row->eos->count; i++) {
        uint32_t id = row->eos->data[i];
        if (id < row->n && isfinite(row->logits[id]))
            row->logits[id] += fabsf(row->logits[id]) * factor;
    }
}

void nl_apply_suppress(const struct nl_setting *setting, struct nl_row *row)
{
    exclude_all(row, &setting->ids);
}

/* A prompt of one id with a forced first one begins after that. */
void nl_apply_begin_suppress(const struct nl_setting *setting, struct nl_row *row)
{
    size_t forced = row->forced_bos && row->history->n_prompt <= 1 ? 1 : 0;
    if (new_count(row) == forced)
        exclude_all(row, &setting->ids);
}

void nl_apply_allowed(const struct nl_setting *setting, struct nl_row *row)
{
    for (size_t i = 0; i < setting->ids.count; i++)
        if (setting->ids.data[i] < row->n)
            row->counts[setting->ids.data[i]] = 1;
    for (size_t i = 0; i < row->n; i++) {
        if (!row->counts[i])
            row->logits[i] = -INFINITY;
        row->counts[i] = 0;
    }
}

/* `once` of each id generated, `each` for every time it was. As vLLM: the prompt does not count. */
static void subtract(struct nl_row *row, float once, float each)
{
    const struct nl_history *history = row->history;
    for (size_t i = history->n_prompt; i < history->count; i++)
        if (history->ids[i] < row->n)
            row->counts[history->ids[i]]++;
    for (size_t i = history->n_prompt; i < history->count; i++) {
        uint32_t id = history->ids[i];
        if (id >= row->n || !row->counts[id])
            continue;
        row->logits[id] -= once + each * (float)row->counts[id];
        row->counts[id] = 0;
    }
}

void nl_apply_presence_penalty(const struct nl_setting *setting, struct nl_row *row)
{
    subtract(row, (float)setting->number, 0);
}

void nl_apply_frequency_penalty(const struct nl_setting *setting, struct nl_row *row)
{
    subtract(row, 0, (float)setting->number);
}
