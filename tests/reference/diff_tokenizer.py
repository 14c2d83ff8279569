#!/usr/bin/env python3
"""Compares nl-tokenize with the Python package `tokenizers` on random strings; not part of the test run.

    python diff_tokenizer.py BUILD/bin/nl-tokenize FOLDER [COUNT [SEED]]

Needs tokenizers 0.23.3. FOLDER holds tokenizer.json. The strings mix scripts, marks, digits, blanks, code, runs, contractions,
added tokens and pieces of them. Prints each difference and their number; exits 1 if there is any. Ids without special
tokens are compared, and that decoding them gives the same text (nl-detok beside nl-tokenize).
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import Tokenizer

BLOCKS = [(0x20, 0x7e)] * 6 + [
    (0xa0, 0xff), (0x100, 0x24f), (0x250, 0x2af), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x52f), (0x531, 0x58f),
    (0x590, 0x5f4), (0x600, 0x6ff), (0x900, 0x97f), (0xb80, 0xbff), (0xe00, 0xe7f), (0xf00, 0xfff), (0x1000, 0x109f),
    (0x10a0, 0x10ff), (0x1100, 0x11ff), (0x1780, 0x17ff), (0x1c80, 0x1c8f), (0x1ab0, 0x1aff), (0x1dc0, 0x1dff),
    (0x1e00, 0x1eff), (0x1f00, 0x1fff), (0x2000, 0x206f), (0x2070, 0x209f), (0x2100, 0x214f), (0x2150, 0x218f),
    (0x2190, 0x23ff), (0x2460, 0x24ff), (0x2500, 0x27bf), (0x2c00, 0x2dff), (0x3000, 0x303f), (0x3040, 0x30ff),
    (0x3130, 0x318f), (0x4e00, 0x9fff), (0xa640, 0xa7ff), (0xac00, 0xd7a3), (0xe000, 0xe010), (0xf900, 0xfaff),
    (0xfb00, 0xfb4f), (0xfe00, 0xfe2f), (0xff00, 0xffef), (0x10280, 0x1059f), (0x10400, 0x1044f), (0x10d30, 0x10d8f),
    (0x11000, 0x113ff), (0x11700, 0x119ff), (0x16100, 0x16fff), (0x1d400, 0x1d7ff), (0x1e000, 0x1e2ff),
    (0x1f000, 0x1faff), (0x20000, 0x20100), (0x31350, 0x31360), (0xe0100, 0xe01ef), (0x0, 0x1f), (0x7f, 0x9f),
]
BLANKS = [" ", " ", " ", "\n", "\t", "\r\n", "  ", "   ", "\n\n", " \n", "\u00a0", "\u2003", "\u3000", "\u2028", "\x85", "\x0b", "\u200b",
          "\u200d", "\ufeff"]
CODE = ["def f(x):\n    return x", "for (int i = 0; i < n; i++) {", "}\n\n\t}", "a->b[i] += 0x1F;", "#include <stdio.h>\n",
        "https://example.org/a?b=c&d=%20", "'s", "'S", "'ll", "'LL", "'re", "don't", "I'\u017fm", "\u212a'Ve", "\u2019s", "1,234.56", "--", "==="]


def character(r):
    while True:
        c = chr(r.randint(*r.choice(BLOCKS)))
        if not 0xd800 <= ord(c) <= 0xdfff:
            return c


def word(r):
    low, high = r.choice(BLOCKS)
    return "".join(chr(r.randint(low, high)) for _ in range(r.randint(1, 12)) if not 0xd800 <= low <= 0xdfff)


def string(r, added, tokens):
    out = []
    for _ in range(r.randint(0, 25)):
        kind = r.randrange(12)
        if kind < 3:
            out.append(word(r))
        elif kind < 5:
            out.append(r.choice(BLANKS) * r.choice([1, 1, 1, 2, 5, 30]))
        elif kind == 5:
            out.append("".join(r.choice("0123456789\u0663\u0967\u00b2\u2167") for _ in range(r.randint(1, 9))))
        elif kind == 6:
            out.append(character(r) * r.choice([1, 2, 3, 7, 40]))
        elif kind == 7:
            out.append(r.choice(CODE))
        elif kind == 8:
            out.append(character(r) + "".join(chr(r.randint(0x300, 0x36f)) for _ in range(r.randint(1, 4))))
        elif kind == 9:
            out.append(unicodedata.normalize("NFD", word(r)))
        elif kind == 10 and added and r.randrange(3) == 0:
            token = r.choice(added)
            out.append(token if r.randrange(4) else token[:r.randint(0, len(token))])
        else:
            out.append(r.choice(tokens))
    return "".join(out).replace("\0", "0")


def main():
    program, folder = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
    r = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    reference = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    reference.no_truncation()
    reference.no_padding()
    added = [t.content for t in reference.get_added_tokens_decoder().values()]
    tokens = [reference.decode([i]).replace("\0", "") for i in r.sample(range(reference.get_vocab_size()), 5000)]
    texts = [string(r, added, tokens) for _ in range(count)]
    texts = [t if t else "x" for t in texts]
    records = b"".join(t.encode() + b"\0" for t in texts)
    with tempfile.TemporaryDirectory() as scratch:
        bare = os.path.join(scratch, "tokenizer.json")  # without tokenizer_config.json
        os.symlink(os.path.abspath(os.path.join(folder, "tokenizer.json")), bare)
        got = subprocess.run([program, "-m", scratch, "-0", "--special=none", "--json"], input=records, check=True,
                             capture_output=True).stdout
        back = subprocess.run([os.path.join(os.path.dirname(program), "nl-detok"), "-m", scratch, "-0", "--special=show"],
                              input=got, check=True, capture_output=True).stdout
    ids, wrong = [], 0
    for line in got.splitlines():
        frame = json.loads(line)
        if frame["kind"] == "NLS1":
            ids.append([])
        elif frame["kind"] == "TOKS":
            ids[-1] += frame["ids"]
    decoded = back.split(b"\0")
    assert len(ids) == len(texts), (len(ids), len(texts))
    wanted = reference.encode_batch(texts, add_special_tokens=False)
    for text, ours, theirs in zip(texts, ids, wanted):
        if ours != theirs.ids:
            wrong += 1
            if wrong <= 10:
                print("ids differ:", ascii(text), ours, theirs.ids)
    if len(decoded) == len(texts) + 1:
        for text, ours, theirs in zip(texts, decoded, reference.decode_batch([w.ids for w in wanted], skip_special_tokens=False)):
            if ours != theirs.encode():
                wrong += 1
                if wrong <= 10:
                    print("text differs:", ascii(text), ascii(ours.decode(errors="replace")), ascii(theirs))
    else:
        print("texts with NUL: decoding not compared")
    print(f"{folder}: {wrong} differences in {count} strings")
    sys.exit(wrong > 0)


main()
