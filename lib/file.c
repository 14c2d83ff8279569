#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_regular(const char *path, off_t *size, struct nl_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return nl_fail_errno(error, "cannot open", path);
    struct stat status;
    if (fstat(fd, &status) != 0) {
        nl_fail_errno(error, "cannot stat", path);
    } else if (!S_ISREG(status.st_mode)) {
        nl_fail(error, NL_DATA, "not a regular file: %s", path);
    } else {
        *size = status.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

int nl_map_open(struct nl_map *map, const char *path, struct nl_error *error)
{
    *map = (struct nl_map){0};
    off_t size;
    int fd = open_regular(path, &size, error);
    if (fd < 0)
        return -1;
    if (size > 0) {
        void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            nl_fail_errno(error, "cannot map", path);
            close(fd);
            return -1;
        }
        *map = (struct nl_map){data, (size_t)size};
    }
    close(fd);
    return 0;
}

void nl_map_close(struct nl_map *map)
{
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->size);
    *map = (struct nl_map){0};
}

int nl_file_read(const char *path, size_t limit, struct nl_buf *out, struct nl_error *error)
{
    off_t size;
    int fd = open_regular(path, &size, error);
    if (fd < 0)
        return -1;
    int result = 0;
    size_t total = 0;
    if ((uint64_t)size > limit) { /* before memory is asked for */
        close(fd);
        return nl_fail(error, NL_DATA, "file larger than %zu bytes: %s", limit, path);
    }
    for (;;) {
        size_t step = 1 << 16;
        if (total < (size_t)size)
            step = (size_t)size - total + 1;
        char *end = nl_buf_reserve(out, step);
        if (!end) {
            result = nl_fail_memory(error, path);
            break;
        }
        ssize_t got = read(fd, end, step);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            result = nl_fail_errno(error, "cannot read", path);
        if (got <= 0)
            break;
        total += (size_t)got;
        out->size += (size_t)got;
        if (total > limit) {
            result = nl_fail(error, NL_DATA, "file larger than %zu bytes: %s", limit, path);
            break;
        }
    }
    if (result == 0)
        nl_buf_add(out, "", 0); /* terminates it */
    close(fd);
    return result;
}

char *nl_path_join(const char *folder, const char *name, struct nl_error *error)
{
    struct nl_buf path = {0};
    size_t length = strlen(folder);
    nl_buf_printf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    if (nl_buf_check(&path, "path", error) != 0) {
        nl_buf_free(&path);
        return NULL;
    }
    return path.data;
}

bool nl_path_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

bool nl_path_taken(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* What is at `path` already: sets the place to write, links followed, and the new file's mode. -1 and *error.
 */
static int look_at_place(struct nl_outfile *file, const char *path, mode_t *mode, struct nl_error *error)
{
    struct stat status;
    mode_t mask = umask(0);
    umask(mask);
    *mode = S_IFREG | (0666 & ~mask);
    if (!*path)
        return nl_fail(error, NL_USAGE, "the output file's name is empty");
    bool there = nl_path_taken(path);
    if (there && stat(path, &status) != 0)
        return nl_fail_errno(error, "cannot create", path);
    if (there)
        *mode = status.st_mode;
    if (there && S_ISDIR(status.st_mode))
        return nl_fail(error, NL_IO, "cannot create: %s: %s", path, strerror(EISDIR));
    file->path = there && S_ISREG(status.st_mode) ? realpath(path, NULL) : strdup(path);
    return file->path ? 0 : nl_fail_memory(error, path);
}

int nl_outfile_open(struct nl_outfile *file, const char *path, struct nl_error *error)
{
    *file = (struct nl_outfile){.fd = -1};
    mode_t mode;
    if (look_at_place(file, path, &mode, error) != 0)
        return -1;
    struct nl_buf name = {0};
    if (S_ISREG(mode)) {
        nl_buf_printf(&name, "%s.XXXXXX", file->path);
        if (nl_buf_check(&name, path, error) != 0) {
            nl_outfile_abort(file);
            return -1;
        }
        file->fd = mkstemp(name.data);
    } else {
        file->fd = open(path, O_WRONLY | O_CLOEXEC);
    }
    if (file->fd < 0) {
        nl_fail_errno(error, "cannot create", path);
        nl_buf_free(&name);
        nl_outfile_abort(file);
        return -1;
    }
    file->temporary = name.data;
    if (file->temporary)
        fchmod(file->fd, mode & 0777);
    return 0;
}

int nl_outfile_commit(struct nl_outfile *file, struct nl_error *error)
{
    int fd = file->fd;
    file->fd = -1;
    int result = 0;
    if (close(fd) != 0)
        result = nl_fail_io(error, "cannot write", file->path);
    else if (file->temporary && rename(file->temporary, file->path) != 0)
        result = nl_fail_errno(error, "cannot rename to", file->path);
    else {
        free(file->temporary);
        file->temporary = NULL;
    }
    nl_outfile_abort(file);
    return result;
}

void nl_outfile_abort(struct nl_outfile *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct nl_outfile){.fd = -1};
}

void nl_set_error_io(struct nl_error *error, const char *what, const char *name)
{
    nl_set_error_errno(error, what, name);
    if (error)
        error->code = NL_IO;
}

int nl_write_all(int fd, const void *bytes, size_t size, const char *name, struct nl_error *error)
{
    const char *rest = bytes;
    while (size > 0) {
        ssize_t wrote = write(fd, rest, size);
        if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, -1);
            continue;
        }
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return nl_fail_io(error, "cannot write", name);
        rest += wrote;
        size -= (size_t)wrote;
    }
    return 0;
}
