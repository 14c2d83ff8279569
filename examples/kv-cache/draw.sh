#!/bin/sh
# draw.sh: what the key-value cache is worth, as a picture. Measures with nl-bench and draws with gnuplot; run it where
# nothing else runs. Makes kv-cache.tsv (the measurement), kv-cache.svg and kv-cache.png in the present folder.
# usage: draw.sh [OPTION of nl-bench]...   or, to draw an old measurement: draw.sh --data kv-cache.tsv
set -eu
here=$(dirname "$0")
if [ "${1:-}" = --data ] && [ $# -eq 2 ]; then
    data=$2
else
    data=kv-cache.tsv
    nl-bench -n 128 --prompt 32 --repeat 5 -o "$data" "$@"
fi

fact() { sed -n "s/^# $1	//p" "$data"; }
gnuplot -e "data = '$data'; model = '$(fact model)'; weights = '$(fact weights)'; prompt = '$(fact prompt)'" \
    -e "machine = '$(fact machine)'; isa = '$(fact isa)'; threads = '$(fact threads)'; repeat = '$(fact repeat)'" \
    -e "command = '$(fact command)'" "$here/kv-cache.gp"
echo "kv-cache.svg and kv-cache.png are drawn" >&2
