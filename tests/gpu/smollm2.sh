#!/bin/bash
# smollm2.sh FOLDER: nl-generate on $NL_DEVICE against transformers' greedy ids for the twelve prompts of golden.jsonl.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
golden=${NL_SHARED:-../shared}/models/smollm2-135m/golden.jsonl
[ -e "$golden" ] || golden=tests/data/smollm2/golden.jsonl
python3 - "$golden" <<'P' > build/gpu-prompts || exit 1
import json, sys
for line in open(sys.argv[1]):
    case = json.loads(line)
    print(*case["prompt"])
P
nl-generate -m "$1" -n 50 --ignore-eos --text < build/gpu-prompts > build/gpu-ids || exit 1
python3 - "$golden" <<'P'
import json, sys
wrong = 0
for line, got in zip(open(sys.argv[1]), open("build/gpu-ids")):
    case, ids = json.loads(line), list(map(int, got.split()))
    n = len(case["greedy"])
    if ids[:n] != case["greedy"]:
        at = next(i for i in range(n) if i >= len(ids) or ids[i] != case["greedy"][i])
        print(f"differs at id {at} of {n} (smallest margin {case['margin']}): {case['text']!r}")
        wrong += 1
print("all twelve prompts: the same ids" if not wrong else f"{wrong} prompts differ")
sys.exit(wrong > 0)
P
