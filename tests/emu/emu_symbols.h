/*
 * emu_symbols.h: what the symbol table of this program or library says about a kernel: its name, for
 * messages, and its static shared arrays, which are the writable static variables of the function
 * (_ZZ<function>E...).
 */
#ifndef EMU_SYMBOLS_H
#define EMU_SYMBOLS_H

#include <cstddef>
#include <string>
#include <vector>

namespace emu
{

struct shared_array {
    void *address;
    size_t size;
};

struct kernel_info {
    std::string name;
    std::vector<shared_array> shared;
    size_t shared_size;   /* of the arrays together */
    size_t dynamic_limit; /* as cudaFuncSetAttribute set it */
};

/* Looked up once for each kernel; stays. Without a symbol table: a name made of the address, no arrays. */
kernel_info &kernel_info_of(const void *kernel);

} // namespace emu

#endif
