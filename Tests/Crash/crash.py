#!/usr/bin/env python3
"""Kills an eight-thread writer at random moments and reads its store, first as it lies and again
after `cordwood archive` adopted it: every record whose call had returned must be there, whole,
once, in its thread's order. There is a writer in C and one in Swift.

    crash.py [--kills N] [--seed S] [--host c,swift] [--all]

A failure prints the seed that makes the same run again, as far as the kernel allows."""

import argparse
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "Oracle"))

from compare import compare  # noqa: E402

CORDWOOD = str(ROOT / "build/bin/cordwood")
THREADS, LONGEST = 8, 3000
LETTERS = "".join(chr(ord("a") + index % 26) for index in range(LONGEST + 26))
SEGMENTS = (64 << 10, 1 << 20, 16 << 20)
# Above that many records the slow oracle looks at a run only with --all.
ORACLE_RECORDS = 60_000


class Failed(Exception):
    pass


def message(seed, thread, number):
    length = 20 + (number * 7919 + thread * 104729 + seed) % 180
    if number % 997 == 996:
        length = LONGEST
    start = number % 26
    return f"t{thread} n{number} {LETTERS[start:start + length]}"


def build(folder):
    program = str(folder / "writer")
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror",
                    f"-I{ROOT}/include", str(HERE / "writer.c"), f"-L{ROOT}/build/lib",
                    "-lcordwood", "-lpthread", f"-Wl,-rpath,{ROOT}/build/lib", "-o", program],
                   check=True)
    return program


def build_swift():
    """In a scratch folder of its own: SwiftPM may take what another package planned there for its
    plan, and build nothing."""
    command = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--package-path",
               str(HERE / "swift-writer"), "--scratch-path", str(ROOT / "build/crash-swift")]
    subprocess.run(command, check=True, stdout=sys.stderr)
    folder = subprocess.run([*command, "--show-bin-path"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip()
    return f"{folder}/Writer"


def check_values(program, folder):
    """All kinds of arguments, as the tool and the oracle read them: live, dead and archived."""
    for ending in ([], ["close"]):
        store = str(folder / ("values" + "".join(ending)))
        subprocess.run([program, store, "values", *ending], check=True)
        if check_oracle(store) < 10_000:
            raise Failed("values: records are missing")
        run("archive", store)
        check_oracle(store)
    store = str(folder / "places")
    subprocess.run([program, store, "places"], check=True)
    if check_oracle(store) < 133_000:
        raise Failed("places: records are missing")


def counters(path):
    words = struct.unpack("<512Q", path.read_bytes().ljust(4096, b"\0"))
    return [words[thread * 8] for thread in range(THREADS)]


def write_and_kill(program, store, kept, segment_bytes, seed, target):
    # Every fourth writer finds no fallocate(2): what it keeps is written, not mapped.
    written = ["written"] if seed % 4 == 0 and program.endswith("writer") else []
    child = subprocess.Popen(
        [program, store, str(kept), str(segment_bytes), str(seed), *written])
    try:
        while not kept.exists() or sum(counters(kept)) < target:
            if child.poll() is not None:
                raise Failed(f"the writer ended by itself: {child.returncode}")
            time.sleep(0.0005)  # a poll, not a wait: the target decides the moment
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    return counters(kept)


def run(*arguments, codes=(0,)):
    done = subprocess.run([CORDWOOD, *arguments], stdout=subprocess.PIPE, check=False)
    if done.returncode not in codes:
        raise Failed(f"cordwood {' '.join(arguments)} ended {done.returncode}")
    return done.stdout


def check_records(store, seed, kept):
    """Every kept record, whole, once, in order; beyond that at most the one under way."""
    found = [0] * THREADS
    for line in run("cat", "--json", store).splitlines():
        record = json.loads(line)
        if record["logger"] != "crash":
            continue
        thread = int(record["message"][1])
        number = found[thread]
        if record["message"] != message(seed, thread, number):
            raise Failed(f"thread {thread}: expected record {number}, found "
                         f"{record['message'][:60]!r}")
        found[thread] = number + 1
    for thread in range(THREADS):
        if not kept[thread] <= found[thread] <= kept[thread] + 1:
            raise Failed(f"thread {thread}: {kept[thread]} kept, {found[thread]} read")
    return sum(found)


def check_oracle(store):
    count, differences = compare(store, CORDWOOD)
    if differences:
        raise Failed("the oracle disagrees: " + differences[0][:2000])
    return count


def one_kill(program, folder, seed, everything):
    chance = random.Random(seed)
    segment_bytes = SEGMENTS[seed % len(SEGMENTS)]
    target = int(10 ** chance.uniform(0, 5.3))
    store, counts = str(folder / "store"), folder / "kept"
    kept = write_and_kill(program, store, counts, segment_bytes, seed, target)

    live = check_records(store, seed, kept)
    oracle = everything or live <= ORACLE_RECORDS
    if oracle:
        check_oracle(store)
    text = run("verify", store).decode()
    if "unclean" not in text:
        raise Failed("verify does not say that the stop was unclean")

    run("archive", store)
    left = [path.name for path in Path(store).rglob("*") if path.suffix in (".seg", ".sealed")]
    if left:
        raise Failed(f"left after archive: {left[:3]}")
    if check_records(store, seed, kept) != live:
        raise Failed("the archive has not as many records as the dead lane had")
    if oracle:
        check_oracle(store)
    return live, oracle


def kill_host(host, arguments):
    """(passed, failed) of one writer."""
    kills = 200 if arguments.all else arguments.kills
    passed, failed, records = 0, 0, 0
    with tempfile.TemporaryDirectory() as top:
        program = build(Path(top)) if host == "c" else build_swift()
        if host == "swift":
            try:
                check_values(program, Path(top))
                passed += 1
            except Failed as reason:
                failed += 1
                print(f"FAIL values: {reason}")
        for index in range(kills):
            seed = arguments.seed + index
            with tempfile.TemporaryDirectory(dir=top) as folder:
                try:
                    count, _ = one_kill(program, Path(folder), seed, arguments.all)
                    records += count
                    passed += 1
                except Failed as reason:
                    failed += 1
                    print(f"FAIL seed {seed}: {reason}\n  again: {os.path.relpath(__file__)} "
                          f"--kills 1 --seed {seed} --host {host}")
    print(f"{records} records kept through {kills} kills of the writer in {host}")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="kill -9 under eight writing threads")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--host", default="c,swift", help="the writers")
    parser.add_argument("--all", action="store_true", help="200 kills, the oracle reads them all")
    arguments = parser.parse_args()
    passed = failed = 0
    for host in arguments.host.split(","):
        good, bad = kill_host(host, arguments)
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
