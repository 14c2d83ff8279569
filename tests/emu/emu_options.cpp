#include "emu_options.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emu
{

options the_options;
counters the_counters;
static bool loaded;
static uint64_t random_state;

[[noreturn]] static void refuse(const char *variable, const char *value)
{
    fprintf(stderr, "emu: bad value of %s: %s\n", variable, value);
    abort();
}

/* The number that is all of text[0 .. length). */
static uint64_t number(const char *variable, const char *text, size_t length)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (length == 0 || end != text + length || text[0] == '-')
        refuse(variable, text);
    return value;
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *value = getenv(variable);
    return value ? number(variable, value, strlen(value)) : otherwise;
}

static void load_order()
{
    const char *value = getenv("NL_EMU_ORDER");
    the_options.order = FORWARD;
    random_state = 0;
    if (!value || strcmp(value, "fwd") == 0)
        return;
    if (strcmp(value, "rev") == 0) {
        the_options.order = REVERSE;
    } else if (strncmp(value, "rand", 4) == 0) {
        the_options.order = RANDOM;
        random_state = number("NL_EMU_ORDER", value + 4, strlen(value + 4));
    } else {
        refuse("NL_EMU_ORDER", value);
    }
}

static void load_faults()
{
    static const struct {
        const char *name;
        uint64_t options::*member;
    } faults[] = {
        {"malloc", &options::fail_malloc}, {"host", &options::fail_host}, {"launch", &options::fail_launch},
        {"kernel", &options::fail_kernel}, {"lost", &options::lost},
    };
    const char *value = getenv("NL_EMU_FAIL");
    for (const char *p = value; p && *p;) {
        size_t item = strcspn(p, ","), name = strcspn(p, ":,");
        bool known = false;
        for (const auto &fault : faults) {
            if (name < item && strlen(fault.name) == name && memcmp(p, fault.name, name) == 0) {
                the_options.*fault.member = number("NL_EMU_FAIL", p + name + 1, item - name - 1);
                known = true;
            }
        }
        if (!known)
            refuse("NL_EMU_FAIL", value);
        p += item + (p[item] == ',');
    }
}

void print_counters()
{
    const counters &c = the_counters;
    if (the_options.stats)
        fprintf(stderr,
                "emu: %llu runtime calls, %llu launches, %llu kernels, %llu blocks, %llu threads, %llu "
                "switches\n",
                (unsigned long long)c.calls, (unsigned long long)c.launches, (unsigned long long)c.kernels,
                (unsigned long long)c.blocks, (unsigned long long)c.threads, (unsigned long long)c.switches);
}

void options_reset()
{
    loaded = true;
    the_options = options();
    the_counters = counters();
    load_order();
    load_faults();
    the_options.memory = number_of("NL_EMU_MEMORY", uint64_t(16) << 30);
    the_options.capability = int(number_of("NL_EMU_CC", 90));
    the_options.keys = number_of("NL_EMU_KEYS", 1) != 0;
    the_options.stats = getenv("NL_EMU_STATS") != nullptr;
}

void options_load()
{
    if (loaded)
        return;
    options_reset();
}

uint32_t random_bits()
{
    /* splitmix64: any seed will do, 0 too */
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return uint32_t(z >> 32);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

permutation permutation_make(uint64_t n)
{
    if (the_options.order == FORWARD || n < 2)
        return {n, 1, 0};
    if (the_options.order == REVERSE)
        return {n, n - 1, n - 1}; /* n - 1 - i, modulo n */
    uint64_t factor;
    do
        factor = random_bits() % n;
    while (common_divisor(factor, n) != 1);
    return {n, factor, random_bits() % n};
}

uint64_t permutation_at(const permutation &p, uint64_t i)
{
    return uint64_t(((unsigned __int128)i * p.factor + p.offset) % p.n);
}

} // namespace emu
