#!/bin/bash
# examples/kv-cache: the script that measures and draws, with a gnuplot that only notes what it is told; and the
# measurement whose picture the README shows.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
top=$PWD
column() { awk -F '\t' -v kind="$1" -v column="$2" '$1 == kind { print $column }' "$data"; }
flat() { column cached 6 | awk 'NR == 2 { second = $1 } { last = $1 } END { print (last <= 1.2 * second) }'; }
growing() { # by quarters
    column naive 6 | awk -v n="$(column naive 6 | wc -l)" '
        { sum[int(4 * (NR - 1) / n)] += $1 } END { print (sum[0] < sum[1] && sum[1] < sum[2] && sum[2] < sum[3]) }'
}

mkdir "$tap_dir/bin" "$tap_dir/work"
# shellcheck disable=SC2016 # the shell in the file
printf '#!/bin/sh\nprintf "%%s\\n" "$@" > arguments\n' > "$tap_dir/bin/gnuplot"
chmod +x "$tap_dir/bin/gnuplot"
PATH=$tap_dir/bin:$PATH
cd "$tap_dir/work" || exit 1
exits "draw.sh measures and draws" 0 '^kv-cache.svg and kv-cache.png are drawn$' \
    "$top/examples/kv-cache/draw.sh" -m "$top/tests/data/models/llama" --repeat 1
data=kv-cache.tsv
is "128 steps after 32 ids, both ways" "$(column cached 3 | wc -l) $(column naive 3 | wc -l) $(column cached 3 | head -n 1)" "128 128 32"
is "two totals" "$(grep -c '^[a-z]*-total' $data)" 2
is "what gnuplot is told" "$(grep -oE "(model|weights|prompt|threads|repeat|data) = '[^']*'" arguments | grep -v threads | tr '\n' ' ')" \
    "data = 'kv-cache.tsv' model = 'llama' weights = 'F32' prompt = '32' repeat = '1' "
is "machine, isa and command too" "$(grep -cE "machine = '.+'; isa = '.+'; threads = '[0-9]+'|command = 'nl-bench -n 128 .+'" arguments)" 2
exits "an old measurement" 0 'are drawn' "$top/examples/kv-cache/draw.sh" --data kv-cache.tsv
# The checks below find what they should: a measurement made up.
printf 'cached\t%d\t0\t0\t0\t%d\nnaive\t%d\t0\t0\t0\t%d\n' 1 9 1 10 2 10 2 20 3 11 3 30 4 12 4 40 > $data
is "flat enough, and growing" "$(flat) $(growing)" "1 1"
printf 'cached\t%d\t0\t0\t0\t%d\nnaive\t%d\t0\t0\t0\t%d\n' 1 9 1 10 2 10 2 20 3 11 3 20 4 13 4 40 > $data
is "neither" "$(flat) $(growing)" "0 0"

cd "$top" || exit 1
data=examples/kv-cache/kv-cache.tsv
if [ -e "$data" ]; then
    is "the README's: 128 steps after 32 ids, both ways" "$(column cached 3 | wc -l) $(column naive 3 | wc -l) $(column cached 3 | head -n 1)" "128 128 32"
    is "cached: flat; naive: growing" "$(flat) $(growing)" "1 1"
    is "of SmolLM2" "$(sed -n 's/^# model	//p' $data)" SmolLM2-135M-Instruct
    for fact in machine command; do
        ok "the picture says its $fact" grep -qF "$(sed -n "s/^# $fact	//p" $data)" examples/kv-cache/kv-cache.svg
    done
    ok "the README shows it" grep -q 'examples/kv-cache/kv-cache.svg' README.md
fi
done_testing
