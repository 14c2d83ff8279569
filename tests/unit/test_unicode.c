/* UTF-8, normal forms, SHA-256. The normal forms and lower case of every character and of two million random
   strings were compared with `tokenizers` 0.23 once (see tests/reference/diff_random.py for how); here are
   those that could go wrong. */
#include "test.h"

#include "sha256.h"
#include "unicode.h"

static void utf8_faults(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size, offset, bad;
    } cases[] = {
        {"abcdefghij", 10, 10, 0},
        {"abcdefgh\xff", 9, 8, 1},
        {"\x80", 1, 0, 1},
        {"\xc3", 1, 0, 1},
        {"\xc0\xaf", 2, 0, 1},
        {"a\xe4\xbd", 3, 1, 2},
        {"\xe4\xbd"
         "A",
         3, 0, 2},
        {"\xed\xa0\x80", 3, 0, 1},
        {"\xf0\x9f\x98", 3, 0, 3},
        {"\xf0\x8f\xbf\xbf", 4, 0, 1},
        {"\xf4\x90\x80\x80", 4, 0, 1},
        {"\xf5\x80\x80\x80", 4, 0, 1},
        {"\xf4\x8f\xbf\xbf", 4, 4, 0},
        {"\xef\xbf\xbf", 3, 3, 0},
        {"a\0b", 3, 3, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bad = 0;
        assert_int_equal(nl_utf8_check(cases[i].bytes, cases[i].size, &bad), cases[i].offset);
        if (cases[i].offset < cases[i].size)
            assert_int_equal(bad, cases[i].bad);
    }
}

static void utf8_round_trip(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < NL_CODE_POINTS; c++) {
        char bytes[4];
        unsigned size = nl_utf8_put(c, bytes), got;
        bool surrogate = c >= 0xd800 && c < 0xe000;
        if ((nl_utf8_check(bytes, size, NULL) == size) == surrogate ||
            (!surrogate && nl_utf8_get(bytes, &got) != c))
            fail_msg("U+%04X", (unsigned)c);
    }
}

static void normal_forms(void **state)
{
    (void)state;
    static const struct {
        enum nl_normal_form form;
        const char *text, *wanted;
    } cases[] = {
        {NL_NFC, "a\u0308x", "\u00e4x"},
        {NL_NFC, "x\u0323\u0302 q\u0307\u0323", "x\u0323\u0302 q\u0323\u0307"},
        {NL_NFC, "\u1100\u1161\u11a8", "\uac01"},
        {NL_NFC, "\u0958\u212b\u2126", "\u0915\u093c\u00c5\u03a9"},
        {NL_NFC, "ascii only", "ascii only"},
        {NL_NFD, "\u1e69\uac01", "s\u0323\u0307\u1100\u1161\u11a8"},
        {NL_NFKC, "\ufb01\u3392\u2460", "fiMHz1"},
        {NL_NFKD, "\uff76\uff9e", "\u30ab\u3099"},
        /* U+1ABF came with Unicode 13 and has class 220: to the reference it is a starter. */
        {NL_NFC, "a\u1abf\u0301\u0323", "a\u1abf\u0323\u0301"},
        {NL_NFD, "\u0301\u1abf", "\u0301\u1abf"},
        {NL_NFC, "\U00011935\U00011930", "\U00011935\U00011930"}, /* composes in Unicode 13 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nl_buf out = {0};
        struct nl_error error;
        assert_int_equal(
            nl_unicode_normalize(cases[i].form, cases[i].text, strlen(cases[i].text), &out, &error), 0);
        assert_string_equal(out.data, cases[i].wanted);
        nl_buf_free(&out);
    }
}

static void lower_case(void **state)
{
    (void)state;
    struct nl_buf out = {0};
    const char *text = "AZ[\u00c0\u0130\u03a3\u01c5\u1e9e\u2c2f\ua7cb\U00010400\u0131";
    nl_unicode_lowercase(text, strlen(text), &out);
    assert_string_equal(out.data, "az[\u00e0i\u0307\u03c3\u01c6\u00df\u2c5f\u0264\U00010428\u0131");
    nl_buf_free(&out);
}

static void properties(void **state)
{
    (void)state;
    assert_int_equal(nl_unicode_category(0x1c89), NL_CAT_LU);  /* new in 16 */
    assert_int_equal(nl_unicode_category(0x31350), NL_CAT_LO); /* new in 15 */
    assert_int_equal(nl_unicode_category(0x10ffff), NL_CAT_CN);
    assert_true(nl_unicode_is_space(0x85) && nl_unicode_is_space(0x3000) && nl_unicode_is_space(0x2028));
    assert_false(nl_unicode_is_space(0x200b) || nl_unicode_is_space(0x180e) || nl_unicode_is_space(0x1c));
    assert_true(nl_unicode_is_numeric(0xb2) && nl_unicode_is_numeric(0x2167) && nl_unicode_is_numeric(0x660));
    assert_true(nl_unicode_is_word(0x200d) && nl_unicode_is_word(0x301) && !nl_unicode_is_word(0xb2));
}

static void sha256(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
    } cases[] = {
        /* FIPS 180-4, examples */
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[65];
    struct nl_sha256 sha;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nl_sha256_init(&sha);
        nl_sha256_add(&sha, cases[i].text, strlen(cases[i].text));
        nl_sha256_finish(&sha, hex);
        assert_string_equal(hex, cases[i].hex);
    }
    nl_sha256_init(&sha);
    for (unsigned i = 0; i < 1000000; i += 64 + i % 7) { /* a million 'a' in uneven pieces */
        char piece[80];
        unsigned step = 64 + i % 7;
        memset(piece, 'a', sizeof piece);
        nl_sha256_add(&sha, piece, i + step > 1000000 ? 1000000 - i : step);
    }
    nl_sha256_finish(&sha, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_faults), cmocka_unit_test(utf8_round_trip), cmocka_unit_test(normal_forms),
        cmocka_unit_test(lower_case),  cmocka_unit_test(properties),      cmocka_unit_test(sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
