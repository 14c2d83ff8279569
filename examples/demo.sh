#!/bin/sh
# demo.sh: text, ids, model, ids, text, with a real model. The first run fetches one, unless NL_MODEL names a folder or
# there is a default model. Run by `make demo`, which puts the programs on the PATH.
set -eu
here=$(dirname "$0")
default=${XDG_DATA_HOME:-$HOME/.local/share}/nanollm/default

if [ -z "${NL_MODEL:-}" ] && ! [ -e "$default/config.json" ]; then
    echo "no model yet: fetching SmolLM2-135M-Instruct (93 MB), once" >&2
    "$here/get-smollm2.sh" --default --force > /dev/null
fi

echo '$ echo "Once upon a time" | nl-tokenize | nl-generate -n 50 | nl-detok'
echo "Once upon a time" | nl-tokenize | nl-generate -n 50 | nl-detok
