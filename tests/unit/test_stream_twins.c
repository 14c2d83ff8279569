/* The text and JSON twins, read. */
#include "stream_test.h"

#include <locale.h>

#define SEQ(n, rest) "NLS1{\"seq\":" #n "}" rest " DONE{\"finish\":\"input\"}"

static void ids(void **state)
{
    (void)state;
    text_reads_as("1 2 3\n", PLAIN, SEQ(0, " TOKS:1,2,3") ".");
    text_reads_as("1 2\n3\n", PLAIN, SEQ(0, " TOKS:1,2") " " SEQ(1, " TOKS:3") ".");
    text_reads_as(" \t1\v2\f \r3\r\n\r\n", PLAIN, SEQ(0, " TOKS:1,2,3") " " SEQ(1, "") ".");
    text_reads_as("0 4294967295 007\n", PLAIN, SEQ(0, " TOKS:0,4294967295,7") ".");
    text_reads_as("\n", PLAIN, SEQ(0, "") ".");
    text_reads_as("\n\n5\n", PLAIN, SEQ(0, "") " " SEQ(1, "") " " SEQ(2, " TOKS:5") ".");
}

static void the_end_ends_id_and_line(void **state)
{
    (void)state;
    text_reads_as("1 23", PLAIN, SEQ(0, " TOKS:1 TOKS:23") ".");
    text_reads_as("1 2 ", PLAIN, SEQ(0, " TOKS:1,2") ".");
    text_reads_as("1\n2", PLAIN, SEQ(0, " TOKS:1") " " SEQ(1, " TOKS:2") ".");
    text_reads_as(" ", PLAIN, SEQ(0, "") ".");
    text_reads_as("", PLAIN, "! 8 the stream is empty, not one sequence came: test");
}

static void bad_ids(void **state)
{
    (void)state;
    text_reads_as("12a\n", PLAIN, "NLS1{\"seq\":0}! 3 not an id: '12a': line 1: test");
    text_reads_as("1 2\n3 -4\n", PLAIN,
                  SEQ(0, " TOKS:1,2") " NLS1{\"seq\":1}! 3 not an id: '-4': line 2: test");
    text_reads_as("4294967296\n", PLAIN, "NLS1{\"seq\":0}! 3 id out of range: '4294967296': line 1: test");
    text_reads_as("99999999999999999999999\n", PLAIN,
                  "NLS1{\"seq\":0}! 3 id out of range: '99999999999999999999999': line 1: test");
    text_reads_as("1.5\n", PLAIN, "NLS1{\"seq\":0}! 3 not an id: '1.5': line 1: test");
    text_reads_as("5 3:1\n", PLAIN, "NLS1{\"seq\":0}! 3 not an id: '3:1': line 1: test");
    reads_as("5 \0\n", 4, PLAIN, "NLS1{\"seq\":0}! 3 not an id: byte 0x00: line 1: test");
    text_reads_as("5\xc3\xa4\n", PLAIN, "NLS1{\"seq\":0}! 3 not an id: '5': line 1: test");
    text_reads_as("hello\n", PLAIN, "! 3 neither frames nor ids nor JSON: byte 0x68 at the start: test");
}

/* Ids that lie across the borders of what read(2) gives. */
static void many_ids(void **state)
{
    (void)state;
    struct nl_buf text = {0};
    for (unsigned i = 0; text.size < 65000; i++)
        nl_buf_printf(&text, "%u ", i * 2654435761u);
    struct nl_error error;
    struct nl_frame frame;
    struct nl_reader *reader = nl_reader_open(pipe_of(text.data, text.size), "test", &error);
    unsigned n = 0;
    while (nl_reader_next(reader, &frame, &error) > 0)
        for (size_t i = 0; frame.kind == NL_TOKS && i < frame.count; i++)
            assert_int_equal(frame.ids[i], n++ * 2654435761u);
    assert_true(n > 5000);
    nl_reader_close(reader);
    nl_buf_free(&text);
}

static void logits(void **state)
{
    (void)state;
    text_reads_as("3 5:1.5 7:-2e-3\n4 0:inf 1:nan 9:-inf\n\n", LOGITS,
                  SEQ(0, " LGTK@3:5=1.5,7=-0.00200000009 LGTK@4:0=inf,1=nan,9=-inf") ".");
    text_reads_as("3 5:1\r\n\r\n1\t2:3 \n", LOGITS, SEQ(0, " LGTK@3:5=1") " " SEQ(1, " LGTK@1:2=3") ".");
    text_reads_as("3\n\n\n3 1:2", LOGITS, SEQ(0, " LGTK@3") " " SEQ(1, "") " " SEQ(2, " LGTK@3:1=2") ".");
    text_reads_as("4294967295 4294967295:1e-45\n", LOGITS,
                  SEQ(0, " LGTK@4294967295:4294967295=1.40129846e-45") ".");
}

static void bad_logits(void **state)
{
    (void)state;
    static const char *const words[] = {"5",    "5:",     "5:x",  ":1",    "x:1",  "5:1x",        "5:1:2",
                                        "5: 1", "5:1e99", "-1:2", "5:1,5", "5 :1", "4294967296:1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[60], want[200], first[40];
        snprintf(text, sizeof text, "2 %s\n", words[i]);
        sscanf(words[i], "%39s", first);
        snprintf(want, sizeof want, "NLS1{\"seq\":0}! 3 not id:value: '%s': line 1: test", first);
        text_reads_as(text, LOGITS, want);
    }
    text_reads_as("1 2:3\nx 5:1\n", LOGITS,
                  "NLS1{\"seq\":0} LGTK@1:2=3! 3 not a position: 'x': line 2: test");
    text_reads_as("5:1\n", LOGITS, "NLS1{\"seq\":0}! 3 not a position: '5:1': line 1: test");
    reads_as("1 2:\0\n", 6, LOGITS, "NLS1{\"seq\":0}! 3 not id:value: '2:': line 1: test");
    text_reads_as("1 2:\n3\n", LOGITS, "NLS1{\"seq\":0}! 3 not id:value: '2:': line 1: test");
}

static void locale_does_not_matter(void **state)
{
    (void)state;
    const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    for (size_t i = 0; i < 4 && !setlocale(LC_NUMERIC, commas[i]); i++)
        ;
    text_reads_as("1 2:0.5\n", LOGITS, SEQ(0, " LGTK@1:2=0.5") ".");
    setlocale(LC_NUMERIC, "C");
}

static void json_lines(void **state)
{
    (void)state;
    text_reads_as(
        "{\"kind\":\"NLS1\",\"seq\":4,\"mine\":{\"a\":[]}}\n"
        "{\"kind\":\"TOKS\",\"ids\":[1,4294967295]}\r\n\n"
        "{\"ids\":[],\"kind\":\"TOKS\"}\n"
        "{\"kind\":\"LGTS\",\"position\":3,\"logits\":[1.5,\"-inf\",\"inf\",\"nan\",3.40282347e+38]}\n"
        "{\"kind\":\"LGTK\",\"position\":3,\"ids\":[7,5],\"logits\":[1,-2]}\n"
        "{\"kind\":\"meta\",\"x\":\"\\u0000\"}\n"
        "{\"kind\":\"abcd\",\"y\":1}\n"
        "{\"kind\":\"DONE\",\"finish\":\"eos\"}\n"
        "{\"kind\":\"NLS1\"}\n"
        "{\"kind\":\"FAIL\",\"code\":3}",
        PLAIN,
        "NLS1{\"seq\":4,\"mine\":{\"a\":[]}} TOKS:1,4294967295 TOKS "
        "LGTS@3:1.5,-inf,inf,nan,3.40282347e+38 LGTK@3:7=1,5=-2 meta{\"x\":\"\\u0000\"} abcd#7 "
        "DONE{\"finish\":\"eos\"} NLS1{} FAIL{\"code\":3}.");
}

static void bad_json_lines(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"kind\":\"TOKS\"}", "\"ids\" is no array"},
        {"{\"kind\":\"TOKS\",\"ids\":[1,-1]}", "\"ids\" holds what is no id"},
        {"{\"kind\":\"TOKS\",\"ids\":[4294967296]}", "\"ids\" holds what is no id"},
        {"{\"kind\":\"TOKS\",\"ids\":[1.5]}", "\"ids\" holds what is no id"},
        {"{\"kind\":\"LGTS\",\"logits\":[1]}", "\"position\" is no number below 2^32"},
        {"{\"kind\":\"LGTS\",\"position\":1}", "\"logits\" is no array"},
        {"{\"kind\":\"LGTS\",\"position\":1,\"logits\":[]}", "no logits"},
        {"{\"kind\":\"LGTS\",\"position\":1,\"logits\":[\"Inf\"]}",
         "\"logits\" holds what is no float, \"-inf\", \"inf\" or \"nan\""},
        {"{\"kind\":\"LGTS\",\"position\":1,\"logits\":[1e39]}",
         "\"logits\" holds what is no float, \"-inf\", \"inf\" or \"nan\""},
        {"{\"kind\":\"LGTK\",\"position\":1,\"ids\":[1],\"logits\":[]}",
         "\"ids\" and \"logits\" differ in length"},
        {"{\"kind\":\"CUTS\",\"count\":1}", "frame outside of a session file"},
        {"{\"kind\":\"NLS1\"}", "the sequence before has no DONE"},
        {"{\"kind\":\"ABCD\"}", "unknown kind of frame"},
        {"{\"kind\":\"ABCDE\"}", "\"kind\" is no four letters or digits"},
        {"{\"kind\":\"AB\"}", "\"kind\" is no four letters or digits"},
        {"{\"ids\":[1]}", "\"kind\" is no four letters or digits"},
        {"[1]", "not a JSON object"},
        {"{\"kind\":\"TOKS\",\"ids\":[1,]}", "trailing comma at byte 24: JSON"},
        {"{\"kind\":\"TOKS\",\"kind\":\"TOKS\"}", "duplicate key \"kind\": JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200], want[200];
        snprintf(text, sizeof text, "{\"kind\":\"NLS1\"}\n%s\n", cases[i][0]);
        snprintf(want, sizeof want, "NLS1{}! 3 %s: line 2: test", cases[i][1]);
        text_reads_as(text, PLAIN, want);
    }
    text_reads_as("{\"kind\":\"NLS1\"}\n{\"kind\":\"DO", PLAIN,
                  "NLS1{}! 8 the stream was cut short: line 2: test");
    text_reads_as("{\"kind\":\"NLS1\"}\n", PLAIN,
                  "NLS1{}! 8 the stream was cut short inside a sequence: test");
    text_reads_as("{\"kind\":\"TOKS\",\"ids\":[1]}\n", PLAIN,
                  "! 3 frame outside of a sequence: line 1: test");
    text_reads_as("{\"kind\":\"TOKS\",\"ids\":[1]}\n{\"kind\":\"DONE\"}\n", FRAGMENT, "TOKS:1 DONE{}.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids),
        cmocka_unit_test(the_end_ends_id_and_line),
        cmocka_unit_test(bad_ids),
        cmocka_unit_test(many_ids),
        cmocka_unit_test(logits),
        cmocka_unit_test(bad_logits),
        cmocka_unit_test(json_lines),
        cmocka_unit_test(bad_json_lines),
        cmocka_unit_test(locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
