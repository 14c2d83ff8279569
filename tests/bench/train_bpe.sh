#!/bin/bash
# nl-train-bpe beside tokenizers' BpeTrainer: 20 MB of text, 32,000 tokens, the same number of threads; prints seconds and ratios.
# usage: tests/bench/train_bpe.sh [THREADS]...    (1 and 2)
# NL_SHARED: the folder of shared test data; PYTHON: a Python that has tokenizers; ROUNDS, SIZE (bytes), VOCAB.
# Of each the best of ROUNDS is taken, in turn. Of the reference only the call of train() is timed, of nl-train-bpe the whole process.
set -eu
cd "$(dirname "$0")/../.."
program=${B:-build}/bin/nl-train-bpe
shared=${NL_SHARED:-../shared}
python=${PYTHON:-python3}
vocab=${VOCAB:-32000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ $# -gt 0 ] || set -- 1 2

# WikiText again and again, in each copy some words with another's ending: distinct words grow with the text, as they do in real text.
awk -v size="${SIZE:-20000000}" '
    { line[NR] = $0 }
    END {
        srand(1)
        for (made = 0; made < size;)
            for (i = 1; i <= NR && made < size; i++) {
                n = split(line[i], word, " ")
                out = ""
                for (k = 1; k <= n; k++) {
                    w = word[k]
                    if (rand() < 0.06 && w ~ /^[a-z]+$/ && last != "")
                        w = substr(w, 1, 4) substr(last, length(last) - int(rand() * 4))
                    if (word[k] ~ /^[a-z]+$/)
                        last = word[k]
                    out = out " " w
                }
                print out
                made += length(out) + 1
            }
    }' "$shared/data/wikitext-2-raw-test.txt" > "$folder/text"

cat > "$folder/reference.py" << 'EOF'
import sys, time
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
alphabet = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(vocab_size=int(sys.argv[2]), show_progress=False, initial_alphabet=alphabet)
start = time.monotonic()
tokenizer.train([sys.argv[1]], trainer)
print(time.monotonic() - start)
tokenizer.save(sys.argv[3])
EOF

seconds() { # COMMAND...: wall-clock
    local start end
    start=$(date +%s.%N)
    "$@"
    end=$(date +%s.%N)
    echo "$start $end" | awk '{ print $2 - $1 }'
}
best() { # the least of the numbers
    printf '%s\n' "$@" | sort -g | head -1
}

printf '%d bytes, %d tokens, %s cores\n' "$(wc -c < "$folder/text")" "$vocab" "$(nproc)"
for threads; do
    ours=() reference=()
    for ((i = 0; i < ${ROUNDS:-3}; i++)); do
        ours+=("$(seconds "$program" --threads "$threads" --vocab-size "$vocab" -o "$folder/ours.json" "$folder/text")")
        reference+=("$(RAYON_NUM_THREADS=$threads TOKENIZERS_PARALLELISM=true "$python" "$folder/reference.py" "$folder/text" "$vocab" "$folder/reference.json")")
    done
    "$python" -c 'import json, sys; a, b = (json.load(open(f))["model"] for f in sys.argv[1:])
sys.exit("the merges differ" if a["merges"] != b["merges"] or a["vocab"] != b["vocab"] else 0)' "$folder/ours.json" "$folder/reference.json"
    echo "$(best "${ours[@]}") $(best "${reference[@]}")" |
        awk -v threads="$threads" '{ printf "%d threads: nl-train-bpe %.2f s, tokenizers %.2f s: %.1f times as fast, the same merges\n", threads, $1, $2, $2 / $1 }'
done
