"""The harness itself: runners as suites write them, run as programs. The result of each case must
be in its line, in the last line, in the exit code and in the XML."""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tools")]

import cases  # noqa: E402
import coverage  # noqa: E402
import run_suites  # noqa: E402
import swift_hosts  # noqa: E402
import swift_tests  # noqa: E402

HOSTILE = "a\0b \x1b[31m <&\"']]> \ud800 \ufffe 🪵\r\nsecond line"
RUNNER = f"""
import sys, time
sys.path.insert(0, {str(HERE)!r})
import cases

def fails():
    raise cases.Failed({HOSTILE!r})

def skips():
    raise cases.Skipped("no such <thing>")

def breaks():
    return 1 // 0

CASES = {{"passes": lambda: f"seed {{cases.seed()}}", "slow": lambda: time.sleep(0.2),
         "fails": fails, "skips": skips, "breaks": cases.full(breaks),
         "minutes": cases.only_all(lambda: cases.sized("core", "full", "all"))}}
arguments = cases.parser().parse_args()
run = cases.Run()
run.all(cases.chosen(CASES, arguments), lambda _, case: case(), JOBS)
sys.exit(run.end())
"""
TESTS = """
import unittest

import cases

class First(unittest.TestCase):
    def test_passes(self):
        pass

    def test_fails(self):
        self.assertEqual("got", "wanted")

    def test_parts(self):
        for number in range(3):
            with self.subTest(number):
                self.assertEqual(number, 0)

    @unittest.skip("not here")
    def test_skipped(self):
        pass

    @unittest.expectedFailure
    def test_unexpected(self):
        pass

    @cases.full
    def test_large(self):
        pass

@cases.full
class Second(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise OSError("no room")

    def test_never(self):
        pass
"""
SWIFT = """\
Test Suite 'All tests' started at 2026-01-01 00:00:00.000
Test Case 'LaneTests.testOne' started at 2026-01-01 00:00:00.000
Test Case 'LaneTests.testOne' passed (0.25 seconds)
Test Case 'LaneTests.testTwo' started at 2026-01-01 00:00:00.000
LaneTests.swift:12: error: LaneTests.testTwo : XCTAssertEqual failed: ("1") is not equal to ("2")
LaneTests.swift:13: error: LaneTests.testTwo : XCTAssertTrue failed
Test Case 'LaneTests.testTwo' failed (1.5 seconds)
Test Case 'LaneTests.testThree' started at 2026-01-01 00:00:00.000
LaneTests.swift:20: LaneTests.testThree : Test skipped: no root
Test Case 'LaneTests.testThree' skipped (0.0 seconds)
"""


class Done:
    """The result of a runner."""

    def __init__(self, folder, *command):
        self.report = Path(folder) / "suite.xml"
        environment = dict(os.environ, TEST_JUNIT=self.report)
        for name in ("TEST_SEED", "TEST_SIZE"):
            environment.pop(name, None)
        done = subprocess.run([sys.executable, *map(str, command)], cwd=folder, check=False,
                              capture_output=True, env=environment)
        self.code, self.error = done.returncode, done.stderr.decode()
        self.lines = done.stdout.decode().splitlines()

    def line(self, name):
        """(outcome, seconds, the text)"""
        for line in self.lines:
            found = re.fullmatch(r"(\w+) +([\d.]+) s  ([\w.]+)(?:: (.*))?", line)
            if found and found[3] == name:
                return found[1], float(found[2]), found[4]
        raise AssertionError(f"no line of {name}: {self.lines}")

    @property
    def xml(self):
        return ElementTree.parse(self.report).getroot()

    def case(self, name):
        return next(case for case in self.xml.iter("testcase") if case.get("name") == name)


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def runner(self, *words, jobs=1):
        path = self.folder / "runner.py"
        path.write_text(RUNNER.replace("JOBS", str(jobs)), encoding="utf-8")
        return Done(self.folder, path, *words)


class CasesTest(WithFolder):
    def test_outcomes(self):
        for jobs in (1, 2):
            done = self.runner(jobs=jobs)
            self.assertEqual((done.code, done.error), (1, ""))
            self.assertEqual(done.lines[-2:], ["1 skipped", "2 passed, 2 failed"])
            self.assertEqual(done.line("passes")[::2], ("ok", f"seed {cases.SEED}"))
            self.assertGreaterEqual(done.line("slow")[1], 0.2)
            self.assertEqual(done.line("skips"), ("SKIPPED", 0.0, "no such <thing>"))
            self.assertEqual(done.line("fails")[::2], ("FAILED", None))
            self.assertIn("    again: runner.py fails", done.lines)
            self.assertIn("    ZeroDivisionError: integer division or modulo by zero", done.lines)

    def test_seed(self):
        """Fixed without --seed. All parts of a run have the same, and a failure names it."""
        for words, seed, again in (([], cases.SEED, "runner.py fails"),
                                   (["--seed", "7"], 7, "runner.py --seed 7 fails")):
            done = self.runner("passes", "fails", *words)
            self.assertEqual(done.line("passes")[::2], ("ok", f"seed {seed}"))
            self.assertIn(f"    again: {again}", done.lines)

    def test_size(self):
        """A failure names the size, and a named case runs in each."""
        done = self.runner("--size", "core")
        self.assertEqual(done.lines[-1], "2 passed, 1 failed")
        self.assertIn("    again: runner.py --size core fails", done.lines)
        for size in cases.SIZES:
            self.assertEqual(self.runner("--size", size, "minutes").line("minutes")[2], size)

    def test_growing_file(self):
        """A line that a server has written in part does not count, wherever it was cut."""
        path, line = self.folder / "lines", '{"text": "ä"}\n'.encode()
        self.assertEqual(cases.json_lines(path), [])
        for cut in range(len(line)):
            path.write_bytes(2 * line + line[:cut])
            self.assertEqual(cases.json_lines(path), 2 * [{"text": "ä"}])

    def test_junit(self):
        done = self.runner()
        self.assertEqual(
            {key: done.xml.get(key) for key in ("name", "tests", "failures", "skipped", "errors")},
            {"name": "suite", "tests": "5", "failures": "2", "skipped": "1", "errors": "0"})
        self.assertEqual([case.get("name") for case in done.xml.iter("testcase")],
                         ["passes", "slow", "fails", "skips", "breaks"])
        self.assertEqual(done.case("passes").get("classname"), "suite")
        self.assertEqual(len(done.case("passes").findall("failure")), 0)
        self.assertGreaterEqual(float(done.case("slow").get("time")), 0.2)
        failure = done.case("fails").find("failure")
        self.assertEqual(failure.text, "a\\x00b \\x1b[31m <&\"']]> \\ud800 \\ufffe 🪵\\r\n"
                                       "second line")
        self.assertEqual(failure.get("message"), failure.text.splitlines()[0])
        self.assertEqual(done.case("skips").find("skipped").get("message"), "no such <thing>")
        self.assertIn("ZeroDivisionError", done.case("breaks").find("failure").get("message"))
        self.assertIn("in breaks", done.case("breaks").find("failure").text)

    def test_read_back(self):
        done = self.runner()
        found = cases.read_junit(done.report)
        self.assertEqual([(outcome.full, outcome.result) for outcome in found],
                         [("passes", "ok"), ("slow", "ok"), ("fails", "FAILED"),
                          ("skips", "SKIPPED"), ("breaks", "FAILED")])
        self.assertEqual(found[3].text, "no such <thing>")

    def test_selection(self):
        for words, wanted in ((["-k", "s"], ["passes", "slow", "fails", "skips", "breaks"]),
                              (["-k", "ski"], ["skips"]), (["-k", "ski", "low"], ["slow", "skips"]),
                              (["-k", "ski", "-k", "low"], ["slow", "skips"]),
                              (["slow", "passes"], ["passes", "slow"]),
                              (["slow", "passes", "-k", "pass"], ["passes"])):
            done = self.runner("--list", *words)
            self.assertEqual((done.code, done.lines), (0, wanted))
            self.assertFalse(done.report.exists())
        done = self.runner("-k", "passes", "skips")
        self.assertEqual((done.code, done.lines[-2:]), (0, ["1 skipped", "1 passed, 0 failed"]))
        done = self.runner("-k", "nothing like it")
        self.assertEqual((done.code, done.lines[-1]), (cases.NOTHING, "0 passed, 0 failed"))
        self.assertEqual(done.xml.get("tests"), "0")
        for size, last in (("core", "skips"), ("full", "breaks"), ("all", "minutes")):
            self.assertEqual(self.runner("--list", "--size", size).lines[-1], last)
        done = self.runner("nothing_like_it")
        self.assertEqual(done.code, 1)
        self.assertIn("no such case: nothing_like_it", done.error)


class UnittestsTest(WithFolder):
    def sample(self, *words, text=TESTS):
        (self.folder / "test_sample.py").write_text(text)
        return Done(self.folder, HERE / "unittests.py", self.folder, *words)

    def test_outcomes(self):
        done = self.sample()
        self.assertEqual((done.code, done.error), (1, ""))
        self.assertEqual(done.lines[-2:], ["1 skipped", "2 passed, 4 failed"])
        self.assertEqual(done.line("test_sample.First.test_passes")[0], "ok")
        self.assertEqual(done.case("test_passes").get("classname"), "test_sample.First")
        self.assertIn("'got' != 'wanted'", done.case("test_fails").find("failure").text)
        self.assertEqual(done.case("test_parts").find("failure").text.count("AssertionError"), 2)
        self.assertEqual(done.case("test_skipped").find("skipped").get("message"), "not here")
        self.assertIsNotNone(done.case("test_unexpected").find("failure"))
        self.assertIn("no room",
                      done.case("setUpClass (test_sample.Second)").find("failure").text)

    def test_selection(self):
        for words in (["-k", "_pass"], ["First.test_pass"]):
            self.assertEqual(self.sample(*words).lines[-1], "1 passed, 0 failed")
        self.assertEqual(self.sample("--list", "-k", "Second").lines,
                         ["test_sample.Second.test_never"])
        self.assertEqual(self.sample("-k", "nothing like it").code, cases.NOTHING)

    def test_size(self):
        """A mark on a method or on its class."""
        for size, count in (("core", 5), ("full", 7)):
            self.assertEqual(len(self.sample("--list", "--size", size).lines), count)

    def test_broken_file(self):
        (self.folder / "test_broken.py").write_text("import no_such_module\n")
        done = self.sample("-k", "_pass")
        self.assertEqual((done.code, done.lines[-1]), (1, "1 passed, 1 failed"))


class SuitesTest(WithFolder):
    """How tools/run_suites.py treats a suite's end."""

    def judged(self, text, code, report=None, selected=()):
        """(the outcomes, the counts). The XML contains all of them."""
        path = self.folder / "suite.xml"
        path.unlink(missing_ok=True)
        if report is not None:
            cases.write_junit(path, report)
        passed, failed, found = run_suites.judged("suite", text, path, code, 7.5, selected)
        self.assertEqual([o[:2] for o in cases.read_junit(path)], [o[:2] for o in found])
        return found, (passed, failed)

    def test_counts_alone(self):
        found, counted = self.judged("said\n7 passed, 0 failed\n", 0)
        self.assertEqual(([(o.result, o.seconds) for o in found], counted), ([("ok", 7.5)], (7, 0)))
        found, counted = self.judged("said\n7 passed, 2 failed\n", 1)
        self.assertEqual((found[0].result, counted), ("FAILED", (7, 2)))
        self.assertIn("said", found[0].text)

    def test_dies_without_a_failure(self):
        passes = [cases.Outcome("one", "ok", 0.5)]
        found, counted = self.judged("1 passed, 0 failed\nAborted\n", -6, passes)
        self.assertEqual(([o.result for o in found], counted), (["ok", "FAILED"], (1, 1)))
        self.assertIn("Aborted", found[1].text)

    def test_nothing_matches(self):
        text = "0 passed, 0 failed\n"
        self.assertEqual(self.judged(text, cases.NOTHING, [], ["none"]), ([], (0, 0)))
        found, counted = self.judged(text, cases.NOTHING, [])
        self.assertEqual(([o.result for o in found], counted), (["FAILED"], (0, 1)))

    def test_narrowed(self):
        ours = run_suites.Job("ours", "run.py", "--part")
        self.assertEqual(ours.narrowed(["a.b", "c"]), ["run.py", "--part", "-k", "a.b", "c"])
        self.assertEqual(ours.narrowed([]), ["run.py", "--part"])

    def test_seed(self):
        """`./dev test` draws none, --all draws a new one and passes it to the suites."""
        def told(size, seed=None):
            runner = run_suites.Runner(argparse.Namespace(
                size=size, seed=seed, jobs=1, k=[], junit=self.folder))
            self.assertEqual(runner.environment()["TEST_SEED"], str(runner.seed))
            self.assertEqual(runner.environment()["TEST_SIZE"], size)
            return runner.seed
        self.assertEqual([told("core"), told("full"), told("full", 7), told("all", 7)],
                         [cases.SEED, cases.SEED, 7, 7])
        drawn = {told("all") for _ in range(20)}
        self.assertGreater(len(drawn), 1)
        self.assertNotIn(cases.SEED, drawn)

    def results(self, *seconds):
        """Of a core whose suites have a budget of 10 s each."""
        return [run_suites.Result(run_suites.Job(str(number)), 1, 0, 1.0, each, [], 10)
                for number, each in enumerate(seconds)]

    def test_budget(self):
        """The sum decides, and then each suite's own; both at the speed of the machine."""
        for seconds, slowness, late in (((10, 10, 10), 1, []), ((44, 0, 0), 1, []),
                                        ((46, 0, 0), 1, ["0"]), ((30, 2, 16), 1, ["0", "2"]),
                                        ((30, 2, 16), 2, []), ((40, 30, 25), 2, ["0"])):
            found = run_suites.over(self.results(*seconds), slowness)
            self.assertEqual([result.job.name for result in found], late, seconds)
        full = [run_suites.Result(run_suites.Job("full"), 1, 0, 1.0, 999.0, [])]
        self.assertEqual(run_suites.over(full, 1), [])

    def test_over_twice(self):
        """A suite that keeps its budget the second time is not late; it alone runs again. What
        fails in either run has failed."""
        class Again:
            def all(self, jobs):
                self.jobs = [job.name for job in jobs]
                for job in jobs:
                    yield run_suites.Result(job, 1, self.failed, 1.0, self.seconds, [], 10)
        runner, loop = Again(), run_suites.loop
        run_suites.loop = lambda: run_suites.LOOP_S
        self.addCleanup(setattr, run_suites, "loop", loop)
        runner.failed = 0
        for runner.seconds, late in ((12, []), (60, ["0"])):
            results = self.results(60, 3)
            found = run_suites.over_twice(runner, results, run_suites.LOOP_S)
            self.assertEqual([result.job.name for result in found], late)
            self.assertEqual(runner.jobs, ["0"])
            self.assertEqual([result.seconds for result in results], [runner.seconds, 3])
        for before, runner.failed in ((0, 1), (1, 0)):
            results = self.results(60, 3)
            results[0].failed = before
            with mock.patch.object(run_suites, "told"):
                run_suites.over_twice(runner, results, run_suites.LOOP_S)
            self.assertEqual([result.failed for result in results], [1, 0])

    def test_budgets(self):
        """The core may cost nine minutes of a processor."""
        suites = [suite for suite in run_suites.suites() if suite.size == "core"]
        self.assertTrue(all(suite.seconds for suite in suites))
        self.assertLessEqual(sum(suite.seconds for suite in suites), 9 * 60)

    def test_slowest(self):
        found = [cases.Outcome(str(number), "ok", number % 7 / 2) for number in range(9)]
        self.assertEqual([(o.name, o.seconds) for _, o in
                          run_suites.slowest([("a", found[:4]), ("b", found[4:])], 3)],
                         [("6", 3.0), ("5", 2.5), ("4", 2.0)])


class SwiftTestsTest(unittest.TestCase):
    """What swift_tests.py makes of XCTest's lines, and of processes that die."""

    def test_outcomes(self):
        found = swift_tests.read(SWIFT, "M")
        self.assertEqual([(o.full, o.result, o.seconds) for o in found], [
            ("M.LaneTests.testOne", "ok", 0.25), ("M.LaneTests.testTwo", "FAILED", 1.5),
            ("M.LaneTests.testThree", "SKIPPED", 0.0)])
        self.assertEqual(found[1].text.count("error:"), 2)
        self.assertIn("no root", found[2].text)

    def test_one_that_dies(self):
        text = SWIFT[:SWIFT.index("LaneTests.swift:20")] + "Fatal error: no\n"
        found = swift_tests.read(text, "M")
        self.assertEqual((found[2].full, found[2].result), ("M.LaneTests.testThree", "FAILED"))
        self.assertIn("Fatal error: no", found[2].text)

    def test_the_command_that_repeats(self):
        for name in ("core", "full"):
            with mock.patch.dict(os.environ, TEST_SIZE=name):
                words = shlex.split(swift_tests.again("M.LaneTests.testOne"))[1:]
                self.assertEqual(cases.parser().parse_args(words).cases, ["M.LaneTests/testOne"])

    def bundle(self, *texts):
        """A bundle whose nth process prints the nth text, and dies unless it is the last. Instead
        of None, it never ends."""
        left = iter(texts)

        def done(command, **_):
            self.asked.append(command[1].split(","))
            text = next(left)
            if text is None:
                raise subprocess.TimeoutExpired(command, 1, next(left).encode())
            return subprocess.CompletedProcess(command, 0 if text is texts[-1] else -5,
                                               text.encode())
        self.asked, before = [], swift_tests.subprocess.run
        swift_tests.subprocess.run = done
        self.addCleanup(setattr, swift_tests.subprocess, "run", before)

    def test_the_others_run_after_a_death(self):
        one, two, three = (f"M.LaneTests/test{name}" for name in ("One", "Two", "Three"))
        lines = SWIFT.splitlines(keepends=True)
        self.bundle("".join(lines[:4]), "".join(lines[7:]))
        found = swift_tests.run([one, two, three])
        self.assertEqual(self.asked, [[one, two, three], [three]])
        self.assertEqual([(o.name, o.result) for o in found], [
            ("testOne", "ok"), ("testTwo", "FAILED"), ("testThree", "SKIPPED")])

    def test_the_others_run_after_one_that_does_not_end(self):
        one, two, three = (f"M.LaneTests/test{name}" for name in ("One", "Two", "Three"))
        lines = SWIFT.splitlines(keepends=True)
        self.bundle(None, "".join(lines[:4]), "".join(lines[7:]))
        found = swift_tests.run([one, two, three])
        self.assertEqual(self.asked, [[one, two, three], [three]])
        self.assertEqual([(o.name, o.result) for o in found], [
            ("testOne", "ok"), ("testTwo", "FAILED"), ("testThree", "SKIPPED")])

    def test_a_death_after_the_last_test(self):
        self.bundle("".join(SWIFT.splitlines(keepends=True)[:3]), "")
        found = swift_tests.run(["M.LaneTests/testOne"])
        self.assertEqual([(o.full, o.result) for o in found], [
            ("M.LaneTests.testOne", "ok"), ("M", "FAILED")])
        self.assertIn("exit -5", found[1].text)

    def test_tests_that_do_not_run(self):
        """An exit code of 0 does not hide them, nor does a bundle that never starts repeat."""
        for texts in (["".join(SWIFT.splitlines(keepends=True)[:3])], ["no such file\n", ""]):
            self.bundle(*texts)
            found = swift_tests.run(["M.LaneTests/testOne", "M.LaneTests/testTwo"])
            self.assertEqual(found[-1].result, "FAILED")
            self.assertIn("did not run", found[-1].text)

    def test_not_of_this_size(self):
        self.bundle(SWIFT.replace("no root", swift_tests.NOT_HERE))
        found = swift_tests.run([f"M.LaneTests/test{name}" for name in ("One", "Two", "Three")])
        self.assertEqual([o.name for o in found], ["testOne", "testTwo"])


class CoverageTest(unittest.TestCase):
    """tools/coverage.py: lines by module, only of our sources."""

    @staticmethod
    def file(path, count, covered):
        return {"filename": str(coverage.ROOT / path),
                "summary": {"lines": {"count": count, "covered": covered}}}

    def test_modules(self):
        report = {"data": [{"files": [
            self.file("Sources/One/A.swift", 10, 5), self.file("Sources/One/Deep/B.swift", 30, 25),
            self.file("Sources/Two/C.swift", 8, 0), self.file("Sources/Empty/D.swift", 0, 0),
            self.file("Tests/OneTests/T.swift", 100, 100),
            self.file(".build-coverage/checkouts/x/Sources/X/X.swift", 100, 100)]}]}
        rows = [line.split() for line in coverage.table(*coverage.modules(report))]
        self.assertEqual(rows[1:], [["One", "30", "40", "75.0"], ["Two", "0", "8", "0.0"],
                                    ["all", "30", "48", "62.5"]])


class SwiftHostsTest(WithFolder):
    """Programs that contain layouts of modules that they cannot name."""

    def test_old_objects_go(self):
        def file(path, second):
            path = self.folder / path
            path.parent.mkdir(exist_ok=True)
            path.touch()
            os.utime(path, (second, second))
            return path

        old = [file(f"Writer.build/{name}.o", 10) for name in "ab"]
        kept = [file("Hello.build/main.o", 20), file("Writer.build/Writer.d", 10),
                file("Other.build/main.o", 1)]
        file("Modules/CordwoodStore.swiftmodule", 15)
        file("Modules/CordwoodStoreTests.swiftmodule", 99)
        swift_hosts.forget_old(self.folder)
        self.assertEqual([path.exists() for path in old + kept], [False] * 2 + [True] * 3)


if __name__ == "__main__":
    unittest.main()
