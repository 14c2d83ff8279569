#!/bin/bash
# Runs every test built under $B (default build): unit programs, then tests/cli/*.t, all as TAP under prove.
# Prints the skips and, last, "N passed, N failed, N skipped". NL_SHARED: the folder of shared test data (../shared).
set -u
cd "$(dirname "$0")/.." || exit 1
export B=$PWD/${B:-build}
export NL_SHARED=${NL_SHARED:-$PWD/../shared}
[ -d "$NL_SHARED" ] || unset NL_SHARED
NL_SMOLLM2=$(tests/model.sh) && export NL_SMOLLM2 || { echo "no SmolLM2: $NL_SMOLLM2"; unset NL_SMOLLM2; }
export CMOCKA_MESSAGE_OUTPUT=TAP PATH="$B/bin:$PATH"
log=$B/test.log
tests=()
for t in "$B"/tests/test_*; do [ -x "$t" ] && tests+=("$t"); done
tests+=(tests/cli/*.t)
prove --verbose --merge --timer --jobs "${NL_TEST_JOBS:-2}" --exec '' "${tests[@]}" > "$log" 2>&1
status=$?
grep -E '^not ok|^Bail out|^# .*(error|fail)|Dubious|Wstat|No plan|Bad plan' "$log" | head -100
grep -iE '^ok .*# *skip' "$log" | sort | uniq -c
passed=$(grep -E '^ok ' "$log" | grep -civE '# *skip')
failed=$(grep -cE '^not ok ' "$log")
skipped=$(grep -E '^ok ' "$log" | grep -ciE '# *skip')
[ $status -ne 0 ] && [ "$failed" -eq 0 ] && failed=1
[ $status -eq 0 ] || echo "the log is $log"
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
