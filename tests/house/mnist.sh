#!/bin/sh
# mnist.sh PROGRAM: the example reads 1,000 real digits as well as the network can (927 of them), to
# the bits the same eager and compiled, with two kernels a batch. Skipped without FUSEC_TEST_DATA.
set -eu
if [ -z "${FUSEC_TEST_DATA:-}" ]; then
    echo "skipped: FUSEC_TEST_DATA names no folder with test data"
    exit 77
fi
output=$("$1" "$FUSEC_TEST_DATA/mnist5k" 1) || {
    echo "$output"
    exit 1
}
echo "$output"
echo "$output" | awk '
    $1 ~ /^[0-9]+$/ && NF == 10 {
        rows++
        if ($2 != "0.927" || $3 != "0.927") wrong("accuracy is not 0.927")
        if ($4 + 0 > 1e-5) wrong("largest error is above 1e-5")
        if ($5 != "yes") wrong("eager and compiled differ")
        if ($6 != 2) wrong("compiled is not 2 kernels")
        if ($7 <= $6) wrong("eager takes no more kernels")
    }
    function wrong(words) { print "batch " $1 ": " words; failed = 1 }
    END {
        if (rows != 4) { print rows + 0 " of 4 batch sizes"; failed = 1 }
        exit failed
    }'
