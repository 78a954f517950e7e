#!/bin/sh
# setup.sh: installs what fusec needs to build (Debian 12; root, or sudo), configures a build
# directory and compiles it. Running it again takes a second or two.
#
#   ./setup.sh                                     build/, LLVM as a shared library
#   LLVM=static ./setup.sh                         LLVM inside: shared, static or off
#   SANITIZE=address,undefined BUILD=build-asan ./setup.sh
#   FUZZ=true BUILD=build-fuzz ./setup.sh          libFuzzer targets, with clang 19
#
# Environment: BUILD the directory (build); LLVM, SANITIZE, FUZZ set the meson options of the same
# names, and are left as configured when not given; CC the compiler of a new build directory;
# JOBS compile jobs at once. Arguments are passed to meson, as in ./setup.sh --prefix=/opt/fusec
set -eu
cd "$(dirname "$0")"
build=${BUILD:-build}

say() {
    printf 'setup: %s\n' "$*"
}
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}
have() {
    command -v "$1" >/dev/null 2>&1
}

# Prints the Debian packages of whatever is not there.
missing_packages() {
    have "${CC:-gcc}" || have cc || echo gcc
    [ -e /usr/include/stdio.h ] || echo libc6-dev
    have meson || echo meson
    have ninja || echo ninja-build
    have pkg-config || echo pkg-config
    { have pkg-config && pkg-config --exists criterion; } || echo libcriterion-dev
    if [ "${LLVM:-shared}" != off ] && ! have llvm-config-19; then
        echo llvm-19-dev
    fi
    if [ "${LLVM:-shared}" = static ]; then # what LLVM's archives need
        [ -e /usr/include/zlib.h ] || echo zlib1g-dev
        [ -e /usr/include/zstd.h ] || echo libzstd-dev
        have g++ || echo g++
    fi
    if [ "${FUZZ:-false}" = true ]; then
        have clang-19 || echo clang-19
        ls /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 ||
            echo libclang-rt-19-dev
    fi
}

install_packages() { # $@: packages
    have apt-get || fail "needs these Debian packages or their like, and there is no apt-get: $*"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        have sudo || fail "needs root or sudo to install: $*"
        as_root=sudo
    fi
    say "installing $*"
    $as_root apt-get -qq update
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@" </dev/null >/dev/null
}

missing=$(missing_packages)
if [ -n "$missing" ]; then
    install_packages $missing
fi

# The meson options that were asked for, before the caller's own arguments.
[ -z "${FUZZ:-}" ] || set -- "-Dfuzz=$FUZZ" "$@"
[ -z "${SANITIZE:-}" ] || set -- "-Dsanitize=$SANITIZE" "$@"
[ -z "${LLVM:-}" ] || set -- "-Dllvm=$LLVM" "$@"
if [ "${FUZZ:-false}" = true ] && [ -z "${CC:-}" ]; then
    export CC=clang-19
fi

if [ ! -e "$build/build.ninja" ]; then
    say "configuring $build"
    meson setup "$build" "$@"
elif [ $# -gt 0 ]; then
    say "configuring $build again"
    meson setup --reconfigure "$build" "$@"
fi
say "compiling $build"
ninja -C "$build" ${JOBS:+-j "$JOBS"}
say "done: $build"
