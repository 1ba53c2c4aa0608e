"""Runs the tests of the Python package on a copy in build/python, without what other builds left
beside the sources; with --accelerated, the copy has the accelerator, built here with all warnings.

    python3 bindings/python/tests/run.py [--accelerated] [-k PATTERN …] [--list]
"""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import List

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SOURCE = HERE.parent / "src"


def fingerprint() -> str:
    """The digest of everything that the package is built from."""
    taken = hashlib.sha256(repr((sys.version, os.environ.get("CC"))).encode())
    for place in (SOURCE / "cordwood", HERE.parent / "speed", ROOT / "include"):
        for path in sorted(place.rglob("*")):
            if path.suffix in (".py", ".pyi", ".typed", ".c", ".h"):
                taken.update(f"{path} {path.stat().st_size}\n".encode() + path.read_bytes())
    return taken.hexdigest()


def build(accelerated: bool = True) -> Path:
    """Copies the package and builds its accelerator; the directory to import it from. Made once for
    the same sources: other suites may be using it."""
    name = sys.implementation.cache_tag or "python"
    target = ROOT / "build" / "python" / (name if accelerated else f"{name}-plain")
    stamp = target / "sources.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = fingerprint()
        if not stamp.exists() or stamp.read_text() != sources:
            copy_into(target)
            if accelerated:
                compile_into(target)
            stamp.write_text(sources)
    return target


def copy_into(target: Path) -> None:
    """Copies the package, without compiled files."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(SOURCE / "cordwood", target / "cordwood",
                    ignore=shutil.ignore_patterns("__pycache__", "*.so"))


def compile_into(target: Path) -> None:
    """Compiles the accelerator of the copy."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    subprocess.run(
        [*os.environ.get("CC", "cc").split(), "-std=c11", "-O2", "-g", "-Wall", "-Wextra",
         "-Werror", "-Wno-missing-field-initializers", "-fPIC", "-shared", "-fvisibility=hidden",
         "-isystem", sysconfig.get_paths()["include"], "-I", str(ROOT / "include"),
         str(HERE.parent / "speed" / "speed.c"),
         "-o", str(target / "cordwood" / f"_speed{suffix}")],
        check=True)


def main(words: List[str]) -> int:
    """Runs unittest on the tests beside this file."""
    accelerated = "--accelerated" in words
    rest = [word for word in words if word != "--accelerated"]
    environment = {**os.environ, "PYTHONPATH": str(build(accelerated)),
                   "CORDWOOD_TEST_ACCELERATED": str(int(accelerated))}
    environment.setdefault("CORDWOOD_LIBRARY", str(ROOT / "build" / "lib" / "libcordwood.so"))
    environment.pop("CORDWOOD_PYTHON_ACCELERATOR", None)
    runner = ROOT / "Tests" / "TestSupport" / "unittests.py"
    return subprocess.run([sys.executable, "-X", "dev", str(runner), str(HERE), *rest],
                          env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
