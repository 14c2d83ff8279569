#!/bin/bash
# nl-tokenize --chat: conversations in JSON and as text, where the template is found, the ways to fail.
# The ids are those of AutoTokenizer.apply_chat_template of transformers 5.24.
# shellcheck source=tests/cli/tap.sh disable=SC2154
. "${BASH_SOURCE%/*}/tap.sh"
cd "${BASH_SOURCE%/*}/../.." || exit 1

# A model of bytes: "hello" is 259, all other bytes are themselves.
folder=$tap_dir/model
mkdir "$folder"
cp tests/data/tokenizer/merges_pairs.json "$folder/tokenizer.json"
ids() { printf '%s' "$1" | nl-tokenize -m "$folder" --chat --text "${@:2}" | tr -d '\n'; }
# The rendering, by way of the ids.
text() { printf '%s' "$1" | nl-tokenize -m "$folder" --chat "${@:2}" | nl-detok --raw; }
config() { printf '%s' "$1" > "$folder/tokenizer_config.json"; }
write() { printf '%s' "$1" > "$folder/chat_template.jinja"; }

# --- no template ---
exits "no tokenizer_config.json: no template" 5 'the model has no chat template: ' nl-tokenize -m "$folder" --chat < /dev/null
config '{"bos_token": "<s>", "chat_template": null}'
exits "nothing in it" 5 'the model has no chat template: ' nl-tokenize -m "$folder" --chat < /dev/null
config '{"chat_template": 5}'
exits "a template that is none" 3 'chat_template is neither a text nor a list' nl-tokenize -m "$folder" --chat < /dev/null

# --- where it is ---
config '{"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null,
 "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ eos_token }}{{ pad_token is defined }}"}'
is "tokenizer_config.json, with its special tokens" "$(text '[{"role":"user","content":"hello"}]')" "<s>user:hello;</s>False"
is "nothing is added by the tokenizer" "$(ids '[{"role":"user","content":"hello"}]')" \
    "60 115 62 117 115 101 114 58 259 59 60 47 115 62 70 97 108 115 101 "
config '{"chat_template": [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "{{ tools[0].function.name }}"}]}'
is "a named list: default" "$(text hi)" "plain"
is "tool_use where there are tools" "$(text '{"messages":[{"role":"user"}],"tools":[{"function":{"name":"f"}}]}')" "f"
is "none: no tools" "$(text '{"messages":[{"role":"user"}],"tools":null}')" "plain"
config '{"chat_template": [{"name": "other", "template": "x"}]}'
exits "no default" 5 'the model has no chat template' nl-tokenize -m "$folder" --chat < /dev/null
mkdir "$folder/additional_chat_templates"
printf 'tools' > "$folder/additional_chat_templates/tool_use.jinja"
config '{"chat_template": "config"}'
is "a folder of additional templates: tools" "$(text '{"messages":[{"role":"user"}],"tools":[]}')" "tools"
exits "no tools: not the template of tokenizer_config.json" 5 'a chat template for tools, and none without: .*tool_use.jinja' \
    bash -c "printf x | nl-tokenize -m '$folder' --chat"
write file
is "but chat_template.jinja" "$(text hi)" "file"
rm -r "$folder/additional_chat_templates" "$folder/chat_template.jinja"
config '{"chat_template": "config"}'
write '{{ messages|tojson }}{{ tools }}{{ documents }}{{ add_generation_prompt }}'
is "chat_template.jinja comes first; a message as text" "$(text 'hello "you"
')" '[{"role": "user", "content": "hello \"you\""}]NoneNoneTrue'
is "--system" "$(text '[x]' --system 'Be é.')" '[{"role": "system", "content": "Be é."}, {"role": "user", "content": "[x]"}]NoneNoneTrue'
is "--no-generation-prompt" "$(text hi --no-generation-prompt)" '[{"role": "user", "content": "hi"}]NoneNoneFalse'
is "--chat=text" "$(printf '[1]' | nl-tokenize -m "$folder" --chat=text | nl-detok --raw)" '[{"role": "user", "content": "[1]"}]NoneNoneTrue'
is "JSON after white space; null members are dropped" "$(text ' [{"role":"user","content":"x","name":null}]')" '[{"role": "user", "content": "x"}]NoneNoneTrue'
is "reasoning has its names" "$(text '[{"role":"assistant","reasoning":"r"}]')" \
    '[{"thinking": "r", "role": "assistant", "reasoning": "r", "reasoning_content": "r"}]NoneNoneTrue'
write '{{ extra }}{{ add_generation_prompt }}'
is "other members are variables" "$(text '{"messages":[{"role":"user"}],"extra":1.0,"add_generation_prompt":null}')" "1.0None"
is "--lines: each line a conversation" "$(printf 'a\n[{"role":"user","content":"b"}]\n' | nl-tokenize -m "$folder" --chat --lines --text | wc -l)" 2

# --- failures ---
exits "JSON that is none" 3 'byte 3' bash -c "printf '[1,' | nl-tokenize -m '$folder' --chat"
exits "no messages" 3 'a conversation without messages: standard input' bash -c "printf '[]' | nl-tokenize -m '$folder' --chat"
exits "a message with very many members" 3 'more than 10000000 steps: in the variables of the template$' \
    bash -c "seq -f '\"%05g\":0,' 8000 | { printf '[{' && cat && printf '\"x\":0}]'; } | nl-tokenize -m '$folder' --chat"
exits "no array" 3 'no array of messages: standard input' bash -c "printf '{}' | nl-tokenize -m '$folder' --chat"
exits "a message that is no object" 3 'a message that is not an object' bash -c "printf '[1]' | nl-tokenize -m '$folder' --chat"
for name in tools documents; do
    exits "$name of what is no object" 3 'a tool or document that is not an object' \
        bash -c "printf '{\"messages\":[{}],\"$name\":[1]}' | nl-tokenize -m '$folder' --chat"
done
exits "documents that are no array" 3 'tools or documents that are not an array' \
    bash -c "printf '{\"messages\":[{}],\"documents\":{}}' | nl-tokenize -m '$folder' --chat"
exits "continue_final_message" 5 "'continue_final_message' in a conversation: in the variables of the template$" \
    bash -c "printf '{\"messages\":[{}],\"continue_final_message\":true}' | nl-tokenize -m '$folder' --chat"
exits "a byte order mark" 3 'expected a value: standard input: byte 0' bash -c "printf '\xef\xbb\xbf[{}]' | nl-tokenize -m '$folder' --chat"
write '
{{ raise_exception("no " ~ messages[0].role) }}'
exits "raise_exception" 3 'the template refuses: no user: .*chat_template.jinja, line 2$' bash -c "printf x | nl-tokenize -m '$folder' --chat"
write '
{% include "x" %}'
exits "what is not supported, by name and line" 5 "tag 'include'.*chat_template.jinja, line 2$" bash -c "printf x | nl-tokenize -m '$folder' --chat"
# listed WHAT TEMPLATE REFUSAL: how many the page lists, and those among them that are refused.
listed() {
    local name names refused=
    names=$(awk -v what="$1" '/^\.Ql/ && on { gsub(/^\.Ql | [;,.]$/, ""); print; next } { on = $0 == what }' man/nl-tokenize.1)
    for name in $names; do
        write "${2//NAME/$name}"
        ! printf x | nl-tokenize -m "$folder" --chat 2>&1 > /dev/null | grep -q "$3" || refused+=" $name"
    done
    echo "$(wc -w <<< "$names")$refused"
}
is "the page's filters" "$(listed "the filters" "{{ 'x'|NAME }}" "no filter")" 35
is "its tests" "$(listed "the tests" "{{ 1 is NAME }}" "no test")" 27
is "its functions" "$(listed "the functions" "{{ NAME is defined or 1 + x }}" "undefined")" 5
is "its methods of strings" "$(listed "the methods of strings" "{{ ''.NAME is defined or 1 + x }}" "undefined\|attribute")" 20
is "its methods of lists" "$(listed "of lists and tuples" "{{ [].NAME is defined or 1 + x }}" "undefined\|attribute")" 2
is "its methods of dicts" "$(listed "of dicts" "{{ {}.NAME is defined or 1 + x }}" "undefined\|attribute")" 4
exits "--system without --chat" 2 '--system' nl-tokenize -m "$folder" --system x
exits "--system with JSON" 2 '--system' nl-tokenize -m "$folder" --chat=json --system x
exits "--system that is not UTF-8" 2 "--system is not UTF-8" nl-tokenize -m "$folder" --chat --system $'\xf0' < /dev/null
exits "--chat=xml" 2 "--chat is json or text" nl-tokenize -m "$folder" --chat=xml

# --- the real ones ---
if [ -n "${NL_SMOLLM2:-}" ]; then
    export NL_MODEL=$NL_SMOLLM2
    smol() { printf '%s' "$1" | nl-tokenize --chat --text "${@:2}" | tr -d '\n'; }
    is "SmolLM2: its own system message" "$(smol '[{"role":"user","content":"Hi"}]')" \
        "1 9690 198 2683 359 253 5356 5646 11173 3365 3511 308 34519 28 7018 411 407 19712 8182 2 198 1 4093 198 26843 2 198 1 520 9531 198 "
    is "SmolLM2: --system" "$(smol Hi --system 'Be nice')" "1 9690 198 6077 9239 2 198 1 4093 198 26843 2 198 1 520 9531 198 "
    is "SmolLM2: several turns, no prompt" "$(smol '{"messages":[{"role":"system","content":"Be nice"},{"role":"user","content":"Hi"},
        {"role":"assistant","content":"Hello <|im_end|>é"}]}' --no-generation-prompt)" \
        "1 9690 198 6077 9239 2 198 1 4093 198 26843 2 198 1 520 9531 198 19556 216 2 2756 2 198 "
else
    skip "SmolLM2" "it is not there, see tests/model.sh"
fi
# The sums are of the renderings that transformers made of the same conversation.
if [ -n "${NL_SHARED:-}" ] && [ -d "$B/tokenizers" ]; then
    while read -r name sum; do
        config=$NL_SHARED/tokenizers/$name/tokenizer_config.json
        if [ ! -e "$config" ] || [ ! -e "$B/tokenizers/$name/tokenizer.json" ]; then
            skip "$name" "its tokenizer is not there"
            continue
        fi
        chat='{"messages":[{"role":"system","content":" Be é. "},{"role":"user","content":"2+2?\n"},{"role":"assistant","content":"4"},{"role":"user","content":"Sure?"}]@}'
        tools=',"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"number","default":1.0}}}}}]'
        got=$({
            printf '%s' "${chat/@/}" | nl-tokenize -m "$B/tokenizers/$name" --chat --text
            printf '%s' "${chat/@/$tools}" | nl-tokenize -m "$B/tokenizers/$name" --chat --text --no-generation-prompt
        } | sed 's/ $//' | sha256sum | cut -c1-16)
        is "$name: the ids of a conversation" "$got" "$sum"
    done << 'END'
llama3_1 79f204d80eafc5fd
qwen2_5 87e5e5d70f128e68
gemma3 fcd4bb2917b016de
END
else
    skip "the templates of ../shared/tokenizers" "they are not there"
fi
done_testing
