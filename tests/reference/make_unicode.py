#!/usr/bin/env python3
"""Writes lib/unicode_tables.c: python make_unicode.py > lib/unicode_tables.c

Needs the PyPI packages unicodedata2 16.0.0 (general categories) and tokenizers 0.23.3 (its lower-case mapping, its regex
library's Alphabetic, and which characters its older normalization tables do not know), and a Python whose own
unicodedata is of Unicode 14 (3.11), for the list of what is newer.
"""
import unicodedata as old
import unicodedata2 as new

from tokenizers import Regex, normalizers, pre_tokenizers

assert old.unidata_version == "14.0.0" and new.unidata_version == "16.0.0"
NAMES = "Cc Cf Cn Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()
ALPHABETIC = 0x20
SURROGATES = range(0xD800, 0xE000)
BLOCK = 256
ALL = [c for c in range(0x110000) if c not in SURROGATES]


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def matching(pattern):
    splitter = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return {ord(c) for piece, _ in splitter.pre_tokenize_str("".join(map(chr, ALL))) for c in piece}


def rows(values, form="%d"):
    line, out = "   ", []
    for value in values:
        text = " " + form % value + ","
        if len(line) + len(text) > 109:
            out.append(line)
            line = "   "
        line += text
    return "\n".join(out + [line])


def unknown_to_normalizers():
    """Characters that Unicode 16 decomposes, composes or reorders and the reference leaves alone."""
    nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
    found, first_parts, known_first_parts = set(), set(), set()
    for c in ALL:
        s = chr(c)
        combining, decomposition = new.combining(s), new.decomposition(s)
        parts = [] if decomposition.startswith("<") else decomposition.split()
        if decomposition and nfkd(s) == s:
            found.add(c)
            first_parts.update(int(x, 16) for x in parts[:1])
        else:
            known_first_parts.update(int(x, 16) for x in parts[:1])
        if combining:
            other = "\u0334" if combining != 1 else "\u0301"
            probe = s + other if combining != 1 else other + s
            if nfd(probe) == probe:
                found.add(c)
    assert not first_parts & known_first_parts  # so hiding a first part hides only new compositions
    return found | first_parts


def lower_runs():
    """[first, last, stride, delta] of the one-to-one mappings; U+0130 is the only other one."""
    lower = normalizers.Lowercase().normalize_str
    runs = []
    for c in ALL:
        s = lower(chr(c))
        if s == chr(c):
            continue
        if len(s) != 1:
            assert c == 0x130 and s == "i\u0307"
            continue
        delta = ord(s) - c
        if runs and runs[-1][3] == delta and (c - runs[-1][1] in (1, 2)):
            gap = c - runs[-1][1]
            if runs[-1][0] == runs[-1][1] or runs[-1][2] == gap:
                runs[-1][1], runs[-1][2] = c, gap
                continue
        runs.append([c, c, 1, delta])
    return runs


def main():
    alphabetic = matching(r"\p{Alphabetic}")
    properties = bytes(NAMES.index(new.category(chr(c))) | (ALPHABETIC if c in alphabetic else 0)
                       for c in range(0x110000))
    blocks, index = {}, []
    for at in range(0, 0x110000, BLOCK):
        index.append(blocks.setdefault(properties[at:at + BLOCK], len(blocks)))
    assert len(blocks) < 256
    newer = ranges(c for c in ALL if old.category(chr(c)) == "Cn" and new.category(chr(c)) != "Cn")
    unknown = ranges(unknown_to_normalizers())
    runs = lower_runs()
    print("/* Made by tests/reference/make_unicode.py from Unicode 16; do not edit. */")
    print('#include "unicode_tables.h"\n')
    print("/* clang-format off */")
    print("const uint8_t nl_unicode_index[0x110000 / %d] = {\n%s\n};" % (BLOCK, rows(index)))
    print("const uint8_t nl_unicode_blocks[][%d] = {" % BLOCK)
    for block in blocks:
        print("    {\n%s\n    }," % rows(block))
    print("};")
    for name, table in (("newer", newer), ("inert", unknown)):
        print("const struct nl_unicode_range nl_unicode_%s[] = {\n%s\n};" % (
            name, rows([tuple(r) for r in table], "{0x%x, 0x%x}")))
        print("const size_t nl_unicode_n_%s = %d;" % (name, len(table)))
    print("const struct nl_unicode_lower nl_unicode_lower[] = {\n%s\n};" % rows(
        [tuple(r) for r in runs], "{0x%x, 0x%x, %d, %d}"))
    print("const size_t nl_unicode_n_lower = %d;" % len(runs))
    print("/* clang-format on */")


main()
