/* Fuzz: a safetensors file, checked, opened, described in every form. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inspect.h"
#include "inspect_values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches each tensor's first and last byte: a range outside the mapping shows as a crash. */
static void touch(const struct nl_safetensors *file)
{
    volatile uint8_t byte = 0;
    for (size_t i = 0; i < file->count; i++) {
        const struct nl_tensor *tensor = &file->tensors[i];
        if (tensor->end > tensor->begin)
            byte = (uint8_t)(byte + tensor->data[0] + tensor->data[tensor->end - tensor->begin - 1]);
        if (nl_safetensors_find(file, tensor->name) != tensor)
            abort();
    }
}

static void describe(const char *path)
{
    struct nl_buf out = {0};
    struct nl_inspect_values values = {0};
    struct nl_checkpoint *checkpoint = nl_checkpoint_open(path, NULL);
    if (!checkpoint)
        abort(); /* the check found no fault */
    nl_inspect_table(checkpoint, true, &out);
    nl_inspect_tsv(checkpoint, &out);
    nl_inspect_json(checkpoint, path, "null", &out);
    nl_inspect_values_json(checkpoint, path, &values, &out);
    nl_inspect_metadata(checkpoint, true, &out);
    nl_inspect_offsets(checkpoint, false, &out);
    nl_buf_free(&out);
    nl_checkpoint_close(checkpoint);
}

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
    struct nl_safetensors *file;
    struct nl_error error;
    if (nl_safetensors_check(path, &faults, &file, &error) != 0)
        return 0;
    if ((file == NULL) != (faults.count > 0))
        abort();
    if (file) {
        touch(file);
        describe(path);
    } else if (nl_safetensors_open(path, NULL)) {
        abort(); /* one says it is faulty, the other not */
    }
    nl_safetensors_close(file);
    return 0;
}
