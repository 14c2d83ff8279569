#!/bin/bash
# The loop of separate programs: nl-forward --feedback, a sampler, tee and a FIFO.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
m=tests/data/models/llama
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
export XDG_CACHE_HOME=$tap_dir/cache
loop=$tap_dir/loop
mkfifo "$loop"
printf '5 6 7\n1 40 132 162\n300 2 9\n' > "$tap_dir/prompts"
nl-generate -m $m -n 30 --text < "$tap_dir/prompts" > "$tap_dir/want"

run_loop() { # SAMPLER..., the statuses of all go to $tap_dir/statuses
    timeout 60 nl-forward -m $m --feedback "$loop" "${forward_options[@]}" < "$tap_dir/prompts" | "$@" | tee "$loop" > "$tap_dir/got"
    echo "${PIPESTATUS[*]}" > "$tap_dir/statuses"
}
forward_options=()
run_loop nl-sample -n 30
is "three prompts: all end well" "$(cat "$tap_dir/statuses")" "0 0 0"
is "and give the ids of nl-generate" "$(nl-generate -m $m -n 0 --echo --text < "$tap_dir/got")" "$(cat "$tap_dir/want")"
run_loop nl-sample -n 30 --text
is "the choices as text" "$(cat "$tap_dir/got")" "$(cat "$tap_dir/want")"
run_loop nl-sample -n 30 --json
is "the choices as JSON" "$(grep -o '"ids":\[[0-9,]*\]' "$tap_dir/got" | tr -dc '0-9,\n' | wc -l)" 90

# A sampler in awk over the text twin: prints an id and a blank, a newline to end.
# shellcheck disable=SC2317 # run_loop calls it
awk_sampler() {
    gawk -v n=30 'NF > 1 { split($2, best, ":"); if (count < n) { printf "%d ", best[1]; count++ }
                           if (count == n) { print ""; count++ } fflush() }
                  NF == 0 { count = 0 }'
}
forward_options=(--text --top 1)
if command -v gawk > /dev/null; then
    run_loop awk_sampler
    is "a sampler in awk: all end well" "$(cat "$tap_dir/statuses")" "0 0 0"
    is "and gives the same ids" "$(sed 's/ $//' "$tap_dir/got")" "$(sed 's/ $//' "$tap_dir/want")"
else
    skip "a sampler in awk" "no gawk"
    skip "and gives the same ids" "no gawk"
fi
forward_options=()

# A prompt that cannot run, between others.
printf '5 6 7\n999\n5 6 7\n' > "$tap_dir/prompts"
run_loop nl-sample -n 3 --text 2> "$tap_dir/err"
is "a prompt that cannot run: the others do" "$(cat "$tap_dir/got")" "$(nl-generate -m $m -n 3 --text < "$tap_dir/prompts" 2> /dev/null)"
is "and the first says so with its status" "$(cut -d' ' -f1 "$tap_dir/statuses")" 3
forward_options=(-c 10)
printf '5 6 7\n5 6 7\n' > "$tap_dir/prompts"
run_loop nl-sample --text
is "the context's end ends a sequence: statuses" "$(cat "$tap_dir/statuses")" "0 0 0"
is "the context's end ends a sequence: ids" "$(cat "$tap_dir/got")" "$(nl-generate -m $m -c 10 --text < "$tap_dir/prompts")"
forward_options=()

# Killing any one program ends all the others within a second, with a message from the one that noticed.
printf '5 6 7\n' > "$tap_dir/prompts"
start_loop() {
    (cat "$tap_dir/prompts"; exec sleep 30) > "$tap_dir/in" &
    feeder=$!
    nl-forward -m $m -c 10000000 --feedback "$loop" < "$tap_dir/in" > "$tap_dir/logits" 2> "$tap_dir/err.forward" &
    forward=$!
    nl-sample < "$tap_dir/logits" > "$tap_dir/ids" 2> "$tap_dir/err.sample" &
    sample=$!
    tee "$loop" < "$tap_dir/ids" > "$tap_dir/out" 2> "$tap_dir/err.tee" &
    tee=$!
    for _ in {1..100}; do # until it runs
        [ -s "$tap_dir/read" ] && break
        sleep 0.1
    done
}
mkfifo "$tap_dir/in" "$tap_dir/logits" "$tap_dir/ids" "$tap_dir/out"
for victim in forward sample tee reader; do
    rm -f "$tap_dir/read"
    cat "$tap_dir/out" > "$tap_dir/read" 2> /dev/null &
    reader=$!
    start_loop
    { kill -KILL "${!victim}" && wait "${!victim}"; } 2> /dev/null
    sleep 1
    left=
    for process in forward sample tee; do
        kill -0 "${!process}" 2> /dev/null && left="$left $process"
    done
    is "killing $victim ends the others within a second" "$left" ""
    [ "$victim" = reader ] || ok "killing $victim: somebody says why" grep -q . "$tap_dir"/err.*
    kill "$feeder" "$forward" "$sample" "$tee" "$reader" 2> /dev/null
    wait 2> /dev/null
done
done_testing
