/*
 * emu_options.h: the environment (see emu.h), the source of randomness, and what is counted.
 */
#ifndef EMU_OPTIONS_H
#define EMU_OPTIONS_H

#include <cstddef>
#include <cstdint>

namespace emu
{

enum order_kind { FORWARD, REVERSE, RANDOM };

struct options {
    order_kind order;
    uint64_t memory;
    int capability;
    bool stats, keys;
    /* 0: never */
    uint64_t fail_malloc, fail_host, fail_launch, fail_kernel, lost;
};

struct counters {
    uint64_t calls, mallocs, hosts, launches, kernels, blocks, threads, switches;
};

/* Valid after the first options_load(), which every entry of the runtime makes; a wrong value ends the
 * process. */
extern options the_options;
extern counters the_counters;
void options_load();
void print_counters(); /* where NL_EMU_STATS asks for it */
void options_reset();  /* loads again and sets the counters to 0 */

/* Seeded by NL_EMU_ORDER. */
uint32_t random_bits();
/* A permutation of 0 .. n - 1 in the wanted order: element i of it. Set up once, cheap to ask. */
struct permutation {
    uint64_t n, factor, offset;
};
permutation permutation_make(uint64_t n);
uint64_t permutation_at(const permutation &, uint64_t i);

} // namespace emu

#endif
