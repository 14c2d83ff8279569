#!/usr/bin/env python3
"""Writes small tokenizers of every type into tests/data/tokenizer and what the Python package makes of random strings with them into
types.jsonl there: python make_tokenizer_types.py tests/data/tokenizer

Needs tokenizers 0.23.3. 2,000 strings and more in all; each with its ids, with and without the template's, and the ids' text.
"""
import json
import os
import random
import sys

from charsmap import charsmap_text
from tokenizers import Tokenizer

UNITS = list("abcdefghijklmnopqrstuvwxyzABC 0123.,!?'-_\n\t") + [
    "\u00e9", "e\u0301", "\u00c5", "\u212b", "\u6f22", "\u5b57", "\u304c", "\u30a2", "\u30fc", "\uac00", "\u0416", "\ufb01", "\u3000", "\u200b", "\u200d",
    "\U0001f99c", "\U0001f1e6\U0001f1fa", "\u0915\u094d\u0937", "\u3002", "\u00ab", "$", "\u00a0", "\r\n", "\x07", "\ufffd", "\u2581", "\u1e9e", "\u0130",
    "<s>", "[MASK]", " ' ", "n't", " do not", "'re", "\u20d0", "\u1100\u1161\u11a7"]
WORDS = ["the", "hello", "world", "un", "##able", "##s", "##ing", "token", "tokens", "##izer", "ab", "abc", "##c", "a", "b", "c", "##b", "s", "h", "e", "l",
         "o", "##o", "##e", "##l", "\u6f22", "\u5b57", ".", ",", "!", "?", "'", "-", "do", "not", "don", "t", "re", "1", "2", "##3", "\u00e9", "cafe",
         "x", "y", "z", "##x", "##y", "##z", "##a", "\u0436", "fi"]
PIECES = ["\u2581", "\u2581the", "\u2581hello", "hello", "\u2581world", "world", "\u2581un", "able", "s", "ing", "\u2581token", "token", "izer", "a", "b",
          "c", "ab", "bc", "abc", "d", "e", "h", "l", "o", "lo", "\u6f22", "\u6f22\u5b57", ".", ",", "!", "n", "t", "r", "i", "x", "y", "w", "\u00e9", "1",
          "2", "12", "\u304c", "\u30a2", "e\u0301"]


def special(content, number, **more):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True, **more}


def unigram(byte_fallback, seed, unk=0):
    r = random.Random(seed)
    pieces = ["<unk>", "<s>"] + PIECES + ([f"<0x{b:02X}>" for b in range(256)] if byte_fallback else [])
    return {"type": "Unigram", "unk_id": unk, "byte_fallback": byte_fallback,
            "vocab": [[p, 0.0 if p[0] == "<" else round(-r.random() * 9, 3)] for p in pieces]}


def word_piece(**more):
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": {w: i for i, w in enumerate(["[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS)}, **more}


def word_level():
    return {"type": "WordLevel", "unk_token": "<unk>", "vocab": {w: i for i, w in enumerate(["<unk>", "<s>"] + WORDS + PIECES)
                                                                if w not in (["<unk>", "<s>"] + WORDS + PIECES)[:i]}}


def tokenizer(model, normalizer=None, splitter=None, decoder=None, added=(), post=None):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added), "normalizer": normalizer,
            "pre_tokenizer": splitter, "post_processor": post, "decoder": decoder, "model": model}


def sequence(key, *items):
    return {"type": "Sequence", key: list(items)}


METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
MAP = {"type": "Precompiled", "precompiled_charsmap": charsmap_text({
    "\t": " ", "\n": " ", "\r": " ", "\u3000": " ", "\u00a0": " ", "\u200b": "", "\ufb01": "fi", "\u212b": "\u00c5", "e\u0301": "\u00e9", "A": "a",
    "B": "b", "\u1e9e": "ss", "\u3002": ".", "\ufffd": "", "\u0915": "K", "\u1100": "G"})}
BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
CLS = {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}
SPECIALS = [special("[CLS]", 1), special("[SEP]", 2), special("[MASK]", 3, lstrip=True)]


def tokenizers():
    whitespace, pieces = {"type": "Whitespace"}, {"type": "WordPiece", "prefix": "##", "cleanup": True}
    plain = unigram(False, 7)
    old_words = {k: v for k, v in word_piece().items() if k != "type"}
    old_levels = {k: v for k, v in word_level().items() if k != "type"}
    out = {
        "unigram": tokenizer(unigram(False, 1), None, METASPACE, METASPACE, [special("<s>", 1)]),
        "unigram_bytes": tokenizer(unigram(True, 2), MAP, METASPACE,
                                   sequence("decoders", {"type": "ByteFallback"}, METASPACE), [special("<s>", 1)]),
        "unigram_no_split": tokenizer(unigram(True, 3), sequence("normalizers", {"type": "Nmt"}, {"type": "NFKC"}), None,
                                      sequence("decoders", {"type": "ByteFallback"}, {"type": "Fuse"})),
        "unigram_old": tokenizer({"vocab": plain["vocab"], "unk_id": 0}, None, METASPACE, METASPACE),
        "bert": tokenizer(word_piece(), BERT, {"type": "BertPreTokenizer"}, pieces, SPECIALS, CLS),
        "bert_cased": tokenizer(word_piece(max_input_chars_per_word=6), {**BERT, "lowercase": False, "strip_accents": True},
                                {"type": "BertPreTokenizer"}, {**pieces, "cleanup": False}, SPECIALS, CLS),
        "wordpiece_old": tokenizer(old_words, {"type": "StripAccents"}, whitespace, pieces),
        "wordlevel": tokenizer(word_level(), {"type": "Lowercase"}, whitespace),
        "wordlevel_old": tokenizer(old_levels, None, {"type": "WhitespaceSplit"}),
        "ctc": tokenizer(word_level(), None, {"type": "FixedLength", "length": 1},
                         {"type": "CTC", "pad_token": "<s>", "word_delimiter_token": "\u2581", "cleanup": True}, [special("<s>", 1)]),
        "scripts": tokenizer(unigram(True, 4), None, {"type": "UnicodeScripts"}, {"type": "ByteFallback"}),
        "fixed_length": tokenizer(unigram(True, 5), None, {"type": "FixedLength", "length": 3}, {"type": "ByteFallback"}),
        "strip_accents": tokenizer(unigram(True, 6), sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}), None,
                                   {"type": "ByteFallback"}),
    }
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        out["punctuation_" + behavior.lower()] = tokenizer(word_level(), None, {"type": "Punctuation", "behavior": behavior})
    return out


def string(r):
    return "".join(r.choice(WORDS + PIECES).replace("##", "").replace("\u2581", " ") if r.randrange(3) == 0 else r.choice(UNITS)
                   for _ in range(r.randint(1, 12)))


def main(folder):
    r = random.Random(20)
    with open(os.path.join(folder, "types.jsonl"), "w") as cases:
        for name, config in tokenizers().items():
            with open(os.path.join(folder, name + ".json"), "w") as file:
                json.dump(config, file, separators=(",", ":"))
            reference = Tokenizer.from_str(json.dumps(config))
            fallback = "ByteFallback" in json.dumps(config["decoder"])
            for number in range(120):
                text, template = string(r), number % 2 == 1
                ids = reference.encode(text, add_special_tokens=template).ids
                line = {"tokenizer": name, "text": text, "add_special_tokens": template, "ids": ids}
                decoded = reference.decode(ids, skip_special_tokens=False)
                if not (fallback and "\ufffd" in decoded):  # see DEVIATIONS.md
                    line["decoded"] = decoded
                cases.write(json.dumps(line, separators=(",", ":")) + "\n")


main(sys.argv[1])
