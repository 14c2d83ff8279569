/* Model names: paths, and a Hugging Face cache made up in a temporary folder. */
#include "test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "modelpath.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OTHER  "89abcdef0123456789abcdef0123456789abcdef"

static char root[] = "/tmp/test_modelpath.XXXXXX";

/* A path under the root; a ring of four. */
static const char *under(const char *path)
{
    static char paths[4][400];
    static int next;
    char *out = paths[next++ % 4];
    snprintf(out, sizeof paths[0], "%s/%s", root, path);
    return out;
}

static void make_dir(const char *path)
{
    char command[500];
    snprintf(command, sizeof command, "mkdir -p '%s'", under(path));
    assert_int_equal(system(command), 0);
}

static void put_text(const char *path, const char *text)
{
    FILE *file = fopen(under(path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A repository in the cache `hub` with a commit and a ref to it. */
static void make_repository(const char *hub, const char *name, const char *ref, const char *commit)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s/snapshots/%s", hub, name, commit);
    make_dir(path);
    snprintf(path, sizeof path, "%s/%s/refs", hub, name);
    make_dir(path);
    snprintf(path, sizeof path, "%s/%s/refs/%s", hub, name, ref);
    put_text(path, commit);
}

static void clean(void)
{
    static const char *const names[] = {"NL_MODEL", "HF_HUB_CACHE",   "HUGGINGFACE_HUB_CACHE",
                                        "HF_HOME",  "XDG_CACHE_HOME", "XDG_DATA_HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("HOME", under("home"), 1);
}

static void found(const char *model, const char *path)
{
    struct nl_buf out = {0};
    struct nl_error error = {0};
    if (nl_model_path(model, &out, &error) != 0)
        fail_msg("%s: %s", model ? model : "(default)", error.message);
    assert_string_equal(out.data, path[0] == '/' || path[0] == '.' ? path : under(path));
    nl_buf_free(&out);
}

static void not_found(const char *model, const char *message)
{
    struct nl_buf out = {0};
    struct nl_error error = {0};
    assert_int_equal(nl_model_path(model, &out, &error), -1);
    if (error.code != NL_NOT_FOUND || !strstr(error.message, message))
        fail_msg("code %d: %s", error.code, error.message);
    assert_int_equal(out.size, 0);
    nl_buf_free(&out);
}

static void paths(void **state)
{
    (void)state;
    clean();
    make_dir("home/my model");
    found(under("home"), "home");
    found("~/my model", "home/my model");
    found(".", ".");
    found("./tests", "./tests");
}

static void in_the_cache(void **state)
{
    (void)state;
    clean();
    make_repository("home/.cache/huggingface/hub", "models--org--name", "main", COMMIT);
    make_repository("home/.cache/huggingface/hub", "models--org--name", "v2", OTHER);
    found("org/name", "home/.cache/huggingface/hub/models--org--name/snapshots/" COMMIT);
    found("org/name@main", "home/.cache/huggingface/hub/models--org--name/snapshots/" COMMIT);
    found("org/name@v2", "home/.cache/huggingface/hub/models--org--name/snapshots/" OTHER);
    found("org/name@" OTHER, "home/.cache/huggingface/hub/models--org--name/snapshots/" OTHER);
    make_dir("home/.cache/huggingface/hub/models--org--name/refs/refs/pr");
    put_text("home/.cache/huggingface/hub/models--org--name/refs/refs/pr/7", OTHER "\n");
    found("org/name@refs/pr/7", "home/.cache/huggingface/hub/models--org--name/snapshots/" OTHER);
    make_repository("home/.cache/huggingface/hub", "models--gpt2", "main", COMMIT);
    found("gpt2", "home/.cache/huggingface/hub/models--gpt2/snapshots/" COMMIT);
}

/* No other snapshot is ever guessed. */
static void not_in_the_cache(void **state)
{
    (void)state;
    clean();
    not_found("org/other", "hf download org/other");
    not_found("org/name@v3", "hf download org/name --revision v3");
    not_found("org/name@" COMMIT "0", "--revision");
    make_dir("home/.cache/huggingface/hub/models--org--noref/snapshots/" COMMIT);
    not_found("org/noref", "hf download org/noref");
    make_repository("home/.cache/huggingface/hub", "models--org--gone", "main", COMMIT);
    assert_int_equal(rmdir(under("home/.cache/huggingface/hub/models--org--gone/snapshots/" COMMIT)), 0);
    not_found("org/gone", "hf download org/gone");
    not_found("org/name@../../../x", "no such model folder");
    not_found("../org/name", "no such model folder");
    not_found("/nowhere/at/all", "no such model folder: '/nowhere/at/all'");
    not_found("a/b/c", "no such model folder");
    not_found("a b", "no such model folder");
    not_found("", "empty");
}

static void hostile_ref(void **state)
{
    (void)state;
    clean();
    make_repository("home/.cache/huggingface/hub", "models--org--evil", "main", COMMIT);
    static const char *const refs[] = {"../../../../../../etc", COMMIT "/../../../..", "..", "", "\n"};
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++) {
        put_text("home/.cache/huggingface/hub/models--org--evil/refs/main", refs[i]);
        struct nl_buf out = {0};
        struct nl_error error = {0};
        assert_int_equal(nl_model_path("org/evil", &out, &error), -1);
        assert_int_equal(error.code, NL_DATA);
        nl_buf_free(&out);
    }
}

/* From the weakest to the strongest. */
static void priority(void **state)
{
    (void)state;
    clean();
    make_repository("home/.cache/huggingface/hub", "models--o--n", "main", COMMIT);
    make_repository("xdg/huggingface/hub", "models--o--n", "main", COMMIT);
    make_repository("hf/hub", "models--o--n", "main", COMMIT);
    make_repository("old", "models--o--n", "main", COMMIT);
    make_repository("home/new", "models--o--n", "main", COMMIT);
    found("o/n", "home/.cache/huggingface/hub/models--o--n/snapshots/" COMMIT);
    setenv("XDG_CACHE_HOME", under("xdg"), 1);
    found("o/n", "xdg/huggingface/hub/models--o--n/snapshots/" COMMIT);
    setenv("HF_HOME", under("hf"), 1);
    found("o/n", "hf/hub/models--o--n/snapshots/" COMMIT);
    setenv("HUGGINGFACE_HUB_CACHE", under("old"), 1);
    found("o/n", "old/models--o--n/snapshots/" COMMIT);
    setenv("HF_HUB_CACHE", "~/new", 1);
    found("o/n", "home/new/models--o--n/snapshots/" COMMIT);
    setenv("HF_HUB_CACHE", "", 1);
    found("o/n", "old/models--o--n/snapshots/" COMMIT);
}

static void default_model(void **state)
{
    (void)state;
    clean();
    not_found(NULL, "home/.local/share/nanollm/default");
    make_dir("home/.local/share/nanollm/default");
    found(NULL, "home/.local/share/nanollm/default");
    make_dir("data/nanollm/default");
    setenv("XDG_DATA_HOME", under("data"), 1);
    found(NULL, "data/nanollm/default");
    setenv("NL_MODEL", under("home"), 1);
    found(NULL, "home");
    struct nl_buf out = {0};
    struct nl_error error;
    assert_int_equal(nl_data_folder(&out, &error), 0);
    assert_string_equal(out.data, under("data/nanollm"));
    nl_buf_clear(&out);
    assert_int_equal(nl_cache_folder(&out, &error), 0);
    assert_string_equal(out.data, under("home/.cache/nanollm"));
    unsetenv("HOME");
    nl_buf_clear(&out);
    assert_int_equal(nl_cache_folder(&out, &error), -1);
    nl_buf_free(&out);
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),       cmocka_unit_test(in_the_cache), cmocka_unit_test(not_in_the_cache),
        cmocka_unit_test(hostile_ref), cmocka_unit_test(priority),     cmocka_unit_test(default_model),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
