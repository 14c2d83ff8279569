#!/bin/bash
# Installs the Debian packages that are missing: deps.sh PKG_CONFIG_NAME...; DEPS=no does nothing.
# Without root and sudo it prints the line to type.
set -eu
[ "${DEPS:-}" = no ] && exit 0

missing=
has_fuzzer() {
    [ -e "$(clang -print-file-name=libclang_rt.fuzzer-x86_64.a)" ] || [ "$(uname -m)" != x86_64 ]
}
need() { # PACKAGE COMMAND...: the command succeeds when the package is there
    "${@:2}" > /dev/null 2>&1 || missing="$missing $1"
}
need gcc command -v "${CC:-gcc}"
need pkg-config command -v pkg-config
for name in "$@" cmocka; do
    case $name in
    libpcre2-8) package=libpcre2-dev ;;
    cmocka) package=libcmocka-dev ;;
    *) package=$name-dev ;;
    esac
    need "$package" pkg-config --exists "$name"
done
need perl command -v prove
need mandoc command -v mandoc
need shellcheck command -v shellcheck
need gawk command -v gawk
need zstd command -v zstd
need python3-pip python3 -m pip --version
if [ -n "${CI:-}" ]; then
    need clang command -v clang
    need clang-tidy command -v clang-tidy
    need clang-format command -v clang-format
    need cppcheck command -v cppcheck
    command -v clang > /dev/null && need "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev" has_fuzzer
fi
[ -z "$missing" ] && exit 0

line="apt-get install -y --no-install-recommends$missing"
if ! command -v apt-get >/dev/null; then
    echo "missing, by the names of Debian's packages:$missing" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=sudo
else
    echo "missing packages; as root, type: $line" >&2
    exit 1
fi
echo "+ $line" >&2
$as_root apt-get update -qq
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >&2
[ -n "${DEPS_AGAIN:-}" ] || DEPS_AGAIN=1 exec "$0" "$@" # some packages are named after the version of others
