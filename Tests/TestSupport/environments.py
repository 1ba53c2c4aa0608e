#!/usr/bin/env python3
"""Virtual environments with the packages that suites need from PyPI. They do not change with our
sources, so they lie outside of the checkout, in ${XDG_CACHE_HOME:-~/.cache}/cordwood-build, where
every checkout finds them: `venv-KEY`, the key being that of the requirements and the interpreter.
Nothing there is ever needed: what is missing is made again. A lock keeps two processes from making
the same one at the same time.

environments.py [NAME …]        makes those, or all: servers, http, otlp, python, viewer, bench"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from settings import own_environment  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
REQUIREMENTS = {name: ROOT / folder / "requirements.txt" for name, folder in
                (("servers", "Tests/Servers"), ("http", "Tests/Behaviour"), ("otlp", "Tests/OTLP"),
                 ("python", "bindings/python/tests"), ("viewer", "Tests/Viewer"),
                 ("bench", "Benchmarks"))}
# In an environment once pip has ended: all is there, or what PyPI gave.
WHOLE, PART = "whole", "part"


def cache():
    """The folder for what does not change with our sources. A path that is not absolute is not a
    cache, says the XDG specification."""
    named = Path(os.environ.get("XDG_CACHE_HOME") or "-")
    home = named if named.is_absolute() else Path.home() / ".cache"
    return home / "cordwood-build"


@contextlib.contextmanager
def locked(name, folder=BUILD):
    """One process at a time. The lock is the system's and ends with its holder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def wanted(name):
    return [line for line in REQUIREMENTS[name].read_text().splitlines()
            if line and not line.startswith("#")]


def folder(name):
    """Where the environment lies, whether it is made or not."""
    key = repr((sorted(wanted(name)), sys.version, sys.base_prefix))
    return cache() / f"venv-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def made(name):
    """The interpreter of an environment that has all that `name` requires, or None."""
    packages = set(wanted(name))
    return next((str(folder(other) / "bin/python") for other in REQUIREMENTS
                 if packages <= set(wanted(other)) and (folder(other) / WHOLE).exists()), None)


def partly_made(name):
    """The interpreter of the environment of that name, which may lack what PyPI did not give, or
    None. What was broken off does not count."""
    place = folder(name)
    return str(place / "bin/python") if any((place / stamp).exists() for stamp in (WHOLE, PART)) \
        else None


def interpreter(name):
    """The interpreter with the packages that `name` requires, or None if PyPI did not provide all.
    Those it provided are there nevertheless, and the next call asks only for the others."""
    if os.environ.get("TEST_INSTALLS") == "no":  # conftest.py: pytest uses what is there
        return made(name)
    with locked("venvs", cache()):
        if python := made(name):
            return python
        packages, place = wanted(name), folder(name)
        # On PYTHONPATH, or in a folder that pip is told to use, packages are taken for installed.
        own = own_environment()
        if not (place / PART).exists():
            shutil.rmtree(place, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", place], check=True, env=own)
        pip = [place / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        if subprocess.run([*pip, *packages], check=False, env=own).returncode:
            # One by one: a missing package must not prevent the others.
            had = [subprocess.run([*pip, package], check=False, env=own).returncode == 0
                   for package in packages]
            (place / PART).touch()
            if not all(had):
                return None
        (place / WHOLE).touch()
        return str(place / "bin/python")


def main():
    missing = [name for name in sys.argv[1:] or REQUIREMENTS if interpreter(name) is None]
    if missing:
        print(f"going on without what PyPI did not give for {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    main()
