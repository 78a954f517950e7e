#!/bin/sh
# install.sh BUILD EXAMPLES CC...: what is installed is enough. Installs BUILD into a folder of its
# own, compiles two programs of the folder EXAMPLES there with nothing but pkg-config's flags, and
# runs them: add_relu must print that it took one kernel, black_scholes what NumPy printed. The
# installed library must export fc_ names and no others.
set -eu
build=$1 examples=$2
shift 2

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

cp "$examples/add_relu.c" "$examples/black_scholes.c" "$examples/example.h" "$place"
cd "$place"
for name in add_relu black_scholes; do
    # Word splitting is wanted: pkg-config prints flags.
    "$@" -std=c11 -pedantic -Wall -Wextra -Werror $name.c $(ask --cflags --libs) -lm -o $name
    LD_LIBRARY_PATH=$libdir ./$name | tee $name.out
done
grep -q 'kernels: 1$' add_relu.out || {
    echo "expected 1 kernel"
    exit 1
}
diff "$examples/black_scholes.expected" black_scholes.out

if command -v c++ >/dev/null; then
    printf '#include <fusec.h>\nint main() { return fc_valid(fc_scalar(nullptr, 1.5f)); }\n' >use.cc
    c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only $(ask --cflags) use.cc
    cat >numbers.cc <<'EOF'
#include <fusec.h>
static bool is(fc_num n, bool is_int, bool is_large, double f, int64_t i)
{
    return n.is_int == is_int && n.is_large == is_large && n.f == f && n.i == i;
}
int main()
{
    return !(is(FC_NUM(1.5f), 0, 0, 1.5, 0) && is(FC_NUM(1.5L), 0, 0, 1.5, 0) &&
             is(FC_NUM(true), 1, 0, 0, 1) && is(FC_NUM((unsigned char)200), 1, 0, 0, 200) &&
             is(FC_NUM(7u), 1, 0, 0, 7) && is(FC_NUM(UINT64_MAX), 1, 1, 0, -1) &&
             is(FC_NUM(-1), 1, 0, 0, -1));
}
EOF
    c++ -std=c++17 -Wall -Wextra -Werror $(ask --cflags) numbers.cc -o numbers
    ./numbers || { echo "numbers of C++ are not what they are in C"; exit 1; }
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
