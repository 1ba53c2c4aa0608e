#!/usr/bin/env python3
"""Disks that are full, slow, failing, cut or gone, retention, clocks that jump, around a host in
C that counts what it was told: `run.py [--all] [--seed N] [--part disks|clocks] [CASE …]`. The last
line counts; what the system does not allow is named and not counted."""

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

import capture  # noqa: E402
import clocks  # noqa: E402
import faults  # noqa: E402
import listings  # noqa: E402
import places  # noqa: E402
import retention  # noqa: E402
import space  # noqa: E402
from harness import Failed, Place, Skipped, build  # noqa: E402
from settings import forget_settings  # noqa: E402

# Clocks fill no disk and time nothing: they may run beside others.
PARTS = {"disks": {**space.CASES, **capture.CASES, **faults.CASES, **listings.CASES,
                   **places.CASES, **retention.CASES},
         "clocks": {**clocks.CASES, **retention.CLOCKS}}
CASES = {**PARTS["disks"], **PARTS["clocks"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="more rounds")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    arguments = parser.parse_args()
    forget_settings("CORDWOOD_LIBRARY", "CORDWOOD_TOOL")
    directory = Path(tempfile.mkdtemp(prefix="cordwood-disk-"))
    passed = failed = skipped = 0
    try:
        programs = build(directory)
        for name, case in PARTS.get(arguments.part, CASES).items():
            if arguments.cases and name not in arguments.cases:
                continue
            seed = arguments.seed or int.from_bytes(os.urandom(3), "little")
            work = directory / name
            work.mkdir()
            place = Place(work, programs, arguments.all, seed)
            started = time.monotonic()
            try:
                case(place)
                passed += 1
                print(f"{name}: {time.monotonic() - started:.1f} s  {'; '.join(place.notes)}",
                      flush=True)
            except Skipped as why:
                skipped += 1
                print(f"{name}: SKIPPED, {why}", flush=True)
            except Exception as why:  # a broken promise, or a harness that met the unexpected
                failed += 1
                if not isinstance(why, Failed):
                    traceback.print_exc()
                print(f"{name}: FAILED, {why}\n  again: Tests/Disk/run.py --seed {seed} {name}",
                      flush=True)
            finally:
                place.clean()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
