#!/usr/bin/env python3
"""Uploads to real servers on loopback, to a hostile one, and deaths between send and delete.

    run.py [--size S] [--part beside|alone] [--no-install] [--jobs N] [--list] [-k PATTERN …]
           [CASE …]

Each theme is a file with CASES. Each case has its own directory and processes. Missing servers are
installed first (install.sh). A case that cannot run says why. If CI is set it fails instead."""

import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent),
                str(Path(__file__).resolve().parent.parent / "TestSupport")]

import away  # noqa: E402
import cases  # noqa: E402
import consent  # noqa: E402
import door  # noqa: E402
import hostile  # noqa: E402
import lost  # noqa: E402
import real  # noqa: E402
import recipes  # noqa: E402
import s3  # noqa: E402
from frame import CORDWOOD, HERE, Place  # noqa: E402

THEMES = (real, door, recipes, s3, hostile, lost, consent, away)


def is_alone(case):
    """True if it measures times, and must not run beside others."""
    return getattr(case, "is_alone", False)


def main():
    parser = cases.parser()
    parser.add_argument("--part", choices=("beside", "alone"),
                        help="only cases that run beside others, or only those that measure times")
    parser.add_argument("--no-install", action="store_true", help="what is missing stays missing")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    arguments = parser.parse_args()
    table = {f"{theme.__name__}.{name}": case for theme in THEMES
             for name, case in theme.CASES.items()
             if arguments.part in (None, "alone" if is_alone(case) else "beside")}
    table = cases.chosen(table, arguments)
    if not os.access(CORDWOOD, os.X_OK):
        print(f"{CORDWOOD} is not there: ./dev build")
        return 1
    if not arguments.no_install:
        subprocess.run([str(HERE / "install.sh"), sys.executable], check=True)
    run = cases.Run(is_strict="CI" in os.environ)
    with cases.folder("servers") as top:
        def one(name, case):
            place = Place(top / name, arguments.seed)
            try:
                case(place)
                return "; ".join(place.notes)
            finally:
                place.clean()
        run.all({name: case for name, case in table.items() if not is_alone(case)}, one,
                arguments.jobs)
        run.all({name: case for name, case in table.items() if is_alone(case)}, one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
