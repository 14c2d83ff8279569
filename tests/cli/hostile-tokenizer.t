#!/bin/bash
# Texts, tokenizers and chat templates that are made to take long: right or refused, soon. The time allowed is generous, for busy
# machines; unhurried ones need less than two seconds for each.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$(dirname "$0")/../.." || exit 1
export XDG_CACHE_HOME=$tap_dir/cache
unset NL_MODEL
soon=(timeout 20)
case $B in *address* | *thread*) soon=(timeout 200) ;; esac

# --- texts ---
repeat() { head -c "$2" < <(yes "$1" | tr -d '\n'); } # TEXT BYTES
million=1000000
repeat a $million > "$tap_dir/letters"
repeat ' ' $million > "$tap_dir/spaces"
repeat 'It is.' $million | tr -d ' ' > "$tap_dir/word"
repeat 7 $million > "$tap_dir/digits"
repeat '中文' 999999 > "$tap_dir/han"
repeat '<|end_of_text|>' $((15 * 100000)) > "$tap_dir/special"
head -c $((10 * million)) < <(yes "$(printf 'thequickbrownfoxjumpsoverthelazydog%.0s' {1..20})" | tr -d '\n') > "$tap_dir/ten"
models=()
for name in llama3_1 qwen2_5 gptoss; do [ -f "$B/tokenizers/$name/tokenizer.json" ] && models+=("$B/tokenizers/$name"); done
[ -n "${NL_SMOLLM2:-}" ] && models+=("$NL_SMOLLM2")
# shellcheck disable=SC2317
there_and_back() { # MODEL TEXT
    "${soon[@]}" nl-tokenize --raw -m "$1" < "$2" > "$tap_dir/ids" && "${soon[@]}" nl-detok --raw < "$tap_dir/ids" > "$tap_dir/back" && cmp "$tap_dir/back" "$2"
}
for model in "${models[@]}"; do
    for text in letters spaces word digits han special ten; do
        ok "$text, $(basename "$model")" there_and_back "$model" "$tap_dir/$text"
    done
done
[ ${#models[@]} -gt 0 ] || skip "long words in real tokenizers" "no shared test data"
if [ -f "$B/tokenizers/llama3_1/tokenizer.json" ]; then
    is "special tokens in a row" "$(nl-tokenize --text --special=none -m "$B/tokenizers/llama3_1" < "$tap_dir/special" | tr ' ' '\n' | sort | uniq -c | awk 'NF > 1 { print $1, $2 }')" "100000 128001"
    for name in gemma3 llama2; do
        for text in letters spaces word digits han ten; do
            ok "$text, $name" "${soon[@]}" nl-tokenize -m "$B/tokenizers/$name" -o /dev/null "$tap_dir/$text"
        done
    done
fi

# --- tokenizers ---
file=$tap_dir/tokenizer.json
refused() { # NAME STATUS PATTERN: of $file
    exits "$1" "$2" "$3" "${soon[@]}" nl-tokenize -m "$file" <<< 'a b'
}
{ printf '%0200000d' 0 | tr 0 '['; printf '%0200000d' 0 | tr 0 ']'; } > "$file"
refused "deeply nested JSON" 3 'nested|deep'
{ printf '{"pre_tokenizer":'; for _ in {1..900}; do printf '{"type":"Sequence","pretokenizers":['; done; for _ in {1..900}; do printf ']}'; done; printf ',"model":{}}'; } > "$file"
refused "deeply nested pre-tokenizers" 3 'nested too deeply'
printf '{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}' > "$file"
refused "two tokens of one id" 3 'two tokens have the id 0'
printf '{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a c"]}}' > "$file"
refused "a merge of an unknown piece" 3 'not in the vocabulary'
printf '{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}}' > "$file"
refused "a merge that makes an unknown piece" 3 'not in the vocabulary'
printf '{"model":{"type":"BPE","vocab":{"a":4294967295},"merges":[]}}' > "$file"
refused "an id that is too large" 3 'not an id'

# --- chat templates ---
mkdir "$tap_dir/chat"
printf '{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}' > "$tap_dir/chat/tokenizer.json"
template() { # NAME TEMPLATE: refused
    printf '%s' "$2" > "$tap_dir/chat/chat_template.jinja"
    "${soon[@]}" nl-tokenize --chat=text -m "$tap_dir/chat" -o /dev/null <<< hi 2> "$tap_dir/err"
    local got=$?
    [ $got -eq 3 ] || [ $got -eq 5 ] || echo "status $got" >> "$tap_dir/err"
    is "template: $1" "$(grep -c . "$tap_dir/err") $(grep -o 'chat_template\|status [0-9]*' "$tap_dir/err" | head -1)" "1 chat_template"
}
deep() { printf "%0${1}d" 0 | sed "s/0/$2/g"; } # COUNT TEXT
template "a macro that calls itself" '{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}'
template "two macros that call each other" '{% macro f(x) %}{{ g(x) }}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f(x) }}{{ f(x) }}{% endmacro %}{{ f(1) }}'
template "2^60 calls" '{% macro f(n) %}{% if n > 0 %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}'
template "a huge range" '{% for i in range(1000000000) %}{{ i }}{% endfor %}'
template "nested loops" '{% for i in range(1000) %}{% for j in range(1000) %}{% for k in range(1000) %}{% endfor %}{% endfor %}{% endfor %}'
template "a string that doubles" '{% set ns = namespace(s="ab") %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}'
template "a list that doubles" '{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}'
template "a list of itself and itself" '{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}'
template "a namespace inside itself" '{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a|tojson }}'
template "a long search, again and again" '{% set s = "a" * 1000000 %}{% set t = ("a" * 500000) ~ "b" %}{% for i in range(10000) %}{% if t in s %}{% endif %}{% endfor %}'
template "a long strip" '{% set s = "a" * 1000000 %}{{ s.strip("b" * 1000000 ~ "a") }}'
template "a long join" '{% set l = range(100000)|list %}{% for i in range(100000) %}{% set x = l|join(",") %}{% endfor %}'
template "a huge width" '{{ "%1000000000d" % 5 }}'
template "a tower of powers" '{{ 9 ** 9 ** 9 }}'
template "deep parentheses" "{{ $(deep 50000 '(')1$(deep 50000 ')') }}"
template "deep blocks" "$(deep 50000 '{% if true %}')"
done_testing
