#include "emu_symbols.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <map>
#include <memory>

namespace emu
{

enum { DEFAULT_DYNAMIC_LIMIT = 48 << 10 };

struct symbol {
    std::string name;
    char *address;
    size_t size;
    bool function;
};

/* The functions and writable variables of the file that was loaded at `base`. */
static std::vector<symbol> read_symbols(const char *path, char *base)
{
    std::vector<symbol> symbols;
    FILE *file = fopen(path, "rb");
    if (!file)
        return symbols;
    std::vector<char> bytes;
    char chunk[1 << 16];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        bytes.insert(bytes.end(), chunk, chunk + n);
    fclose(file);
    /* The file was good enough for the loader a moment ago: no checks beyond that of its kind. */
    const auto *header = reinterpret_cast<const ElfW(Ehdr) *>(bytes.data());
    if (bytes.size() < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return symbols;
    const auto *sections = reinterpret_cast<const ElfW(Shdr) *>(bytes.data() + header->e_shoff);
    for (unsigned s = 0; s < header->e_shnum; s++) {
        if (sections[s].sh_type != SHT_SYMTAB)
            continue;
        const auto *table = reinterpret_cast<const ElfW(Sym) *>(bytes.data() + sections[s].sh_offset);
        const char *names = bytes.data() + sections[sections[s].sh_link].sh_offset;
        for (size_t i = 0; i < sections[s].sh_size / sizeof *table; i++) {
            unsigned type = table[i].st_info & 15, section = table[i].st_shndx;
            bool function = type == STT_FUNC;
            bool variable =
                type == STT_OBJECT && section < header->e_shnum && sections[section].sh_flags & SHF_WRITE;
            if (section != SHN_UNDEF && (function || variable))
                symbols.push_back(
                    {names + table[i].st_name, base + table[i].st_value, table[i].st_size, function});
        }
    }
    return symbols;
}

static const std::vector<symbol> &symbols_around(const void *address)
{
    static std::map<std::string, std::vector<symbol>> files;
    Dl_info info;
    link_map *map = nullptr;
    if (!dladdr1(address, &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) || !map)
        return files[""];
    /* The main program has no name in its link map. */
    std::string path = map->l_name[0] ? map->l_name : "/proc/self/exe";
    auto found = files.find(path);
    if (found == files.end())
        found = files.emplace(path, read_symbols(path.c_str(), reinterpret_cast<char *>(map->l_addr))).first;
    return found->second;
}

/* "void gemv<4>(float const*)" → "gemv<4>" */
static std::string readable(const std::string &mangled)
{
    int status;
    std::unique_ptr<char, void (*)(void *)> text(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), free);
    if (!text)
        return mangled;
    std::string name = text.get();
    const std::string anonymous = "(anonymous namespace)::";
    for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
        name.erase(at, anonymous.size());
    int depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i < name.size(); i++) {
        depth += (name[i] == '<') - (name[i] == '>');
        if (depth == 0 && name[i] == ' ')
            begin = i + 1;
        if (depth == 0 && name[i] == '(' && i > begin)
            return name.substr(begin, i - begin);
    }
    return name;
}

static kernel_info look_up(const void *kernel)
{
    char address_name[40];
    snprintf(address_name, sizeof address_name, "at %p", kernel);
    kernel_info info = {address_name, {}, 0, DEFAULT_DYNAMIC_LIMIT};
    const std::vector<symbol> &symbols = symbols_around(kernel);
    std::string mangled;
    for (const symbol &s : symbols)
        if (s.function && s.address == kernel)
            mangled = s.name;
    if (mangled.empty())
        return info;
    info.name = readable(mangled);
    bool plain = mangled.compare(0, 2, "_Z") != 0; /* C linkage */
    std::string prefix = "_ZZ" + (plain ? std::to_string(mangled.size()) + mangled : mangled.substr(2)) + "E";
    for (const symbol &s : symbols) {
        if (!s.function && s.name.compare(0, prefix.size(), prefix) == 0) {
            info.shared.push_back({s.address, s.size});
            info.shared_size += s.size;
        }
    }
    return info;
}

kernel_info &kernel_info_of(const void *kernel)
{
    static std::map<const void *, kernel_info> known;
    auto found = known.find(kernel);
    if (found == known.end())
        found = known.emplace(kernel, look_up(kernel)).first;
    return found->second;
}

} // namespace emu
