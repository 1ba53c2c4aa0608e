#!/usr/bin/env python3
"""`./dev test`: runs every suite, reads the counts it prints, and sums them into one last line.

A run has a size: the core, --full or --all (Tests/TestSupport/cases.py). The table of suites below
has what each may cost in the core, its budget. A core that costs one and a half times the sum, at
the speed of this machine at this moment, is measured again, and the second time it has failed.

A suite is a command; its counts are the last `N passed, N failed` it prints. A suite that fails
without naming a failed test counts as one failure. Each leaves JUnit XML, which suites in Python
write themselves (Tests/TestSupport/cases.py).

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
import swift_tests  # noqa: E402
from cases import (FAILED, NOTHING, OK, SIZES, SKIPPED, Outcome, read_junit,  # noqa: E402
                   write_junit)
from settings import own_environment  # noqa: E402

LOGS = ROOT / "build/test-logs"
# A compiler's. Those of a linker about the toolchain's own libraries are not ours to fix.
WARNING = re.compile(r"^/\S+:\d+:\d+: warning: .*$", re.M)
OURS = re.compile(r"(\d+) passed, (\d+) failed")
TEXT_MAX = 20_000  # of what a suite printed, in its XML
JOBS = 2
FULL = 1.15  # of the processors, in shares
MINUTES_MAX = 60  # of a job
GRACE_S = 10
# How far over its budget the core may be, and what loop() took when the budgets were measured.
OVER_MAX = 1.5
LOOP_S = 0.5
# Runs as long as its parent lives; its work does not matter.
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(1 << 20): pass"


# A fixed piece of work, which prints the processor seconds that it took.
LOOP = """
import time
started, number = time.process_time(), 0
for step in range(8_000_000):
    number = (number * 31 + step) & 0xFFFF
print(time.process_time() - started)
"""


def loop():
    """The machine's speed at this moment, as suites that run beside each other have it: the mean
    of a fixed piece of work on each processor at once. (Two are slower than one alone.)"""
    runs = [subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE, text=True)
            for _ in os.sched_getaffinity(0)]
    return sum(float(run.communicate()[0]) for run in runs) / len(runs)


class Job:
    """A suite, or what is made for suites. seconds: of processor time; of a suite, its budget in
    the core. share: the part of the time during which it uses a processor, which with the seconds
    decides the order. after: what must be made before. alone: nothing runs beside it. timed: nor do
    busy loops. size: the smallest run that has it. selects: whether it takes patterns."""

    def __init__(self, name, *command, seconds=0, share=1.0, after=(), alone=False, timed=False,
                 size="core", is_suite=True, selects=True):
        self.name, self.command, self.seconds, self.share = name, command, seconds, share
        self.after = ["build", *after] if is_suite else after
        self.alone, self.timed = alone or timed, timed
        self.size, self.is_suite, self.selects = size, is_suite, selects

    def narrowed(self, patterns):
        """The command that runs only the cases with one of these in their names."""
        return [*self.command, "-k", *patterns] if patterns else [*self.command]


def makes():
    """What suites share. A suite that runs by itself makes it itself."""
    python, support = sys.executable, "Tests/TestSupport"
    return [
        Job("build", "tools/build.sh", seconds=260, is_suite=False),
        # Debian packages, too: two installations at the same time would wait or fail.
        Job("environments", "bash", "-c",
            f"set -e; Tests/Servers/install.sh {python}; "
            f"{python} {support}/environments.py http otlp viewer",
            seconds=60, is_suite=False),
        # In a separate place, since SwiftPM allows only one build at a time in each.
        Job("swift-tests", *swift_tests.BUILD, seconds=190, is_suite=False),
        Job("swift-hosts", python, f"{support}/swift_hosts.py", seconds=60, after=["build"],
            is_suite=False),
    ]


def suites():
    python = sys.executable
    hosts, pypi = ["swift-hosts"], ["environments"]
    tests = [python, "Tests/TestSupport/unittests.py"]
    return [
        Job("swift", python, "Tests/TestSupport/swift_tests.py", seconds=105, share=1.5,
            after=["swift-tests"]),
        Job("harness", *tests, "Tests/TestSupport", seconds=4),
        Job("oracle", *tests, "Tests/Oracle", seconds=15),
        Job("model", python, "Tests/Model/run.py", seconds=17, selects=False),
        Job("c-abi", python, "Tests/ABI/run.py", seconds=24, share=0.7),
        Job("python", python, "bindings/python/tests/run.py", seconds=19, share=0.3, after=pypi),
        Job("python-speed", python, "bindings/python/tests/run.py", "--accelerated", seconds=17,
            share=0.45, after=pypi),
        Job("consumers", *tests, "Tests/Consumers", seconds=45, after=hosts),
        Job("readme", python, "tools/check_readme.py", seconds=5, after=hosts),
        Job("age", python, "Tests/Age/age.py", seconds=6, share=0.4),
        Job("round-trip", python, "Tests/CLI/round_trip.py", seconds=6),
        Job("query", python, "Tests/Query/run.py", seconds=6, share=0.8),
        Job("viewer", python, "Tests/Viewer/run.py", seconds=28, share=0.6),
        Job("progress", python, "Tests/CLI/progress.py", seconds=2),
        Job("behaviour", python, "Tests/Behaviour/run.py", seconds=43, share=0.3,
            after=[*hosts, *pypi]),
        Job("transport", python, "Tests/Transport/run.py", seconds=8, share=0.3, after=pypi),
        Job("page", "node", "Tests/Viewer/page.mjs", seconds=1),
        Job("journeys", python, "Tests/Viewer/journeys.py", seconds=20, after=pypi),
        Job("crash", python, "Tests/Crash/crash.py", "--values", "--deaths", seconds=17, share=0.8,
            after=hosts),
        Job("crash-points", python, "Tests/Crash/crash.py", "--points", seconds=14, share=0.35),
        Job("fuzz", python, "Tests/Fuzz/run.py", seconds=11),
        Job("hostile", python, "Tests/Hostile/hostile.py", seconds=20),
        Job("simulation", python, "Tests/Simulation/simulate.py", seconds=6, selects=False),
        Job("processes", python, "Tests/Processes/run.py", seconds=23, share=0.65,
            after=hosts),
        Job("signals", python, "Tests/Signals/run.py", seconds=7, share=0.7),
        Job("sanitizers", python, "Tests/Sanitizers/run.py", seconds=11),
        Job("otlp", python, "Tests/OTLP/run.py", seconds=3, after=pypi),
        Job("servers", python, "Tests/Servers/run.py", "--part", "beside", seconds=17, share=0.7,
            after=pypi),
        Job("clocks", python, "Tests/Disk/run.py", "--part", "clocks", seconds=2, share=0.1),
        Job("disk", python, "Tests/Disk/run.py", "--part", "disks", seconds=18, timed=True),
        Job("server-times", python, "Tests/Servers/run.py", "--part", "alone", timed=True,
            size="full", after=pypi),
        Job("bench", *tests, "Benchmarks", seconds=3),
        Job("demo", python, "tools/demo.py", alone=True, size="all", selects=False),
    ]


def counts(text, code):
    """(passed, failed) of what a suite printed."""
    found = OURS.findall(text)
    if found:
        passed, failed = map(int, found[-1])
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
    """The result of a job in one round. budget: processor seconds; none outside of the core."""

    def __init__(self, job, passed, failed, minutes, seconds, found, budget=None):
        self.job, self.passed, self.failed, self.budget = job, passed, failed, budget
        self.minutes, self.seconds, self.outcomes = minutes, seconds, found
        self.skipped = sum(outcome.result == SKIPPED for outcome in found)
        self.is_empty = job.is_suite and not found

    def __str__(self):
        numbers = f"{self.passed:7} {self.failed:7} {self.skipped or '':7}" \
            if self.job.is_suite or self.failed else f"{'':23}"
        return (f"{self.job.name:12} {numbers} {self.minutes:8.1f} {self.seconds:8.0f} "
                f"{self.budget or '':8}")


HEAD = (f"{'suite':12} {'passed':>7} {'failed':>7} {'skipped':>7} {'minutes':>8} {'cpu s':>8} "
        f"{'budget':>8}")


def stop(group, number):
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def drawn(arguments):
    """The seed of a run. Only --all draws a new one, so that no change fails by chance."""
    if arguments.seed is not None:
        return arguments.seed
    return random.SystemRandom().randrange(2, 1_000_000) if arguments.size == "all" \
        else cases.SEED


class Runner:
    """Runs jobs in separate processes, and ends them when it ends."""

    def __init__(self, arguments):
        self.size, self.jobs, self.patterns = arguments.size, arguments.jobs, arguments.k
        self.seed = drawn(arguments)
        self.reports = Path(arguments.junit).absolute() if arguments.junit else LOGS
        self.reports.mkdir(parents=True, exist_ok=True)
        self.running, self.busy = {}, []
        self.lock, self.news = threading.Lock(), threading.Condition()
        self.finished, self.made = [], set()

    def environment(self):
        # glibc overwrites freed memory, so that no test passes by luck on memory that is gone.
        found = own_environment(
            MALLOC_PERTURB_="165", CORDWOOD_LIBRARY=str(ROOT / "build/lib/libcordwood.so"),
            PYTHONPATH=str(ROOT / "bindings/python/src"), PYTHONDONTWRITEBYTECODE="1",
            TEST_SEED=str(self.seed), TEST_SIZE=self.size)
        for name in {"swift-hosts", "swift-tests"} & self.made:
            found[f"TEST_{name.upper().replace('-', '_')}"] = "made"
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
        budget = job.seconds if job.is_suite and self.size == "core" else None
        result = Result(job, passed, failed, minutes, usage.ru_utime + usage.ru_stime, found,
                        budget)
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
        """About its seconds by the clock, plus those of the longest job that waits for it."""
        return job.seconds / job.share + max((Runner.weight(other, jobs) for other in jobs
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
    names = {suite.name for suite in suites()}
    if only is not None and set(only) - names:
        sys.exit(f"run_suites: no such suite: {', '.join(sorted(set(only) - names))}; there are "
                 f"{', '.join(sorted(names))}")
    picked = [suite for suite in suites()
              if (suite.name in only if only is not None else
                  SIZES.index(suite.size) <= SIZES.index(arguments.size))]
    if arguments.k:
        if unable := [suite.name for suite in picked if not suite.selects]:
            print(f"-k selects nothing of {', '.join(unable)}: left out")
        picked = [suite for suite in picked if suite.selects]
    needed = {"build", *(name for suite in picked for name in suite.after)}
    return [job for job in makes() if job.name in needed], picked


def told(result, suffix=""):
    """Prints a result as soon as it is known. Of a failure, what failed and why, or if no case did,
    the end of its log."""
    if result.is_empty:
        return
    print(result, flush=True)
    if result.failed:
        name = f"{result.job.name}{suffix}.log"
        lines = [line for outcome in result.outcomes if outcome.result == cases.FAILED
                 for line in (f"FAILED {outcome.full}",
                              *outcome.text.strip("\n").splitlines()[-20:])]
        if not lines:
            lines = (LOGS / name).read_text(errors="replace").splitlines()
        tail = "\n".join(lines[-60:])
        print(f"--- {result.job.name}, of build/test-logs/{name}\n{tail}\n---", flush=True)


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


def over(results, slowness):
    """Those over their budgets on a machine that is so much slower than the budgets' own, if their
    sum is over, too."""
    allowed = OVER_MAX * slowness
    found = [result for result in results if result.budget]
    if sum(result.seconds for result in found) <= allowed * sum(r.budget for r in found):
        return []
    return [result for result in found if result.seconds > allowed * result.budget]


def over_twice(runner, results, before):
    """The suites over their budgets, again after they have run once more, by themselves. Those
    results replace the first, unless these failed. before: what loop() took before the first
    time."""
    after = loop()
    late = over(results, (before + after) / 2 / LOOP_S)
    if late:
        print(f"over the budget, so once more: {', '.join(result.job.name for result in late)}")
        again = {}
        for result in runner.all([result.job for result in late]):
            again[result.job] = result
            told(result)
        results[:] = [again.get(result.job, result) if not result.failed else result
                      for result in results]
        late = over(results, (after + loop()) / 2 / LOOP_S)
    return late


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
    parser.add_argument("--full", action="store_const", dest="size", const="full",
                        help="what work must pass before it counts as done")
    parser.add_argument("--all", action="store_const", dest="size", const="all",
                        help="more rounds, by a new seed, and what takes minutes")
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
    # A case that is named runs, although the core leaves it out.
    arguments.size = arguments.size or ("full" if arguments.k else "core")
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    started = time.monotonic()
    runner, results, late = Runner(arguments), [], []
    print(f"{arguments.size}, seed {runner.seed}\n{HEAD}", flush=True)
    try:
        before = loop()
        rounds(runner, arguments, results)
        if arguments.repeat == 1 and not arguments.beside:
            late = over_twice(runner, results, before)
    except KeyboardInterrupt:
        print("run_suites: interrupted; what still runs is ended", file=sys.stderr)
        return 130
    finally:
        runner.end()
    print(f"\n{HEAD}\n" + "\n".join(str(result) for result in results
                                     if not result.is_empty))
    print(f"{'all':12} {'':23} {(time.monotonic() - started) / 60:8.1f} "
          f"{sum(result.seconds for result in results):8.0f}")
    in_suites = [result for result in results if result.job.is_suite]
    print(f"{'suites':12} {'':32} {sum(result.seconds for result in in_suites):8.0f} "
          f"{sum(result.budget or 0 for result in in_suites) or '':8}; the fixed loop took "
          f"{before / LOOP_S:.2f} of its usual time before them")
    for suite, outcome in slowest([(result.job.name, result.outcomes) for result in results],
                                  arguments.durations):
        print(f"{outcome.seconds:9.2f} s  {suite:12} {outcome.full}")
    passed = sum(result.passed for result in results)
    failed = sum(result.failed for result in results) + len(late)
    for result in late:
        print(f"FAIL {result.job.name} costs {result.seconds:.0f} s, its budget is "
              f"{result.budget} s (tools/run_suites.py)")
    if arguments.k and not any(result.outcomes for result in results):
        print(f"run_suites: no case has {' or '.join(arguments.k)} in its name", file=sys.stderr)
    if failed and runner.seed != cases.SEED:
        print(f"again with what was drawn at random: --seed {runner.seed}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
