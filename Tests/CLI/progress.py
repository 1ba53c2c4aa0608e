"""On a terminal, verbs that read for over a second show their progress in a line that is removed
before anything else is printed. In a pipe, and in front of one, they show none."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

import cases  # noqa: E402
from cases import holds  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
CORDWOOD = ROOT / "build/bin/cordwood"
LINES = 1_000_000
SHOWN = re.compile(rb"\r\x1b\[K(\d+) records read")
CHECKED = re.compile(rb"\r\x1b\[K([\d.]+) (k?M?B) of ([\d.]+) (k?M?B) checked")
# A monotonic clock that runs 500 times too fast.
FAST = """
#define _GNU_SOURCE
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *out) {
    static long long first;
    int status = (int)syscall(SYS_clock_gettime, id, out);
    if (status != 0 || id != CLOCK_MONOTONIC) return status;
    long long now = out->tv_sec * 1000000000LL + out->tv_nsec;
    if (first == 0) first = now;
    now += (now - first) * 499;
    out->tv_sec = now / 1000000000, out->tv_nsec = now % 1000000000;
    return 0;
}
"""
UNITS = {b"B": 1, b"kB": 1e3, b"MB": 1e6}


def on_terminal(command, out=None):
    """Everything that a terminal receives on stderr, and on standard output if `out` is None."""
    master, slave = os.openpty()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=slave,
                             stdout=slave if out is None else out)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # the last writer has closed it
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    return child.wait(), seen


def hurried(store, verb, *more):
    """A verb over the store that seems to take minutes: its clock runs fast."""
    return ["env", f"LD_PRELOAD={store.parent / 'fast.so'}", CORDWOOD, verb, *more, store]


def of_a_copy(store, verb, *more):
    """What a terminal receives from a verb that changes the store."""
    copy = store.parent / verb
    shutil.copytree(store.parent / "to-archive", copy)
    code, seen = on_terminal(hurried(copy, verb, *more))
    shutil.rmtree(copy)
    return code, seen


def grep_command(store):
    return hurried(store, "grep", "-c", "line 17$")


def archives(store):
    code, seen = of_a_copy(store, "archive")
    found = [int(count) for count in SHOWN.findall(seen)]
    holds(code == 0 and found and found == sorted(found) and found[-1] <= LINES,
          f"{seen[-300:]!r}")
    holds(b"\r\x1b[K" in seen[seen.rfind(b" records read"):], f"{seen[-300:]!r}")


def uploads(store):
    code, seen = of_a_copy(store, "upload", "--to", "http://127.0.0.1:1")
    found = [int(count) for count in SHOWN.findall(seen)]
    holds(code == 5 and found and found == sorted(found) and found[-1] <= LINES,
          f"{code} {seen[-300:]!r}")
    holds(b"\r\x1b[K" in seen[seen.rfind(b" records read"):], f"{seen[-300:]!r}")


def counts(store):
    code, seen = on_terminal(grep_command(store), subprocess.DEVNULL)
    found = [int(count) for count in SHOWN.findall(seen)]
    holds(code == 0 and found and found == sorted(found), f"{seen[-300:]!r}")


def checked(store):
    size = sum(path.stat().st_size for path in (store / "archives").iterdir())
    code, seen = on_terminal(hurried(store, "verify"))
    found = [(float(done) * UNITS[unit], float(whole) * UNITS[of])
             for done, unit, whole, of in CHECKED.findall(seen)]
    done = [bytes_done for bytes_done, _ in found]
    holds(code == 0 and found and done == sorted(done) and 0 < done[-1] < 1.05 * size
          and all(0.99 * size < whole < 1.01 * size for _, whole in found),
          f"{size} {seen[-300:]!r}")
    holds(b"\r\x1b[K" in seen[seen.rfind(b" checked"):], f"{seen[-300:]!r}")


def line_goes(store):
    _, seen = on_terminal(grep_command(store), subprocess.DEVNULL)
    holds(b"\r\x1b[K" in seen[seen.rfind(b" records read"):], f"{seen[-300:]!r}")


def in_front_of_a_pipe(store):
    code, seen = on_terminal(grep_command(store), subprocess.PIPE)
    holds(code == 0 and not seen, f"{seen[-300:]!r}")


def in_a_pipe(store):
    done = subprocess.run(grep_command(store), check=True, capture_output=True)
    holds(not done.stderr, f"{done.stderr[-300:]!r}")


CASES = {
    "archive says how far it is": archives,
    "grep says how far it is": counts,
    "the line is taken away": line_goes,
    "upload says how far it archives": uploads,
    "verify says how far it is, and takes the line away": checked,
    "nothing in front of a pipe": in_front_of_a_pipe,
    "nothing in a pipe": in_a_pipe,
}


def main():
    table, run = cases.chosen(CASES, cases.parser().parse_args()), cases.Run()
    with cases.folder("progress") as folder:
        store = folder / "store"
        text = b"".join(b"line %d\n" % number for number in range(LINES))
        subprocess.run([CORDWOOD, "log", "--store", store, "--logger", "many"], input=text,
                       check=True)
        shutil.copytree(store, folder / "to-archive")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", folder / "fast.so"],
                       check=True, input=FAST, text=True)
        # Dense blocks would hold such lines in a few kB.
        subprocess.run([CORDWOOD, "archive", "--method", "plain", store], check=True,
                       stdout=subprocess.DEVNULL)
        run.all(table, lambda _, case: case(store))
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
