/* What st-inspect prints: order, escapes, totals. */
#include "test.h"

#include <string.h>

#include "escape.h"
#include "inspect.h"

static void natural_order(void **state)
{
    (void)state;
    static const char *const sorted[] = {"",
                                         "a",
                                         "a.1",
                                         "a.01",
                                         "a.2.b",
                                         "a.2.c",
                                         "a.10.b",
                                         "a.10.b.1",
                                         "a.18446744073709551616",
                                         "a.18446744073709551617",
                                         "b",
                                         "b0",
                                         "b00",
                                         "\xc3\xbc"};
    /* Equal numbers: more zeros come first or last, but always alike. */
    const size_t n = sizeof sorted / sizeof *sorted;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            int order = nl_natural_compare(sorted[i], sorted[k]),
                back = nl_natural_compare(sorted[k], sorted[i]);
            assert_true((order > 0) == (back < 0) && (order == 0) == (i == k));
            if (strcmp(sorted[i], "a.01") != 0 && strcmp(sorted[k], "a.01") != 0)
                assert_true((order < 0) == (i < k));
        }
}

static void escapes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *json;
    } all[] = {
        {"model.norm", "model.norm", "\"model.norm\""},
        {"a\tb\n", "a\\u0009b\\u000a", "\"a\\u0009b\\u000a\""},
        {"\x1b[31m\x7f", "\\u001b[31m\\u007f", "\"\\u001b[31m\\u007f\""},
        {"w\xc0\x80x", "w\\u0000x", "\"w\\u0000x\""},
        {"\\n\"", "\\\\n\"", "\"\\\\n\\\"\""},
        {"\xc2\x9b\xc3\xbc\xe2\x98\x83\xf0\x9f\x98\x80", "\\u009b\xc3\xbc\xe2\x98\x83\xf0\x9f\x98\x80",
         "\"\\u009b\xc3\xbc\xe2\x98\x83\xf0\x9f\x98\x80\""},
        {"\xe2\x80\xae"
         "cba",
         "\\u202ecba", "\"\\u202ecba\""},
        {"bad\xff\xe2\x98", "bad\\xff\\xe2\\x98", "\"bad\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    struct nl_buf out = {0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        nl_buf_clear(&out);
        nl_escape(&out, all[i].name, 0);
        assert_string_equal(out.data, all[i].text);
        nl_buf_clear(&out);
        nl_escape_json(&out, all[i].name);
        assert_string_equal(out.data, all[i].json);
    }
    nl_buf_clear(&out);
    nl_escape(&out, "ab\ncd", 8);
    assert_string_equal(out.data, "ab\\u000a...");
    nl_buf_free(&out);
    char shown[NL_SHOWN], name[1001];
    memset(name, '\n', 1000);
    name[1000] = '\0';
    assert_true(strlen(nl_show(shown, name)) < NL_SHOWN);
    assert_string_equal(nl_show(shown, ""), "''");
}

static void prints(void (*print)(const struct nl_checkpoint *, bool, struct nl_buf *), const char *path,
                   bool flag, const char *wanted)
{
    struct nl_error error;
    struct nl_buf out = {0};
    struct nl_checkpoint *checkpoint = nl_checkpoint_open(path, &error);
    assert_non_null(checkpoint);
    print(checkpoint, flag, &out);
    assert_string_equal(out.size ? out.data : "", wanted);
    nl_buf_free(&out);
    nl_checkpoint_close(checkpoint);
}

static void table(void **state)
{
    (void)state;
    prints(nl_inspect_table, "tests/data/safetensors/dtype_f8.safetensors", false,
           "dtype    shape  bytes  name\n"
           "F8_E4M3  [2]        2  a\n"
           "F8_E5M2  [2]        2  b\n"
           "F8_E8M0  [2]        2  c\n"
           "\n"
           "dtype        tensors  parameters  bytes\n"
           "F8_E5M2            1           2      2\n"
           "F8_E4M3            1           2      2\n"
           "F8_E8M0            1           2      2\n"
           "all                3           6      6\n");
    prints(nl_inspect_table, "tests/data/safetensors/no_tensors.safetensors", false,
           "dtype        tensors  parameters  bytes\n"
           "all                0           0      0\n");
    prints(nl_inspect_table, "tests/data/index/single/model.safetensors", true,
           "dtype  shape    bytes  name\n"
           "F32    [16, 8]   512B  lm_head.weight\n"
           "F32    [16, 8]   512B  model.embed_tokens.weight\n"
           "F32    [8]        32B  model.layers.0.input_layernorm.weight\n"
           "F32    [8, 12]   384B  model.layers.0.mlp.down_proj.weight\n"
           "F32    [12, 8]   384B  model.layers.0.mlp.gate_proj.weight\n"
           "F32    [12, 8]   384B  model.layers.0.mlp.up_proj.weight\n"
           "F32    [8]        32B  model.layers.0.post_attention_layernorm.weight\n"
           "F32    [4, 8]    128B  model.layers.0.self_attn.k_proj.weight\n"
           "F32    [8, 8]    256B  model.layers.0.self_attn.o_proj.weight\n"
           "F32    [8, 8]    256B  model.layers.0.self_attn.q_proj.weight\n"
           "F32    [4, 8]    128B  model.layers.0.self_attn.v_proj.weight\n"
           "F32    [8]        32B  model.norm.weight\n"
           "\n"
           "dtype        tensors  parameters      bytes\n"
           "F32               12         760     3.0KiB\n"
           "all               12         760     3.0KiB\n");
}

static void metadata(void **state)
{
    (void)state;
    prints(nl_inspect_metadata, "tests/data/safetensors/meta_strings.safetensors", false,
           "format\tpt\nn\t1\n");
    prints(nl_inspect_metadata, "tests/data/safetensors/meta_last.safetensors", true,
           "tests/data/safetensors/meta_last.safetensors\tx\t\n");
    prints(nl_inspect_metadata, "tests/data/index/whole", true,
           "tests/data/index/whole/model.safetensors.index.json\ttotal_size\t3040\n"
           "tests/data/index/whole/model-00001-of-00002.safetensors\tformat\tpt\n"
           "tests/data/index/whole/model-00002-of-00002.safetensors\tformat\tpt\n");
}

static void offsets(void **state)
{
    (void)state;
    prints(nl_inspect_offsets, "tests/data/safetensors/unaligned.safetensors", false,
           "tests/data/safetensors/unaligned.safetensors: 119\n"
           " from     to  bytes  align   dtype        name\n"
           "    0      8      8   4096   -            (header length)\n"
           "    8    114    106      8   -            (header)\n"
           "  114    115      1      2   U8           a\n"
           "  115    119      4      1!  F32          b\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(natural_order), cmocka_unit_test(escapes), cmocka_unit_test(table),
        cmocka_unit_test(metadata),      cmocka_unit_test(offsets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
