#!/usr/bin/env python3
"""Write tiny random checkpoints in Hugging Face layout, each with its golden output.

usage: make_tiny.py OUT_DIR [NAME...]

For every NAME (default: all of SPECS) OUT_DIR/NAME/ receives
  config.json, generation_config.json, model*.safetensors   the checkpoint
  golden.json          prompt ids, ids from generate(do_sample=False), margin, versions
  golden.safetensors   float32: logits [T, vocab] and hidden_states.{0..L} [T, hidden] of the
                       prompt (its last 16 positions where it is longer than 64);
                       hidden_states.L is after the final norm, as transformers returns it
The golden output comes from the folder, loaded anew with dtype=float32 and eager attention on the CPU.
`margin` is the smallest gap between the best and second-best logit over the greedy run; seeds are tried
until it exceeds 2e-3 and the run is varied, so that a correct program cannot flip an id.
Sizes are odd on purpose (nothing is a power of two, sqrt(hidden) is irrational) and epsilon is large, so
that a misplaced epsilon, a padded row, or a scale rounded to the wrong type shows in the logits.
"""
import json, pathlib, sys, warnings
import torch, transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

BASE = dict(vocab_size=317, hidden_size=72, intermediate_size=50, num_hidden_layers=3,
            num_attention_heads=6, num_key_value_heads=2, head_dim=12, max_position_embeddings=256,
            rms_norm_eps=1e-2, bos_token_id=1, eos_token_id=None, pad_token_id=0)

MARGIN = 2e-3

def rope(kind, theta=10000.0, **kw):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **kw))

LLAMA3 = rope("llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
# name: (model_type, dtype on disk, config overrides, shard size or None[, prompt length])
SPECS = {
    "llama": ("llama", "float32", {**BASE, **rope("default")}, None),
    "llama-bf16-llama3rope-tied-sharded": ("llama", "bfloat16", {**BASE, **LLAMA3, "tie_word_embeddings": True, "head_dim": 20}, "60KB"),
    "llama-f16-linear-bias": ("llama", "float16", {**BASE, **rope("linear", factor=4.0), "attention_bias": True, "mlp_bias": True}, None),
    "llama-dynamic": ("llama", "float32", {**BASE, **rope("dynamic", factor=2.0), "max_position_embeddings": 32}, None),
    "llama-long": ("llama", "bfloat16", {**BASE, **rope("llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=256), "max_position_embeddings": 2048, "num_attention_heads": 3, "num_key_value_heads": 1, "hidden_size": 36}, None, 700),
    "qwen2-yarn": ("qwen2", "bfloat16", {**BASE, **rope("yarn", 1000000.0, factor=4.0, original_max_position_embeddings=64), "tie_word_embeddings": True}, None),
    "qwen3": ("qwen3", "bfloat16", {**BASE, **rope("default", 1000000.0), "head_dim": 20}, None),
    "mistral-window": ("mistral", "bfloat16", {**BASE, **rope("default"), "sliding_window": 16}, None),
    "mistral-window-long": ("mistral", "float16", {**BASE, **rope("default"), "sliding_window": 100, "max_position_embeddings": 1024}, None, 300),
    "gpt2": ("gpt2", "float32", dict(vocab_size=317, n_positions=256, n_embd=60, n_layer=3, n_head=5, layer_norm_epsilon=1e-2, bos_token_id=1, eos_token_id=None), None),
    "phi3-longrope": ("phi3", "bfloat16", {**BASE, "max_position_embeddings": 128, "original_max_position_embeddings": 32, "sliding_window": None,
              **rope("longrope", short_factor=[1.0, 1.05, 1.2, 1.3, 1.6, 2.0], long_factor=[1.0, 1.3, 2.0, 3.0, 5.0, 8.0])}, None),
    "gemma2": ("gemma2", "bfloat16", {**BASE, "hidden_size": 60, "head_dim": 20, "query_pre_attn_scalar": 36, "sliding_window": 16, "attn_logit_softcapping": 8.0, "final_logit_softcapping": 6.0, **rope("default")}, None),
    # Switches that the ones above do not turn; tests/data/models/README.md says which.
    "gemma": ("gemma", "float16", {**BASE, "hidden_size": 52, "head_dim": 20, "num_attention_heads": 3, "num_key_value_heads": 1, **rope("default")}, None),
    "gemma2-long": ("gemma2", "float32", {**BASE, "hidden_size": 51, "head_dim": 12, "num_attention_heads": 3, "num_key_value_heads": 1, "num_hidden_layers": 3, "query_pre_attn_scalar": 9,
              "sliding_window": 80, "attn_logit_softcapping": 4.0, "final_logit_softcapping": None, "max_position_embeddings": 1024, **rope("default")}, None, 701),
    "gemma3-long": ("gemma3_text", "bfloat16", {**BASE, "hidden_size": 45, "head_dim": 12, "num_attention_heads": 3, "num_key_value_heads": 1, "query_pre_attn_scalar": 3, "sliding_window": 100,
              "num_hidden_layers": 3, "max_position_embeddings": 1024, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
              "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}, None, 700),
    "olmo2": ("olmo2", "bfloat16", {**BASE, "hidden_size": 60, "num_attention_heads": 5, "num_key_value_heads": 1, **rope("default", 500000.0)}, None),
    "granite": ("granite", "float32", {**BASE, "hidden_size": 60, "num_attention_heads": 5, "num_key_value_heads": 5, "attention_bias": True, "mlp_bias": True,
              "embedding_multiplier": 1.3, "attention_multiplier": 0.21, "residual_multiplier": 0.7, "logits_scaling": 0.6, **LLAMA3}, None),
    "smollm3": ("smollm3", "bfloat16", {**BASE, "num_hidden_layers": 5, "no_rope_layer_interval": 2, "attention_bias": True, "tie_word_embeddings": True, **rope("default", 2000000.0)}, None),
    "smollm3-window": ("smollm3", "float16", {**BASE, "num_hidden_layers": 4, "no_rope_layers": [1, 0, 0, 1], "use_sliding_window": True, "sliding_window": 40, "tie_word_embeddings": False,
              **rope("yarn", 10000.0, factor=4.0, original_max_position_embeddings=64, beta_fast=16.0, beta_slow=2.0, truncate=False)}, None),
    "phi3-partial": ("phi3", "float16", {**BASE, "hidden_size": 96, "num_attention_heads": 6, "head_dim": 16, "max_position_embeddings": 256, "original_max_position_embeddings": 64,
              "sliding_window": 200, "tie_word_embeddings": True,
              **rope("longrope", partial_rotary_factor=0.75, short_factor=[1.0, 1.1, 1.2, 1.4, 1.5, 1.8], long_factor=[1.0, 1.5, 2.5, 3.0, 4.0, 6.0])}, None),
    "qwen2-window": ("qwen2", "float32", {**BASE, "hidden_size": 36, "num_attention_heads": 3, "num_key_value_heads": 1, "use_sliding_window": True, "sliding_window": 70, "max_window_layers": 1, "max_position_embeddings": 512, **rope("default")}, None, 300),
    "qwen3-types": ("qwen3", "float16", {**BASE, "attention_bias": True, "use_sliding_window": True, "sliding_window": 9, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "tie_word_embeddings": True, **rope("linear", factor=2.0)}, None),
    "gpt2-erf": ("gpt2", "bfloat16", dict(vocab_size=317, n_positions=128, n_embd=36, n_layer=3, n_head=3, n_inner=50, activation_function="gelu", scale_attn_by_inverse_layer_idx=True, layer_norm_epsilon=1e-2, bos_token_id=1, eos_token_id=None), None),
    "gemma3": ("gemma3_text", "bfloat16", {**BASE, "hidden_size": 60, "head_dim": 20, "query_pre_attn_scalar": 28, "sliding_window": 16, "num_hidden_layers": 7,
              "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1000000.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}, None),
}

# Written with config.json as older files spell it.
OLD_SPELLING = ("granite", "gemma2-long", "gemma3-long", "smollm3-window", "phi3-partial", "qwen2-window")

def respell(path):
    """rope_parameters to rope_theta and rope_scaling, dtype to torch_dtype; layer types that the class derives left out."""
    config = json.loads(path.read_text())
    ropes = config.pop("rope_parameters")
    config["torch_dtype"] = config.pop("dtype")
    if "full_attention" in ropes:
        config["rope_local_base_freq"] = ropes["sliding_attention"]["rope_theta"]
        config["sliding_window_pattern"] = 2
        ropes = ropes["full_attention"]
    config["rope_theta"] = ropes.pop("rope_theta")
    if "partial_rotary_factor" in ropes:
        config["partial_rotary_factor"] = ropes.pop("partial_rotary_factor")
    kind, key = ropes.pop("rope_type"), "rope_type" if config["model_type"] == "gemma3_text" else "type"
    if kind == "longrope":
        ropes.pop("original_max_position_embeddings", None)
    config["rope_scaling"] = None if kind == "default" else {key: kind, **ropes}
    config.pop("layer_types", None)
    path.write_text(json.dumps(config, indent=1) + "\n")

def randomise(model, seed):
    """Weights strong enough that every layer, head and position changes the greedy output."""
    g = torch.Generator().manual_seed(seed)
    kind = model.config.model_type
    embed = 0.06 if "gemma" in kind else 0.1 if kind == "gpt2" else 0.5
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1 and not any(w in name for w in ("embed", "wte", "wpe")):
                inputs = p.shape[0] if kind == "gpt2" else p.shape[-1]
                p.copy_(torch.randn(p.shape, generator=g) * 1.6 / inputs ** 0.5)
            elif p.dim() > 1:
                p.copy_(torch.randn(p.shape, generator=g) * embed)
            elif "norm" in name or "ln_" in name:
                p.copy_((0.0 if "gemma" in kind or name.endswith("bias") else 1.0) + 0.3 * torch.randn(p.shape, generator=g))
            else:
                p.copy_(0.2 * torch.randn(p.shape, generator=g))

def is_varied(ids, model_type):
    return len(set(ids)) > (12 if model_type == "gpt2" else 20)

def is_promising(model, prompt, n, dtype):
    """A greedy run in memory, given up at the first margin that is too small: most seeds fail early.
    Frequencies that depend on the length make it differ from generate(); golden() decides."""
    ids, cache, step = [], None, torch.tensor([prompt])
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(dtype))
        for _ in range(n):
            out = model(step, past_key_values=cache, use_cache=True)
            cache, top = out.past_key_values, out.logits[0, -1].topk(2)
            if top.values[0] - top.values[1] <= MARGIN:
                return False
            ids.append(top.indices[0].item())
            step = top.indices[:1].view(1, 1)
    return is_varied(ids, model.config.model_type)

def golden(where, prompt, n):
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, attn_implementation="eager").eval()
    ids = torch.tensor([prompt])
    with torch.no_grad():
        first = model(ids, output_hidden_states=True, use_cache=False)
        run = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, do_sample=False,
                             eos_token_id=None, pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    top = torch.stack(run.logits)[:, 0].float().topk(2).values
    return run.sequences[0, len(prompt):].tolist(), (top[:, 0] - top[:, 1]).min().item(), first

def make(out, name, first_seed=0):
    model_type, disk, cfg, shard, *rest = SPECS[name]
    length, dtype = rest[0] if rest else 24, getattr(torch, disk)
    config = AutoConfig.for_model(model_type, **cfg)
    where = pathlib.Path(out) / name
    where.mkdir(parents=True, exist_ok=True)
    varies = cfg.get("rope_parameters", {}).get("rope_type") in ("dynamic", "longrope")
    for seed in range(first_seed, first_seed + 500):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        randomise(model, seed)
        g = torch.Generator().manual_seed(1000 + seed)
        prompt = [1] + torch.randint(3, config.vocab_size, (length - 1,), generator=g).tolist()
        if not varies and not is_promising(model, prompt, 64, dtype):
            continue
        for old in where.glob("model*"): old.unlink()
        model.to(dtype).save_pretrained(where, **({"max_shard_size": shard} if shard else {}))
        if name in OLD_SPELLING:
            respell(where / "config.json")
        ids, margin, first = golden(where, prompt, 64)
        if margin > MARGIN and is_varied(ids, model_type):
            break
    else:
        raise SystemExit(f"{name}: no seed gave a stable, varied greedy run")
    part = slice(None) if length <= 64 else slice(-16, None)
    tensors = {"logits": first.logits[0, part].float().contiguous()}
    tensors |= {f"hidden_states.{i}": h[0, part].float().contiguous() for i, h in enumerate(first.hidden_states)}
    save_file(tensors, where / "golden.safetensors")
    (where / "golden.json").write_text(json.dumps(dict(
        prompt=prompt, greedy=ids, margin=margin, seed=seed,
        torch=torch.__version__, transformers=transformers.__version__)) + "\n")
    print(f"{name}: seed {seed}, margin {margin:.4f}, {len(set(ids))} distinct ids", flush=True)

if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    for name in sys.argv[2:] or SPECS:
        make(sys.argv[1], name)
