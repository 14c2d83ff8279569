#!/bin/bash
# run.sh [FOLDER]: everything that wants a GPU, within ten minutes, without network: `make test-gpu`. Results go to FOLDER
# (default build/gpu), one file each, with a summary that is also printed. Status 1 when something failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=${1:-build/gpu}
arch=${CUDA_ARCHS:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)}
mkdir -p "$out"
: > "$out/summary"
export DEPS=no NL_TEST_DEVICE=cuda NL_DEVICE=cuda B=$PWD/build
export PATH=$B/bin:$PATH
failed=0

say() { echo "$*" | tee -a "$out/summary"; }
step() { # NAME SECONDS COMMAND...
    local name=$1 limit=$2 begin=$SECONDS status
    shift 2
    timeout "$limit" "$@" > "$out/$name" 2>&1
    status=$?
    [ $status -eq 0 ] || failed=1
    say "$name: $([ $status -eq 0 ] && echo passed || echo "FAILED ($status): $(tail -n 1 "$out/$name")"), $((SECONDS - begin)) s"
    return $status
}
skip() { say "$1: skipped, $2"; }

nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv,noheader | tee -a "$out/summary"
step build 240 make -j"$(nproc)" CUDA_ARCHS="$arch" all build/tests/test_ops build/tests/test_cuda build/tests/test_bf16 build/tools/random-model || exit 1
step operations 120 build/tests/test_ops
step checkpoints 120 build/tests/test_cuda
step bfloat16 120 build/tests/test_bf16
for tool in memcheck racecheck synccheck initcheck; do
    if command -v compute-sanitizer > /dev/null; then
        # shellcheck disable=SC2016
        step "$tool" 90 sh -c 'echo "1 2 3 4 5 6 7 8 9 10 11 12" | NL_CUDA_SPLIT=16 compute-sanitizer --error-exitcode 1 --tool '$tool' \
            nl-generate -m tests/data/models/llama -n 6 --text'
    else
        skip $tool "no compute-sanitizer"
    fi
done
smol=${NL_SMOLLM2:-$(tests/model.sh 2> /dev/null)} || smol=
if [ -n "$smol" ]; then
    step smollm2 60 tests/gpu/smollm2.sh "$smol"
else
    skip smollm2 "its folder is not here"
fi
nvcc -std=c++17 -O3 -fmad=false -arch="sm_$arch" -Ikernels -o "$out/bandwidth.bin" tests/gpu/bandwidth.cu kernels/cuda_matvec.cu \
    > "$out/bandwidth-build" 2>&1 && step bandwidth 60 "$out/bandwidth.bin"
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT
for shape in 1b 8b; do
    step "model-$shape" 120 build/tools/random-model $shape "$models/$shape" || continue
    if python3 -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; then
        step "torch-$shape" 120 python3 tests/gpu/compare.py "$models/$shape"
    else
        skip "torch-$shape" "no torch with CUDA"
    fi
    step "bench-$shape" 120 nl-bench -m "$models/$shape" --prefill 64,512,2048 --decode 0,512,4096 --repeat 3
    step "bench-$shape-bfloat16" 120 nl-bench -m "$models/$shape" --dtype bfloat16 --prefill 64,512,2048 --repeat 3
done
exit $failed
