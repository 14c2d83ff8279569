/* Good and hostile GGUF files, built byte by byte. */
#include "test.h"

#include "buf.h"
#include "gguf.h"

static void integer(struct nl_buf *b, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        nl_buf_putc(b, (char)(i < 8 ? value >> 8 * i : 0));
}

static void string(struct nl_buf *b, const char *text)
{
    integer(b, strlen(text), 8);
    nl_buf_puts(b, text);
}

static void header(struct nl_buf *b, uint64_t tensors, uint64_t pairs)
{
    nl_buf_puts(b, "GGUF");
    integer(b, 3, 4);
    integer(b, tensors, 8);
    integer(b, pairs, 8);
}

static void pair_u32(struct nl_buf *b, const char *key, uint32_t value)
{
    string(b, key);
    integer(b, NL_GGUF_U32, 4);
    integer(b, value, 4);
}

static void tensor(struct nl_buf *b, const char *name, uint64_t rows, uint64_t columns, uint32_t type,
                   uint64_t offset)
{
    string(b, name);
    integer(b, 2, 4);
    integer(b, columns, 8);
    integer(b, rows, 8);
    integer(b, type, 4);
    integer(b, offset, 8);
}

static void pad(struct nl_buf *b, size_t alignment)
{
    while (b->size % alignment)
        nl_buf_putc(b, 0);
}

/* Parses a copy that ends where its memory ends, so that AddressSanitizer sees a read beyond. */
static struct nl_gguf *parse(const struct nl_buf *b, size_t size, uint8_t **copy, struct nl_error *error)
{
    *copy = malloc(size ? size : 1);
    assert_non_null(*copy);
    if (size)
        memcpy(*copy, b->data, size);
    return nl_gguf_parse(*copy, size, "x.gguf", error);
}

/* Frees b. */
static void refused(struct nl_buf *b, enum nl_status code, const char *message)
{
    struct nl_error error = {0};
    uint8_t *copy;
    struct nl_gguf *file = parse(b, b->size, &copy, &error);
    if (file)
        fail_msg("accepted, wanted: %s", message);
    assert_string_equal(error.message, message);
    assert_int_equal(error.code, code);
    free(copy);
    nl_buf_free(b);
}

/* A file with something of everything. */
static void good(struct nl_buf *b)
{
    header(b, 3, 7);
    string(b, "text");
    integer(b, NL_GGUF_STRING, 4);
    string(b, "hello");
    string(b, "list");
    integer(b, NL_GGUF_ARRAY, 4);
    integer(b, NL_GGUF_STRING, 4);
    integer(b, 3, 8);
    string(b, "a");
    string(b, "");
    string(b, "ccc");
    string(b, "numbers");
    integer(b, NL_GGUF_ARRAY, 4);
    integer(b, NL_GGUF_I32, 4);
    integer(b, 2, 8);
    integer(b, 7, 4);
    integer(b, (uint32_t)-9, 4);
    pair_u32(b, "general.alignment", 64);
    string(b, "negative");
    integer(b, NL_GGUF_I16, 4);
    integer(b, (uint16_t)-2, 2);
    string(b, "float");
    integer(b, NL_GGUF_F32, 4);
    integer(b, nl_bits_of_float(1.5f), 4);
    string(b, "flag");
    integer(b, NL_GGUF_BOOL, 4);
    integer(b, 1, 1);
    tensor(b, "b", 2, 3, NL_GGML_F32, 64);
    tensor(b, "a", 1, 32, NL_GGML_Q4_0, 0);
    tensor(b, "empty", 0, 32, NL_GGML_Q4_0, 64);
    pad(b, 64);
    for (int i = 0; i < 64 + 24; i++)
        nl_buf_putc(b, (char)i);
}

static void reads_a_good_file(void **state)
{
    (void)state;
    struct nl_buf b = {0};
    struct nl_error error = {0};
    uint8_t *copy;
    good(&b);
    struct nl_gguf *f = parse(&b, b.size, &copy, &error);
    if (!f)
        fail_msg("%s", error.message);
    struct nl_gguf_string text, *list;
    size_t count;
    assert_int_equal(nl_gguf_text(f, "text", &text, &error), 1);
    assert_int_equal(text.size, 5);
    assert_memory_equal(text.data, "hello", 5);
    assert_int_equal(nl_gguf_strings(f, "list", &list, &count, &error), 1);
    assert_int_equal(count, 3);
    assert_int_equal(list[1].size, 0);
    assert_memory_equal(list[2].data, "ccc", 3);
    free(list);
    const struct nl_gguf_pair *numbers;
    assert_int_equal(nl_gguf_array(f, "numbers", NL_GGUF_I32, &numbers, &error), 1);
    assert_int_equal(nl_gguf_i32_at(numbers, 1), -9);
    int64_t value = 0;
    assert_int_equal(nl_gguf_integer(f, "negative", -5, 5, &value, &error), 1);
    assert_int_equal(value, -2);
    double number = 0;
    assert_int_equal(nl_gguf_float(f, "float", &number, &error), 1);
    assert_true(number == 1.5);
    bool flag = false;
    assert_int_equal(nl_gguf_bool(f, "flag", &flag, &error), 1);
    assert_true(flag);
    const struct nl_gguf_tensor *t = nl_gguf_tensor(f, "b");
    assert_non_null(t);
    assert_int_equal(t->size, 24);
    assert_int_equal(t->data[0], 64);
    assert_int_equal(nl_gguf_tensor(f, "a")->size, 18);
    assert_int_equal(nl_gguf_tensor(f, "empty")->size, 0);
    assert_null(nl_gguf_tensor(f, "c"));
    nl_gguf_close(f);
    free(copy);
    nl_buf_free(&b);
}

static void typed_values_are_checked(void **state)
{
    (void)state;
    struct nl_buf b = {0};
    struct nl_error error = {0};
    uint8_t *copy;
    good(&b);
    struct nl_gguf *f = parse(&b, b.size, &copy, &error);
    assert_non_null(f);
    int64_t value = 77;
    struct nl_gguf_string text;
    assert_int_equal(nl_gguf_integer(f, "none", 0, 9, &value, &error), 0);
    assert_int_equal(value, 77);
    assert_int_equal(nl_gguf_integer(f, "text", 0, 9, &value, &error), -1);
    assert_string_equal(error.message, "GGUF value is not an integer: x.gguf: text");
    assert_int_equal(nl_gguf_integer(f, "numbers", 0, 9, &value, &error), -1);
    assert_int_equal(nl_gguf_integer(f, "general.alignment", 0, 9, &value, &error), -1);
    assert_string_equal(error.message, "GGUF value 64 is out of range (0 to 9): x.gguf: general.alignment");
    assert_int_equal(nl_gguf_text(f, "list", &text, &error), -1);
    assert_int_equal(error.code, NL_DATA);
    nl_gguf_close(f);
    free(copy);
    nl_buf_free(&b);
}

static void cut_at_every_byte(void **state)
{
    (void)state;
    struct nl_buf b = {0};
    good(&b);
    for (size_t size = 0; size < b.size; size++) {
        struct nl_error error = {0};
        uint8_t *copy;
        struct nl_gguf *f = parse(&b, size, &copy, &error);
        if (f)
            fail_msg("accepted when cut to %zu of %zu bytes", size, b.size);
        assert_int_equal(error.code, NL_DATA);
        assert_true(error.message[0]);
        free(copy);
    }
    nl_buf_free(&b);
}

/* Whatever a changed byte does, it does no harm. */
static void every_byte_changed(void **state)
{
    (void)state;
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct nl_buf b = {0};
    good(&b);
    for (size_t at = 0; at < b.size; at++)
        for (size_t i = 0; i < sizeof values; i++) {
            char before = b.data[at];
            uint8_t *copy;
            b.data[at] = (char)values[i];
            nl_gguf_close(parse(&b, b.size, &copy, NULL));
            free(copy);
            b.data[at] = before;
        }
    nl_buf_free(&b);
}

static void wrong_kinds_of_file(void **state)
{
    (void)state;
    struct nl_buf b = {0};
    nl_buf_puts(&b, "GGML....");
    refused(&b, NL_DATA, "not a GGUF file: x.gguf");
    nl_buf_puts(&b, "GGUF");
    integer(&b, 2, 4);
    integer(&b, 0, 16);
    refused(&b, NL_UNSUPPORTED, "GGUF version 2 is not supported, 3 is: x.gguf");
    nl_buf_puts(&b, "GGUF");
    integer(&b, 0x03000000, 4);
    integer(&b, 0, 16);
    refused(&b, NL_UNSUPPORTED, "big-endian GGUF is not supported: x.gguf");
}

static void absurd_counts(void **state)
{
    (void)state;
    struct nl_buf b = {0};
    header(&b, UINT64_MAX, 0);
    refused(&b, NL_DATA, "GGUF file is too short for 18446744073709551615 tensors: x.gguf");
    header(&b, 0, UINT64_MAX / 2);
    refused(&b, NL_DATA, "GGUF file is too short for 9223372036854775807 metadata pairs: x.gguf");
    header(&b, 0, 1);
    integer(&b, UINT64_MAX, 8);
    integer(&b, 0, 16);
    refused(&b, NL_DATA, "GGUF string is longer than the file: x.gguf: offset 32");
    header(&b, 0, 1);
    string(&b, "key");
    integer(&b, NL_GGUF_ARRAY, 4);
    integer(&b, NL_GGUF_F64, 4);
    integer(&b, UINT64_MAX / 8 + 2, 8); /* times 8 is 8 */
    integer(&b, 0, 8);
    refused(&b, NL_DATA, "GGUF value is longer than the file: x.gguf: key");
    header(&b, 0, 1);
    string(&b, "key");
    integer(&b, NL_GGUF_ARRAY, 4);
    integer(&b, NL_GGUF_STRING, 4);
    integer(&b, UINT64_MAX, 8);
    string(&b, "one");
    refused(&b, NL_DATA, "GGUF file ends in its header: x.gguf: offset 62");
}

static void bad_pairs(void **state)
{
    (void)state;
    struct nl_buf b = {0};
    header(&b, 0, 1);
    string(&b, "key");
    integer(&b, NL_GGUF_KINDS, 4);
    integer(&b, 0, 8);
    refused(&b, NL_DATA, "GGUF value type 13 is unknown: x.gguf: key");
    header(&b, 0, 1);
    string(&b, "key");
    integer(&b, NL_GGUF_ARRAY, 4);
    integer(&b, NL_GGUF_ARRAY, 4);
    integer(&b, 0, 8);
    refused(&b, NL_UNSUPPORTED, "GGUF array of arrays is not supported: x.gguf: key");
    header(&b, 0, 1);
    string(&b, "key");
    integer(&b, NL_GGUF_BOOL, 4);
    integer(&b, 2, 1);
    refused(&b, NL_DATA, "GGUF boolean is 2: x.gguf: key");
    header(&b, 0, 1);
    integer(&b, 3, 8);
    nl_buf_add(&b, "k\0y", 3);
    integer(&b, NL_GGUF_U32, 4);
    integer(&b, 2, 4);
    refused(&b, NL_DATA, "GGUF name holds a NUL: x.gguf: offset 35");
    header(&b, 0, 2);
    pair_u32(&b, "twice", 1);
    pair_u32(&b, "twice", 1);
    refused(&b, NL_DATA, "GGUF key occurs twice: x.gguf: twice");
    header(&b, 0, 1);
    pair_u32(&b, "general.alignment", 48);
    refused(&b, NL_DATA, "GGUF alignment 48 is no power of two: x.gguf");
    header(&b, 0, 1);
    pair_u32(&b, "general.alignment", 0);
    refused(&b, NL_DATA, "GGUF value 0 is out of range (1 to 1048576): x.gguf: general.alignment");
}

static void bad_tensors(void **state)
{
    (void)state;
    static const struct {
        uint64_t rows, columns;
        uint32_t type;
        uint64_t offset;
        enum nl_status code;
        const char *message;
    } cases[] = {
        {UINT64_MAX / 2, 4, 0, 0, NL_DATA, "GGUF tensor's dimensions overflow: x.gguf: tensor w"},
        {1ull << 62, 1, 0, 0, NL_DATA, "GGUF tensor's size overflows: x.gguf: tensor w"},
        {1ull << 61, 1, 0, 0, NL_DATA, "GGUF tensor lies beyond the end of the file: x.gguf: tensor w"},
        {3, 3, 0, 0, NL_DATA, "GGUF tensor lies beyond the end of the file: x.gguf: tensor w"},
        {2, 4, 0, 32, NL_DATA, "GGUF tensor lies beyond the end of the file: x.gguf: tensor w"},
        {2, 4, 0, UINT64_MAX - 31, NL_DATA, "GGUF tensor lies beyond the end of the file: x.gguf: tensor w"},
        {2, 2, 0, 16, NL_DATA, "GGUF tensor is not aligned: x.gguf: tensor w"},
        {1, 33, NL_GGML_Q8_0, 0, NL_DATA, "GGUF tensor's rows are no whole blocks: x.gguf: tensor w"},
        {1, 128, NL_GGML_Q6_K, 0, NL_DATA, "GGUF tensor's rows are no whole blocks: x.gguf: tensor w"},
        {1, 32, 4, 0, NL_UNSUPPORTED, "GGUF tensor type 4 is unknown: x.gguf: tensor w"},
        {1, 32, UINT32_MAX, 0, NL_UNSUPPORTED, "GGUF tensor type 4294967295 is unknown: x.gguf: tensor w"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nl_buf b = {0};
        header(&b, 1, 0);
        tensor(&b, "w", cases[i].rows, cases[i].columns, cases[i].type, cases[i].offset);
        pad(&b, 32);
        integer(&b, 0, 32);
        refused(&b, cases[i].code, cases[i].message);
    }
    struct nl_buf b = {0};
    header(&b, 1, 0);
    string(&b, "w");
    integer(&b, 5, 4);
    integer(&b, 0, 60);
    refused(&b, NL_DATA, "GGUF tensor has more than 4 dimensions: x.gguf: tensor w");
}

static void two_tensors(void **state)
{
    (void)state;
    struct nl_buf b = {0};
    header(&b, 2, 0);
    tensor(&b, "w", 2, 4, 0, 0);
    tensor(&b, "w", 2, 4, 0, 32);
    pad(&b, 32);
    integer(&b, 0, 64);
    refused(&b, NL_DATA, "GGUF tensor occurs twice: x.gguf: tensor w");
    header(&b, 2, 0);
    tensor(&b, "v", 3, 4, 0, 0);
    tensor(&b, "w", 2, 4, 0, 32);
    pad(&b, 32);
    integer(&b, 0, 64);
    refused(&b, NL_DATA, "GGUF tensor overlaps another: x.gguf: tensor w");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_good_file),   cmocka_unit_test(typed_values_are_checked),
        cmocka_unit_test(cut_at_every_byte),   cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(wrong_kinds_of_file), cmocka_unit_test(absurd_counts),
        cmocka_unit_test(bad_pairs),           cmocka_unit_test(bad_tensors),
        cmocka_unit_test(two_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
