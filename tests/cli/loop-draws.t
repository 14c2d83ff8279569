#!/bin/bash
# The loop with draws, filters and stop ids: the same ids as nl-generate; a signal while it runs.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
m=tests/data/models/llama
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
export XDG_CACHE_HOME=$tap_dir/cache
loop=$tap_dir/loop
mkfifo "$loop" "$tap_dir/in"
printf '5 6 7\n1 40 132 162\n300 2 9\n' > "$tap_dir/prompts"
run_loop() { # SAMPLER..., the statuses of all go to $tap_dir/statuses
    timeout 60 nl-forward -m $m --feedback "$loop" < "$tap_dir/prompts" | "$@" | tee "$loop" > "$tap_dir/got"
    echo "${PIPESTATUS[*]}" > "$tap_dir/statuses"
}

penalty=(--repetition-penalty 1.2)
warpers=(--temperature 0.9 --top-k 50 --top-p 0.95 --seed 11)
nl-generate -m $m --text -n 30 "${penalty[@]}" "${warpers[@]}" < "$tap_dir/prompts" > "$tap_dir/want"
run_loop nl-sample --text -n 30 "${penalty[@]}" "${warpers[@]}"
is "draws: all end well" "$(cat "$tap_dir/statuses")" "0 0 0"
is "draws: the ids of nl-generate" "$(cat "$tap_dir/got")" "$(cat "$tap_dir/want")"
run_loop bash -c "nl-sample --logits ${penalty[*]} | nl-sample --text -n 30 ${warpers[*]}"
is "the chain in two programs: all end well" "$(cat "$tap_dir/statuses")" "0 0 0"
is "the chain in two programs: the same ids" "$(cat "$tap_dir/got")" "$(cat "$tap_dir/want")"
stop=$(cut -d' ' -f5 "$tap_dir/want" | head -1)
run_loop nl-sample --text -n 30 --stop-id "$stop" "${penalty[@]}" "${warpers[@]}"
is "a stop id: the ids of nl-generate" "$(cat "$tap_dir/got")" \
    "$(nl-generate -m $m --text -n 30 --stop-id "$stop" "${penalty[@]}" "${warpers[@]}" < "$tap_dir/prompts")"

(cat "$tap_dir/prompts"; exec sleep 30) > "$tap_dir/in" &
feeder=$!
nl-forward -m $m --json --feedback "$loop" < "$tap_dir/in" > "$tap_dir/cancelled" &
forward=$!
for _ in {1..100}; do
    grep -qs LGTS "$tap_dir/cancelled" && break
    sleep 0.1
done
{ kill -TERM $forward && wait $forward; } 2> /dev/null
is "SIGTERM: dies by the signal" $? 143
is "SIGTERM: DONE says cancelled" "$(tail -1 "$tap_dir/cancelled")" '{"kind":"DONE","finish":"cancelled"}'
kill $feeder 2> /dev/null
done_testing
