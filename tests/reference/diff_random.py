#!/usr/bin/env python3
"""Compares nl-tokenize and nl-detok with the Python package `tokenizers` on random small tokenizers; not part of the test run.

    python diff_random.py BUILD/bin [COUNT [SEED]]

Needs tokenizers 0.23.3. Each tokenizer is a random normalizer, pre-tokenizer, model of any type with random options, added tokens with
random flags, post-processor and decoder, tried on random strings with and without special tokens, and on random ids, decoded from the
text twin and from a stream with one id a frame. Where the reference panics or refuses the file, nothing is compared.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

from charsmap import charsmap_text
from tokenizers import Tokenizer

ALPHABET = list("abcAB 1\u00b2_.\n\t'\u0301\u00e9\u2581\u3000\u6f22\u200d\u00c5\u212b\ufb01") + [
    "<s>", "[M]", "ab", "  ", " \n ", "\U0001f99c", "!", ".", "\u3002", "\u30a2", "\u30fc", "\u304c", "\u0416", "e\u0301", "\r\n", "\u200b",
    "\u0094", "\u20d0", "\u00a9", "\u0915\u094d", "\ud55c", "$", "\U0001f1e6", "'m", " do not", "\u0e33", "\u00ad"]
PATTERNS = [r"\s+", r"\p{L}+", r"[^\s\p{L}]+", r"\d{1,3}", r"a|b", r"(?i:A)b?", r"\s+(?!\S)|\s+", r"a*", r" ?\w+", r"(?=b)", r"$", r"\b"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def pattern(r):
    return {"Regex": r.choice(PATTERNS)} if r.randrange(2) else {"String": r.choice([" ", "a", "ab", "\u2581", "  "])}


def some(r, make, most):
    kind = r.randrange(4)
    if kind == 0:
        return None
    return make(r) if kind == 1 else [make(r) for _ in range(r.randint(0, most))]


def sequence(value, key):
    return {"type": "Sequence", key: value} if isinstance(value, list) else value


def normalizer(r):
    kind = r.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Prepend", "Strip", "Replace", "Replace", "StripAccents", "Nmt",
                     "BertNormalizer", "Precompiled"])
    characters = [c for c in ALPHABET if "\0" not in c]
    more = {"BertNormalizer": {"clean_text": bool(r.randrange(2)), "handle_chinese_chars": bool(r.randrange(2)),
                               "strip_accents": r.choice([None, True, False]), "lowercase": bool(r.randrange(2))},
            "Precompiled": {"precompiled_charsmap": charsmap_text({
                "".join(r.choice(characters) for _ in range(r.randint(1, 2))): r.choice(["", " ", "a", "\u00e9", "xyz", "\u0301"])
                for _ in range(r.randint(1, 12))})},
            "Prepend": {"prepend": r.choice(["\u2581", " ", "xy"])},
            "Strip": {"strip_left": bool(r.randrange(2)), "strip_right": bool(r.randrange(2))},
            "Replace": {"pattern": pattern(r), "content": r.choice(["", "\u2581", "aa"])}}
    return {"type": kind, **more.get(kind, {})}


def splitter(r):
    kind = r.choice(["ByteLevel", "ByteLevel", "Split", "Split", "Split", "Digits", "Metaspace", "Whitespace", "WhitespaceSplit",
                     "CharDelimiterSplit", "Punctuation", "BertPreTokenizer", "UnicodeScripts", "FixedLength"])
    more = {"Punctuation": {"behavior": r.choice(BEHAVIORS)}, "FixedLength": {"length": r.randint(1, 6)},
            "ByteLevel": {"add_prefix_space": bool(r.randrange(2)), "trim_offsets": True, "use_regex": bool(r.randrange(2))},
            "Split": {"pattern": pattern(r), "behavior": r.choice(BEHAVIORS), "invert": bool(r.randrange(2))},
            "Digits": {"individual_digits": bool(r.randrange(2))}, "CharDelimiterSplit": {"delimiter": r.choice("a _")},
            "Metaspace": {"replacement": "\u2581", "prepend_scheme": r.choice(["always", "first", "never"]),
                          "split": bool(r.randrange(2))}}
    return {"type": kind, **more.get(kind, {})}


def decoder(r):
    kind = r.choice(["ByteLevel", "Metaspace", "Replace", "Replace", "Fuse", "Fuse", "Strip", "Strip", "ByteFallback", "BPEDecoder",
                     "WordPiece", "CTC"])
    more = {"WordPiece": {"prefix": r.choice(["##", "a", ""]), "cleanup": bool(r.randrange(2))},
            "CTC": {"pad_token": r.choice(["<pad>", "a", ""]), "word_delimiter_token": r.choice(["|", "b", " ", ""]),
                    "cleanup": bool(r.randrange(2))},
            "Metaspace": {"replacement": "\u2581", "prepend_scheme": r.choice(["always", "first", "never"]), "split": True},
            "Replace": {"pattern": pattern(r), "content": r.choice(["", " ", "aa"])},
            "Strip": {"content": r.choice(" ab"), "start": r.randrange(3), "stop": r.choice([0, 0, 0, 1])},
            "ByteLevel": {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}, "BPEDecoder": {"suffix": r.choice(["</w>", "b"])}}
    return {"type": kind, **more.get(kind, {})}


def pieces(r, prefix=""):
    """Random keys of a vocabulary, each once."""
    units = [c for c in ALPHABET if r.randrange(6)]
    units += ["".join(r.choice(ALPHABET) for _ in range(r.randint(2, 4))) for _ in range(r.randint(0, 40))]
    units += [prefix + u for u in units if r.randrange(3)] if prefix else []
    return list(dict.fromkeys(units))


def unigram(r):
    keys = ["<unk>"] + pieces(r)
    if r.randrange(3) == 0:
        keys += [f"<0x{b:02X}>" for b in range(256) if r.randrange(400)]
    if r.randrange(4) == 0:
        keys.append(r.choice(keys))
    r.shuffle(keys)
    scores = [r.choice([0.0, -1.0, -2.5, 3.0]) if r.randrange(3) else -r.random() * 12 for _ in keys]
    return {"type": "Unigram", "unk_id": None if r.randrange(8) == 0 else r.randrange(len(keys)) if r.randrange(4) == 0
            else keys.index("<unk>"), "vocab": [list(p) for p in zip(keys, scores)], "byte_fallback": bool(r.randrange(2))}


def words(r):
    prefix = r.choice(["##", "##", "a", ""])
    keys = pieces(r, prefix)
    r.shuffle(keys)
    if r.randrange(8):
        keys.append("[UNK]")
    common = {"vocab": {k: i for i, k in enumerate(keys)}, "unk_token": "[UNK]"}
    if r.randrange(3) == 0:
        return {"type": "WordLevel", **common}
    return {"type": "WordPiece", **common, "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": r.choice([100, 100, 5, 2])}


def model(r):
    kind = r.randrange(4)
    return unigram(r) if kind == 0 else words(r) if kind == 1 else bpe(r)


def bpe(r):
    prefix, suffix = r.choice([None, None, None, "", "##"]), r.choice([None, None, None, "", "</w>"])
    units = [c for c in ALPHABET if len(c) == 1 and r.randrange(6)] + ["\u0120", "\u010a", "\u00c3", "\u00a9", "</w>"]
    if prefix:
        units += [prefix + u for u in units]
    if suffix:
        units += [u + suffix for u in units]
    vocab = dict.fromkeys(units)
    if r.randrange(2):
        vocab.update(dict.fromkeys(f"<0x{b:02X}>" for b in range(256) if r.randrange(50)))
    merges, pieces = [], list(units)
    for _ in range(r.randint(0, 30)):
        a, b = r.choice(pieces), r.choice(pieces)
        joined = a + b[len(prefix or ""):]
        if b.startswith(prefix or "") and [a, b] not in merges:  # the reference panics on others
            merges.append([a, b])
            vocab.setdefault(joined)
            pieces.append(joined)
    unk = r.choice([None, "<unk>"])
    if unk:
        vocab[unk] = None
    keys = list(vocab)
    r.shuffle(keys)
    return {"type": "BPE", "dropout": None, "unk_token": unk, "continuing_subword_prefix": prefix, "end_of_word_suffix": suffix,
            "fuse_unk": bool(r.randrange(2)), "byte_fallback": bool(r.randrange(2)), "ignore_merges": bool(r.randrange(2)),
            "vocab": {k: i for i, k in enumerate(keys)}, "merges": merges}


def added(r, vocab):
    out = {}
    for _ in range(r.randint(0, 6)):
        content = r.choice(["<s>", "[M]", "ab", " ", "\n", "<s", "a b", "A\u00e9", "<s>ab", "cat", r.choice(list(vocab))])
        if content:
            out[content] = {"id": 0, "content": content, "single_word": not r.randrange(3), "lstrip": not r.randrange(3),
                            "rstrip": not r.randrange(3), "normalized": bool(r.randrange(2)), "special": bool(r.randrange(2))}
    next_id = len(vocab)
    for token in out.values():
        token["id"] = vocab.get(token["content"], next_id)
        next_id += token["id"] == next_id
    return list(out.values())


def reference_miscounts(config):
    """Where the reference's ids depend on offsets that it gets wrong: see DEVIATIONS.md."""
    steps = json.dumps(config["normalizer"])
    splits = (config["pre_tokenizer"] or {}).get("pretokenizers", [])
    empty = any('"Regex": ' + json.dumps(p) in steps for p in PATTERNS if p in (r"a*", r"(?=b)", r"$", r"\b"))
    removes = any(kind in steps for kind in ("StripAccents", "Nmt", "BertNormalizer"))
    return empty and removes or any(s.get("prepend_scheme") == "first" for s in splits[1:])


def build(r):
    m = model(r)
    tokens = added(r, {k: i for i, k in enumerate(k for k, _ in m["vocab"])} if m["type"] == "Unigram" else m["vocab"])
    post = None
    if tokens and r.randrange(2):
        t = r.choice(tokens)
        special = {"SpecialToken": {"id": "S", "type_id": 0}}
        post = {"type": "TemplateProcessing", "single": [special, {"Sequence": {"id": "A", "type_id": 0}}, special], "pair": [],
                "special_tokens": {"S": {"id": "S", "ids": [t["id"]], "tokens": [t["content"]]}}}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens,
            "normalizer": sequence(some(r, normalizer, 3), "normalizers"),
            "pre_tokenizer": sequence(some(r, splitter, 3), "pretokenizers"), "post_processor": post,
            "decoder": sequence(some(r, decoder, 4), "decoders"), "model": m}


def attempt(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except BaseException as error:  # a panic of the reference is one
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def sequences(lines):
    out = []
    for line in lines.splitlines():
        frame = json.loads(line)
        if frame["kind"] == "NLS1":
            out.append([])
        elif frame["kind"] == "TOKS":
            out[-1] += frame["ids"]
        elif frame.get("finish") == "error":
            out[-1] = None
    return out


def main():
    programs = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    wrong = compared = 0
    for number in range(seed, seed + count):
        r = random.Random(number)
        config = build(r)
        if reference_miscounts(config):
            continue
        reference = attempt(Tokenizer.from_str, json.dumps(config))
        if not reference:
            continue
        forms = [reference.normalizer.normalize_str(t["content"]) if t["normalized"] and reference.normalizer else t["content"]
                 for t in config["added_tokens"]]
        if len(set(forms)) < len(forms):
            continue  # which one the reference finds changes from run to run
        if any(t["normalized"] and reference.normalizer and reference.normalizer.normalize_str(t["content"]) == "" for t in config["added_tokens"]):
            continue  # see DEVIATIONS.md
        texts = ["".join(r.choice(ALPHABET) for _ in range(r.randint(1, 14))) for _ in range(40)]
        ids = [[r.randrange(reference.get_vocab_size()) for _ in range(r.randint(1, 8))] for _ in range(40)]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "tokenizer.json"), "w") as file:
                json.dump(config, file)

            def run(name, *options, data):
                return subprocess.run([os.path.join(programs, name), "-m", folder, *options], input=data, capture_output=True)
            records = b"".join(t.encode() + b"\0" for t in texts)
            for special in (False, True):
                got = run("nl-tokenize", "-0", "--json", "--special=" + ("auto" if special else "none"), data=records)
                ours = sequences(got.stdout)
                if len(ours) != len(texts):
                    print(number, "failed:", got.stderr.decode()[:300])
                    wrong += got.returncode != 5
                    break
                for text, mine in zip(texts, ours):
                    theirs = attempt(reference.encode, text, add_special_tokens=special)
                    if theirs is None:
                        continue
                    compared += 1
                    if theirs.ids != mine:
                        wrong += 1
                        print(number, "ids", ascii(text), mine, theirs.ids, theirs.tokens)
                        break
            lines = "".join(" ".join(map(str, i)) + " \n" for i in ids).encode()
            frames = "".join("\n".join(['{"kind":"NLS1"}'] + ['{"kind":"TOKS","ids":[%d]}' % i for i in one] +
                                       ['{"kind":"DONE"}', ""]) for one in ids).encode()
            for special, data in ((False, lines), (True, lines), (False, frames), (True, frames)):
                got = run("nl-detok", "-0", "--special=" + ("show" if special else "skip"), data=data)
                ours = got.stdout.split(b"\0")[:-1]
                if got.stdout.count(b"\0") != len(ids) and got.returncode == 0:
                    break  # a text has a NUL
                if len(ours) != len(ids):
                    print(number, "failed:", got.stderr.decode()[:300])
                    break
                for one, mine in zip(ids, ours):
                    theirs = attempt(reference.decode, one, skip_special_tokens=not special)
                    if theirs is None or "\ufffd" in theirs and "ByteFallback" in json.dumps(config["decoder"]):
                        continue  # see DEVIATIONS.md
                    compared += 1
                    if theirs.encode() != mine:
                        wrong += 1
                        print(number, "text", one, [reference.id_to_token(i) for i in one], ascii(mine.decode()), ascii(theirs),
                              json.dumps(config["decoder"]))
                        break
    print(f"{wrong} differences, {compared} comparisons, {count} tokenizers")
    sys.exit(wrong > 0)


main()
