#!/bin/bash
# Input without an end, or longer than one wants to hold: encoded in parts, with the ids of the whole.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$(dirname "$0")/../.." || exit 1
export XDG_CACHE_HOME=$tap_dir/cache
export NL_MODEL=$B/tokenizers/llama3_1
if [ ! -f "$NL_MODEL/tokenizer.json" ]; then
    skip "input without an end" "no Llama 3.1 tokenizer"
    done_testing
fi
text=$tap_dir/text
for i in $(seq 30000); do echo "It's line $i of a text, 1234567 and  so on; naïve 中文 words<|end_of_text|> here "; done > "$text"
nl-tokenize --text --truncate 4000000000 < "$text" > "$tap_dir/whole" # which is not parted
for threads in 1 2; do
    nl-tokenize --text --threads $threads < "$text" > "$tap_dir/parts"
    ok "the ids of the parts are those of the whole, --threads $threads" cmp "$tap_dir/whole" "$tap_dir/parts"
    nl-tokenize --text --raw --threads $threads < "$text" | nl-detok --raw > "$tap_dir/back"
    ok "there and back, --threads $threads" cmp "$text" "$tap_dir/back"
done
is "one sequence" "$(nl-tokenize --json < "$text" | grep -o '"kind":"[NFD][A-Z1]*"' | tr '\n' ' ')" '"kind":"NLS1" "kind":"DONE" '
{ cat "$text"; printf '\377'; } > "$tap_dir/bad"
size=$(stat -c %s "$text")
exits "what is not UTF-8, far behind" 3 "byte $size\$" nl-tokenize "$tap_dir/bad"
nl-tokenize --json "$tap_dir/bad" "$text" 2> "$tap_dir/err" | grep -o '"kind":"DONE","finish":"[a-z]*"' > "$tap_dir/ends"
is "it ends the sequence, the next is whole" "$(tr '\n' ' ' < "$tap_dir/ends")" '"kind":"DONE","finish":"error" "kind":"DONE","finish":"input" '
mkfifo "$tap_dir/pipe"
nl-tokenize --json < "$tap_dir/pipe" > "$tap_dir/out" &
program=$!
exec 7> "$tap_dir/pipe"
cat "$text" >&7
for _ in $(seq 100); do grep -q '"kind":"TOKS"' "$tap_dir/out" && break; sleep 0.05; done
ok "ids come before the end of the input" grep -q '"kind":"TOKS"' "$tap_dir/out"
kill -INT $program
wait $program
is "SIGINT: dies of it" $? 130
exec 7>&-
is "having ended the sequence" "$(tail -n 1 "$tap_dir/out")" '{"kind":"DONE","finish":"cancelled"}'
case $B in
*address* | *thread*) skip "memory" "a sanitizer's own is not limited" ;;
*)
    is "memory does not grow with the input" "$( (ulimit -v 500000; yes 'some more text' | nl-tokenize --threads 1 | head -c 100000000 | wc -c))" 100000000
    exits "nowhere to part it: refused" 3 '256 MiB without a place to part the text: standard input: byte 0' \
        timeout 60 nl-tokenize < /dev/zero
    # shellcheck disable=SC2317
    endless_line() { tr '\0' x < /dev/zero | timeout 60 nl-tokenize --lines; }
    exits "a line without an end: refused" 3 '256 MiB without a place' endless_line
    ;;
esac
done_testing
