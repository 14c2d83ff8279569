#!/usr/bin/env python3
"""Decoding speed of nl-generate against transformers in bfloat16, side by side.

usage: decode.py MODEL_DIR [--threads N] [--ids N] [--rounds N]     (nl-generate on PATH; needs torch and transformers)

Each round times both in turn: the seconds from the first to the last of N new ids after a prompt of ten, greedy.
Prints ids per second of each round and the ratio of the medians.
"""
import argparse, os, statistics, subprocess, time
import torch
from transformers import AutoModelForCausalLM

options = argparse.ArgumentParser()
options.add_argument("model")
options.add_argument("--threads", type=int, default=2)
options.add_argument("--ids", type=int, default=128)
options.add_argument("--rounds", type=int, default=5)
o = options.parse_args()
torch.set_num_threads(o.threads)
model = AutoModelForCausalLM.from_pretrained(o.model, dtype=torch.bfloat16).eval()
prompt = [504, 2365, 6354, 16438, 27003, 690, 260, 23790, 2767, 30]

def theirs():
    x, cache = torch.tensor([prompt]), None
    with torch.inference_mode():
        for i in range(o.ids):
            out = model(x, past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache, x = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
            if i == 0:
                start = time.perf_counter()
    return (o.ids - 1) / (time.perf_counter() - start)

def ours():
    run = subprocess.Popen(["nl-generate", "-m", o.model, "-n", str(o.ids), "--ignore-eos", "--threads", str(o.threads), "--text"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    run.stdin.write(" ".join(map(str, prompt)).encode() + b"\n")
    run.stdin.close()
    count, start = 0, None
    while chunk := os.read(run.stdout.fileno(), 1 << 16):
        count += chunk.count(b" ")
        if start is None and count:
            start, first = time.perf_counter(), count
        end = time.perf_counter()
    run.wait()
    return (count - first) / (end - start)

ours(), theirs()  # warm up
rows = [(ours(), theirs()) for _ in range(o.rounds)]
for mine, other in rows:
    print(f"nl-generate {mine:7.1f} ids/s   transformers bfloat16 {other:7.1f} ids/s   ratio {mine / other:.2f}")
mine, other = (statistics.median(column) for column in zip(*rows))
print(f"median: {mine:.1f} and {other:.1f} ids/s, ratio {mine / other:.2f} ({o.threads} threads, {o.ids} ids, {os.path.basename(os.path.normpath(o.model))})")
