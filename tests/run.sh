#!/bin/bash
# Runs every test (or those whose NAMES are given: test_ops loop) built under $B (default build): unit programs, then tests/cli/*.t, all as TAP under prove.
# Prints the skips and, last, "N passed, N failed, N skipped". NL_SHARED: the folder of shared test data (../shared).
set -u
cd "$(dirname "$0")/.." || exit 1
export B=$PWD/${B:-build}
export NL_SHARED=${NL_SHARED:-$PWD/../shared}
[ -d "$NL_SHARED" ] || unset NL_SHARED
if NL_SMOLLM2=$(tests/model.sh); then
    export NL_SMOLLM2
else
    echo "no SmolLM2: $NL_SMOLLM2"
    unset NL_SMOLLM2
fi
export XDG_CACHE_HOME=$B/cache
export CMOCKA_MESSAGE_OUTPUT=TAP PATH="$B/bin:$PATH"
tests/tokenizers.sh
log=$B/test.log
tests=()
for t in "$B"/tests/test_* tests/cli/*.t; do
    name=$(basename "$t" .t)
    [ -x "$t" ] && [[ $# -eq 0 || " $* " == *" $name "* ]] && tests+=("$t")
done
# Signals that whoever started this ignores (as a shell does for what runs in its background) are not ignored by the tests.
env --default-signal=INT,QUIT,PIPE prove --verbose --merge --timer --jobs "${NL_TEST_JOBS:-2}" --exec tests/run-one.sh "${tests[@]}" > "$log" 2>&1
status=$?
grep -E '^not ok|^Bail out|^# .*(error|fail)|Dubious|Wstat|No plan|Bad plan' "$log" | grep -viE "# *skip" | head -100
count() { grep -cE "$@" "$log"; }

grep -iE '^(not )?ok .*# *skip' "$log" | sed -E 's/^(not )?ok [0-9]+ *//' | sort | uniq -c
skipped=$(count -i '^(not )?ok .*# *skip')
passed=$(($(count '^ok [0-9]') - $(count -i '^ok [0-9].*# *skip'))) # prove's own lines have more blanks
failed=$(($(count '^not ok ') - $(count -i '^not ok .*# *skip')))
# An instruction set that the processor lacks is no missing data, nor is what a sanitizer cannot do.
unexplained=$((skipped - $(count -i '^(not )?ok .*# *skip (avx(2|512)$|.*saniti[sz]er)')))
if [ -n "${CI:-}" ] && [ -n "${NL_SHARED:-}" ] && [ "$unexplained" -gt 0 ]; then
    echo "skipped although the shared test data is there"
    status=1
fi
[ $status -ne 0 ] && [ "$failed" -eq 0 ] && failed=1
[ $status -eq 0 ] || echo "the log is $log"
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
