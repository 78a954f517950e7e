#!/bin/sh
# includes.sh ROOT: includes point one way, ir < passes < codegen < runtime < frontend, and no part
# of the library includes from tests or bench. Prints the lines that break this and fails.
# The check itself is checked: a file that breaks each rule must be found.
set -eu
root=$1

# Lines of DIR's sources that include from one of the folders named after it.
offenders() { # dir folder...
    dir=$1
    shift
    folders=$(echo "$*" | tr ' ' '|')
    grep -rnE --include='*.c' --include='*.h' --include='*.def' --include='*.in' \
        "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<]([^\">]*/)?($folders)/" "$dir" || true
}
all_offenders() { # tree
    (
        cd "$1"
        offenders ir passes codegen runtime frontend tests bench
        offenders passes codegen runtime frontend tests bench
        offenders codegen runtime frontend tests bench
        offenders runtime frontend tests bench
        offenders frontend tests
    )
}

probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
for dir in ir passes codegen runtime frontend; do
    mkdir "$probe/$dir"
done
echo '#include "passes/plan.h"' >"$probe/ir/a.c"
echo '#  include "../codegen/codegen.h"' >"$probe/passes/b.h"
echo '#include <runtime/device.h>' >"$probe/codegen/c.def"
echo '#include "frontend/fusec.h"' >"$probe/runtime/d.c"
echo '#include "tests/support/x.h"' >"$probe/frontend/e.c"
printf '#include "ir/graph.h"\n#include "codegen/codegen.h"\n' >"$probe/runtime/good.c"
found=$(all_offenders "$probe" | wc -l)
if [ "$found" -ne 5 ]; then
    echo "the check finds $found of 5 planted offenders:"
    all_offenders "$probe"
    exit 1
fi

wrong=$(all_offenders "$root")
if [ -n "$wrong" ]; then
    echo "includes against the order ir < passes < codegen < runtime < frontend:"
    echo "$wrong"
    exit 1
fi
echo "$(find "$root"/ir "$root"/passes "$root"/codegen "$root"/runtime "$root"/frontend \
    -name '*.[ch]' | wc -l) files include one way"
