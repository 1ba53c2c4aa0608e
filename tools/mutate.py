#!/usr/bin/env python3
"""`./dev mutate [RULE | NAME …]`: breaks one line at a time and demands that the suite notices.

Tests/Mutations has the table: a rule, exact lines, what they become, the case that must fail. The
tool works on a copy in build/mutate/tree, which keeps its build products, and builds the library
file by file (`tools/build.sh quick`), so that a mutation costs the files that it changes; those
whose case needs the code that hosts get are built as for release. First, every case must pass on
the unchanged copy. A mutation that no case notices is a failure, and so is one that does not
compile.

    mutate.py [--check] [--list] [--first] [--here] [RULE | NAME …]
    --check   only checks that every entry's lines occur in the sources, each exactly once
    --here    without a copy, with what this tree has built. It must not be edited or built
              meanwhile, and its library is a mutated one until the next build
    --list    lists the entries
    --first   only entries that a case of `./dev test --full` catches, without those of `--all`"""

import argparse
import importlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "Tests/Mutations"))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "Tests/TestSupport")]

from entry import MUTATIONS  # noqa: E402
from run_suites import counts  # noqa: E402
import swift_tests  # noqa: E402

for file in sorted((ROOT / "Tests/Mutations").glob("*.py")):
    importlib.import_module(file.stem)

TREE = ROOT / "build/mutate/tree"
LOGS = ROOT / "build/mutate/logs"
PYTHON = sys.executable
# How one case of a suite is run, and what must be built before.
SUITES = {
    "c-abi": ("library", [PYTHON, "Tests/ABI/run.py"]),
    "disk": ("library", [PYTHON, "Tests/Disk/run.py"]),
    "processes": ("library", [PYTHON, "Tests/Processes/run.py"]),
    "signals": ("library", [PYTHON, "Tests/Signals/run.py"]),
    "hostile": ("library", [PYTHON, "Tests/Hostile/hostile.py"]),
    "crash": ("library", [PYTHON, "Tests/Crash/crash.py"]),
    "simulation": ("library", [PYTHON, "Tests/Simulation/simulate.py"]),
    "consumers": ("library", [PYTHON, "Tests/TestSupport/unittests.py", "Tests/Consumers"]),
    "age": ("library", [PYTHON, "Tests/Age/age.py"]),
    "viewer": ("library", [PYTHON, "Tests/Viewer/run.py"]),
    "journeys": ("library", [PYTHON, "Tests/Viewer/journeys.py"]),
    "servers": ("library", [PYTHON, "Tests/Servers/run.py"]),
    "swift": ("tests", [PYTHON, "Tests/TestSupport/swift_tests.py", "-k"]),
    "model": ("nothing", [PYTHON, "Tests/Model/run.py"]),
    "python": ("library", [PYTHON, "bindings/python/tests/run.py"]),
    "python-speed": ("library", [PYTHON, "bindings/python/tests/run.py", "--accelerated"]),
}
BUILDS = {
    "nothing": [],
    "library": [["tools/build.sh", "quick"]],
    "release": [["tools/build.sh"]],
    "tests": [swift_tests.BUILD],
}
# A mutation may hang its case: the bound is this many times the case's time without it.
SLOWDOWN_MAX = 10
CASE_SECONDS_MIN, CASE_SECONDS_MAX = 60, 600


class Broken(Exception):
    """The table or the tree is not as it should be."""


def problems():
    """What is wrong with the table, without building anything."""
    found, names = [], set()
    for entry in MUTATIONS:
        if entry.name in names:
            found.append(f"{entry.name}: twice in the table")
        names.add(entry.name)
        if entry.suite not in SUITES:
            found.append(f"{entry.name}: no suite {entry.suite}")
        for edit in entry.edits:
            path = ROOT / edit.file
            count = path.read_text(encoding="utf-8").count(edit.lines) if path.exists() else 0
            if count != 1:
                found.append(f"{entry.name}: {edit.file} has these lines {count} times, not once:\n"
                             f"{edit.lines}")
            if edit.lines == edit.becomes:
                found.append(f"{entry.name}: changes nothing")
    return found


# ── The copy ──

def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                         check=True, stdout=subprocess.PIPE).stdout
    return {name for name in out.decode().split("\0") if name and (ROOT / name).is_file()}


def copy_tree():
    """Writes only files that have changed, so that only these are built again."""
    names = tracked()
    for name in names:
        source, target = ROOT / name, TREE / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    for path in [p for folder in ("Sources", "Tests", "tools", "include")
                 for p in (TREE / folder).rglob("*") if p.is_file()]:
        if str(path.relative_to(TREE)) not in names and "__pycache__" not in path.parts:
            path.unlink()


def work_here():
    """Works in this tree; reverts changes however the run ends."""
    global TREE
    TREE = ROOT
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Applied:
    """Applies a mutation to the tree and reverts it on exit."""

    def __init__(self, entry):
        self.entry, self.before = entry, {}

    def __enter__(self):
        for edit in self.entry.edits:
            path = TREE / edit.file
            text = path.read_text(encoding="utf-8")
            self.before.setdefault(path, text)
            path.write_text(text.replace(edit.lines, edit.becomes), encoding="utf-8")
            touch_users(path, text)

    def __exit__(self, *_):
        for path, text in self.before.items():
            path.write_text(text, encoding="utf-8")
            touch_users(path, text)


def touch_users(path, text):
    """A changed body that the compiler inlines into other modules does not make it build them again
    by itself."""
    if "@inlinable" not in text:
        return
    for user in (TREE / "Sources").rglob("*.swift"):
        if path.parent not in user.parents and path.stem in user.read_text(encoding="utf-8"):
            user.touch()


# ── Building and running ──

def environment():
    return dict(os.environ, MALLOC_PERTURB_="165", PYTHONDONTWRITEBYTECODE="1",
                CORDWOOD_LIBRARY=str(TREE / "build/lib/libcordwood.so"),
                CORDWOOD_TOOL=str(TREE / "build/bin/cordwood"),
                PYTHONPATH=str(TREE / "bindings/python/src"))


def end(child):
    """Ends it and all it started; first like Ctrl-C, so that a suite unmounts what it mounted."""
    for number, seconds in ((signal.SIGINT, 20), (signal.SIGKILL, None)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass
        try:
            return child.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            pass


def run(command, log, extra=(), seconds=None):
    """(exit code, output); output is added to the log. A command that takes longer has failed."""
    with subprocess.Popen(command, cwd=TREE, env=dict(environment(), **dict(extra)),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as child:
        try:
            text = child.communicate(timeout=seconds)[0]
            code = child.returncode
        except subprocess.TimeoutExpired:
            text, code = end(child) + b"\n0 passed, 1 failed\n", 1
        except BaseException:
            end(child)
            raise
    text = text.decode(errors="replace")
    with log.open("a", encoding="utf-8") as out:
        out.write(f"$ {' '.join(map(str, command))}\n{text}\n")
    return code, text


def build(kind, log):
    """False: it does not compile."""
    return all(run(command, log)[0] == 0 for command in BUILDS[kind])


def needs(entry):
    return "release" if entry.release else SUITES[entry.suite][0]


def case(entry, seconds):
    """(caught, output)"""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{entry.name}.log"
    extra = {"TEST_SWIFT_TESTS": "made"} | ({"TEST_SIZE": "all"} if entry.heavy else {})
    code, text = run([*SUITES[entry.suite][1], *shlex.split(entry.case)], log, extra, seconds)
    passed, failed = counts(text, code)
    if code < 0 or not passed + failed or "SKIPPED" in text:
        return None, text
    return failed > 0, text


def baseline(entries):
    """Runs each case on the unchanged copy; the bounds, in seconds, of those that pass. The others
    prove nothing about a mutation."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / "unchanged.log"
    log.unlink(missing_ok=True)
    built, seen, bounds = "", set(), {}
    for entry in sorted(entries, key=needs):
        key = (needs(entry), entry.suite, entry.case)
        if key in seen:
            continue
        seen.add(key)
        if needs(entry) != built and not build(needs(entry), log):
            raise Broken(f"the unchanged tree does not build: {log}")
        built = needs(entry)
        started = time.monotonic()
        caught, text = case(entry, CASE_SECONDS_MAX)
        took = time.monotonic() - started
        if caught is False:
            bounds[key] = min(CASE_SECONDS_MAX, max(CASE_SECONDS_MIN, SLOWDOWN_MAX * took))
        print(f"unchanged     {entry.suite} {entry.case}: "
              f"{ {False: 'passes', True: 'FAILS', None: 'did not run'}[caught] }"
              f", {took:.0f} s", flush=True)
        if caught is not False:
            print("\n".join(text.splitlines()[-12:]), flush=True)
    return bounds


def mutate(entry, bounds):
    """(caught, verdict)"""
    key = (needs(entry), entry.suite, entry.case)
    if key not in bounds:
        return False, "its case does not pass without it"
    log = LOGS / f"{entry.name}.log"
    log.unlink(missing_ok=True)
    with Applied(entry):
        if not build(needs(entry), log):
            return False, f"does not compile: {log}"
        caught, _ = case(entry, bounds[key])
    return bool(caught), {True: "caught", False: "SURVIVES", None: "did not run"}[caught]


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--here", action="store_true")
    parser.add_argument("rules", nargs="*")
    arguments = parser.parse_args()
    wrong = problems()
    if wrong:
        print("\n".join(wrong))
    if arguments.check or wrong:
        if not wrong:
            print(f"{len(MUTATIONS)} mutations, of {len({m.rule for m in MUTATIONS})} rules")
        return 1 if wrong else 0
    chosen = [m for m in MUTATIONS
              if not arguments.rules or m.rule in arguments.rules or m.name in arguments.rules]
    if arguments.first:
        chosen = [m for m in chosen if not m.heavy]
    if arguments.list:
        for m in chosen:
            print(f"{m.rule:4} {m.name:28} {m.suite} {m.case}{' (--all)' if m.heavy else ''}")
        return 0
    if arguments.here:
        work_here()
    else:
        copy_tree()
    bounds = baseline(chosen)
    passed = failed = 0
    print(f"{'rule':4} {'mutation':28} {'caught by':34} {'seconds':>7}", flush=True)
    # One kind of build after another.
    for entry in sorted(chosen, key=needs):
        started = time.monotonic()
        caught, verdict = mutate(entry, bounds)
        passed, failed = passed + caught, failed + (not caught)
        print(f"{entry.rule:4} {entry.name:28} {entry.suite + ' ' + entry.case:34} "
              f"{time.monotonic() - started:7.0f}  {verdict}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
