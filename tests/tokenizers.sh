#!/bin/sh
# Unpacks the real tokenizers of $NL_SHARED into $B/tokenizers, once; safe when several run it at a time.
set -eu
[ -d "${NL_SHARED:-/nonexistent}/tokenizers" ] || exit 0
mkdir -p "$B"
exec 9> "$B/tokenizers.lock"
flock 9
for folder in "$NL_SHARED"/tokenizers/*/; do
    name=$(basename "$folder")
    to=$B/tokenizers/$name
    [ -e "$to/tokenizer.json" ] && continue
    mkdir -p "$to"
    cp -f "$folder/tokenizer_config.json" "$to/tokenizer_config.json"
    chmod u+w "$to/tokenizer_config.json"
    if command -v zstd > /dev/null; then
        zstd -dqf "$folder/tokenizer.json.zst" -o "$to/tokenizer.json.new"
    else
        echo "tokenizers.sh: zstd is not there" >&2
        exit 1
    fi
    mv "$to/tokenizer.json.new" "$to/tokenizer.json"
done
