/* The tokenizers that the import makes, against the ids of the published tokenizer.json with the same
 * vocabulary. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "import.h"
#include "json.h"
#include "tokenizer.h"

static const char data[] = "tests/data/gguf";

static void import(const char *name, const char *folder)
{
    char path[200];
    struct nl_error error = {0};
    struct nl_import_options options = {.dtype = NL_BF16};
    snprintf(path, sizeof path, "%s/%s", data, name);
    struct nl_gguf *file = nl_gguf_open(path, &error);
    if (!file || nl_import(file, folder, &options, &error) != 0)
        fail_msg("%s", error.message);
    nl_gguf_close(file);
}

static void remove_files(const char *folder)
{
    for (size_t i = 0; nl_import_files[i]; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s/%s", folder, nl_import_files[i]);
        unlink(path);
    }
}

/* One line of ids.jsonl. */
static void check(struct nl_tokenizer *tokenizer, const struct nl_json *line)
{
    struct nl_buf text = {0};
    struct nl_ids ids = {0};
    struct nl_error error = {0};
    nl_json_copy_string(nl_json_get(line, "text"), &text);
    if (nl_tokenizer_encode(tokenizer, text.data ? text.data : "", text.size, true, &ids, &error) != 0)
        fail_msg("%s", error.message);
    const struct nl_json *wanted = nl_json_get(line, "ids"), *id = nl_json_first(wanted);
    bool same = nl_json_count(wanted) == ids.count;
    for (size_t i = 0; same && i < ids.count; i++, id = nl_json_next(id))
        same = nl_json_number(id) == (double)ids.data[i];
    if (!same)
        fail_msg("%s: other ids for '%s'", nl_json_string(nl_json_get(line, "file")),
                 text.data ? text.data : "");
    nl_buf_free(&text);
    nl_ids_free(&ids);
}

static void ids_of_the_published_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/nl-import-XXXXXX", path[200], current[100] = "";
    struct nl_tokenizer *tokenizer = NULL;
    struct nl_error error = {0};
    size_t checked = 0, length = 0;
    char *text = NULL;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/ids.jsonl", data);
    FILE *lines = fopen(path, "r");
    assert_non_null(lines);
    for (ssize_t got; (got = getline(&text, &length, lines)) > 0; checked++) {
        struct nl_json *line = nl_json_parse(text, (size_t)got, path, &error);
        if (!line)
            fail_msg("%s", error.message);
        const char *name = nl_json_string(nl_json_get(line, "file"));
        if (strcmp(name, current) != 0) {
            nl_tokenizer_close(tokenizer);
            remove_files(folder);
            snprintf(current, sizeof current, "%s", name);
            import(name, folder);
            tokenizer = nl_tokenizer_open(folder, &error);
            if (!tokenizer)
                fail_msg("%s: %s", name, error.message);
        }
        check(tokenizer, line);
        nl_json_free(line);
    }
    assert_int_equal(checked, 180);
    nl_tokenizer_close(tokenizer);
    remove_files(folder);
    rmdir(folder);
    free(text);
    fclose(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_the_published_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
