/* Comparing tensors: names, order, and every way to differ, on files that are written here. */
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "safetensors_write.h"
#include "tensor_diff.h"
#include "tensor_order.h"

/* A file of float32 tensors of shape [2][n / 2]. */
struct values {
    const char *name;
    size_t count;
    float data[8];
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct values *)a)->name, ((const struct values *)b)->name);
}

static struct nl_checkpoint *make(struct values *tensors, size_t count)
{
    char path[] = "/tmp/nl-diff-XXXXXX.safetensors";
    struct nl_error error = {0};
    struct nl_st_entry entries[20] = {0};
    struct nl_st_writer writer;
    int fd = mkstemps(path, 12);
    assert_true(fd >= 0 && count <= 20);
    qsort(tensors, count, sizeof *tensors, by_name);
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct nl_st_entry){tensors[i].name, NL_F32, 2, {2, tensors[i].count / 2}};
    assert_int_equal(nl_st_writer_start(&writer, fd, path, entries, count, &error), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(nl_st_writer_add(&writer, tensors[i].data, 4 * tensors[i].count, &error), 0);
    assert_int_equal(nl_st_writer_finish(&writer, &error), 0);
    close(fd);
    struct nl_checkpoint *checkpoint = nl_checkpoint_open(path, &error);
    if (!checkpoint)
        fail_msg("%s", error.message);
    unlink(path);
    return checkpoint;
}

static const struct nl_tensor_diff *find(const struct nl_diff *diff, const char *name)
{
    for (size_t i = 0; i < diff->count; i++)
        if (strcmp(diff->pairs[i].name, name) == 0)
            return &diff->pairs[i];
    return NULL;
}

static void differences(void **state)
{
    (void)state;
    struct values a[] = {{"same", 4, {1, 2, 3, 4}},
                         {"close", 4, {1, 2, 3, 4.0001f}},
                         {"far", 4, {1, 2.5f, 3, 6}},
                         {"nan", 4, {NAN, 1, NAN, 2}},
                         {"inf", 4, {INFINITY, -INFINITY, 1, INFINITY}},
                         {"shape", 4, {1}},
                         {"a", 2, {1, 2}},
                         {"zero", 4, {0, 0, 1e-6f, 0}},
                         {"turned", 2, {1, 0}}};
    struct values b[] = {{"same", 4, {1, 2, 3, 4}},
                         {"close", 4, {1, 2, 3, 4}},
                         {"far", 4, {1, 2, 3, 4}},
                         {"nan", 4, {NAN, 1, 2, NAN}},
                         {"inf", 4, {INFINITY, INFINITY, INFINITY, 1}},
                         {"shape", 6, {1}},
                         {"b", 2, {1, 2}},
                         {"zero", 4, {0, 0, 0, 0}},
                         {"turned", 2, {0, 1}}};
    struct nl_checkpoint *first = make(a, 9), *second = make(b, 9);
    struct nl_diff_options options = {.atol = 1e-4, .rtol = 1e-4};
    struct nl_diff diff;
    struct nl_error error = {0};
    assert_int_equal(nl_diff_run(&diff, first, second, &options, &error), 0);
    assert_int_equal(diff.count, 10);
    assert_int_equal(diff.n_bad, 7);
    assert_int_equal(find(&diff, "same")->verdict, NL_AGREES);
    assert_true(find(&diff, "same")->cosine > 1 - 1e-12);
    assert_int_equal(find(&diff, "close")->verdict, NL_AGREES);
    assert_true(fabs(find(&diff, "close")->max_abs - 1e-4) < 1e-6);
    const struct nl_tensor_diff *far = find(&diff, "far");
    assert_int_equal(far->verdict, NL_DIFFERS);
    assert_int_equal(far->bad, 2);
    assert_int_equal(far->first_bad, 1);
    assert_true(far->max_abs == 2 && far->max_rel == 0.5 && far->first_a == 2.5 && far->first_b == 2);
    const struct nl_tensor_diff *nan = find(&diff, "nan");
    assert_true(nan->bad == 2 && nan->first_bad == 2 && isnan(nan->max_abs));
    const struct nl_tensor_diff *inf = find(&diff, "inf");
    assert_true(inf->bad == 3 && inf->first_bad == 1 && isinf(inf->max_abs));
    assert_int_equal(find(&diff, "shape")->verdict, NL_OTHER_SHAPE);
    assert_int_equal(find(&diff, "a")->verdict, NL_ONLY_FIRST);
    assert_int_equal(find(&diff, "b")->verdict, NL_ONLY_SECOND);
    assert_int_equal(find(&diff, "zero")->verdict, NL_AGREES);
    assert_true(isinf(find(&diff, "zero")->max_rel));
    assert_true(find(&diff, "turned")->cosine == 0);
    nl_diff_free(&diff);
    options.common = true;
    assert_int_equal(nl_diff_run(&diff, first, second, &options, &error), 0);
    assert_int_equal(diff.count, 8);
    assert_int_equal(diff.n_bad, 5);
    nl_diff_free(&diff);
    nl_checkpoint_close(first);
    nl_checkpoint_close(second);
}

/* As a forward pass comes to them. */
static void order(void **state)
{
    (void)state;
    static const char *const names[] = {
        "ids",
        "model.embed_tokens.weight",
        "hidden_states.0",
        "model.layers.0.input_layernorm.weight",
        "layers.0.q",
        "layers.0.k",
        "layers.0.v",
        "layers.0.q_rope",
        "layers.0.k_rope",
        "layers.0.attention",
        "layers.0.heads",
        "layers.0.attention_output",
        "layers.0.mlp_output",
        "layers.0.something",
        "hidden_states.1",
        "h.1.ln_1.weight",
        "h.1.attn.c_proj.weight",
        "h.1.mlp.c_fc.weight",
        "h.1.mlp.c_proj.weight",
        "hidden_states.2",
        "model.layers.2.self_attn.q_proj.weight",
        "model.layers.2.self_attn.o_proj.weight",
        "model.layers.2.mlp.experts.2.down_proj.weight",
        "model.layers.2.mlp.experts.10.down_proj.weight",
        "layers.10.q",
        "hidden_states.11",
        "model.norm.weight",
        "lm_head.weight",
        "logits",
        "something",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            int got = nl_execution_compare(names[i], names[k]);
            if ((got > 0) - (got < 0) != (i > k) - (i < k))
                fail_msg("%s and %s", names[i], names[k]);
        }
}

static void check_rename(const char *map, const char *name, const char *want)
{
    struct values a[] = {{name, 2, {1, 2}}}, b[] = {{want, 2, {1, 2}}};
    struct nl_checkpoint *first = make(a, 1), *second = make(b, 1);
    struct nl_rename rename;
    struct nl_error error = {0};
    assert_int_equal(nl_rename_parse(&rename, map, &error), 0);
    struct nl_diff_options options = {.renames = &rename, .n_renames = 1};
    struct nl_diff diff;
    assert_int_equal(nl_diff_run(&diff, first, second, &options, &error), 0);
    if (diff.count != 1)
        fail_msg("%s: %s gives %s", map, name, diff.pairs[0].name);
    assert_string_equal(diff.pairs[0].name, want);
    nl_diff_free(&diff);
    nl_checkpoint_close(first);
    nl_checkpoint_close(second);
}

static void renames(void **state)
{
    (void)state;
    check_rename("a=b", "a", "b");
    check_rename("a=b", "ab", "ab");
    check_rename("model.*=*", "model.norm.weight", "norm.weight");
    check_rename("*.weight=*", "x.weight.weight", "x.weight");
    check_rename("*=x.*", "a", "x.a");
    check_rename("h.{}.q=layers.{}.q", "h.12.q", "layers.12.q");
    check_rename("h.{}.q=layers.{}.q", "h.a2.q", "h.a2.q");
    check_rename("h.{}.q=layers.{}.q", "h..q", "h..q");
    check_rename("h.{}.q=*", "h.3.q", "3");
    check_rename("aXa*=b*", "aX", "aX");
    check_rename("ab*ba=*", "aba", "aba");
    check_rename("a=b=c", "a", "b=c");
    static const char *const wrong[] = {"", "a", "=b", "a=", "a*=b", "a=b*", "*a*=*", "*=*{}", "{}*=*"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct nl_rename rename;
        struct nl_error error = {0};
        assert_int_equal(nl_rename_parse(&rename, wrong[i], &error), -1);
        assert_int_equal(error.code, NL_USAGE);
    }
}

static void renames_collide(void **state)
{
    (void)state;
    struct values a[] = {{"a", 2, {1, 2}}, {"b", 2, {1, 2}}, {"c", 2, {1}}}, b[] = {{"a", 2, {1, 2}}};
    struct nl_checkpoint *first = make(a, 3), *second = make(b, 1);
    struct nl_rename rename;
    struct nl_error error = {0};
    assert_int_equal(nl_rename_parse(&rename, "b=a", &error), 0);
    struct nl_diff_options options = {.renames = &rename, .n_renames = 1};
    struct nl_diff diff;
    assert_int_equal(nl_diff_run(&diff, first, second, &options, &error), -1);
    assert_int_equal(error.code, NL_USAGE);
    assert_non_null(strstr(error.message, "'a'"));
    nl_checkpoint_close(first);
    nl_checkpoint_close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences),
        cmocka_unit_test(order),
        cmocka_unit_test(renames),
        cmocka_unit_test(renames_collide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
