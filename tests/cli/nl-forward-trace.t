#!/bin/bash
# nl-forward --trace: the file, and when there is none. Its numbers are tests/unit/test_trace.c's.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
m=tests/data/models/llama
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
export XDG_CACHE_HOME=$tap_dir/cache
t=$tap_dir/trace.safetensors
echo 5 6 7 > "$tap_dir/p3"
forward() { nl-forward -m $m --text "$@" < "$tap_dir/p3"; }

is "the logits are those without a trace" "$(forward --trace "$t")" "$(forward)"
ok "the file is in order" st-inspect --check "$t"
is "what is in it" "$(st-inspect --tsv "$t" | grep -vE 'layers\.[12]' | cut -f1-3)" "$(
    printf '%s\tF32\t%s\n' hidden_states.0 '[3,72]' hidden_states.1 '[3,72]' hidden_states.2 '[3,72]' hidden_states.3 '[3,72]'
    printf 'ids\tI64\t[3]\n'
    printf '%s\tF32\t%s\n' layers.0.attention '[6,3,3]' layers.0.attention_output '[3,72]' layers.0.heads '[3,6,12]' \
        layers.0.k '[3,2,12]' layers.0.k_rope '[3,2,12]' layers.0.mlp_output '[3,72]' \
        layers.0.q '[3,6,12]' layers.0.q_rope '[3,6,12]' layers.0.v '[3,2,12]' logits '[3,317]'
)"
is "with --all too" "$(forward --all --trace "$tap_dir/all")" "$(forward --all)"
ok "and the trace is the same" cmp "$t" "$tap_dir/all"
ok "in chunks of 2" forward --prefill-chunk 2 --trace "$tap_dir/chunks"
ok "the trace is the same" cmp "$t" "$tap_dir/chunks"

# The loop: the ids that came back are in the trace.
mkfifo "$tap_dir/loop"
nl-forward -m $m --trace "$tap_dir/looped" --feedback "$tap_dir/loop" < "$tap_dir/p3" | nl-sample -n 4 | tee "$tap_dir/loop" > /dev/null
echo "$(cat "$tap_dir/p3") $(nl-generate -m $m -n 4 --text < "$tap_dir/p3")" > "$tap_dir/p7"
nl-forward -m $m --text --trace "$tap_dir/whole" < "$tap_dir/p7" > /dev/null
ok "a loop's trace is that of the whole text" cmp "$tap_dir/looped" "$tap_dir/whole"

exits "a second sequence is refused" 3 "a trace is of one sequence" sh -c "printf '5 6 7\n1 2\n' | nl-forward -m $m --text --trace $tap_dir/second > $tap_dir/two"
ok "the first is in the file" cmp "$t" "$tap_dir/second"
is "and answered" "$(head -n 1 "$tap_dir/two")" "$(forward | head -n 1)"
exits "an id outside the vocabulary" 3 "id 999" sh -c "echo 999 | nl-forward -m $m --text --trace $tap_dir/none"
ok "leaves no file" test ! -e "$tap_dir/none"
exits "no such model" 4 "nothing" sh -c "nl-forward -m ./nothing --text --trace $tap_dir/none < $tap_dir/p3"
exits "no such folder" 4 "cannot create: $tap_dir/nowhere/trace" forward --trace "$tap_dir/nowhere/trace"
exits "one file for two things" 2 "-o and --trace name the same file: $tap_dir/none" forward --trace "$tap_dir/none" -o "$tap_dir/none"
exits "a full disk" 9 "cannot write: /dev/full" sh -c "nl-forward -m $m --text --trace /dev/full < $tap_dir/p3"
case $(basename "$B") in
build-*) skip "more than fits into memory" "a sanitiser reserves memory for itself" ;;
*)
    yes 5 | head -n 100000 | tr '\n' ' ' > "$tap_dir/long"
    exits "more than fits into memory" 6 "not enough memory for a trace of 100000 ids: [0-9]+ MB are needed, [0-9]+ MB are available" \
        sh -c "ulimit -v 500000 && nl-forward -m $m -c 100000 --batch 1 --threads 1 --text --trace $tap_dir/none < $tap_dir/long"
    ;;
esac
done_testing
