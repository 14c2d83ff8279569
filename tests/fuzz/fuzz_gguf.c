/* Any bytes as a GGUF file, and whatever opens as one through the whole import, short of the disk. */
#include <stdlib.h>
#include <unistd.h>

#include "import_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void dequantize_all(const struct nl_gguf *file)
{
    float values[NL_GGML_MAX_BLOCK];
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct nl_gguf_tensor *tensor = &file->tensors[i];
        for (uint64_t block = 0;
             tensor->type->dequantize && block < tensor->elements / tensor->type->elements; block++)
            nl_dequantize(tensor->type, tensor->data + block * tensor->type->bytes, 1, values);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nl_gguf *file = nl_gguf_parse(data, size, "fuzz", NULL);
    if (!file)
        return 0;
    dequantize_all(file);
    struct nl_buf texts[5] = {{0}};
    struct nl_import_config config;
    nl_import_name(file, &texts[4], NULL);
    if (nl_import_config(file, &config, NULL) == 0) {
        nl_import_config_json(&config, NL_BF16, &texts[0]);
        nl_import_generation_json(&config, &texts[1]);
        nl_import_tokenizer(file, &config, &texts[2], &texts[3], NULL);
    }
    for (int i = 0; i < 5; i++)
        nl_buf_free(&texts[i]);
    nl_gguf_close(file);
    return 0;
}
