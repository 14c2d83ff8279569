#include "emu_memory.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

#include "emu.h"
#include "emu_fiber.h"
#include "emu_memory_map.h"
#include "emu_options.h"

#if defined(EMU_ASAN)
extern "C" void __asan_poison_memory_region(const volatile void *, size_t);
extern "C" void __asan_unpoison_memory_region(const volatile void *, size_t);
#else
static void __asan_poison_memory_region(const volatile void *, size_t)
{
}
static void __asan_unpoison_memory_region(const volatile void *, size_t)
{
}
#endif

namespace emu
{

enum : size_t {
    PAGE = 4096,
    ALIGNMENT = 256,
    SLACK_BYTE = 0xa5,
    MAX_SHARED = 256 << 10,
};
static const size_t ADDRESSES = size_t(256) << 30, FILL_ALL = 256 << 20, FILL_ENDS = 64 << 20;

static char *arena, *arena_next; /* [ADDRESSES], handed out once */
static std::map<char *, device_allocation> allocations;
static std::map<char *, size_t> pinned;
static uint64_t used;
static unsigned n_open;
static bool hidden;
static char *shared_end;
static size_t shared_size;

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static void *map_none(size_t size)
{
    void *p = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("emu: mmap");
        abort();
    }
    return p;
}

/*
 * Access is switched by a protection key of the processor where it has them (nanoseconds), else by mprotect.
 */
static int key = -1;

static void choose_key()
{
#if defined(PKEY_DISABLE_ACCESS)
    if (the_options.keys)
        key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
#endif
}

static void protect(const device_allocation &a, int protection)
{
#if defined(PKEY_DISABLE_ACCESS)
    int result = key < 0 ? mprotect(a.mapped, a.mapped_size, protection)
                         : pkey_mprotect(a.mapped, a.mapped_size, PROT_READ | PROT_WRITE, key);
#else
    int result = mprotect(a.mapped, a.mapped_size, protection);
#endif
    if (result != 0) {
        perror("emu: mprotect");
        abort();
    }
}

static void protect_all(bool open)
{
#if defined(PKEY_DISABLE_ACCESS)
    if (key >= 0) {
        pkey_set(key, open ? 0 : PKEY_DISABLE_ACCESS);
        return;
    }
#endif
    for (const auto &entry : allocations)
        protect(entry.second, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void fill(char *address, size_t size)
{
    if (size <= FILL_ALL) {
        memset(address, 0xff, size);
    } else { /* the whole would take more memory than the machine may have */
        memset(address, 0xff, FILL_ENDS);
        memset(address + size - FILL_ENDS, 0xff, FILL_ENDS);
    }
}

void *device_allocate(size_t size)
{
    if (size > the_options.memory - used)
        return nullptr;
    if (!arena) {
        arena = arena_next = static_cast<char *>(map_none(ADDRESSES));
        choose_key();
    }
    size_t usable = round_up(size ? size : 1, ALIGNMENT), mapped_size = round_up(usable, PAGE);
    if (mapped_size + PAGE > size_t(arena + ADDRESSES - arena_next))
        return nullptr;
    device_allocation a = {arena_next, mapped_size, arena_next + mapped_size - usable, size, usable};
    arena_next += mapped_size + PAGE;
    device_open();
    protect(a, PROT_READ | PROT_WRITE);
    fill(a.address, size);
    memset(a.address + size, SLACK_BYTE, usable - size);
    __asan_poison_memory_region(a.mapped, size_t(a.address - a.mapped));
    __asan_poison_memory_region(a.address + size, usable - size);
    allocations[a.address] = a;
    device_close();
    used += size;
    return a.address;
}

static void give_back(const device_allocation &a)
{
    __asan_unpoison_memory_region(a.mapped, a.mapped_size);
    if (mmap(a.mapped, a.mapped_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED) {
        perror("emu: mmap");
        abort();
    }
}

bool device_free(void *address)
{
    auto found = allocations.find(static_cast<char *>(address));
    if (found == allocations.end())
        return false;
    used -= found->second.size;
    give_back(found->second);
    allocations.erase(found);
    return true;
}

uint64_t device_used()
{
    return used;
}

void device_open()
{
    if (n_open++ == 0)
        protect_all(true);
}

void device_close()
{
    if (--n_open == 0)
        protect_all(false);
}

void device_hide()
{
    hidden = key >= 0;
    if (hidden)
        protect_all(false);
}

void device_show()
{
    if (hidden)
        protect_all(true);
    hidden = false;
}

bool device_hidden()
{
    return hidden;
}

/* Reads what is poisoned for all others. */
#if defined(EMU_ASAN)
__attribute__((no_sanitize("address")))
#endif
static bool
slack_is_whole(const device_allocation &a)
{
    for (const volatile char *p = a.address + a.size; p < a.address + a.usable; p++)
        if (static_cast<unsigned char>(*p) != SLACK_BYTE)
            return false;
    return true;
}

void device_check(const char *after)
{
    for (const auto &entry : allocations) {
        const device_allocation &a = entry.second;
        if (a.usable != a.size && !slack_is_whole(a))
            fail({nullptr, 0}, "write past the end of an allocation of %zu bytes at %p: by %s", a.size,
                 static_cast<void *>(a.address), after);
    }
}

bool find_near(const void *address, device_allocation *a)
{
    auto next = allocations.upper_bound(static_cast<char *>(const_cast<void *>(address)));
    if (next == allocations.begin())
        return false;
    *a = (--next)->second;
    return true;
}

bool in_arena(const void *address)
{
    return arena && address >= arena && address < arena + ADDRESSES;
}

bool in_device(const void *address, size_t size)
{
    device_allocation a;
    if (!find_near(address, &a))
        return false;
    size_t offset = size_t(static_cast<const char *>(address) - a.address);
    return offset <= a.size && size <= a.size - offset;
}

void pinned_add(void *address, size_t size)
{
    pinned[static_cast<char *>(address)] = size;
}

bool pinned_remove(void *address, size_t *size)
{
    auto found = pinned.find(static_cast<char *>(address));
    if (found == pinned.end())
        return false;
    *size = found->second;
    pinned.erase(found);
    return true;
}

memory_kind kind_of(const void *address)
{
    if (in_device(address, 1))
        return DEVICE_MEMORY;
    char *p = static_cast<char *>(const_cast<void *>(address));
    auto next = pinned.upper_bound(p);
    if (next == pinned.begin())
        return HOST_MEMORY;
    --next;
    return size_t(p - next->first) < next->second ? PINNED_MEMORY : HOST_MEMORY;
}

void *guarded_shared(size_t size)
{
    if (!shared_end) {
        char *memory = static_cast<char *>(map_none(MAX_SHARED + PAGE));
        if (mprotect(memory, MAX_SHARED, PROT_READ | PROT_WRITE) != 0)
            abort();
        shared_end = memory + MAX_SHARED;
    }
    char *address = shared_end - round_up(size, 16);
    if (size != shared_size) {
        __asan_poison_memory_region(shared_end - MAX_SHARED, MAX_SHARED);
        __asan_unpoison_memory_region(address, size);
        shared_size = size;
    }
    memset(address, 0xff, size);
    return address;
}

bool past_shared(const void *address, size_t *size)
{
    *size = shared_size;
    return shared_end && address >= shared_end && address < shared_end + PAGE;
}

void memory_reset()
{
    for (const auto &entry : allocations)
        give_back(entry.second);
    allocations.clear();
    pinned.clear();
    used = 0;
    n_open = 0;
    hidden = false;
}

void memory_free()
{
    memory_reset();
    if (arena)
        munmap(arena, ADDRESSES);
    if (shared_end) {
        __asan_unpoison_memory_region(shared_end - MAX_SHARED, MAX_SHARED);
        munmap(shared_end - MAX_SHARED, MAX_SHARED + PAGE);
    }
#if defined(PKEY_DISABLE_ACCESS)
    if (key >= 0)
        pkey_free(key);
#endif
    arena = shared_end = nullptr;
    shared_size = 0;
    key = -1;
}

} // namespace emu
