#include "tensor_order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "inspect.h"

/* Where a name stands: before, in or after the layers; in the layers by number and place. */
struct place {
    int stage;
    uint64_t layer;
    size_t part;
};

/* In the order of a layer's operations. */
static const char *const layer_parts[] = {
    "input_layernorm",
    "ln_1",
    "q_proj",
    "k_proj",
    "v_proj",
    "qkv_proj",
    "c_attn",
    "q_norm",
    "k_norm",
    "q",
    "k",
    "v",
    "q_rope",
    "k_rope",
    "attention",
    "heads",
    "o_proj",
    "attn.c_proj",
    "attention_output",
    "post_attention_layernorm",
    "ln_2",
    "pre_feedforward_layernorm",
    "gate_proj",
    "up_proj",
    "gate_up_proj",
    "c_fc",
    "down_proj",
    "mlp.c_proj",
    "mlp_output",
    "post_feedforward_layernorm",
};
static const char *const first_parts[] = {"ids", "embed_tokens", "wte", "wpe"};
static const char *const last_parts[] = {"norm", "ln_f", "lm_head", "logits"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* True when the parts of `path` stand in the name as whole parts, between dots. */
static bool has(const char *name, const char *path)
{
    size_t length = strlen(path);
    for (const char *at = name; (at = strstr(at, path)); at++)
        if ((at == name || at[-1] == '.') && (at[length] == '\0' || at[length] == '.'))
            return true;
    return false;
}

/* The index of the first that the name has; `count`: none. */
static size_t find_part(const char *name, const char *const *parts, size_t count)
{
    size_t i = 0;
    while (i < count && !has(name, parts[i]))
        i++;
    return i;
}

/* The number that is the first part of digits alone; false: there is none. */
static bool layer_of(const char *name, uint64_t *layer)
{
    for (const char *part = name; part; part = strchr(part, '.')) {
        part += *part == '.';
        size_t digits = strspn(part, "0123456789");
        if (digits == 0 || digits > 9 || (part[digits] && part[digits] != '.'))
            continue;
        *layer = 0;
        for (size_t i = 0; i < digits; i++)
            *layer = *layer * 10 + (uint64_t)(part[i] - '0');
        return true;
    }
    return false;
}

static struct place place_of(const char *name)
{
    struct place place = {.stage = 1};
    if (layer_of(name, &place.layer)) {
        bool state = strncmp(name, "hidden_states.", 14) == 0;
        place.layer = 2 * place.layer + !state;
        place.part = find_part(name, layer_parts, COUNT(layer_parts));
        return place;
    }
    place.part = find_part(name, first_parts, COUNT(first_parts));
    if (place.part < COUNT(first_parts))
        return (struct place){.stage = 0, .part = place.part};
    return (struct place){.stage = 2, .part = find_part(name, last_parts, COUNT(last_parts))};
}

int nl_execution_compare(const char *a, const char *b)
{
    struct place x = place_of(a), y = place_of(b);
    if (x.stage != y.stage)
        return x.stage < y.stage ? -1 : 1;
    if (x.layer != y.layer)
        return x.layer < y.layer ? -1 : 1;
    if (x.part != y.part)
        return x.part < y.part ? -1 : 1;
    return nl_natural_compare(a, b);
}
