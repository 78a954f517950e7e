#!/bin/sh
# examples.sh: the examples that print what NumPy prints: how many kernels each takes, lazy and
# eager, and the first line of its opening comment. They are searched on the path.
set -eu
cd "$(dirname "$0")/../../frontend/examples"
printf '%-18s %5s %6s\n' program lazy eager
for expected in *.expected; do
    name=${expected%.expected}
    lazy=$("$name" lazy 2>&1 >/dev/null | sed -n 's/^kernels: //p')
    eager=$("$name" eager 2>&1 >/dev/null | sed -n 's/^kernels: //p')
    about=$(sed -n "1s|^// $name.c: ||p" "$name.c")
    printf '%-18s %5d %6d  %s\n' "$name" "$lazy" "$eager" "$about"
done
