"""A program that writes at a steady rate (steady.c), and the cost for its thread with and without a
reader of its store."""

import contextlib
import re
import shutil
import subprocess
from pathlib import Path

from cases import Skipped, equal, holds
from serving import BUILD, ROOT, environment

PER_SECOND = 5_000


class Steady:
    """Has written a record, and writes `count` more when told to begin."""

    def __init__(self, folder, store, count, *under):
        program = folder / "steady"
        if not program.exists():
            subprocess.run(
                ["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include",
                 ROOT / "Tests/Viewer/steady.c", "-o", program, "-L", BUILD / "lib", "-lcordwood",
                 f"-Wl,-rpath,{BUILD / 'lib'}"], check=True)
        self.process = subprocess.Popen(
            [*map(str, under), program, store, str(count), str(PER_SECOND)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment())
        equal("the writer", self.process.stdout.readline(), "ready\n")

    def begin(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        """Returns its thread's page faults, and the thread's id."""
        text, _ = self.process.communicate()
        equal("the writer ended", self.process.returncode, 0)
        return tuple(map(int, text.split()))


def costs(folder, beside, count=2 * PER_SECOND):
    """Page faults, system calls and instructions of the thread that writes that many records.
    `beside(store)` is a context, such as a reader."""
    for tool in ("strace", "valgrind"):
        if not shutil.which(tool):
            raise Skipped(f"needs {tool}")
    work = folder / "costs"
    found = []
    for under in (["strace", "-ff", "-o", work / "calls"],
                  ["valgrind", "--tool=callgrind", "--toggle-collect=burst",
                   "--separate-threads=yes", f"--callgrind-out-file={work / 'callgrind'}"]):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        writer = Steady(folder, work / "store", count, *under)
        with beside(work / "store"):
            writer.begin()
            faults, thread = writer.end()
        if under[0] == "strace":
            found = [faults, (work / f"calls.{thread}").read_text().count("\n")]
        else:
            found.append(sum(int(re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE)[1])
                             for path in Path(work).glob("callgrind-*")))
    shutil.rmtree(work)
    return found


def equal_costs(folder, reader, count=2 * PER_SECOND):
    """A writer's cost per record is the same with a reader. Returns the figures."""
    alone = costs(folder, lambda _: contextlib.nullcontext(), count)
    read = costs(folder, reader, count)
    for what, before, after, more in zip(
            ("page faults", "system calls", "instructions"), alone, read, (20, 20, alone[2] // 50)):
        holds(abs(after - before) <= more, f"{after} {what} with a reader, {before} without")
    return (f"{read[2] / count:.2f} instructions a record, {alone[2] / count:.2f} without a reader;"
            f" {read[1]} and {alone[1]} system calls, {read[0]} and {alone[0]} faults in {count}")
