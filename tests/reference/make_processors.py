#!/usr/bin/env python3
"""Writes tests/data/sampling/processors.jsonl: rows of logits, a history, settings, and the scores that transformers makes.

    make_processors.py OUTPUT

Made with transformers 5.24.0 and torch 2.15.0 (CPU). Two runs give the same bytes. Fields: `logits` and `scores` are float32
spelt as hexadecimal bits (ffffffff: -infinity), `ids` the history, `n_prompt` how many of them are the prompt, `eos`, and either `generation` (settings
that _get_logits_processor turns into processors in its own order) or `chain` ([name, value], warpers in this order), `limit` of new ids.
"""
import json
import sys
import warnings

import numpy as np
import torch
from transformers import GenerationConfig
from transformers.generation import logits_process as lp
from transformers.generation.utils import GenerationMixin

warnings.filterwarnings("ignore")
WARPERS = {
    "temperature": lambda v: lp.TemperatureLogitsWarper(v),
    "top_k": lambda v: lp.TopKLogitsWarper(v),
    "top_p": lambda v: lp.TopPLogitsWarper(v),
    "min_p": lambda v: lp.MinPLogitsWarper(v),
    "typical_p": lambda v: lp.TypicalLogitsWarper(v),
    "epsilon_cutoff": lambda v: lp.EpsilonLogitsWarper(v),
    "eta_cutoff": lambda v: lp.EtaLogitsWarper(v),
    "repetition_penalty": lambda v: lp.RepetitionPenaltyLogitsProcessor(v),
    "no_repeat_ngram_size": lambda v: lp.NoRepeatNGramLogitsProcessor(v),
}


class Model(GenerationMixin):
    """As much of a decoder-only model as _get_logits_processor asks for."""

    class config:
        is_encoder_decoder = False

    def __init__(self):
        pass


def bits(row):
    return "".join(f"{b:08x}" for b in np.asarray(row, dtype=np.float32).view(np.uint32))


def by_generation(case, scores, ids):
    config = GenerationConfig(**case["generation"], do_sample=False)
    config._eos_token_tensor = torch.tensor(case["eos"]) if case["eos"] else None
    if config.min_new_tokens is not None:  # as _prepare_generated_length does
        config.min_length = config.min_new_tokens + case["n_prompt"]
    config.max_length = case["n_prompt"] + case.get("limit", 1 << 20)
    prompt = ids[:, : case["n_prompt"]]
    return Model()._get_logits_processor(
        generation_config=config, input_ids_seq_length=case["n_prompt"], encoder_input_ids=prompt, device="cpu"
    )(ids, scores)


def run(case, logits):
    scores, ids = torch.tensor(logits)[None], torch.tensor([case["ids"]], dtype=torch.long)
    if "generation" in case:
        return by_generation(case, scores, ids)[0].numpy()
    for name, value in case["chain"]:
        scores = WARPERS[name](value)(ids, scores)
    return scores[0].numpy()


def cases(rng):
    generations = [
        {"repetition_penalty": 1.3}, {"repetition_penalty": 0.7}, {"encoder_repetition_penalty": 1.4},
        {"no_repeat_ngram_size": 1}, {"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 3}, {"no_repeat_ngram_size": 30},
        {"encoder_no_repeat_ngram_size": 2}, {"bad_words_ids": [[3], [1, 2], [5, 1, 7]]}, {"bad_words_ids": [[0], [4]]},
        {"sequence_bias": [[[3], -1.5], [[1, 2], 2.25], [[2], 0.125], [[9], 4.0]]}, {"min_length": 14}, {"min_length": 5},
        {"min_new_tokens": 3}, {"min_new_tokens": 30}, {"min_length": 50, "min_new_tokens": 2}, {"forced_bos_token_id": 3},
        {"forced_eos_token_id": 0}, {"forced_eos_token_id": [0, 4]}, {"exponential_decay_length_penalty": [2, 1.15]},
        {"exponential_decay_length_penalty": [200, 1.15]}, {"suppress_tokens": [1, 4, 9, 500]}, {"begin_suppress_tokens": [2, 3, 0]},
        {"forced_bos_token_id": 3, "begin_suppress_tokens": [5]},
        {"repetition_penalty": 1.2, "no_repeat_ngram_size": 2, "bad_words_ids": [[1], [2, 2]], "min_new_tokens": 9,
         "suppress_tokens": [7], "sequence_bias": [[[6], 3.0]], "exponential_decay_length_penalty": [1, 1.01]},
    ]
    shapes = [(12, 8, 100), (12, 12, 100), (1, 1, 100), (13, 8, 6)]  # ids, prompt, limit
    for generation in generations:
        for count, n_prompt, limit in shapes:
            ids = rng.integers(0, 10, count).tolist()
            yield {"ids": ids, "n_prompt": n_prompt, "limit": limit, "eos": [0, 4], "generation": generation}, 24
    chains = [
        [["temperature", 0.7]], [["temperature", 1.7], ["top_k", 5]], [["top_k", 1]], [["top_p", 0.9]], [["top_p", 0.5]], [["top_p", 0.05]],
        [["top_p", 0.999]], [["min_p", 0.05]], [["min_p", 0.5]], [["typical_p", 0.2]], [["typical_p", 0.9]], [["typical_p", 0.99]],
        [["epsilon_cutoff", 0.02]], [["eta_cutoff", 0.02]], [["eta_cutoff", 0.3]], [["epsilon_cutoff", 0.9]],
        [["repetition_penalty", 1.2], ["temperature", 0.8], ["top_k", 20], ["top_p", 0.95], ["min_p", 0.02]],
        [["top_p", 0.9], ["temperature", 0.5], ["top_p", 0.9], ["typical_p", 0.9], ["eta_cutoff", 0.001]],
        [["no_repeat_ngram_size", 2], ["temperature", 3.0], ["typical_p", 0.5], ["top_k", 3]],
    ]
    for chain in chains:
        for n in (7, 40, 150):
            yield {"ids": rng.integers(0, 10, 12).tolist(), "n_prompt": 12, "eos": [], "chain": chain}, n


def main(path):
    torch.set_num_threads(1)
    rng = np.random.Generator(np.random.PCG64(3))
    with open(path, "w") as out:
        for case, n in cases(rng):
            logits = (rng.standard_normal(n) * 3).astype(np.float32)
            logits[rng.integers(0, n, n // 10)] = -np.inf
            case |= {"logits": bits(logits), "scores": bits(run(case, logits))}
            out.write(json.dumps(case, separators=(",", ":")) + "\n")


main(sys.argv[1])
