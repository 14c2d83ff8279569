#!/bin/bash
# Switches in config.json: those of other architectures, of older files, given in two places or not at all. The ids are
# transformers' (tests/reference/make_switches.py).
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
models=$PWD/tests/data/models
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
export XDG_CACHE_HOME=$tap_dir/cache

while IFS=$'\t' read -r name base ids config; do
    rm -rf "$tap_dir/model"
    mkdir "$tap_dir/model"
    ln -s "$models/$base"/model* "$tap_dir/model"
    printf '%s\n' "$config" > "$tap_dir/model/config.json"
    prompt=$(sed -E 's/.*"prompt": \[([^]]*)\].*/\1/; s/,//g' "$models/$base/golden.json")
    got=$(nl-generate -m "$tap_dir/model" -c 256 -n 32 --text <<< "$prompt" 2>&1)
    is "$name" "${got% }" "$ids"
done < "${CASES:-tests/data/switches/cases.tsv}"
done_testing
