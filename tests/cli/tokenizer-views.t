#!/bin/bash
# nl-tokenize's views and cuts, nl-detok's bytes and JSON, and hostile texts and tokenizers: right or refused, never a crash.
# shellcheck source=tests/cli/tap.sh disable=SC2154
. "${BASH_SOURCE%/*}/tap.sh"
cd "${BASH_SOURCE%/*}/../.." || exit 1
data=tests/data/tokenizer
export NL_MODEL=$data/merges_pairs.json # byte-level, "hello" is 259
template=$data/template_eos.json        # <s> 0, </s> 1

# --- views ---
is "--pieces: id, bytes, place" "$(printf 'hello\303\251\n\n' | nl-tokenize --pieces | tr '\t\n' ' /')" '259 hello 0 5/195 \xc3 5 6/169 \xa9 6 7/10 \n 7 8//'
is "--pieces: the template's tokens have no place" "$(printf ab | nl-tokenize -m $template --pieces | tr '\t\n' ' /' | sed 's/\/.*\/1 /...1 /')" "0 <s> 0 0...1 </s> 2 2//"
is "--pieces: places are the original's" "$(printf 'Caf\303\251 \344\270\226' | nl-tokenize -m $data/bert.json --pieces --special=none | cut -f3,4 | tr '\t\n' ' /')" "0 5/6 9//"
is "--pieces: a word of several, --lines" "$(printf 'abc\nhelloing\n' | nl-tokenize --lines -m $data/bert.json --pieces --special=none | tr '\t\n' ' /')" "15  abc 0 3//5  hello 0 5/10 ing 5 8//"
is "--stages" "$(printf 'A b' | nl-tokenize -m $data/bert.json --stages --special=none | cut -f1,2 | tr '\t\n' ' /')" "text a b/word a/id 17/word b/id 18//"
is "--count" "$(printf 'hello\n\nab\n' | nl-tokenize --lines --count | tr '\n' /)" "1/0/2/"
is "--count counts the template" "$(printf '' | nl-tokenize -m $template --count)" "2"
is "--count: a failed one is an empty line" "$(printf 'a\n\377\nb\n' | nl-tokenize --lines --count 2> /dev/null | tr '\n' /)" "1//1/"
exits "one view at a time" 2 'only one' nl-tokenize --count --pieces
exits "no cuts of a view" 2 'not with' nl-tokenize --count --truncate 3

# --- cuts ---
is "--truncate" "$(printf 'abcdef' | nl-tokenize --text --truncate 3)" "97 98 99 "
is "--truncate leaves a short one" "$(printf 'ab' | nl-tokenize --text --truncate 3)" "97 98 "
is "--chunk" "$(printf 'abcdefg' | nl-tokenize --text --chunk 3 | tr '\n' /)" "97 98 99 /100 101 102 /103 /"
is "--overlap" "$(printf 'abcdefg' | nl-tokenize --text --chunk 3 --overlap 1 | tr '\n' /)" "97 98 99 /99 100 101 /101 102 103 /"
is "an empty text is one sequence" "$(printf '' | nl-tokenize --text --chunk 3 | tr '\n' /)" "/"
is "each has the template's tokens" "$(printf 'abab' | nl-tokenize -m $template --text --chunk 3 | awk '{ print $1, NF, $NF }' | sort -u)" "0 3 1"
is "the later ones continue" "$(printf 'abcd' | nl-tokenize --json --chunk 2 | grep -c '"continues":true')" 1
is "numbers go on" "$(printf 'abcd\nab' | nl-tokenize --lines --json --chunk 2 | grep -o '"seq":[0-9]*' | tr '\n' ' ')" '"seq":0 "seq":1 "seq":2 '
exits "no room beside the template" 2 'no room' nl-tokenize -m $template --truncate 1
exits "no room beside the overlap" 2 'no room' nl-tokenize --chunk 3 --overlap 3
exits "--overlap alone" 2 'needs --chunk' nl-tokenize --overlap 3

# --- special tokens in the text ---
is "spelt out they are special" "$(printf '<s>' | nl-tokenize -m $template --text --special=none)" "0 "
ok "--plain-specials: they are not" test "$(printf '<s>' | nl-tokenize -m $template --text --special=none --plain-specials)" != "0 "
# shellcheck disable=SC2317
doubled() { printf '<s>' | nl-tokenize -m "$template" "$@"; }
exits "a doubled beginning is warned of" 0 'begins with the token 0' doubled --text
exits "-q: it is not" 0 '' doubled --text -q

# --- nl-detok ---
is "--bytes: no U+FFFD" "$(printf '97 240 159 98 ' | nl-detok --bytes | od -An -tx1 | tr -d ' \n')" "61f09f620a"
is "--bytes: byte tokens" "$(printf 'x\360\237\246\234' | nl-tokenize -m $data/unigram_bytes.json --text | cut -d' ' -f2,3,4 | nl-detok -m $data/unigram_bytes.json --bytes | od -An -tx1 | tr -d ' \n')" "78f09f0a"
is "--json" "$(printf '259 240 \n' | nl-detok --json | tr '\n' /)" '{"id":259,"bytes":"68656c6c6f","text":"hello"}/{"id":240,"bytes":"f0","text":""}/{"end":true,"text":"'$'\xef\xbf\xbd''"}/'
exits "--json with --raw" 2 'together' nl-detok --json --raw

# --- hostile texts: each tokenizer gives as many ids as it should ---
million() { head -c 1000000 /dev/zero | tr '\0' "$1"; }
million a > "$tap_dir/a"
million ' ' > "$tap_dir/spaces"
for _ in 1 2 3 4 5 6 7 8 9 10; do million x; done > "$tap_dir/x"
for _ in $(seq 1000); do printf '<s>%.0s' {1..100}; done > "$tap_dir/specials"
for text in a spaces x specials; do
    for name in merges_pairs unigram_bytes bert wordlevel scripts byte_fallback template_eos; do
        ok "$text: $name" timeout 60 sh -c "nl-tokenize --count -m $data/$name.json '$tap_dir/$text'"
    done
done
ok "a million letters there and back" cmp "$tap_dir/a" <(nl-tokenize --raw "$tap_dir/a" | nl-detok --raw)
is "100,000 special tokens" "$(nl-tokenize --count -m $data/unigram.json "$tap_dir/specials")" 100000
is "a word that is too long is unknown" "$(nl-tokenize --text --special=none -m $data/bert.json "$tap_dir/x")" "0 "

# --- hostile tokenizers ---
refused() { # NAME STATUS PATTERN JSON
    printf '%s' "$4" > "$tap_dir/hostile.json"
    exits "$1" "$2" "$3" timeout 20 nl-tokenize -m "$tap_dir/hostile.json" --text "$tap_dir/short"
}
printf 'ab c' > "$tap_dir/short"
bpe='"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}'
nest() { printf "%0.s$1" $(seq "$2"); }
refused "two tokens of one id" 3 'two tokens have the id 0' '{"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"b":0}}}'
refused "a token that is there twice" 3 'duplicate key' '{"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"a":1}}}'
refused "merges of unknown pieces" 3 'not in the vocabulary' '{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a","zz"]]}}'
refused "arrays nested deeply" 3 '.' "{\"model\":$(nest '[' 100000)"
refused "sequences nested deeply" 3 'nested too deeply' "{\"normalizer\":$(nest '{"type":"Sequence","normalizers":[' 200){\"type\":\"NFC\"}$(nest ']}' 200),$bpe}"
refused "a template of itself" 3 'special token without ids' "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"S\",\"type_id\":0}}],\"special_tokens\":{\"S\":{\"id\":\"S\",\"ids\":\"S\"}}},$bpe}"
refused "processors in processors" 3 '.' "{\"post_processor\":$(nest '{"type":"Sequence","processors":[' 200)$(nest ']}' 200),$bpe}"
refused "an unk_id outside the vocabulary" 3 'unk_id' '{"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":7}}'
refused "a score that is none" 3 'token and its score' '{"model":{"type":"Unigram","vocab":[["a","b"]],"unk_id":0}}'
refused "a character that no token covers, without unk_id" 3 'no token' '{"model":{"type":"Unigram","vocab":[["a",0]]}}'
refused "no unknown token where it is needed" 3 'unknown token is needed' '{"model":{"type":"WordLevel","unk_token":"u","vocab":{"a":0}}}'
refused "a map of characters that is none" 3 'precompiled_charsmap' "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA/w==\"},$bpe}"
refused "a length of 0" 3 'FixedLength' "{\"pre_tokenizer\":{\"type\":\"FixedLength\",\"length\":0},$bpe}"
done_testing
