/* Cosines and sines of rotary positions far out, where an angle that is rounded otherwise shows, against
 * transformers'. */
#include "golden.h"

#include <math.h>

enum { MAX_DIM = 64, POSITIONS = 131072 };

/* A backend that rotates (1, ..., 1, 0, ..., 0): what comes out is cosines, then sines. */
struct bench {
    struct nl_plan plan;
    struct nl_op ops[2];
    float row[3 * MAX_DIM], out[MAX_DIM];
};

static void take(void *context, const struct nl_op *op, float *const *buffers)
{
    struct bench *bench = context;
    if (op->kind == NL_OP_ROPE)
        memcpy(bench->out, buffers[0], bench->plan.head_dim * sizeof(float));
}

static void set_up(struct bench *bench, uint32_t dims, float scale)
{
    *bench = (struct bench){.plan = {.ops = bench->ops, .n_ops = 2, .n_buffers = 1, .n_ropes = 1}};
    struct nl_plan *plan = &bench->plan;
    plan->width[0] = 3 * dims;
    plan->ropes[0] = (struct nl_rope){dims, scale};
    plan->n_layers = plan->n_kv_heads = plan->vocab_size = plan->max_tokens = plan->max_outputs = 1;
    plan->head_dim = dims;
    for (uint32_t i = 0; i < dims / 2; i++)
        bench->row[i] = 1;
    bench->ops[0] = (struct nl_op){.kind = NL_OP_EMBED, .in = NL_NO_BUFFER};
    bench->ops[0].embed.table = (struct nl_matrix){bench->row, NL_F32, 1, 3 * dims};
    bench->ops[0].embed.scale = 1;
    bench->ops[1] = (struct nl_op){.kind = NL_OP_ROPE};
    bench->ops[1].attention.n_heads = bench->ops[1].attention.n_kv_heads = 1;
    bench->ops[1].attention.head_dim = dims;
}

static void rotate(struct bench *bench, const char *isa, const float *frequencies, uint32_t position)
{
    struct nl_error error = {0};
    static uint32_t blocks[POSITIONS / NL_BLOCK]; /* all are block 0: nobody reads the cache */
    const uint32_t *tables[] = {blocks};
    uint32_t id = 0, slot = 0;
    struct nl_step step = {
        .n_tokens = 1, .ids = &id, .positions = &position, .slots = &slot, .tables = tables};
    step.frequencies[0] = frequencies;
    struct nl_backend *backend = nl_cpu_open(isa, 1, &error);
    struct nl_observer observer = {.seen = take, .context = bench};
    if (nl_backend_load(backend, &bench->plan, 1, &error) != 0 ||
        nl_backend_run(backend, &step, &observer, &error) != 0)
        fail_msg("%s", error.message);
    nl_backend_close(backend);
}

static uint32_t floats(const struct nl_json *item, const char *key, float *out)
{
    uint32_t count = 0;
    for (const struct nl_json *v = nl_json_first(nl_json_get(item, key)); v; v = nl_json_next(v)) {
        assert_true(count < MAX_DIM / 2);
        out[count++] = (float)nl_json_number(v);
    }
    return count;
}

/* Within 2 units in the last place of 1: both libraries' cosf are that good, and the angle is the same. */
static void check_case(const struct nl_json *item, const char *isa)
{
    float frequencies[MAX_DIM / 2], want[MAX_DIM];
    uint32_t half = floats(item, "inv_freq", frequencies);
    floats(item, "cos", want);
    floats(item, "sin", want + half);
    struct bench bench;
    set_up(&bench, 2 * half, (float)nl_json_number(nl_json_get(item, "scale")));
    uint32_t position = (uint32_t)nl_json_number(nl_json_get(item, "position"));
    rotate(&bench, isa, frequencies, position);
    for (uint32_t i = 0; i < 2 * half; i++)
        if (!(fabsf(bench.out[i] - want[i]) <= 2 * 0x1p-23f))
            fail_msg("%s %s: position %u, %s %u: %.9g, not %.9g", isa, nl_json_get_string(item, "id"),
                     position, i < half ? "cosine" : "sine", i % half, (double)bench.out[i], (double)want[i]);
}

static void rotations(void **state)
{
    struct nl_error error = {0};
    struct nl_buf text = {0};
    int count = 0;
    if (!isa_available(*state))
        skip();
    if (nl_file_read("tests/data/rope/rotation.jsonl", 1 << 20, &text, &error) != 0)
        fail_msg("%s", error.message);
    for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1, count++) {
        struct nl_json *item = nl_json_parse(line, (size_t)(end - line), "rotation.jsonl", &error);
        if (!item)
            fail_msg("%s", error.message);
        check_case(item, *state);
        nl_json_free(item);
    }
    assert_int_equal(count, 20);
    nl_buf_free(&text);
}

int main(void)
{
    static char *const isas[] = {"reference", "portable", "avx2", "avx512"};
    struct CMUnitTest tests[4];
    for (int i = 0; i < 4; i++)
        tests[i] = (struct CMUnitTest){isas[i], rotations, NULL, NULL, isas[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
