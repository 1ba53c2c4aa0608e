#!/usr/bin/env python3
"""Disks that are full, slow, failing, cut or gone, retention, clocks that jump, with a host in C
that counts what the engine returned:

    run.py [--size S] [--seed N] [--part disks|clocks] [-k PATTERN …] [CASE …]

The last line counts. Cases that the system does not allow are named and not counted."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

import capture  # noqa: E402
import cases  # noqa: E402
import clocks  # noqa: E402
import draining  # noqa: E402
import faults  # noqa: E402
import full  # noqa: E402
import listings  # noqa: E402
import places  # noqa: E402
import retention  # noqa: E402
from harness import Place, build  # noqa: E402
from settings import forget_settings  # noqa: E402

# Clock cases fill no disk and time nothing: they may run beside others.
PARTS = {"disks": {**full.CASES, **draining.CASES, **capture.CASES, **faults.CASES,
                   **listings.CASES, **places.CASES, **retention.CASES},
         "clocks": {**clocks.CASES, **retention.CLOCKS}}
CASES = {**PARTS["disks"], **PARTS["clocks"]}


def main():
    parser = cases.parser()
    parser.add_argument("--part", choices=PARTS)
    arguments = parser.parse_args()
    table = cases.chosen(PARTS.get(arguments.part, CASES), arguments)
    forget_settings("CORDWOOD_LIBRARY", "CORDWOOD_TOOL")
    run = cases.Run()
    with cases.folder("disk") as directory:
        programs = build(directory)

        def one(name, case):
            work = directory / name
            work.mkdir()
            place = Place(work, programs, arguments.seed)
            try:
                case(place)
                return "; ".join(place.notes)
            finally:
                place.clean()
        run.all(table, one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
