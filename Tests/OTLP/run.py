#!/usr/bin/env python3
"""OTLP bodies read by the official schema (opentelemetry-proto of PyPI, in build/otlp-venv): what
a receiver gets in protobuf and in JSON is, field by field, what was logged, hostile values, traces
and gaps included; bodies keep their limits; partial answers are counted; `cordwood export --format
otlp` writes the same records.

    run.py [-v] [TestCase.test]

The first run makes the virtual environment."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
VENV = ROOT / "build/otlp-venv"
LIBRARY = ROOT / "build/lib/libcordwood.so"


def prepare():
    """The interpreter that has the schema."""
    wanted = (HERE / "requirements.txt").read_text()
    stamp = VENV / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(VENV / "bin/python"), "-m", "pip", "install", "-q",
                        "--disable-pip-version-check", "-r", str(HERE / "requirements.txt")],
                       check=True)
        stamp.write_text(wanted)
    return str(VENV / "bin/python")


def main():
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                       CORDWOOD_LIBRARY=os.environ.get("CORDWOOD_LIBRARY", str(LIBRARY)),
                       PYTHONPATH=f"{ROOT / 'bindings/python/src'}:{HERE}")
    command = [prepare(), "-m", "unittest", *(sys.argv[1:] or ["test_otlp", "test_spans"])]
    return subprocess.run(command, cwd=HERE, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
