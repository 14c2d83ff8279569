#!/usr/bin/env python3
"""Writes tests/data/train/cases.jsonl: make_train_cases.py > cases.jsonl; needs tokenizers 0.23.3.

Each line: the sequences, the form's name, the options, and what BpeTrainer makes of them: the tokens in the order of their ids, and the
merges. With a folder as its argument (shared test data) it prints instead what tests/cli/nl-train-bpe.t compares: the SHA-256 of the
merges of real texts, a line "LEFT RIGHT" each, both as JSON strings.
"""
import hashlib
import json
import random
import sys

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

ALL = pre_tokenizers.ByteLevel.alphabet()
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS + "?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS + "?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(pattern):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), byte_level])


FORMS = {
    "gpt2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "none": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    "llama3": lambda: split(WORDS.replace("DIGITS", r"\p{N}{1,3}")),
    "qwen2": lambda: split(WORDS.replace("DIGITS", r"\p{N}")),
    "o200k": lambda: split(O200K),
    "smollm": lambda: pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), FORMS["gpt2"]()]),
}


def tokenizer(form):
    new = Tokenizer(models.BPE())
    new.pre_tokenizer = FORMS[form]()
    if form == "qwen2":
        new.normalizer = normalizers.NFC()
    return new


def model_of(trained):
    return json.loads(trained.to_str())["model"]


def case(sequences, form="gpt2", initial="none", **options):
    """initial: all, none, or a text whose bytes are meant."""
    new = tokenizer(form)
    characters = {"all": ALL, "none": []}.get(initial)
    if characters is None:
        mapped = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(initial)
        characters = list("".join(piece for piece, _ in mapped))
    new.train_from_iterator(sequences, trainers.BpeTrainer(show_progress=False, initial_alphabet=characters, **options))
    model = model_of(new)
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    assert list(model["vocab"].values()) == list(range(len(tokens)))
    line = {"sequences": sequences, "form": form, "initial": initial, "options": options, "tokens": tokens, "merges": model["merges"]}
    print(json.dumps(line, ensure_ascii=False))


MIXED = [
    "The café's naïve Straße, 12345 times; don't STOP NOW!!  ok\r\n", "漢字とかなカナ、混ぜる。漢字とかな\n", "Привет, мир! Привет, мир ٣٤٥\n",
    "नमस्ते दुनिया नमस्ते\n", "🙂🙂🏳️‍🌈 e\u0301e\u0301 \u1e9b\u0323 ẞß ﬁ\n", "HTTPServer's getURL(x)/y // 1000000 3.14\n\n\n\tif (a) {\n",
    "I'LL we've they'RE it'S 'tis \u017f 'm\n", "x  y   z \u3000 \u2028\u00a0 end",
]


def cases():
    case([])
    case([], initial="all", vocab_size=300)
    case([""], vocab_size=10)
    case(["a"], vocab_size=10)
    case(["low lower lowest newer newest wider widest"] * 3, vocab_size=60)
    for n in range(1, 18):
        case(["a" * n], form="none", vocab_size=60)
    case(["a" * 1000, "aab" * 7, "ba" * 30], form="none", vocab_size=60)
    case(["abababab", "babababa", "aabbaabb"] * 2, form="none", vocab_size=40)
    case(["ab cd", "cd ab", "bc da"], vocab_size=60)  # ties
    case(["zy", "yz", "za", "az"], form="none", vocab_size=60)
    for limit in (0, 1, 2, 3, 4, 5, 8, 9):
        case(["abcdefgh" * 3, "abcabc"], form="none", vocab_size=60, max_token_length=limit)
    for low in (0, 1, 2, 3, 7):
        case(["ab ab ab cd cd ef", "abcd"], vocab_size=60, min_frequency=low)
    for size in (1, 3, 8, 9, 10, 11, 12):
        case(["hello hello help held"], vocab_size=size)
    case(["abcab abc"] * 2, vocab_size=30, special_tokens=["<s>", "</s>"])
    case(["abcab abc"] * 2, vocab_size=30, special_tokens=["abc", "a", "<s>", "a", "Ġ", "Ġabc"])
    case(["<s> abc <s>abc"] * 2, vocab_size=30, special_tokens=["<s>"])
    case(["ab"] * 3, vocab_size=4, special_tokens=["<1>", "<2>", "<3>", "<4>", "<5>"])
    case(["é ab", "漢"], initial="q é", vocab_size=30)
    case(["aaaa bbb cc d"], limit_alphabet=2, vocab_size=30)
    case(["aaaa bbb  cc d"], limit_alphabet=3, initial="z", vocab_size=30)
    case(["xaxbxaxb"] * 2, form="none", limit_alphabet=1, vocab_size=30)
    case(["".join(chr(c) for c in range(1, 0x180))], form="none", vocab_size=400)
    for form in FORMS:
        case(MIXED * 2, form=form, initial="all", vocab_size=420)
    rng = random.Random(7)
    parts = ["ab", "bc", "abc", "ca", "aa", "é", " ", "  "]
    for form in ("gpt2", "none"):
        case(["".join(rng.choice(parts) for _ in range(60)) for _ in range(12)], form=form, vocab_size=150)


def hashes(folder):
    texts = [("tinyshakespeare.txt", "gpt2", 300), ("tinyshakespeare.txt", "gpt2", 1000), ("tinyshakespeare.txt", "gpt2", 8000),
             ("tinyshakespeare.txt", "o200k", 8000), ("wikitext-2-raw-test.txt", "gpt2", 8000),
             ("wikitext-2-raw-test.txt", "llama3", 20000)]
    for name, form, size in texts:
        new = tokenizer(form)
        new.train([f"{folder}/data/{name}"], trainers.BpeTrainer(show_progress=False, initial_alphabet=ALL, vocab_size=size))
        lines = (" ".join(json.dumps(part, ensure_ascii=False) for part in merge) + "\n" for merge in model_of(new)["merges"])
        print(name, form, size, hashlib.sha256("".join(lines).encode()).hexdigest())


if sys.argv[1:]:
    hashes(sys.argv[1])
else:
    cases()
