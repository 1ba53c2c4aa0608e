"""Benchmarks in other languages, each a program that prints as its last line JSON: an object of
{"mean", "p50", "p99", "p99.9", "max", "records", "kept", …} a name, where kept counts the records
on file, and `instructions` where it counts them.

Python's peers come from PyPI into build/bench-venv. What is not there is said, not failed."""

import json
import os
import subprocess
import sys

from house import HERE, ROOT

VENV = ROOT / "build/bench-venv"
PYPI = ("picologging", "loguru", "structlog")
BUILD_WAIT_S, RUN_WAIT_S = 1800, 1800


def venv(house, install):
    """The interpreter with the peers of PyPI, or without them where they cannot be had."""
    python = VENV / "bin/python"
    if python.exists():
        return str(python)
    if not install:
        house.note("no build/bench-venv: Python's peers of PyPI are left out "
                   "(./dev bench python makes it)")
        return sys.executable
    done = subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False)
    if done.returncode == 0:
        for package in PYPI:  # one by one: a peer without a wheel takes no other with it
            if subprocess.run([str(python), "-m", "pip", "install", "-q", package],
                              check=False).returncode:
                house.note(f"pip cannot install {package}: left out")
        return str(python)
    house.note("no python3-venv: Python's peers of PyPI are left out")
    return sys.executable


def take(house, part, command, environment):
    """Runs it, adds a row a name."""
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


def python(house, install):
    script = HERE / "python_calls.py"
    if not script.exists():
        house.note("no Benchmarks/python_calls.py: Python is left out")
        return
    command = [venv(house, install), str(script)]
    if house.quick:
        command += ["--rounds", "4"]
    take(house, "python", command, {
        "CORDWOOD_LIBRARY": str(ROOT / "build/lib/libcordwood.so"),
        "PYTHONPATH": str(ROOT / "bindings/python/src"), "PYTHONDONTWRITEBYTECODE": "1"})


def swift(house, install):
    package = HERE / "swift"
    if not (package / "Package.swift").exists():
        house.note("no Benchmarks/swift: Swift is left out")
        return
    scratch = ROOT / "build/bench-swift"
    if not scratch.exists() and not install:
        house.note("Benchmarks/swift is not built: Swift is left out (./dev bench swift)")
        return
    words = ["swift", "run", "-c", "release", "--package-path", str(package), "--scratch-path",
             str(scratch)]
    take(house, "swift", words + (["--", "--quick"] if house.quick else []), {})
    # Instructions a record of Swift: {"instructions": {"w2": 123}} in that object.
    seen = house.more.get("swift", {}).get("instructions", {})
    limits = house.limits["instructions_per_record"].get("swift", {})
    for load, figure in seen.items():
        if load in limits:
            house.gate(f"swift {load}: instructions a record", figure, limits[load])
