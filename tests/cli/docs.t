#!/bin/bash
# The documentation is true: the README's table is that of the manual pages, every option of --help is in its page, and
# the examples of the pages run.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
top=$PWD

for page in man/*.1; do
    name=$(basename "$page" .1)
    job=$(sed -n 's/^\.Nd //p' "$page")
    ok "README's table: $name" grep -qF "| [$name]($page) | $job |" README.md
    ok "$name is built" test -x "$B/bin/$name"
    ok "nl(7) names $name" grep -qE "^\.Xr $name 1" man/nl.7
    cat "$page" > "$tap_dir/page"
    [ "$name" = nl-generate ] && cat man/nl-sample.1 >> "$tap_dir/page" # which it points to
    missing=
    for option in $("$name" --help | grep -oE -- '--[a-z][a-z-]*' | sort -u); do
        grep -qE "(Fl |Fl \[|, )-${option#--}( |$|\])|Fl -${option#--}\b" "$tap_dir/page" || missing="$missing $option"
    done
    is "every option of $name --help is in its page" "$missing" ""
done
is "every program has a page" "$(cd "$B/bin" && for p in *; do [ -e "$top/man/$p.1" ] || echo "$p"; done)" ""

# Each block of EXAMPLES, in a folder with what the examples talk of. A block of lines that begin with "$ " shows commands
# and what they print.
examples() { # PAGE: the blocks, one file each
    awk -v dir="$tap_dir/examples" '
        /^\.Sh /                     { on = /EXAMPLES/ }
        on && /^\.Bd -literal/       { file = dir "/" ++n; printf "" > file; next }
        /^\.Ed/                      { file = "" }
        file                         { gsub(/\\e/, "\\"); gsub(/\\-/, "-"); gsub(/\\&/, ""); print > file }' "$1"
}
if [ -z "${NL_SMOLLM2:-}" ]; then
    skip "the examples of the manual pages" "no SmolLM2, see tests/model.sh"
    done_testing
fi
export NL_MODEL=$NL_SMOLLM2 XDG_CACHE_HOME=$tap_dir/cache XDG_DATA_HOME=$tap_dir/data
for page in man/*.1; do
    name=$(basename "$page" .1)
    rm -rf "$tap_dir/examples" "$tap_dir/work"
    mkdir "$tap_dir/examples" "$tap_dir/work"
    cd "$tap_dir/work" || exit 1
    ln -s "$NL_SMOLLM2/model.safetensors" model.safetensors
    cp "$top"/tests/data/gguf/token-smollm.gguf model.gguf
    [ -z "${NL_SMOL_GGUF:-}" ] || ln -s "$NL_SMOL_GGUF" SmolLM2-135M-Instruct.Q4_1.gguf
    printf 'The sky is\nOne, two, three,\n' > prompts
    cp prompts text
    examples "$top/$page"
    for block in "$tap_dir/examples"/*; do
        [ -e "$block" ] || continue
        if grep -qE 'SmolLM2-135M-Instruct|HuggingFaceTB|jq -r' "$block"; then
            continue # a model or a program that may not be here
        fi
        rm -f loop
        if grep -q '^\$ ' "$block"; then
            grep '^\$ ' "$block" | sed 's/^\$ //' > "$tap_dir/commands"
            is "$name: example $(basename "$block")" "$(timeout 60 bash "$tap_dir/commands" 2>&1 | sed 's, *$,,' | grep .)" "$(grep -v '^\$ ' "$block")"
        else
            exits "$name: example $(basename "$block")" 0 '' timeout 60 bash "$block"
        fi
    done
    cd "$top" || exit 1
done
done_testing
