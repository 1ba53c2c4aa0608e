"""Verbs on a terminal that read for over a second say how far they are, in one line that is gone
when anything else is printed. In a pipe, and in front of one, they say nothing."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CORDWOOD = ROOT / "build/bin/cordwood"
# Enough that reading takes over a second.
LINES = 2_500_000
SHOWN = re.compile(rb"\r\x1b\[K(\d+) records read")


def on_terminal(command, out=None):
    """All that a terminal gets of it on stderr, and on standard output where `out` is None."""
    master, slave = os.openpty()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=slave,
                             stdout=slave if out is None else out)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # the last one has closed it
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    return child.wait(), seen


def main():
    problems = []

    def holds(condition, what, seen):
        if not condition:
            problems.append(f"{what}: {seen[-300:]!r}")

    with tempfile.TemporaryDirectory(prefix="cordwood-progress-") as name:
        store = Path(name) / "store"
        text = b"".join(b"line %d\n" % number for number in range(LINES))
        subprocess.run([CORDWOOD, "log", "--store", store, "--logger", "many"], input=text,
                       check=True)
        subprocess.run([CORDWOOD, "archive", store], check=True, stdout=subprocess.DEVNULL)
        code, seen = on_terminal([CORDWOOD, "stats", store])
        counts = [int(count) for count in SHOWN.findall(seen)]
        holds(code == 0 and counts and counts == sorted(counts), "stats says how far it is", seen)
        holds(b"\r\x1b[K" in seen[seen.rfind(b" records read"):], "the line is taken away", seen)
        code, seen = on_terminal([CORDWOOD, "grep", "-c", "line 17$", store], subprocess.DEVNULL)
        holds(code == 0 and SHOWN.search(seen), "grep says how far it is", seen)
        code, seen = on_terminal([CORDWOOD, "grep", "-c", "line 17$", store], subprocess.PIPE)
        holds(code == 0 and not seen, "nothing in front of a pipe", seen)
        done = subprocess.run([CORDWOOD, "stats", store], check=True, capture_output=True)
        holds(not done.stderr, "nothing in a pipe", done.stderr)
    for problem in problems:
        print(f"FAIL {problem}")
    print(f"{5 - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
