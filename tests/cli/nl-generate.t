#!/bin/bash
# nl-generate and nl-forward on the tiny checkpoints: ids, statuses, messages.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
models=tests/data/models
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
export XDG_CACHE_HOME=$tap_dir/cache

# The ids of a golden run; `field NAME KEY`.
field() {
    sed -E "s/.*\"$2\": \[([^]]*)\].*/\1/; s/,//g" "$models/$1/golden.json"
}
text() { "$@" | tr -s ' \n' '  ' | sed 's/ $//'; }

for name in llama llama-bf16-llama3rope-tied-sharded llama-f16-linear-bias llama-long mistral-window mistral-window-long \
    gemma olmo2 qwen2-yarn qwen3 gemma2 gemma3 phi3-longrope llama-dynamic gpt2; do
    field $name prompt > "$tap_dir/prompt"
    want=$(field $name greedy)
    is "$name: 64 greedy ids" "$(text nl-generate -m $models/$name -c 4096 -n 64 --text < "$tap_dir/prompt")" "$want"
    is "$name: in chunks of 7, one thread" \
        "$(text nl-generate -m $models/$name -c 4096 -n 64 --prefill-chunk 7 --threads 1 --text < "$tap_dir/prompt")" "$want"
done

m=$models/llama
field llama prompt > "$tap_dir/p1"
field llama-f16-linear-bias prompt > "$tap_dir/p2"
echo "5 6 7" > "$tap_dir/p3"
for i in 1 2 3; do
    nl-generate -m $m -n 20 --text < "$tap_dir/p$i" > "$tap_dir/alone$i"
done
is "several sequences together as each alone" \
    "$(cat "$tap_dir"/p[123] "$tap_dir"/p[123] | nl-generate -m $m -n 20 --text)" \
    "$(cat "$tap_dir"/alone[123] "$tap_dir"/alone[123])"
is "the same with --batch 1" "$(cat "$tap_dir"/p[123] | nl-generate -m $m -n 20 --text --batch 1)" "$(cat "$tap_dir"/alone[123])"
is "--echo writes the prompt first" "$(text nl-generate -m $m -n 3 --echo --text < "$tap_dir/p3")" \
    "5 6 7 $(text nl-generate -m $m -n 3 --text < "$tap_dir/p3")"
is "-n 0 gives nothing" "$(nl-generate -m $m -n 0 --text < "$tap_dir/p3")" ""
first=$(text nl-generate -m $m -n 1 --text < "$tap_dir/p3")
is "--stop-id ends, and is kept" "$(text nl-generate -m $m -n 9 --stop-id "$first" --text < "$tap_dir/p3")" "$first"
is "an empty prompt starts from BOS" "$(echo | nl-generate -m $m -n 5 --text)" "$(echo 1 | nl-generate -m $m -n 5 --text)"
is "draws with a seed are the same each time" \
    "$(nl-generate -m $m -n 20 --temperature 1.5 --seed 3 --text < "$tap_dir/p3")" \
    "$(nl-generate -m $m -n 20 --temperature 1.5 --seed 3 --text < "$tap_dir/p3")"
ok "another seed, other draws" test \
    "$(nl-generate -m $m -n 20 --temperature 1.5 --seed 3 --text < "$tap_dir/p3")" != \
    "$(nl-generate -m $m -n 20 --temperature 1.5 --seed 4 --text < "$tap_dir/p3")"
is "JSON says why it ended" "$(nl-generate -m $m -n 2 --json < "$tap_dir/p3" | grep -o '"finish":"[a-z]*"')" '"finish":"length"'
is "the context ends it: N - p + 1 new ids" "$(nl-generate -m $m -c 10 --text < "$tap_dir/p3" | wc -w)" 8
exits "which is no error" 0 '' sh -c "nl-generate -m $m -c 10 --json < $tap_dir/p3 | grep -q '\"finish\":\"context\"'"

# What transformers generates with these options.
while IFS=$'\t' read -r name ids options want why; do
    read -ra words <<< "$options"
    is "generate: $why" "$(echo "$ids" | text nl-generate -m "tests/data/forward/$name" "${words[@]}" --text)" "$want"
done << 'CASES'
llama_gqa	1 7 33	-n 12 -c 64 --ignore-eos	23 19 32 39 37 7 41 1 46 11 43 5	no end token: runs to the limit
llama_gqa	1 7 33	-n 12 -c 64 --ignore-eos --stop-id 46,32	23 19 32	a list of end tokens: either ends it, and it is the last id
llama_gqa	1 7 33	-n 12 -c 64 --ignore-eos --stop-id 46	23 19 32 39 37 7 41 1 46	one end token further on
llama_gqa	1 7 33	-n 5 -c 64 --ignore-eos --stop-id 0	23 19 32 39 37	an end token that never comes
qwen2_bias	1 6 31 14	-n 12 -c 64	7 34 47 20 2	config.json's end token when there is no generation_config.json
llama_generate	1 7 33	-n 12 -c 64	23 19 32 39	generation_config.json's list wins over config.json's single token
llama_generate	1 39 7 33	-n 6 -c 64	2 41	an end token inside the prompt does not stop anything
llama_generate	1 7 33	-n 1 -c 64	23	one new token
llama_generate	1 7 33 12 40 3 9 11 5 2 6 8	-n 10 -c 64 --ignore-eos	33 7 20 5 37 32 5 37 37 32	generation reaches max_position_embeddings (16) and would go on
llama_generate	1 6 11 16 21 26 31 36 41 46 3 8 13 18 23 28 33 38 43 0	-n 4 -c 64 --ignore-eos	1 43 31 10	a prompt longer than max_position_embeddings
mistral_window	1 7 33	-n 24 -c 64 --ignore-eos	47 45 7 13 3 17 18 27 38 17 25 3 27 30 17 4 40 26 11 17 47 17 24 24	a windowed cache: far more tokens than the window of 4
llama_tied	12 3 41	-n 10 -c 64 --ignore-eos --repetition-penalty 1.4	23 41 41 41 26 41 8 46 22 19	a repetition penalty acts on greedy choices, prompt included
llama_tied	12 3 41	-n 10 -c 64 --ignore-eos	23 41 41 41 41 0 23 41 41 41	the same without the penalty
CASES

# What can be wrong.
bad() { # NAME STATUS PATTERN INPUT COMMAND...
    local name=$1 status=$2 pattern=$3 input=$4
    shift 4
    printf '%b' "$input" > "$tap_dir/in"
    # shellcheck disable=SC2016
    exits "$name" "$status" "$pattern" sh -c '"$@" < "$0"' "$tap_dir/in" "$@"
}
for program in nl-generate nl-forward; do
    bad "$program: no such model" 4 'nothing-here' '1 2\n' $program -m ./nothing-here --text
    bad "$program: an id outside the vocabulary" 3 'id 317 at position 2' '1 2 317\n' $program -m $m --text
    bad "$program: a prompt longer than the context" 7 '3 ids do not fit into the context of 2' '1 2 3\n' $program -m $m -c 2 --text
    bad "$program: no byte of input" 8 'standard input' '' $program -m $m --text
    bad "$program: a stream cut short" 8 'standard input' 'NLS1' $program -m $m --text
    bad "$program: neither stream nor text" 3 'standard input' 'hello' $program -m $m --text
    bad "$program: an unknown option" 2 'nonsense' '1\n' $program --nonsense
    bad "$program: an operand" 2 'operand' '1\n' $program -m $m file
    bad "$program: a number out of range" 2 'context' '1\n' $program -c 0
    bad "$program: more memory than there is" 6 'not enough memory: .* are needed, .* available' '1\n' $program -m $m -c 2000000000
    bad "$program: an unknown device" 2 'device' '1\n' $program -m $m --device abacus --text
    bad "$program: a full disk" 9 'standard output' '1 2\n' sh -c "exec $program -m $m --text > /dev/full"
    exits "$program: standard input closed" 9 'standard input is closed' sh -c "$program -m $m --text <&-"
    exits "$program: standard output closed" 9 'standard output is closed' sh -c "echo 1 | $program -m $m --text >&-"
    exits "$program: --help" 0 '' $program --help
    exits "$program: --version" 0 '' $program --version
done
exits "sequences after a bad one run" 3 'id 999' sh -c "printf '5 6 7\n999\n5 6 7\n' | nl-generate -m $m -n 3 --text > $tap_dir/mixed"
is "and are written in order" "$(cat "$tap_dir/mixed")" \
    "$(nl-generate -m $m -n 3 --text < "$tap_dir/p3" && echo && nl-generate -m $m -n 3 --text < "$tap_dir/p3")"
ok "-o: nothing is left of a failed run" sh -c "! echo 1 | nl-generate -m ./nothing -o $tap_dir/out.nls 2> /dev/null && ! ls $tap_dir/out.nls* 2> /dev/null"

# Checkpoints that must be refused, with the reason.
cases=tests/data/index
while IFS=$'\t' read -r name status pattern; do
    bad "refused: $name" "$status" "$pattern" '1 5 9 3\n' nl-forward -m "$cases/$name" --text
done << 'CASES'
missing_shard	4	model-00002-of-00002.safetensors
missing_all	4	model-0000[12]-of-00002.safetensors
truncated_shard	3	model-00002-of-00002.safetensors
empty_shard	3	model-00002-of-00002.safetensors
parent_path	3	\.\./
index_not_json	3	model.safetensors.index.json
index_no_map	3	weight_map
index_map_number	3	weight_map
stale_index	4	model-0000
corrupt_shard	3	model-00002-of-00002.safetensors
short_tensor	3	\[2, 8\], the config asks for \[4, 8\]: model.layers.0.self_attn.k_proj.weight
lost_tensor	3	tensor is missing: model.norm.weight
lost_layer	3	tensor is missing: model.layers.1
int_weights	5	I16
heads_undivided	3	num_attention_heads 3 is not a multiple of num_key_value_heads 2
CASES
for name in single whole stray_file no_total_size extra_tensor; do
    is "accepted: $name" "$(echo 1 5 9 3 | nl-forward -m "$cases/$name" --text)" "$(echo 1 5 9 3 | nl-forward -m $cases/whole --text)"
done

# config.json without what is needed.
mkdir "$tap_dir/model"
cp $m/model.safetensors "$tap_dir/model"
config() { sed "$1" $m/config.json > "$tap_dir/model/config.json"; }
while IFS=$'\t' read -r name status pattern edit; do
    config "$edit"
    bad "config: $name" "$status" "$pattern" '1\n' nl-forward -m "$tap_dir/model" --text
done << 'CASES'
no hidden_size	3	hidden_size is missing: .*config.json	/hidden_size/d
hidden_size 0	3	hidden_size is not	s/"hidden_size": 72/"hidden_size": 0/
another architecture	5	supported: LlamaForCausalLM.*: MambaForCausalLM	s/LlamaForCausalLM/MambaForCausalLM/
another activation	5	activation.*relu6	s/"silu"/"relu6"/
another rope	5	rope_type.*magic	s/"rope_type": "default"/"rope_type": "magic"/
a rope factor of 0	3	factor is not	s/"rope_type": "default"/"rope_type": "linear", "factor": 0/
quantised	5	quantisation: awq	s/"use_cache": true/"quantization_config": {"quant_method": "awq"}/
a string for a number	3	num_hidden_layers	s/"num_hidden_layers": 3/"num_hidden_layers": "three"/
more layers than tensors	3	model.layers.3	s/"num_hidden_layers": 3/"num_hidden_layers": 4/
not JSON	3	config.json	s/{/(/
CASES
config 's/"num_hidden_layers": 3/"num_hidden_layers": 2/'
exits "-v names tensors that are not used" 0 '9 tensors .* not used, the first: model.layers.2.input_layernorm.weight' \
    sh -c "echo 1 | nl-forward -v -m $tap_dir/model --text"
rm "$tap_dir/model/config.json"
bad "no config.json" 4 'config.json' '1\n' nl-forward -m "$tap_dir/model" --text

# Logits.
is "--top: the largest first" "$(nl-forward -m $m --text --top 1 < "$tap_dir/p3" | sed -E 's/^3 ([0-9]+):.*/\1/;q')" "$first"
is "--all: one line for each position" "$(nl-forward -m $m --text --all --top 1 < "$tap_dir/p3" | cut -d' ' -f1 | tr '\n' ' ')" "1 2 3  "
is "--all: the last line is the answer without it" "$(nl-forward -m $m --text --all < "$tap_dir/p3" | sed -n 3p)" \
    "$(nl-forward -m $m --text < "$tap_dir/p3" | sed -n 1p)"
is "forward and sample choose what generate does" "$(nl-forward -m $m < "$tap_dir/p3" | nl-sample --text)" "$(nl-generate -m $m -n 1 --text < "$tap_dir/p3")"
exits "--all with --feedback" 2 'all does not go with --feedback' nl-forward --all --feedback x
exits "an upstream that failed is not reported twice" 8 '' \
    sh -c "nl-forward -m ./nothing 2> /dev/null < $tap_dir/p3 | nl-generate -m $m"

# Signals: what is written stays a whole stream, and the status is the signal's.
(echo 5 6 7 && sleep 5) | nl-generate -m $m -n 100000 -c 100000 --json > "$tap_dir/cancelled" 2> "$tap_dir/err" &
sleep 0.7
kill -INT $!
wait $!
is "SIGINT: dies by the signal" $? 130
is "and ends its stream" "$(tail -n 1 "$tap_dir/cancelled" | grep -o '"finish":"[a-z]*"')" '"finish":"cancelled"'
done_testing
