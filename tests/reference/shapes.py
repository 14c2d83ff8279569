#!/usr/bin/env python3
"""Compare the programs with transformers at the true shape of a model, with random weights.

usage: shapes.py SHAPE [FOLDER]

SHAPE is one of SHAPES. Weights are drawn as make_tiny.py draws them, written as bf16 to FOLDER (default: a new folder
under $TMPDIR, 2.5 to 3.5 GB) and deleted in the end. transformers loads them as float32 (5 to 7 GB of memory) and runs
PROMPT ids and NEW greedy ones on one thread; then nl-forward and nl-generate of build/bin do. Last, transformers runs the
prompt in float64 (twice the memory; norms and softmax too, only the angles stay float32), which tells whose rounding a
difference is. Prints a line of a Markdown table: shape, largest difference of a logit between the programs and transformers,
of the programs and of transformers to float64, the largest logit, equal ids, the smallest gap between a step's two best. The
exit status is 1 where a logit is off by more than LIMIT or an id differs.
"""
import pathlib, shutil, struct, subprocess, sys, tempfile, warnings
import torch, transformers
from transformers import AutoConfig, AutoModelForCausalLM
from make_tiny import randomise

PROMPT, NEW, LIMIT, SEED = 24, 16, 3e-4, 0
# As their config.json has them.
SHAPES = {
    "Llama-3.2-1B": ("llama", dict(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, head_dim=64, max_position_embeddings=131072, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=32.0, low_freq_factor=1.0,
                             high_freq_factor=4.0, original_max_position_embeddings=8192))),
    "Qwen2.5-1.5B": ("qwen2", dict(
        vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12,
        num_key_value_heads=2, max_position_embeddings=131072, rms_norm_eps=1e-6, tie_word_embeddings=True,
        use_sliding_window=False, sliding_window=131072, max_window_layers=28,
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0))),
    "SmolLM2-1.7B": ("llama", dict(
        vocab_size=49152, hidden_size=2048, intermediate_size=8192, num_hidden_layers=24, num_attention_heads=32,
        num_key_value_heads=32, head_dim=64, max_position_embeddings=8192, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=130000.0))),
}
# The same with an output matrix of its own, drawn as make_tiny.py draws such a one: logits of the usual size.
SHAPES |= {f"{name}, untied": (kind, config | {"tie_word_embeddings": False}) for name, (kind, config) in SHAPES.items()}


def write_checkpoint(shape, folder):
    model_type, config = SHAPES[shape]
    config = AutoConfig.for_model(model_type, bos_token_id=1, eos_token_id=None, pad_token_id=0, **config)
    with torch.device("meta"):  # spares a first drawing of all weights
        model = AutoModelForCausalLM.from_config(config)
    model.to_empty(device="cpu").tie_weights()
    randomise(model, SEED)
    model.to(torch.bfloat16).save_pretrained(folder)
    return config.vocab_size


def exact_norm(norm, x):
    return norm.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon))


def exact(folder, prompt):
    """logits [PROMPT][vocab] in float64."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="sdpa").eval()
    type(model.model.norm).forward = exact_norm  # the class's own one rounds to float32
    with torch.no_grad():
        return model(torch.tensor([prompt]), use_cache=False).logits[0]


def reference(folder, prompt):
    """logits [PROMPT][vocab], the greedy ids, the smallest gap between a step's two best."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = torch.tensor([prompt])
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits[0].clone()
        run = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False,
                             eos_token_id=None, pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    top = torch.stack(run.logits)[:, 0].topk(2).values
    return logits, run.sequences[0, PROMPT:].tolist(), (top[:, 0] - top[:, 1]).min().item()


def program(name, prompt, *arguments):
    binary = pathlib.Path(__file__).parents[2] / "build" / "bin" / name
    text = " ".join(map(str, prompt)) + "\n"
    return subprocess.run([binary, *arguments], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def logits_frames(stream):
    """float32 rows of the LGTS frames, see nl-stream(5)."""
    at = 0
    while at < len(stream):
        kind, length = stream[at:at + 4], struct.unpack_from("<Q", stream, at + 8)[0]
        if kind == b"LGTS":
            yield torch.frombuffer(bytearray(stream[at + 24:at + 16 + length]), dtype=torch.float32)
        at += 16 + length


def compare(shape, folder):
    vocab_size = write_checkpoint(shape, folder)
    drawn = torch.randint(3, vocab_size, (PROMPT - 1,), generator=torch.Generator().manual_seed(1000 + SEED))
    prompt = [1] + drawn.tolist()
    want, ids, margin = reference(folder, prompt)
    got = torch.stack(list(logits_frames(program("nl-forward", prompt, "-m", folder, "-c", "256", "--all"))))
    assert got.shape == want.shape, (got.shape, want.shape)
    new = [int(id) for id in program("nl-generate", prompt, "-m", folder, "-c", "256", "-n", str(NEW), "--text").split()]
    true, far = exact(folder, prompt), lambda a, b: (a - b).abs().max().item()
    worst, same = far(got, want), sum(a == b for a, b in zip(new, ids))
    print(f"| {shape} | {worst:.1e} | {far(got, true):.1e} | {far(want, true):.1e} | {want.abs().max().item():.0f} |",
          f"{same} of {NEW} | {margin:.1e} |", flush=True)
    return worst <= LIMIT and new == ids


def main():
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1] not in SHAPES:
        sys.exit(f"{__doc__}\nshapes: {', '.join(SHAPES)}")
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    folder = sys.argv[2] if len(sys.argv) == 3 else tempfile.mkdtemp(prefix="nl-shape-")
    try:
        good = compare(sys.argv[1], folder)
    finally:
        shutil.rmtree(folder)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
