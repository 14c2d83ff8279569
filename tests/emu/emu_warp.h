/*
 * emu_warp.h: the lanes of a warp that meet in an operation, and what the operation gives them.
 */
#ifndef EMU_WARP_H
#define EMU_WARP_H

#include "emu.h"

namespace emu
{

/* Lanes that wait for each other. Masks of two groups may overlap: lanes of one may come to the other later.
 */
struct warp_group {
    uint32_t mask, arrived;
    warp_op op;
    int width;
    place where;
    char *token; /* for TSan, one of the warp's */
};

struct warp_state {
    uint32_t exists, runnable, left; /* lanes; `left`: have returned from the kernel */
    uint32_t waited;                 /* for the kernel before */
    unsigned n_groups;
    warp_group groups[32];
    uint64_t value[32], result[32];
    uint32_t argument[32];
    unsigned epoch;
    char token[2];
};

static inline void warp_reset(warp_state &w, uint32_t lanes)
{
    w.exists = lanes;
    w.runnable = w.left = w.waited = 0;
    w.n_groups = w.epoch = 0;
}

/* Fills the results of the lanes in the group's mask from their values and arguments. Gives a lane whose
   shuffle reads outside of the mask, or 32. */
unsigned warp_compute(warp_state &, const warp_group &);

} // namespace emu

#endif
