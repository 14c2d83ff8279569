#!/usr/bin/env python3
"""Writes lib/unicode_sets.c: python make_unicode_sets.py > lib/unicode_sets.c

Needs the PyPI packages tokenizers 0.23.3, whose answers these tables record (the libraries it uses are of several Unicode versions),
and regex, for the names of scripts only. Takes some minutes.
"""
import sys

import regex
from tokenizers import Regex, normalizers, pre_tokenizers

from charsmap import charsmap

ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
# For the regexes: without the inner parts of ranges that are all of one kind (ideographs, syllables, private, unassigned).
UNIFORM = [(0x3410, 0x4DA0), (0x4E10, 0x9FE0), (0xAC10, 0xD790), (0xE010, 0xF8E0), (0x17010, 0x187E0), (0x20010, 0x2A6D0),
           (0x2A710, 0x2B730), (0x2B830, 0x2CE90), (0x2CEC0, 0x2EBD0), (0x30010, 0x31340), (0x31360, 0x323A0), (0x323C0, 0x3FFF0)]
UNIFORM += [(plane << 16 | 0x10, plane << 16 | 0xFFF0) for plane in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16)]
UNIFORM += [(0xE1000, 0xEFFF0)]
SOME = [c for c in ALL if not any(first <= c <= last for first, last in UNIFORM)]
TEXT = "".join(map(chr, SOME))
# Properties beside the scripts, as \p{...} spells them.
PROPERTIES = """Lower Upper Lowercase Uppercase Blank Cntrl Graph Print Emoji Emoji_Presentation Emoji_Modifier Emoji_Modifier_Base
    Emoji_Component Extended_Pictographic Ideographic Unified_Ideograph Math Hex_Digit ASCII_Hex_Digit Dash Diacritic Extender
    Cased Case_Ignorable Quotation_Mark Radical Variation_Selector Default_Ignorable_Code_Point ID_Start ID_Continue XID_Start
    XID_Continue Terminal_Punctuation Sentence_Terminal Join_Control Pattern_White_Space Pattern_Syntax Soft_Dotted
    Noncharacter_Code_Point Regional_Indicator""".split()
POSIX = ["Lower", "Upper", "Blank", "Cntrl", "Graph", "Print"]  # [:...:] knows these too
# Classes of grapheme clusters, in the order of enum nl_grapheme in unicode_sets.h.
CLASSES = ["CONTROL", "EXTEND", "JOINER", "SPACING", "PREPEND", "L", "V", "T", "REGIONAL", "PICTOGRAPH", "CONSONANT", "LINKER",
           "CONJUNCT_EXTEND"]


def ranges(points):
    out = []
    for c in sorted(points):
        if out and (out[-1][1] == c - 1 or out[-1][1] == 0xD7FF and c == 0xE000):
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def matching(pattern):
    """The ranges of SOME whose characters all match; a gap in SOME is of one kind."""
    splitter = pre_tokenizers.Split(Regex("(?:%s)+" % pattern), "removed", invert=True)
    return [[SOME[begin], SOME[end - 1]] for _, (begin, end) in splitter.pre_tokenize_str(TEXT)]


def rows(values, form):
    line, out = "   ", []
    for value in values:
        text = " " + form % tuple(value) + ","
        if len(line) + len(text) > 109:
            out.append(line)
            line = "   "
        line += text
    return "\n".join(out + [line])


def regex_sets():
    """{name: ranges} of what the reference's regexes know; several names may share their ranges."""
    names = {name.replace("_", "").lower(): name for name in PROPERTIES}
    for name in regex._regex_core.PROPERTIES["SCRIPT"][1]:
        names.setdefault(name.replace("_", "").lower(), name)
    out = {}
    for key, name in sorted(names.items()):
        try:
            members = matching(r"\p{%s}" % name)
        except Exception:
            continue
        out[key] = members
        if name in POSIX:
            assert matching("[[:%s:]]" % name.lower()) == members, name
    return out


def removed_by(normalizer):
    return {c for c in ALL if normalizer.normalize_str("a" + chr(c) + "a") == "aa"}


def punctuation():
    splitter = pre_tokenizers.Punctuation("removed")
    return {c for c in ALL if not splitter.pre_tokenize_str(chr(c))}


def splitter_scripts():
    """[first, last, number]: neighbours with the same number stay together; the rest belongs to every script."""
    split = pre_tokenizers.UnicodeScripts().pre_tokenize_str
    known = [c for c in ALL if split(chr(c))]
    runs = []
    for c in known:
        if runs and runs[-1][1] == c - 1 and len(split(chr(c - 1) + chr(c))) == 1:
            runs[-1][1] = c
        else:
            runs.append([c, c, 0])
    firsts = []
    for run in runs:
        number = next((i for i, f in enumerate(firsts) if len(split(chr(f) + chr(run[0]))) == 1), len(firsts))
        if number == len(firsts):
            firsts.append(run[0])
        run[2] = number
    return runs


def graphemes():
    """[first, last, class]. What joins what is told by Precompiled, which replaces a whole cluster of less than six bytes by what
    its first mapped character becomes, and takes longer ones character by character."""
    table = normalizers.Precompiled(charsmap({"a": "Z", "\u0300": "Y", "\u1100": "1", "\u1161": "2", "\u11a8": "3", "\u00a9": "C",
                                              "\u0915": "K"})).normalize_str

    def joins(left, middle, to):
        """Whether `middle` (three bytes, or two behind more than one byte) is in the cluster of what is before."""
        return table(left + middle + "\u0300").endswith(to + "Y" if to != "Z" else "Y")

    out = {}
    for c in ALL:
        s = chr(c)
        if s in "a\u0300\u1100\u1161\u11a8\u00a9\u0915":
            name = {"a": None, "\u0300": "CONJUNCT_EXTEND", "\u1100": "L", "\u1161": "V", "\u11a8": "T", "\u00a9": "PICTOGRAPH",
                    "\u0915": "CONSONANT"}[s]
        elif 0x1F1E6 <= c <= 0x1F1FF:
            name = "REGIONAL"
        elif 0xAC00 <= c <= 0xD7A3:
            name = None  # LV and LVT are computed
            assert joins(s, "\u1161", "2") == ((c - 0xAC00) % 28 == 0) and joins(s, "\u11a8", "3")
        elif table(s + "\u0300\u0301") == s + "Y":
            name = "CONTROL"
        elif table("a" + s) == "Z":
            if joins("\u0915" + s, "\u0915", "K"):
                name = "LINKER"
            elif joins("\u00a9" + s, "\u00a9", "C"):
                name = "JOINER"
            elif not joins("\u00a9" + s + "\u200d", "\u00a9", "C"):
                name = "SPACING"
            else:
                name = "CONJUNCT_EXTEND" if joins("\u0915\u094d" + s, "\u0915", "K") else "EXTEND"
        elif table(s + "a\u20d0") != s + "Z":
            name = "PREPEND"
        elif joins(s, "\u1100", "1"):
            name = "L"
        elif joins(s, "\u1161", "2"):
            name = "V"
        elif joins(s, "\u11a8", "3"):
            name = "T"
        elif joins(s + "\u200d", "\u00a9", "C"):
            name = "PICTOGRAPH"
        elif joins(s + "\u094d", "\u0915", "K"):
            name = "CONSONANT"
        else:
            name = None
        if name:
            out[c] = CLASSES.index(name)
    runs = []
    for c, kind in sorted(out.items()):
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == kind:
            runs[-1][1] = c
        else:
            runs.append([c, c, kind])
    return runs


def main():
    marks = removed_by(normalizers.StripAccents())
    bert = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    control = removed_by(normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False))
    sets = regex_sets()
    print("/* Made by tests/reference/make_unicode_sets.py from what tokenizers 0.23 does; do not edit. */")
    print('#include "unicode_sets.h"\n')
    print("/* clang-format off */")
    for name, members in (("punctuation", punctuation()), ("marks", marks), ("nonspacing", removed_by(bert)), ("control", control)):
        found = ranges(members)
        print("const struct nl_unicode_range nl_reference_%s[] = {\n%s\n};" % (name, rows(found, "{0x%x, 0x%x}")))
        print("const size_t nl_reference_n_%s = %d;" % (name, len(found)))
    for name, runs in (("scripts", splitter_scripts()), ("graphemes", graphemes())):
        print("const struct nl_unicode_run nl_reference_%s[] = {\n%s\n};" % (name, rows(runs, "{0x%x, 0x%x, %d}")))
        print("const size_t nl_reference_n_%s = %d;" % (name, len(runs)))
    flat, starts = [], {}
    print("const struct nl_unicode_set nl_unicode_sets[] = {")
    for name, found in sorted(sets.items()):
        key = str(found)
        if key not in starts:
            starts[key] = len(flat)
            flat += found
        print('    {"%s", %d, %d},' % (name, starts[key], len(found)))
    print("};")
    print("const size_t nl_unicode_n_sets = %d;" % len(sets))
    print("const struct nl_unicode_range nl_unicode_set_ranges[] = {\n%s\n};" % rows(flat, "{0x%x, 0x%x}"))
    print("/* clang-format on */")


sys.exit(main())
