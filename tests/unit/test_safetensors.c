/* Safetensors files against the official library's verdicts: tests/data/safetensors/cases.jsonl (safetensors
 * 0.8.0). */
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "safetensors.h"

static const char folder[] = "tests/data/safetensors";

/* Where DEVIATIONS.md says that we differ. */
static bool deviates(const char *file)
{
    return strcmp(file, "dup_tensor_same.safetensors") == 0;
}

static float element(const struct nl_tensor *tensor, size_t i)
{
    uint16_t half;
    float value;
    if (tensor->dtype == NL_F32) {
        memcpy(&value, tensor->data + i * 4, 4);
        return value;
    }
    memcpy(&half, tensor->data + i * 2, 2);
    return tensor->dtype == NL_BF16 ? nl_float_of_bf16(half) : nl_float_of_f16(half);
}

static void same_value(const struct nl_json *wanted, float got)
{
    if (nl_json_is(wanted, NL_JSON_STRING)) {
        const char *text = nl_json_string(wanted);
        if (strcmp(text, "nan") == 0)
            assert_true(isnan(got));
        else
            assert_true(got == (text[0] == '-' ? -INFINITY : INFINITY));
        return;
    }
    assert_int_equal(nl_bits_of_float((float)nl_json_number(wanted)), nl_bits_of_float(got));
}

static void same_tensor(const struct nl_safetensors *file, const struct nl_json *wanted)
{
    const char *name = nl_json_string(nl_json_get(wanted, "name"));
    const struct nl_tensor *tensor = nl_safetensors_find(file, name);
    assert_non_null(tensor);
    assert_ptr_equal(tensor->file, file);
    assert_string_equal(nl_dtype_name(tensor->dtype), nl_json_string(nl_json_get(wanted, "dtype")));
    const struct nl_json *shape = nl_json_get(wanted, "shape"), *values = nl_json_get(wanted, "values");
    assert_int_equal(tensor->rank, nl_json_count(shape));
    unsigned i = 0;
    for (const struct nl_json *dim = nl_json_first(shape); dim; dim = nl_json_next(dim))
        assert_true((double)tensor->shape[i++] == nl_json_number(dim));
    bool known = values && (tensor->dtype == NL_F32 || tensor->dtype == NL_F16 || tensor->dtype == NL_BF16);
    size_t k = 0;
    for (const struct nl_json *value = known ? nl_json_first(values) : NULL; value;
         value = nl_json_next(value))
        same_value(value, element(tensor, k++));
}

static void same_metadata(const struct nl_safetensors *file, const struct nl_json *wanted)
{
    assert_int_equal(file->has_metadata, nl_json_is(wanted, NL_JSON_OBJECT));
    assert_int_equal(file->n_metadata, wanted ? nl_json_count(wanted) : 0);
    for (size_t i = 0; i < file->n_metadata; i++)
        assert_string_equal(nl_json_string(nl_json_get(wanted, file->metadata[i].key)),
                            file->metadata[i].value);
}

static void one_case(const struct nl_json *line)
{
    const char *name = nl_json_string(nl_json_get(line, "file"));
    bool valid = nl_json_is(nl_json_get(line, "valid"), NL_JSON_TRUE) && !deviates(name);
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    struct nl_error error = {0};
    struct nl_safetensors *file = nl_safetensors_open(path, &error);
    if ((file != NULL) != valid)
        fail_msg("%s: %s %s", name, valid ? "refused:" : "accepted", error.message);
    if (!file) {
        assert_int_equal(error.code, NL_DATA);
        assert_non_null(strstr(error.message, name));
        return;
    }
    const struct nl_json *tensors = nl_json_get(line, "tensors");
    assert_int_equal(file->count, nl_json_count(tensors));
    for (const struct nl_json *tensor = nl_json_first(tensors); tensor; tensor = nl_json_next(tensor))
        same_tensor(file, tensor);
    same_metadata(file, nl_json_get(line, "metadata"));
    nl_safetensors_close(file);
}

static void official_verdicts(void **state)
{
    (void)state;
    struct nl_buf text = {0};
    struct nl_error error;
    assert_int_equal(nl_file_read("tests/data/safetensors/cases.jsonl", 1 << 20, &text, &error), 0);
    int count = 0;
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"), count++) {
        struct nl_json *root = nl_json_parse(line, strlen(line), "cases.jsonl", &error);
        assert_non_null(root);
        one_case(root);
        nl_json_free(root);
    }
    assert_int_equal(count, 86);
    nl_buf_free(&text);
}

static char written[] = "/tmp/test_safetensors.XXXXXX";

/* Writes a header and `n_data` zero bytes to the file `written`. */
static void write_file(const char *header, size_t n_data)
{
    uint64_t length = strlen(header);
    uint8_t begin[8];
    for (int i = 0; i < 8; i++)
        begin[i] = (uint8_t)(length >> 8 * i);
    FILE *file = fopen(written, "wb");
    assert_non_null(file);
    fwrite(begin, 1, 8, file);
    fwrite(header, 1, length, file);
    while (n_data--)
        fputc(0, file);
    assert_int_equal(fclose(file), 0);
}

#define A           "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"
#define EXTRA(json) "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":" json "}}"
#define B           "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"
#define E5          "[[[[["
#define E25         E5 E5 E5 E5 E5
#define C5          "]]]]]"
#define C25         C5 C5 C5 C5 C5

/* Headers over one byte of data, with the verdict of safetensors 0.8.0. */
static const struct {
    const char *header;
    bool valid;
} headers[] = {
    {EXTRA("1"), true},
    {EXTRA("1e-999"), true},
    {EXTRA("1E+5"), true},
    {EXTRA("123456789012345678901234567890"), true},
    {EXTRA("1."), false},
    {EXTRA(".5"), false},
    {EXTRA("1e"), false},
    {EXTRA("-"), false},
    {EXTRA("-01"), false},
    {EXTRA("True"), false},
    {EXTRA("NaN"), false},
    {EXTRA("{\"a\":[true,false,null,{}]}"), true},
    {EXTRA("1,\"x\":2"), true},
    {EXTRA("\"\\u00AF\\uD83D\\uDE00\""), true},
    {EXTRA("\"\\ud83dx\""), false},
    {EXTRA("\"\\ud83d\\u0041\""), false},
    {EXTRA("\"\\udc00\""), false},
    {EXTRA("\"\\x41\""), false},
    {EXTRA("\"\x7f\""), true},
    {EXTRA("\"\xed\xa0\x80\""), false},
    {EXTRA("\"\xf4\x90\x80\x80\""), false},
    {EXTRA("\"\xc0\x80\""), false},
    {EXTRA("\"\xf0\x9f\x98\x80\""), true},
    {EXTRA(E25 E25 E25 E25 E25 C25 C25 C25 C25 C25), true}, /* 125 deep in the entry, 127 in all */
    {EXTRA("[" E25 E25 E25 E25 E25 C25 C25 C25 C25 C25 "]"), false},
    {"\t\r\n {" A "} \t\r\n", true},
    {"\f{" A "}", false},
    {"\xef\xbb\xbf{" A "}", false},
    {"{" A ",\"__metadata__\":null}", true},
    {"{" A ",\"__metadata__\":[]}", false},
    {"{" A ",\"__metadata__\":{\"k\":null}}", false},
    {"{\"__met\\u0061data__\":{\"k\":\"v\"}," A "}", true},
    {"{\"__met\\u0061data__\":{\"k\":3}," A "}", false},
    {"{\"__metadata__\":{},\"__metadata__\":{}," A "}", false},
    {"{\"a\":null}", false},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":null,\"data_offsets\":[0,1]}}", false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-0,1]}}", false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-0],\"data_offsets\":[0,0]}," B, false},
    {"{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[2],\"data_offsets\":[0,1]}}", false},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", true},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}," B, true},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[5,5]}," B, false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0,1099511627776,1099511627776],\"data_offsets\":[0,0]}," B, true},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1099511627776,1099511627776,0],\"data_offsets\":[0,0]}," B, false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808,0],\"data_offsets\":[0,0]}," B, true},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551616,0],\"data_offsets\":[0,0]}," B, false},
};

/* Where we differ, on files that the format's description forbids or does not speak of. */
static const struct {
    const char *header;
    bool ours;
} different[] = {
    {"{" A "," A "}", false},                                      /* a name twice */
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}," A "}", false}, /* a metadata key twice */
    {"{\"a\":[\"U8\",[1],[0,1]]}", false},                         /* an entry as an array */
    {"{\"a\":{\"dtype\":{\"U8\":null},\"shape\":[1],\"data_offsets\":[0,1]}}", false},
    {EXTRA("1e999"), true}, /* a number past float64 in a field that nobody reads */
};

static bool opens(const char *header)
{
    struct nl_error error = {0};
    write_file(header, 1);
    struct nl_safetensors *file = nl_safetensors_open(written, &error);
    assert_true(file || (error.code == NL_DATA && strstr(error.message, written)));
    nl_safetensors_close(file);
    return file != NULL;
}

static void header_verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (opens(headers[i].header) != headers[i].valid)
            fail_msg("header %zu: %s", i, headers[i].header);
    for (size_t i = 0; i < sizeof different / sizeof *different; i++)
        if (opens(different[i].header) != different[i].ours)
            fail_msg("different %zu: %s", i, different[i].header);
}

struct collected {
    long count;
    char text[4000];
};

static void collect(void *context, const char *path, const char *message)
{
    struct collected *all = context;
    assert_string_equal(path, written);
    all->count++;
    strncat(all->text, message, sizeof all->text - strlen(all->text) - 1);
    strncat(all->text, "\n", sizeof all->text - strlen(all->text) - 1);
}

static void every_fault_is_reported(void **state)
{
    (void)state;
    write_file("{\"__metadata__\":{\"n\":1,\"k\":\"x\",\"k\":\"y\"},"
               "\"dim\":{\"dtype\":\"U8\",\"shape\":[-1,1.5],\"data_offsets\":[0,2]},"
               "\"type\":{\"dtype\":\"I4\",\"shape\":[2],\"data_offsets\":[2,4]},"
               "\"size\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[4,6]},"
               "\"over\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[5,7]},"
               "\"hole\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]},"
               "\"hole\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9,10]}}",
               12);
    struct collected all = {0};
    struct nl_faults faults = {.report = collect, .context = &all};
    struct nl_safetensors *file;
    struct nl_error error;
    assert_int_equal(nl_safetensors_check(written, &faults, &file, &error), 0);
    assert_null(file);
    assert_string_equal(all.text, "value is not a string: __metadata__ key 'n'\n"
                                  "shape[0] is '-1', not a whole number below 2^64: tensor 'dim'\n"
                                  "shape[1] is '1.5', not a whole number below 2^64: tensor 'dim'\n"
                                  "unknown dtype 'I4': tensor 'type'\n"
                                  "dtype and shape need 9 bytes, data_offsets give 2: tensor 'size'\n"
                                  "name is given twice: tensor 'hole'\n"
                                  "key is given twice: __metadata__ key 'k'\n"
                                  "overlaps tensor 'size' from data offset 5: tensor 'over'\n"
                                  "hole of 1 bytes at data offset 7: before tensor 'hole'\n"
                                  "2 bytes behind the last tensor: data offset 10\n");
    assert_int_equal(faults.count, all.count);
}

/* Without offsets for a tensor, the hole it leaves is not a second fault. */
static void no_faults_that_follow(void **state)
{
    (void)state;
    write_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]},"
               "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}}",
               6);
    struct collected all = {0};
    struct nl_faults faults = {.report = collect, .context = &all};
    struct nl_safetensors *file;
    struct nl_error error;
    assert_int_equal(nl_safetensors_check(written, &faults, &file, &error), 0);
    assert_string_equal(all.text, "data_offsets [4, 0] end before they begin: tensor 'a'\n");
}

/* Cut after any byte: refused. Any byte of the header changed to any other: no crash, and no read behind the
 * mapping's end. */
static void cut_and_flipped(void **state)
{
    (void)state;
    struct nl_buf bytes = {0};
    struct nl_error error;
    assert_int_equal(nl_file_read("tests/data/safetensors/ok_basic.safetensors", 1 << 20, &bytes, &error), 0);
    for (size_t size = 0; size < bytes.size; size++) {
        int fd = open(written, O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, bytes.data, size), size);
        close(fd);
        assert_null(nl_safetensors_open(written, &error));
        assert_int_equal(error.code, NL_DATA);
        size_t header_end = 8 + (uint8_t)bytes.data[0];
        const char *why = size < 8 ? "too short" : size < header_end ? "header length" : "cut short";
        assert_non_null(strstr(error.message, why));
    }
    for (size_t at = 0; at < bytes.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            char old = bytes.data[at];
            bytes.data[at] = (char)(old ^ 1 << bit);
            int fd = open(written, O_WRONLY | O_TRUNC);
            assert_int_equal(write(fd, bytes.data, bytes.size), bytes.size);
            close(fd);
            nl_safetensors_close(nl_safetensors_open(written, NULL));
            bytes.data[at] = old;
        }
    nl_buf_free(&bytes);
}

static void other_files(void **state)
{
    (void)state;
    struct nl_error error;
    assert_null(nl_safetensors_open("tests/data/nowhere.safetensors", &error));
    assert_int_equal(error.code, NL_NOT_FOUND);
    assert_null(nl_safetensors_open("tests/data", &error));
    assert_int_equal(error.code, NL_DATA);
    FILE *file = fopen(written, "wb");
    fputs("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", file);
    fclose(file);
    assert_null(nl_safetensors_open(written, &error));
    assert_non_null(strstr(error.message, "git lfs pull"));
}

static void header_as_it_stands(void **state)
{
    (void)state;
    struct nl_buf out = {0};
    struct nl_error error;
    write_file("{ not JSON ", 3);
    assert_int_equal(nl_safetensors_header(written, &out, &error), 0);
    assert_string_equal(out.data, "{ not JSON ");
    nl_buf_free(&out);
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(written);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(official_verdicts),       cmocka_unit_test(header_verdicts),
        cmocka_unit_test(every_fault_is_reported), cmocka_unit_test(no_faults_that_follow),
        cmocka_unit_test(cut_and_flipped),         cmocka_unit_test(other_files),
        cmocka_unit_test(header_as_it_stands),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
