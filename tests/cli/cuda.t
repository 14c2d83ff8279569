#!/bin/bash
# CUDA as a user meets it: no device, no driver, a device that fails in every way, and the loop of separate programs.
. tests/cli/tap.sh
m=tests/data/models/llama
run() { # SETTING...: six ids from three
    printf '1 2 3\n' | env "$@" nl-generate --device emu -m $m -n 6 --text
}
want=$(printf '1 2 3\n' | nl-generate --device cpu -m $m -n 6 --text)

if ! [ -e /proc/driver/nvidia ]; then
    exits "no device: cuda" 6 'no device: cuda' sh -c "echo 1 | nl-generate -m $m --device cuda --text"
    exits "no device: cuda:3" 6 'no device: cuda:3' sh -c "echo 1 | NL_DEVICE=cuda:3 nl-forward -m $m --text"
    is "auto takes the CPU and -v says so" "$(printf '1 2 3\n' | nl-generate --device auto -v -m $m -n 6 --text 2>&1 | grep -c ': cpu ')" 1
fi
exits "a device that is none" 2 'unknown device' sh -c "echo 1 | nl-generate -m $m --device cuda: --text"
exits "a backend that is not there" 6 'no such backend' \
    sh -c "echo 1 | NL_BACKEND_DIR=$tap_dir nl-generate -m $m --device emu --text"
echo garbage > "$tap_dir/libnl_cuda_emu.so"
exits "a backend that is none" 6 'cannot load the backend' \
    sh -c "echo 1 | NL_BACKEND_DIR=$tap_dir nl-generate -m $m --device emu --text"

exits "bfloat16 where it is not" 5 'activations in bfloat16 are for CUDA.*: cpu' \
    sh -c "echo 1 | NL_ISA=portable nl-generate --device cpu --dtype bfloat16 -m $m --text"
exits "a type that is none" 2 "float32 or bfloat16, not 'float64'" sh -c "echo 1 | nl-forward --dtype float64 -m $m --text"
is "float32 is the default" "$(printf '1 2 3\n' | nl-generate --device cpu --dtype f32 -m $m -n 6 --text)" "$want"

if ! [ -e "$B/libnl_cuda_emu.so" ]; then
    skip "CUDA emulated" "no headers of CUDA 12 or newer"
    done_testing
fi
is "six ids" "$(run A=b)" "$want"
is "-v names the device" "$(printf '1 2 3\n' | nl-generate --device emu -v -m $m -n 6 --text 2>&1 | grep -c 'cuda emulated')" 1
is "several sequences at once" \
    "$(printf '1 2 3\n4 5\n1 2 3\n' | nl-generate --device emu -m $m -n 6 --text | sed -n '1p;3p')" "$want
$want"
is "a sampler that wants the logits" "$(printf '1 2 3\n' | nl-generate --device emu -m $m -n 6 --repetition-penalty 1.3 --text)" \
    "$(printf '1 2 3\n' | nl-generate --device cpu -m $m -n 6 --repetition-penalty 1.3 --text)"
# The greatest first: ids and their order; the values are within rounding elsewhere.
is "in bfloat16, the ids of the reference" "$(printf '1 2 3\n' | nl-generate --device emu --dtype bf16 -m $m -n 6 --text)" \
    "$(printf '1 2 3\n' | NL_ISA=reference nl-generate --device cpu --dtype bfloat16 -m $m -n 6 --text)"
is "nl-bench says so" "$(nl-bench --device emu --dtype bfloat16 -m $m --prefill 9 --repeat 1 --warm-up 0 --json | grep -c '"activations":"BF16"')" 1
is "nl-forward" "$(printf '1 2 3\n' | nl-forward --device emu -m $m --text --top 5 | tr ' ' '\n' | cut -d: -f1)" \
    "$(printf '1 2 3\n' | nl-forward --device cpu -m $m --text --top 5 | tr ' ' '\n' | cut -d: -f1)"

# Every call fails once: always one line, 6 or 9, and no ids after the failure.
exits "no memory for weights and cache" 6 'not enough memory' run NL_EMU_MEMORY=100000
exits "no other device" 6 'no device: cuda:1' sh -c "echo 1 | nl-generate -m $m --device emu:1 --text"
memory=0 calls=0
for n in $(seq 1 40); do
    run NL_EMU_FAIL=malloc:"$n" > "$tap_dir/ids" 2> "$tap_dir/err"
    status=$?
    [ $status -eq 0 ] && break
    memory=$((memory + 1))
    [ $status -eq 6 ] && [ "$(grep -c . "$tap_dir/err")" -eq 1 ] && grep -q 'out of memory: .* bytes for the' "$tap_dir/err" &&
        calls=$((calls + 1))
done
is "each allocation that fails is told with its size" "$calls of $memory, more than 10: $((memory > 10))" "$memory of $memory, more than 10: 1"
exits "pinned memory that fails" 6 'out of memory' run NL_EMU_FAIL=host:1
# Embedding, six for each of three layers, norm, logits, arg-max.
is "a step is at most six kernels a layer" \
    "$(printf '1 2 3\n' | NL_EMU_STATS=1 nl-forward --device emu -m $m --text --top 1 2>&1 | grep -o '[0-9]* kernels')" "22 kernels"
exits "a launch that fails" 9 'CUDA: .*: rotation of layer 1, 3 rows' run NL_EMU_FAIL=launch:9
# Nothing can be freed on a device that is gone.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
exits "a kernel that fails in mid-run" 9 'CUDA: unspecified launch failure' run NL_EMU_FAIL=kernel:90
exits "a device lost while loading" 9 'CUDA: ' run NL_EMU_FAIL=lost:60
is "what was generated before a failure was written" "$(run NL_EMU_FAIL=kernel:90 2> /dev/null | cut -d' ' -f1-2)" "$(cut -d' ' -f1-2 <<< "$want")"
done_testing
