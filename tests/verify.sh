#!/bin/bash
# verify.sh MODEL GOLDEN: compares the programs on a model folder with what transformers did, as tests/reference/verify.py
# has written it to the folder GOLDEN (what is in it is described there). Prints one table; status 1 when something differs
# by more than its limit, and then which tensor of the run is the first, and what to suspect. Needs no Python.
# $B: the build folder, default build; the programs come from its bin.
# shellcheck disable=SC2317 # functions that are called by name
set -uo pipefail
if [ $# -ne 2 ] || [ -z "$1" ]; then
    echo "usage: verify.sh MODEL GOLDEN, or make verify MODEL=FOLDER [GOLDEN=FOLDER]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-$here/../build}
PATH=$(cd "$B" && pwd)/bin:$PATH
model=$1 golden=$2
[ -e "$golden/facts.tsv" ] || { echo "verify.sh: not a golden folder, tests/reference/verify.py makes one: $golden" >&2 && exit 4; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

fact() { awk -F '\t' -v key="$1" '$1 == key { print $2 }' "$golden/facts.tsv"; }
# row NAME VERDICT TEXT: VERDICT ok, odd (no failure, but not what is expected) or FAIL.
row() {
    printf '%-28s %-5s %s\n' "$1" "$2" "$3"
    [ "$2" != FAIL ] || failed=1
}
# within VALUE LIMIT: ok or FAIL; what is no number fails.
within() { awk -v value="$1" -v limit="$2" 'BEGIN { print ((value ~ /^[0-9.]+(e[-+]?[0-9]+)?$/ && value + 0 <= limit + 0) ? "ok" : "FAIL") }'; }

tensors() { # names and shapes of the files against those of the model's state; base models lack the first word
    st-inspect --tsv "$model" | awk -F '\t' '{ gsub(/[][]/, "", $3); print $1 "\t" $3 }' > "$tmp/files.tsv" || return 1
    awk -F '\t' '
        NR == FNR { shape[$1] = $2; n++; next }
        {
            name = $1; base = name; sub(/^[^.]*\./, "", base)
            if (!(name in shape) && (base in shape)) name = base
            if (name in shape) { used++; if (shape[name] != $2) bad = bad "; " name " has [" shape[name] "], the model [" $2 "]" }
            else if ($3 != "tied") bad = bad "; no " name
        }
        END {
            text = used " of " n " tensors are the model'\''s"
            print (bad ? "FAIL\t" text bad : "ok\t" text)
        }' "$tmp/files.tsv" "$golden/tensors.tsv"
}

tokens() { # NAME: the tokenizer on NAME.txt
    nl-tokenize -m "$model" --text < "$golden/$1.txt" > "$tmp/$1.ids" || return
    awk 'NR == FNR { for (i = 1; i <= NF; i++) want[++n] = $i; next }
         { for (i = 1; i <= NF; i++) if ($i != want[++k] && !at) at = k }
         END { if (k != n && !at) at = (k < n ? k : n) + 1
               print at ? "FAIL\tthe first difference is id " at " of " n : "ok\t" n " ids identical" }' "$golden/$1.ids" "$tmp/$1.ids"
}

greedy() { # a difference where transformers hardly preferred its choice is none of ours
    nl-generate -m "$model" -c "$(fact context)" --any-tokenizer --ignore-eos --text -n "$(wc -w < "$golden/greedy.ids")" \
        < "$golden/prompt.ids" > "$tmp/greedy.ids" || return
    awk 'FNR == 1 { file++ }
         { for (i = 1; i <= NF; i++) value[file, ++count[file]] = $i }
         END {
            n = count[2]
            for (i = 1; i <= n; i++) {
                if (i == 1 || value[1, i] < least) least = value[1, i]
                if (value[2, i] != value[3, i] && !at) at = i
            }
            least = sprintf("smallest top-2 margin %.3g", least)
            if (!at) print "ok\t" n " of " n " identical, " least
            else print (value[1, at] <= 1e-4 ? "odd" : "FAIL") "\tthe first difference is id " at " of " n ": " value[3, at] " for " \
                value[2, at] ", where the margin is " value[1, at]
         }' "$golden/margins" "$golden/greedy.ids" "$tmp/greedy.ids"
}

logit_difference() { # FILE: the largest against the logits after the prompt
    awk 'NR == FNR { for (i = 2; i <= NF; i++) { split($i, p, ":"); want[p[1]] = p[2] } n = NF; next }
         NF > 1 && !done {
            done = 1
            for (i = 2; i <= NF; i++) {
                split($i, p, ":")
                d = p[2] - want[p[1]]; if (d < 0) d = -d
                if (!(d <= worst)) worst = d
            }
            print NF == n ? sprintf("%.3g", worst) : "another number of logits"
         }' "$golden/$1" "$tmp/last.logits"
}

perplexity() {
    nl-perplexity -q -m "$model" --any-tokenizer --window "$(fact window)" --json < "$golden/text.ids" > "$tmp/perplexity" || return
    mean=$(sed -n '$s/.*"nll":\([-+0-9.e]*\).*/\1/p' "$tmp/perplexity")
    awk -v got="$mean" -v want="$(fact mean_nll)" 'BEGIN {
        d = exp(got - want) - 1; if (d < 0) d = -d
        printf "%s\t%.6g, transformers %.6g: %.2g apart\n", got == "" || !(d <= 0.05) ? "FAIL" : d <= 1e-5 ? "ok" : "odd", exp(got), exp(want), d }'
}

check() { # NAME FUNCTION...: a row from the function's "VERDICT<tab>TEXT"
    local name=$1 said
    shift
    said=$("$@" 2> "$tmp/message")
    [ -n "$said" ] || said=$'FAIL\t'$(head -n 1 "$tmp/message")
    row "$name" "${said%%$'\t'*}" "${said#*$'\t'}"
}

echo "$model against transformers $(fact transformers), torch $(fact torch)"
check "tensor names and shapes" tensors
for name in prompt text; do
    [ ! -e "$golden/$name.txt" ] || check "token ids of the $name" tokens $name
done
check "greedy ids" greedy
if nl-forward -m "$model" -c "$(fact context)" --any-tokenizer --text --trace "$tmp/trace.safetensors" \
    < "$golden/prompt.ids" > "$tmp/last.logits" 2> "$tmp/message"; then
    difference=$(logit_difference last.logits)
    row "logits, float32" "$(within "$difference" 1e-3)" "$difference at most, the limit is 1e-3"
    if [ -e "$golden/last16.logits" ]; then # transformers itself may be farther from float32 than that
        difference=$(logit_difference last16.logits)
        limit=$(awk -v own="$(fact own16)" 'BEGIN { print (own > 0.1 ? 1.1 * own : 0.1) }')
        row "logits, $(fact dtype)" "$(within "$difference" "$limit")" \
            "$difference at most, the limit is $limit; transformers' own is $(fact own16)"
    fi
else
    row "logits" FAIL "$(head -n 1 "$tmp/message")"
fi
check "perplexity" perplexity
if [ -e "$tmp/trace.safetensors" ]; then
    st-diff --tsv --atol 1e-3 --rtol 1e-3 "$tmp/trace.safetensors" "$golden/trace.safetensors" > "$tmp/diff.tsv"
    check "trace" awk -f "$here/suspect.awk" "$tmp/diff.tsv"
fi
exit $failed
