#!/bin/bash
# The loop of separate programs: nl-forward --feedback | sampler | tee, against nl-generate.
# shellcheck source=tests/cli/tap.sh disable=SC2154
. "${BASH_SOURCE%/*}/tap.sh"
cd "${BASH_SOURCE%/*}/../.." || exit 1
model=tests/data/models/llama
loop=$tap_dir/loop
mkfifo "$loop"
printf '5 9 2 1\n17\n40 41 42 43 44 45 46\n' > "$tap_dir/prompts"

generate() { nl-generate -m $model --text "$@" < "$tap_dir/prompts" | sed 's/ *$//'; }
# looped SAMPLER...: its ids in "$tap_dir/ids", the statuses on standard output. Ended after 20 s at the latest.
looped() {
    timeout 20 nl-forward -m $model --feedback "$loop" "${forward_options[@]}" < "$tap_dir/prompts" | "$@" | tee "$loop" > "$tap_dir/ids"
    echo "${PIPESTATUS[@]}"
}
forward_options=()
text() { sed 's/ *$//' "$tap_dir/ids"; }
json() { sed -n 's/.*"TOKS","ids":\[\(.*\)\].*/\1/p; s/.*"DONE".*/|/p' "$tap_dir/ids" | tr '\n|' ' \n' | sed 's/^ *//; s/ *$//' | sed '/^$/d'; }
binary() {
    perl -e 'binmode STDIN; local $/; my $s = <STDIN>;
        while (length $s) {
            my ($kind, $crc, $length) = unpack "a4 V Q<", $s;
            my $payload = substr $s, 16, $length;
            print join(" ", unpack("V*", $payload)), " " if $kind eq "TOKS";
            print "\n" if $kind eq "DONE";
            $s = substr $s, 16 + $length;
        }' < "$tap_dir/ids" | sed 's/ *$//'
}

want=$(generate -n 20)
is "three sequences" "$(wc -l <<< "$want")" 3
is "text: all statuses 0" "$(looped nl-sample -n 20 --text)" "0 0 0"
is "text: the ids of nl-generate" "$(text)" "$want"
is "JSON: all statuses 0" "$(looped nl-sample -n 20 --json)" "0 0 0"
is "JSON: the ids of nl-generate" "$(json)" "$want"
is "binary: all statuses 0" "$(looped nl-sample -n 20)" "0 0 0"
is "binary: the ids of nl-generate" "$(binary)" "$want"

options=(-n 30 --repetition-penalty 1.2 --temperature 0.9 --top-k 50 --top-p 0.95 --seed 11)
want=$(generate "${options[@]}")
is "draws: all statuses 0" "$(looped nl-sample --text "${options[@]}")" "0 0 0"
is "draws: the ids of nl-generate" "$(text)" "$want"
stop=$(cut -d' ' -f5 <<< "$want" | head -1)
is "a stop id: all statuses 0" "$(looped nl-sample --text "${options[@]}" --stop-id "$stop")" "0 0 0"
is "a stop id: the ids of nl-generate" "$(text)" "$(generate "${options[@]}" --stop-id "$stop")"
is "filters in the loop" "$(looped bash -c 'nl-sample --logits --repetition-penalty 1.2 | nl-sample --text -n 20')" "0 0 0"
is "filters in the loop: the ids" "$(text)" "$(generate -n 20 --repetition-penalty 1.2)"
is "the end of the context: all statuses 0" "$(forward_options=(-c 16); looped nl-sample --text)" "0 0 0"
is "the end of the context: the ids of nl-generate" "$(text)" "$(generate -c 16)"

# A sampler of a few lines. The best id comes first with --top 1. After its newline comes the answer to its last id, then an empty
# line; an empty line that it did not ask for is nl-forward's own end.
# shellcheck disable=SC2016
sampler='
    NF == 0 { if (!over) print ""; fflush(); over = n = 0; next }
    over { next }
    { split($2, best, ":"); printf "%d ", best[1]; if (++n == 20) { print ""; over = 1 } fflush() }'
if command -v gawk > /dev/null; then
    forward_options=(--text --top 1)
    is "gawk: all statuses 0" "$(looped gawk "$sampler")" "0 0 0"
    is "gawk: the ids of nl-generate" "$(text)" "$(generate -n 20 --ignore-eos)"
    forward_options=()
else
    skip "gawk" "it is not installed"
fi

# Killing any one program ends the others. The last nl-sample stands for a reader of ids.
mkfifo "$tap_dir/a" "$tap_dir/b" "$tap_dir/c"
start_loop() {
    nl-forward -m $model -c 1000000 --feedback "$loop" < "$tap_dir/prompts" > "$tap_dir/a" 2> "$tap_dir/log.forward" &
    pids=($!)
    nl-sample --ignore-eos < "$tap_dir/a" > "$tap_dir/b" 2> "$tap_dir/log.sample" &
    pids+=($!)
    tee "$loop" < "$tap_dir/b" > "$tap_dir/c" 2> "$tap_dir/log.tee" &
    pids+=($!)
    nl-sample < "$tap_dir/c" > /dev/null 2> "$tap_dir/log.reader" &
    pids+=($!)
    sleep 0.5
}
running() {
    local pid n=0
    for pid in "${pids[@]}"; do kill -0 "$pid" 2> /dev/null && n=$((n + 1)); done
    echo $n
}
# Sets `elapsed` to tenths of a second until none runs, 50 at the most.
wait_for_all() {
    for ((elapsed = 0; elapsed < 50; elapsed++)); do
        [ "$(running)" = 0 ] && break
        sleep 0.1
    done
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2> /dev/null
        wait "$pid" 2> /dev/null
    done
}
names=(nl-forward nl-sample tee "the reader")
limit=12 # tenths of a second, with some for starting kill and sleep
case ${B-} in *build-*) limit=40 ;; esac # sanitised programs are slow to end
for victim in 0 1 2 3; do
    start_loop
    is "the loop runs" "$(running)" 4
    kill -KILL "${pids[$victim]}"
    wait_for_all
    ok "killing ${names[$victim]} ends the others within a second" [ $elapsed -le $limit ]
    if [ $victim != 3 ]; then
        ok "and one of them says so" grep -qE '^nl-[a-z]+: ' "$tap_dir"/log.*
    fi
done
start_loop
kill -TERM "${pids[0]}"
wait_for_all
ok "SIGTERM to nl-forward ends the others too" [ $elapsed -le $limit ]
done_testing
