#!/usr/bin/env python3
"""Compares nl-train-bpe with BpeTrainer on random small corpora: diff_train.py PROGRAM [SEED [COUNT]]; needs tokenizers 0.23.3.

The corpora are made to be hostile: few letters, runs, words that come apart in several ways, special tokens that are pieces of words.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

program, seed, count = sys.argv[1], int((sys.argv[2:] or ["1"])[0]), int((sys.argv[3:] or ["500"])[0])


def corpus(rng):
    kind = rng.randrange(5)
    letters = rng.choice(["ab", "abc", "abcdef", "aé ", "ab \n", "漢字かな a", "0123 ab'sS", "\u0301aẞ🙂🙂\r\n\t "])
    if kind == 0:
        return "".join(rng.choice(letters) * rng.randrange(1, 9) for _ in range(rng.randrange(60)))
    if kind == 1:  # words from parts, many times
        parts = ["".join(rng.choice(letters) for _ in range(rng.randrange(1, 4))) for _ in range(rng.randrange(1, 6))]
        return " ".join("".join(rng.choice(parts) for _ in range(rng.randrange(1, 7))) for _ in range(rng.randrange(200)))
    if kind == 2:
        return "\n".join("".join(rng.choice(letters) for _ in range(rng.randrange(30))) for _ in range(rng.randrange(40)))
    if kind == 3:
        return "".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0xa0, 0xd7ff), rng.randrange(0xe000, 0x10ffff)]))
                       for _ in range(rng.randrange(300)))
    return "".join(rng.choice(letters) for _ in range(rng.randrange(400)))


def one(rng, folder):
    text = corpus(rng)
    path, out = os.path.join(folder, "text"), os.path.join(folder, "out.json")
    with open(path, "w", newline="", encoding="utf-8") as f:
        f.write(text)
    regex = rng.random() < 0.7
    options = {"vocab_size": rng.choice([1, 5, 20, 40, 260, 270, 300, 1000])}
    command = [program, "--pre-tokenizer", "gpt2" if regex else "none", "--vocab-size", str(options["vocab_size"])]
    if rng.random() < 0.3:
        options["min_frequency"] = rng.randrange(5)
        command += ["--min-frequency", str(options["min_frequency"])]
    if rng.random() < 0.3:
        options["max_token_length"] = rng.randrange(8)
        command += ["--max-token-length", str(options["max_token_length"])]
    if rng.random() < 0.5:
        options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
    else:
        command += ["--initial-alphabet", "none"]
    specials = []
    while rng.random() < 0.4:
        start = rng.randrange(len(text) + 1)
        special = rng.choice(["<s>", text[start:start + rng.randrange(1, 5)], "ab", "abc", "Ġa", "a", "Ġ"])
        if special and "\0" not in special:
            specials.append(special)
            command += ["--special", special]
    options["special_tokens"] = specials
    command += ["--threads", str(rng.randrange(1, 4)), "-o", out, path]
    reference = Tokenizer(models.BPE())
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    reference.train([path], trainers.BpeTrainer(show_progress=False, **options))
    want = json.loads(reference.to_str())
    subprocess.run(command, check=True)
    with open(out, encoding="utf-8") as f:
        got = json.load(f)
    Tokenizer.from_file(out)
    for key in ("vocab", "merges"):
        if got["model"][key] != want["model"][key]:
            print("differ:", key, command, repr(text))
            print("got ", str(got["model"][key])[:600])
            print("want", str(want["model"][key])[:600])
            return False
    if got["added_tokens"] != want["added_tokens"]:
        print("differ: added_tokens", command, got["added_tokens"], want["added_tokens"])
        return False
    return True


rng = random.Random(seed)
bad = 0
with tempfile.TemporaryDirectory() as folder:
    for i in range(count):
        bad += not one(rng, folder)
        if bad > 5:
            break
print(f"{bad} of {i + 1} differ")
sys.exit(bad > 0)
