#!/usr/bin/env python3
"""The logits of a random Llama checkpoint (tests/tools/random-model.c) by torch on the GPU, in float32, against nl-forward's.

usage: compare.py MODEL_DIR [--device cuda]        (nl-forward on PATH; needs torch)

Feeds 200 ids at once, then one by one from the 200th to the 216th; prints the largest difference of the last logits of
each, and exits 1 when one is above 3e-4 or an arg-max differs whose margin is above 1e-4.
"""
import argparse, json, mmap, pathlib, struct, subprocess, sys
import torch

options = argparse.ArgumentParser()
options.add_argument("model", type=pathlib.Path)
options.add_argument("--device", default="cuda")
o = options.parse_args()
torch.backends.cuda.matmul.allow_tf32 = False
config = json.loads((o.model / "config.json").read_text())
heads, kv, dim = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]

with open(o.model / "model.safetensors", "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8 : 8 + length])

def weight(name):
    begin, end = header[name]["data_offsets"]
    raw = torch.frombuffer(data, dtype=torch.bfloat16, count=(end - begin) // 2, offset=8 + length + begin)
    return raw.reshape(header[name]["shape"]).to(o.device).float()

def norm(x, name):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + config["rms_norm_eps"]) * weight(name)

def rotate(x, angle):
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)

@torch.inference_mode()
def logits(ids):
    n = len(ids)
    x = weight("model.embed_tokens.weight")[torch.tensor(ids, device=o.device)]
    frequency = 1.0 / config["rope_theta"] ** (torch.arange(0, dim, 2, device=o.device).float() / dim)
    angle = torch.arange(n, device=o.device).float()[:, None] * frequency
    mask = torch.full((n, n), float("-inf"), device=o.device).triu(1)
    for layer in range(config["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        h = norm(x, p + "input_layernorm.weight")
        q = (h @ weight(p + "self_attn.q_proj.weight").T).view(n, heads, dim).transpose(0, 1)
        k = (h @ weight(p + "self_attn.k_proj.weight").T).view(n, kv, dim).transpose(0, 1)
        v = (h @ weight(p + "self_attn.v_proj.weight").T).view(n, kv, dim).transpose(0, 1)
        q, k = rotate(q, angle), rotate(k, angle).repeat_interleave(heads // kv, 0)
        scores = (q @ k.transpose(1, 2) * dim**-0.5 + mask).softmax(-1)
        mixed = (scores @ v.repeat_interleave(heads // kv, 0)).transpose(0, 1).reshape(n, heads * dim)
        x = x + mixed @ weight(p + "self_attn.o_proj.weight").T
        h = norm(x, p + "post_attention_layernorm.weight")
        gate = torch.nn.functional.silu(h @ weight(p + "mlp.gate_proj.weight").T)
        x = x + (gate * (h @ weight(p + "mlp.up_proj.weight").T)) @ weight(p + "mlp.down_proj.weight").T
    x = norm(x, "model.norm.weight")
    head = "model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"
    return x @ weight(head).T

def ours(ids, chunk):
    run = subprocess.run(["nl-forward", "-m", o.model, "--device", o.device, "--prefill-chunk", str(chunk), "--json"],
                         input=" ".join(map(str, ids)) + "\n", capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        frame = json.loads(line)
        if frame["kind"] == "LGTS":
            return torch.tensor(frame["logits"])

ids = [(i * 7919 + 13) % config["vocab_size"] for i in range(216)]
want, failed = logits(ids).cpu(), False
for name, n, chunk in [("prefill", 200, 512), ("decode", 216, 8), ("one by one", 24, 1)]:
    got, row = ours(ids[:n], chunk), want[n - 1]
    difference, top = (got - row).abs().max().item(), row.topk(2).values
    same = got.argmax().item() == row.argmax().item()
    bad = difference > 3e-4 or (not same and top[0] - top[1] > 1e-4)
    failed |= bool(bad)
    print(f"{o.model.name}\t{name} of {n} ids\tlogits differ by {difference:.2e}\tmargin {top[0] - top[1]:.2e}\t"
          f"{'same choice' if same else 'ANOTHER CHOICE'}{'  FAILED' if bad else ''}")
sys.exit(failed)
