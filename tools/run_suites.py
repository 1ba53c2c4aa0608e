#!/usr/bin/env python3
"""`./dev test`: runs every suite, reads the counts it prints, and sums them into one last line.

A suite is a command; its counts are the last `N passed, N failed`, `Ran N tests` or `Executed N
tests` it prints. A suite that fails without naming a failed test counts as one failure."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build/test-logs"
OURS = re.compile(r"(\d+) passed, (\d+) failed")
UNITTEST = re.compile(r"Ran (\d+) tests?")
UNITTEST_BAD = re.compile(r"FAILED \((.*)\)")
XCTEST = re.compile(r"Executed (\d+) tests?, with (?:\d+ tests? skipped and )?(\d+) failures?")


class Suite:
    def __init__(self, name, *command, heavy=False, needs=None):
        self.name, self.command, self.heavy = name, command, heavy
        self.needs = ROOT / needs if needs else None


def suites(everything):
    python = sys.executable
    flags = ["--all"] if everything else []
    return [
        Suite("swift", "swift", "test", needs="Tests"),
        Suite("oracle", python, "Tests/Oracle/test_oracle.py"),
        Suite("model", python, "Tests/Model/run.py", *flags),
        Suite("c-abi", python, "Tests/ABI/run.py", *flags, needs="Tests/ABI/run.py"),
        Suite("python", python, "bindings/python/tests/run.py"),
        Suite("python-speed", python, "bindings/python/tests/run.py", "--accelerated"),
        Suite("consumers", "Tests/Consumers/run.sh", needs="Tests/Consumers/run.sh"),
        Suite("readme", python, "tools/check_readme.py"),
        Suite("age", python, "Tests/Age/age.py", *flags),
        Suite("round-trip", python, "Tests/CLI/round_trip.py", *flags),
        Suite("behaviour", python, "Tests/Behaviour/run.py"),
        Suite("transport", python, "Tests/Transport/run.py"),
        Suite("crash", python, "Tests/Crash/crash.py", "--values", "--deaths",
              *(["--kills", "200", "--all"] if everything else [])),
        Suite("crash-points", python, "Tests/Crash/crash.py", "--points",
              *([] if everything else ["--sample", "80"])),
        Suite("fuzz", python, "Tests/Fuzz/run.py", *flags),
        Suite("hostile", python, "Tests/Hostile/hostile.py", *flags),
        Suite("disk", python, "Tests/Disk/run.py", *flags),
        Suite("simulation", python, "Tests/Simulation/simulate.py", *flags),
        Suite("processes", python, "Tests/Processes/run.py", *flags),
        Suite("signals", python, "Tests/Signals/run.py"),
        # The sanitizers build the whole library once more each.
        Suite("sanitizers", python, "Tests/Sanitizers/run.py",
              *([] if everything else ["undefined", "valgrind"])),
        Suite("otlp", python, "Tests/OTLP/run.py"),
        Suite("servers", python, "Tests/Servers/run.py", *flags),
        Suite("bench", python, "Benchmarks/test_bench.py"),
        Suite("demo", python, "tools/demo.py", "--built", heavy=True),
    ]


def counts(text, code):
    """(passed, failed) of what a suite printed."""
    found = OURS.findall(text)
    if found:
        passed, failed = map(int, found[-1])
    elif XCTEST.search(text):
        total, failed = map(int, XCTEST.findall(text)[-1])
        passed = total - min(failed, total)
    elif UNITTEST.search(text):
        total = sum(map(int, UNITTEST.findall(text)))
        bad = UNITTEST_BAD.search(text)
        failed = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", bad[1]))) if bad else 0
        passed = total - failed
    else:
        passed, failed = (1, 0) if code == 0 else (0, 1)
    if code != 0 and failed == 0:
        failed = 1
    return passed, failed


def run(suite, everything):
    # glibc overwrites what is freed, so that no test passes by luck on memory that is gone.
    environment = dict(os.environ, MALLOC_PERTURB_="165",
                       CORDWOOD_LIBRARY=str(ROOT / "build/lib/libcordwood.so"),
                       PYTHONPATH=str(ROOT / "bindings/python/src"), PYTHONDONTWRITEBYTECODE="1")
    if everything:
        environment["CORDWOOD_TEST_ALL"] = "1"
    started = time.monotonic()
    done = subprocess.run(suite.command, cwd=ROOT, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    minutes = (time.monotonic() - started) / 60
    text = done.stdout.decode(errors="replace")
    (LOGS / f"{suite.name}.log").write_text(text)
    return (*counts(text, done.returncode), minutes, text)


def main():
    parser = argparse.ArgumentParser(prog="./dev test")
    parser.add_argument("--all", action="store_true", help="the heavy suites, too")
    parser.add_argument("--only", help="suites to run, separated by commas")
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else None
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)

    subprocess.run([str(ROOT / "tools/build.sh")], check=True)
    passed = failed = 0
    lines = []
    for suite in suites(arguments.all):
        if only is not None and suite.name not in only:
            continue
        if suite.heavy and not arguments.all and only is None:
            continue
        if suite.needs and not suite.needs.exists():
            lines.append(f"{suite.name:12} {'':>7} {'':>7} {'':>8}  not there")
            continue
        good, bad, minutes, text = run(suite, arguments.all)
        passed, failed = passed + good, failed + bad
        lines.append(f"{suite.name:12} {good:7} {bad:7} {minutes:8.1f}")
        print(lines[-1], flush=True)
        if bad:
            tail = "\n".join(text.splitlines()[-60:])
            print(f"--- {suite.name}, the end of build/test-logs/{suite.name}.log\n{tail}\n---")
    print(f"\n{'suite':12} {'passed':>7} {'failed':>7} {'minutes':>8}")
    print("\n".join(lines))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
