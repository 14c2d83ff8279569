#!/bin/bash
# tests/verify.sh: passes what is right, without Python; on what is not, names the row and the suspect. The golden folders
# are tests/reference/verify.py's.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
models=tests/data/models golden=tests/data/verify
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
export XDG_CACHE_HOME=$tap_dir/cache

for name in llama mistral-window gemma2; do
    exits "$name" 0 '' sh -c "tests/verify.sh $models/$name $golden/$name > $tap_dir/table"
    is "$name: every row is ok" "$(tail -n +2 "$tap_dir/table" | cut -c30-34 | sort -u)" "ok   "
done
is "the rows" "$(tail -n +2 "$tap_dir/table" | cut -c1-28 | sed 's/ *$//' | tr '\n' ',')" \
    "tensor names and shapes,greedy ids,logits, float32,logits, bfloat16,perplexity,trace,"

# A model whose config says something else than what transformers ran, and what is said of it.
wrong() { # NAME MODEL ROW PATTERN SED...
    local name=$1 model=$2 row=$3 pattern=$4
    shift 4
    rm -rf "$tap_dir/model"
    cp -r "$models/$model" "$tap_dir/model"
    sed -i -E "$@" "$tap_dir/model/config.json"
    exits "$name" 1 '' sh -c "! cmp -s $models/$model/config.json $tap_dir/model/config.json && tests/verify.sh $tap_dir/model $golden/$model > $tap_dir/table"
    ok "$name: what is said" grep -qE "^$row +FAIL .*$pattern" "$tap_dir/table"
}
wrong "another RoPE" llama trace 'layers.0.[qk]_rope at \[1,0,.*suspect: RoPE' 's/("rope_theta": )[0-9.]+/\11000.0/'
wrong "a window of 17 for 16" mistral-window trace 'layers.0.attention at \[0,16,0\].*suspect: mask' 's/("sliding_window": )16/\117/'
wrong "a window of 15 for 16" mistral-window trace 'layers.0.attention at \[0,1[56],.*suspect: mask' 's/("sliding_window": )16/\115/'
wrong "another scale of the scores" gemma2 trace 'layers.0.attention at \[0,1,0\].*suspect: scale' 's/("query_pre_attn_scalar": )36/\120/'
wrong "no soft-cap of the scores" gemma2 trace 'layers.0.attention at .*suspect: scale' 's/("attn_logit_softcapping": )8.0/\1null/'
wrong "no soft-cap of the logits" gemma2 trace 'the first is logits.*suspect: the head, the soft-cap' 's/("final_logit_softcapping": )6.0/\1null/'
wrong "another epsilon" llama trace 'layers.0.q .*suspect: norm before attention' 's/("rms_norm_eps": )0.01/\11e-05/'
wrong "another activation" llama trace 'layers.0.mlp_output .*suspect: .*activation' 's/"silu"/"gelu"/'
is "the greedy ids differ too" "$(grep -c '^greedy ids  *FAIL  the first difference is id [0-9]* of 50: ' "$tap_dir/table")" 1
wrong "fewer layers" llama trace 'suspect: the number of layers.*: layers.2.q is only in the second' 's/("num_hidden_layers": )3/\12/'

# What else a golden folder may say.
edited() { # NAME ROW PATTERN FILE SED: the folder of llama with a file edited
    rm -rf "$tap_dir/golden"
    cp -r $golden/llama "$tap_dir/golden"
    sed -i -E "$5" "$tap_dir/golden/$4"
    tests/verify.sh $models/llama "$tap_dir/golden" > "$tap_dir/table"
    is "$1" "$? $(grep -cE "^$2 +$3" "$tap_dir/table")" "$6 1"
}
edited "another greedy id" 'greedy ids' 'FAIL +the first difference is id 1 of' greedy.ids 's/^[0-9]+/999/' 1
sed -i 's/^[0-9.e-]*/1e-5/' "$tap_dir/golden/margins"
is "a difference where the margin is small is none" "$(tests/verify.sh $models/llama "$tap_dir/golden" > "$tap_dir/table"; echo $?)" 0
edited "another shape" 'tensor names and shapes' 'FAIL.*lm_head.weight has \[317,72\], the model \[317,73\]' tensors.tsv 's/^(lm_head.weight.*317,)72/\173/' 1
edited "a tensor that is not there" 'tensor names and shapes' 'FAIL.*no model.extra' tensors.tsv 's/model.norm/model.extra/' 1
# shellcheck disable=SC2016
edited "a tied one need not be" 'tensor names and shapes' 'ok   ' tensors.tsv '$s/$/\nlm_head.twin\t1\ttied/' 0
edited "a base model lacks the first word of each name" 'tensor names and shapes' 'ok +30 of 30' tensors.tsv 's/^/base./' 0
edited "perplexity 1 % off" 'perplexity' 'odd' facts.tsv 's/(mean_nll.)7\.22/\17.23/' 0
edited "perplexity 10 % off" 'perplexity' 'FAIL' facts.tsv 's/(mean_nll.)7\.2/\17.3/' 1
edited "another logit" 'logits, float32' 'FAIL' last.logits 's/ 7:[^ ]*/ 7:0.1234/' 1
exits "no golden folder" 4 'not a golden folder' tests/verify.sh $models/llama $models/llama
exits "no operands" 2 'usage' tests/verify.sh
exits "no model, as make verify without MODEL" 2 'usage: .*MODEL=FOLDER' tests/verify.sh "" /golden
tests/verify.sh "$tap_dir/nothing" $golden/llama > "$tap_dir/table" 2> "$tap_dir/message"
is "no model: every row fails" "$? $(tail -n +2 "$tap_dir/table" | cut -c30-33 | sort -u)" "1 FAIL"

# The suspect, from lines that a kernel's fault would give.
suspect() { printf '%b' "$1" | awk -f tests/suspect.awk; }
before='layers.0.q\tagrees\t[3,6,4]\t0\t0\t1\t0\t\t\t\nlayers.0.q_rope\tagrees\t[3,6,4]\t1e-7\t0\t1\t0\t\t\t\n'
is "nothing differs" "$(suspect "$before")" $'ok\t2 tensors agree, the farthest is layers.0.q_rope by 1e-07'
is "the first head is right, the next not" "$(suspect "${before}layers.0.heads\tdiffers\t[3,6,4]\t1\t1\t0\t9\t[0,1,0]\t0.5\t0.25\n")" \
    $'FAIL\t1 of 3 tensors differ, the first is layers.0.heads at [0,1,0]: 0.5 for 0.25; suspect: GQA: which key-value head a query head uses'
is "nothing at all" "$(suspect '')" $'FAIL\tno trace'
done_testing
