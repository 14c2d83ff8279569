/* The scanners against the regexes that they stand for, on random and on hostile texts. */
#include "test.h"

#include "regex.h"
#include "tok_scan.h"
#include "utf8.h"

enum { ROUNDS = 300000, LONGEST = 40 };

static uint64_t state = 1;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % below);
}

/* Characters that patterns tell apart, then all others. */
static uint32_t character(void)
{
    static const uint32_t chosen[] = {
        ' ',     ' ',    ' ',    ' ',    '\n',   '\n',    '\r',   '\t',   '\v',   '\'',    '\'',    's',
        'S',     't',    'r',    'e',    'E',    'v',     'l',    'L',    'm',    'D',     'a',     'B',
        'Z',     'z',    '0',    '9',    '/',    '/',     '.',    '!',    '-',    '@',     '[',     '`',
        '{',     0,      0x7f,   0x85,   0xa0,   0xaa,    0xb2,   0xb5,   0xdf,   0x17f,   0x130,   0x1c5,
        0x2b0,   0x300,  0x345,  0x391,  0x3b1,  0x5d0,   0x660,  0x903,  0x1680, 0x2003,  0x2028,  0x2029,
        0x202f,  0x2160, 0x212a, 0x24b6, 0x3000, 0x3042,  0x4e00, 0xfb06, 0xfffd, 0x10d4a, 0x1171e, 0x1f600,
        0x31350, 0x1c89, 0x20dd, 0x200b, 0xfeff, 0x10ffff};
    if (draw(8))
        return chosen[draw(sizeof chosen / sizeof *chosen)];
    for (;;) {
        uint32_t c = draw(3) ? draw(0x3000) : draw(0x110000);
        if (c < 0xd800 || c > 0xdfff)
            return c;
    }
}

static size_t make(char *text)
{
    size_t size = 0;
    unsigned count = 1 + draw(LONGEST);
    while (count > 0) {
        uint32_t c = character();
        for (unsigned run = draw(4) ? 1 : 1 + draw(12); run > 0 && count > 0; run--, count--)
            size += nl_utf8_put(c, text + size);
    }
    return size;
}

static void compare(enum tok_scanner scanner)
{
    struct nl_error error;
    const char *pattern = nl_tok_scanner_pattern(scanner);
    struct nl_regex *regex = nl_regex_compile(pattern, strlen(pattern), &error);
    struct nl_regex_scratch *scratch = nl_regex_scratch_new(&error);
    assert_non_null(regex);
    assert_int_equal(nl_tok_scanner(pattern, strlen(pattern)), scanner);
    for (unsigned round = 0; round < ROUNDS; round++) {
        char *text = malloc(4 * LONGEST), *exact; /* exact: a sanitizer sees a look past the end */
        size_t length = make(text), begin, end;
        exact = malloc(length);
        memcpy(exact, text, length);
        for (size_t at = 0; at < length; at = end) {
            if (nl_regex_search(regex, scratch, exact, length, at, &begin, &end, &error) != 1)
                fail_msg("no match");
            size_t got = nl_tok_scan(scanner, exact, at, length);
            if (begin != at || got != end) {
                for (size_t i = 0; i < length; i++)
                    print_message("%s%02x", i == at ? "|" : " ", (unsigned char)exact[i]);
                fail_msg("\n%zu: [%zu, %zu) by the regex, to %zu by the scanner", at, begin, end, got);
            }
        }
        free(exact);
        free(text);
    }
    nl_regex_scratch_free(scratch);
    nl_regex_free(regex);
}

static void test_gpt2(void **unused)
{
    (void)unused;
    compare(TOK_SCAN_GPT2);
}

static void test_cl100k(void **unused)
{
    (void)unused;
    compare(TOK_SCAN_CL100K);
}

static void test_qwen2(void **unused)
{
    (void)unused;
    compare(TOK_SCAN_QWEN2);
}

static void test_o200k(void **unused)
{
    (void)unused;
    compare(TOK_SCAN_O200K);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        state = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gpt2), cmocka_unit_test(test_cl100k),
                                       cmocka_unit_test(test_qwen2), cmocka_unit_test(test_o200k)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
