#!/usr/bin/env python3
"""`./dev coverage`: how many lines of each module the Swift tests run. Builds the tests with
llvm-cov's counters in .build-coverage, runs them once and prints a table; --html writes each file
with the count of each line.

Only the Swift tests count. The suites in Python drive the release build of the C library, which has
no counters: a line that only they reach is shown as not covered."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ["--enable-code-coverage", "--scratch-path", ".build-coverage", "-debug-info-format",
         "none"]


def swift(*words):
    subprocess.run(["swift", *words, *PLACE], cwd=ROOT, check=True, stdout=sys.stderr)


def answer(*words):
    return subprocess.run(["swift", *words, *PLACE], cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def modules(report):
    """({module: lines}, {module: lines that ran}) of llvm-cov's export: files below Sources."""
    lines, covered = Counter(), Counter()
    for file in report["data"][0]["files"]:
        path = Path(file["filename"])
        if ROOT / "Sources" in path.parents:
            module = path.relative_to(ROOT / "Sources").parts[0]
            lines[module] += file["summary"]["lines"]["count"]
            covered[module] += file["summary"]["lines"]["covered"]
    return lines, covered


def table(lines, covered):
    rows = [(module, covered[module], lines[module]) for module in sorted(lines) if lines[module]]
    rows.append(("all", sum(covered.values()), sum(lines.values())))
    yield f"{'module':24} {'covered':>8} {'lines':>8} {'percent':>8}"
    for module, count, total in rows:
        yield f"{module:24} {count:8} {total:8} {100 * count / total:8.1f}"


def html(report, directory):
    """Uses the toolchain's llvm-cov, which lies beside swift."""
    program = Path(os.path.realpath(shutil.which("swift"))).parent / "llvm-cov"
    tests, = Path(answer("build", "--show-bin-path")).glob("*.xctest")
    subprocess.run([program, "show", "-format=html", f"-output-dir={directory}",
                    f"-instr-profile={report.parent / 'default.profdata'}", tests,
                    ROOT / "Sources"], check=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev coverage")
    parser.add_argument("--html", metavar="DIR", help="each file with the count of each line")
    arguments = parser.parse_args()
    try:
        swift("build", "--build-tests")
        swift("test", "--skip-build")
        # Left by a program that a test started with another environment.
        (ROOT / "default.profraw").unlink(missing_ok=True)
        report = Path(answer("test", "--show-codecov-path"))
        print("\n".join(table(*modules(json.loads(report.read_text(encoding="utf-8"))))))
        if arguments.html:
            html(report, arguments.html)
    except subprocess.CalledProcessError as failed:
        print(f"coverage: {' '.join(map(str, failed.cmd))} ended {failed.returncode}",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
