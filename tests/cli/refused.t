#!/bin/bash
# Checkpoints that are wrong: each is refused with the reason before any token.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
models=tests/data/models
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
export XDG_CACHE_HOME=$tap_dir/cache
model=$tap_dir/model

# refused NAME STATUS PATTERN: nl-generate on $model gives no id, whatever it has to say.
refused() {
    exits "$1" "$2" "$3" sh -c "echo 1 5 9 | nl-generate -m $model -n 3 --text > $tap_dir/ids"
    is "$1: no id" "$(tr -d '\n' < "$tap_dir/ids")" ""
}

# What config.json says.
while IFS=$'\t' read -r name base status pattern edit; do
    rm -rf "$model"
    cp -r "$models/$base" "$model"
    sed -i -E "$edit" "$model/config.json"
    ok "config: $name: is another" sh -c "! cmp -s $models/$base/config.json $model/config.json"
    refused "config: $name" "$status" "$pattern"
done << 'CASES'
hidden_size 0	llama	3	hidden_size is not	s/("hidden_size": )72/\10/
hidden_size below 0	llama	3	hidden_size is not	s/("hidden_size": )72/\1-72/
hidden_size that is none	llama	3	hidden_size	s/("hidden_size": )72/\172.5/
another hidden_size	llama	3	shape \[317, 72\], the config asks for \[317, 73\]: model.embed_tokens.weight	s/("hidden_size": )72/\173/
no layers	llama	3	num_hidden_layers is not	s/("num_hidden_layers": )3/\10/
more layers than fit anywhere	llama	3	num_hidden_layers is not	s/("num_hidden_layers": )3/\13000000000/
one layer more	llama	3	tensor is missing: model.layers.3.input_layernorm.weight	s/("num_hidden_layers": )3/\14/
no heads	llama	3	num_attention_heads is not	s/("num_attention_heads": )6/\10/
other heads	llama	3	\[72, 72\], the config asks for \[48, 72\]: model.layers.0.self_attn.q_proj.weight	s/("num_attention_heads": )6/\14/
no KV heads	llama	3	num_key_value_heads is not	s/("num_key_value_heads": )2/\10/
heads that KV heads do not divide	llama	3	num_attention_heads 6 is not a multiple of num_key_value_heads 4	s/("num_key_value_heads": )2/\14/
more KV heads than heads	llama	3	num_attention_heads 6 is not a multiple of num_key_value_heads 12	s/("num_key_value_heads": )2/\112/
other KV heads	llama	3	\[24, 72\], the config asks for \[36, 72\]: model.layers.0.self_attn.k_proj.weight	s/("num_key_value_heads": )2/\13/
head_dim 0	llama	3	head_dim is not	s/("head_dim": )12/\10/
another head_dim	llama	3	the config asks for \[96, 72\]: model.layers.0.self_attn.q_proj.weight	s/("head_dim": )12/\116/
an odd head_dim	llama	3	the rotated part of a head of 13 is odd	s/("head_dim": )12/\113/
a hidden_size that heads do not divide	gpt2	3	hidden_size 60 is not a multiple of .*7	s/("n_head": )5/\17/
another intermediate_size	llama	3	\[50, 72\], the config asks for \[51, 72\]: model.layers.0.mlp.gate_proj.weight	s/("intermediate_size": )50/\151/
intermediate_size 0	llama	3	intermediate_size is not	s/("intermediate_size": )50/\10/
vocab_size 0	llama	3	vocab_size is not	s/("vocab_size": )317/\10/
another vocab_size	llama	3	the config asks for \[316, 72\]: model.embed_tokens.weight	s/("vocab_size": )317/\1316/
no positions	llama	3	max_position_embeddings is not	s/("max_position_embeddings": )256/\10/
biases that are not there	llama	3	tensor is missing: model.layers.0.self_attn.q_proj.bias	s/("attention_bias": )false/\1true/
MLP biases that are not there	llama	3	tensor is missing: model.layers.0.mlp.gate_proj.bias	s/("mlp_bias": )false/\1true/
a negative epsilon	llama	3	the epsilon of norms is below 0	s/("rms_norm_eps": )0.01/\1-0.01/
rope_theta 0	llama	3	rope_theta is not	s/("rope_theta": )[0-9.]+/\10/
rope factor 0, linear	llama-f16-linear-bias	3	factor is not	s/("factor": )4.0/\10/
rope factor 0, dynamic	llama-dynamic	3	factor is not	s/("factor": )2.0/\10/
rope factor 0, yarn	qwen2-yarn	3	factor is not	s/("factor": )4.0/\10/
rope factor 0, llama3	llama-bf16-llama3rope-tied-sharded	3	factor is not	s/("factor": )8.0/\10/
rope factor below 0	llama-f16-linear-bias	3	factor is not	s/("factor": )4.0/\1-4.0/
llama3: low and high factor the same	llama-bf16-llama3rope-tied-sharded	3	high_freq_factor	s/("high_freq_factor": )4.0/\11.0/
longrope: a factor too few	phi3-longrope	3	short_factor	s/1\.05,//
longrope: a factor of 0	phi3-longrope	3	short_factor	s/1\.05,/0,/
sliding_window 0	mistral-window	3	sliding_window is not	s/("sliding_window": )16/\10/
query_pre_attn_scalar 0	gemma2	3	query_pre_attn_scalar is not	s/("query_pre_attn_scalar": )36/\10/
too few layer types	gemma2	3	layer_types has 2 entries for 3 layers	s/"full_attention",?/XX/; s/XX//
another model_type	llama	3	model_type is mistral, that of LlamaForCausalLM is llama	s/("model_type": )"llama"/\1"mistral"/
is_causal	llama	5	unsupported: is_causal	s/^\{$/{"is_causal": false,/
layers that differ	llama	5	unsupported: per_layer_config	s/^\{$/{"per_layer_config": {"1": {"rms_norm_eps": 0.5}},/
both directions, Gemma	gemma	5	unsupported: use_bidirectional_attention	s/^\{$/{"use_bidirectional_attention": true,/; /"use_bidirectional_attention": null,?/d
both directions, Gemma 2	gemma2	5	unsupported: use_bidirectional_attention	s/("use_bidirectional_attention": )null/\1true/
part of a head, linear	llama-f16-linear-bias	5	unsupported: partial_rotary_factor	s/("factor": 4.0)/\1, "partial_rotary_factor": 0.5/
rope by layer type where layers have one	llama	5	unsupported: rope settings by layer type	s/("rope_parameters": \{)/\1 "full_attention": {"rope_type": "default"},/
head_dim of Qwen2	qwen2-yarn	3	shape \[72, 72\], the config asks for \[120, 72\]	s/^\{$/{"head_dim": 20,/; /"head_dim": 12,/d
CASES

# What the files hold.
fresh() {
    rm -rf "$model"
    cp -r "$models/llama" "$model"
}
for tensor in model.embed_tokens.weight model.layers.0.self_attn.v_proj.weight model.layers.2.mlp.down_proj.weight \
    model.layers.1.post_attention_layernorm.weight model.norm.weight lm_head.weight; do
    fresh
    LC_ALL=C sed -i "s/\"$tensor\"/\"${tensor/%weight/waight}\"/" "$model/model.safetensors"
    refused "missing: $tensor" 3 "tensor is missing: $tensor: $model"
done

# nan TENSOR ELEMENT: a NaN in the file, where st-inspect says that it is.
nan() {
    local at
    fresh
    at=$(st-inspect --tsv "$model" | awk -F '\t' -v name="$1" '$1 == name { print $6 }')
    printf '\0\0\xc0\x7f' | dd of="$model/model.safetensors" bs=1 seek=$((at + 4 * $2)) conv=notrunc status=none
}
while IFS=$'\t' read -r tensor element where; do
    nan "$tensor" "$element"
    refused "NaN in $tensor" 3 "the logits are not numbers \(NaN\), $where"
    bad=$(echo 1 5 9 | nl-forward -m "$model" --text 2> /dev/null)
    is "NaN in $tensor: no logits" "$bad" ""
    exits "NaN in $tensor: no perplexity" 3 "$where" sh -c "echo 1 5 9 | nl-perplexity -q -m $model"
done << 'CASES'
model.embed_tokens.weight	72	from the embedding
model.layers.0.input_layernorm.weight	3	first in layer 0
model.layers.1.self_attn.q_proj.weight	100	first in layer 1
model.layers.2.mlp.down_proj.weight	7	first in layer 2
model.norm.weight	0	from the final norm or the output weights
lm_head.weight	316	from the final norm or the output weights
CASES
nan model.embed_tokens.weight $((72 * 300))
is "a NaN that no id comes to does no harm" "$(echo 1 5 9 | nl-generate -m "$model" -n 3 --text)" "$(echo 1 5 9 | nl-generate -m $models/llama -n 3 --text)"
nan model.layers.1.self_attn.q_proj.weight 100
echo 1 5 9 | nl-forward -m "$model" --text --trace "$tap_dir/trace.safetensors" > "$tap_dir/out" 2> "$tap_dir/err"
is "a trace of it shows where" "$? $(st-diff --tsv "$tap_dir/trace.safetensors" "$tap_dir/trace.safetensors" | grep -c '	agrees	')" "3 33"
echo 1 5 9 | nl-forward -m $models/llama --text --trace "$tap_dir/good.safetensors" > "$tap_dir/out"
is "against a good one" "$(st-diff --tsv "$tap_dir/trace.safetensors" "$tap_dir/good.safetensors" | grep -m 1 '	differs	' | cut -f1,4)" "layers.1.q	nan"
done_testing
