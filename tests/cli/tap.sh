# shellcheck shell=bash
# tap.sh: TAP for shell tests. Source it, call ok/is/exits/skip, end with done_testing.
set -u
tap_n=0 tap_failed=0
tap_dir=$(mktemp -d)
trap 'rm -rf "$tap_dir"' EXIT

# ok NAME COMMAND...: the command succeeds.
ok() {
    local name=$1
    shift
    tap_n=$((tap_n + 1))
    if "$@" > "$tap_dir/ok.log" 2>&1; then
        echo "ok $tap_n - $name"
    else
        echo "not ok $tap_n - $name"
        sed 's/^/# /' "$tap_dir/ok.log" | head -20
        tap_failed=$((tap_failed + 1))
    fi
}
# is NAME GOT WANT: the strings are equal.
is() {
    tap_n=$((tap_n + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $tap_n - $1"
    else
        echo "not ok $tap_n - $1"
        printf '#  got: %s\n' "${2:0:400}" | tr '\n' ' '
        printf '\n# want: %s\n' "${3:0:400}" | tr '\n' ' '
        echo
        tap_failed=$((tap_failed + 1))
    fi
}
# exits NAME STATUS PATTERN COMMAND...: the status, and a last line on standard error that matches the pattern ('' = none at all).
exits() {
    local name=$1 want=$2 pattern=$3 got
    shift 3
    "$@" > "$tap_dir/out" 2> "$tap_dir/err"
    got=$?
    tap_n=$((tap_n + 1))
    if [ $got -eq "$want" ] && if [ -n "$pattern" ]; then grep -qE -e "$pattern" "$tap_dir/err"; else [ ! -s "$tap_dir/err" ]; fi; then
        echo "ok $tap_n - $name"
    else
        echo "not ok $tap_n - $name"
        echo "# status $got, wanted $want and a message like '$pattern'; standard error:"
        head -c 600 "$tap_dir/err" | sed 's/^/# /'
        tap_failed=$((tap_failed + 1))
    fi
}
# skip NAME WHY
skip() {
    tap_n=$((tap_n + 1))
    echo "ok $tap_n # skip $1: $2"
}
done_testing() {
    echo "1..$tap_n"
    [ $tap_failed -eq 0 ]
    exit
}
