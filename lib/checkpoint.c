#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "escape.h"

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), wanted = strlen(end);
    return length >= wanted && strcmp(name + length - wanted, end) == 0;
}

/* A folder without weights that we can read: says what it holds instead. */
static int no_weights(const char *folder, struct nl_error *error)
{
    static const char *const hints[][2] = {
        {".gguf", "st-import converts it"},
        {".bin", "a PyTorch checkpoint, to be converted to safetensors first"},
        {".pth", "a PyTorch checkpoint, to be converted to safetensors first"},
        {".safetensors", "give its own path to read it"},
    };
    const size_t n_hints = sizeof hints / sizeof *hints;
    char shown[NL_SHOWN] = "";
    size_t best = n_hints;
    DIR *directory = opendir(folder);
    if (!directory)
        return nl_fail_errno(error, "cannot read", folder);
    for (struct dirent *entry; (entry = readdir(directory));)
        for (size_t i = 0; i < best; i++)
            if (ends_with(entry->d_name, hints[i][0])) {
                best = i;
                nl_show(shown, entry->d_name);
            }
    closedir(directory);
    if (best < n_hints)
        return nl_fail(error, NL_NOT_FOUND,
                       "neither model.safetensors nor model.safetensors.index.json: %s (there is %s: %s)",
                       folder, shown, hints[best][1]);
    return nl_fail(error, NL_NOT_FOUND, "neither model.safetensors nor model.safetensors.index.json: %s",
                   folder);
}

/* The file in `folder` to begin with; NULL and *error. A dangling link counts as there, so that opening it
 * says so. */
static char *main_file(const char *folder, struct nl_error *error)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    for (int i = 0; i < 2; i++) {
        char *path = nl_path_join(folder, names[i], error);
        struct stat status;
        if (!path || lstat(path, &status) == 0)
            return path;
        free(path);
    }
    no_weights(folder, error);
    return NULL;
}

static int add_shards(struct nl_shards *shards, struct nl_error *error)
{
    const struct nl_index *index = shards->index;
    shards->paths = calloc(index->n_shards + 1, sizeof *shards->paths);
    if (!shards->paths)
        return nl_fail_memory(error, index->path);
    for (; shards->count < index->n_shards; shards->count++) {
        shards->paths[shards->count] = nl_index_shard_path(index, index->shards[shards->count], error);
        if (!shards->paths[shards->count])
            return -1;
    }
    return 0;
}

/* The file that a path stands for: itself, or the one to begin with in a folder. */
static char *first_file(const char *path, struct nl_error *error)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        nl_fail_errno(error, "cannot open", path);
        return NULL;
    }
    if (S_ISDIR(status.st_mode))
        return main_file(path, error);
    char *copy = strdup(path);
    if (!copy)
        nl_fail_memory(error, path);
    return copy;
}

int nl_shards_find(struct nl_shards *shards, const char *path, struct nl_faults *faults,
                   struct nl_error *error)
{
    *shards = (struct nl_shards){0};
    char *name = first_file(path, error);
    if (!name)
        return -1;
    if (ends_with(name, ".json")) {
        shards->index = faults ? nl_index_check(name, faults, error) : nl_index_open(name, error);
        free(name);
        if (shards->index && add_shards(shards, error) == 0)
            return 0;
        nl_shards_free(shards);
        return -1;
    }
    shards->paths = calloc(1, sizeof *shards->paths);
    if (!shards->paths) {
        free(name);
        return nl_fail_memory(error, path);
    }
    shards->paths[shards->count++] = name;
    return 0;
}

void nl_shards_free(struct nl_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++)
        free(shards->paths[i]);
    free(shards->paths);
    nl_index_close(shards->index);
    *shards = (struct nl_shards){0};
}

/* By name, those of one name in the order of their files' paths. */
static int by_name(const void *a, const void *b)
{
    const struct nl_tensor *x = *(const struct nl_tensor *const *)a, *y = *(const struct nl_tensor *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->file->path, y->file->path);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* All tensors of all files that are open, sorted. */
static bool collect(struct nl_checkpoint *checkpoint, struct nl_faults *faults)
{
    size_t total = 0;
    for (size_t i = 0; i < checkpoint->n_files; i++)
        total += checkpoint->files[i] ? checkpoint->files[i]->count : 0;
    checkpoint->tensors = calloc(total + 1, sizeof *checkpoint->tensors);
    if (!checkpoint->tensors)
        return nl_fault_memory(faults);
    for (size_t i = 0; i < checkpoint->n_files; i++)
        for (size_t k = 0; checkpoint->files[i] && k < checkpoint->files[i]->count; k++)
            checkpoint->tensors[checkpoint->count++] = &checkpoint->files[i]->tensors[k];
    qsort(checkpoint->tensors, checkpoint->count, sizeof *checkpoint->tensors, by_name);
    return true;
}

/* True when the shard of this name could be opened. */
static bool shard_is_open(const struct nl_checkpoint *checkpoint, const char *shard)
{
    for (size_t i = 0; i < checkpoint->n_files; i++)
        if (strcmp(checkpoint->shards.index->shards[i], shard) == 0)
            return checkpoint->files[i] != NULL;
    return false;
}

/* Checks the `count` tensors of one name (none: count 0) against the map's entry; *kept gets the one to keep.
 */
static bool match(const struct nl_checkpoint *checkpoint, const struct nl_index_entry *entry,
                  const struct nl_tensor **same, size_t count, struct nl_faults *faults,
                  const struct nl_tensor **kept)
{
    char shown[NL_SHOWN];
    *kept = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(file_name(same[i]->file->path), entry->shard) == 0)
            *kept = same[i];
    if (count > 1 && !nl_fault(faults, "tensor %s is in two shards: %s and %s", nl_show(shown, entry->tensor),
                               file_name(same[0]->file->path), file_name(same[1]->file->path)))
        return false;
    if (!*kept && shard_is_open(checkpoint, entry->shard))
        return nl_fault(faults, "tensor %s is not in its shard: %s", nl_show(shown, entry->tensor),
                        entry->shard);
    return true;
}

/* Walks the sorted tensors and the sorted map together; keeps the tensors that the map names. */
static bool join(struct nl_checkpoint *checkpoint, struct nl_faults *faults)
{
    const struct nl_index *index = checkpoint->shards.index;
    const struct nl_tensor **all = checkpoint->tensors, *kept;
    size_t at = 0, total = checkpoint->count;
    char shown[NL_SHOWN];
    checkpoint->count = 0;
    for (size_t i = 0; i <= index->count; i++) {
        const char *wanted = i < index->count ? index->entries[i].tensor : NULL;
        for (; at < total && (!wanted || strcmp(all[at]->name, wanted) < 0); at++)
            if (!faults->error && index->complete &&
                !nl_fault(faults, "tensor %s of shard %s is not in weight_map", nl_show(shown, all[at]->name),
                          file_name(all[at]->file->path)))
                return false;
        size_t begin = at;
        while (wanted && at < total && strcmp(all[at]->name, wanted) == 0)
            at++;
        if (wanted && !match(checkpoint, &index->entries[i], all + begin, at - begin, faults, &kept))
            return false;
        if (wanted && kept)
            all[checkpoint->count++] = kept;
    }
    return true;
}

/* A shard that the index names is not there. */
static bool shard_is_missing(const struct nl_checkpoint *checkpoint, size_t i)
{
    struct stat status;
    return checkpoint->shards.index && stat(checkpoint->shards.paths[i], &status) != 0 && errno == ENOENT;
}

static struct nl_safetensors *open_shard(const struct nl_checkpoint *checkpoint, size_t i,
                                         struct nl_error *error)
{
    const char *path = checkpoint->shards.paths[i];
    if (shard_is_missing(checkpoint, i)) {
        nl_fail(error, NL_NOT_FOUND, "shard is missing: %s (named by %s)", path,
                checkpoint->shards.index->path);
        return NULL;
    }
    return nl_safetensors_open(path, error);
}

static int open_all(struct nl_checkpoint *checkpoint, const char *path, struct nl_error *error)
{
    if (nl_shards_find(&checkpoint->shards, path, NULL, error) != 0)
        return -1;
    checkpoint->files = calloc(checkpoint->shards.count + 1, sizeof *checkpoint->files);
    if (!checkpoint->files)
        return nl_fail_memory(error, path);
    for (; checkpoint->n_files < checkpoint->shards.count; checkpoint->n_files++) {
        struct nl_safetensors *file = open_shard(checkpoint, checkpoint->n_files, error);
        if (!file)
            return -1;
        checkpoint->files[checkpoint->n_files] = file;
    }
    struct nl_index *index = checkpoint->shards.index;
    struct nl_faults faults = {.error = error, .path = index ? index->path : path};
    return collect(checkpoint, &faults) && (!index || join(checkpoint, &faults)) ? 0 : -1;
}

struct nl_checkpoint *nl_checkpoint_open(const char *path, struct nl_error *error)
{
    struct nl_error unused = {0};
    struct nl_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint) {
        nl_fail_memory(error, path);
        return NULL;
    }
    if (open_all(checkpoint, path, error ? error : &unused) == 0)
        return checkpoint;
    nl_checkpoint_close(checkpoint);
    return NULL;
}

void nl_checkpoint_close(struct nl_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (size_t i = 0; i < checkpoint->n_files; i++)
        nl_safetensors_close(checkpoint->files[i]);
    free(checkpoint->files);
    free(checkpoint->tensors);
    nl_shards_free(&checkpoint->shards);
    free(checkpoint);
}

static int compare_name(const void *name, const void *tensor)
{
    return strcmp(name, (*(const struct nl_tensor *const *)tensor)->name);
}

const struct nl_tensor *nl_checkpoint_find(const struct nl_checkpoint *checkpoint, const char *name)
{
    const struct nl_tensor *const *found =
        checkpoint->count
            ? bsearch(name, checkpoint->tensors, checkpoint->count, sizeof *checkpoint->tensors, compare_name)
            : NULL;
    return found ? *found : NULL;
}

/* Checks each file; a shard that is missing or unreadable is a fault of the checkpoint, a single file that is
 * one is the error. */
static int check_files(struct nl_checkpoint *checkpoint, struct nl_faults *faults, struct nl_error *error)
{
    const struct nl_index *index = checkpoint->shards.index;
    for (; checkpoint->n_files < checkpoint->shards.count; checkpoint->n_files++) {
        size_t i = checkpoint->n_files;
        struct nl_error why;
        if (shard_is_missing(checkpoint, i)) {
            faults->path = index->path;
            nl_fault(faults, "shard is missing: %s", index->shards[i]);
            continue;
        }
        if (nl_safetensors_check(checkpoint->shards.paths[i], faults, &checkpoint->files[i], &why) == 0)
            continue;
        if (!index || faults->no_memory || why.code == NL_RESOURCE)
            return nl_fail(error, why.code, "%s", why.message);
        faults->path = index->path;
        nl_fault(faults, "%s", why.message);
    }
    return 0;
}

static void check_total(const struct nl_checkpoint *checkpoint, struct nl_faults *faults)
{
    uint64_t stated, sum = 0;
    if (!nl_index_total_size(checkpoint->shards.index, &stated))
        return;
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        if (!checkpoint->files[i])
            return;
        sum += checkpoint->files[i]->data_size;
    }
    if (sum != stated)
        nl_fault(faults, "metadata.total_size is %llu, but the shards hold %llu bytes of tensors",
                 (unsigned long long)stated, (unsigned long long)sum);
}

static int check_all(struct nl_checkpoint *checkpoint, const char *path, struct nl_faults *faults,
                     struct nl_error *error)
{
    if (nl_shards_find(&checkpoint->shards, path, faults, error) != 0)
        return -1;
    checkpoint->files = calloc(checkpoint->shards.count + 1, sizeof *checkpoint->files);
    if (!checkpoint->files)
        return nl_fail_memory(error, path);
    if (check_files(checkpoint, faults, error) != 0)
        return -1;
    if (!checkpoint->shards.index)
        return 0;
    faults->path = checkpoint->shards.index->path;
    if (!collect(checkpoint, faults) || !join(checkpoint, faults))
        return nl_fail_memory(error, path);
    check_total(checkpoint, faults);
    return 0;
}

int nl_checkpoint_check(const char *path, struct nl_faults *faults, struct nl_error *error)
{
    struct nl_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint)
        return nl_fail_memory(error, path);
    int result = check_all(checkpoint, path, faults, error);
    nl_checkpoint_close(checkpoint);
    return result;
}
