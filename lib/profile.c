#include "profile.h"

#include <stdlib.h>
#include <time.h>

/* In the order of a layer. A product is told by the buffers between which it stands. */
enum part {
    EMBED,
    NORM,
    QKV,
    QK_NORM,
    ROPE,
    ATTENTION,
    O,
    GATE_UP,
    GATE,
    DOWN,
    RESIDUAL,
    LOGITS,
    ARGMAX,
    PARTS
};

static const char *const names[PARTS] = {"embed",     "norm",   "qkv",     "qk_norm",    "rope",
                                         "attention", "o",      "gate_up", "activation", "down",
                                         "residual",  "logits", "argmax"};

struct tally {
    uint64_t calls;
    double seconds;
};

struct nl_profile {
    double last; /* when the operation before ended */
    uint64_t steps, ids;
    struct tally parts[PARTS];
    struct tally *layers; /* [n_layers + 1]: the last is outside of the layers */
    uint32_t n_layers;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

struct nl_profile *nl_profile_new(struct nl_error *error)
{
    struct nl_profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        nl_fail_memory(error, "profile");
    return profile;
}

void nl_profile_free(struct nl_profile *profile)
{
    if (!profile)
        return;
    free(profile->layers);
    free(profile);
}

int nl_profile_reserve(struct nl_profile *profile, const struct nl_model *model, struct nl_error *error)
{
    if (profile->layers)
        return 0;
    profile->n_layers = model->config.n_layers;
    profile->layers = calloc((size_t)profile->n_layers + 1, sizeof *profile->layers);
    return profile->layers ? 0 : nl_fail_memory(error, "profile");
}

static enum part product_of(const struct nl_op *op)
{
    if (op->out == NL_BUF_QKV)
        return QKV;
    if (op->out == NL_BUF_GATES)
        return GATE_UP;
    return op->in == NL_BUF_HEADS ? O : DOWN;
}

static enum part part_of(const struct nl_op *op)
{
    static const enum part parts[NL_OP_KINDS] = {
        [NL_OP_EMBED] = EMBED,         [NL_OP_NORM] = NORM,     [NL_OP_RESIDUAL] = RESIDUAL,
        [NL_OP_QK_NORM] = QK_NORM,     [NL_OP_ROPE] = ROPE,     [NL_OP_GATE] = GATE,
        [NL_OP_ATTENTION] = ATTENTION, [NL_OP_LOGITS] = LOGITS, [NL_OP_ARGMAX] = ARGMAX,
    };
    return op->kind == NL_OP_LINEAR ? product_of(op) : parts[op->kind];
}

static void begin_step(void *context, const struct nl_step *step)
{
    struct nl_profile *profile = context;
    profile->steps++;
    profile->ids += step->n_tokens;
    profile->last = now();
}

static void end_op(void *context, const struct nl_op *op, float *const *buffers)
{
    struct nl_profile *profile = context;
    double time = now(), seconds = time - profile->last;
    struct tally *tallies[] = {&profile->parts[part_of(op)],
                               &profile->layers[op->layer < 0 ? profile->n_layers : (uint32_t)op->layer]};
    (void)buffers;
    for (int i = 0; i < 2; i++) {
        tallies[i]->calls++;
        tallies[i]->seconds += seconds;
    }
    profile->last = time;
}

struct nl_observer nl_profile_observer(struct nl_profile *profile)
{
    return (struct nl_observer){.seen = end_op, .begin = begin_step, .context = profile, .blind = true};
}

static void add_line(struct nl_buf *out, const struct tally *tally, double total)
{
    nl_buf_printf(out, "\t%llu\t%.3f\t%.4f\n", (unsigned long long)tally->calls, tally->seconds * 1e3,
                  total > 0 ? tally->seconds / total : 0);
}

void nl_profile_print(const struct nl_profile *profile, struct nl_buf *out)
{
    double total = 0;
    for (int i = 0; i < PARTS; i++)
        total += profile->parts[i].seconds;
    nl_buf_puts(out, "what\tname\tcalls\tms\tshare\n");
    for (int i = 0; i < PARTS; i++)
        if (profile->parts[i].calls) {
            nl_buf_printf(out, "operation\t%s", names[i]);
            add_line(out, &profile->parts[i], total);
        }
    for (uint32_t i = 0; profile->layers && i <= profile->n_layers; i++) {
        nl_buf_puts(out, "layer\t");
        if (i < profile->n_layers)
            nl_buf_printf(out, "%u", i);
        add_line(out, &profile->layers[i], total);
    }
    nl_buf_printf(out, "total\t%llu", (unsigned long long)profile->ids);
    add_line(out, &(struct tally){profile->steps, total}, total);
}
