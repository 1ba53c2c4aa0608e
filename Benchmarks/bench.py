#!/usr/bin/env python3
"""`./dev bench`: measures the append path, its peers, minutes at full rate, archiving and an idle
engine.

Counts gate: they do not depend on the machine. Times inform, and fail only beyond what noise
explains (thresholds.json). Figures of different machines cannot be compared."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import archive  # noqa: E402
import exchanges  # noqa: E402
import guests  # noqa: E402
import hot  # noqa: E402
import house as shared  # noqa: E402
import long  # noqa: E402
import peers  # noqa: E402
import plot  # noqa: E402
import read  # noqa: E402
import table  # noqa: E402
import upload  # noqa: E402
import whole  # noqa: E402

PARTS = """
  (none)     everything that is installed
  hot        the append path of ours: times, and the counts that gate
  peers      ours beside spdlog, glog and LTTng-UST, in turn; kill -9 of each
  python     Benchmarks/python_calls.py, with peers of PyPI
  swift      Benchmarks/swift
  sustained  10 M records back to back, read back and compared; archiving of typed records
  paced      a minute at 1 M records/s, writeback included, with and without tmpfs
  lasting    8 GB back to back, then a minute at 3 M/s: memory and the slowest second; needs 32 GB
             of disk
  archive    plain lines, beside zstd -3 and, in dense blocks, zstd -19; typed records of a service;
             instructions and memory of archiving
  whole      instructions and bytes of a record from its call to the archive, beside spdlog
  idle       memory and start of an engine
  http       a captured exchange of 2 KB
  read       verbs over a store of 10 M records (--quick 1 M), made once and kept
  upload     archives to an nginx that discards them, and to our collector
"""


def archives(house):
    """The repository's sample, and the files of --files."""
    found = [shared.ROOT / "examples/sample.log"]
    logs = house.files
    if logs and logs.is_dir():
        names = sorted(logs.glob("*.*"), key=lambda path: -path.stat().st_size)
        found += [path for path in names if path.suffix != ".md"][:1 if house.quick else None]
    rows = house.more["archive"] = [archive.measure(shared.CORDWOOD, path) for path in found]
    house.gate("archived sample, of zstd -3", rows[0]["of_zstd3"],
               house.limits["archive_of_zstd3_sample"])
    house.gate("the same in dense blocks", rows[0]["dense_of_zstd3"],
               house.limits["dense_of_zstd3_sample"])
    archive.gates(house, rows, found)


def forget(path):
    """Takes a file out of the page cache: just written, it lies there in large pieces, of which a
    fault maps more than it needs (tools/build.sh)."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def idle(house):
    library = shared.ROOT / "build/lib/libcordwood.so"
    # Of these, 32 KiB clear what archived records leave (docs/SECURITY.md, Leftovers of plaintext),
    # and 24 KiB keep a block's records as typed columns (FORMAT §11.4).
    house.gate("bytes of libcordwood.so", library.stat().st_size, house.limits["library_bytes"])
    forget(library)
    engine = house.program("idle", "idle.c", "-DENGINE", *shared.OURS)
    nothing = house.program("nothing", "idle.c")
    # One run's own memory is up to three pages more than another's.
    with_it = min((shared.last_json(shared.output(engine, house.where())) for _ in range(3)),
                  key=lambda run: run["own_kib"])
    without = shared.last_json(shared.output(nothing))
    over = with_it["resident_kib"] - without["resident_kib"]
    house.more["idle"] = {"resident_kib_over_nothing": over, "open_ms": with_it["open_ms"]}
    # Pages of files are left to the kernel: it maps all cached ones around a touched one.
    house.gate("KiB of its own of an idle engine over nothing",
               with_it["own_kib"] - without["own_kib"], house.limits["idle_own_kib_over_nothing"])
    house.gate("times a second that the threads of an idle engine wake", with_it["wakes_s"],
               house.limits["wakes_s"]["idle"])
    short(house)


def short(house):
    """A program that opens, writes one record and closes: the threads that it starts, and its
    system calls beyond those of a program that does nothing."""
    if shutil.which("strace") is None:
        house.note("no strace: the calls of a short program are not counted")
        return
    engine = house.program("short", "idle.c", "-DENGINE", "-DSHORT", *shared.OURS)
    nothing = house.program("short-nothing", "idle.c", "-DSHORT", *shared.OURS)
    # On a busy machine, the supply thread does a round of 24 calls before the program closes.
    with_it = min((traced(house, engine, house.where()) for _ in range(3)), key=len)
    without = traced(house, nothing)
    figures = {"system_calls": len(with_it) - len(without),
               "threads": sum(" clone" in line for line in with_it)}
    house.more["short"] = figures
    for what, figure in figures.items():
        house.gate(f"{what.replace('_', ' ')} of a program that opens, logs once and closes",
                   figure, house.limits["short_program"][what])


def traced(house, *command):
    """A line for each system call of the program's threads."""
    trace = house.folder / "trace"
    subprocess.run(["strace", "-f", "-qq", "-o", str(trace), *map(str, command)], check=True)
    return [line for line in trace.read_text().splitlines()
            if " resumed>" not in line and "+++ exited" not in line]


def measure(house, part, seconds):
    everything = part is None
    if everything or part == "hot":
        hot.measure(house)
    if everything or part == "idle":
        idle(house)
    if everything or part == "archive":
        archives(house)
    if everything or part == "whole":
        whole.measure(house)
    if part == "peers" or (everything and not house.quick):
        peers.measure(house)
    if everything or part == "sustained":
        long.sustained(house)
    if part == "lasting":
        long.lasting(house, seconds)
    if part == "paced" or (everything and not house.quick):
        long.paced(house, seconds)
    if part == "python" or (everything and not house.quick):
        guests.python(house, install=part == "python")
    if everything or part == "swift":
        guests.swift(house)
    if everything or part == "http":
        exchanges.measure(house)
    if part == "read":
        read.measure(house)
    if part == "upload":
        upload.measure(house)


def collected(house, machine):
    more = dict(house.more)
    return {"machine": machine, "versions": shared.versions(), "quick": house.quick,
            "targets": house.limits["targets"], "notes": house.notes, "gates": house.gates,
            "figures": house.rows, "archive": more.pop("archive", None),
            "idle": more.pop("idle", None),
            "upload": more.pop("upload", None), "more": more}


def main():
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=f"What:{PARTS}",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", metavar="what", choices=[
        "hot", "peers", "python", "swift", "sustained", "paced", "lasting", "archive", "whole",
        "idle", "http", "read", "upload"])
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument("--seconds", type=int, help="of each paced run (60; with --quick 5)")
    parser.add_argument("--files", type=Path, metavar="DIR", help="further log files to archive",
                        default=shared.ROOT.parent / "shared/data/logs")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="FILE.svg")
    arguments = parser.parse_args()
    # A run ended from outside also removes its stores and ends LTTng's daemons.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    house = shared.House(arguments.quick)
    house.files = arguments.files
    try:
        machine = shared.machine(house.folder)
        measure(house, arguments.part, arguments.seconds or house.few(5, 60))
    finally:
        house.close()
    data = collected(house, machine)
    print(table.text(data))
    print()
    for gate in house.gates:
        print(f"{'ok   ' if gate['good'] else 'FAIL '} {gate['name']}: {gate['figure']} "
              f"(at most {gate['limit']})")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n",
                                        encoding="utf-8")
    picture = plot.svg(data) if arguments.plot else None
    if picture:
        Path(arguments.plot).write_text(picture, encoding="utf-8")
    elif arguments.plot:
        print("nothing to plot: no single calls were measured")
    failed = sum(not gate["good"] for gate in house.gates)
    print(f"{len(house.gates) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
