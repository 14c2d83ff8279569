#!/usr/bin/env python3
"""Compare the programs with transformers on one model folder, and print one table.

usage: verify.py MODEL_DIR [--golden DIR] [--prompt TEXT | --ids "1 2 3"] [-n 50] [--text FILE] [--text-ids N]

Runs transformers on MODEL_DIR in float32 (and in the type on disk where that has 16 bits), writes what it computed to a
golden folder, and lets tests/verify.sh compare the programs with it. With --golden DIR the folder is kept: from then on
`tests/verify.sh MODEL_DIR DIR`, or `make verify MODEL=MODEL_DIR GOLDEN=DIR`, needs no Python.

The golden folder holds text files, but for the trace:
  facts.tsv           key, tab, value: versions, dtype, window and mean negative log-likelihood of the text, ...
  prompt.txt, .ids    the prompt (.txt where there is a tokenizer) and its ids
  greedy.ids          the ids of generate(do_sample=False), end tokens ignored
  margins             the gap between the best and the second-best score at each of these steps
  last.logits         logits after the prompt as `nl-forward --text` writes them; last16.logits: of the 16-bit run
  text.txt, .ids      what the perplexity is of
  tensors.tsv         name, shape, "tied" where another name has the same weights
  trace.safetensors   the prompt's run under the names of nl-forward --trace
Without a tokenizer.json the ids are drawn by a fixed generator.
"""
import argparse, math, pathlib, subprocess, sys, tempfile, warnings
import torch, transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

PROMPT = "The capital of France is Paris, and the capital of Italy is"
TEXT = __doc__
TRACE_ATTENTION = 256  # ids, as in lib/trace.h
WINDOW = 256


class Trace:
    """Records one forward pass of a model with eager attention, by hooks."""

    def __init__(self, model, length):
        self.tensors, self.length, self.hooks = {}, length, []
        body = getattr(model, "model", None) or model.transformer
        self.layers = body.layers if hasattr(body, "layers") else body.h
        for i, layer in enumerate(self.layers):
            self.watch(i, layer)
        module = sys.modules[type(self.attention(self.layers[0])).__module__]
        self.module, self.eager = module, module.eager_attention_forward
        module.eager_attention_forward = self.attend

    @staticmethod
    def attention(layer):
        return layer.self_attn if hasattr(layer, "self_attn") else layer.attn

    def keep(self, layer, name, tensor, heads=0):
        """tensor: [1, T, ...]; with heads: [T, heads, head_dim] in the end."""
        tensor = tensor[0].detach().float()
        self.tensors[f"layers.{layer}.{name}"] = (tensor.reshape(self.length, heads, -1) if heads else tensor).clone()

    def watch(self, i, layer):
        attn = self.attention(layer)
        config = attn.config
        heads = config.num_attention_heads
        kv = getattr(config, "num_key_value_heads", None) or heads
        assert self.length not in (heads, kv), "a prompt of as many ids as there are heads: give another"
        after = lambda module, hook: self.hooks.append(module.register_forward_hook(hook))
        after(attn, lambda m, args, out: self.keep(i, "attention_output", out[0]))
        after(layer.mlp, lambda m, args, out: self.keep(i, "mlp_output", out))
        output = attn.o_proj if hasattr(attn, "o_proj") else attn.c_proj
        self.hooks.append(output.register_forward_pre_hook(lambda m, args: self.keep(i, "heads", args[0], heads)))

        def projected(name, count):
            def hook(m, args, out):  # Gemma 3 norms [1, heads, T, dim], Qwen3 [1, T, heads, dim]
                self.keep(i, name, out.transpose(1, 2) if out.dim() == 4 and out.shape[1] == count else out, count)
            return hook

        fused = getattr(attn, "qkv_proj", None) or getattr(attn, "c_attn", None)
        if fused is not None:
            def split(m, args, out):
                dim = out.shape[-1] // (heads + 2 * kv)
                q, k, _ = out.split([heads * dim, kv * dim, kv * dim], -1)
                self.keep(i, "q", q, heads)
                self.keep(i, "k", k, kv)
            after(fused, split)
        else:
            after(getattr(attn, "q_norm", attn.q_proj), projected("q", heads))
            after(getattr(attn, "k_norm", attn.k_proj), projected("k", kv))

    def attend(self, module, query, key, value, *args, **kwargs):
        out, weights = self.eager(module, query, key, value, *args, **kwargs)
        i = module.layer_idx
        for name, tensor in (("q_rope", query), ("k_rope", key), ("v", value)):
            self.keep(i, name, tensor.transpose(1, 2), tensor.shape[1])
        if self.length <= TRACE_ATTENTION:
            self.keep(i, "attention", weights)
        return out, weights

    def close(self):
        self.module.eager_attention_forward = self.eager
        for hook in self.hooks:
            hook.remove()


def load(folder, dtype):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def trace(model, prompt):
    recorder = Trace(model, len(prompt))
    with torch.no_grad():
        out = model(torch.tensor([prompt]), output_hidden_states=True, use_cache=False)
    recorder.close()
    tensors = recorder.tensors | {f"hidden_states.{i}": h[0].float().clone() for i, h in enumerate(out.hidden_states)}
    tensors |= {"logits": out.logits[0].float().clone(), "ids": torch.tensor(prompt)}
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def greedy(model, prompt, n):
    """The ids, and each step's gap between the two best scores."""
    ids = torch.tensor([prompt])
    with torch.no_grad():
        run = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, do_sample=False, eos_token_id=None,
                             pad_token_id=0, output_scores=True, return_dict_in_generate=True)
    top = torch.stack(run.scores)[:, 0].float().topk(2).values
    return run.sequences[0, len(prompt):].tolist(), (top[:, 0] - top[:, 1]).tolist()


def mean_nll(model, ids, window):
    """Over windows that do not overlap, of all ids but each window's first."""
    total, count = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(ids) - 1, window):
            part = torch.tensor(ids[begin:begin + window])
            if len(part) > 1:
                logits = model(part[None], use_cache=False).logits[0, :-1].double()
                total += torch.nn.functional.cross_entropy(logits, part[1:], reduction="sum").item()
                count += len(part) - 1
    return total / count


def state(model):
    """name, shape, tied of every parameter and persistent buffer."""
    seen, rows = set(), []
    for name, tensor in model.state_dict().items():
        place = (tensor.data_ptr(), tuple(tensor.shape))
        rows.append((name, ",".join(map(str, tensor.shape)), "tied" if place in seen else ""))
        seen.add(place)
    return rows


def choose_ids(folder, config, args):
    """prompt ids, text ids, and the two texts or None."""
    path = folder / "tokenizer.json"
    vocab = config.get_text_config().vocab_size
    g = torch.Generator().manual_seed(7)
    draw = lambda n: torch.randint(3, vocab, (n,), generator=g).tolist()
    if path.exists():
        from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_file(str(path))
        text = pathlib.Path(args.text).read_text() if args.text else TEXT
        prompt_text = None if args.ids else args.prompt
        prompt = [int(i) for i in args.ids.split()] if args.ids else tokenizer.encode(args.prompt).ids
        ids = tokenizer.encode(text).ids
        if len(ids) > args.text_ids:
            ids, text = ids[:args.text_ids], None
        return prompt, ids, prompt_text, text
    bos = config.get_text_config().bos_token_id
    prompt = [int(i) for i in args.ids.split()] if args.ids else ([bos] if isinstance(bos, int) else []) + draw(20)
    return prompt, draw(min(args.text_ids, 100)), None, None


def line(values):
    return " ".join(map(str, values)) + "\n"


def logits_text(position, logits):
    return line([position] + [f"{i}:{v:.9g}" for i, v in enumerate(logits.float().tolist())])


def write_golden(folder, out, args):
    config = AutoConfig.from_pretrained(folder)
    prompt, ids, prompt_text, text = choose_ids(folder, config, args)
    model = load(folder, torch.float32)
    tensors = trace(model, prompt)
    window = min(WINDOW, len(ids), getattr(config.get_text_config(), "max_position_embeddings", WINDOW))
    nll = mean_nll(model, ids, window)  # before generate: a dynamic rope keeps the frequencies of the longest run
    chosen, margins = greedy(model, prompt, args.n)
    facts = dict(transformers=transformers.__version__, torch=torch.__version__, architecture=type(model).__name__,
                 context=len(prompt) + args.n, window=window, mean_nll=repr(nll))
    files = {"prompt.ids": line(prompt), "greedy.ids": line(chosen), "margins": line(margins), "text.ids": line(ids),
             "tensors.tsv": "".join("\t".join(row) + "\n" for row in state(model)),
             "last.logits": logits_text(len(prompt), tensors["logits"][-1])}
    files |= {name: value + "\n" for name, value in (("prompt.txt", prompt_text), ("text.txt", text)) if value is not None}
    dtype = getattr(config, "dtype", None)
    if dtype in (torch.float16, torch.bfloat16):
        del model
        with torch.no_grad():
            low = load(folder, dtype)(torch.tensor([prompt]), use_cache=False).logits[0, -1].float()
        files["last16.logits"] = logits_text(len(prompt), low)
        facts |= dict(dtype=str(dtype).removeprefix("torch."), own16=(low - tensors["logits"][-1]).abs().max().item())
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    for name, content in files.items():
        (out / name).write_text(content)
    (out / "facts.tsv").write_text("".join(f"{key}\t{value}\n" for key, value in facts.items()))
    save_file(tensors, out / "trace.safetensors", metadata={"format": "pt"})
    (out / "trace.safetensors").chmod(0o644)
    if not all(math.isfinite(m) for m in margins):
        print("verify.py: transformers' own scores are not all finite", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--golden", type=pathlib.Path, help="keep the golden folder here; its old files are removed")
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--ids", help="the prompt's ids, in place of --prompt")
    parser.add_argument("-n", type=int, default=50, help="ids to generate (50)")
    parser.add_argument("--text", help="a file to take the perplexity of")
    parser.add_argument("--text-ids", type=int, default=512, help="of its first so many ids (512)")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as temporary:
        golden = args.golden or pathlib.Path(temporary)
        if golden.exists() and any(golden.iterdir()) and not (golden / "facts.tsv").exists():
            sys.exit(f"verify.py: not a golden folder, and not empty: {golden}")
        write_golden(args.model, golden, args)
        script = pathlib.Path(__file__).resolve().parent.parent / "verify.sh"
        sys.exit(subprocess.run([script, args.model, golden]).returncode)


if __name__ == "__main__":
    main()
