/* The writer in its three forms. */
#include "stream_test.h"

#include <math.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { SHOW_LOGITS = 1, TOP2 = 2 };

static struct nl_writer *open_writer(int fd, enum nl_form form, unsigned flags)
{
    struct nl_error error;
    struct nl_writer *writer = nl_writer_open(fd, form, "test", &error);
    assert_non_null(writer);
    if (flags & SHOW_LOGITS)
        nl_writer_show_logits(writer);
    if (flags & TOP2)
        nl_writer_set_top(writer, 2);
    return writer;
}

/* What a file holds; the caller frees it. */
static struct nl_buf contents(int fd)
{
    struct nl_buf buf = {0};
    off_t size = lseek(fd, 0, SEEK_END);
    nl_buf_reserve(&buf, (size_t)size);
    lseek(fd, 0, SEEK_SET);
    buf.size = (size_t)read(fd, buf.data, (size_t)size);
    buf.data[buf.size] = '\0';
    close(fd);
    return buf;
}

static struct nl_buf written(enum nl_form form, unsigned flags)
{
    struct nl_error error = {.code = NL_DATA, .message = "no \"luck\": here"};
    int fd = memfd_create("test", 0);
    struct nl_writer *writer = open_writer(fd, form, flags);
    struct nl_json *object = nl_json_parse("{\"seq\":0,\"kind\":1}", 18, "test", &error);
    uint32_t some_ids[] = {7, 4294967295}, sparse[] = {9, 4, 6};
    float logits[] = {0.1f, -INFINITY, 3.5f, NAN, 3.5f, INFINITY};
    assert_int_equal(nl_writer_object(writer, NL_NLS1, object, &error), 0);
    assert_int_equal(nl_writer_ids(writer, some_ids, 2, &error), 0);
    assert_int_equal(nl_writer_logits(writer, 2, logits, 6, &error), 0);
    assert_int_equal(nl_writer_object(writer, NL_META, object, &error), 0);
    assert_int_equal(nl_writer_sparse(writer, 3, sparse, logits, 3, &error), 0);
    assert_int_equal(nl_writer_ids(writer, NULL, 0, &error), 0);
    assert_int_equal(nl_writer_sparse(writer, 4, NULL, NULL, 0, &error), 0);
    assert_int_equal(nl_writer_done(writer, "eos", &error), 0);
    assert_int_equal(nl_writer_object(writer, NL_NLS1, object, &error), 0);
    struct nl_error cause = {.code = NL_DATA, .message = "no \"luck\": here"};
    assert_int_equal(nl_writer_done_error(writer, &cause, &error), 0);
    assert_int_equal(nl_writer_fail(writer, &cause, &error), 0);
    nl_json_free(object);
    assert_int_equal(nl_writer_close(writer, &error), 0);
    return contents(fd);
}

static void is_written(enum nl_form form, unsigned flags, const char *want)
{
    struct nl_buf got = written(form, flags);
    assert_string_equal(got.data, want);
    nl_buf_free(&got);
}

static void binary(void **state)
{
    (void)state;
    struct nl_buf got = written(NL_BINARY, 0), want = {0};
    add_text(&want, "NLS1", "{\"seq\":0,\"kind\":1}");
    ADD_WORDS(&want, "TOKS", 7, 4294967295);
    ADD_WORDS(&want, "LGTS", 2, 6, 0x3dcccccd, 0xff800000, 0x40600000, nl_bits_of_float(NAN), 0x40600000,
              0x7f800000);
    add_text(&want, "meta", "{\"seq\":0,\"kind\":1}");
    ADD_WORDS(&want, "LGTK", 3, 3, 9, 4, 6, 0x3dcccccd, 0xff800000, 0x40600000);
    add_text(&want, "TOKS", "");
    ADD_WORDS(&want, "LGTK", 4, 0);
    add_text(&want, "DONE", "{\"finish\":\"eos\"}");
    add_text(&want, "NLS1", "{\"seq\":0,\"kind\":1}");
    add_text(&want, "DONE", "{\"finish\":\"error\",\"code\":3,\"error\":\"no \\\"luck\\\": here\"}");
    add_text(&want, "FAIL", "{\"code\":3,\"error\":\"no \\\"luck\\\": here\"}");
    assert_int_equal(got.size, want.size);
    assert_memory_equal(got.data, want.data, want.size);
    nl_buf_free(&got);
    nl_buf_free(&want);
}

static void text(void **state)
{
    (void)state;
    is_written(NL_TEXT, 0, "7 4294967295 \n\n");
    is_written(NL_TEXT, SHOW_LOGITS,
               "2 0:0.100000001 2:3.5 3:nan 4:3.5 5:inf\n3 6:3.5 9:0.100000001\n4\n\n\n");
    is_written(NL_TEXT, SHOW_LOGITS | TOP2, "2 3:nan 5:inf\n3 6:3.5 9:0.100000001\n4\n\n\n");
}

static void top_is_largest_first_lowest_id_first(void **state)
{
    (void)state;
    struct nl_error error;
    int fd = memfd_create("test", 0);
    struct nl_writer *writer = open_writer(fd, NL_TEXT, SHOW_LOGITS | TOP2);
    float logits[] = {1, 5, -INFINITY, 7, 5};
    assert_int_equal(nl_writer_logits(writer, 1, logits, 5, &error), 0);
    assert_int_equal(nl_writer_close(writer, &error), 0);
    struct nl_buf got = contents(fd);
    assert_string_equal(got.data, "1 3:7 1:5\n");
    nl_buf_free(&got);
}

static void json(void **state)
{
    (void)state;
    is_written(
        NL_JSON_LINES, 0,
        "{\"kind\":\"NLS1\",\"seq\":0}\n"
        "{\"kind\":\"TOKS\",\"ids\":[7,4294967295]}\n"
        "{\"kind\":\"LGTS\",\"position\":2,\"logits\":[0.100000001,\"-inf\",3.5,\"nan\",3.5,\"inf\"]}\n"
        "{\"kind\":\"meta\",\"seq\":0}\n"
        "{\"kind\":\"LGTK\",\"position\":3,\"ids\":[9,4,6],\"logits\":[0.100000001,\"-inf\",3.5]}\n"
        "{\"kind\":\"TOKS\",\"ids\":[]}\n"
        "{\"kind\":\"LGTK\",\"position\":4,\"ids\":[],\"logits\":[]}\n"
        "{\"kind\":\"DONE\",\"finish\":\"eos\"}\n"
        "{\"kind\":\"NLS1\",\"seq\":0}\n"
        "{\"kind\":\"DONE\",\"finish\":\"error\",\"code\":3,\"error\":\"no \\\"luck\\\": here\"}\n"
        "{\"kind\":\"FAIL\",\"code\":3,\"error\":\"no \\\"luck\\\": here\"}\n");
}

/* Every frame of one stream passed on into another. */
static struct nl_buf passed_on(struct nl_buf *from, enum nl_form form)
{
    struct nl_error error;
    struct nl_frame frame;
    int fd = memfd_create("test", 0), got;
    struct nl_writer *writer = open_writer(fd, form, 0);
    struct nl_reader *reader = nl_reader_open(pipe_of(from->data, from->size), "test", &error);
    while ((got = nl_reader_next(reader, &frame, &error)) > 0)
        assert_int_equal(nl_writer_frame(writer, &frame, &error), 0);
    if (got < 0)
        fail_msg("%s", error.message);
    nl_reader_close(reader);
    assert_int_equal(nl_writer_close(writer, &error), 0);
    nl_buf_free(from);
    return contents(fd);
}

static void frames_pass_through_every_form(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{\"seq\":0,\"session\":1,\"x\":\"\\u0000\"}");
    ADD_WORDS(&s, "TOKS", 1, 2);
    ADD_WORDS(&s, "CUTS", 1);
    ADD_WORDS(&s, "LGTS", 1, 2, 0x3dcccccd, 0xff800000);
    ADD_WORDS(&s, "LGTK", 1, 2, 5, 4, 0x00000001, 0x7f7fffff);
    add_text(&s, "meta", "{\"a\":null}");
    add_text(&s, "mine", "{\"b\":[1.5]}");
    add_text(&s, "DONE", "{}");
    struct nl_buf original = {0}, back;
    nl_buf_add(&original, s.data, s.size);
    back = passed_on(&s, NL_BINARY);
    assert_int_equal(back.size, original.size);
    assert_memory_equal(back.data, original.data, original.size);
    struct nl_buf lines = passed_on(&back, NL_JSON_LINES);
    back = passed_on(&lines, NL_BINARY);
    assert_int_equal(back.size, original.size);
    assert_memory_equal(back.data, original.data, original.size);
    nl_buf_free(&back);
    nl_buf_free(&original);
    /* What a twin cannot say. */
    add_text(&s, "NLS1", "{}");
    add_text(&s, "mine", "\xff");
    add_text(&s, "kvbk", "x");
    add_text(&s, "DONE", "{}");
    lines = passed_on(&s, NL_JSON_LINES);
    assert_string_equal(lines.data, "{\"kind\":\"NLS1\"}\n{\"kind\":\"DONE\"}\n");
    nl_buf_free(&lines);
}

/* Nine digits bring back every float. */
static void floats_survive_text(void **state)
{
    (void)state;
    enum { N = 500 };
    struct nl_error error;
    struct nl_frame frame;
    float logits[N];
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bits = i * 2654435761u;
        logits[i] = (bits >> 23 & 255) == 255 ? (float)i : nl_float_of_bits(bits);
    }
    for (int form = NL_TEXT; form <= NL_JSON_LINES; form++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        struct nl_writer *writer = open_writer(ends[1], (enum nl_form)form, SHOW_LOGITS);
        struct nl_json *object = nl_json_new_object();
        nl_writer_object(writer, NL_NLS1, object, &error);
        nl_json_free(object);
        assert_int_equal(nl_writer_logits(writer, 1, logits, N, &error), 0);
        assert_int_equal(nl_writer_done(writer, "input", &error), 0);
        assert_int_equal(nl_writer_close(writer, &error), 0);
        close(ends[1]);
        struct nl_reader *reader = nl_reader_open(ends[0], "test", &error);
        nl_reader_expect_logits(reader);
        assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
        assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
        assert_int_equal(nl_reader_form(reader), form);
        assert_int_equal(frame.count, N);
        assert_memory_equal(frame.logits, logits, sizeof logits);
        nl_reader_close(reader);
        close(ends[0]);
    }
}

static void buffers_until_flushed(void **state)
{
    (void)state;
    struct nl_error error;
    int fd = memfd_create("test", 0);
    struct nl_writer *writer = open_writer(fd, NL_BINARY, 0);
    uint32_t id = 1;
    assert_int_equal(nl_writer_ids(writer, &id, 1, &error), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    assert_int_equal(nl_writer_flush(writer, &error), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 20);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(nl_writer_ids(writer, &id, 1, &error), 0);
    assert_true(lseek(fd, 0, SEEK_CUR) > 100000);
    assert_int_equal(nl_writer_close(writer, NULL), 0);
    assert_true(lseek(fd, 0, SEEK_CUR) < 20 + 200000);
    close(fd);
    fd = memfd_create("test", 0);
    writer = open_writer(fd, NL_TEXT, 0);
    assert_int_equal(nl_writer_ids(writer, &id, 1, &error), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 2);
    assert_int_equal(nl_writer_close(writer, &error), 0);
    close(fd);
}

static void large_ids_are_cut(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_frame frame;
    enum { N = 2500000 };
    uint32_t *many = calloc(N, sizeof *many);
    int fd = memfd_create("test", 0);
    struct nl_writer *writer = open_writer(fd, NL_BINARY, 0);
    struct nl_json *object = nl_json_new_object();
    nl_writer_object(writer, NL_NLS1, object, &error);
    nl_json_free(object);
    many[N - 1] = 3;
    assert_int_equal(nl_writer_ids(writer, many, N, &error), 0);
    assert_int_equal(nl_writer_close(writer, &error), 0);
    free(many);
    lseek(fd, 0, SEEK_SET);
    struct nl_reader *reader = nl_reader_open(fd, "test", &error);
    size_t count = 0;
    uint32_t last = 0;
    while (nl_reader_next(reader, &frame, &error) > 0)
        if (frame.kind == NL_TOKS) {
            assert_true(frame.count <= 1 << 20);
            count += frame.count;
            last = frame.ids[frame.count - 1];
        }
    assert_int_equal(error.code, NL_UPSTREAM);
    assert_int_equal(count, N);
    assert_int_equal(last, 3);
    nl_reader_close(reader);
    close(fd);
}

static void errors(void **state)
{
    (void)state;
    struct nl_error error;
    uint32_t id = 1;
    int fd = open("/dev/full", O_WRONLY);
    struct nl_writer *writer = open_writer(fd, NL_BINARY, 0);
    assert_int_equal(nl_writer_ids(writer, &id, 1, &error), 0);
    assert_int_equal(nl_writer_flush(writer, &error), -1);
    assert_int_equal(error.code, NL_IO);
    assert_string_equal(error.message, "cannot write: test: No space left on device");
    assert_int_equal(nl_writer_ids(writer, &id, 1, &error), -1);
    assert_int_equal(nl_writer_close(writer, &error), -1);
    close(fd);
    float *logits = calloc(50000, sizeof *logits);
    fd = open("/dev/full", O_WRONLY);
    writer = open_writer(fd, NL_BINARY, 0);
    assert_int_equal(nl_writer_logits(writer, 1, logits, 50000, &error), -1);
    assert_int_equal(error.code, NL_IO);
    assert_int_equal(nl_writer_close(writer, NULL), 0);
    free(logits);
    close(fd);
}

static void no_binary_to_a_terminal(void **state)
{
    (void)state;
    struct nl_error error;
    int master, slave;
    if (openpty(&master, &slave, NULL, NULL, NULL) != 0) {
        print_message("no pseudo-terminals here\n");
        skip();
    }
    assert_null(nl_writer_open(slave, NL_BINARY, "standard output", &error));
    assert_int_equal(error.code, NL_USAGE);
    assert_non_null(strstr(error.message, "--text"));
    struct nl_writer *writer = open_writer(slave, NL_TEXT, 0);
    assert_int_equal(nl_writer_close(writer, &error), 0);
    close(master);
    close(slave);
}

static void note(int number)
{
    (void)number;
}

/* A frame larger than a pipe, emptied slowly by another process, while signals come. `flags`: the pipe's. */
static void write_to_a_full_pipe(int flags)
{
    struct nl_error error;
    enum { N = 400000 };
    int ends[2];
    assert_int_equal(pipe2(ends, flags), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        struct nl_frame frame;
        struct nl_reader *reader = nl_reader_open(ends[0], "test", &error);
        usleep(50000);
        int got = nl_reader_next(reader, &frame, &error);
        if (got > 0)
            got = nl_reader_next(reader, &frame, &error);
        _exit(got > 0 && frame.kind == NL_LGTS && frame.count == N && frame.logits[N - 1] == 2 ? 0 : 1);
    }
    close(ends[0]);
    struct sigaction action = {.sa_handler = note}, before;
    sigaction(SIGALRM, &action, &before);
    struct itimerval timer = {.it_value = {.tv_usec = 5000}, .it_interval = {.tv_usec = 5000}}, off = {0};
    setitimer(ITIMER_REAL, &timer, NULL);
    float *logits = calloc(N, sizeof *logits);
    logits[N - 1] = 2;
    struct nl_writer *writer = open_writer(ends[1], NL_BINARY, 0);
    struct nl_json *object = nl_json_new_object();
    int result = nl_writer_object(writer, NL_NLS1, object, &error);
    if (result == 0)
        result = nl_writer_logits(writer, 1, logits, N, &error);
    if (result == 0)
        result = nl_writer_flush(writer, &error);
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(result, 0);
    nl_json_free(object);
    nl_writer_close(writer, NULL);
    free(logits);
    close(ends[1]);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void a_full_pipe_is_waited_for(void **state)
{
    (void)state;
    write_to_a_full_pipe(0);
    write_to_a_full_pipe(O_NONBLOCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binary),
        cmocka_unit_test(text),
        cmocka_unit_test(top_is_largest_first_lowest_id_first),
        cmocka_unit_test(json),
        cmocka_unit_test(frames_pass_through_every_form),
        cmocka_unit_test(floats_survive_text),
        cmocka_unit_test(buffers_until_flushed),
        cmocka_unit_test(large_ids_are_cut),
        cmocka_unit_test(errors),
        cmocka_unit_test(no_binary_to_a_terminal),
        cmocka_unit_test(a_full_pipe_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
