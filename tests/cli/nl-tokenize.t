#!/bin/bash
# nl-tokenize and nl-detok: options, text rules, the ways to fail. Which ids a tokenizer gives is test_tokenizer's business.
# shellcheck source=tests/cli/tap.sh disable=SC2154
. "${BASH_SOURCE%/*}/tap.sh"
cd "${BASH_SOURCE%/*}/../.." || exit 1

bytes=tests/data/tokenizer/merges_pairs.json # byte-level, "hello" is 259
export NL_MODEL=$bytes
shown() { # INPUT OPTION...: the text twin on one line, newlines as '/'
    local input=$1
    shift
    # shellcheck disable=SC2059 # the input has escapes
    printf "$input" | nl-tokenize --text "$@" | tr '\n' /
}

# --- nl-tokenize: what is the text ---
is "one trailing newline is dropped" "$(shown 'hello\n')" "259 /"
is "only one" "$(shown 'hello\n\n')" "259 10 /"
is "a carriage return stays" "$(shown 'hello\r\n')" "259 13 /"
is "no newline at the end" "$(shown 'hello')" "259 /"
is "an empty text is an empty sequence" "$(shown '')" "/"
is "a newline alone is an empty text" "$(shown '\n')" "/"
is "--raw drops nothing" "$(shown 'hello\n' --raw)" "259 10 /"
is "NUL is a byte like others" "$(shown 'a\0b')" "97 0 98 /"
is "--lines" "$(shown 'hello\n\na\n' --lines)" "259 //97 /"
is "--lines: an unterminated last line counts" "$(shown 'a\nb' --lines)" "97 /98 /"
is "--lines: no byte at all is one empty sequence" "$(shown '' --lines)" "/"
is "--lines --raw: each line keeps its newline" "$(shown 'a\nb' --lines --raw)" "97 10 /98 /"
is "-0: records are taken whole" "$(shown 'a\n\0b\0' -0)" "97 10 /98 /"
is "-0: an unterminated last one counts" "$(shown 'a\0b' -0)" "97 /98 /"
is "-0: a final NUL opens none, two open an empty one" "$(shown 'a\0\0' -0)" "97 //"
is "-0: no byte at all is one empty sequence" "$(shown '' -0)" "/"
printf 'a\n' > "$tap_dir/a"
printf 'b' > "$tap_dir/b"
is "files, each a sequence, - is standard input" "$(printf c | nl-tokenize --text "$tap_dir/a" - "$tap_dir/b" | tr '\n' /)" "97 /99 /98 /"

# --- special tokens ---
template=tests/data/tokenizer/template_eos.json # <s> 0, </s> 1
is "the template's tokens" "$(printf ab | nl-tokenize -m $template --text | awk '{ print $1, $NF }')" "0 1"
is "--special=none" "$(printf '' | nl-tokenize -m $template --special=none --text)" ""
is "--raw adds none" "$(printf '' | nl-tokenize -m $template --raw --text)" ""
is "--raw --special=auto does" "$(printf '' | nl-tokenize -m $template --raw --special=auto --text)" "0 1 "
is "an empty text has them too" "$(printf '' | nl-tokenize -m $template --text)" "0 1 "

# --- invalid UTF-8 ---
bad() { printf 'ab\n\xffx\ncd\n' | nl-tokenize "$@"; }
exits "bytes that are not UTF-8 are refused, with the offset" 3 'not UTF-8.*standard input: byte 3$' bad
exits "and their place in the whole input" 3 'byte 3$' bad --lines
bad --lines --text > "$tap_dir/lines" 2> /dev/null
is "the other lines go on" "$(tr '\n' / < "$tap_dir/lines")" "97 98 //99 100 /"
is "the sequence says so" "$(bad --lines --json 2> /dev/null | grep -c '"finish":"error","code":3')" 1
is "--invalid=replace" "$(printf '\xf0\x9f\x98a\xff' | nl-tokenize --invalid=replace --raw | nl-detok --raw)" $'\xef\xbf\xbda\xef\xbf\xbd'

# --- the header ---
mkdir "$tap_dir/model"
cp $bytes "$tap_dir/model/tokenizer.json"
printf '{}' > "$tap_dir/model/tokenizer_config.json"
header=$(cd "$tap_dir" && printf a | nl-tokenize -m ./model --json | head -1)
sum=$(cat "$tap_dir/model/tokenizer.json" "$tap_dir/model/tokenizer_config.json" | sha256sum | cut -d' ' -f1)
is "tokenizer: path and hash of both files" "$(grep -c "\"tokenizer\":{\"path\":\"$tap_dir/./model\",\"sha256\":\"$sum\"}" <<< "$header")" 1
is "vocab_size, seq" "$(grep -c '"vocab_size":265,"seq":0' <<< "$header")" 1
is "sequences are numbered" "$(printf 'a\nb\n' | nl-tokenize --lines --json | grep -o '"seq":[0-9]' | tr '\n' ' ')" '"seq":0 "seq":1 '

# --- there and back ---
head -c 300000 /dev/urandom | LC_ALL=C tr -d '\200-\377' > "$tap_dir/bytes"
cat tests/data/tokenizer/cases.jsonl man/*.1 >> "$tap_dir/bytes"
ok "--raw is the identity" cmp "$tap_dir/bytes" <(nl-tokenize --raw "$tap_dir/bytes" | nl-detok --raw)
ok "by lines too" cmp "$tap_dir/bytes" <(nl-tokenize --raw --lines "$tap_dir/bytes" | nl-detok --raw)
ok "and in text" cmp "$tap_dir/bytes" <(nl-tokenize --raw --text "$tap_dir/bytes" | nl-detok --raw)
if [ -d "$B/tokenizers/llama3_1" ]; then
    for name in llama3_1 gptoss; do
        ok "the identity for $name" cmp "$tap_dir/bytes" <(nl-tokenize --raw -m "$B/tokenizers/$name" "$tap_dir/bytes" | nl-detok --raw)
    done
else
    skip "the identity for real tokenizers" "no shared test data"
fi

# --- nl-detok: text ---
is "a newline ends each sequence" "$(printf '259 \n97 \n' | nl-detok | tr '\n' /)" "hello/a/"
is "-0: a NUL" "$(printf '259 \n97 \n' | nl-detok -0 | tr '\0' /)" "hello/a/"
is "--raw: nothing" "$(printf '259 \n97 \n' | nl-detok --raw)" "helloa"
is "special tokens are left out" "$(printf '0 2 1' | nl-detok -m $template)" "$(printf '2' | nl-detok -m $template)"
is "--special=show shows them" "$(printf '0 ' | nl-detok -m $template --special=show)" "<s>"
is "--raw shows them" "$(printf '0 ' | nl-detok -m $template --raw)" "<s>"
is "--raw --special=skip does not" "$(printf '0 ' | nl-detok -m $template --raw --special=skip)" ""
is "an unfinished character at the end" "$(printf '97 240 159 ' | nl-detok)" $'a\xef\xbf\xbd'
space=tests/data/tokenizer/byte_fallback.json
first=$(printf x | nl-tokenize -m $space --json --special=none)
is "the first blank is stripped" "$(nl-detok -m $space <<< "$first" | head -c 1)" "x"
is "but not of a continuation" "$(echo "${first/NLS1\"/NLS1\",\"continues\":true}" | nl-detok -m $space | head -c 1)" " "

# --- which tokenizer ---
named=$(printf hello | nl-tokenize -m "$tap_dir/model" --json)
is "the stream's own, found by its path" "$(NL_MODEL=/nowhere nl-detok <<< "$named")" "hello"
printf ' ' >> "$tap_dir/model/tokenizer.json"
exits "a path whose hash is another one does not count" 3 'another tokenizer' nl-detok <<< "$named"
exits "-m with another tokenizer" 3 'another tokenizer' nl-detok -m "$tap_dir/model" <<< "$named"
is "--any-tokenizer" "$(nl-detok --any-tokenizer -m "$tap_dir/model" <<< "$named")" "hello"
exits "no model" 4 'no model' env -u NL_MODEL XDG_DATA_HOME=/nowhere nl-detok <<< '1 '

# --- streaming ---
mkfifo "$tap_dir/pipe"
nl-detok < "$tap_dir/pipe" > "$tap_dir/shown" &
exec 7> "$tap_dir/pipe"
printf '259 240 159 ' >&7
for _ in $(seq 100); do [ -s "$tap_dir/shown" ] && break; sleep 0.05; done
is "text appears before the stream ends, characters whole" "$(cat "$tap_dir/shown")" "hello"
exec 7>&-
wait
nl-tokenize --lines --text < "$tap_dir/pipe" > "$tap_dir/shown" &
exec 7> "$tap_dir/pipe"
printf 'a\nb' >&7
for _ in $(seq 100); do [ -s "$tap_dir/shown" ] && break; sleep 0.05; done
is "a line's ids appear before the next line" "$(cat "$tap_dir/shown")" "97 "
exec 7>&-
wait
yes hello | nl-tokenize --lines | nl-detok | head -n 1 > "$tap_dir/first"
is "a reader that leaves ends the pipe quietly" "${PIPESTATUS[*]} $(cat "$tap_dir/first")" "141 141 141 0 hello"

# --- wrong streams ---
exits "an unknown id, with its place" 3 'no token has the id 9999: id 1 of sequence 0' nl-detok <<< '97 9999 98'
printf '97 9999 98 \n99 \n' | nl-detok > "$tap_dir/out" 2> /dev/null
is "what was before it stays, the next sequence goes on" "$(tr '\n' / < "$tap_dir/out")" "a/c/"
exits "no byte at all is 8" 8 '.' nl-detok < /dev/null
cut_short() { printf hello | nl-tokenize | head -c -20 | nl-detok; }
exits "a stream cut short is 8" 8 '.' cut_short
is "and what came is shown" "$(cut_short 2> /dev/null)" "hello"
exits "FAIL is 8, without a message" 8 '' nl-detok <<< '{"kind":"FAIL","code":6,"error":"x"}'
failed='{"kind":"NLS1"}
{"kind":"TOKS","ids":[97]}
{"kind":"DONE","finish":"error","code":7,"error":"too long"}'
exits "a failed sequence is 8, without a message" 8 '' nl-detok <<< "$failed"
exits "logits are no ids" 3 'logits where ids are wanted' nl-detok <<< '{"kind":"NLS1"}
{"kind":"LGTS","position":0,"logits":[1]}'
session='{"kind":"NLS1","session":1}
{"kind":"TOKS","ids":[97,98,99]}
{"kind":"CUTS","count":1}
{"kind":"TOKS","ids":[100]}'
is "a session is printed as it was cut" "$(nl-detok <<< "$session")" "ad"

# --- options and files ---
for program in nl-tokenize nl-detok; do
    exits "$program: an unknown option is 2" 2 'help' $program --nope
    exits "$program: a model that is not there is 4" 4 '.' $program -m /nowhere <<< '97 '
    is "$program --version" "$($program --version | cut -d' ' -f1)" $program
    $program --help > "$tap_dir/help"
    missing=
    while read -r flag; do
        grep -qE "Fl -${flag#--}( |\$)" man/$program.1 || missing="$missing $flag"
    done < <(grep -oE -- '^ +(-., )?--[a-z-]+' "$tap_dir/help" | grep -oE -- '--[a-z-]+')
    is "$program: the man page names every option of --help" "$missing" ""
    ok "$program: the man page has no faults" mandoc -Tlint -Wwarning man/$program.1
done
exits "--lines with -0" 2 'do not go together' nl-tokenize --lines -0
exits "--special=what" 2 'auto or none' nl-tokenize --special=what
exits "-0 with --raw" 2 'do not go together' nl-detok -0 --raw
exits "a file that is not there" 4 'cannot open' nl-tokenize "$tap_dir/none"
exits "a folder as text" 9 'cannot read' nl-tokenize "$tap_dir"
exits "a full disk" 9 'cannot write' bash -c 'printf hello | nl-tokenize > /dev/full'
exits "a full disk behind nl-detok" 9 'cannot write' bash -c 'printf "259 " | nl-detok > /dev/full'
exits "standard input closed" 9 'closed' bash -c 'nl-tokenize <&-'
printf hello | nl-tokenize -o "$tap_dir/ids" && nl-detok -o "$tap_dir/text" < "$tap_dir/ids"
is "-o" "$(cat "$tap_dir/text")" "hello"
exits "-o leaves nothing of a stream that was cut short" 8 '.' bash -c "head -c 20 '$tap_dir/ids' | nl-detok -o '$tap_dir/none'"
ok "no file" test ! -e "$tap_dir/none"
exits "-v says how much" 0 '1 sequences, 5 bytes, 1 ids' bash -c 'printf hello | nl-tokenize -v --text'
broken='{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a","b"]]}}'
printf '%s' "$broken" > "$tap_dir/broken.json"
exits "a merge of unknown tokens" 3 'not in the vocabulary: model.merges.0.' nl-tokenize -m "$tap_dir/broken.json" <<< a
printf '%s' '{"model":{"type":"Trigram"}}' > "$tap_dir/broken.json"
exits "a model that is not supported is named" 5 'Trigram' nl-tokenize -m "$tap_dir/broken.json" <<< a
printf '%s' '{"normalizer":{"type":"Foo"},"model":{"type":"BPE","vocab":{},"merges":[]}}' > "$tap_dir/broken.json"
exits "so is a normalizer" 5 'normalizer not supported: Foo' nl-tokenize -m "$tap_dir/broken.json" <<< a
done_testing
