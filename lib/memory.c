#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t file_number(const char *path, uint64_t fallback)
{
    FILE *file = fopen(path, "re");
    uint64_t value = fallback;
    if (file) {
        if (fscanf(file, "%" SCNu64, &value) != 1) /* "max": no limit */
            value = fallback;
        fclose(file);
    }
    return value;
}

/* A line "NAME: N kB" of /proc/meminfo, in bytes. */
static uint64_t meminfo(const char *name)
{
    FILE *file = fopen("/proc/meminfo", "re");
    uint64_t value = UINT64_MAX;
    char line[200];
    while (file && fgets(line, sizeof line, file)) {
        uint64_t kilobytes;
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), ": %" SCNu64, &kilobytes) == 1)
            value = kilobytes * 1024;
    }
    if (file)
        fclose(file);
    return value;
}

/* A cgroup's limit less what is in use and cannot be given back: version 2, then version 1. */
static uint64_t cgroup_left(void)
{
    uint64_t limit = file_number("/sys/fs/cgroup/memory.max", UINT64_MAX);
    uint64_t used = file_number("/sys/fs/cgroup/memory.current", 0);
    if (limit == UINT64_MAX) {
        limit = file_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", UINT64_MAX);
        used = file_number("/sys/fs/cgroup/memory/memory.usage_in_bytes", 0);
    }
    if (limit >= UINT64_MAX / 4)
        return UINT64_MAX;
    /* The page cache counts as used, but is given back; the group's share is at most this. */
    uint64_t cached = meminfo("Cached");
    used = used > cached ? used - cached : 0;
    return used < limit ? limit - used : 0;
}

static uint64_t address_space_left(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    uint64_t pages = file_number("/proc/self/statm", 0), used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

uint64_t nl_memory_available(void)
{
    uint64_t available = meminfo("MemAvailable"), cgroup = cgroup_left(), space = address_space_left();
    available = cgroup < available ? cgroup : available;
    return space < available ? space : available;
}
