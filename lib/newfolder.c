#include "newfolder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

static bool is_known(const char *name, const char *const *known)
{
    for (; *known; known++)
        if (strcmp(name, *known) == 0)
            return true;
    return false;
}

/* Whether `path` may be the new folder's place. */
static int check_place(const char *path, bool replace, const char *const *known, struct nl_error *error)
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT    ? 0
               : errno == ENOTDIR ? nl_fail(error, NL_USAGE, "exists and is not a folder: %s", path)
                                  : nl_fail_errno(error, "cannot read", path);
    int result = 0;
    const struct dirent *entry;
    while (result == 0 && (entry = readdir(folder))) {
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!replace)
            result =
                nl_fail(error, NL_USAGE, "folder exists and is not empty (--force replaces it): %s", path);
        else if (!is_known(entry->d_name, known) ||
                 fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
                 !S_ISREG(status.st_mode))
            result = nl_fail(error, NL_USAGE, "folder is not replaced because of other things in it: %s/%s",
                             path, entry->d_name);
    }
    closedir(folder);
    return result;
}

/* Removes a folder of plain files. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder) {
        const struct dirent *entry;
        while ((entry = readdir(folder)))
            unlinkat(dirfd(folder), entry->d_name, 0);
        closedir(folder);
    }
    rmdir(path);
}

/* The path without slashes at its end, links resolved when it exists. */
static char *settle(const char *path)
{
    char *resolved = realpath(path, NULL);
    if (!resolved && (resolved = strdup(path)))
        for (size_t size = strlen(resolved); size > 1 && resolved[size - 1] == '/'; size--)
            resolved[size - 1] = '\0';
    return resolved;
}

int nl_newfolder_open(struct nl_newfolder *new, const char *path, bool replace, const char *const *known,
                      struct nl_error *error)
{
    *new = (struct nl_newfolder){.known = known, .replace = replace};
    if (!*path)
        return nl_fail(error, NL_USAGE, "the folder's name is empty");
    if (check_place(path, replace, known, error) != 0)
        return -1;
    struct nl_buf name = {0};
    new->path = settle(path);
    if (new->path)
        nl_buf_printf(&name, "%s.XXXXXX", new->path);
    if (!name.data) {
        nl_newfolder_close(new);
        return nl_fail_memory(error, path);
    }
    if (!mkdtemp(name.data)) {
        nl_fail_errno(error, "cannot create", path);
        nl_buf_free(&name);
        nl_newfolder_close(new);
        return -1;
    }
    new->temporary = name.data;
    mode_t mask = umask(0);
    umask(mask);
    chmod(new->temporary, 0777 & ~mask);
    return 0;
}

/* Puts the new folder where an old one is. */
static int exchange(struct nl_newfolder *new)
{
    if (renameat2(AT_FDCWD, new->temporary, AT_FDCWD, new->path, RENAME_EXCHANGE) == 0)
        return 0; /* close removes the old one under the temporary name */
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    remove_folder(new->path); /* a file system that cannot exchange: not in one step */
    return rename(new->temporary, new->path);
}

int nl_newfolder_commit(struct nl_newfolder *new, struct nl_error *error)
{
    if (rename(new->temporary, new->path) == 0) {
        free(new->temporary);
        new->temporary = NULL;
        return 0;
    }
    if (errno != ENOTEMPTY && errno != EEXIST)
        return nl_fail_errno(error, "cannot rename to", new->path);
    if (check_place(new->path, new->replace, new->known, error) != 0)
        return -1;
    return exchange(new) == 0 ? 0 : nl_fail_errno(error, "cannot replace", new->path);
}

void nl_newfolder_close(struct nl_newfolder *new)
{
    if (new->temporary)
        remove_folder(new->temporary);
    free(new->temporary);
    free(new->path);
    *new = (struct nl_newfolder){0};
}

int nl_make_folders(const char *path, struct nl_error *error)
{
    char *copy = strdup(path);
    if (!copy)
        return nl_fail_memory(error, path);
    int result = 0;
    for (char *p = copy + 1; result == 0; p++)
        if (*p == '/' || !*p) {
            char end = *p;
            *p = '\0';
            if (mkdir(copy, 0777) != 0 && errno != EEXIST)
                result = nl_fail_errno(error, "cannot create", copy);
            *p = end;
            if (!end)
                break;
        }
    free(copy);
    return result;
}
