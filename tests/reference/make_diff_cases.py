#!/usr/bin/env python3
"""Write the data of st-diff's tests: the same values stored in each type, and as float64.

usage: make_diff_cases.py OUT_DIR

OUT_DIR/stored.safetensors   one tensor a type: every byte of the 8-bit types, a sample of bits of the wider ones
OUT_DIR/exact.safetensors    the same names, their values as float64, as torch converts them
Written with torch and safetensors, whose conversions are the reference.
"""
import pathlib, sys
import torch
from safetensors.torch import save_file

g = torch.Generator().manual_seed(1)
byte = torch.arange(256, dtype=torch.int32).to(torch.uint8)

def bits(width):
    """Random bits, and the odd ones: zeros, ones, infinities, NaN, subnormals."""
    raw = torch.randint(0, 256, (96 * width,), generator=g, dtype=torch.int32).to(torch.uint8)
    if width == 2:
        odd = [0, 0x8000, 1, 0x8001, 0x3c00, 0x3f80, 0x7c00, 0xfc00, 0x7f80, 0xff80, 0x7fff, 0x03ff, 0x0400]
        raw = torch.cat([raw, torch.tensor([b for v in odd for b in v.to_bytes(2, "little")], dtype=torch.uint8)])
    return raw

stored = {n: byte.clone().view(getattr(torch, n)) for n in
          ["uint8", "int8", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]}
stored |= {n: bits(2).view(getattr(torch, n)) for n in ["float16", "bfloat16", "int16", "uint16"]}
stored |= {n: bits(4).view(getattr(torch, n)) for n in ["float32", "int32", "uint32"]}
stored["float64"] = bits(8).view(torch.float64)
stored["int64"] = torch.tensor([0, -1, 2**53, -2**53, 123456789012])
stored["bool"] = torch.tensor([True, False])
exact = {n: t.to(torch.float64) for n, t in stored.items()}
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
save_file(stored, out / "stored.safetensors")
save_file(exact, out / "exact.safetensors")
