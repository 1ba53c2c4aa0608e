#!/usr/bin/env python3
"""What a log call costs in Python, beside a bare ctypes call and the peers, in one run.

    python3 Benchmarks/python_calls.py [--rounds N] [--only NAME,…]

Each way has its own process and its own store or file. The processes take turns, a burst each, so
that noise affects all alike. Peers are those of the interpreter that runs this (pip install
picologging loguru structlog); a missing one is left out and named. Each writes time, level, name,
file, line, function and message, as Cordwood keeps them, to a file and flushes it.

The table: ns a call in bursts (loop subtracted, each after an unmeasured one): mean, median burst,
and the median of its ratios to the bare call's burst of the same round; then calls timed one by one
(clock subtracted): p50, p99, p99.9, max; then records written, and records found on file
afterwards. The last line is the same as JSON.
"""
import argparse
import functools
import importlib
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = "%(asctime)s %(levelname)s %(name)s %(pathname)s:%(lineno)d %(funcName)s %(message)s"
CALLS = 500
PROCESSORS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


# ── What is called: each gives (call, end); end closes and says how many records are on file ──────

def cordwood_store(path):
    import cordwood
    engine = cordwood.open(path)
    log = engine.logger("bench")

    def end():
        engine.close()
        return sum(1 for record in cordwood.read(path, logger="bench"))
    return engine, log, end


def bare(path):
    """A call of cw_write by ctypes, with prototypes; text, level and length are ready."""
    import ctypes

    from cordwood import _abi
    engine, _, end = cordwood_store(path)
    handle = ctypes.c_void_p()
    _abi.library.cw_logger_get(engine._handle, b"bench", handle)
    write, logger, text = _abi.quick.cw_write, handle.value, b"order 7"
    return lambda: write(logger, 9, text, 7), end


def formatted(path):
    _, log, end = cordwood_store(path)
    return lambda: log.info("order %d", 7), end


def field(path):
    _, log, end = cordwood_store(path)
    return lambda: log.info("order %d", 7, price=1.5), end


def constant(path):
    _, log, end = cordwood_store(path)
    return lambda: log.info("order is done"), end


def disabled(path):
    _, log, end = cordwood_store(path)
    return lambda: log.debug("order %d", 7), end


def stdlib(path, library, handler, end):
    log = library.getLogger("bench")
    log.setLevel(20)
    log.propagate = False
    log.addHandler(handler)
    return lambda: log.info("order %d", 7), end


def handler(path):
    import logging

    import cordwood
    engine, _, end = cordwood_store(path)
    return stdlib(path, logging, cordwood.Handler(engine), end)


def logging_alone(path):
    """The cost of `logging` before any handler writes."""
    import logging
    return stdlib(path, logging, logging.NullHandler(), lambda: 0)


def lines(path):
    return sum(1 for line in open(path, encoding="utf-8"))


def to_file(path, library):
    handler = library.FileHandler(path)
    handler.setFormatter(library.Formatter(LINE))

    def end():
        handler.close()
        return lines(path)
    return stdlib(path, library, handler, end)


def logging_file(path):
    import logging
    return to_file(path, logging)


def picologging_file(path):
    import picologging
    return to_file(path, picologging)


def loguru_file(path):
    from loguru import logger
    logger.remove()
    logger.add(path, level="INFO",
               format="{time} {level} {name} {file.path}:{line} {function} {message}")

    def end():
        logger.remove()
        return lines(path)
    return lambda: logger.info("order {}", 7), end


def structlog_file(path):
    import structlog
    place = structlog.processors.CallsiteParameter
    out = open(path, "w", encoding="utf-8")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.CallsiteParameterAdder(
                [place.PATHNAME, place.LINENO, place.FUNC_NAME]),
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.KeyValueRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=structlog.WriteLoggerFactory(file=out), cache_logger_on_first_use=True)
    log = structlog.get_logger("bench")

    def end():
        out.close()
        return lines(path)
    return lambda: log.info("order %d", 7), end


BARE, ALONE = "bare ctypes call", "logging alone"
# Name, what makes the call, the accelerator (None: does not matter), the peer's package.
WAYS = [
    (BARE, bare, None, None),
    ("ctypes formatted", formatted, False, None),
    ("ctypes one field", field, False, None),
    ("ctypes constant", constant, False, None),
    ("ctypes disabled", disabled, False, None),
    ("ctypes Handler", handler, False, None),
    ("speed formatted", formatted, True, None),
    ("speed one field", field, True, None),
    ("speed constant", constant, True, None),
    ("speed disabled", disabled, True, None),
    ("speed Handler", handler, True, None),
    (ALONE, logging_alone, None, "logging"),
    ("logging FileHandler", logging_file, None, "logging"),
    ("picologging FileHandler", picologging_file, None, "picologging"),
    ("loguru file", loguru_file, None, "loguru"),
    ("structlog file", structlog_file, None, "structlog"),
]


# ── One way, in a process of its own ──────────────────────────────────────────────────────────────

def work(name, path):
    """Answers each line on stdin with a burst's ns, the last one with what was timed and kept."""
    call, end = next(make for title, make, _, _ in WAYS if title == name)(path)
    clock = time.perf_counter_ns
    nothing = (lambda: None)
    call()
    timed = []
    answer = sys.stdout
    stay_on = functools.partial(getattr(os, "sched_setaffinity", lambda *_: None), 0)
    processors = set(PROCESSORS)

    def burst(what):
        begun = clock()
        for _ in range(CALLS):
            what()
        return (clock() - begun) / CALLS

    print("ready", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        # All ways of a round run on one processor, the next round's on another, since processors
        # differ in speed. The engine's helpers may use all, and so may the single calls.
        stay_on({int(line)})
        burst(call)  # warms what the pause has cooled
        empty = burst(nothing)
        print(burst(call) - empty, file=answer, flush=True)
        stay_on(processors)
        for _ in range(CALLS):
            begun = clock()
            call()
            timed.append(clock() - begun)
    alone = sorted(clock() - clock() for _ in range(1000))
    timed = sorted(max(0, value + alone[500]) for value in timed)  # alone is negative

    def at(share):
        return timed[min(len(timed) - 1, int(len(timed) * share))]
    records = 0 if name.endswith("disabled") or name == ALONE else 1 + 3 * len(timed)
    print(json.dumps({"p50": at(0.5), "p99": at(0.99), "p99.9": at(0.999), "max": timed[-1],
                      "records": records, "kept": end()}), flush=True)


def count(name, calls, path):
    """Calls and nothing else, for callgrind: neither archived nor read back."""
    call, _ = next(make for title, make, _, _ in WAYS if title == name)(path)
    for _ in range(int(calls)):
        call()
    os._exit(0)


class Worker:
    """The process of one way."""

    def __init__(self, name, directory, package, accelerated):
        self.name, self.bursts = name, []
        environment = {**os.environ, "PYTHONPATH": str(package),
                       "CORDWOOD_PYTHON_ACCELERATOR": "1" if accelerated else "0",
                       "CORDWOOD_LIBRARY": os.environ.get(
                           "CORDWOOD_LIBRARY", str(ROOT / "build/lib/libcordwood.so"))}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", name, str(Path(directory) / name)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"{name}: did not start")

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def burst(self, processor):
        self.bursts.append(float(self.ask(str(processor))))

    def end(self, bare, alone):
        """Its figures. bare, alone: the bursts of these ways, each of the same round as ours."""
        found = json.loads(self.ask("end"))
        self.process.communicate()
        out = {"mean": round(sum(self.bursts) / len(self.bursts), 1),
               "burst_p50": round(statistics.median(self.bursts), 1), **found}
        if bare:
            out["of_bare"] = round(statistics.median(
                ours / its for ours, its in zip(self.bursts, bare)), 2)
        if alone and self.name.endswith("Handler"):
            out["of_logging"] = round(statistics.median(
                ours / its for ours, its in zip(self.bursts, alone)), 2)
        return out


def accelerated_package():
    """The package with its accelerator, built now; None without a compiler."""
    sys.path.insert(0, str(ROOT / "bindings/python/tests"))
    try:
        return importlib.import_module("run").build()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the accelerator is not built: {error}")
        return None


def version_of(package):
    if package == "logging":
        return platform.python_version()
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def show(out):
    print(f"{'ns a call':24} {'mean':>8} {'median':>8} {'× bare':>7} {'p50':>8} {'p99':>8} "
          f"{'p99.9':>8} {'max':>10} {'records':>8} {'kept':>8}")
    for name, row in out.items():
        ratio = f"{row['of_bare']:7.2f}" if "of_bare" in row else f"{'':7}"
        print(f"{name:24} {row['mean']:8.0f} {row['burst_p50']:8.0f} {ratio} {row['p50']:8} "
              f"{row['p99']:8} {row['p99.9']:8} {row['max']:10} {row['records']:8} "
              f"{row['kept']:8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help=f"bursts of {CALLS} calls each")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--count", nargs=3, help="a name, calls, a new directory: for callgrind")
    arguments = parser.parse_args()
    if arguments.count:
        count(*arguments.count)
        return 0
    if arguments.work:
        work(*arguments.work)
        return 0
    only = arguments.only.split(",") if arguments.only else None
    speed = accelerated_package()
    print(f"{platform.python_implementation()} {platform.python_version()}, "
          f"{platform.machine()}, {platform.system()} {platform.release()}")
    workers = []
    with tempfile.TemporaryDirectory() as directory:
        for name, _, accelerated, peer in WAYS:
            if only is not None and name not in only:
                continue
            if accelerated and speed is None:
                continue
            if peer is not None:
                version = version_of(peer)
                print(f"{peer}: {version or 'not installed'}")
                if version is None:
                    continue
            workers.append(Worker(name, directory, speed if accelerated else
                                  ROOT / "bindings/python/src", accelerated))
        for number in range(arguments.rounds):
            for worker in workers:
                worker.burst(PROCESSORS[number % len(PROCESSORS)])
        bare, alone = (next((worker.bursts for worker in workers if worker.name == name), [])
                       for name in (BARE, ALONE))
        out = {worker.name: worker.end(bare, alone) for worker in workers}
    show(out)
    print(json.dumps(out))
    lost = [name for name, row in out.items() if row["records"] != row["kept"]]
    if lost:
        print(f"not all records were on file: {', '.join(lost)}", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
