#!/usr/bin/env python3
"""Add to the tiny checkpoints what transformers computes in bfloat16.

usage: make_bf16.py FOLDER...

FOLDER/golden-bf16.safetensors, next to what make_tiny.py wrote, receives the logits and hidden_states.N of the same
prompt from the folder loaded with dtype=torch.bfloat16 and the attention that is transformers' default, as BF16; and
eager.logits with attention "eager". Which of torch's kernels run on a processor decides the order of sums, and so the
last bit of some values; the metadata says where they were made.
"""
import json, pathlib, platform, sys
import torch, transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

def run(where, prompt, **options):
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.bfloat16, **options).eval()
    with torch.no_grad():
        return model.config, model(torch.tensor([prompt]), output_hidden_states=True, use_cache=False)

def make(where):
    prompt = json.loads((where / "golden.json").read_text())["prompt"]
    config, out = run(where, prompt)
    part = slice(None) if len(prompt) <= 64 else slice(-16, None)
    tensors = {"logits": out.logits[0, part]} | {f"hidden_states.{i}": h[0, part] for i, h in enumerate(out.hidden_states)}
    tensors["eager.logits"] = run(where, prompt, attn_implementation="eager")[1].logits[0, part]
    assert all(t.dtype == torch.bfloat16 for t in tensors.values())
    made = dict(torch=torch.__version__, transformers=transformers.__version__, attention=config._attn_implementation,
                machine=f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}")
    save_file({name: t.contiguous() for name, t in tensors.items()}, where / "golden-bf16.safetensors", metadata=made)
    print(where.name, made["attention"], made["machine"], flush=True)

if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    for folder in sys.argv[1:]:
        make(pathlib.Path(folder))
