#!/usr/bin/env python3
"""`./dev test`: runs every suite, reads the counts it prints, and sums them into one last line.

A suite is a command; its counts are the last `N passed, N failed` it prints, or the test cases that
XCTest names. A suite that fails without naming a failed test counts as one failure. Each leaves
JUnit XML: suites in Python write it themselves (Tests/TestSupport/cases.py); for the others it is
made here from their output.

What several suites need is made once, before them (`makes`). Suites that measure no times run side
by side, the longest first, as long as their shares fit two processors and a little more, since
shares are means. Those that measure times, fill disks or need the machine come after, one by one.
Minutes are wall-clock time, seconds processor time, of a suite and all that it started.

All suites draw their random numbers from one seed: cases.SEED, or a new one with --all."""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "Tests/TestSupport"))

import cases  # noqa: E402
from cases import (FAILED, NOTHING, OK, SKIPPED, Outcome, read_junit,  # noqa: E402
                   write_junit)

LOGS = ROOT / "build/test-logs"
# A compiler's. Those of a linker about the toolchain's own libraries are not ours to fix.
WARNING = re.compile(r"^/\S+:\d+:\d+: warning: .*$", re.M)
OURS = re.compile(r"(\d+) passed, (\d+) failed")
XCTEST = re.compile(r"Test Case '([^']+)' (?:(started).*|(passed|failed|skipped) "
                    r"\(([\d.]+) seconds\))")
SWIFT_RESULTS = {"passed": OK, "failed": FAILED, "skipped": SKIPPED}
TEXT_MAX = 20_000  # of what a suite printed, in its XML
# With the invariants that no other build checks, and without what only debuggers read. (The index
# is said to be that, too, but the tests are found in it.)
TESTS_PLACE = ["--scratch-path", ".build-tests", "-debug-info-format", "none",
               "-Xswiftc", "-DCORDWOOD_INVARIANTS"]
JOBS = 2
FULL = 1.15  # of the processors, in shares
MINUTES_MAX = 60  # of a job
GRACE_S = 10
# Runs as long as its parent lives; its work does not matter.
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(1 << 20): pass"


class Job:
    """A suite, or what is made for suites. minutes: about what it takes by itself, which decides
    the order. share: the part of that during which it uses a processor. after: what must be made
    before. alone: nothing runs beside it. timed: nor do busy loops. selects: the option that takes
    a part of a case's name; empty: there is none."""

    def __init__(self, name, *command, minutes=1.0, share=1.0, after=(), alone=False,
                 timed=False, heavy=False, is_suite=True, selects="-k"):
        self.name, self.command, self.minutes, self.share = name, command, minutes, share
        self.after = ["build", *after] if is_suite else after
        self.alone, self.timed = alone or timed, timed
        self.heavy, self.is_suite, self.selects = heavy, is_suite, selects

    def narrowed(self, patterns):
        """The command that runs only the cases with one of these in their names."""
        if not patterns:
            return self.command
        if self.selects == "--filter":  # takes regular expressions, one each
            return [*self.command, *(f"--filter={re.escape(pattern)}" for pattern in patterns)]
        return [*self.command, self.selects, *patterns]


def makes():
    """What suites share. A suite that runs by itself makes it itself."""
    python, support = sys.executable, "Tests/TestSupport"
    return [
        Job("build", "tools/build.sh", minutes=9, is_suite=False),
        # Debian packages, too: two installations at the same time would wait or fail.
        Job("environments", "bash", "-c",
            "set -e; Tests/Servers/install.sh; "
            f"{python} {support}/environments.py http otlp viewer",
            minutes=2, is_suite=False),
        # In a separate place, since SwiftPM allows only one build at a time in each.
        Job("swift-tests", "swift", "build", "--build-tests", *TESTS_PLACE, minutes=8,
            is_suite=False),
        Job("swift-hosts", python, f"{support}/swift_hosts.py", minutes=1.5, after=["build"],
            is_suite=False),
    ]


def suites(everything):
    python = sys.executable
    flags = ["--all"] if everything else []
    hosts, pypi = ["swift-hosts"], ["environments"]
    tests = [python, "Tests/TestSupport/unittests.py"]
    return [
        Job("swift", "swift", "test", "--skip-build", *TESTS_PLACE, minutes=6, share=0.65,
            after=["swift-tests"], selects="--filter"),
        Job("harness", *tests, "Tests/TestSupport", minutes=0.1),
        Job("oracle", *tests, "Tests/Oracle", minutes=0.2),
        Job("model", python, "Tests/Model/run.py", *flags, minutes=0.3, selects=""),
        Job("c-abi", python, "Tests/ABI/run.py", *flags, minutes=2, share=0.7),
        Job("python", python, "bindings/python/tests/run.py", minutes=1.2, share=0.3, after=pypi),
        Job("python-speed", python, "bindings/python/tests/run.py", "--accelerated", minutes=1.2,
            share=0.45, after=pypi),
        Job("consumers", *tests, "Tests/Consumers", minutes=1, after=hosts),
        Job("readme", python, "tools/check_readme.py", minutes=0.2, after=hosts),
        Job("age", python, "Tests/Age/age.py", *flags, share=0.4),
        Job("round-trip", python, "Tests/CLI/round_trip.py", *flags, minutes=0.4),
        Job("query", python, "Tests/Query/run.py", *flags, minutes=0.5, share=0.8),
        Job("viewer", python, "Tests/Viewer/run.py", *flags, minutes=0.8, share=0.6),
        Job("progress", python, "Tests/CLI/progress.py", minutes=0.3),
        Job("behaviour", python, "Tests/Behaviour/run.py", minutes=3, share=0.3,
            after=[*hosts, *pypi]),
        Job("transport", python, "Tests/Transport/run.py", share=0.3, after=pypi),
        Job("page", "node", "Tests/Viewer/page.mjs", minutes=0.1),
        Job("journeys", python, "Tests/Viewer/journeys.py", *flags, minutes=1.5, after=pypi),
        Job("crash", python, "Tests/Crash/crash.py", "--values", "--deaths",
            *(["--kills", "200", "--all"] if everything else []), minutes=0.9, share=0.8,
            after=hosts),
        Job("crash-points", python, "Tests/Crash/crash.py", "--points",
            *([] if everything else ["--sample", "80"]), minutes=1.5, share=0.35),
        Job("fuzz", python, "Tests/Fuzz/run.py", *flags, minutes=0.7),
        Job("hostile", python, "Tests/Hostile/hostile.py", *flags),
        Job("simulation", python, "Tests/Simulation/simulate.py", *flags, minutes=0.8,
            selects=""),
        Job("processes", python, "Tests/Processes/run.py", *flags, minutes=2, share=0.65),
        Job("signals", python, "Tests/Signals/run.py", minutes=0.7, share=0.7),
        # Each sanitizer builds the whole library again.
        Job("sanitizers", python, "Tests/Sanitizers/run.py",
            *([] if everything else ["undefined", "valgrind"]), minutes=0.5),
        Job("otlp", python, "Tests/OTLP/run.py", minutes=0.4, after=pypi),
        Job("servers", python, "Tests/Servers/run.py", "--part", "beside", *flags, minutes=3,
            share=0.7, after=pypi),
        Job("clocks", python, "Tests/Disk/run.py", "--part", "clocks", *flags, minutes=2.3,
            share=0.1),
        Job("disk", python, "Tests/Disk/run.py", "--part", "disks", *flags, minutes=1.8,
            timed=True),
        Job("server-times", python, "Tests/Servers/run.py", "--part", "alone", *flags,
            minutes=0.6, timed=True, after=pypi),
        Job("bench", *tests, "Benchmarks"),
        Job("demo", python, "tools/demo.py", alone=True, heavy=True, selects=""),
    ]


def swift_cases(text):
    """What XCTest says about each test case; one that began but did not end has failed."""
    found, begun = [], None
    for line in XCTEST.finditer(text):
        full, started, result, seconds = line.groups()
        group, _, name = full.rpartition(".")
        if started:
            begun = (name, group, line.end())
        else:
            said = text[begun[2]:line.start()].strip() if begun and result != "passed" else ""
            found.append(Outcome(name, SWIFT_RESULTS[result], float(seconds), said, group))
            begun = None
    if begun:
        name, group, start = begun
        found.append(Outcome(name, FAILED, 0.0, text[start:][-TEXT_MAX:].strip(), group))
    return found


def counts(text, code):
    """(passed, failed) of what a suite printed."""
    found = OURS.findall(text)
    if found:
        passed, failed = map(int, found[-1])
    elif "No matching test cases were run" in text or XCTEST.search(text):
        results = [outcome.result for outcome in swift_cases(text)]
        passed, failed = results.count(OK), results.count(FAILED)
    else:
        passed, failed = (1, 0) if code == 0 else (0, 1)
    if code != 0 and failed == 0 and (code != NOTHING or passed):
        failed = 1
    return passed, failed


def judged(name, text, report, code, seconds=0.0, selected=()):
    """(passed, failed, outcomes) of a suite, from its XML or else from its log; writes the XML. If
    only counts are known, they become one case of that many seconds. selected: patterns; without
    any, a suite in which nothing passed has failed."""
    passed, failed = counts(text, code)
    if not selected and not passed:
        failed = max(failed, 1)
    if report.exists():
        found = read_junit(report)
    elif not OURS.search(text) and XCTEST.search(text):
        found = swift_cases(text)
    else:
        found = [Outcome(name, OK, seconds, f"{passed} passed")] if passed and not failed else []
    if failed and not any(outcome.result == FAILED for outcome in found):
        found.append(Outcome(name, FAILED, 0.0 if found else seconds,
                             f"exit {code}\n{text[-TEXT_MAX:]}"))
    write_junit(report, found)
    return passed, failed, found


def slowest(suites_outcomes, count):
    """The (suite, outcome) pairs that took longest. suites_outcomes: (suite, its outcomes) each."""
    pairs = [(suite, outcome) for suite, found in suites_outcomes for outcome in found]
    return sorted(pairs, key=lambda pair: -pair[1].seconds)[:count]


class Result:
    """The result of a job in one round."""

    def __init__(self, job, passed, failed, minutes, seconds, found):
        self.job, self.passed, self.failed = job, passed, failed
        self.minutes, self.seconds, self.outcomes = minutes, seconds, found
        self.skipped = sum(outcome.result == SKIPPED for outcome in found)
        self.is_empty = job.is_suite and not found

    def __str__(self):
        numbers = f"{self.passed:7} {self.failed:7} {self.skipped or '':7}" \
            if self.job.is_suite or self.failed else f"{'':23}"
        return f"{self.job.name:12} {numbers} {self.minutes:8.1f} {self.seconds:8.0f}"


HEAD = f"{'suite':12} {'passed':>7} {'failed':>7} {'skipped':>7} {'minutes':>8} {'cpu s':>8}"


def stop(group, number):
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def drawn(arguments):
    """The seed of a run. Only --all draws a new one, so that no change fails by chance."""
    if arguments.seed is not None:
        return arguments.seed
    return random.SystemRandom().randrange(2, 1_000_000) if arguments.all else cases.SEED


class Runner:
    """Runs jobs in separate processes, and ends them when it ends."""

    def __init__(self, arguments):
        self.everything, self.jobs, self.patterns = arguments.all, arguments.jobs, arguments.k
        self.seed = drawn(arguments)
        self.reports = Path(arguments.junit).absolute() if arguments.junit else LOGS
        self.reports.mkdir(parents=True, exist_ok=True)
        self.running, self.busy = {}, []
        self.lock, self.news = threading.Lock(), threading.Condition()
        self.finished, self.made = [], set()

    def environment(self):
        # glibc overwrites freed memory, so that no test passes by luck on memory that is gone.
        found = dict(os.environ, MALLOC_PERTURB_="165",
                     CORDWOOD_LIBRARY=str(ROOT / "build/lib/libcordwood.so"),
                     PYTHONPATH=str(ROOT / "bindings/python/src"), PYTHONDONTWRITEBYTECODE="1",
                     TEST_SEED=str(self.seed))
        if self.everything:
            found["CORDWOOD_TEST_ALL"] = "1"
        if "swift-hosts" in self.made:
            found["TEST_SWIFT_HOSTS"] = "made"
        return found

    def run(self, job, log):
        """In a thread: runs the job to its end. Processes that it started are in its process group,
        and in its processor time once they have been waited for."""
        report = self.reports / f"{log.stem}.xml"
        report.unlink(missing_ok=True)
        environment, command = None, job.command
        if job.is_suite:
            environment = dict(self.environment(), TEST_JUNIT=str(report))
            command = job.narrowed(self.patterns)
        started = time.monotonic()
        with open(log, "wb") as file:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            with self.lock:
                self.running[process.pid] = process
            bound = threading.Timer(MINUTES_MAX * 60, stop, (process.pid, signal.SIGINT))
            bound.start()
            _, status, usage = os.wait4(process.pid, 0)
            bound.cancel()
            process.returncode = code = os.waitstatus_to_exitcode(status)
            with self.lock:
                del self.running[process.pid]
            stop(process.pid, signal.SIGKILL)  # what it left running
        minutes = (time.monotonic() - started) / 60
        text = log.read_text(errors="replace")
        if not job.is_suite and (warned := WARNING.findall(text)):
            code = code or 1
            text += "\n".join(["\nFAIL a build without warnings:", *warned, ""])
            log.write_text(text)
        passed, failed, found = 0, 0, []
        if job.is_suite:
            passed, failed, found = judged(job.name, text, report, code, minutes * 60,
                                           self.patterns)
        elif code:
            _, failed, found = judged(job.name, text, report, code, minutes * 60)
        result = Result(job, passed, failed, minutes, usage.ru_utime + usage.ru_stime, found)
        with self.news:
            self.finished.append(result)
            self.news.notify()

    def loops(self, count):
        """Keeps `count` busy loops running from now on."""
        while len(self.busy) > count:
            process = self.busy.pop()
            process.kill()
            process.wait()
        while len(self.busy) < count:
            self.busy.append(subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]))

    def all(self, jobs, suffix="", beside=0):
        """Yields each result as it comes."""
        known = {job.name for job in jobs}
        waiting = sorted(jobs, key=lambda job: (job.alone, job.timed, -self.weight(job, jobs)))
        done, active = set(), []
        while waiting or active:
            for job in list(waiting):
                if job.alone and (active or job is not waiting[0]):
                    break
                if active and not self.fits([*active, job]):
                    continue
                if set(job.after) & known - done:
                    continue
                self.loops(0 if job.timed else beside)
                waiting.remove(job)
                active.append(job)
                threading.Thread(target=self.run, daemon=True,
                                 args=(job, LOGS / f"{job.name}{suffix}.log")).start()
                if job.alone:
                    break
            with self.news:
                self.news.wait_for(lambda: self.finished)
                results, self.finished = self.finished, []
            for result in results:
                active.remove(result.job)
                done.add(result.job.name)
                if not result.job.is_suite and not result.failed:
                    self.made.add(result.job.name)
                yield result

    def fits(self, jobs):
        if self.jobs == 1:
            return len(jobs) == 1
        return round(sum(job.share for job in jobs), 3) <= self.jobs * FULL

    @staticmethod
    def weight(job, jobs):
        """Its minutes, plus those of the longest job that waits for it."""
        return job.minutes + max((Runner.weight(other, jobs) for other in jobs
                                  if job.name in other.after), default=0)

    def end(self):
        """Ends the loops and what still runs: first like Ctrl-C, so that suites unmount what they
        have mounted."""
        self.loops(0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.lock:
                left = list(self.running)
            for group in left:
                stop(group, number)
            until = time.monotonic() + GRACE_S
            while time.monotonic() < until:
                with self.lock:
                    if not self.running:
                        return
                time.sleep(0.05)


def chosen(arguments):
    """(what must be made before, the suites)."""
    only = arguments.only.split(",") if arguments.only else None
    every = suites(arguments.all)
    names = {suite.name for suite in every}
    if only is not None and set(only) - names:
        sys.exit(f"run_suites: no such suite: {', '.join(sorted(set(only) - names))}; there are "
                 f"{', '.join(sorted(names))}")
    picked = [suite for suite in every
              if (suite.name in only if only is not None else arguments.all or not suite.heavy)]
    if arguments.k:
        if unable := [suite.name for suite in picked if not suite.selects]:
            print(f"-k selects nothing of {', '.join(unable)}: left out")
        picked = [suite for suite in picked if suite.selects]
    needed = {"build", *(name for suite in picked for name in suite.after)}
    return [job for job in makes() if job.name in needed], picked


def told(result, suffix):
    """Prints a result as soon as it is known, and of a failure the end of its log."""
    if result.is_empty:
        return
    print(result, flush=True)
    if result.failed:
        name = f"{result.job.name}{suffix}.log"
        tail = "\n".join((LOGS / name).read_text(errors="replace").splitlines()[-60:])
        print(f"--- {result.job.name}, the end of build/test-logs/{name}\n{tail}\n---", flush=True)


def rounds(runner, arguments, results):
    """Runs everything; adds results in the order they come."""
    made, picked = chosen(arguments)
    for number in range(1, arguments.repeat + 1):
        suffix = "" if arguments.repeat == 1 else f".{number}"
        if suffix:
            print(f"== round {number} of {arguments.repeat}, beside {arguments.beside} busy loops",
                  flush=True)
        # Busy loops start with the suites; builds and installs run without them.
        steps = [(made, 0), (picked, arguments.beside)] if arguments.beside else \
            [([*made, *picked], 0)]
        for jobs, beside in steps:
            for result in runner.all(jobs, suffix, beside):
                results.append(result)
                told(result, suffix)
                if result.job.name == "build" and result.failed:
                    return
        made = []


def at_least(least):
    def number(text):
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"at least {least}")
        return int(text)
    return number


def interrupt(*_):
    """Stops the run. Further signals are ignored while it shuts down, half a minute at most."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(prog="./dev test")
    parser.add_argument("--all", action="store_true", help="the heavy suites, too")
    parser.add_argument("--seed", type=int, metavar="N",
                        help=f"of what is random ({cases.SEED}; --all draws a new one)")
    parser.add_argument("--only", help="suites to run, separated by commas")
    parser.add_argument("--repeat", type=at_least(1), default=1, metavar="N",
                        help="all of it N times")
    parser.add_argument("--beside", type=at_least(0), default=0, metavar="N",
                        help="beside N busy loops, but for what measures times")
    parser.add_argument("--jobs", type=at_least(1), default=min(JOBS, os.cpu_count() or 1),
                        metavar="N", help=f"suites at a time ({JOBS})")
    parser.add_argument("-k", nargs="+", action="extend", default=[], metavar="PATTERN",
                        help="only cases that have one of these in their names")
    parser.add_argument("--junit", metavar="DIR",
                        help="where each suite's XML goes (build/test-logs)")
    parser.add_argument("--durations", type=at_least(0), default=0, metavar="N",
                        help="the N slowest cases")
    arguments = parser.parse_args()
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    started = time.monotonic()
    runner, results = Runner(arguments), []
    print(f"seed {runner.seed}\n{HEAD}", flush=True)
    try:
        rounds(runner, arguments, results)
    except KeyboardInterrupt:
        print("run_suites: interrupted; what still runs is ended", file=sys.stderr)
        return 130
    finally:
        runner.end()
    print(f"\n{HEAD}\n" + "\n".join(str(result) for result in results
                                     if not result.is_empty))
    print(f"{'all':12} {'':23} {(time.monotonic() - started) / 60:8.1f} "
          f"{sum(result.seconds for result in results):8.0f}")
    for suite, outcome in slowest([(result.job.name, result.outcomes) for result in results],
                                  arguments.durations):
        print(f"{outcome.seconds:9.2f} s  {suite:12} {outcome.full}")
    passed = sum(result.passed for result in results)
    failed = sum(result.failed for result in results)
    if arguments.k and not any(result.outcomes for result in results):
        print(f"run_suites: no case has {' or '.join(arguments.k)} in its name", file=sys.stderr)
    if failed and runner.seed != cases.SEED:
        print(f"again with what was drawn at random: --seed {runner.seed}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
