#!/bin/bash
# Prints what ptxas said of each kernel when libnl_cuda.so was built in folder B: architecture, registers, bytes of shared
# memory, of stack. With "check", compares with tests/registers.txt, where the same release of nvcc made both.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
table() {
    nvcc --version | sed -n 's/.*release .*, V/# nvcc /p'
    cat "$1"/cuda/*.ptxas | awk '
        /Compiling entry function/ { split($0, q, "\047"); name = q[2]; arch = q[4] }
        /bytes stack frame/ { stack = $1 }
        /: Used [0-9]+ registers/ {
            shared = 0
            for (i = 2; i <= NF; i++) if ($i ~ /^smem/) shared = $(i - 2)
            for (i = 2; i <= NF; i++) if ($i == "Used") registers = $(i + 1)
            print name, arch, registers, shared, stack
        }' | c++filt | sed -E 's/\(anonymous namespace\):://g; s/^void //; s/\([^)]*\) sm_/ sm_/' | sort -V
}
if [ "${2:-}" != check ]; then
    table "$1"
    exit
fi
if ! command -v nvcc > /dev/null; then
    echo "no nvcc: the kernels' registers are not checked"
elif [ "$(table "$1" | head -1)" != "$(grep '^# nvcc' tests/registers.txt)" ]; then
    echo "another nvcc made tests/registers.txt: the kernels' registers are not checked"
else
    diff -u tests/registers.txt <(table "$1") && echo "the kernels' registers are those of tests/registers.txt"
fi
