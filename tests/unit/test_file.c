#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

static char folder[] = "/tmp/nl-file-XXXXXX";
static struct nl_error error;

/* FOLDER/NAME, until the next call but three. */
static const char *in_folder(const char *name)
{
    static char paths[4][100];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void write_file(const char *path, const char *text, bool commit)
{
    struct nl_outfile file;
    assert_int_equal(nl_outfile_open(&file, path, &error), 0);
    assert_int_equal(nl_write_all(file.fd, text, strlen(text), path, &error), 0);
    if (commit)
        assert_int_equal(nl_outfile_commit(&file, &error), 0);
    else
        nl_outfile_abort(&file);
}

static void assert_holds(const char *path, const char *text)
{
    struct nl_buf found = {0};
    assert_int_equal(nl_file_read(path, 1000, &found, &error), 0);
    assert_string_equal(found.data, text);
    nl_buf_free(&found);
}

static void appears_when_complete(void **state)
{
    (void)state;
    const char *path = in_folder("new");
    struct nl_outfile file;
    assert_int_equal(nl_outfile_open(&file, path, &error), 0);
    assert_false(nl_path_exists(path));
    assert_int_equal(nl_outfile_commit(&file, &error), 0);
    assert_holds(path, "");
    write_file(path, "one", true);
    write_file(path, "two", false);
    assert_holds(path, "one");
    assert_int_equal(unlink(path), 0);
}

static void keeps_links(void **state)
{
    (void)state;
    const char *target = in_folder("target"), *link = in_folder("link");
    struct stat status;
    assert_int_equal(symlink("target", link), 0);
    write_file(target, "old", true);
    write_file(link, "new", true);
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_holds(target, "new");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(target), 0);
}

/* A rename over it would end the device, or the pipe that somebody reads. */
static void keeps_what_is_no_file(void **state)
{
    (void)state;
    const char *fifo = in_folder("fifo");
    struct stat before, after;
    char got[4] = "";
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(stat(fifo, &before), 0);
    int reader = open(fifo, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    write_file(fifo, "abc", true);
    assert_int_equal(read(reader, got, 3), 3);
    assert_string_equal(got, "abc");
    write_file(fifo, "abc", false);
    assert_int_equal(stat(fifo, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    close(reader);
    assert_int_equal(unlink(fifo), 0);
}

static void refuses_folders(void **state)
{
    (void)state;
    struct nl_outfile file;
    assert_int_equal(nl_outfile_open(&file, folder, &error), -1);
    assert_int_equal(error.code, NL_IO);
    assert_int_equal(nl_outfile_open(&file, in_folder("none/file"), &error), -1);
    assert_int_equal(error.code, NL_NOT_FOUND);
}

/* The size on disk counts, before any memory does. */
static void reads_up_to_a_limit(void **state)
{
    (void)state;
    const char *path = in_folder("large");
    struct nl_buf found = {0};
    write_file(path, "0123456789", true);
    assert_int_equal(nl_file_read(path, 10, &found, &error), 0);
    assert_int_equal(found.size, 10);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    assert_int_equal(nl_file_read(path, 1000, &found, &error), -1);
    assert_int_equal(error.code, NL_DATA);
    assert_true(found.capacity < 1 << 20);
    nl_buf_free(&found);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appears_when_complete), cmocka_unit_test(keeps_links),
        cmocka_unit_test(keeps_what_is_no_file), cmocka_unit_test(refuses_folders),
        cmocka_unit_test(reads_up_to_a_limit),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
