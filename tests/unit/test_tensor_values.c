/* What the values of a tensor are like, of every type; and the memory that a model takes. */
#include "test.h"

#include <math.h>

#include "inspect_model.h"
#include "tensor_values.h"

static struct nl_values scan(enum nl_dtype dtype, const void *bytes, size_t size)
{
    struct nl_tensor tensor = {.dtype = dtype, .end = size, .data = bytes};
    struct nl_values values;
    tensor.elements = size * 8 / nl_dtype_bits(dtype);
    nl_values_scan(&tensor, NULL, &values);
    return values;
}

static void test_every_type(void **state)
{
    static const struct {
        enum nl_dtype dtype;
        uint8_t bytes[16];
        size_t size;
        unsigned nan, infinite, finite;
        double min, max, mean;
    } cases[] = {
        {NL_BOOL, {0, 1, 1, 0}, 4, 0, 0, 4, 0, 1, 0.5},
        {NL_F4, {0x71, 0xfa}, 2, 0, 0, 4, -6, 6, -0.125}, /* 0.5, 6, -1, -6 */
        {NL_F6_E2M3, {1, 2, 3}, 3, 0, 0, 0, 0, 0, 0},
        {NL_F6_E3M2, {1, 2, 3}, 3, 0, 0, 0, 0, 0, 0},
        {NL_U8, {255, 1}, 2, 0, 0, 2, 1, 255, 128},
        {NL_I8, {255, 127}, 2, 0, 0, 2, -1, 127, 63},
        {NL_F8_E5M2, {0x3c, 0xbc, 0x7c, 0xfc, 0x7d}, 5, 1, 2, 2, -1, 1, 0},
        {NL_F8_E4M3, {0x38, 0xc0, 0x7f, 0xff}, 4, 2, 0, 2, -2, 1, -0.5},
        {NL_F8_E8M0, {127, 129, 255}, 3, 1, 0, 2, 1, 4, 2.5},
        {NL_F8_E4M3FNUZ, {0x40, 0xc8, 0x80}, 3, 1, 0, 2, -2, 1, -0.5},
        {NL_F8_E5M2FNUZ, {0x40, 0xc4, 0x80}, 3, 1, 0, 2, -2, 1, -0.5},
        {NL_I16, {0xff, 0xff, 3, 0}, 4, 0, 0, 2, -1, 3, 1},
        {NL_U16, {0xff, 0xff, 1, 0}, 4, 0, 0, 2, 1, 65535, 32768},
        {NL_F16, {0, 0x3c, 0, 0xc0, 0, 0x7c, 1, 0x7c}, 8, 1, 1, 2, -2, 1, -0.5},
        {NL_BF16, {0x80, 0x3f, 0, 0xc0, 0x80, 0xff, 0xc0, 0x7f}, 8, 1, 1, 2, -2, 1, -0.5},
        {NL_I32, {0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0}, 8, 0, 0, 2, -1, 3, 1},
        {NL_U32, {0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, 8, 0, 0, 2, 1, 4294967295.0, 2147483648.0},
        {NL_F32,
         {0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x7f, 0, 0, 0xc0, 0xff, 0, 0, 0, 0xc0},
         16,
         1,
         1,
         2,
         -2,
         1,
         -0.5},
        {NL_C64,
         {0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x7f, 0, 0, 0xc0, 0xff, 0, 0, 0, 0xc0},
         16,
         1,
         1,
         2,
         -2,
         1,
         -0.5},
        {NL_F64, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, 16, 1, 0, 1, 1, 1, 1},
        {NL_I64, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3}, 16, 0, 0, 2, -1, 3, 1},
        {NL_U64, {0, 0, 0, 0, 1, 0, 0, 0, 2}, 16, 0, 0, 2, 2, 4294967296.0, 2147483649.0},
    };
    (void)state;
    assert_int_equal(sizeof cases / sizeof *cases, NL_DTYPES);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nl_values values = scan(cases[i].dtype, cases[i].bytes, cases[i].size);
        if (values.nan != cases[i].nan || values.infinite != cases[i].infinite ||
            values.finite != cases[i].finite || values.min != cases[i].min || values.max != cases[i].max ||
            values.mean != cases[i].mean)
            fail_msg("%s: %llu %llu %llu %g %g %g", nl_dtype_name(cases[i].dtype),
                     (unsigned long long)values.nan, (unsigned long long)values.infinite,
                     (unsigned long long)values.finite, values.min, values.max, values.mean);
    }
}

static void test_many(void **state)
{
    enum { N = 10000 }; /* more than is read at once */
    static float numbers[N];
    (void)state;
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;
    numbers[N - 1] = NAN;
    numbers[N - 2] = -5;
    struct nl_values values = scan(NL_F32, numbers, sizeof numbers);
    assert_true(values.nan == 1 && values.finite == N - 1 && values.min == -5 && values.max == N - 3);
    assert_true(fabs(values.mean - ((N - 3) * (N - 2) / 2.0 - 5) / (N - 1)) < 1e-9);
}

static void test_mean_keeps_small_numbers(void **state)
{
    double numbers[] = {1e16, 1, 1, 1, 1, -1e16};
    (void)state;
    assert_true(scan(NL_F64, numbers, sizeof numbers).mean == 4 / 6.0);
}

static void test_nothing(void **state)
{
    (void)state;
    struct nl_values values = scan(NL_F32, NULL, 0);
    assert_true(values.finite == 0 && values.nan == 0 && values.infinite == 0);
}

/* Llama-3-8B: REFERENCE's numbers for 16 bit, and ours, which are float32. */
static void test_cache_of_llama_3_8b(void **state)
{
    static const char text[] =
        "{\"architectures\":[\"LlamaForCausalLM\"],\"vocab_size\":128256,\"hidden_size\":4096,"
        "\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
        "\"num_key_value_heads\":8,\"max_position_embeddings\":8192,\"rms_norm_eps\":1e-5}";
    struct nl_error error = {0};
    struct nl_checkpoint empty = {0};
    struct nl_config config;
    struct nl_footprint footprint;
    struct nl_json *root = nl_json_parse(text, sizeof text - 1, "config", &error);
    (void)state;
    assert_non_null(root);
    assert_int_equal(nl_config_read(root, "config", &config, &error), 0);
    assert_true(nl_footprint(&config, &empty, 8192, &footprint));
    assert_int_equal(footprint.cache_token, 2 * 131072);
    assert_int_equal(footprint.cache_token * config.n_heads / config.n_kv_heads, 2 * 524288);
    assert_int_equal(footprint.cache, (uint64_t)8192 * 2 * 131072);
    assert_true(nl_footprint(&config, &empty, 65, &footprint));
    assert_int_equal(footprint.cache, (uint64_t)128 * 2 * 131072); /* whole blocks */
    nl_config_free(&config);
    nl_json_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_mean_keeps_small_numbers),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_cache_of_llama_3_8b),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
