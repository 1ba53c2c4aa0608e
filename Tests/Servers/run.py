#!/usr/bin/env python3
"""Uploads to real servers on loopback, to a hostile one, and deaths between send and delete.

    run.py [--all] [-k WORD] [--part beside|alone] [--no-install] [--list] [--jobs N]

Each theme is a file with CASES; each case has a directory and processes of its own. Servers that
are missing are installed first (install.sh). A case that cannot run says why; where CI is set it
has failed."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import away  # noqa: E402
import consent  # noqa: E402
import door  # noqa: E402
import hostile  # noqa: E402
import lost  # noqa: E402
import real  # noqa: E402
import recipes  # noqa: E402
import s3  # noqa: E402
from frame import CORDWOOD, HERE, Failed, LeftOut, Place  # noqa: E402

THEMES = (real, door, recipes, s3, hostile, lost, consent, away)


def cases(arguments):
    for theme in THEMES:
        for name, case in theme.CASES.items():
            full = f"{theme.__name__}.{name}"
            part = "alone" if getattr(case, "is_alone", False) else "beside"
            if arguments.k in full and arguments.part in (None, part):
                yield full, case


def one(full, case, arguments, top):
    """(name, outcome, what there is to say, seconds)."""
    started = time.monotonic()
    place = Place(Path(top) / full, arguments.all, arguments.seed)
    try:
        case(place)
        outcome, text = "ok", ""
    except LeftOut as reason:
        outcome, text = "left out", str(reason)
    except Failed as reason:
        outcome, text = "FAIL", str(reason)
    except Exception:  # a case's own mistake fails it, not the others
        outcome, text = "FAIL", traceback.format_exc()
    finally:
        place.clean()
    return full, outcome, text, place.notes, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(prog="Tests/Servers/run.py")
    parser.add_argument("--all", action="store_true", help="more rounds, and what takes minutes")
    parser.add_argument("-k", default="", help="cases whose name holds this")
    parser.add_argument("--part", choices=("beside", "alone"),
                        help="only cases that run beside others, or only those that measure times")
    parser.add_argument("--no-install", action="store_true", help="what is missing stays missing")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(name for name, _ in cases(arguments)))
        return 0
    if not os.access(CORDWOOD, os.X_OK):
        print(f"{CORDWOOD} is not there: ./dev build")
        return 1
    if not arguments.no_install:
        subprocess.run([str(HERE / "install.sh")], check=True)

    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="cordwood-servers-") as top:
        Path(top).chmod(0o755)
        chosen = list(cases(arguments))
        # What measures times must not run beside others.
        alone = [entry for entry in chosen if getattr(entry[1], "is_alone", False)]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            jobs = [pool.submit(one, *entry, arguments, top) for entry in chosen
                    if entry not in alone]
            done = (job.result() for job in jobs)
            rest = (one(*entry, arguments, top) for entry in alone)
            for full, outcome, text, notes, seconds in (r for g in (done, rest) for r in g):
                is_bad = outcome == "FAIL" or (outcome == "left out" and "CI" in os.environ)
                passed, failed = passed + (outcome == "ok"), failed + is_bad
                print(f"{outcome:8} {full:44} {seconds:6.1f} s  {'; '.join(notes)}", flush=True)
                if text:
                    print(f"         {text}", flush=True)
                if outcome == "FAIL":
                    print(f"         again: Tests/Servers/run.py -k {full} --seed "
                          f"{arguments.seed}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
