/* Streams between processes: slow writers, killed ones, signals, and what is told when. */
#include "stream_test.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A process that writes the bytes, `step` at a time, then lives on for `linger` seconds. *fd: the pipe's
 * other end. */
static pid_t start_writer(const struct nl_buf *bytes, size_t step, unsigned linger, int *fd)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (size_t at = 0; at < bytes->size; at += step) {
            size_t some = bytes->size - at < step ? bytes->size - at : step;
            if (write(ends[1], bytes->data + at, some) != (ssize_t)some)
                _exit(1);
            if (step < bytes->size)
                usleep(50);
        }
        sleep(linger);
        _exit(0);
    }
    close(ends[1]);
    *fd = ends[0];
    return child;
}

static void slowly_reads_as(struct nl_buf *bytes, unsigned flags, const char *want)
{
    int fd, status;
    pid_t child = start_writer(bytes, 1, 0, &fd);
    char *got = read_all(fd, flags);
    assert_string_equal(got, want);
    free(got);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    nl_buf_free(bytes);
}

static void one_byte_at_a_time(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{\"seq\":0}");
    ADD_WORDS(&s, "TOKS", 1, 2);
    ADD_WORDS(&s, "LGTS", 2, 2, 0x3fc00000, 0x3f800000);
    add_text(&s, "DONE", "{}");
    slowly_reads_as(&s, PLAIN, "NLS1{\"seq\":0} TOKS:1,2 LGTS@2:1.5,1 DONE{}.");
    nl_buf_puts(&s, "{\"kind\":\"NLS1\"}\n{\"kind\":\"DONE\"}\n");
    slowly_reads_as(&s, PLAIN, "NLS1{} DONE{}.");
    nl_buf_puts(&s, "2 5:1.5 6:-1\n\n");
    slowly_reads_as(&s, LOGITS, "NLS1{\"seq\":0} LGTK@2:5=1.5,6=-1 DONE{\"finish\":\"input\"}.");
}

/* How slowly they come decides how ids are cut into frames, and nothing else. */
static void text_one_byte_at_a_time(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    struct nl_error error;
    struct nl_frame frame;
    int fd;
    nl_buf_puts(&s, "123 4294967295\r\n 7");
    pid_t child = start_writer(&s, 1, 0, &fd);
    struct nl_reader *reader = nl_reader_open(fd, "test", &error);
    struct nl_buf got = {0};
    while (nl_reader_next(reader, &frame, &error) > 0)
        if (frame.kind == NL_TOKS)
            for (size_t i = 0; i < frame.count; i++)
                nl_buf_printf(&got, "%u ", (unsigned)frame.ids[i]);
        else
            nl_buf_printf(&got, "%s ", frame.name);
    assert_string_equal(got.data, "NLS1 123 4294967295 DONE NLS1 7 DONE ");
    nl_reader_close(reader);
    waitpid(child, NULL, 0);
    nl_buf_free(&got);
    nl_buf_free(&s);
    close(fd);
}

/* A frame, an id, a line is there as soon as its last byte is, though the writer goes on living. */
static void nothing_is_held_back(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *last;
        unsigned flags;
    } cases[] = {
        {"5 67 ", "TOKS:5,67", PLAIN},
        {"5 67\n", "DONE{\"finish\":\"input\"}", PLAIN},
        {"1 5:2\n", "LGTK@1:5=2", LOGITS},
        {"{\"kind\":\"NLS1\"}\n{\"kind\":\"TOKS\",\"ids\":[4]}\n", "TOKS:4", PLAIN},
        {NULL, "TOKS:9", PLAIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nl_buf s = {0}, got = {0};
        struct nl_error error;
        struct nl_frame frame;
        int fd;
        if (cases[i].bytes) {
            nl_buf_puts(&s, cases[i].bytes);
        } else {
            add_text(&s, "NLS1", "{}");
            ADD_WORDS(&s, "TOKS", 9);
        }
        pid_t child = start_writer(&s, s.size, 100, &fd);
        struct nl_reader *reader = nl_reader_open(fd, "test", &error);
        if (cases[i].flags & LOGITS)
            nl_reader_expect_logits(reader);
        double start = seconds();
        do {
            nl_buf_clear(&got);
            assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
            describe(&frame, &got);
        } while (strcmp(got.data, cases[i].last) != 0);
        assert_true(seconds() - start < 20);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        nl_reader_close(reader);
        nl_buf_free(&got);
        nl_buf_free(&s);
        close(fd);
    }
}

static void a_killed_writer_is_noticed(void **state)
{
    (void)state;
    for (size_t cut = 18; cut <= 42; cut += 12) { /* between frames, in a header, in a payload */
        struct nl_buf s = {0};
        struct nl_error error;
        struct nl_frame frame;
        int fd;
        add_text(&s, "NLS1", "{}");
        ADD_WORDS(&s, "TOKS", 1, 2, 3);
        s.size = cut;
        pid_t child = start_writer(&s, s.size, 100, &fd);
        struct nl_reader *reader = nl_reader_open(fd, "test", &error);
        assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_int_equal(nl_reader_next(reader, &frame, &error), -1);
        assert_int_equal(error.code, NL_UPSTREAM);
        nl_reader_close(reader);
        nl_buf_free(&s);
        close(fd);
    }
}

/* ---- The wait function ---- */

struct waits {
    int count, stop_at,
        write_to; /* gives up at the call number stop_at; feeds a byte of `bytes` to write_to */
    const char *bytes;
};

static int count_wait(void *context, struct nl_error *error)
{
    struct waits *waits = context;
    waits->count++;
    if (waits->count == waits->stop_at)
        return nl_fail(error, NL_USAGE, "stopped by the caller");
    if (waits->bytes && *waits->bytes)
        assert_int_equal(write(waits->write_to, waits->bytes++, 1), 1);
    return 0;
}

/* It is called exactly where read(2) would wait. */
static void the_wait_function_comes_before_each_wait(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct nl_error error;
    struct nl_frame frame;
    struct waits waits = {.bytes = " 6 ", .write_to = ends[1]};
    struct nl_reader *reader = nl_reader_open(ends[0], "test", &error);
    nl_reader_on_wait(reader, count_wait, &waits);
    assert_int_equal(write(ends[1], "1 2 5", 5), 5);
    assert_true(nl_reader_ready(reader));
    assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
    assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
    assert_int_equal(frame.count, 2);
    assert_int_equal(waits.count, 0);
    assert_false(nl_reader_ready(reader));
    assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
    assert_int_equal(frame.ids[0], 5);
    assert_int_equal(waits.count, 1);
    assert_int_equal(nl_reader_next(reader, &frame, &error), 1);
    assert_int_equal(frame.ids[0], 6);
    assert_int_equal(waits.count, 3);
    waits.stop_at = 4;
    assert_int_equal(nl_reader_next(reader, &frame, &error), -1);
    assert_string_equal(error.message, "stopped by the caller");
    assert_int_equal(nl_reader_next(reader, &frame, &error), -1);
    nl_reader_close(reader);
    close(ends[0]);
    close(ends[1]);
}

static volatile sig_atomic_t signalled;

static void note(int number)
{
    signalled = number;
}

static int stop_when_signalled(void *context, struct nl_error *error)
{
    ++*(int *)context;
    return signalled ? nl_fail(error, NL_OK, "signal") : 0;
}

static void a_signal_ends_the_wait(void **state)
{
    (void)state;
    int ends[2], calls = 0;
    assert_int_equal(pipe(ends), 0);
    struct nl_error error;
    struct nl_frame frame;
    struct sigaction action = {.sa_handler = note}, before;
    sigaction(SIGALRM, &action, &before);
    struct nl_reader *reader = nl_reader_open(ends[0], "test", &error);
    nl_reader_on_wait(reader, stop_when_signalled, &calls);
    struct itimerval timer = {.it_value = {.tv_usec = 50000}};
    signalled = 0;
    double start = seconds();
    setitimer(ITIMER_REAL, &timer, NULL);
    assert_int_equal(nl_reader_next(reader, &frame, &error), -1);
    assert_string_equal(error.message, "signal");
    assert_int_equal(calls, 2);
    assert_true(seconds() - start < 0.4);
    nl_reader_close(reader);
    sigaction(SIGALRM, &before, NULL);
    close(ends[0]);
    close(ends[1]);
}

static int raise_and_wait(void *context, struct nl_error *error)
{
    if (stop_when_signalled(context, error) != 0)
        return -1;
    raise(SIGALRM);
    return 0;
}

/* A signal after the wait function has looked, before the wait: noticed soon. */
static void a_signal_just_before_the_wait(void **state)
{
    (void)state;
    int ends[2], calls = 0;
    assert_int_equal(pipe(ends), 0);
    struct nl_error error;
    struct nl_frame frame;
    struct sigaction action = {.sa_handler = note}, before;
    sigaction(SIGALRM, &action, &before);
    signalled = 0;
    struct nl_reader *reader = nl_reader_open(ends[0], "test", &error);
    nl_reader_on_wait(reader, raise_and_wait, &calls);
    assert_int_equal(nl_reader_next(reader, &frame, &error), -1);
    assert_string_equal(error.message, "signal");
    assert_int_equal(calls, 2);
    nl_reader_close(reader);
    sigaction(SIGALRM, &before, NULL);
    close(ends[0]);
    close(ends[1]);
}

/* Without a wait function a signal changes nothing. */
static void signals_alone_do_no_harm(void **state)
{
    (void)state;
    struct nl_buf s = {0};
    add_text(&s, "NLS1", "{}");
    add_text(&s, "DONE", "{}");
    struct sigaction action = {.sa_handler = note}, before;
    sigaction(SIGALRM, &action, &before);
    struct itimerval timer = {.it_value = {.tv_usec = 300}, .it_interval = {.tv_usec = 300}}, off = {0};
    setitimer(ITIMER_REAL, &timer, NULL);
    int fd;
    pid_t child = start_writer(&s, 3, 0, &fd);
    if (child > 0) {
        char *got = read_all(fd, PLAIN);
        setitimer(ITIMER_REAL, &off, NULL);
        assert_string_equal(got, "NLS1{} DONE{}.");
        free(got);
    }
    waitpid(child, NULL, 0);
    sigaction(SIGALRM, &before, NULL);
    nl_buf_free(&s);
}

/* Opened before anybody writes, as nl-forward opens its feedback FIFO. */
static void a_fifo_without_a_writer_is_waited_for(void **state)
{
    (void)state;
    char folder[] = "/tmp/nl-fifo.XXXXXX", path[40];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/loop", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    struct nl_error error;
    struct nl_reader *reader = nl_reader_open(fd, "test", &error);
    nl_reader_allow_fragment(reader);
    assert_false(nl_reader_ready(reader));
    pid_t child = fork();
    if (child == 0) {
        usleep(30000);
        int out = open(path, O_WRONLY);
        _exit(write(out, "5 \n", 3) == 3 ? 0 : 1);
    }
    struct nl_buf got = {0};
    struct nl_frame frame;
    while (nl_reader_next(reader, &frame, &error) > 0)
        describe(&frame, &got);
    assert_string_equal(got.data, "NLS1{\"seq\":0} TOKS:5 DONE{\"finish\":\"input\"}");
    nl_reader_close(reader);
    nl_buf_free(&got);
    waitpid(child, NULL, 0);
    close(fd);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_byte_at_a_time),
        cmocka_unit_test(text_one_byte_at_a_time),
        cmocka_unit_test(nothing_is_held_back),
        cmocka_unit_test(a_killed_writer_is_noticed),
        cmocka_unit_test(the_wait_function_comes_before_each_wait),
        cmocka_unit_test(a_signal_ends_the_wait),
        cmocka_unit_test(a_signal_just_before_the_wait),
        cmocka_unit_test(signals_alone_do_no_harm),
        cmocka_unit_test(a_fifo_without_a_writer_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
