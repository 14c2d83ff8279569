#!/usr/bin/env python3
"""Writes tests/data/tokenizer/regex.jsonl: python make_regex.py > regex.jsonl; needs tokenizers 0.23.3."""
import json

from tokenizers import Regex, pre_tokenizers

TEXTS = [
    "aA b1\r\n\u0663\u00e9\u6f22\u03c2_-+ab\u200d{]bcc", "1234567 12 123", "  x\n \n y  \u3000\u2028z ",
    "foo 'S '\u017f 'LL don't I'M \u212a", "ab\nab\n", "aaa  bbb",
    "\u00c0\u00e9\u00ee\u01c5\u02b0\u00aa\u2167\u00b2\u0301\u0903\u1c89\u1c8a\U00011f04\U00031350 \U0001171e\u180e\u0085",
    "x.y,z;(w)<=>^~$\u00a2\u2211", "a{2,3}b{,2}", "\n\n\r\n a", "\u00b9\u00bd a\u0301_\u203f\u00b7\u0660\u2460",
]
PATTERNS = [
    r"\d{1,3}+", r"\d{2}?", r"\d{1,2}?", r"^a", r"b$", r"\h", r"\w", r"\W+", r"\d", r"\D", r"\s+", r"\S+", r"[[:alpha:]]",
    r"[[:punct:]]+", r"[^[:alnum:]]", r"\b", r"\B", r"[a-z&&[^b]]", r"[^a-c&&[b-z]]", r"[a[bc]]+", r"\p{Alphabetic}+",
    r"\p{^L}", r"[^\p{^L}]", r"[\P{L}x]+", r"\p{Letter}", r"\P{L}+", r"\p{Mn}", r"\p{Mc}", r"\p{M}+", r"\p{Lu}|\p{Lt}",
    r"[\p{Lm}\p{Lo}]", r"\p{N}", r"\p{Nd}", r"\p{P}", r"\p{S}", r"\p{Z}", r"\p{C}", r"\p{Cn}", "{", "]", "a{,2}", "a{2,3}",
    r"(?i:'s|'ll|'m)", "(?i)k", "(?m)b.", "b.", "(?i:[^k])", r"\x41", r"\u0041", r"\x{41}", "[]a]", r"[a\]b]", "a*?b",
    "a++b", "(?>a+)b?", "(?<=a)b", "(?<!a)b", "a(?=b)", "a(?!b)", r"\Aa", r"b\z", r"\n\Z", "(a|b)+", "(?:ab)*+",
    r"[\s\S]{2}", r"[^\r\n\p{L}\p{N}]?\p{L}+", r"\s+(?!\S)|\s+", r"[\w.]+", r"\p{Any}", r"[\t-\r]", "[+-]", "[a-]", r"\-", "a|",
    r"\p{Space}", r"[\h_]+", r"\p{No}", r"\p{LC}+", r"[\W]", r"[^\w]", r"[\p{Word}]+", r"\p{^Word}+", "[[:word:]]+",
    r"\P{Word}", "[[:^word:]]", r"[\p{Punct}]+", r"\p{Punct}+", "[^[:punct:]]+", r"\d+(?=\w)", "[[:^alpha:][:digit:]]",
    r"\p{Han}+", r"\p{Hani}", r"[\p{Latin}\p{Han}]+", r"[^\p{Greek}]+", r"\P{Cyrillic}", r"\p{^Han}+", r"\p{Lower}+", "[[:lower:]]+", "[[:upper:]]",
    r"\p{Emoji}", "[[:print:]]+", "[[:graph:]]+", "[[:blank:]]", "[[:cntrl:]]", "a(?i)b|c", "(a(?i)b|c)d?", r"(?<name>a)b*", "b(?#comment)c",
    r"\R", r"\N+", r"\O", r"(?i:\p{Lu})", r"(?i:\p{Lu}b)", r"(?i:[\p{Nd}a-c])", r"(?i:[^\p{Lu}])", r"(?i:[^\P{Lu}])", "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"\p{Hiragana}|\p{Katakana}|\p{Hangul}", r"[^\S\r\n]+", r"(?:\p{Han}|\d)++x?",
    r"(?:a{2})?", r"a**", r"(?:\d{2}){2}+", r"[\]\-a]+", r"[^\]]",
]

for pattern in PATTERNS:
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    for text in TEXTS:
        pieces = [piece for piece, _ in split.pre_tokenize_str(text)]
        print(json.dumps({"regex": pattern, "text": text, "pieces": pieces}))
