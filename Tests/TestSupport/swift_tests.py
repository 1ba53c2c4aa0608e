#!/usr/bin/env python3
"""Runs the Swift tests: each test module is a process of its own, several beside each other, for
many tests wait. Selection, lines, counts and XML are those of every runner (cases.py).

    swift_tests.py [-k PATTERN …] [--list] [--jobs N] [MODULE.CLASS/TEST …]

It builds what is out of date, unless `./dev test` has done so (TEST_SWIFT_TESTS=made). `swift test`
runs the same tests in one process."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases  # noqa: E402
from cases import FAILED, OK, SKIPPED, Outcome  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ["tools/swiftpm.sh", "tests", "build", "--build-tests"]
BUNDLE = ROOT / ".build-tests/debug/cordwoodPackageTests.xctest"
LINE = re.compile(r"Test Case '([^']+)' (?:(started).*|(passed|failed|skipped) "
                  r"\(([\d.]+) seconds\))")
RESULTS = {"passed": OK, "failed": FAILED, "skipped": SKIPPED}
# Of CordwoodTestSupport/TestSize.swift: not a case of this size.
NOT_HERE = "not in the core"
TEXT_MAX = 20_000  # of what a test printed
JOBS = 4
MODULE_S = 3000  # within which a module's tests end; a suite has an hour


def build():
    subprocess.run(BUILD, cwd=ROOT, check=True, stdout=sys.stderr)


def names():
    """Of every test: MODULE.CLASS/TEST."""
    listed = subprocess.run([BUNDLE, "--list-tests"], check=True, stdout=subprocess.PIPE, text=True)
    return re.findall(r"^(\w+\.\w+/\w+)$", listed.stdout, re.M)


def read(text, module):
    """What XCTest says about each test. One that began but did not end has failed: the process
    died in it."""
    found, begun = [], None
    for line in LINE.finditer(text):
        full, started, result, seconds = line.groups()
        group, _, name = f"{module}.{full}".rpartition(".")
        if started:
            begun = (name, group, line.end())
        else:
            said = text[begun[2]:line.start()].strip() if begun and result != "passed" else ""
            found.append(Outcome(name, RESULTS[result], float(seconds), said, group))
            begun = None
    if begun:
        name, group, start = begun
        found.append(Outcome(name, FAILED, 0.0, text[start:][-TEXT_MAX:].strip(), group))
    return found


def run(tests):
    """The outcomes of these tests of a module. If the process dies in one, or is killed because it
    does not end, another process runs those that are left."""
    module = tests[0].partition(".")[0]
    found, left = [], list(tests)
    while left:
        try:
            done = subprocess.run([BUNDLE, ",".join(left)], cwd=ROOT, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                  timeout=MODULE_S)
            out, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            out, code = late.stdout or b"", f"none within {MODULE_S} s"
        text = out.decode(errors="replace")
        told = read(text, module)
        ran = {f"{outcome.group}/{outcome.name}" for outcome in told}
        rest = [test for test in left if test not in ran]
        found += told
        if code == 0 and rest or len(rest) == len(left):
            found.append(Outcome(rest[0], FAILED, 0.0, f"{len(rest)} tests did not run, exit "
                                 f"{code}\n{text[-TEXT_MAX:]}"))
            break
        if code != 0 and not any(outcome.result == FAILED for outcome in told):
            found.append(Outcome(module, FAILED, 0.0, f"exit {code} after the last test\n"
                                 f"{text[-TEXT_MAX:]}"))
        left = rest
    return [outcome for outcome in found
            if outcome.result != SKIPPED or NOT_HERE not in outcome.text]


def again(full):
    """The command that repeats a test. full: MODULE.CLASS.TEST"""
    return cases.repeating()("/".join(full.rsplit(".", 1)))


def main():
    parser = cases.parser("swift_tests.py")
    parser.add_argument("--jobs", type=int, default=JOBS, help="modules at a time (%(default)s)")
    arguments = parser.parse_args()
    if os.environ.get("TEST_SWIFT_TESTS") != "made":
        build()
    modules = {}
    for name in cases.chosen(dict.fromkeys(names()), arguments):
        modules.setdefault(name.partition(".")[0], []).append(name)
    run_ = cases.Run(again)
    with ThreadPoolExecutor(arguments.jobs) as pool:  # the largest first
        for outcomes in pool.map(run, sorted(modules.values(), key=len, reverse=True)):
            for outcome in outcomes:
                run_.add(outcome)
    return run_.end()


if __name__ == "__main__":
    sys.exit(main())
