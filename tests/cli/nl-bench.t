#!/bin/bash
# nl-bench: what it measures, not how long it takes.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
m=tests/data/models/llama
unset NL_MODEL
table() { grep -v '^#'; }

nl-bench -m $m -n 4 --prompt 3 --repeat 2 --prefill 1,70 --decode 0,50 -v --threads 2 > "$tap_dir/table" 2> "$tap_dir/err"
is "kind, step, length, ids" "$(table < "$tap_dir/table" | cut -f 1-4 | tr '\t' ' ')" "kind step length ids
cached 1 3 3
cached 2 4 1
cached 3 5 1
cached 4 6 1
naive 1 3 3
naive 2 4 4
naive 3 5 5
naive 4 6 6
cached-total 0 6 6
naive-total 0 6 18
prefill 0 1 1
prefill 0 70 70
decode 0 1 1
decode 0 51 1"
is "smallest, median, largest in order" "$(table < "$tap_dir/table" | awk 'NR > 1 && 0 < $5 && $5 <= $6 && $6 <= $7' | wc -l)" 14
is "ids a second" "$(awk -F '\t' '
    $1 ~ /^(cached|naive|decode)$/ { n = 1 } $1 == "prefill" { n = $4 } $1 ~ /total/ { n = 4 }
    !/^#/ && $1 != "kind" { good += ($8 * $6 / 1000 / n - 1) ^ 2 < 1e-3 }
    END { print good }' "$tap_dir/table")" 14
is "the naive way chooses the same ids" "$(cat "$tap_dir/err")" "nl-bench: 4 of 4 naive steps chose the cached step's id"
is "what was measured" "$(grep '^#' "$tap_dir/table" | grep -v machine | tr '\t' ' ' | sed "s/isa .*/isa/")" \
    "# program nl-bench $(sed -n 's/^VERSION = //p' Makefile)
# command nl-bench -m $m -n 4 --prompt 3 --repeat 2 --prefill 1,70 --decode 0,50 -v --threads 2
# device cpu
# isa
# threads 2
# model llama
# architecture LlamaForCausalLM
# parameters 120024
# weights F32
# activations F32
# prompt 3
# warm_up 1
# repeat 2"
is "the isa is the one asked for" "$(NL_ISA=portable nl-bench -m $m --decode 0 | grep isa)" "# isa	portable"
is "weights in bf16" "$(nl-bench -m tests/data/models/llama-bf16-llama3rope-tied-sharded --decode 0 | grep weights)" "# weights	BF16"
nl-bench -m $m -n 5 --repeat 1 --warm-up 0 > "$tap_dir/once"
is "a total is the sum of its steps" "$(awk -F '\t' '
    /^(cached|naive)\t/ { sum[$1] += $6 } /total/ { sub("-total", "", $1); total[$1] = $6 }
    END { for (k in total) good += (total[k] - sum[k]) ^ 2 < 1e-5; print good }' "$tap_dir/once")" 2
is "-n alone is the loop alone" "$(table < "$tap_dir/once" | wc -l)" 13
is "--no-naive" "$(nl-bench -m $m -n 2 --no-naive | table | cut -f 1 | uniq -c | awk '{ print $1 $2 }' | tr '\n' ' ')" "1kind 2cached 1cached-total "
is "without a choice everything that the context of 256 holds" \
    "$(nl-bench -m $m --no-naive --repeat 1 | table | cut -f 1,3 | grep -v '^cached	' | tr '\t\n' ': ')" "kind:length cached-total:159 prefill:1 prefill:64 decode:1 "
is "of a context of 40 too" "$(nl-bench -m $m --no-naive --repeat 1 -c 40 | table | cut -f 1,3 | grep -v '^cached	' | tr '\t\n' ': ')" \
    "kind:length cached-total:40 prefill:1 decode:1 "
is "and of 3" "$(nl-bench -m $m --no-naive --repeat 1 -c 3 | table | cut -f 1,3 | tr '\t\n' ': ')" "kind:length prefill:1 decode:1 "
exits "a prompt that was asked for is not left out" 7 '160 ids' nl-bench -m $m -c 3 --prompt 33
ln -s "$PWD/$m" "$tap_dir/$(printf 'a\nb')"
is "a command is one line" "$(nl-bench -m "$tap_dir/$(printf 'a\nb')" --decode 0 --repeat 1 | grep -c '^# command	.*a\\u000ab')" 1
nl-bench -m $m --json -n 2 --decode 5 > "$tap_dir/json"
is "--json has the same lines" "$(wc -l < "$tap_dir/json")" 8
if command -v python3 > /dev/null; then
    ok "each is JSON" python3 -c '
import json, sys
first, *rows = [json.loads(line) for line in open(sys.argv[1])]
assert first["model"] == "llama" and first["parameters"] == 120024 and first["machine"]
assert [row["kind"] for row in rows] == ["cached"] * 2 + ["naive"] * 2 + ["cached-total", "naive-total", "decode"]
assert all(0 < row["min_ms"] <= row["median_ms"] <= row["max_ms"] for row in rows)' "$tap_dir/json"
else
    skip "each is JSON" "no python3"
fi
echo 1 2 3 > "$tap_dir/ids"
exits "--ids, in a circle" 0 '8 of 8 naive' nl-bench -m $m -n 8 --prompt 10 --repeat 1 --ids "$tap_dir/ids" -v
echo 1 999 > "$tap_dir/bad"
exits "an id outside the vocabulary" 3 'id 999 at position 1' nl-bench -m $m -n 8 --ids "$tap_dir/bad"
exits "the same for a prefill" 3 'id 999 at position 1' nl-bench -m $m --prefill 8 --ids "$tap_dir/bad"
echo > "$tap_dir/none"
exits "no ids" 3 'no ids' nl-bench -m $m -n 8 --ids "$tap_dir/none"
exits "no file of ids" 4 'cannot open: nowhere' nl-bench -m $m --ids nowhere
exits "prompt and new ids fill the context" 0 '' nl-bench -m $m --prompt 252 -n 5 --repeat 1
exits "more than the context" 7 '257 ids do not fit into the context of 256' nl-bench -m $m --prompt 253 -n 5
exits "a prefill longer than the context" 7 '257 ids' nl-bench -m $m --prefill 1,257
is "and nothing is measured before" "$(nl-bench -m $m --prefill 1,257 2> /dev/null)" ""
exits "a depth without room" 7 '257 ids' nl-bench -m $m --decode 256
exits "an empty prompt" 2 '--prompt' nl-bench -m $m --prompt 0
exits "an empty prefill" 2 '--prefill' nl-bench -m $m --prefill 0
exits "a list that is none" 2 "--decode takes .*not '1,x'" nl-bench -m $m --decode 1,x
exits "no runs" 2 '--repeat' nl-bench -m $m --repeat 0
exits "an operand" 2 'operand|standard input' nl-bench -m $m file
exits "no model" 4 'nowhere' nl-bench -m ./nowhere
exits "a full disk" 9 'cannot write' sh -c "nl-bench -m $m -n 2 > /dev/full"
exits "-o on a full disk" 9 'cannot write: /dev/full' nl-bench -m $m --decode 1 -o /dev/full
exits "-o" 0 '' nl-bench -m $m -n 2 -o "$tap_dir/file"
is "which is whole" "$(table < "$tap_dir/file" | wc -l)" 7
exits "-o after a failure" 7 'do not fit' nl-bench -m $m -n 2 --decode 256 -o "$tap_dir/no-file"
is "leaves nothing" "$(echo "$tap_dir"/no-file*)" "$tap_dir/no-file*"
done_testing
