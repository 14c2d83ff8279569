#!/bin/bash
# st-import: what it makes of the tiny models of tests/data/gguf, and of what it must refuse.
# shellcheck disable=SC2016,SC2317 # Perl's variables; functions that ok and exits call
# shellcheck source=tests/cli/tap.sh
. "${0%/*}/tap.sh"
data=tests/data/gguf
export XDG_DATA_HOME=$tap_dir/share
new=$tap_dir/new
flat() { tr -d ' \n' < "$1"; }
sum() { sha256sum < "$1" | cut -d ' ' -f 1; }
contains() { case $1 in *"$2"*) ;; *) printf '%s\n' "$1"; return 1 ;; esac; }
# patch FILE PERL: a copy of a model, changed ($_ is the whole file); prints its name
patch() {
    perl -0777 -pe "$2" "$data/$1" > "$tap_dir/patched.gguf"
    echo "$tap_dir/patched.gguf"
}
entries() { find "$1" -mindepth 1 | sed "s|^$1/||" | sort | tr '\n' ' '; }

# Weights, bit by bit: the sums are those of the files that Python makes.
while IFS=$'\t' read -r file dtype want; do
    st-import --dtype "$dtype" -o "$new" "$data/$file" > /dev/null
    is "weights of $file in $dtype" "$(sum "$new/model.safetensors")" "$want"
    rm -r "$new"
done < "$data/weights.tsv"

# config.json
make() {
    rm -rf "$new"
    st-import -o "$new" "$data/$1" > /dev/null
}
make type-f32.gguf
is "the files" "$(entries "$new")" "config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json "
is "config.json" "$(flat "$new/config.json")" '{"architectures":["LlamaForCausalLM"],"attention_bias":false,"eos_token_id":0,"head_dim":16,"hidden_act":"silu","hidden_size":32,"intermediate_size":64,"max_position_embeddings":256,"mlp_bias":false,"model_type":"llama","num_attention_heads":2,"num_hidden_layers":1,"num_key_value_heads":1,"rms_norm_eps":9.999999747378752e-06,"rope_scaling":null,"rope_theta":10000.0,"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":24}'
is "generation_config.json" "$(flat "$new/generation_config.json")" '{"_from_model_config":true,"eos_token_id":0}'
make type-f16.gguf
ok "biases" contains "$(flat "$new/config.json")" '"attention_bias":true'
ok "biases of the MLP" contains "$(flat "$new/config.json")" '"mlp_bias":true'
ok "tied" contains "$(flat "$new/config.json")" '"tie_word_embeddings":true'
make type-q6_k.gguf
ok "the heads' length" contains "$(flat "$new/config.json")" '"head_dim":8,'
make type-q4_0.gguf
ok "linear scaling" contains "$(flat "$new/config.json")" '"rope_scaling":{"factor":4.0,"rope_type":"linear"}'
make type-q8_0.gguf
ok "YaRN" contains "$(flat "$new/config.json")" '"rope_scaling":{"beta_fast":32.0,"beta_slow":1.0,"factor":2.5,"original_max_position_embeddings":100,"rope_type":"yarn"}'
make type-bf16.gguf
ok "Llama 3's scaling from its divisors" contains "$(flat "$new/config.json")" '"rope_scaling":{"factor":8.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}'
make type-q5_0.gguf
ok "the same, another length" contains "$(flat "$new/config.json")" '"rope_scaling":{"factor":32.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":256,"rope_type":"llama3"}'
make token-llama-bpe.gguf
ok "the chat template" contains "$(cat "$new/tokenizer_config.json")" '"chat_template": "{{ messages[0]['"'content'"'] }}\n\"<|x|>\" é"'
ok "BOS where the family adds it" contains "$(flat "$new/tokenizer_config.json")" '"add_bos_token":true,"add_eos_token":false,"bos_token":"<|bos|>"'

# The place
is "the default place is printed" "$(st-import --default "$data/type-q4_0.gguf")" "$XDG_DATA_HOME/nanollm/type-q4_0"
is "and linked by its name" "$(readlink "$XDG_DATA_HOME/nanollm/default")" type-q4_0
exits "a folder that is there" 2 '^st-import: folder exists and is not empty \(--force replaces it\): .*/type-q4_0$' st-import "$data/type-q4_0.gguf"
exits "--force replaces it" 0 '' st-import --dtype f32 -f "$data/type-q4_0.gguf"
ok "by the new one" grep -q float32 "$XDG_DATA_HOME/nanollm/type-q4_0/config.json"
is "and nothing else is left" "$(ls "$XDG_DATA_HOME/nanollm")" $'default\ntype-q4_0'
st-import --default -o "$tap_dir/elsewhere/" "$data/type-q4_1.gguf" > /dev/null
is "the default may be elsewhere" "$(readlink "$XDG_DATA_HOME/nanollm/default")" "$tap_dir/elsewhere"
exits "a link is followed, not replaced" 0 '' st-import -f -o "$XDG_DATA_HOME/nanollm/default" "$data/type-q4_1.gguf"
is "the link is still there" "$(readlink "$XDG_DATA_HOME/nanollm/default")" "$tap_dir/elsewhere"
touch "$tap_dir/elsewhere/notes"
exits "a folder with other things in it" 2 'folder is not replaced because of other things in it: .*/elsewhere/notes$' st-import -f -o "$tap_dir/elsewhere" "$data/type-q4_1.gguf"
rm "$XDG_DATA_HOME/nanollm/default"
mkdir "$XDG_DATA_HOME/nanollm/default"
exits "a default that is no link" 2 'exists and is not a symbolic link: .*/default$' st-import --default -o "$tap_dir/x" "$data/type-q4_1.gguf"
ok "stops before any work" test ! -e "$tap_dir/x"
mkdir "$tap_dir/empty"
exits "an empty folder" 0 '' st-import -o "$tap_dir/empty" "$data/type-q4_0.gguf"
exits "a file in the way" 2 'exists and is not a folder' st-import -f -o "$tap_dir/elsewhere/notes" "$data/type-q4_0.gguf"
exits "no folder around it" 4 'cannot create: .*/none/x: No such file' st-import -o "$tap_dir/none/x" "$data/type-q4_0.gguf"
file=$(patch type-q4_0.gguf 's/general\.name/general.nope/')
is "a name from the file's" "$(st-import "$file")" "$XDG_DATA_HOME/nanollm/patched"
file=$(patch type-q4_0.gguf 's/type q4_0/..\/\x1b[a \xc3\xa9/')
is "a name that means harm" "$(st-import "$file")" "$XDG_DATA_HOME/nanollm/a"

# What is wrong
rm -rf "$new"
refuse() { exits "$1" "$2" "^st-import: $3" st-import -o "$new" "$4"; }
refuse "no file" 4 'cannot open: none: No such file or directory$' none
refuse "a folder" 3 'not a regular file: tests$' tests
refuse "another kind of file" 3 'not a GGUF file: tests/run.sh$' tests/run.sh
head -c 5000 "$data/type-q4_0.gguf" > "$tap_dir/cut.gguf"
refuse "a file cut short" 3 'GGUF tensor lies beyond the end of the file: .*cut.gguf: tensor ' "$tap_dir/cut.gguf"
refuse "another architecture" 5 "architecture 'qwens' is not supported, llama is: " "$(patch type-q4_0.gguf 's/(general\.architecture.{12})llama/$1qwens/s')"
refuse "a missing key" 3 'GGUF key is missing: .*: llama.block_count$' "$(patch type-q4_0.gguf 's/llama\.block_count/llama.block_c0unt/')"
refuse "a missing tensor" 3 'tensor is missing: .*: blk.1.ffn_up.weight$' "$(patch type-q4_0.gguf 's/blk\.1\.ffn_up/blk.1.ffn_uq/')"
refuse "more layers than there are" 3 'tensor is missing: .*: blk.2.attn_norm.weight$' "$(patch type-q4_0.gguf 's/(llama\.block_count.{4})\x02/$1\xff/s')"
refuse "fewer layers than there are" 5 'tensor is not part of the llama architecture: .*: blk.1.attn_k.weight$' "$(patch type-q4_0.gguf 's/(llama\.block_count.{4})\x02/$1\x01/s')"
refuse "another shape" 3 'tensor is \[32, 64, 1, 1\], wanted \[32, 80\]: .*: blk.0.ffn_gate.weight$' "$(patch type-q4_0.gguf 's/(llama\.feed_forward_length.{4})\x40/$1\x50/s')"
refuse "a type that is not known here" 5 'tensor type IQ4_NL is not supported: .*: token_embd.weight$' "$(patch type-q4_0.gguf 's/(token_embd\.weight.{20})\x02/$1\x14/s')"
refuse "a type that is not known at all" 5 'GGUF tensor type 99 is unknown: .*: tensor token_embd.weight$' "$(patch type-q4_0.gguf 's/(token_embd\.weight.{20})\x02/$1\x63/s')"
refuse "heads that do not fit" 3 "heads are no multiple of key-value heads" "$(patch type-q4_0.gguf 's/(head_count_kv.{4})\x01/$1\x03/s')"
refuse "an unknown tokenizer" 5 "tokenizer \(tokenizer.ggml.model\) 'gpt3' is not supported: " "$(patch type-q4_0.gguf 's/(ggml\.model.{12})gpt2/$1gpt3/s')"
refuse "an unknown pre-tokenizer" 5 "pre-tokenizer \(tokenizer.ggml.pre\) 'gpt-3' is not supported: " "$(patch type-q4_0.gguf 's/gpt-2/gpt-3/')"
refuse "a merge of what is no token" 3 'merge 0 has a part that is no token: ' "$(patch type-q4_0.gguf 's/(merges.*?)a b/$1a !/s')"
refuse "a merge of one token" 3 'merge 0 is not two tokens: ' "$(patch type-q4_0.gguf 's/(merges.*?)a b/$1axb/s')"
refuse "two equal tokens" 3 'tokens 1 and 2 are the same: ' "$(patch type-q4_0.gguf 's/(tokenizer\.ggml\.tokens.*?\x01\0{7})a(\x01\0{7})b/$1a$2a/s')"
refuse "a token that is not UTF-8" 3 'token 1 is not UTF-8: ' "$(patch type-q4_0.gguf 's/(tokenizer\.ggml\.tokens.*?\x01\0{7})a/$1\xff/s')"
refuse "an id beyond the vocabulary" 3 'GGUF token id is beyond the vocabulary: .*: tokenizer.ggml.eos_token_id$' "$(patch type-q4_0.gguf 's/(eos_token_id.{4})\0/$1\x63/s')"
refuse "divisors by no rule" 5 "not supported: .*: rope_freqs.weight that is not Llama 3.1's scaling$" "$(patch type-bf16.gguf 's/\x00\x00\x00\x41/\x00\x00\x20\x41/')"
refuse "a name with an escape sequence" 5 "tensor is not part of the llama architecture: .*: blk.1.\?\[31m_up.weight$" "$(patch type-q4_0.gguf 's/(llama\.block_count.{4})\x02/$1\x01/s; s/blk\.1\.attn_k/zlk.1.attn_k/; s/blk\.1\.[ao]/zlk.1.x/g; s/blk\.1\.ffn_up/blk.1.\x1b[31m_up/; s/(\x13\0{7})blk\.1\.\x1b\[31m_up/\x15\0\0\0\0\0\0\0blk.1.\x1b[31m_up/')"
too_big=$(patch type-f32.gguf 's/\x00\xe8\x7d\x47/\x00\x00\x80\x47/')
exits "a value beyond float16" 3 'value is too large for F16 \(try --dtype f32\): .*: token_embd.weight$' st-import --dtype f16 -o "$new" "$too_big"
too_big=$(patch type-f32.gguf 's/\x00\xe8\x7d\x47/\xff\xff\x7f\x7f/')
exits "a value beyond bfloat16" 3 'value is too large for BF16 \(try --dtype f32\): .*: token_embd.weight$' st-import -o "$new" "$too_big"
ok "none of them left anything" test "$(find "$tap_dir" -maxdepth 1 -name 'new*' | wc -l)" = 0

# Usage
exits "no file at all" 2 "a GGUF file is needed; try 'st-import --help'" st-import
exits "two files" 2 "one GGUF file at a time" st-import a b
exits "a type that is none" 2 "--dtype takes f32, f16 or bf16, not 'f8'" st-import --dtype f8 a
exits "--help" 0 '' st-import --help
exits "--version" 0 '' st-import --version
is "its form" "$(st-import --version | cut -d . -f 1)" "st-import 0"
exits "-v sums up" 0 'st-import: 0 MB of weights in [0-9.]+ s$' st-import -v -o "$new" "$data/type-q4_0.gguf"
rm -r "$new"

# Trouble on the way
too_large() (
    trap '' XFSZ
    ulimit -f 8
    exec st-import -o "$new" "$data/type-f32.gguf"
)
exits "no room" 9 'cannot write: .*/model.safetensors: File too large' too_large
ok "leaves nothing" test "$(find "$tap_dir" -maxdepth 1 -name 'new*' | wc -l)" = 0
no_output() { st-import -o "$new" "$data/type-q4_0.gguf" >&-; }
exits "standard output closed" 9 'standard output' no_output
# A model of 4 million tokens, most of it a hole in the file, takes long enough to be stopped.
file=$(patch type-f16.gguf 's/(token_embd\.weight.{12})(.{8})(.{4})(.{8})/$1 . pack("Q<", 4000000) . $3 . pack("Q<", 1 << 20)/se')
truncate -s 300M "$file"
st-import -o "$new" "$file" > /dev/null 2> "$tap_dir/err" &
pid=$!
until [ -n "$(find "$tap_dir" -path "*/new.*/model.safetensors" -size +1000k)" ] || ! kill -0 $pid 2> /dev/null; do sleep 0.01; done
kill -INT $pid
wait $pid
is "SIGINT ends it" "$?" 130
is "without a word" "$(cat "$tap_dir/err")" ""
ok "and leaves nothing" test "$(find "$tap_dir" -maxdepth 1 -name 'new*' | wc -l)" = 0

if model=$(tests/model.sh); then
    is "SmolLM2 as transformers converts it" "$(sum "$model/model.safetensors")" 7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b
else
    skip "SmolLM2 as transformers converts it" "$model"
fi
done_testing
