#!/bin/bash
# nl-perplexity against sums over the logits of nl-forward, and against transformers on SmolLM2.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
m=tests/data/models/llama
unset NL_MODEL
prompt="1 40 132 162 155 310 67 213 184 290 93 130"

# The mean negative log-likelihood of ids FROM.. of "$@", from the logits of every position.
expected() {
    local from=$1
    shift
    echo "$@" | nl-forward -m $m --all --text | gawk -v ids="$*" -v from="$from" '
        BEGIN { n = split(ids, id, " ") }
        NF > 1 && $1 < n && $1 >= from {
            sum = 0
            for (i = 2; i <= NF; i++) { split($i, p, ":"); sum += exp(p[2]); if (p[1] == id[$1 + 1]) mine = p[2] }
            total += log(sum) - mine; count++
        }
        END { printf "%d %.4f", count, total / count }'
}
# "scored nll" of a window of the table.
window() { awk -F '\t' -v w="$1" '$2 == w && $1 != "total" { printf "%d %.4f", $4, $5 }'; }

read -ra ids <<< "$prompt"
echo "$prompt" > "$tap_dir/ids"
is "one window" "$(nl-perplexity -m $m --window 12 < "$tap_dir/ids" | window 0)" "$(expected 1 "${ids[@]}")"
is "the context is the default window" "$(nl-perplexity -m $m < "$tap_dir/ids" | window 0)" "$(expected 1 "${ids[@]}")"
is "windows that do not overlap" "$(nl-perplexity -m $m --window 5 < "$tap_dir/ids" | window 1)" "$(expected 1 "${ids[@]:5:5}")"
is "a shorter one at the end" "$(nl-perplexity -m $m --window 5 < "$tap_dir/ids" | window 2)" "$(expected 1 "${ids[@]:10:2}")"
is "left out with --whole" "$(nl-perplexity -m $m --window 5 --whole < "$tap_dir/ids" | window 2)" ""
is "with a stride: only what is new" "$(nl-perplexity -m $m --window 6 --stride 4 < "$tap_dir/ids" | window 1)" "$(expected 2 "${ids[@]:4:6}")"
is "with a stride every id but the first is scored once" \
    "$(nl-perplexity -m $m --window 6 --stride 1 < "$tap_dir/ids" | awk '/^total/ { print $3 }')" 11
is "--windows ends early" "$(nl-perplexity -m $m --window 3 --windows 2 < "$tap_dir/ids" | wc -l)" 4
is "--tokens: a line each" "$(nl-perplexity -m $m --tokens < "$tap_dir/ids" | grep -c ^token)" 11
is "the perplexity is the exponential" \
    "$(nl-perplexity -m $m < "$tap_dir/ids" | awk -F '\t' '/^total/ { print ($6 - exp($5)) ^ 2 < 1e-3 * $6 }')" 1
is "--json" "$(nl-perplexity -m $m --json < "$tap_dir/ids" | grep -c '^{.*"nll":[0-9.]*.*}$')" 2
is "chunks do not matter" "$(nl-perplexity -m $m --prefill-chunk 3 --threads 1 < "$tap_dir/ids")" "$(nl-perplexity -m $m < "$tap_dir/ids")"
is "an empty sequence scores nothing" "$(echo | nl-perplexity -m $m | awk '/^total/ { print $3 }')" 0
exits "a window longer than the context" 7 'windows of 300 ids do not fit' nl-perplexity -m $m --window 300 < "$tap_dir/ids"
exits "a stride longer than the window" 2 'stride' nl-perplexity --window 3 --stride 4
exits "an id outside the vocabulary" 3 'id 317' sh -c "echo 5 317 | nl-perplexity -m $m"
exits "the next sequences are scored" 3 'id 999' sh -c "printf '999\n$prompt\n' | nl-perplexity -m $m > $tap_dir/out"
is "as they would be alone" "$(window 0 < "$tap_dir/out")" "$(expected 1 "${ids[@]}")"
exits "a full disk" 9 'cannot write' sh -c "nl-perplexity -m $m < $tap_dir/ids > /dev/full"

if [ -z "${NL_SMOLLM2:-}" ]; then
    skip "WikiText-2 on SmolLM2" "no SmolLM2, see tests/model.sh"
elif [ -z "${NL_SHARED:-}" ]; then
    skip "WikiText-2 on SmolLM2" "no shared test data"
else
    # transformers in float32: the mean of the first window, 1e-5 relative.
    is "WikiText-2 on SmolLM2: the first window" \
        "$(head -c 20000 "$NL_SHARED/data/wikitext-2-raw-test.txt" | nl-tokenize -m "$NL_SMOLLM2" --raw |
            nl-perplexity -m "$NL_SMOLLM2" --window 1024 --windows 1 --json |
            awk -F '"nll":' 'NR == 1 { print ($2 / 2.6266961097717285 - 1) ^ 2 < 1e-10 }')" 1
fi
done_testing
