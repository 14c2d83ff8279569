#!/usr/bin/env python3
"""Writes tests/data/gguf: tiny llama models in GGUF with random weights, and what they have to become.

usage: make_gguf_cases.py REAL_TOKENIZERS OUT
REAL_TOKENIZERS: a folder with llama3_1, qwen2_5 and llama2, each a published tokenizer.json.zst, for all in it but the
vocabulary. Made with gguf 0.18, safetensors 0.8, tokenizers 0.23, torch 2.

  blocks.bin      for each type: u32 type, u32 blocks, the blocks, then the elements in float32 as gguf/quants.py makes them
  type-*.gguf     a model in each type, with the variations of config.json that its name does not tell
  token-*.gguf    a model with each tokenizer
  weights.tsv     file, dtype, SHA-256 of the model.safetensors that save_file writes
  ids.jsonl       file, text, ids of the published tokenizer.json with this vocabulary
"""
import hashlib, json, pathlib, random, subprocess, sys
import gguf, numpy as np, torch
from gguf import GGMLQuantizationType as T
from safetensors.torch import save
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

REAL, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
OUT.mkdir(parents=True, exist_ok=True)
RNG = np.random.default_rng(3)
TYPES = [T.F32, T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q4_K, T.Q5_K, T.Q6_K]
# where the 16-bit scales of a block begin
SCALES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}


def random_rows(rows, columns, kind):
    """Random bytes, finite and small enough for float16 once multiplied out."""
    if kind in (T.F32, T.F16, T.BF16):
        x = RNG.normal(size=(rows, columns)).astype(np.float32)
        flat = x.reshape(-1)
        odd = np.array([0, -0.0, 1e-40, -3e-8, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 2**-25 * 1.5, 65000], np.float32)
        flat[:min(len(odd), len(flat))] = odd[:len(flat)]
        if kind == T.F32: return x.view(np.uint8)
        if kind == T.F16: return x.astype(np.float16).view(np.uint8)
        return torch.from_numpy(x).bfloat16().view(torch.uint8).numpy()
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = RNG.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    for at in SCALES[kind]:
        scale = RNG.normal(scale=0.05, size=len(blocks)).astype(np.float16)
        scale[::7] = np.float16(6e-6)  # subnormal
        blocks[:, at:at + 2] = scale.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def make_blocks():
    with open(OUT / "blocks.bin", "wb") as f:
        for kind in TYPES:
            elements, size = gguf.GGML_QUANT_SIZES[kind]
            n = 3 if elements > 1 else 64
            raw = random_rows(n if elements > 1 else 1, elements if elements > 1 else n, kind)
            f.write(np.array([kind, n], np.uint32).tobytes() + raw.tobytes())
            f.write(gguf.quants.dequantize(raw, kind).astype(np.float32).tobytes())


class Model:
    def __init__(self, name, tokens, hidden=32, ffn=64, heads=2, kv=1, head_dim=16, layers=2):
        self.path, self.shape = OUT / name, (hidden, ffn, heads, kv, head_dim, layers)
        self.w = w = gguf.GGUFWriter(self.path, "llama")
        w.add_name(name.removesuffix(".gguf").replace("-", " "))
        w.add_block_count(layers); w.add_context_length(256); w.add_embedding_length(hidden)
        w.add_feed_forward_length(ffn); w.add_head_count(heads); w.add_head_count_kv(kv)
        w.add_layer_norm_rms_eps(1e-5); w.add_rope_freq_base(10000.0); w.add_vocab_size(tokens)
        if head_dim * heads != hidden:
            w.add_key_length(head_dim); w.add_value_length(head_dim); w.add_rope_dimension_count(head_dim)
        self.tensors, self.vocab = {}, tokens

    def add(self, source, target, rows, columns, kind, heads=0):
        if columns % gguf.GGML_QUANT_SIZES[kind][0]: kind = T.Q8_0 if columns % 32 == 0 else T.F16
        raw = random_rows(rows, columns or 1, kind) if columns else random_rows(1, rows, kind)
        self.w.add_tensor(source, raw if columns else raw.reshape(-1), raw_dtype=kind)
        x = gguf.quants.dequantize(raw, kind).reshape((rows, columns) if columns else (rows,)).astype(np.float32)
        if heads:  # transformers' _reverse_permute_weights
            x = x.reshape(heads, rows // heads // 2, 2, *x.shape[1:]).swapaxes(2, 1).reshape(x.shape)
        self.tensors[target] = torch.from_numpy(np.ascontiguousarray(x))

    def fill(self, kind, tied=True, attention_bias=False, mlp_bias=False):
        hidden, ffn, heads, kv, d, layers = self.shape
        self.add("token_embd.weight", "model.embed_tokens.weight", self.vocab, hidden, kind)
        self.add("output_norm.weight", "model.norm.weight", hidden, 0, T.F32)
        if not tied: self.add("output.weight", "lm_head.weight", self.vocab, hidden, kind)
        for i in range(layers):
            g, h = f"blk.{i}.", f"model.layers.{i}."
            self.add(g + "attn_norm.weight", h + "input_layernorm.weight", hidden, 0, T.F32)
            self.add(g + "ffn_norm.weight", h + "post_attention_layernorm.weight", hidden, 0, T.F32)
            for a, b, rows, columns, permuted in (
                    ("attn_q", "self_attn.q_proj", heads * d, hidden, heads), ("attn_k", "self_attn.k_proj", kv * d, hidden, kv),
                    ("attn_v", "self_attn.v_proj", kv * d, hidden, 0), ("attn_output", "self_attn.o_proj", hidden, heads * d, 0),
                    ("ffn_gate", "mlp.gate_proj", ffn, hidden, 0), ("ffn_up", "mlp.up_proj", ffn, hidden, 0),
                    ("ffn_down", "mlp.down_proj", hidden, ffn, 0)):
                self.add(g + a + ".weight", h + b + ".weight", rows, columns, kind, permuted)
                if attention_bias and "attn" in a or mlp_bias and "ffn" in a:
                    self.add(g + a + ".bias", h + b + ".bias", rows, 0, T.F32, permuted)
        return self

    def close(self, weights):
        self.w.write_header_to_file(); self.w.write_kv_data_to_file(); self.w.write_tensors_to_file(); self.w.close()
        for name, dtype in (("f32", torch.float32), ("f16", torch.float16), ("bf16", torch.bfloat16)):
            data = save({k: v.to(dtype) for k, v in self.tensors.items()}, metadata={"format": "pt"})
            print(self.path.name, name, hashlib.sha256(data).hexdigest(), sep="\t", file=weights)


def simple_tokenizer(w, n):
    tokens = ["<|end|>", "a", "b", "Ġ", "ab"] + [chr(c) for c in range(ord("c"), ord("c") + n - 5)]
    w.add_tokenizer_model("gpt2"); w.add_tokenizer_pre("gpt-2"); w.add_token_list(tokens)
    w.add_token_types([3] + [1] * (n - 1)); w.add_token_merges(["a b"]); w.add_eos_token_id(0)


def llama3_divisors(theta, d, factor, original):
    """As llama.cpp's converter computes rope_freqs.weight."""
    out = []
    for i in range(0, d, 2):
        wavelength = 2 * np.pi * theta ** (i / d)
        if wavelength < original / 4: out.append(1.0)
        elif wavelength > original / 1: out.append(factor)
        else:
            smooth = (original / wavelength - 1) / (4 - 1)
            out.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(out, np.float32)


def make_types(weights):
    for kind in TYPES:
        big = gguf.GGML_QUANT_SIZES[kind][0] == 256
        n = 16 if big else 24
        m = Model(f"type-{kind.name.lower()}.gguf", n, **(dict(hidden=256, ffn=32, head_dim=8, layers=1) if big else dict(layers=1 if kind in (T.F32, T.F16, T.BF16) else 2)))
        simple_tokenizer(m.w, n)
        if kind == T.F32: m.w.add_rope_scaling_type(gguf.RopeScalingType.NONE)
        if kind == T.BF16:
            m.w.add_tensor("rope_freqs.weight", llama3_divisors(10000.0, 16, 8.0, 8192))
        if kind == T.Q5_0:
            m.w.add_tensor("rope_freqs.weight", llama3_divisors(10000.0, 16, 32.0, 256))
        if kind == T.Q4_0:
            m.w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR); m.w.add_rope_scaling_factor(4.0)
        if kind == T.Q8_0:
            m.w.add_rope_scaling_type(gguf.RopeScalingType.YARN); m.w.add_rope_scaling_factor(2.5)
            m.w.add_rope_scaling_orig_ctx_len(100)
        m.fill(kind, tied=kind not in (T.F32, T.Q6_K), attention_bias=kind in (T.F16, T.Q4_1), mlp_bias=kind == T.F16).close(weights)


TEXT = """The old lighthouse keeper counted 12 ships and 1,345 gulls before breakfast. "It's late," he'd say, "and they've
gone." In the winter of 1987 the harbour froze; nobody could leave, and the town's three bakers made bread for all.
Naïve travellers, café owners and señoritas wrote letters: some in Greek (αβγ), some in Russian (привет), 東京 too. 12345 12345 12345, 1987 1987 1987."""
STRINGS = ["", " ", "  ", "\n", "\n\n \t", "The keeper", " the keeper's 12345 gulls", "It's LATE, they'VE gone!", "1,345.67 and 2nd 3rd",
           "naïve café señorita", "e\u0301 and é", "αβγ привет 東京", "<|x|>tail", "head <|x|><|y|> tail", "a <|x|>", "hello hello",
           "ends with space ", "tabs\tand\r\nnewlines\r\n", "\u00a0no-break\u3000space", "😀 emoji👍🏽", "x\u0000y", "٣٤٥ ½ ²", "   many   spaces   here",
           "foo()[0]->bar_baz += 1;", "don't can't I'll he'd", "<s>the</s>", "\u2581the", "<0x41>", "A\u030aB", "Ǆ ǅ ǆ"]


def real(name):
    raw = subprocess.run(["zstd", "-dcq", REAL / name / "tokenizer.json.zst"], check=True, capture_output=True).stdout
    return json.loads(raw)


def byte_level_vocab():
    """With merges of digits, which only some of the pre-tokenizers leave a use for."""
    t = Tokenizer(models.BPE()); t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    t.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=330, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    model = json.loads(t.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]


def expect(ids, file, skeleton):
    t = Tokenizer.from_str(json.dumps(skeleton))
    for text in STRINGS:
        print(json.dumps({"file": file, "text": text, "ids": t.encode(text).ids}), file=ids)


def added(i, content, special): return dict(id=i, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=special)


def make_byte_level(weights, ids):
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level])
    plain = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
             "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
             "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}}
    for pre, skeleton in (("smollm", dict(plain, pre_tokenizer=json.loads(digits.__getstate__()))),
                          ("gpt-2", dict(plain, pre_tokenizer=json.loads(level.__getstate__()))),
                          ("llama-bpe", real("llama3_1")), ("qwen2", real("qwen2_5"))):
        skeleton["added_tokens"], skeleton["model"]["vocab"], skeleton["model"]["merges"] = [], {}, []
        tokens, merges = byte_level_vocab()
        tokens += ["Ġhello", "<|x|>", "<|y|>", "<|bos|>"]  # "Ġhello" has no merge: only ignore_merges finds it
        n = len(tokens)
        skeleton["model"].update(vocab={t: i for i, t in enumerate(tokens)}, merges=[list(m) for m in merges])
        skeleton["added_tokens"] = [added(n - 3, "<|x|>", True), added(n - 2, "<|y|>", False), added(n - 1, "<|bos|>", True)]
        if pre == "llama-bpe":  # the published file's BOS becomes ours
            skeleton = json.loads(json.dumps(skeleton).replace("<|begin_of_text|>", "<|bos|>").replace("[128000]", f"[{n - 1}]"))
        m = Model(f"token-{pre}.gguf", n, layers=1, ffn=32)
        m.w.add_tokenizer_model("gpt2"); m.w.add_tokenizer_pre(pre); m.w.add_token_list(tokens)
        m.w.add_token_types([1] * (n - 3) + [3, 4, 3]); m.w.add_token_merges([" ".join(p) for p in merges])
        m.w.add_bos_token_id(n - 1); m.w.add_eos_token_id(n - 3)
        m.w.add_chat_template("{{ messages[0]['content'] }}\n\"<|x|>\" é")
        m.fill(T.Q4_0).close(weights)
        expect(ids, m.path.name, skeleton)


def make_sentencepiece(weights, ids):
    t = Tokenizer(models.BPE()); t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=200, show_progress=False))
    vocab = json.loads(t.to_str())["model"]["vocab"]
    pieces = sorted(vocab, key=vocab.get)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + \
        [p for p in pieces if len(p) > 1] + ["▁▁", "▁▁▁▁"] + [p for p in pieces if len(p) == 1] + ["<|x|>", "<|y|>"]
    n = len(tokens); index = {p: i for i, p in enumerate(tokens)}
    scores = [0.0] * 259 + [-float(i) for i in range(n - 259)]
    for p in ("▁▁", "▁▁▁▁"): scores[index[p]] = -1e9
    # as transformers' converter made the published files: by score, then by id, then by the parts' ids
    merges = []
    for p, i in index.items():
        cuts = [(p[:k], p[k:], scores[i]) for k in range(1, len(p)) if p[:k] in index and p[k:] in index]
        merges += sorted(cuts, key=lambda c: (index[c[0]], index[c[1]]))
    merges = [[a, b] for a, b, _ in sorted(merges, key=lambda c: c[2], reverse=True)]
    for name, prefix, bos in (("spm", True, True), ("spm-no-prefix", False, False)):
        skeleton = real("llama2")
        skeleton["model"].update(vocab=index, merges=merges)
        skeleton["added_tokens"] = [added(i, tokens[i], True) for i in range(3)] + [added(n - 2, "<|x|>", True), added(n - 1, "<|y|>", False)]
        if not prefix:
            skeleton["normalizer"] = skeleton["normalizer"]["normalizers"][1]
            skeleton["decoder"]["decoders"].pop()
        if not bos: skeleton["post_processor"] = None
        m = Model(f"token-{name}.gguf", n, layers=1, ffn=32)
        m.w.add_tokenizer_model("llama"); m.w.add_tokenizer_pre("default"); m.w.add_token_list(tokens)
        m.w.add_token_scores(scores); m.w.add_token_types([2, 3, 3] + [6] * 256 + [1] * (n - 261) + [3, 4])
        m.w.add_bos_token_id(1); m.w.add_eos_token_id(2); m.w.add_unk_token_id(0)
        if not prefix: m.w.add_add_space_prefix(False)
        if not bos: m.w.add_add_bos_token(False)
        m.fill(T.Q4_0).close(weights)
        expect(ids, m.path.name, skeleton)


make_blocks()
with open(OUT / "weights.tsv", "w") as weights, open(OUT / "ids.jsonl", "w") as ids:
    make_types(weights)
    make_byte_level(weights, ids)
    make_sentencepiece(weights, ids)
