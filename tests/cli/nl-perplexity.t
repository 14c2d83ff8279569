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
exits "-o on a full disk" 9 'cannot write: /dev/full' nl-perplexity -m $m -o /dev/full < "$tap_dir/ids"
cp -r tests/data/models/granite "$tap_dir/sure"
sed -i 's/"logits_scaling": 0.6/"logits_scaling": 0.0001/' "$tap_dir/sure/config.json"
is "a perplexity beyond all numbers" "$(echo 1 5 9 | nl-perplexity -q -m "$tap_dir/sure" | cut -f 6 | tr '\n' ' ')" "perplexity inf inf "
is "in JSON too" "$(echo 1 5 9 | nl-perplexity -q -m "$tap_dir/sure" --json | grep -o '"perplexity".*')" '"perplexity":"inf"}'
exits "a full disk" 9 'cannot write' sh -c "nl-perplexity -m $m < $tap_dir/ids > /dev/full"

# Two runs compared: against sums over their text twins.
a=$tap_dir/a b=$tap_dir/b
nl-forward -m $m --all < "$tap_dir/ids" > "$a"
nl-sample --logits --temperature 2 --logit-bias 25:-9,53:-9,187:-9 < "$a" > "$b"
nl-forward -m $m --all --text < "$tap_dir/ids" > "$a.text"
nl-sample --logits --text --temperature 2 --logit-bias 25:-9,53:-9,187:-9 < "$a" > "$b.text"
expect_kl() { # position kl top reference_top, a line each
    paste -d ' ' "$a.text" "$b.text" | gawk '
        NF > 1 {
            half = NF / 2; sp = sq = kl = 0; top = rtop = -1
            for (i = 2; i <= half; i++) {
                split($i, x, ":"); split($(i + half), y, ":"); p[i] = x[2]; q[i] = y[2]; sp += exp(x[2]); sq += exp(y[2])
                if (rtop < 0 || x[2] + 0 > p[rtop]) rtop = i
                if (top < 0 || y[2] + 0 > q[top]) top = i
            }
            for (i = 2; i <= half; i++) kl += exp(p[i]) / sp * (p[i] - log(sp) - q[i] + log(sq))
            printf "%d %.9f %d %d\n", $1, kl, top - 2, rtop - 2
        }'
}
expect_kl > "$tap_dir/rows"
nl-perplexity --reference "$a" --tokens < "$b" > "$tap_dir/table"
is "--reference: the divergence at each position" \
    "$(awk '$1 == "token" { printf "%d %.4f %d %d\n", $2, $3, $4, $5 }' "$tap_dir/table")" \
    "$(awk '{ printf "%d %.4f %d %d\n", $1, $2, $3, $4 }' "$tap_dir/rows")"
is "they differ" "$(awk '$2 > 0.01' "$tap_dir/rows" | wc -l)" 12
is "some choices differ, some do not" "$(awk '$3 != $4' "$tap_dir/rows" | wc -l | awk '{ print ($1 > 0 && $1 < 12) }')" 1
is "mean, median, largest, agreement" "$(awk '$1 == "total" { printf "%d %.4f %.4f %.4f %s %.4f", $2, $3, $4, $5, $6, $7 }' "$tap_dir/table")" \
    "$(sort -k 2,2n "$tap_dir/rows" | awk '
        { sum += $2; v[NR] = $2; same += $3 == $4; at = $1 }
        END { printf "12 %.4f %.4f %.4f 0:%d %.4f", sum / 12, (v[6] + v[7]) / 2, v[12], at, same / 12 }')"
is "the reference's likelihood is the one scored alone" \
    "$(awk '$1 == "total" { printf "%.4f", $9 }' "$tap_dir/table")" "$(nl-perplexity -m $m < "$tap_dir/ids" | awk '/^total/ { printf "%.4f", $4 }')"
cp "$a" "$a.same"
is "a stream and itself" "$(nl-perplexity --reference "$a" < "$a.same" | awk '/^total/ { print $2, $3, $4, $5, $7 }')" "12 0 0 0 1.000000"
is "text twins, without ids" "$(nl-perplexity --reference "$a.text" < "$b.text" | awk -F '\t' '/^total/ { print NF, $8 $9 }')" "9 "
is "binary against text" "$(nl-perplexity --reference "$a.text" < "$b")" "$(grep -v ^token "$tap_dir/table")"
is "--json" "$(nl-perplexity --json --tokens --reference "$a" < "$b" | grep -cE '^\{.*"(kl|mean)":[0-9.]+,.*\}$')" 14
nl-sample --logits --top-k 5 < "$a" > "$tap_dir/top5"
is "what only the run excludes makes it infinite" "$(nl-perplexity --reference "$a" < "$tap_dir/top5" | awk '/^total/ { print $3 }')" inf
is "in JSON a string" "$(nl-perplexity --json --reference "$a" < "$tap_dir/top5" | tail -n 1 | grep -c '"mean":"inf"')" 1
is "what the reference excludes does not" "$(nl-perplexity --reference "$tap_dir/top5" < "$a" | awk '/^total/ { print ($3 > 0 && $3 < 10) }')" 1
echo "$prompt 5" | nl-forward -m $m --all > "$tap_dir/longer"
echo "${prompt% *} 131" | nl-forward -m $m --all > "$tap_dir/other"
echo "$prompt" | nl-forward -m $m > "$tap_dir/last"
printf '%s\n%s\n' "$prompt" "$prompt" | nl-forward -m $m --all > "$tap_dir/two"
printf '{"kind":"NLS1"}\n{"kind":"LGTS","position":1,"logits":[1,2]}\n{"kind":"DONE"}\n' > "$tap_dir/small"
printf '{"kind":"NLS1"}\n{"kind":"LGTS","position":1,"logits":[1,"nan"]}\n{"kind":"DONE"}\n' > "$tap_dir/nan"
for other in longer:length other:ids last:positions two:length small:vocabularies; do
    exits "streams that differ: ${other%:*}" 3 "differ in their ${other#*:}: .*sequence" nl-perplexity --reference "$tap_dir/${other%:*}" < "$a"
    exits "the other way round: ${other%:*}" 3 "differ in their ${other#*:}: .*sequence" nl-perplexity --reference "$a" < "$tap_dir/${other%:*}"
done
exits "NaN is no distribution" 3 'NaN.*sequence 0, position 1' nl-perplexity --reference "$tap_dir/nan" < "$tap_dir/small"
exits "a reference cut short" 8 "$a.cut" sh -c "head -c 5000 $a > $a.cut; nl-perplexity --reference $a.cut < $a"
exits "no such reference" 4 'cannot open: nowhere' nl-perplexity --reference nowhere < "$a"
exits "ids are no logits" 3 'not id:value' nl-perplexity --reference "$a" < "$tap_dir/ids"
exits "options of scoring" 2 '--reference runs no model' nl-perplexity --reference "$a" --window 3
printf '1 2\n999\n3 4\n' | nl-forward -m $m --all > "$tap_dir/failed" 2> /dev/null
printf '1 2\n9\n3 4\n' | nl-forward -m $m --all > "$tap_dir/three"
exits "a sequence that failed is left out" 8 '' nl-perplexity --reference "$tap_dir/failed" < "$tap_dir/three"
is "the others are compared" "$(awk '/^total/ { print $2 }' "$tap_dir/out")" 4
mkfifo "$tap_dir/fifo"
nl-forward -m $m --all < "$tap_dir/ids" > "$tap_dir/fifo" &
is "through a FIFO" "$(timeout 20 nl-perplexity --reference "$tap_dir/fifo" --tokens < "$b")" "$(cat "$tap_dir/table")"
wait

if [ -z "${NL_SMOLLM2:-}" ]; then
    skip "WikiText-2 on SmolLM2" "no SmolLM2, see tests/model.sh"
elif [ -z "${NL_SHARED:-}" ]; then
    skip "WikiText-2 on SmolLM2" "no shared test data"
else
    # transformers in float32: the mean of each of the first windows, 1e-5 relative. NL_WINDOWS=64: all that were recorded.
    case $B in *address*) few=1 ;; *) few=2 ;; esac # a minute each
    windows=${NL_WINDOWS:-$few}
    head -c $((windows * 10000)) "$NL_SHARED/data/wikitext-2-raw-test.txt" | nl-tokenize -m "$NL_SMOLLM2" --raw |
        nl-perplexity -m "$NL_SMOLLM2" --window 1024 --windows "$windows" --json |
        sed -n 's/.*"window":.*"nll":\([0-9.]*\).*/\1/p' > "$tap_dir/nll"
    is "WikiText-2 on SmolLM2: $windows of the windows" \
        "$(grep -o '"nll": \[[^]]*' "$NL_SHARED/models/smollm2-135m/perplexity.json" | grep -o '[0-9][0-9.]*' |
            paste - "$tap_dir/nll" | awk 'NF == 2 { good += ($2 / $1 - 1) ^ 2 < 1e-10 } END { print good }')" "$windows"
fi
done_testing
