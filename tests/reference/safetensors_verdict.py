"""The official library's verdict on safetensors headers over one byte of data.

Made the table in tests/unit/test_safetensors.c, with safetensors 0.8.0. Reads a header a line, with C's escapes
(\\n, \\x7f, \\\\); prints true or false, and the library's message.

    printf '%s\\n' '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' | python safetensors_verdict.py
"""
import struct
import sys

from safetensors import deserialize

for line in sys.stdin:
    header = line.rstrip("\n").encode("latin-1").decode("unicode_escape").encode("latin-1")
    try:
        deserialize(struct.pack("<Q", len(header)) + header + b"\0")
        print("true")
    except Exception as error:
        print("false", error)
