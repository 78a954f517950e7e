#!/bin/sh
# install.sh BUILD PROGRAM.c KERNELS CC...: what is installed is enough. Installs BUILD into a folder
# of its own, compiles PROGRAM.c there with nothing but pkg-config's flags, and runs it; it must
# print that it took KERNELS kernels. The installed library must export fc_ names and no others.
set -eu
build=$1 program=$2 kernels=$3
shift 3

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$place/root"

pc=$(find "$place/root" -name fusec.pc)
prefix=$place/root$(sed -n 's/^prefix=//p' "$pc")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
ask() {
    pkg-config --define-variable=prefix="$prefix" "$@" fusec
}
libdir=$(ask --variable=libdir)
echo "version $(ask --modversion), $(ask --cflags --libs)" | sed "s|$place/root||g"

cp "$program" "$place/program.c"
cd "$place"
# Word splitting is wanted: pkg-config prints flags.
"$@" -std=c11 -pedantic -Wall -Wextra -Werror program.c $(ask --cflags --libs) -o program
LD_LIBRARY_PATH=$libdir ./program | tee output
grep -q "kernels: $kernels\$" output || {
    echo "expected $kernels kernels"
    exit 1
}

if command -v c++ >/dev/null; then
    printf '#include <fusec.h>\nint main() { return fc_valid(fc_scalar(nullptr, 1.5f)); }\n' >use.cc
    c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only $(ask --cflags) use.cc
    echo "the header is C++ too"
else
    echo "no C++ compiler here: the header was not tried as C++"
fi

nm -D --defined-only "$libdir/libfusec.so" | awk '$2 != "A" { print $3 }' >exported
if [ "$(grep -c '^fc_' exported)" -lt 100 ] || grep -v '^fc_' exported; then
    echo "the library must export all of fc_ and nothing else"
    exit 1
fi
echo "$(wc -l <exported) names exported, all of them fc_"

"$prefix/bin/fusec" --version
