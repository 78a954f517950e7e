#!/bin/sh
# example.sh EXPECTED PROGRAM: the example PROGRAM prints the file EXPECTED, lazy and eager, and
# lazy takes no more kernels. example.sh EXPECTED PROGRAM.py: so does the NumPy program beside it,
# with the interpreter PYTHON (python3); skipped where that has no NumPy.
set -eu
expected=$1 program=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

prints() { # COMMAND...: standard error stays in $place/err
    status=0
    "$@" >"$place/out" 2>"$place/err" || status=$?
    cat "$place/err"
    if [ $status != 0 ] || ! diff -u "$expected" "$place/out"; then
        echo "$*: exit status $status, expected 0 and the output above"
        exit 1
    fi
}

case $program in
*.py)
    python=${PYTHON:-python3}
    if ! "$python" -c 'import numpy; print("NumPy", numpy.__version__)'; then
        echo "skipped: $python has no NumPy; PYTHON=... names another"
        exit 77
    fi
    prints "$python" -B "$program"
    ;;
*)
    for mode in lazy eager; do
        prints "$program" $mode
        mv "$place/err" "$place/$mode"
    done
    lazy=$(sed -n 's/^kernels: //p' "$place/lazy")
    eager=$(sed -n 's/^kernels: //p' "$place/eager")
    [ "$lazy" -le "$eager" ] || {
        echo "more kernels lazy than eager"
        exit 1
    }
    ;;
esac
