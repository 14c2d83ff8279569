#!/usr/bin/env python3
"""Record what transformers makes of switches in config.json: tests/data/switches/cases.tsv.

usage: make_switches.py [NAME...] > cases.tsv

Each case is one of the checkpoints of tests/data/models under an edited config.json. A line has the case's name, the
checkpoint, the first ids of generate(do_sample=False) after the checkpoint's own prompt, and the edited config.json.
Most keys here are ones that the architecture does not know, knows under another name, or spells in two ways: what
matters is which of them transformers obeys.
"""
import json, pathlib, shutil, sys, tempfile, warnings
import torch, transformers
from transformers import AutoModelForCausalLM

MODELS = pathlib.Path(__file__).parent.parent / "data" / "models"
IDS = 32
GONE = object()
FACTORS = {"short_factor": [1.0, 1.05, 1.2, 1.3, 1.6, 2.0], "long_factor": [1.0, 1.3, 2.0, 3.0, 5.0, 8.0]}
FULL, SLIDING = "full_attention", "sliding_attention"
MIXED = [FULL, SLIDING, FULL, SLIDING, FULL, FULL, SLIDING]
FLAT = {"rope_type": "linear", "factor": 4.0, "rope_theta": 3000.0}

# name: (checkpoint, edits of config.json)
CASES = {
    # Keys of other architectures.
    "llama, GPT-2's epsilon": ("llama", {"layer_norm_epsilon": 1e-5}),
    "llama, GPT-2's activation": ("llama", {"activation_function": "gelu"}),
    "llama, Gemma's activation": ("llama", {"hidden_activation": "gelu"}),
    "llama, another max_window_layers": ("llama", {"use_sliding_window": True, "max_window_layers": 1}),
    "gpt2, Llama's epsilon": ("gpt2", {"layer_norm_epsilon": GONE, "rms_norm_eps": 0.5}),
    "gpt2, Llama's activation": ("gpt2", {"activation_function": GONE, "hidden_act": "silu"}),
    "gpt2, Llama's names of sizes": ("gpt2", {"n_positions": GONE, "max_position_embeddings": 256, "n_layer": GONE, "num_hidden_layers": 3,
                                              "n_embd": GONE, "hidden_size": 60, "n_head": GONE, "num_attention_heads": 5}),
    "gpt2, Llama's intermediate_size": ("gpt2", {"n_inner": GONE, "intermediate_size": 50}),
    "gpt2, KV heads and head_dim": ("gpt2", {"num_key_value_heads": 1, "head_dim": 10}),
    "gpt2, reorder_and_upcast_attn": ("gpt2", {"reorder_and_upcast_attn": True, "scale_attn_by_inverse_layer_idx": True}),
    "gpt2, scores not scaled": ("gpt2", {"scale_attn_weights": False}),
    "gemma, Gemma 2's activation": ("gemma", {"hidden_activation": "silu"}),
    "gemma, gelu": ("gemma", {"hidden_act": "gelu", "hidden_activation": None}),
    "gemma2, Llama's activation": ("gemma2", {"hidden_act": "silu"}),
    "gemma2, only Llama's activation": ("gemma2", {"hidden_act": "silu", "hidden_activation": GONE}),
    "mistral, attention_bias": ("mistral-window", {"attention_bias": True}),
    "mistral, mlp_bias": ("mistral-window", {"mlp_bias": True}),
    "phi3, attention_bias": ("phi3-longrope", {"attention_bias": True}),
    "olmo2, mlp_bias": ("olmo2", {"mlp_bias": True}),
    "qwen3, mlp_bias": ("qwen3", {"mlp_bias": True}),
    "gemma, mlp_bias": ("gemma", {"mlp_bias": True}),
    "qwen2, attention_bias": ("qwen2-yarn", {"attention_bias": False}),
    # Windows.
    "mistral, layer_types": ("mistral-window", {"layer_types": [FULL, SLIDING, FULL]}),
    "mistral, no layer_types": ("mistral-window", {"layer_types": None}),
    "mistral, use_sliding_window": ("mistral-window", {"use_sliding_window": False}),
    "smollm3, layer_types without use_sliding_window": ("smollm3-window", {"use_sliding_window": False, "sliding_window": 16, "layer_types": [SLIDING, FULL, SLIDING, FULL]}),
    "smollm3, layer_types": ("smollm3-window", {"use_sliding_window": True, "sliding_window": 16, "layer_types": [SLIDING, FULL, SLIDING, FULL]}),
    "smollm3, neither": ("smollm3-window", {"use_sliding_window": False, "sliding_window": 16, "layer_types": GONE}),
    "smollm3, no window": ("smollm3-window", {"use_sliding_window": True, "sliding_window": None, "layer_types": GONE}),
    "qwen2, max_window_layers": ("qwen2-yarn", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2, "layer_types": None}),
    "qwen2, no window": ("qwen2-yarn", {"use_sliding_window": False, "sliding_window": 8, "max_window_layers": 0, "layer_types": GONE}),
    "qwen3, window": ("qwen3", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1, "layer_types": GONE}),
    "phi3, window": ("phi3-longrope", {"sliding_window": 8}),
    "gemma2, layer_types": ("gemma2", {"layer_types": [FULL, FULL, SLIDING]}),
    "gemma2, Gemma 3's pattern": ("gemma2", {"layer_types": GONE, "sliding_window_pattern": 3}),
    "gemma3, pattern": ("gemma3", {"layer_types": GONE, "sliding_window_pattern": 2}),
    "gemma3, pattern under another name": ("gemma3", {"layer_types": GONE, "_sliding_window_pattern": 2}),
    "gemma3, all layers full": ("gemma3", {"rope_parameters": GONE, "layer_types": [FULL] * 7}),
    "gemma3, all layers slide": ("gemma3", {"rope_parameters": GONE, "layer_types": [SLIDING] * 7}),
    # Soft-caps and scales.
    "gemma3, cap of the scores": ("gemma3", {"attn_logit_softcapping": 1.5}),
    "gemma3, cap of the logits": ("gemma3", {"final_logit_softcapping": 1.5}),
    "gemma2, caps by default": ("gemma2", {"attn_logit_softcapping": GONE, "final_logit_softcapping": GONE, "layer_types": [FULL, FULL, SLIDING]}),
    "gemma2, no caps": ("gemma2", {"attn_logit_softcapping": None, "final_logit_softcapping": None}),
    "gemma2, query_pre_attn_scalar by default": ("gemma2", {"query_pre_attn_scalar": GONE}),
    "granite, multipliers by default": ("granite", {"attention_multiplier": GONE, "embedding_multiplier": GONE, "residual_multiplier": GONE, "logits_scaling": GONE}),
    "granite, negative multipliers": ("granite", {"embedding_multiplier": -1.5, "logits_scaling": -2.0}),
    # Rope.
    "llama, rope_theta in both places": ("llama", {"rope_theta": 777.0}),
    "llama, rope_scaling beside rope_parameters": ("llama", {"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_theta": 777.0}),
    "llama, empty rope_scaling": ("llama", {"rope_scaling": {}, "rope_parameters": None, "rope_theta": 500.0}),
    "llama, both types": ("llama", {"rope_parameters": {"type": "linear", "rope_type": "default", "factor": 4.0, "rope_theta": 300.0}}),
    "llama, partial_rotary_factor": ("llama", {"partial_rotary_factor": 0.5}),
    "llama, the original length in both places": ("llama", {"original_max_position_embeddings": 32, "rope_parameters": {
        "rope_type": "llama3", "factor": 4.0, "rope_theta": 10000.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}),
    "llama, yarn's scales": ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 300.0, "mscale": 0.7, "mscale_all_dim": 0.3,
                                                           "beta_fast": 8, "beta_slow": 3, "truncate": False, "original_max_position_embeddings": 64}}),
    "llama, longrope across its border": ("llama", {"rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 30, **FACTORS}}),
    "llama, dynamic": ("llama", {"max_position_embeddings": 64, "original_max_position_embeddings": 16, "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 300.0}}),
    "phi3, the original length in both places": ("phi3-longrope", {"original_max_position_embeddings": 40, "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 300.0, "original_max_position_embeddings": 16, **FACTORS}}),
    "phi3, longrope's scales": ("phi3-longrope", {"rope_parameters": {"rope_type": "longrope", "rope_theta": 300.0, "attention_factor": 1.7, "factor": 7.0, **FACTORS}}),
    "phi3, yarn": ("phi3-longrope", {"rope_parameters": GONE, "rope_theta": 300.0, "rope_scaling": {"type": "yarn", **FACTORS}}),
    "phi3, partial_rotary_factor in both places": ("phi3-longrope", {"partial_rotary_factor": 0.5, "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 1.0}}),
    "phi3, partial_rotary_factor": ("phi3-longrope", {"partial_rotary_factor": 0.5, "rope_parameters": {"rope_type": "default", "rope_theta": 300.0}}),
    "gemma3, rope_parameters for all layers": ("gemma3", {"layer_types": MIXED, "rope_parameters": FLAT}),
    "gemma3, rope_scaling for all layers": ("gemma3", {"layer_types": MIXED, "rope_parameters": GONE, "rope_theta": 3000.0, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "gemma3, rope_scaling beside rope_parameters": ("gemma3", {"layer_types": MIXED, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "gemma3, no rope": ("gemma3", {"layer_types": MIXED, "rope_parameters": GONE}),
    "gemma3, thetas": ("gemma3", {"layer_types": MIXED, "rope_parameters": GONE, "rope_theta": 3000.0, "rope_local_base_freq": 300.0}),
    "gemma3, thetas outside": ("gemma3", {"layer_types": MIXED, "rope_theta": 500.0, "rope_local_base_freq": 200.0, "rope_parameters": {FULL: {"rope_type": "linear", "factor": 4.0}, SLIDING: {"rope_type": "default"}}}),
    "gemma3, rope of full layers only": ("gemma3", {"layer_types": MIXED, "rope_parameters": {FULL: FLAT}}),
    "gemma3, rope of sliding layers only": ("gemma3", {"layer_types": MIXED, "rope_parameters": {SLIDING: FLAT}}),
    "gemma3, yarn": ("gemma3", {"layer_types": MIXED, "original_max_position_embeddings": 32, "rope_parameters": {FULL: {"rope_type": "yarn", "factor": 4.0, "rope_theta": 3000.0, "original_max_position_embeddings": 64}, SLIDING: {"rope_type": "default", "rope_theta": 300.0}}}),
    "gemma3, dynamic": ("gemma3", {"layer_types": MIXED, "max_position_embeddings": 30, "rope_parameters": {FULL: {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 3000.0}, SLIDING: {"rope_type": "default", "rope_theta": 300.0}}}),
    # What changes nothing.
    "llama, pretraining_tp": ("llama", {"pretraining_tp": 2, "attention_dropout": 0.5, "use_cache": False, "clip_qkv": 0.1}),
    "llama, a second architecture": ("llama", {"architectures": ["LlamaForCausalLM", "MistralForCausalLM"]}),
    "llama, head_dim null": ("llama", {"head_dim": None}),
}


def run(model, edits):
    config = json.loads((MODELS / model / "config.json").read_text())
    for key, value in edits.items():
        if value is GONE:
            config.pop(key, None)
        else:
            config[key] = value
    prompt = torch.tensor([json.loads((MODELS / model / "golden.json").read_text())["prompt"]])
    with tempfile.TemporaryDirectory() as where:
        for file in MODELS.joinpath(model).glob("model*"):
            shutil.copy(file, where)
        pathlib.Path(where, "config.json").write_text(json.dumps(config))
        hf = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        out = hf.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=IDS, do_sample=False, eos_token_id=None,
                          pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    top = torch.stack(out.logits)[:, 0].float().topk(2).values
    margin = (top[:, 0] - top[:, 1]).min().item()
    return out.sequences[0, prompt.shape[1]:].tolist(), margin, config


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    for name in sys.argv[1:] or CASES:
        model, edits = CASES[name]
        ids, margin, config = run(model, edits)
        plain = json.loads((MODELS / model / "golden.json").read_text())["greedy"][:IDS]
        print(f"{name}: margin {margin:.3g}, {len(set(ids))} distinct ids, {'as' if ids == plain else 'other than'} without it", file=sys.stderr)
        if margin < 1e-3:
            raise SystemExit(f"{name}: the margin is too small")
        print(name, model, " ".join(map(str, ids)), json.dumps(config), sep="\t", flush=True)
