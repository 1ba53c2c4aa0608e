"""Runs the tests of the Python package; with --accelerated on a copy of it in build/python that has
the accelerator, built here with all warnings.

    python3 bindings/python/tests/run.py [--accelerated] [-k NAME …]
"""
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


def build() -> Path:
    """The package with its accelerator; the directory to import it from."""
    target = ROOT / "build" / "python" / (sys.implementation.cache_tag or "python")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(SOURCE / "cordwood", target / "cordwood",
                    ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    subprocess.run(
        [*os.environ.get("CC", "cc").split(), "-std=c11", "-O2", "-g", "-Wall", "-Wextra",
         "-Werror", "-Wno-missing-field-initializers", "-fPIC", "-shared", "-fvisibility=hidden",
         "-isystem", sysconfig.get_paths()["include"], "-I", str(ROOT / "include"),
         str(HERE.parent / "speed" / "speed.c"),
         "-o", str(target / "cordwood" / f"_speed{suffix}")],
        check=True)
    return target


def main(words: List[str]) -> int:
    """Runs unittest on the tests beside this file."""
    accelerated = "--accelerated" in words
    rest = [word for word in words if word != "--accelerated"]
    environment = {**os.environ, "PYTHONPATH": str(build() if accelerated else SOURCE),
                   "CORDWOOD_TEST_ACCELERATED": str(int(accelerated))}
    environment.setdefault("CORDWOOD_LIBRARY", str(ROOT / "build" / "lib" / "libcordwood.so"))
    environment.pop("CORDWOOD_PYTHON_ACCELERATOR", None)
    return subprocess.run([sys.executable, "-X", "dev", "-m", "unittest", "discover", "-s",
                           str(HERE), *rest], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
