/* Fuzz: a shard index, beside no shards. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stindex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[40];
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    struct nl_faults faults = {0};
    struct nl_index *index = nl_index_check(path, &faults, NULL), *strict = nl_index_open(path, NULL);
    if (!index || (strict != NULL) != (faults.count == 0))
        abort();
    for (size_t i = 0; i < index->count; i++) {
        const struct nl_index_entry *found = nl_index_find(index, index->entries[i].tensor);
        char *shard = nl_index_shard_path(index, index->entries[i].shard, NULL);
        if (found != &index->entries[i] || !shard)
            abort();
        free(shard);
    }
    nl_index_close(index);
    nl_index_close(strict);
    return 0;
}
