"""A Python host of Cordwood: logs every line of a file as one record, from several threads.

    python3 main.py STORE INPUT_FILE [--threads N] [--repeat R] [--kept FILE] [--progress]

Like examples/c/main.c: lines are dealt to the threads; --kept names a file of one u64 per
thread, raised after each call that kept its record. The file survives `kill -9`, as records do.
"""
import argparse
import json
import mmap
import sys
import threading
import time
from typing import List, Optional

import cordwood

FIELD_EVERY = 4


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Logs every line of a file as one record.")
    parser.add_argument("store")
    parser.add_argument("input")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--kept", help="file of one u64 per thread: how many lines it has kept")
    parser.add_argument("--progress", action="store_true")
    return parser.parse_args()


def read_lines(path: str) -> List[bytes]:
    """Lines without their newline; every other byte stays as it is."""
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    return lines if lines[-1] else lines[:-1]


def map_counters(path: Optional[str], threads: int) -> "memoryview[int]":
    """One counter per thread, in the file if one is named; the kernel keeps it."""
    size = threads * 8
    if path is None:
        return memoryview(mmap.mmap(-1, size)).cast("Q")
    with open(path, "w+b") as file:
        file.truncate(size)
        return memoryview(mmap.mmap(file.fileno(), size)).cast("Q")


def write_lines(log: cordwood.Logger, lines: List[bytes], first: int,
                given: argparse.Namespace, kept: "memoryview[int]") -> None:
    """One thread's lines. Stops at a refused record, so that the counter counts a prefix."""
    for _ in range(given.repeat):
        for index in range(first, len(lines), given.threads):
            number = index + 1
            done = (log.info(lines[index], line=number) if number % FIELD_EVERY == 0
                    else log.write("info", lines[index]))
            if not done:
                return
            kept[first] += 1


def main() -> int:
    """Runs the host; returns 1 if a record was refused."""
    given = parse()
    lines = read_lines(given.input)
    kept = map_counters(given.kept, given.threads)
    with cordwood.open(given.store) as engine:
        log = engine.logger("demo.python")
        begin = time.perf_counter_ns()
        threads = [threading.Thread(target=write_lines, args=(log, lines, first, given, kept))
                   for first in range(given.threads)]
        for thread in threads:
            thread.start()
        while given.progress and any(thread.is_alive() for thread in threads):
            print(f"\r{sum(kept)}", end="", file=sys.stderr)
            time.sleep(0.2)
        for thread in threads:
            thread.join()
        elapsed = time.perf_counter_ns() - begin
    total = sum(kept)
    # The time of one call, as its thread sees it.
    per_record = elapsed * given.threads / total if total else 0
    print(json.dumps({"host": "python", "kept": total, "ns_per_record": round(per_record, 1)}))
    return 0 if total == len(lines) * given.repeat else 1


if __name__ == "__main__":
    sys.exit(main())
