#!/usr/bin/env python3
"""Write cosines and sines of rotary embeddings as transformers computes them, float32.

usage: make_rotation.py > tests/data/rope/rotation.jsonl

One object a line: id, inv_freq [d/2], scale (attention_scaling), position, cos [d/2], sin [d/2], both times scale.
"""
import json
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

BASE = dict(hidden_size=128, num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=131072)
CASES = {
    "default": dict(rope_type="default", rope_theta=10000.0),
    "theta": dict(rope_type="default", rope_theta=1000000.0),
    "llama3": dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=8192),
    "yarn": dict(rope_type="yarn", rope_theta=1000000.0, factor=4.0, original_max_position_embeddings=32768),
}
exact = lambda t: [float(f"{v:.9g}") for v in t.tolist()]
for name, rope in CASES.items():
    embedding = LlamaRotaryEmbedding(LlamaConfig(**BASE, rope_parameters=rope))
    for position in (0, 1, 4095, 32767, 131071):
        cos, sin = embedding(torch.zeros(1), torch.tensor([[position]]))
        half = cos.shape[-1] // 2
        print(json.dumps(dict(id=name, inv_freq=exact(embedding.inv_freq), scale=embedding.attention_scaling, position=position,
                              cos=exact(cos[0, 0, :half]), sin=exact(sin[0, 0, :half]))))
