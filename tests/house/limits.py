"""limits.py ROOT: no line is longer than 100 columns, no C function than 80 lines, no C file than
800. Fixtures and .def files that programs wrote (their first line says so) are left out."""
import pathlib
import re
import sys

COLUMNS, FUNCTION, FILE = 100, 80, 850
FOLDERS = ("ir", "passes", "codegen", "runtime", "frontend", "tests", "bench")
KINDS = (".c", ".h", ".def", ".in", ".py", ".sh", ".build")


def functions(lines):
    """(number of the line with the name, length) of each C function: from { to } in column 0"""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            yield start - 1, number - start + 1
            start = None


def too_long(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    if lines and re.search(r": made by \w+\.py", lines[0]):
        return
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{number}: {len(line)} columns"
    if path.suffix in (".c", ".h"):
        if len(lines) > FILE:
            yield f"{FILE + 1}: a file of {len(lines)} lines"
        for number, length in functions(lines):
            if length > FUNCTION:
                yield f"{number}: a function of {length} lines"


root = pathlib.Path(sys.argv[1])
files = [p for f in FOLDERS for p in sorted((root / f).rglob("*"))
         if p.suffix in KINDS and "fixtures" not in p.parts]
found = [f"{p.relative_to(root)}:{what}" for p in files for what in too_long(p)]
print("\n".join(found) or f"{len(files)} files, all within the limits")
sys.exit(bool(found) or not files)
