#!/bin/sh
# Installs the Debian packages that are missing: deps.sh PKG_CONFIG_NAME...; DEPS=no does nothing.
# Without root and sudo it prints the line to type.
set -eu
[ "${DEPS:-}" = no ] && exit 0

missing=
need() { # COMMAND_THAT_SUCCEEDS_WHEN_THERE -- PACKAGE
    package=${*##*-- }
    check=${*%% -- *}
    $check >/dev/null 2>&1 || missing="$missing $package"
}
need command -v "${CC:-gcc}" -- gcc
need command -v pkg-config -- pkg-config
for name in "$@" cmocka; do
    case $name in
    libpcre2-8) package=libpcre2-dev ;;
    cmocka) package=libcmocka-dev ;;
    *) package=$name-dev ;;
    esac
    need pkg-config --exists "$name" -- "$package"
done
need command -v prove -- perl
need command -v mandoc -- mandoc
need command -v shellcheck -- shellcheck
need command -v gawk -- gawk
need python3 -m pip --version -- python3-pip
if [ -n "${CI:-}" ]; then
    need command -v clang -- clang
    need command -v clang-tidy -- clang-tidy
    need command -v clang-format -- clang-format
    need command -v cppcheck -- cppcheck
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
