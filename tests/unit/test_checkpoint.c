/* Checkpoint folders: tests/data/index, as far as the tensors' table decides, and what a temporary folder can
 * show. */
#include "test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"

/* In the order of tests/data/index/cases.jsonl: how many tensors, or the error and what its message must
   name. Faults of a shape, a type or a layer are the model's to find. */
static const struct {
    const char *name;
    size_t count;
    enum nl_status code;
    const char *message;
} folders[] = {
    {"whole", 12, NL_OK, NULL},
    {"single", 12, NL_OK, NULL},
    {"missing_shard", 0, NL_NOT_FOUND, "missing_shard/model-00002-of-00002.safetensors"},
    {"missing_all", 0, NL_NOT_FOUND, "missing_all/model-00001-of-00002.safetensors"},
    {"truncated_shard", 0, NL_DATA, "truncated_shard/model-00002-of-00002.safetensors"},
    {"empty_shard", 0, NL_DATA, "empty_shard/model-00002-of-00002.safetensors"},
    {"parent_path", 0, NL_DATA, "'../outside.safetensors'"},
    {"subdir_path", 0, NL_DATA, "'sub/model-00001-of-00002.safetensors'"},
    {"stray_file", 12, NL_OK, NULL},
    {"stray_model", 6, NL_OK, NULL},
    {"no_total_size", 12, NL_OK, NULL},
    {"index_not_json", 0, NL_DATA, "index_not_json/model.safetensors.index.json"},
    {"index_no_map", 0, NL_DATA, "no weight_map"},
    {"index_map_number", 0, NL_DATA, "'model.layers.0.self_attn.q_proj.weight'"},
    {"stale_index", 0, NL_NOT_FOUND, "model-00001-of-00003.safetensors"},
    {"corrupt_shard", 0, NL_DATA, "corrupt_shard/model-00002-of-00002.safetensors"},
    {"extra_tensor", 13, NL_OK, NULL},
    {"lost_tensor", 11, NL_OK, NULL},
};

static void each_folder(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[200];
        struct nl_error error = {0};
        snprintf(path, sizeof path, "tests/data/index/%s", folders[i].name);
        struct nl_checkpoint *checkpoint = nl_checkpoint_open(path, &error);
        if ((checkpoint != NULL) != (folders[i].code == NL_OK))
            fail_msg("%s: %s", folders[i].name, error.message);
        if (checkpoint) {
            assert_int_equal(checkpoint->count, folders[i].count);
        } else {
            assert_int_equal(error.code, folders[i].code);
            if (!strstr(error.message, folders[i].message))
                fail_msg("%s: %s", folders[i].name, error.message);
        }
        nl_checkpoint_close(checkpoint);
    }
}

static void tensors_of_shards(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_checkpoint *checkpoint =
        nl_checkpoint_open("tests/data/index/whole/model.safetensors.index.json", &error);
    struct nl_checkpoint *single = nl_checkpoint_open("tests/data/index/single/model.safetensors", &error);
    assert_non_null(checkpoint);
    assert_non_null(single);
    assert_int_equal(checkpoint->n_files, 2);
    assert_int_equal(checkpoint->count, single->count);
    for (size_t i = 0; i < single->count; i++) {
        const struct nl_tensor *a = single->tensors[i], *b = nl_checkpoint_find(checkpoint, a->name);
        assert_non_null(b);
        assert_ptr_equal(checkpoint->tensors[i], b);
        assert_int_equal(a->end - a->begin, b->end - b->begin);
        assert_memory_equal(a->data, b->data, a->end - a->begin);
    }
    assert_null(nl_checkpoint_find(checkpoint, "model.norm"));
    assert_null(nl_checkpoint_find(checkpoint, ""));
    nl_checkpoint_close(checkpoint);
    nl_checkpoint_close(single);
}

static char folder[] = "/tmp/test_checkpoint.XXXXXX";

static void put(const char *name, const void *bytes, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* One-byte tensors of these names (each one letter). */
static void put_tensors(const char *file, const char *names)
{
    struct nl_buf text = {0};
    nl_buf_add(&text, "\0\0\0\0\0\0\0\0{", 9);
    size_t count = strlen(names);
    for (size_t i = 0; i < count; i++)
        nl_buf_printf(&text, "%s\"%c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                      i ? "," : "", names[i], i, i + 1);
    nl_buf_putc(&text, '}');
    text.data[0] = (char)((text.size - 8) & 0xff);
    text.data[1] = (char)((text.size - 8) >> 8);
    nl_buf_add(&text, names, count);
    put(file, text.data, text.size);
    nl_buf_free(&text);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void clear_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    assert_int_equal(system(command), 0);
}

static void expect_error(enum nl_status code, const char *message)
{
    struct nl_error error = {0};
    struct nl_checkpoint *checkpoint = nl_checkpoint_open(folder, &error);
    assert_null(checkpoint);
    if (error.code != code || !strstr(error.message, message))
        fail_msg("code %d: %s", error.code, error.message);
}

static void no_weights(void **state)
{
    (void)state;
    clear_folder();
    expect_error(NL_NOT_FOUND, folder);
    put_text("model-q4.gguf", "GGUF");
    put_text("pytorch_model.bin", "");
    expect_error(NL_NOT_FOUND, "st-import");
    char path[300], target[300];
    snprintf(path, sizeof path, "%s/model-q4.gguf", folder);
    unlink(path);
    expect_error(NL_NOT_FOUND, "'pytorch_model.bin': a PyTorch checkpoint");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    snprintf(target, sizeof target, "%s/blob", folder);
    assert_int_equal(symlink(target, path), 0); /* an interrupted download in the Hugging Face cache */
    expect_error(NL_NOT_FOUND, "model.safetensors: No such file");
    struct nl_error error;
    assert_null(nl_checkpoint_open("tests/data/nowhere", &error));
    assert_int_equal(error.code, NL_NOT_FOUND);
}

static void map_and_shards_disagree(void **state)
{
    (void)state;
    clear_folder();
    put_tensors("1.safetensors", "ab");
    put_tensors("2.safetensors", "c");
    put_text("model.safetensors.index.json",
             "{\"weight_map\":{\"a\":\"1.safetensors\",\"c\":\"2.safetensors\",\"d\":\"2.safetensors\"}}");
    expect_error(NL_DATA, "tensor 'd' is not in its shard: 2.safetensors");
    put_text("model.safetensors.index.json",
             "{\"weight_map\":{\"c\":\"2.safetensors\",\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}");
    expect_error(NL_DATA, "tensor 'b' is not in its shard: 2.safetensors");
    put_tensors("2.safetensors", "cb");
    expect_error(NL_DATA, "tensor 'b' is in two shards: 1.safetensors and 2.safetensors");
    put_text("model.safetensors.index.json", "{\"weight_map\":{\"c\":\"..\"}}");
    expect_error(NL_DATA, "a directory");
    put_text("model.safetensors.index.json", "{\"weight_map\":{\"c\":\"\"}}");
    expect_error(NL_DATA, "empty");
    put_text("model.safetensors.index.json", "{\"weight_map\":{\"c\":\"2.safetensors\\u0000x\"}}");
    expect_error(NL_DATA, "NUL");
    put_text("model.safetensors.index.json", "{\"weight_map\":{}}");
    expect_error(NL_DATA, "weight_map is empty");
    put_text("model.safetensors.index.json", "[]");
    expect_error(NL_DATA, "not a JSON object");
}

/* Tensors that the map lacks are left out, even where two shards hold one; each shard is mapped once. */
static void map_decides(void **state)
{
    (void)state;
    clear_folder();
    put_tensors("1.safetensors", "abx");
    put_tensors("2.safetensors", "cx");
    put_text("model.safetensors.index.json",
             "{\"weight_map\":{\"c\":\"2.safetensors\",\"b\":\"1.safetensors\",\"a\":\"1.safetensors\"}}");
    struct nl_error error;
    struct nl_checkpoint *checkpoint = nl_checkpoint_open(folder, &error);
    assert_non_null(checkpoint);
    assert_int_equal(checkpoint->n_files, 2);
    assert_int_equal(checkpoint->count, 3);
    assert_null(nl_checkpoint_find(checkpoint, "x"));
    assert_int_equal(*nl_checkpoint_find(checkpoint, "b")->data, 'b');
    nl_checkpoint_close(checkpoint);
}

static void add_message(void *context, const char *path, const char *message)
{
    assert_non_null(strstr(path, folder));
    nl_buf_printf(context, "%s\n", message);
}

static void every_fault_is_reported(void **state)
{
    (void)state;
    clear_folder();
    put_tensors("1.safetensors", "abx");
    put_tensors("2.safetensors", "cxb");
    put_text("4.safetensors", "short");
    put_text(
        "model.safetensors.index.json",
        "{\"metadata\":{\"total_size\":7},\"weight_map\":{\"c\":\"2.safetensors\",\"b\":\"1.safetensors\","
        "\"a\":\"2.safetensors\",\"e\":\"3.safetensors\",\"f\":\"4.safetensors\"}}");
    struct nl_buf text = {0};
    struct nl_faults faults = {.report = add_message, .context = &text};
    struct nl_error error;
    assert_int_equal(nl_checkpoint_check(folder, &faults, &error), 0);
    assert_string_equal(text.data, "shard is missing: 3.safetensors\n"
                                   "too short for a header: 5 bytes\n"
                                   "tensor 'a' is not in its shard: 2.safetensors\n"
                                   "tensor 'b' is in two shards: 1.safetensors and 2.safetensors\n"
                                   "tensor 'x' of shard 1.safetensors is not in weight_map\n"
                                   "tensor 'x' of shard 2.safetensors is not in weight_map\n");
    nl_buf_clear(&text);
    put_text(
        "model.safetensors.index.json",
        "{\"metadata\":{\"total_size\":7},\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"1.safetensors\","
        "\"x\":\"1.safetensors\"}}");
    assert_int_equal(nl_checkpoint_check(folder, &faults, &error), 0);
    assert_string_equal(text.data, "metadata.total_size is 7, but the shards hold 3 bytes of tensors\n");
    nl_buf_clear(&text);
    put_text("model.safetensors.index.json", "{\"weight_map\":{\"a\":1,\"b\":\"1.safetensors\"}}");
    assert_int_equal(nl_checkpoint_check(folder, &faults, &error), 0);
    assert_string_equal(text.data, "shard is not a string: weight_map key 'a'\n");
    nl_buf_clear(&text);
    put_text("model.safetensors.index.json", "{");
    assert_int_equal(nl_checkpoint_check(folder, &faults, &error), 0);
    assert_non_null(strstr(text.data, "byte 1"));
    assert_null(strstr(text.data, folder));
    nl_buf_free(&text);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    clear_folder();
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_folder), cmocka_unit_test(tensors_of_shards),
        cmocka_unit_test(no_weights),  cmocka_unit_test(map_and_shards_disagree),
        cmocka_unit_test(map_decides), cmocka_unit_test(every_fault_is_reported),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
