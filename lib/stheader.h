/*
 * stheader.h: the header of a safetensors file, scanned. Private to safetensors.c.
 */
#ifndef NL_STHEADER_H
#define NL_STHEADER_H

#include "safetensors.h"

/* Scans file->header; fills tensors (in the header's order, without `data`, `by_name` NULL) and metadata.
   Checks each entry by itself, not the layout. *complete: every entry gave usable offsets. False: a fault or
   no memory ended the scan. */
bool nl_st_scan_header(struct nl_safetensors *file, struct nl_faults *faults, bool *complete);

/* Memory that lives as long as the file, aligned to 8; NULL when out of memory. */
void *nl_st_alloc(struct nl_safetensors *file, size_t size);
void nl_st_free_all(struct nl_safetensors *file);

#endif
