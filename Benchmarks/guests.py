"""Benchmarks in other languages. Each is a program whose last line is a JSON object: for each name
{"mean", "p50", "p99", "p99.9", "max", "records", "kept", …}, where kept counts the records on file,
and `instructions` if it counts them.

Python's peers come from PyPI (requirements.txt). A missing peer is noted and fails nothing."""

import json
import os
import re
import subprocess
import sys

import hot
from house import HERE, KEPT, ROOT, WORKLOADS, last_json, output

sys.path.insert(0, str(ROOT / "Tests/TestSupport"))

import environments  # noqa: E402
import swift_hosts  # noqa: E402

RUN_WAIT_S = 1800
PYTHON_COUNTS = (2_000, 12_000)


def venv(house, install):
    """The interpreter with the peers from PyPI that could be installed, or our own."""
    if install and environments.interpreter("bench") is None:
        house.note("PyPI did not give all of Python's peers: what it did not is left out")
    if python := environments.partly_made("bench"):
        return python
    house.note("Python's peers of PyPI are left out (./dev bench python installs them)")
    return sys.executable


def take(house, part, command, environment):
    """Runs the command and adds one row for each name."""
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT,
                              env=dict(os.environ, **environment), timeout=RUN_WAIT_S)
        found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        done, found = None, None
        house.note(f"{part}: {error}")
    house.gate(f"{part}: its benchmark runs", int(found is None), 0)
    for name, figures in (found or {}).items():
        if isinstance(figures, dict) and "mean" in figures:
            if isinstance(figures.get("kept"), int):
                figures["on_file"] = figures.pop("kept")
            house.add(part, name, figures.pop("workload", ""), figures.pop("mode", "calls"),
                      figures, kept=figures.pop("kept", ""))
        else:
            house.more.setdefault(part, {})[name] = figures


def python_counts(house, script):
    """Instructions a call, the interpreter's included; no peer's package is involved."""
    sys.path.insert(0, str(ROOT / "bindings/python/tests"))
    import run
    try:
        package = run.build()
    except (OSError, subprocess.CalledProcessError) as error:
        house.note(f"Python's instructions are not counted: {error}")
        return
    seen, limits = {}, house.limits["python_instructions"]
    for name in ("speed one field", "speed formatted", "speed Handler", "logging alone"):
        totals = [int(re.search(r"Collected\s*:\s*(\d+)", subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={house.where()}/callgrind",
             sys.executable, str(script), "--count", name, str(calls), str(house.where())],
            check=True, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=dict(os.environ, PYTHONPATH=str(package), PYTHONHASHSEED="0",
                     PYTHONDONTWRITEBYTECODE="1", CORDWOOD_PYTHON_ACCELERATOR="1",
                     CORDWOOD_LIBRARY=str(ROOT / "build/lib/libcordwood.so"))).stderr)[1])
            for calls in PYTHON_COUNTS]
        seen[name] = round((totals[1] - totals[0]) / (PYTHON_COUNTS[1] - PYTHON_COUNTS[0]), 1)
        if name in limits:
            house.gate(f"python, {name}: instructions a call", seen[name], limits[name])
    ratio = round(seen["speed Handler"] / seen["logging alone"], 3)
    house.gate("python, Handler: instructions of those of `logging` alone", ratio,
               limits["handler_of_logging"])
    house.more["python_instructions"] = seen


def python(house, install):
    script = HERE / "python_calls.py"
    if not script.exists():
        house.note("no Benchmarks/python_calls.py: Python is left out")
        return
    command = [venv(house, install), str(script)]
    if house.quick:
        command += ["--rounds", "12"]
    else:
        python_counts(house, script)
    take(house, "python", command, {
        "CORDWOOD_LIBRARY": str(ROOT / "build/lib/libcordwood.so"),
        "PYTHONPATH": str(ROOT / "bindings/python/src"), "PYTHONDONTWRITEBYTECODE": "1"})


SWIFT_LOADS = (*WORKLOADS, "off", "fields", "context", "swiftlog-cordwood", "swiftlog-stream")


def swift_program(house):
    """The program without debug information, unreadable to valgrind. None: it does not build."""
    try:
        built = swift_hosts.program("HotSwift")
    except (OSError, subprocess.CalledProcessError) as error:
        house.gate("swift: its benchmark builds", 1, 0)
        house.note(f"Benchmarks/swift does not build: {error}")
        return None
    house.gate("swift: its benchmark builds", 0, 0)
    program = house.folder / "hotswift"
    subprocess.run(["strip", "-g", "-o", program, built], check=True)
    return str(program)


def swift(house):
    """Times of Swift's messages, and of swift-log over our handler and over its own; the counts
    gate."""
    program = swift_program(house)
    if program is None:
        return
    bursts = house.few(150, 3_000)
    for load in SWIFT_LOADS:
        is_peer = load == "swiftlog-stream"
        figures = last_json(output(program, house.where() / "x", "bursts",
                                   bursts // 10 if is_peer else bursts, load))[load]
        figures["on_file"] = figures["records"]  # the program has read them back
        engine = "swift-log's stream" if is_peer else (
            "swift-log, cordwood" if load == "swiftlog-cordwood" else "cordwood Swift")
        house.add("swift", engine, "w2" if load.startswith("swiftlog") else load, "bursts",
                  figures, kept="no: a C stream" if is_peer else "–" if load == "off" else KEPT)
    seen = house.more.setdefault("instructions_per_record", {}).setdefault("swift", {})
    limits = house.limits["instructions_per_record"]["swift"]
    figures = house.each(hot.instructions, [(house, program, load) for load in limits])
    for (load, limit), figure in zip(limits.items(), figures):
        seen[load] = figure
        house.gate(f"swift {load}: instructions a record", figure, limit)
        said = last_json(output(program, house.where(), "costs", 200, load))
        house.gate(f"swift {load}: allocations", said["allocations"], house.limits["allocations"])
