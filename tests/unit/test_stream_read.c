/* The binary stream: what a reader takes, and each way in which a stream is wrong. */
#include "stream_test.h"

#include <sys/mman.h>

static void crc_is_zlibs(void **state)
{
    (void)state;
    assert_int_equal(nl_crc32(0, "123456789", 9), 0xcbf43926);
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i * 37 + 11);
    for (size_t from = 0; from < 9; from++)
        for (size_t to = from; to <= sizeof bytes; to++) {
            uint32_t want = slow_crc32(0, bytes + from, to - from);
            size_t half = (to - from) / 3;
            assert_int_equal(nl_crc32(0, bytes + from, to - from), want);
            assert_int_equal(nl_crc32(nl_crc32(0, bytes + from, half), bytes + from + half, to - from - half),
                             want);
        }
}

static void two_sequences(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{\"seq\":0,\"mine\":[1]}");
    ADD_WORDS(&s, "TOKS", 5, 4294967295);
    ADD_WORDS(&s, "LGTS", 2, 2, 0x3fc00000, 0xff800000);
    add_text(&s, "meta", " { } ");
    ADD_WORDS(&s, "LGTK", 3, 1, 9, 0xc0000000);
    add_frame(&s, "TOKS", "", 0);
    add_text(&s, "DONE", "{\"finish\":\"eos\"}");
    add_text(&s, "NLS1", "{}");
    add_text(&s, "DONE", "{}");
    buf_reads_as(&s, PLAIN,
                 "NLS1{\"seq\":0,\"mine\":[1]} TOKS:5,4294967295 LGTS@2:1.5,-inf meta{} LGTK@3:9=-2 TOKS "
                 "DONE{\"finish\":\"eos\"} NLS1{} DONE{}.");
}

/* A short stream with every kind; *size is its length, the caller frees it. */
static uint8_t *sample(size_t *size)
{
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{\"seq\":0}");
    ADD_WORDS(&s, "TOKS", 1, 2);
    ADD_WORDS(&s, "LGTS", 2, 1, 0x3f800000);
    ADD_WORDS(&s, "LGTK", 2, 1, 7, 0x3f800000);
    add_text(&s, "meta", "{}");
    add_text(&s, "DONE", "{}");
    *size = s.size;
    return (uint8_t *)s.data;
}

static void cut_anywhere(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = sample(&size);
    for (size_t at = 0; at < size; at++) {
        char *got = read_all(pipe_of(bytes, at), PLAIN);
        const char *fault = strstr(got, "! 8 the stream ");
        if (!fault)
            fail_msg("cut after %zu bytes: %s", at, got);
        free(got);
    }
    reads_as(bytes, 0, PLAIN, "! 8 the stream is empty, not one sequence came: test");
    reads_as(bytes, 7, PLAIN, "! 8 the stream was cut short inside a frame's header: byte 0: test");
    reads_as(bytes, 20, PLAIN, "! 8 the stream was cut short: NLS1 frame at byte 0: test");
    reads_as(bytes, 25, PLAIN, "NLS1{\"seq\":0}! 8 the stream was cut short inside a sequence: test");
    reads_as(bytes, 30, PLAIN,
             "NLS1{\"seq\":0}! 8 the stream was cut short inside a frame's header: byte 25: test");
    free(bytes);
}

static void any_flipped_bit_is_noticed(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = sample(&size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        char *got = read_all(pipe_of(bytes, size), PLAIN);
        if (!strstr(got, "! "))
            fail_msg("bit %zu of byte %zu: %s", bit % 8, bit / 8, got);
        free(got);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
}

static void checksums(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{}");
    add_text(&s, "DONE", "{}");
    memset(s.data + 4, 0, 4); /* not given: fine in a pipe ... */
    reads_as(s.data, s.size, PLAIN, "NLS1{} DONE{}.");
    int fd = memfd_create("test", 0); /* ... but not in a file */
    assert_int_equal(write(fd, s.data, s.size), s.size);
    lseek(fd, 0, SEEK_SET);
    char *got = read_all(fd, PLAIN);
    assert_string_equal(got, "! 3 no checksum: NLS1 frame at byte 0: test");
    free(got);
    s.data[4] = 1;
    reads_as(s.data, s.size, PLAIN, "! 3 wrong checksum: NLS1 frame at byte 0: test");
    nl_buf_free(&s);
}

/* A frame whose checksum is computed as 0: found by search, as one in 2^32 is. */
static void a_checksum_of_zero_is_written_as_ones(void **state)
{
    (void)state;
    uint64_t length = 8;
    uint32_t ids[2] = {0, 0}, crc = slow_crc32(slow_crc32(0, "TOKS", 4), &length, 8);
    /* The four last bytes of a message can bring about any remainder: run the register backwards from 0. */
    uint32_t want = ~0u, now = ~slow_crc32(crc, ids, 4);
    for (int bit = 0; bit < 32; bit++)
        want = want >> 31 ? (want ^ 0xEDB88320) << 1 | 1 : want << 1;
    ids[1] = want ^ now;
    assert_int_equal(slow_crc32(crc, ids, 8), 0);
    struct nl_error error;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct nl_writer *writer = nl_writer_open(ends[1], NL_BINARY, "test", &error);
    assert_int_equal(nl_writer_ids(writer, ids, 2, &error), 0);
    assert_int_equal(nl_writer_close(writer, &error), 0);
    uint8_t frame[24];
    assert_int_equal(read(ends[0], frame, 24), 24);
    assert_memory_equal(frame + 4, "\xff\xff\xff\xff", 4);
    close(ends[0]);
    close(ends[1]);
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{}");
    nl_buf_add(&s, frame, 24);
    add_text(&s, "DONE", "{}");
    char want_text[100];
    snprintf(want_text, sizeof want_text, "NLS1{} TOKS:0,%u DONE{}.", (unsigned)ids[1]);
    buf_reads_as(&s, PLAIN, want_text);
}

static void absurd_lengths(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    uint64_t length = UINT64_MAX - 7;
    nl_buf_add(&s, "NLS1\1\1\1\1", 8);
    nl_buf_add(&s, &length, 8);
    buf_reads_as(&s, PLAIN, "! 3 absurd length: NLS1 frame at byte 0: test");
    add_text(&s, "NLS1", "{}");
    nl_buf_add(&s, "TOKS\1\1\1\1\1\0\0\x40\0\0\0\0", 16);
    buf_reads_as(&s, PLAIN, "NLS1{}! 3 absurd length: TOKS frame at byte 18: test");
    /* A length that is possible costs no memory before its bytes come. */
    add_text(&s, "NLS1", "{}");
    nl_buf_add(&s, "TOKS\1\1\1\1\0\0\0\x40\0\0\0\0abcd", 20);
    buf_reads_as(&s, PLAIN, "NLS1{}! 8 the stream was cut short: TOKS frame at byte 18: test");
}

static void unknown_kinds(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{}");
    add_text(&s, "abc9", "whatever");
    add_text(&s, "kvbk", "xyz");
    add_text(&s, "DONE", "{}");
    add_text(&s, "zZZZ", "");
    buf_reads_as(&s, PLAIN, "NLS1{} abc9#8 kvbk#3 DONE{} zZZZ#0.");
    add_text(&s, "NLS1", "{}");
    add_text(&s, "ABCD", "whatever");
    buf_reads_as(&s, PLAIN, "NLS1{}! 3 unknown kind of frame: ABCD frame at byte 18: test");
    add_text(&s, "NLS1", "{}");
    add_text(&s, "9BCD", "");
    buf_reads_as(&s, PLAIN, "NLS1{}! 3 not a frame's header: byte 18: test");
    add_text(&s, "NLS1", "{}");
    add_text(&s, "a\0\0\0", "");
    buf_reads_as(&s, PLAIN, "NLS1{}! 3 not a frame's header: byte 18: test");
}

static void grammar(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{}");
    add_text(&s, "NLS1", "{}");
    buf_reads_as(&s, PLAIN, "NLS1{}! 3 the sequence before has no DONE: NLS1 frame at byte 18: test");
    add_text(&s, "NLS1", "{}");
    add_text(&s, "DONE", "{}");
    ADD_WORDS(&s, "TOKS", 1);
    buf_reads_as(&s, PLAIN, "NLS1{} DONE{}! 3 frame outside of a sequence: TOKS frame at byte 36: test");
    ADD_WORDS(&s, "TOKS", 1);
    buf_reads_as(&s, PLAIN, "! 3 neither frames nor ids nor JSON: byte 0x54 at the start: test");
    add_text(&s, "NLS1", "{}");
    ADD_WORDS(&s, "CUTS", 1);
    buf_reads_as(&s, PLAIN, "NLS1{}! 3 frame outside of a session file: CUTS frame at byte 18: test");
    text_reads_as("\xce", PLAIN, "! 3 neither frames nor ids nor JSON: byte 0xce at the start: test");
}

static void failures_upstream(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "FAIL", "{\"code\":4}");
    add_text(&s, "NLS1", "{}");
    buf_reads_as(&s, PLAIN, "FAIL{\"code\":4}.");
    add_text(&s, "NLS1", "{}");
    ADD_WORDS(&s, "TOKS", 1);
    add_text(&s, "FAIL", "{\"code\":6,\"error\":\"x\"}");
    buf_reads_as(&s, PLAIN, "NLS1{} TOKS:1 FAIL{\"code\":6,\"error\":\"x\"}.");
    /* An error in one of several sequences is for the program to count. */
    add_text(&s, "NLS1", "{}");
    add_text(&s, "DONE", "{\"finish\":\"error\",\"code\":7}");
    add_text(&s, "NLS1", "{}");
    ADD_WORDS(&s, "TOKS", 1);
    add_text(&s, "DONE", "{}");
    buf_reads_as(&s, PLAIN, "NLS1{} DONE{\"finish\":\"error\",\"code\":7} NLS1{} TOKS:1 DONE{}.");
}

static void bad_payloads(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *payload;
        size_t size;
        const char *message;
    } cases[] = {
        {"TOKS", "abcde", 5, "payload's length is no multiple of 4"},
        {"LGTS", "abcd", 4, "payload too short"},
        {"LGTS", "\0\0\0\0\1\0\0\0", 8, "payload's length and number of logits disagree"},
        {"LGTS", "\0\0\0\0\1\0\0\0aaaabbbb", 16, "payload's length and number of logits disagree"},
        {"LGTS",
         "\0\0\0\0\1\0\0\x40"
         "aaaa",
         12, "payload's length and number of logits disagree"},
        {"LGTS", "\0\0\0\0\0\0\0\0", 8, "no logits"},
        {"LGTK", "\0\0\0\0\1\0\0\0aaaa", 12, "payload's length and number of logits disagree"},
        {"LGTK", "\0\0\0\0\0\0\0\x20", 8, "payload's length and number of logits disagree"},
        {"CUTS", "ab", 2, "payload's length is not 4"},
        {"DONE", "", 0, "unexpected end at byte 0: DONE"},
        {"DONE", "[]", 2, "not a JSON object"},
        {"DONE", "{\"a\":1", 6, "unexpected end at byte 6: DONE"},
        {"meta", "{}x", 3, "something after the value at byte 2: meta"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nl_buf s = {0};
        add_text(&s, "NLS1", "{}");
        add_frame(&s, cases[i].kind, cases[i].payload, cases[i].size);
        char want[200];
        snprintf(want, sizeof want, "NLS1{}! 3 %s: %s frame at byte 18: test", cases[i].message,
                 cases[i].kind);
        buf_reads_as(&s, PLAIN, want);
    }
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{}");
    ADD_WORDS(&s, "LGTK", 3, 0);
    add_text(&s, "DONE", "{}");
    buf_reads_as(&s, PLAIN, "NLS1{} LGTK@3 DONE{}.");
}

static void sessions_end_at_any_border(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{\"session\":1}");
    ADD_WORDS(&s, "TOKS", 1, 2);
    ADD_WORDS(&s, "CUTS", 1);
    add_text(&s, "kvbk", "x");
    reads_as(s.data, s.size - 1, PLAIN,
             "NLS1{\"session\":1} TOKS:1,2 CUTS:1! 8 the stream was cut short: kvbk frame at byte 73: test");
    buf_reads_as(&s, PLAIN, "NLS1{\"session\":1} TOKS:1,2 CUTS:1 kvbk#1 DONE{\"finish\":\"input\"}.");
}

static void fragments(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    ADD_WORDS(&s, "TOKS", 1);
    ADD_WORDS(&s, "TOKS", 2);
    add_text(&s, "DONE", "{}");
    add_text(&s, "DONE", "{}");
    add_text(&s, "NLS1", "{}");
    ADD_WORDS(&s, "TOKS", 3);
    add_text(&s, "DONE", "{}");
    reads_as(s.data, s.size, FRAGMENT, "TOKS:1 TOKS:2 DONE{} DONE{} NLS1{} TOKS:3 DONE{}.");
    reads_as(s.data, 20, FRAGMENT, "TOKS:1! 8 the stream was cut short inside a sequence: test");
    reads_as(s.data, 0, FRAGMENT, ".");
    nl_buf_free(&s);
    add_text(&s, "DONE", "{}");
    buf_reads_as(&s, FRAGMENT, "DONE{}.");
    add_text(&s, "abcd", "{}");
    buf_reads_as(&s, FRAGMENT, "abcd#2.");
    ADD_WORDS(&s, "TOKS", 1);
    add_text(&s, "FAIL", "{}");
    buf_reads_as(&s, FRAGMENT, "TOKS:1 FAIL{}.");
    text_reads_as(
        "1 2 \n\n3 \n", FRAGMENT,
        "NLS1{\"seq\":0} TOKS:1,2 DONE{\"finish\":\"input\"} NLS1{\"seq\":1} DONE{\"finish\":\"input\"} "
        "NLS1{\"seq\":2} TOKS:3 DONE{\"finish\":\"input\"}.");
    text_reads_as("1 2 ", FRAGMENT,
                  "NLS1{\"seq\":0} TOKS:1,2! 8 the stream was cut short inside a sequence: test");
}

/* Nothing behind the last frame is taken from the pipe. */
static void never_reads_ahead(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{}");
    size_t border = s.size;
    add_text(&s, "DONE", "{}");
    int fd = pipe_of(s.data, s.size);
    struct nl_error error;
    struct nl_frame frame;
    struct nl_reader *reader = nl_reader_open(fd, "test", &error);
    assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
    assert_true(nl_reader_in_sequence(reader));
    assert_true(nl_reader_ready(reader));
    nl_reader_close(reader);
    char rest[100];
    assert_int_equal(read(fd, rest, sizeof rest), s.size - border);
    close(fd);
    nl_buf_free(&s);
}

static void read_errors(void **state)
{
    (void)state;
    char *got = read_all(open("/", O_RDONLY), PLAIN);
    assert_string_equal(got, "! 9 cannot read: test: Is a directory");
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_is_zlibs),   cmocka_unit_test(two_sequences),
        cmocka_unit_test(cut_anywhere),   cmocka_unit_test(any_flipped_bit_is_noticed),
        cmocka_unit_test(checksums),      cmocka_unit_test(a_checksum_of_zero_is_written_as_ones),
        cmocka_unit_test(absurd_lengths), cmocka_unit_test(unknown_kinds),
        cmocka_unit_test(grammar),        cmocka_unit_test(failures_upstream),
        cmocka_unit_test(bad_payloads),   cmocka_unit_test(sessions_end_at_any_border),
        cmocka_unit_test(fragments),      cmocka_unit_test(never_reads_ahead),
        cmocka_unit_test(read_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
