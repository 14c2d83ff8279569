#!/bin/bash
# The readers and the writer in nl-stream(5)'s EXAMPLES, taken out of the page and run on streams of the library's writer.
# shellcheck source=tests/cli/tap.sh
. "${0%/*}/tap.sh"
PATH=$B/tools:$PATH
dir=${tap_dir:?}

# shellcheck disable=SC2317 # the functions are called by ok
# example NAME: the text between the page's BEGIN and END comments, without the macros.
example() {
    sed -n "/^\.\\\\\" BEGIN $1\$/,/^\.\\\\\" END $1\$/p" man/nl-stream.5 | sed '/^\./d; s/\\e/\\/g' > "$dir/$1"
    [ -s "$dir/$1" ]
}
# shellcheck disable=SC2317
# short NAME N: an example has at most N lines.
short() {
    [ "$(wc -l < "$dir/$1")" -le "$2" ]
}
for name in reader.py writer.py reader.c best.jq; do
    ok "$name is in the page" example $name
done
ok "reader.py has at most 15 lines" short reader.py 15
ok "reader.c has at most 40 lines" short reader.c 40

cat > "$dir/good.json" << 'JSON'
{"kind":"NLS1","seq":0}
{"kind":"TOKS","ids":[1,22,4294967295]}
{"kind":"LGTS","position":3,"logits":[0.5,"-inf",2]}
{"kind":"meta"}
{"kind":"DONE","finish":"eos"}
{"kind":"mine"}
{"kind":"NLS1","seq":1}
{"kind":"TOKS","ids":[7]}
{"kind":"TOKS","ids":[]}
{"kind":"DONE","finish":"input"}
JSON
stream-tool < "$dir/good.json" > "$dir/good"
is "the library writes the stream" $? 0
{ cat "$dir/good"; echo '{"kind":"FAIL","code":4}' | stream-tool 2> "$dir/err"; } > "$dir/failed"
head -c -1 "$dir/good" > "$dir/cut-payload"
size=$(stat -c %s "$dir/good")
head -c $((size - 34)) "$dir/good" > "$dir/cut-sequence"
head -c $((size - 30)) "$dir/good" > "$dir/cut-header"
: > "$dir/empty"
{ head -c 45 "$dir/good"; printf '\377'; tail -c +47 "$dir/good"; } > "$dir/flipped"
stream-tool < "$dir/cut-sequence" 2> "$dir/err" > "$dir/out"
is "the cut between frames is where it should be" "$(cat "$dir/err")" \
    "stream-tool: the stream was cut short inside a sequence: standard input"
cmp -s "$dir/good" "$dir/flipped" && echo "Bail out! nothing was flipped"

# reads NAME COMMAND...: a reader's ids and exit statuses.
reads() {
    local name=$1 file status
    shift
    is "$name prints the ids" "$("$@" < "$dir/good" | tr -s ' \n' ' ')" "1 22 4294967295 7 "
    for file in good:0 failed:8 cut-payload:8 cut-sequence:8 cut-header:8 empty:8 flipped:3; do
        "$@" < "$dir/${file%:*}" > "$dir/out" 2> "$dir/err"
        status=$?
        is "$name: ${file%:*}" $status "${file#*:}"
        stream-tool < "$dir/${file%:*}" > "$dir/out" 2> "$dir/err"
        is "the library agrees: ${file%:*}" $? $status
    done
}
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2> "$dir/err"; then
    reads reader.py python3 "$dir/reader.py"
    is "writer.py's stream" "$(python3 "$dir/writer.py" | stream-tool -t)" "1 22 333 "
else
    skip "reader.py, writer.py" "no python3 of at least 3.8"
fi
ok "reader.c compiles" "${CC:-cc}" -std=c99 -Wall -Werror -o "$dir/reader" "$dir/reader.c"
reads reader.c "$dir/reader"
if command -v jq > "$dir/out"; then
    is "best.jq" "$(stream-tool -j < "$dir/good" | jq -f "$dir/best.jq")" 2
else
    skip "best.jq" "no jq"
fi

# The twins, end to end.
is "text" "$(stream-tool -t < "$dir/good" | tr '\n' /)" "1 22 4294967295 /7 /"
is "text of logits" "$(stream-tool -tl < "$dir/good" | tr '\n' /)" "3 0:0.5 2:2///"
is "text of the best logits" "$(stream-tool -tl -n 1 < "$dir/good" | tr '\n' /)" "3 2:2///"
is "JSON is what it was made from" "$(stream-tool -j < "$dir/good")" "$(cat "$dir/good.json")"
is "awk reads logits and writes ids" \
    "$(stream-tool -tl < "$dir/good" | awk '{ printf NF ? "%d " : "\n", $1 }' | stream-tool -t | tr '\n' /)" "3 //"
exits "text past the largest id" 3 "^stream-tool: id out of range: '4294967296': line 2: standard input\$" \
    sh -c 'printf "1\n2 4294967296\n" | stream-tool -t'
done_testing
