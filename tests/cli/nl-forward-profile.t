#!/bin/bash
# nl-forward --profile: calls and sums, not how long anything takes.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
m=tests/data/models/gemma3
layers=$(grep -o '"num_hidden_layers": [0-9]*' $m/config.json | grep -o '[0-9]*$')
unset NL_MODEL
printf '%s\n' "1 2 3 4 5" "6 7 8" > "$tap_dir/ids"

profile() { # [OPTION]...: the table in $tap_dir/table, nl-forward's summary in $tap_dir/err
    nl-forward -m $m --profile="$tap_dir/table" -v "$@" < "$tap_dir/ids" > "$tap_dir/out" 2> "$tap_dir/err"
}
sum() { awk -F '\t' -v what="$1" '$1 == what { sum += $4 } END { printf "%.3f", sum }' "$tap_dir/table"; }
# shellcheck disable=SC2317 # called by ok
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !((a - b) ^ 2 < 0.02 ^ 2) }'; } # of 40 numbers rounded to 0.001

for threads in 1 2; do
    profile --threads $threads
    is "ids and steps, $threads threads" "$(awk -F '\t' '$1 == "total" { print $2, $3, $5 }' "$tap_dir/table")" "8 2 1.0000"
    is "each operation once a step or layer" "$(awk -F '\t' '$1 == "operation" { printf "%s ", $2 ":" $3 }' "$tap_dir/table")" \
        "embed:2 norm:$((2 * (4 * layers + 1))) qkv:$((2 * layers)) qk_norm:$((2 * layers)) rope:$((2 * layers)) attention:$((2 * layers)) o:$((2 * layers)) gate_up:$((2 * layers)) activation:$((2 * layers)) down:$((2 * layers)) logits:2 argmax:2 "
    is "a line for each layer" "$(awk -F '\t' '$1 == "layer" { printf "%s ", $2 }' "$tap_dir/table")" "$(seq -s ' ' 0 $((layers - 1)))  "
    is "calls of the layers are those of the operations" "$(awk -F '\t' '{ n[$1] += $3 } END { print n["layer"] - n["operation"] }' "$tap_dir/table")" 0
    ok "operations add up to the total" near "$(sum operation)" "$(sum total)"
    ok "so do the layers" near "$(sum layer)" "$(sum total)"
    is "shares add up to 1" "$(awk -F '\t' '$1 == "operation" { sum += $5 } END { print ((sum - 1) ^ 2 < 0.002 ^ 2) }' "$tap_dir/table")" 1
    is "no time is lost or made up" "$(awk -v total="$(sum total)" '{ print (0 < total && total < $5 * 1000 + 10) }' "$tap_dir/err")" 1
done
is "the output is the same" "$(nl-forward -m $m < "$tap_dir/ids" | cksum)" "$(cksum < "$tap_dir/out")"
profile --prefill-chunk 2
is "each chunk is a step" "$(awk -F '\t' '$1 == "total" { print $2, $3 }' "$tap_dir/table")" "8 5"
exits "on standard error" 0 '^total	8	2	' nl-forward -m $m --profile < "$tap_dir/ids"
is "which is nothing but the table" "$(grep -cvE '^(what|operation|layer|total)	' "$tap_dir/err")" 0
is "GPT-2: two products a layer less, learned positions" \
    "$(echo 1 2 | nl-forward -m tests/data/models/gpt2 --profile=/dev/stdout -o /dev/null | awk '/^op/ { printf "%s ", $2 }')" \
    "embed norm qkv rope attention o gate_up activation down logits argmax "
exits "with --trace" 2 '--profile does not go with --trace' nl-forward --profile --trace "$tap_dir/trace"
exits "a full disk" 9 'cannot write' sh -c "nl-forward -m $m --profile=/dev/full < $tap_dir/ids > /dev/null"
echo 999 > "$tap_dir/ids"
exits "a run that failed: a profile all the same" 3 '^total	0	0	0.000	' nl-forward -m $m --profile < "$tap_dir/ids"
done_testing
