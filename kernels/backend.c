/* backend.c: chooses a backend; those in shared objects are loaded when they are asked for. */
#include "backend.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef NL_LIBRARY_DIR
#define NL_LIBRARY_DIR "/usr/local/lib/nanollm"
#endif

void nl_backend_close(struct nl_backend *backend)
{
    if (!backend)
        return;
    void *library = backend->library;
    backend->calls->close(backend);
    if (library)
        dlclose(library);
}

const char *nl_backend_name(const struct nl_backend *backend)
{
    return backend->name;
}

bool nl_backend_rounds(const struct nl_backend *backend)
{
    return backend->rounds;
}

int nl_backend_load(struct nl_backend *backend, const struct nl_plan *plan, uint64_t n_blocks,
                    struct nl_error *error)
{
    return backend->calls->load(backend, plan, n_blocks, error);
}

void nl_backend_release_block(struct nl_backend *backend, uint32_t block)
{
    backend->calls->release_block(backend, block);
}

bool nl_backend_available(struct nl_backend *backend, uint64_t *bytes)
{
    if (!backend->calls->available)
        return false;
    *bytes = backend->calls->available(backend);
    return true;
}

int nl_backend_run(struct nl_backend *backend, const struct nl_step *step, const struct nl_observer *observer,
                   struct nl_error *error)
{
    return backend->calls->run(backend, step, observer, error);
}

/* Opens NAME in $NL_BACKEND_DIR, else in the library directory, else beside the executable or in ../ of it.
 */
static void *open_library(const char *name, struct nl_error *error)
{
    char path[PATH_MAX + 64], program[PATH_MAX];
    const char *directory = getenv("NL_BACKEND_DIR");
    const char *places[] = {directory, NL_LIBRARY_DIR, program, program};
    const char *forms[] = {"%s/%s", "%s/%s", "%s/%s", "%s/../%s"};
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = directory && *directory ? 0 : 1; i < (directory && *directory ? 1 : 4); i++) {
        snprintf(path, sizeof path, i == 3 ? forms[3] : forms[0], places[i], name);
        if (access(path, F_OK) != 0)
            continue;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            nl_fail(error, NL_RESOURCE, "cannot load the backend: %s", dlerror());
        return library;
    }
    nl_fail(error, NL_RESOURCE, "no such backend is installed: %s", name);
    return NULL;
}

static struct nl_backend *open_shared(const char *name, unsigned device, struct nl_error *error)
{
    void *library = open_library(name, error);
    if (!library)
        return NULL;
    const struct nl_backend_entry *entry = dlsym(library, NL_BACKEND_SYMBOL);
    struct nl_backend *backend = NULL;
    if (!entry || entry->abi != NL_BACKEND_ABI)
        nl_fail(error, NL_RESOURCE, "the backend is of another version: %s", name);
    else
        backend = entry->open(device, error);
    if (backend)
        backend->library = library;
    else
        dlclose(library);
    return backend;
}

/* Asks the driver, which is there only where a device is: no cost elsewhere. It stays, so that the backend
   finds it set up: that takes a good part of a second. */
static bool has_cuda_device(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!driver)
        return false;
    int count = 0, (*init)(unsigned), (*get_count)(int *);
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&get_count = dlsym(driver, "cuDeviceGetCount");
    bool there = init && get_count && init(0) == 0 && get_count(&count) == 0 && count > 0;
    dlclose(driver);
    return there;
}

/* "NAME" or "NAME:N"; false when it is something else. */
static bool parse_device(const char *text, const char *name, unsigned *device)
{
    size_t length = strlen(name);
    char *end;
    *device = 0;
    if (strncmp(text, name, length) != 0)
        return false;
    if (text[length] == '\0')
        return true;
    if (text[length] != ':' || text[length + 1] < '0' || text[length + 1] > '9' || strlen(text + length) > 5)
        return false;
    *device = (unsigned)strtoul(text + length + 1, &end, 10);
    return *end == '\0';
}

struct nl_backend *nl_backend_open(const char *device, const char *isa, unsigned threads,
                                   struct nl_error *error)
{
    unsigned number;
    if (parse_device(device, "cuda", &number)) {
        if (has_cuda_device())
            return open_shared("libnl_cuda.so", number, error);
        nl_fail(error, NL_RESOURCE, "no device: %s (no CUDA driver or no GPU)", device);
        return NULL;
    }
    if (parse_device(device, "emu", &number))
        return open_shared("libnl_cuda_emu.so", number, error);
    if (strcmp(device, "auto") == 0) {
        struct nl_backend *backend = has_cuda_device() ? open_shared("libnl_cuda.so", 0, error) : NULL;
        return backend ? backend : nl_cpu_open(isa, threads, error);
    }
    if (strcmp(device, "cpu") == 0)
        return nl_cpu_open(isa, threads, error);
    nl_fail(error, NL_USAGE, "unknown device (auto, cpu, cuda, cuda:N): %s", device);
    return NULL;
}
