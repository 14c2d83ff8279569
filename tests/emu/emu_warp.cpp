#include "emu_warp.h"

#include <algorithm>

namespace emu
{

/* The lane that lane l reads, as the CUDA C++ guide defines it: outside of its section of `width` lanes a
   lane reads its own value, except that XOR may reach lower sections and INDEX wraps. */
static unsigned source_of(warp_op op, unsigned l, unsigned argument, unsigned width)
{
    unsigned first = l & ~(width - 1), last = first + width - 1, s = l;
    switch (op) {
    case SHUFFLE_INDEX:
        return first + (argument & (width - 1));
    case SHUFFLE_UP:
        s = l - argument;
        return argument <= l - first ? s : l;
    case SHUFFLE_DOWN:
        return argument <= last - l ? l + argument : l;
    default:
        s = l ^ argument;
        return s <= last ? s : l;
    }
}

static unsigned shuffle_lanes(warp_state &w, const warp_group &g)
{
    for (uint32_t rest = g.mask; rest; rest &= rest - 1) {
        unsigned l = unsigned(__builtin_ctz(rest)), s = source_of(g.op, l, w.argument[l], unsigned(g.width));
        if (s > 31 || !(g.mask >> s & 1))
            return l;
        w.result[l] = w.value[s];
    }
    return 32;
}

static uint64_t combine(warp_op op, uint64_t a, uint64_t b)
{
    uint32_t x = uint32_t(a), y = uint32_t(b);
    switch (op) {
    case REDUCE_ADD:
        return x + y;
    case REDUCE_MIN_SIGNED:
        return uint32_t(std::min(int32_t(x), int32_t(y)));
    case REDUCE_MAX_SIGNED:
        return uint32_t(std::max(int32_t(x), int32_t(y)));
    case REDUCE_MIN:
        return std::min(x, y);
    case REDUCE_MAX:
        return std::max(x, y);
    case REDUCE_AND:
        return x & y;
    case REDUCE_OR:
        return x | y;
    default:
        return x ^ y;
    }
}

unsigned warp_compute(warp_state &w, const warp_group &g)
{
    if (g.op <= SHUFFLE_XOR) {
        if (g.op == SHUFFLE_XOR && g.mask == ~0u && g.width == 32) { /* the usual case, quicker */
            for (unsigned l = 0; l < 32; l++)
                w.result[l] = w.value[(l ^ w.argument[l]) < 32 ? l ^ w.argument[l] : l];
            return 32;
        }
        return shuffle_lanes(w, g);
    }
    if (g.op == SYNC_WARP)
        return 32;
    uint64_t ballot = 0, result = 0;
    bool first = true;
    for (uint32_t rest = g.mask; rest; rest &= rest - 1) {
        unsigned l = unsigned(__builtin_ctz(rest));
        ballot |= uint64_t(w.value[l] != 0) << l;
        result = first ? w.value[l] : combine(g.op, result, w.value[l]);
        first = false;
    }
    if (g.op <= ALL)
        result = g.op == BALLOT ? ballot : g.op == ANY ? ballot != 0 : ballot == g.mask;
    for (uint32_t rest = g.mask; rest; rest &= rest - 1)
        w.result[__builtin_ctz(rest)] = result;
    return 32;
}

} // namespace emu
