#!/usr/bin/env python3
"""readme.py BUILD: the README's blocks are what their commands print.

A line `<!-- prints: COMMAND -->` (or `<!-- measured: COMMAND -->`) is followed by a fenced block.
COMMAND runs in the repository's root, with what BUILD holds (fusec and the examples) on the path.
Blocks that a command prints must equal its output, byte for byte but for the numbers of a kernel's
schedule (the line `by`), which are the machine's choice; with FUSEC_UPDATE=1 they are rewritten
instead. Measured blocks are left alone, unless BUILD is followed by --measure: then these
are rewritten, below a line that says where and when. Run that on a quiet machine.
"""
import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"<!-- (prints|measured): (.*?) -->\n```(\w*)\n(.*?)^```$", re.M | re.S)
SCHEDULE = re.compile(r"^  by  .*$", re.M)


def without_schedule_numbers(text):
    return SCHEDULE.sub(lambda line: re.sub(r"\d+", "N", line.group()), text)


def output(command, build):
    path = f"{build}:{build}/frontend:{os.environ['PATH']}"
    ran = subprocess.run(["sh", "-c", command], cwd=ROOT, env={**os.environ, "PATH": path},
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode:
        sys.exit(f"{command}: exit status {ran.returncode}\n{ran.stdout}")
    return ran.stdout.rstrip("\n") + "\n"


def measured(command, build):
    revision = output("git describe --always --dirty", build).strip()
    device = output("fusec devices", build).split("\n")[0]
    today = datetime.date.today()
    return f"{today}, revision {revision}, {device}\n\n{output(command, build)}"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    measure = sys.argv[2:] == ["--measure"]
    update = os.environ.get("FUSEC_UPDATE")
    readme = ROOT / "README.md"
    text = readme.read_text()
    wrong = checked = 0

    def block(match):
        nonlocal wrong, checked
        kind, command, language, body = match.groups()
        if kind == "measured":
            now = measured(command, build) if measure else body
        else:
            checked += 1
            now = output(command, build)
            same = without_schedule_numbers(now) == without_schedule_numbers(body)
            if same:
                now = body
            elif not update:
                wrong += 1
                print(f"README.md: `{command}` prints something else now (FUSEC_UPDATE=1):\n{now}")
                now = body
        return f"<!-- {kind}: {command} -->\n```{language}\n{now}```"

    after = BLOCK.sub(block, text)
    if after != text:
        readme.write_text(after)
    if not checked or len(BLOCK.findall(text)) != len(re.findall(r"^<!-- ", text, re.M)):
        sys.exit("README.md: a comment that is not followed by a block")
    print(f"{checked} blocks of the README checked")
    return 1 if wrong else 0


sys.exit(main())
