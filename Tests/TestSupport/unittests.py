#!/usr/bin/env python3
"""Runs the tests of unittest in a folder as cases.py runs cases: the same selection, lines, counts
and XML. A test with failing subtests fails once.

    unittests.py FOLDER [-k PATTERN …] [--list] [PATTERN …]"""

import os
import sys
import time
import unittest
import warnings
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases  # noqa: E402


class Results(unittest.TestResult):
    """Passes each test's outcome to the run. Events outside of a test, as in setUpClass, are
    separate outcomes."""

    def __init__(self, run):
        super().__init__()
        self.cases, self.test = run, None

    def startTest(self, test):
        super().startTest(test)
        self.test, self.started = test, time.monotonic()
        self.troubles, self.reason = [], None

    def stopTest(self, test):
        super().stopTest(test)
        seconds, self.test = time.monotonic() - self.started, None
        if self.troubles:
            self.tell(test, cases.FAILED, seconds, "\n".join(self.troubles))
        elif self.reason is not None:
            self.tell(test, cases.SKIPPED, seconds, self.reason)
        else:
            self.tell(test, cases.OK, seconds)

    def tell(self, test, result, seconds=0.0, text=""):
        group, _, name = test.id().rpartition(".")
        if not isinstance(test, unittest.TestCase):  # setUpClass (test_file.Class)
            group, name = "", test.id()
        self.cases.add(cases.Outcome(name, result, seconds, text, group))

    def trouble(self, test, text):
        if self.test is None:
            self.tell(test, cases.FAILED, text=text)
        else:
            self.troubles.append(text)

    def addError(self, test, err):
        super().addError(test, err)
        self.trouble(test, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.trouble(test, self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            found = self.failures if issubclass(err[0], test.failureException) else self.errors
            self.trouble(test, f"{subtest}\n{found[-1][1]}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if self.test is None:
            self.tell(test, cases.SKIPPED, text=reason)
        elif test is self.test:
            self.reason = reason

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.trouble(test, "passes, and is marked as one that fails")


def each(suite):
    """Every test of nested suites, with the size that its method or its class is marked with."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            method = getattr(test, test.id().rpartition(".")[2], None)
            if size := getattr(method, "size", None) or getattr(type(test), "size", None):
                test.size = size
            yield test


def repeating(folder):
    """The folder's own runner, if it has one."""
    if (folder / "run.py").exists():
        return cases.repeating(program=folder / "run.py")
    return cases.repeating(os.path.relpath(folder), program=__file__)


def main(folder, words=None):
    """Words that are not options are whole names or else patterns. Returns the exit code."""
    arguments = cases.parser().parse_args(words)
    table = {test.id(): test for test in each(unittest.TestLoader().discover(str(folder)))}
    if not table.keys() >= set(arguments.cases):
        arguments.k, arguments.cases = [*arguments.k, *arguments.cases], []
    selected = cases.chosen(table, arguments)
    # A file that cannot be imported fails whatever was selected.
    broken = {name: test for name, test in table.items() if name.startswith("unittest.loader.")}
    run = cases.Run(repeating(folder))
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("default")
        unittest.TestSuite({**broken, **selected}.values()).run(Results(run))
    return run.end()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
