#!/bin/bash
# nl-train-bpe: options, text, the ways to fail, and the merges of real texts by their hashes
# (tests/reference/make_train_cases.py). Small texts are test_train_bpe's business.
# shellcheck source=tests/cli/tap.sh disable=SC2154
. "${BASH_SOURCE%/*}/tap.sh"
cd "${BASH_SOURCE%/*}/../.." || exit 1
unset NL_THREADS

merges() { # of a tokenizer.json on standard input, a line each, as JSON strings
    awk '/^    "merges": \[/ { on = 1; next }
        on && /^        "/ { sub(/^ */, ""); sub(/,$/, ""); line = line (n ? " " : "") $0; if (++n == 2) { print line; line = ""; n = 0 } }'
}
token_lines() { # of a tokenizer.json on standard input, in the order of their ids, a line each
    awk '/^    "vocab": \{$/ { on = 1; next } on && /^    \}/ { exit } on { sub(/: [0-9]+,?$/, ""); gsub(/^ *"|"$/, ""); print }'
}
tokens() { # the same, joined by commas
    token_lines | paste -sd, -
}
new() { # INPUT OPTION...: the tokens
    local input=$1
    shift
    # shellcheck disable=SC2059 # the input has escapes
    printf "$input" | nl-train-bpe --initial-alphabet none "$@" | tokens
}

# --- what is trained ---
is "merges in order" "$(new 'low low lower' --vocab-size 30)" "e,l,o,r,w,Ġ,lo,low,Ġlow,er,Ġlower"
is "--vocab-size" "$(new 'low low lower' --vocab-size 8)" "e,l,o,r,w,Ġ,lo,low"
is "--min-frequency" "$(new 'low low lower' --min-frequency 3)" "e,l,o,r,w,Ġ,lo,low"
is "--max-token-length" "$(new 'low low lower' --max-token-length 4)" "e,l,o,r,w,Ġ,lo,low,er"
is "--special, in order, first" "$(new 'ab' --special '<b>' --special '<a>' --special '<b>')" "<b>,<a>,a,b,ab"
is "--limit-alphabet" "$(new 'aaabbc' --limit-alphabet 2)" "a,b,aa,ab,aaab,aaabb"
is "--initial-alphabet text:" "$(new 'ab' --initial-alphabet 'text:b z')" "a,b,z,Ġ,ab"
is "no text" "$(new '')" ""
is "no text, all bytes" "$(nl-train-bpe < /dev/null | token_lines | wc -l)" 256
is "a line is a text of its own" "$(new 'a\na\n' --pre-tokenizer none)" "a,Ċ,aĊ"
is "--whole" "$(new 'a\na\n' --pre-tokenizer none --whole)" "a,Ċ,aĊ,aĊaĊ"
is "an unterminated last line counts" "$(new 'b\nab' --pre-tokenizer none)" "a,b,Ċ,ab,bĊ"
printf 'ab' > "$tap_dir/a"
printf 'ab' > "$tap_dir/b"
is "files, - is standard input" "$(printf cd | nl-train-bpe --initial-alphabet none --pre-tokenizer none "$tap_dir/a" - "$tap_dir/b" | tokens)" \
    "a,b,c,d,ab,cd"
is "-o" "$(nl-train-bpe --initial-alphabet none -o "$tap_dir/o" "$tap_dir/a" && tokens < "$tap_dir/o")" "a,b,ab"
exits "-v" 0 '4 bytes, 1 distinct words, 257 tokens, 1 merges' nl-train-bpe -v "$tap_dir/a" "$tap_dir/b"
exits "nothing is said without -v" 0 '' nl-train-bpe "$tap_dir/a"

# --- hostile text: right, at once, the same with any number of threads ---
head -c 300000 /dev/zero | tr '\0' a > "$tap_dir/aaa"
is "one letter, a single word" "$(timeout 20 nl-train-bpe --initial-alphabet none --vocab-size 9 "$tap_dir/aaa" | merges | tail -1)" \
    '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"'
awk 'BEGIN { for (i = 0; i < 200000; i++) { x = (x * 1103515245 + 12345) % 2147483648; printf "%c", 97 + int(x / 65536) % 4 } }' > "$tap_dir/long"
is "one long word: each thread count" "$(for n in 1 2 5; do timeout 20 nl-train-bpe --vocab-size 2000 --threads $n "$tap_dir/long" | sha256sum; done | uniq | wc -l)" 1
seq 1 20000 | awk '{ print $1 * 7919, "x" $1 % 97, $1 % 13 }' > "$tap_dir/many"
is "many lines: each thread count" "$(for n in 1 2 3 16; do nl-train-bpe --vocab-size 3000 --threads $n "$tap_dir/many" | sha256sum; done | uniq | wc -l)" 1
is "more vocabulary than there is" "$(new 'ab ab' --vocab-size 1000000)" "a,b,Ġ,ab,Ġab"

# --- invalid UTF-8 ---
bad() { printf 'ab\n\xffx\ncd\n' | nl-train-bpe "$@"; }
exits "bytes that are not UTF-8 are refused, with the offset" 3 'not UTF-8.*standard input: byte 3$' bad
is "and nothing is written" "$(bad 2> /dev/null | wc -c)" 0
is "--invalid=replace" "$(bad --invalid=replace --initial-alphabet none --vocab-size 1 | tokens)" "a,b,c,d,x,½,¿,ï,Ċ"
exits "a character cut by the end" 3 'byte 1$' eval "printf 'a\xe6\xbc' | nl-train-bpe"

# --- --like and --pre-tokenizer ---
like=$tap_dir/like
mkdir "$like"
cat > "$like/tokenizer.json" << 'EOF'
{"version": "1.0", "added_tokens": [{"id": 9, "content": "<s>", "special": true, "normalized": false}],
 "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
  "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}}},
 "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"x": 0}, "merges": []}}
EOF
printf 'AB ab' | nl-train-bpe --like "$like" --special '</s>' --initial-alphabet none -o "$tap_dir/new.json"
is "--like: normalizer, pre-tokenizer, special tokens" "$(tokens < "$tap_dir/new.json")" "<s>,</s>,a,b,Ġ,ab,Ġab"
is "--like: the template has the new ids" "$(printf 'ab' | nl-tokenize -m "$tap_dir/new.json" --text)" "0 6 "
is "--like takes the file as well" "$(printf 'AB ab' | nl-train-bpe --like "$like/tokenizer.json" --special '</s>' --initial-alphabet none | cmp - "$tap_dir/new.json" && echo same)" same
for t in llama3_1:llama3 qwen2_5:qwen2 gptoss:o200k; do
    json=${B:-build}/tokenizers/${t%:*}/tokenizer.json
    if [ ! -e "$json" ]; then
        skip "--like ${t%:*}" "no shared test data"
        continue
    fi
    is "--pre-tokenizer ${t#*:} splits as ${t%:*} does" \
        "$(nl-train-bpe --pre-tokenizer "${t#*:}" --vocab-size 2000 "$NL_SHARED/data/wikitext-2-raw-test.txt" | merges | sha256sum)" \
        "$(nl-train-bpe --like "$json" --vocab-size "$((2000 + $(nl-train-bpe --like "$json" --vocab-size 1 < /dev/null | token_lines | wc -l) - 256))" \
            "$NL_SHARED/data/wikitext-2-raw-test.txt" | merges | sha256sum)"
done

# --- round trip ---
printf 'The café, 漢字 🙂\nthe  end\n' > "$tap_dir/text"
nl-train-bpe --vocab-size 280 --special '<s>' -o "$tap_dir/t.json" "$tap_dir/text"
printf 'Other text: ß漢\0\r\n <s>' > "$tap_dir/other"
is "what was trained encodes every text, and back" "$(nl-tokenize -m "$tap_dir/t.json" --raw < "$tap_dir/other" | nl-detok --raw | sha256sum)" "$(sha256sum < "$tap_dir/other")"

# --- real texts, against the reference ---
while read -r name form size want; do
    if [ -z "${NL_SHARED:-}" ]; then
        skip "$name $form $size" "no shared test data"
        continue
    fi
    is "$name, $form, $size" "$(nl-train-bpe --pre-tokenizer "$form" --vocab-size "$size" "$NL_SHARED/data/$name" | merges | sha256sum | cut -d' ' -f1)" "$want"
done << 'EOF'
tinyshakespeare.txt gpt2 300 d2f5b41eb6612c270f02f96c40d9795e193ad67a8e550275e1b55a51a23ceb2c
tinyshakespeare.txt gpt2 1000 a2d872ac10e15f56c927217dcea9f808c5dfd35bb607e187543b2885bad9e81e
tinyshakespeare.txt gpt2 8000 45522f77532da7b3c235674eac2801b3d3fff153a59ff8fbcdfeaa4ff7ef252a
tinyshakespeare.txt o200k 8000 46b2a6d3db8eb87afc214b40f14d5eff8a36004c951a6757ebd9288d55aefd3c
wikitext-2-raw-test.txt gpt2 8000 0d6b3c355afd4b4e0e3f7de2b9f95d705f22cef9b19fc99fe0e6f852ae4312bf
wikitext-2-raw-test.txt llama3 20000 cef9101272b159b783c0c3b8fcee09e99aeb4548324ccc74db25bc77d8a7145b
EOF

# --- usage and failures ---
exits "--help" 0 '' nl-train-bpe --help
is "--version" "$(nl-train-bpe --version | cut -d' ' -f1)" nl-train-bpe
exits "an unknown option" 2 'unknown option.*--nonsense' nl-train-bpe --nonsense
exits "no number" 2 '--vocab-size takes a whole number' nl-train-bpe --vocab-size many
exits "a vocabulary too large" 2 '--vocab-size takes a whole number' nl-train-bpe --vocab-size 16777217
exits "no threads" 2 '--threads' nl-train-bpe --threads 0
exits "an unknown pre-tokenizer" 2 "unknown pre-tokenizer 'gpt9': there are gpt2, llama3" nl-train-bpe --pre-tokenizer gpt9
exits "an unknown alphabet" 2 '--initial-alphabet is' nl-train-bpe --initial-alphabet greek
exits "--like with --pre-tokenizer" 2 'do not go together' nl-train-bpe --like "$like" --pre-tokenizer gpt2
exits "an empty special token" 2 'special token is empty' nl-train-bpe --special '' /dev/null
exits "a special token that is not UTF-8" 2 'special token is not UTF-8' nl-train-bpe --special $'\xff' /dev/null
exits "a file that is not there" 4 'cannot open: /nonexistent' nl-train-bpe /nonexistent
exits "a tokenizer that is not there" 4 '/nonexistent' nl-train-bpe --like /nonexistent /dev/null
exits "a tokenizer that is not byte-level" 5 'not byte-level' nl-train-bpe --like tests/data/tokenizer/template_eos.json /dev/null
echo '{' > "$tap_dir/broken.json"
exits "a tokenizer that is damaged" 3 'broken.json' nl-train-bpe --like "$tap_dir/broken.json" /dev/null
exits "a folder as text" 9 'cannot read' nl-train-bpe "$tap_dir"
exits "a full disk" 9 'cannot write' eval "nl-train-bpe < /dev/null > /dev/full"
exits "an output that cannot be made" 4 'cannot create' nl-train-bpe -o /nonexistent/x /dev/null
echo old > "$tap_dir/kept"
nl-train-bpe -o "$tap_dir/kept" /nonexistent 2> /dev/null
is "after an error the output is as it was" "$(cat "$tap_dir/kept")" old

# --- signals ---
mkfifo "$tap_dir/fifo"
mkdir "$tap_dir/empty"
nl-train-bpe -o "$tap_dir/empty/out.json" < "$tap_dir/fifo" &
pid=$!
exec 3> "$tap_dir/fifo"
echo text >&3
sleep 0.3
kill -INT $pid
wait $pid
is "SIGINT while reading: dies by the signal" $? 130
exec 3>&-
is "SIGINT leaves no file" "$(ls "$tap_dir/empty")" ""
done_testing
