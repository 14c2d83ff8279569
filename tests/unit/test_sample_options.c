/* The options that nl-sample and nl-generate share. */
#include "test.h"

#include <getopt.h>

#include "sample_chain.h"
#include "sample_options.h"

static const struct option table[] = {NL_SAMPLE_LONG_OPTIONS, {0}};

static struct nl_sample_options options;

static int setup(void **state)
{
    (void)state;
    struct nl_error error;
    return nl_sample_options_init(&options, &error);
}

static int teardown(void **state)
{
    (void)state;
    nl_sample_options_free(&options);
    return 0;
}

static int take(int c, const char *name, const char *value)
{
    struct nl_error error = {0};
    int taken = nl_sample_option(&options, c, name, value, &error);
    assert_int_equal(error.code, taken < 0 ? NL_USAGE : NL_OK);
    return taken;
}

/* The table of options and the table of processors name the same things, and the help knows them. */
static void options_and_processors_agree(void **state)
{
    (void)state;
    size_t n = 0;
    for (const struct option *option = table; option->name; option++) {
        char flag[100];
        snprintf(flag, sizeof flag, "--%s", option->name);
        if (strcmp(option->name, "sequence-bias") != 0 && !strstr(NL_SAMPLE_HELP, flag))
            fail_msg("%s is not in the help", flag);
        if (option->val != NL_SAMPLE_PROCESSOR)
            continue;
        n++;
        if (!nl_processor_find(option->name))
            fail_msg("%s is no processor", option->name);
    }
    for (const struct nl_processor *processor = nl_processors; processor->name; processor++)
        n--;
    assert_int_equal(n, 1); /* logit-bias is another name of sequence-bias */
}

static void stops_by_eos_stop_and_length(void **state)
{
    (void)state;
    const uint32_t eos[] = {7, 9};
    assert_null(nl_sample_finish(&options, eos, 2, 8, 1000000));
    assert_string_equal(nl_sample_finish(&options, eos, 2, 9, 1), "eos");
    assert_int_equal(take(NL_SAMPLE_STOP_ID, "stop-id", "9,11"), 1);
    assert_int_equal(take(NL_SAMPLE_STOP_ID, "stop-id", "12"), 1);
    assert_int_equal(take('n', "", "5"), 1);
    assert_string_equal(nl_sample_finish(&options, eos, 2, 11, 5), "stop");
    assert_string_equal(nl_sample_finish(&options, eos, 2, 12, 1), "stop");
    assert_string_equal(nl_sample_finish(&options, eos, 2, 9, 1), "eos");
    assert_string_equal(nl_sample_finish(&options, eos, 2, 1, 5), "length");
    assert_null(nl_sample_finish(&options, eos, 2, 1, 4));
    assert_int_equal(take(NL_SAMPLE_IGNORE_EOS, "ignore-eos", NULL), 1);
    assert_null(nl_sample_finish(&options, eos, 2, 7, 4));
    assert_string_equal(nl_sample_finish(&options, eos, 2, 9, 4), "stop");
}

static void seed_only_where_draws_need_one(void **state)
{
    (void)state;
    struct nl_error error;
    assert_int_equal(nl_sample_options_ready(&options, &error), 0);
    assert_false(options.seeded);
    assert_int_equal(take(NL_SAMPLE_PROCESSOR, "top-k", "3"), 1);
    assert_int_equal(nl_sample_options_ready(&options, &error), 0);
    assert_true(options.seeded && options.seed < (uint64_t)1 << 53);
    assert_int_equal(take(NL_SAMPLE_SEED, "seed", "9007199254740991"), 1);
    assert_true(options.seed == 9007199254740991);
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    assert_int_equal(take('v', "verbose", NULL), 0);
    assert_int_equal(take('n', "", "-1"), -1);
    assert_int_equal(take('n', "", ""), -1);
    assert_int_equal(take('n', "", "5k"), -1);
    assert_int_equal(take(NL_SAMPLE_SEED, "seed", "9007199254740992"), -1);
    assert_int_equal(take(NL_SAMPLE_STOP_ID, "stop-id", "1,"), -1);
    assert_int_equal(take(NL_SAMPLE_STOP_ID, "stop-id", "1;2"), -1);
    assert_int_equal(take(NL_SAMPLE_STOP_ID, "stop-id", "4294967296"), -1);
    assert_int_equal(take(NL_SAMPLE_PROCESSOR, "top-k", "x"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(options_and_processors_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(stops_by_eos_stop_and_length, setup, teardown),
        cmocka_unit_test_setup_teardown(seed_only_where_draws_need_one, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_values_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
