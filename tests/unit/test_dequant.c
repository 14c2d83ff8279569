/* Each block type against the elements that the Python package gguf makes of the same bytes, bit by bit. */
#include "test.h"

#include "dequant.h"
#include "file.h"

static uint32_t u32_at(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* blocks.bin: for each type its number, the number of blocks, the blocks, the elements in float32. */
static void blocks_as_python_reads_them(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_buf file = {0};
    if (nl_file_read("tests/data/gguf/blocks.bin", 1 << 20, &file, &error) != 0)
        fail_msg("%s", error.message);
    int types = 0;
    for (size_t at = 0; at < file.size; types++) {
        const struct nl_ggml_type *type = nl_ggml_type(u32_at(file.data + at));
        size_t n = u32_at(file.data + at + 4);
        assert_non_null(type);
        assert_non_null(type->dequantize);
        at += 8;
        float *got = test_malloc(n * type->elements * sizeof *got);
        nl_dequantize(type, (const uint8_t *)file.data + at, n, got);
        at += n * type->bytes;
        for (size_t i = 0; i < n * type->elements; i++, at += 4)
            if (nl_bits_of_float(got[i]) != u32_at(file.data + at))
                fail_msg("%s, element %zu: %08x, wanted %08x", type->name, i, nl_bits_of_float(got[i]),
                         u32_at(file.data + at));
        test_free(got);
    }
    assert_int_equal(types, 11);
    nl_buf_free(&file);
}

static void unknown_types(void **state)
{
    (void)state;
    static const uint32_t none[] = {4, 5, 31, 32, 33, 36, 37, 38, 42, 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(nl_ggml_type(none[i]));
    assert_string_equal(nl_ggml_type(17)->name, "IQ2_XS");
    assert_null(nl_ggml_type(17)->dequantize);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_as_python_reads_them),
        cmocka_unit_test(unknown_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
