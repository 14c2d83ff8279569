#include "modelpath.h"

#include <stdlib.h>

#include "escape.h"
#include "file.h"

/* A variable that is set to something; an empty one counts as unset (huggingface_hub: an empty path). */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Appends a path, '~' at its begin replaced by the home. */
static int add_path(struct nl_buf *out, const char *path, struct nl_error *error)
{
    if (path[0] == '~' && (path[1] == '/' || !path[1])) {
        const char *home = variable("HOME");
        if (!home)
            return nl_fail(error, NL_NOT_FOUND, "HOME is not set: %s", path);
        nl_buf_puts(out, home);
        path++;
    }
    nl_buf_puts(out, path);
    return 0;
}

/* Appends ${name:-fallback} and the rest. */
static int add_folder(struct nl_buf *out, const char *name, const char *fallback, const char *rest,
                      struct nl_error *error)
{
    const char *value = variable(name);
    if (add_path(out, value ? value : fallback, error) != 0)
        return -1;
    nl_buf_puts(out, rest);
    return nl_buf_check(out, "path", error);
}

int nl_cache_folder(struct nl_buf *out, struct nl_error *error)
{
    return add_folder(out, "XDG_CACHE_HOME", "~/.cache", "/nanollm", error);
}

int nl_data_folder(struct nl_buf *out, struct nl_error *error)
{
    return add_folder(out, "XDG_DATA_HOME", "~/.local/share", "/nanollm", error);
}

/* Hugging Face's hub folder: the constants of huggingface_hub. */
static int add_hub(struct nl_buf *out, struct nl_error *error)
{
    if (variable("HF_HUB_CACHE"))
        return add_folder(out, "HF_HUB_CACHE", "", "", error);
    if (variable("HUGGINGFACE_HUB_CACHE"))
        return add_folder(out, "HUGGINGFACE_HUB_CACHE", "", "", error);
    if (variable("HF_HOME"))
        return add_folder(out, "HF_HOME", "", "/hub", error);
    return add_folder(out, "XDG_CACHE_HOME", "~/.cache", "/huggingface/hub", error);
}

/* ORG/NAME[@REVISION], taken apart. */
struct repository {
    char name[200];     /* ORG/NAME, or NAME alone as old repositories have it */
    char revision[200]; /* "main" when none was given */
    bool given;         /* a revision was */
};

static bool is_name_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_' || c == '.';
}

/* False when `model` cannot be the name of a repository. Names are ASCII letters, digits, '-', '_', '.', with
 * one slash. */
static bool parse_repository(const char *model, struct repository *repository)
{
    const char *at = strchr(model, '@'), *end = at ? at : model + strlen(model);
    size_t length = (size_t)(end - model), slashes = 0;
    if (length == 0 || length >= sizeof repository->name)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool slash = model[i] == '/';
        if (slash ? ++slashes > 1 || i == 0 || i + 1 == length : !is_name_byte(model[i]))
            return false;
    }
    memcpy(repository->name, model, length);
    repository->name[length] = '\0';
    if (strstr(repository->name, "..") || strstr(repository->name, "--"))
        return false;
    repository->given = at != NULL;
    const char *revision = at ? at + 1 : "main";
    if (!*revision || strlen(revision) >= sizeof repository->revision || revision[0] == '/' ||
        strstr(revision, ".."))
        return false;
    memcpy(repository->revision, revision, strlen(revision) + 1);
    return true;
}

static void add_repository_folder(struct nl_buf *out, const char *name)
{
    nl_buf_puts(out, "/models--");
    for (; *name; name++)
        if (*name == '/')
            nl_buf_puts(out, "--");
        else
            nl_buf_putc(out, *name);
}

static int missing(const struct repository *repository, const char *where, struct nl_error *error)
{
    return nl_fail(
        error, NL_NOT_FOUND,
        "no such folder, nor a model in the local cache: %s%s%s in %s; to fetch it: hf download %s%s%s",
        repository->name, repository->given ? "@" : "", repository->given ? repository->revision : "", where,
        repository->name, repository->given ? " --revision " : "",
        repository->given ? repository->revision : "");
}

/* 40 hexadecimal digits: a commit needs no ref. */
static bool is_commit(const char *revision)
{
    size_t digits = strspn(revision, "0123456789abcdef");
    return digits == 40 && !revision[digits];
}

/* Reads refs/REVISION of the repository's folder: a commit, perhaps with a newline. 1, 0 when there is none,
 * -1 and *error. */
static int read_ref(const char *folder, const char *revision, char commit[100], struct nl_error *error)
{
    struct nl_buf path = {0}, text = {0};
    nl_buf_printf(&path, "%s/refs/%s", folder, revision);
    int result = nl_buf_check(&path, "path", error);
    if (result == 0 && !nl_path_exists(path.data)) {
        nl_buf_free(&path);
        return 0;
    }
    if (result == 0)
        result = nl_file_read(path.data, 1000, &text, error);
    if (result == 0) {
        size_t length = strcspn(text.data, " \t\r\n");
        if (length == 0 || length >= 100 || memchr(text.data, '/', length) || text.data[0] == '.') {
            result = nl_fail(error, NL_DATA, "not a commit in a ref of the cache: %s", path.data);
        } else {
            memcpy(commit, text.data, length);
            commit[length] = '\0';
            result = 1;
        }
    }
    nl_buf_free(&path);
    nl_buf_free(&text);
    return result;
}

static int find_snapshot(const struct repository *repository, struct nl_buf *folder, struct nl_error *error)
{
    char commit[100];
    size_t hub = folder->size;
    add_repository_folder(folder, repository->name);
    if (nl_buf_check(folder, "path", error) != 0)
        return -1;
    int found = read_ref(folder->data, repository->revision, commit, error);
    if (found < 0)
        return -1;
    if (found == 0 && is_commit(repository->revision)) {
        memcpy(commit, repository->revision, 41);
        found = 1;
    }
    if (found) {
        nl_buf_printf(folder, "/snapshots/%s", commit);
        if (nl_buf_check(folder, "path", error) != 0)
            return -1;
        if (nl_path_exists(folder->data))
            return 0;
    }
    folder->data[hub] = '\0';
    return missing(repository, folder->data, error);
}

static int default_model(struct nl_buf *out, struct nl_error *error)
{
    if (add_folder(out, "XDG_DATA_HOME", "~/.local/share", "/nanollm/default", error) != 0)
        return -1;
    if (nl_path_exists(out->data))
        return 0;
    return nl_fail(error, NL_NOT_FOUND, "no model given and no default model: %s (use -m, or NL_MODEL)",
                   out->data);
}

static int find_model(const char *model, struct nl_buf *found, struct nl_error *error)
{
    struct repository repository;
    if (!model)
        return default_model(found, error);
    if (!*model)
        return nl_fail(error, NL_NOT_FOUND, "the model's name is empty");
    if (add_path(found, model, error) != 0 || nl_buf_check(found, "path", error) != 0)
        return -1;
    if (nl_path_exists(found->data))
        return 0;
    char shown[NL_SHOWN];
    if (strchr("/.~", model[0]) || !parse_repository(model, &repository))
        return nl_fail(error, NL_NOT_FOUND, "no such model folder: %s", nl_show(shown, found->data));
    nl_buf_clear(found);
    return add_hub(found, error) != 0 ? -1 : find_snapshot(&repository, found, error);
}

int nl_model_path(const char *model, struct nl_buf *out, struct nl_error *error)
{
    struct nl_buf found = {0};
    int result = find_model(model ? model : variable("NL_MODEL"), &found, error);
    if (result == 0) {
        nl_buf_add(out, found.data, found.size);
        result = nl_buf_check(out, "path", error);
    }
    nl_buf_free(&found);
    return result;
}
