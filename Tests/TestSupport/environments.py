#!/usr/bin/env python3
"""Virtual environments with the packages that suites need from PyPI, each made once: a suite reuses
one that another made from the same requirements. A lock keeps two from making it at the same time.

environments.py [NAME …]        makes those, or all: servers, http, otlp, python, viewer"""

import contextlib
import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
REQUIREMENTS = {name: ROOT / folder / "requirements.txt" for name, folder in
                (("servers", "Tests/Servers"), ("http", "Tests/Behaviour"), ("otlp", "Tests/OTLP"),
                 ("python", "bindings/python/tests"), ("viewer", "Tests/Viewer"))}


@contextlib.contextmanager
def locked(name):
    """One process at a time. The lock is the system's and ends with its holder."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def wanted(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def has(folder, packages):
    """Whether that environment was made with all of them."""
    stamp = folder / "installed.txt"
    return stamp.exists() and set(packages) <= set(wanted(stamp.read_text()))


def interpreter(name):
    """The interpreter with the packages that `name` requires, or None if PyPI did not provide all.
    Those it provided are in build/NAME-venv nevertheless."""
    text = REQUIREMENTS[name].read_text()
    packages = wanted(text)
    with locked("venvs"):
        for other in REQUIREMENTS:
            if has(BUILD / f"{other}-venv", packages):
                return str(BUILD / f"{other}-venv/bin/python")
        folder = BUILD / f"{name}-venv"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        if subprocess.run([*pip, *packages], check=False).returncode:
            # One by one: a missing package must not prevent the others.
            had = [subprocess.run([*pip, package], check=False).returncode == 0
                   for package in packages]
            if not all(had):
                return None
        (folder / "installed.txt").write_text(text)
        return str(folder / "bin/python")


def main():
    missing = [name for name in sys.argv[1:] or REQUIREMENTS if interpreter(name) is None]
    if missing:
        print(f"going on without what PyPI did not give for {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    main()
