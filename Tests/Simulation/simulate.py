#!/usr/bin/env python3
"""The simulated disk: power cuts by seed, on a disk that knows what was synced and omits, or tears,
any part of the rest (docs/TESTING.md).

    simulate.py [--seeds N] [--seed S] [--jobs J]
    simulate.py --replay TRACE [--keep]

First the simulator itself is tested: a disk that lies about a kind of sync must be detected. Then
come the seeds of seeds.txt, then N others. A failure leaves its trace in build/simulation and
prints the command that makes the same disk again."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "TestSupport"))

import cases  # noqa: E402

SAVED = ROOT / "build/simulation"
PARTS = ("sim.c", "disk.c", "trace.c", "host.c", "server.c", "cut.c", "judge.c")
LIES = ("archives", "lanes", "journal", "part", "store")
BATCH = 200  # seeds per process
LIE_SEEDS = 2000  # at most, until a lie is detected
SECONDS_MAX = 900  # of a process
TOTALS = re.compile(r"^(\d+) lives, (\d+) cuts; records read: (\d+) verified, (\d+) unverified, "
                    r"(\d+) torn and marked, (\d+) removed and back; (\d+) damaged places$", re.M)
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)


def build(folder):
    library = Path(os.environ.get("CORDWOOD_LIBRARY", ROOT / "build/lib/libcordwood.so")).parent
    program = folder / "sim"
    # Exported, so that the library calls this open and fsync, not libc's.
    subprocess.run(["cc", "-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror",
                    f"-I{ROOT}/include", *[str(HERE / part) for part in PARTS],
                    "-rdynamic", "-o", str(program), f"-L{library}", "-lcordwood", "-lpthread",
                    "-ldl", f"-Wl,-rpath,{library}"], check=True)
    return program


def scratch():
    """In memory if there is room: nothing is really synced, and nothing needs to persist."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    return tempfile.TemporaryDirectory(dir=memory if usable else None, prefix="cordwood-sim-")


class Runs:
    """Seeds in batches, on a few processes at once."""

    def __init__(self, program, folder, jobs):
        self.program, self.folder, self.jobs = program, folder, jobs
        self.lock = threading.Lock()
        self.passed = self.failed = 0
        self.totals = [0] * 7
        self.started = time.monotonic()
        self.wanted = 0

    def one(self, name, *arguments):
        """(output, exit code) of one process."""
        work = self.folder / name
        work.mkdir()
        SAVED.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(
                [self.program, "--work", work, "--save", SAVED, *map(str, arguments)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False)
            output, code = done.stdout.decode(errors="replace"), done.returncode
        except subprocess.TimeoutExpired as late:
            output, code = (late.stdout or b"").decode(errors="replace"), "it hangs"
        shutil.rmtree(work, ignore_errors=True)
        return output, code

    def batch(self, first, count):
        output, code = self.one(f"seeds-{first}", "--first", first, "--count", count)
        found = COUNTS.search(output)
        with self.lock:
            if found:
                good, bad = map(int, found.groups())
            else:
                # It died in one seed: those before it passed.
                last = [int(n) for n in re.findall(r"^seed (\d+)$", output, re.M)]
                good, bad = (last[-1] + 1 - first if last else 0), 1
                print(f"\nFAIL seeds {first + good} to {first + count - 1}: the process ended: "
                      f"{code}\n{output[-1500:]}\n  again: ./dev sim --seed {first + good}")
            self.passed, self.failed = self.passed + good, self.failed + bad
            for line in re.findall(r"^FAIL.*(?:\n  again.*)?", output, re.M):
                print("\n" + line)
            if TOTALS.search(output):
                self.totals = [a + int(b) for a, b in
                               zip(self.totals, TOTALS.search(output).groups())]
            self.progress()

    def progress(self):
        seconds = time.monotonic() - self.started
        done = self.passed + self.failed
        end = "\n" if not sys.stdout.isatty() else ""
        if sys.stdout.isatty() or done >= self.wanted:
            print(f"\r{done} of {self.wanted} seeds, {self.failed} failed, "
                  f"{done / max(seconds, 0.1):.0f} a second", end=end, flush=True)

    def seeds(self, parts):
        """parts: (first, count) each."""
        waiting = list(parts)
        self.wanted += sum(count for _, count in waiting)

        def serve():
            while True:
                with self.lock:
                    if not waiting:
                        return
                    part = waiting.pop(0)
                self.batch(*part)

        threads = [threading.Thread(target=serve) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def lie(self, name):
        """A disk that lies must be detected."""
        output, code = self.one(f"lie-{name}", "--lie", name, "--count", LIE_SEEDS)
        found = re.search(r"^FAIL seed (\d+): (.*)$", output, re.M)
        for trace in re.findall(r"again: ./dev sim --replay (\S+)", output):
            Path(trace).unlink(missing_ok=True)
        if code == 1 and found:
            self.passed += 1
            print(f"a disk that lies about syncs ({name}): found by seed {found[1]}: {found[2]}")
        else:
            self.failed += 1
            print(f"FAIL a disk that lies about syncs ({name}) was not found out: {code}\n"
                  f"{output[-1500:]}")


def kept_seeds():
    lines = (HERE / "seeds.txt").read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def parse():
    parser = argparse.ArgumentParser(prog="./dev sim", description="power cuts by seed")
    parser.add_argument("--seeds", type=int, help="how many (100, 400 or 4000, by TEST_SIZE)")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--from", type=int, default=cases.seed(), dest="first",
                        help="the first seed (%(default)s)")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--replay", help="a trace that a failure left")
    parser.add_argument("--keep", action="store_true", help="with --replay: leave the disk")
    return parser.parse_args()


def main():
    arguments = parse()
    with scratch() as top:
        folder = Path(top)
        runs = Runs(build(folder), folder, arguments.jobs)
        if arguments.replay:
            work = SAVED / "replay" if arguments.keep else folder / "replay"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            keep = ["--keep"] if arguments.keep else []
            command = [runs.program, "--work", work, "--replay", arguments.replay, *keep]
            return subprocess.run(command, check=False).returncode
        if arguments.seed is not None:
            runs.seeds([(arguments.seed, 1)])
        else:
            count = arguments.seeds or cases.sized(100, 400, 4000)
            for name in LIES:
                runs.lie(name)
            batch = max(20, min(BATCH, count // arguments.jobs // 20 * 20))
            kept = [(seed, 1) for seed in kept_seeds()]
            end = arguments.first + count
            runs.seeds(kept + [(first, min(batch, end - first))
                               for first in range(arguments.first, end, batch)])
    names = ("lives", "cuts", "records verified", "unverified", "torn and marked",
             "removed and back", "damaged places")
    print(", ".join(f"{count} {name}" for count, name in zip(runs.totals, names)))
    print(f"{runs.passed} passed, {runs.failed} failed")
    return 1 if runs.failed else 0


if __name__ == "__main__":
    sys.exit(main())
