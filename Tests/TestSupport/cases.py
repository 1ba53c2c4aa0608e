"""What every suite in Python shares: how a case fails or is skipped, how a command line selects
cases, the line that each prints, the last line, the exit code, and JUnit's XML. A runner is
    arguments = cases.parser("run.py").parse_args()
    table = cases.chosen(CASES, arguments)          # name → case
    run = cases.Run()
    run.all(table, lambda name, case: case(…))
    return run.end()

unittests.py does the same for tests of unittest. tools/run_suites.py passes the path of the XML in
TEST_JUNIT. The thread that calls Run prints the lines and counts the outcomes. The cases may run in
other threads.

A run has one of three sizes: core (`./dev test`), full (`--full`, and what a runner does by itself)
or all (`--all`). A case that the core leaves out says so itself: @full. How many rounds a case has,
it says by sized(core, full, all)."""

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
import time
import traceback
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import settings

# Removed: child processes of a suite must not write over its file.
JUNIT = os.environ.pop("TEST_JUNIT", None)
OK, SKIPPED, FAILED = "ok", "SKIPPED", "FAILED"
# The seed of every suite's random numbers, unless --seed says otherwise. With --all
# tools/run_suites.py passes a new one in TEST_SEED.
SEED = 1
# From the smallest on. tools/run_suites.py passes its size in TEST_SIZE.
SIZES = ("core", "full", "all")
# The exit code if no case matches, as in pytest.
NOTHING = 5
# Characters that XML cannot contain, and CR, which an XML parser reads as LF.
NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Size(argparse.Action):
    """Sets the size of this process and its children."""

    def __call__(self, parser_, namespace, values, option_string=None):
        os.environ["TEST_SIZE"] = namespace.size = values


class Failed(Exception):
    """An expectation was not met."""


class Skipped(Exception):
    """The case cannot run here. The text says what is missing."""


def holds(condition, what):
    if not condition:
        raise Failed(what)


def equal(what, got, wanted):
    if got != wanted:
        raise Failed(f"{what}: {short(got)}, not {short(wanted)}")


def short(value):
    text = repr(value)
    return text if len(text) < 300 else f"{text[:200]} … {text[-60:]} ({len(text)} characters)"


def until(condition, what, seconds=60):
    """Polls until the condition returns something true, and returns that. The bound is far above
    the expected time."""
    end = time.monotonic() + seconds
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.005)


def whole_lines(path):
    """The lines of a file to which another process adds, perhaps at this moment: a line counts once
    its end is there. No file is no lines."""
    data = path.read_bytes() if path.exists() else b""
    return data[:data.rfind(b"\n") + 1].decode().splitlines()


def json_lines(path):
    return list(map(json.loads, whole_lines(path)))


@contextlib.contextmanager
def folder(suite):
    """A suite's own directory, which other users may enter. Removed afterwards."""
    path = Path(tempfile.mkdtemp(prefix=f"cordwood-{suite}-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


# ── Which cases ──

def size():
    """The size of this run, also in child processes: an index into SIZES."""
    return SIZES.index(os.environ.get("TEST_SIZE", "full"))


def sized(core, full, all):  # pylint: disable=redefined-builtin,redefined-outer-name
    """The value for this run's size, such as a number of rounds."""
    return (core, full, all)[size()]


def full(case):
    """Marks a case, or a class of tests, that the core leaves out. Returns it."""
    case.size = "full"
    return case


def only_all(case):
    """Marks a case that takes minutes: only --all, or its whole name, runs it."""
    case.size = "all"
    return case


def fits(case):
    """Whether a run of this size has the case."""
    return SIZES.index(getattr(case, "size", "core")) <= size()


def parser(name=None, description=None):
    """The arguments of every runner. A suite adds its own. The caller's settings are forgotten."""
    settings.forget_callers()
    made = argparse.ArgumentParser(prog=name, description=description)
    made.add_argument("cases", nargs="*", metavar="CASE", help="these cases alone")
    made.add_argument("-k", nargs="+", action="extend", default=[], metavar="PATTERN",
                      help="cases that have one of these in their names")
    made.add_argument("--list", action="store_true", help="only the cases' names")
    made.add_argument("--size", choices=SIZES, default=SIZES[size()], action=Size,
                      help="how many cases and rounds (%(default)s)")
    made.add_argument("--seed", type=int, default=seed(),
                      help="of what the cases draw at random (%(default)s)")
    return made


def seed():
    """The seed of this run, also in child processes."""
    return int(os.environ.get("TEST_SEED", SEED))


def chosen(table, arguments):
    """The selected part of a table of cases, in its order: the named ones, or those of the size.
    Ends the process after --list, for an unknown name, and if nothing matches."""
    os.environ["TEST_SEED"] = str(arguments.seed)
    if unknown := [name for name in arguments.cases if name not in table]:
        sys.exit(f"no such case: {', '.join(unknown)}; there are {', '.join(table)}")
    found = {name: case for name, case in table.items()
             if (name in arguments.cases if arguments.cases else fits(case))
             and (not arguments.k or any(pattern in name for pattern in arguments.k))}
    if arguments.list:
        print(*found, sep="\n")
        sys.exit(0)
    if not found:
        print(f"no case has {' or '.join(arguments.k)} in its name")
        sys.exit(Run().end())
    return found


# ── What became of them ──

class Outcome(NamedTuple):
    """Of one case. text: why it failed or was skipped, else its note."""
    name: str
    result: str
    seconds: float
    text: str = ""
    group: str = ""  # a class of tests

    @property
    def full(self):
        return f"{self.group}.{self.name}" if self.group else self.name


class Run:
    """One run of a suite. again: returns the command that repeats a case, given its name.
    is_strict: a skipped case has failed. is_brief: only failures get a line."""

    def __init__(self, again=None, is_strict=False, is_brief=False):
        self.again, self.is_strict, self.is_brief = again or repeating(), is_strict, is_brief
        self.outcomes = []
        # Failures may quote any bytes.
        sys.stdout.reconfigure(errors="backslashreplace")

    def count(self, result):
        return sum(outcome.result == result for outcome in self.outcomes)

    def all(self, table, body, jobs=1):
        """Calls body(name, case) for each, `jobs` at a time. It returns the note of a case that
        passed, or None."""
        def one(entry):
            return self.outcome(entry[0], lambda: body(*entry))
        if jobs == 1:  # in this thread, which Ctrl-C reaches
            for entry in table.items():
                self.add(one(entry))
            return
        with ThreadPoolExecutor(jobs) as pool:
            for outcome in pool.map(one, table.items()):
                self.add(outcome)

    @staticmethod
    def outcome(name, call):
        started = time.monotonic()
        try:
            result, text = OK, call() or ""
        except Skipped as why:
            result, text = SKIPPED, str(why)
        except Failed as why:
            result, text = FAILED, str(why)
        except Exception:  # a case's own error fails it, not the others
            result, text = FAILED, traceback.format_exc()
        return Outcome(name, result, time.monotonic() - started, text)

    def add(self, outcome):
        """Counts an outcome, and prints its line."""
        if outcome.result == SKIPPED and self.is_strict:
            outcome = outcome._replace(result=FAILED)
        self.outcomes.append(outcome)
        if self.is_brief and outcome.result == OK:
            return
        text, more = outcome.text.strip(), ""
        if outcome.result == FAILED or "\n" in text:
            text, more = "", textwrap.indent(textwrap.dedent(outcome.text.strip("\n")), "    ")
        print(f"{outcome.result:8} {outcome.seconds:6.1f} s  {outcome.full}"
              + (f": {text}" if text else ""))
        if more:
            print(more)
        if outcome.result == FAILED:
            print(f"    again: {self.again(outcome.full)}")
        sys.stdout.flush()

    def end(self):
        """Prints the last line, writes the XML, and returns the exit code."""
        if skipped := self.count(SKIPPED):
            print(f"{skipped} skipped")
        print(f"{self.count(OK)} passed, {self.count(FAILED)} failed", flush=True)
        if JUNIT:
            write_junit(JUNIT, self.outcomes)
        return NOTHING if not self.outcomes else int(self.count(FAILED) > 0)


def repeating(*options, program=None):
    """Returns a function for the command that repeats a case of a program (default: this one), with
    these options and the seed and the size of this run."""
    def command(name):
        same = [] if seed() == SEED else ["--seed", seed()]
        same += [] if SIZES[size()] == "full" else ["--size", SIZES[size()]]
        return shlex.join(map(str, [os.path.relpath(program or sys.argv[0]), *options, *same,
                                    name]))
    return command


# ── JUnit ──

def printable(text):
    """Replaces what XML forbids by an escape, as in Python."""
    return NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def write_junit(path, outcomes):
    """The suite is named after the file."""
    path = Path(path)
    counts = {"tests": len(outcomes), "errors": 0,
              "failures": sum(outcome.result == FAILED for outcome in outcomes),
              "skipped": sum(outcome.result == SKIPPED for outcome in outcomes),
              "time": f"{sum(outcome.seconds for outcome in outcomes):.3f}"}
    suite = ElementTree.Element("testsuite", name=path.stem,
                                **{key: str(value) for key, value in counts.items()})
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=printable(outcome.group or path.stem),
            name=printable(outcome.name), time=f"{outcome.seconds:.3f}")
        text = printable(outcome.text)
        if outcome.result == FAILED:
            first = text.strip().splitlines()[-1:] if text.startswith("Traceback") else \
                text.strip().splitlines()[:1]
            ElementTree.SubElement(case, "failure", message="".join(first)).text = text
        elif outcome.result == SKIPPED:
            ElementTree.SubElement(case, "skipped", message=text)
        elif text:
            ElementTree.SubElement(case, "system-out").text = text
    # Written whole or not at all: a suite may be killed here.
    part = path.with_suffix(".part")
    ElementTree.ElementTree(suite).write(part, encoding="utf-8", xml_declaration=True)
    part.replace(path)


def read_junit(path):
    """The outcomes in a file written by write_junit."""
    suite = ElementTree.parse(path).getroot()
    outcomes = []
    for case in suite.iter("testcase"):
        result, text = OK, ""
        if (failure := case.find("failure")) is not None:
            result, text = FAILED, failure.text or ""
        elif (skipped := case.find("skipped")) is not None:
            result, text = SKIPPED, skipped.get("message")
        group = case.get("classname")
        outcomes.append(Outcome(case.get("name"), result, float(case.get("time")), text,
                                "" if group == suite.get("name") else group))
    return outcomes
