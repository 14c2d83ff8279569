#!/bin/bash
# The compiled tokenizer in the cache folder: programs at once, and no folder to write to. Threads.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$(dirname "$0")/../.." || exit 1
model=$B/tokenizers/llama3_1
if [ ! -f "$model/tokenizer.json" ]; then
    skip "tokenizer cache" "no Llama 3.1 tokenizer"
    done_testing
fi
text='Hello, world! The answer is 12345 and it isn'\''t 7.'
export XDG_CACHE_HOME=$tap_dir/cache
printf '%s' "$text" | XDG_CACHE_HOME=/dev/null/x nl-tokenize -m "$model" > "$tap_dir/want"
for i in 1 2 3 4; do
    printf '%s' "$text" | nl-tokenize -m "$model" > "$tap_dir/got$i" &
done
wait
for i in 1 2 3 4; do ok "program $i of four at once" cmp "$tap_dir/want" "$tap_dir/got$i"; done
is "they leave one file" "$(find "$XDG_CACHE_HOME" -name 'tokenizer-tables*' | wc -l)" 1
printf '%s' "$text" | nl-tokenize -m "$model" > "$tap_dir/got"
ok "the same from the cache" cmp "$tap_dir/want" "$tap_dir/got"
is "and back" "$(nl-detok < "$tap_dir/got")" "$text"
file=$(find "$XDG_CACHE_HOME" -name 'tokenizer-tables*')
head -c 100000 "$file" > "$tap_dir/short" && cp "$tap_dir/short" "$file"
printf '%s' "$text" | nl-tokenize -m "$model" > "$tap_dir/got"
ok "the same with a damaged one" cmp "$tap_dir/want" "$tap_dir/got"
ok "which is replaced" test "$(stat -c %s "$file")" -gt 1000000

# A home that cannot be written, also by root, or that stopped to be
at_home() { env -u XDG_CACHE_HOME HOME="$1" nl-tokenize -m "$model" <<< "$text"; }
mkdir "$tap_dir/home"
at_home "$tap_dir/home" > "$tap_dir/got" 2> "$tap_dir/err" &
exits "two first starts at once" 0 '' at_home "$tap_dir/home"
wait
ok "they give the same" cmp "$tap_dir/want" "$tap_dir/out"
ok "both of them" cmp "$tap_dir/want" "$tap_dir/got"
is "the other says nothing either" "$(cat "$tap_dir/err")" ""
is "the home keeps what they compiled" "$(find "$tap_dir/home/.cache/nanollm" -name 'tokenizer-tables*' | wc -l)" 1
chmod -R a-w "$tap_dir/home"
for home in /proc /dev/null "$tap_dir/home"; do
    exits "home ${home##*/}: nothing is said" 0 '' at_home "$home"
    ok "home ${home##*/}: the same ids" cmp "$tap_dir/want" "$tap_dir/out"
done
chmod -R u+w "$tap_dir/home"

for i in $(seq 12000); do echo "It's line $i of a text, 1234567 and so on; naïve  words"; done > "$tap_dir/text"
nl-tokenize --threads 1 --text -m "$model" "$tap_dir/text" > "$tap_dir/want"
for n in 2 3 8; do
    nl-tokenize --threads $n --text -m "$model" "$tap_dir/text" > "$tap_dir/got"
    ok "--threads $n gives the same ids" cmp "$tap_dir/want" "$tap_dir/got"
done
exits "--threads 0" 2 'threads' nl-tokenize --threads 0 -m "$model"
done_testing
