/* Errors, element types and 16-bit floats. */
#include "test.h"

static void f16_round_trip(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        float value = nl_float_of_f16((uint16_t)half);
        if (value == value)
            assert_int_equal(nl_f16_of_float(value), half);
        else
            assert_true((nl_f16_of_float(value) & 0x7fff) > 0x7c00);
    }
}

static void f16_rounds_to_even(void **state)
{
    (void)state;
    assert_int_equal(nl_f16_of_float(1.0f + 0x1p-11f), 0x3c00);
    assert_int_equal(nl_f16_of_float(1.0f + 0x1.8p-10f), 0x3c02);
    assert_int_equal(nl_f16_of_float(65519.996f), 0x7bff);
    assert_int_equal(nl_f16_of_float(65520.0f), 0x7c00);
    assert_int_equal(nl_f16_of_float(0x1p-25f), 0);
    assert_int_equal(nl_f16_of_float(0x1.000002p-25f), 1);
    assert_int_equal(nl_f16_of_float(-0x1.8p-24f), 0x8002);
}

static void bf16_rounds_to_even(void **state)
{
    (void)state;
    assert_int_equal(nl_bf16_of_float(1.0f + 0x1p-8f), 0x3f80);
    assert_int_equal(nl_bf16_of_float(1.0f + 0x1.8p-7f), 0x3f82);
    assert_int_equal(nl_bf16_of_float(3.4e38f), 0x7f80);
    assert_true((nl_bf16_of_float(nl_float_of_bits(0x7f800001)) & 0x7fff) > 0x7f80);
}

static void dtypes_by_name(void **state)
{
    (void)state;
    enum nl_dtype dtype;
    assert_true(nl_dtype_parse("BF16", 4, &dtype));
    assert_int_equal(dtype, NL_BF16);
    assert_int_equal(nl_dtype_bits(NL_F6_E2M3), 6);
    assert_false(nl_dtype_parse("bf16", 4, &dtype));
    assert_false(nl_dtype_parse("BF1", 3, &dtype));
}

static void errors_carry_code_and_text(void **state)
{
    (void)state;
    struct nl_error error;
    assert_int_equal(nl_fail(&error, NL_DATA, "bad %s: %d", "thing", 7), -1);
    assert_int_equal(error.code, NL_DATA);
    assert_string_equal(error.message, "bad thing: 7");
    assert_int_equal(nl_fail(NULL, NL_DATA, "x"), -1);
    nl_fail(&error, NL_DATA, "tensor %s", "a\x1b[31m\n\x7f\xc3\xa9");
    assert_string_equal(error.message, "tensor a?[31m??\xc3\xa9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_round_trip),
        cmocka_unit_test(f16_rounds_to_even),
        cmocka_unit_test(bf16_rounds_to_even),
        cmocka_unit_test(dtypes_by_name),
        cmocka_unit_test(errors_carry_code_and_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
