#!/usr/bin/env python3
"""OTLP bodies read with the official schema (opentelemetry-proto of PyPI). What a receiver gets in
protobuf and in JSON is, field by field, what was logged, including hostile values, traces and gaps.
Bodies keep their limits. Partial answers are counted. `cordwood export --format otlp` writes the
same records.

    run.py [-k PATTERN …] [--list]

The first run makes the virtual environment (Tests/TestSupport/environments.py)."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
LIBRARY = ROOT / "build/lib/libcordwood.so"
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "TestSupport"))

import environments  # noqa: E402


def main():
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                       CORDWOOD_LIBRARY=os.environ.get("CORDWOOD_LIBRARY", str(LIBRARY)),
                       PYTHONPATH=f"{ROOT / 'bindings/python/src'}:{HERE}")
    python = environments.interpreter("otlp")
    if python is None:
        sys.exit("otlp: the packages in Tests/OTLP/requirements.txt could not be installed from "
                 "PyPI, as pip says above; run it again with a network")
    command = [python, HERE.parent / "TestSupport/unittests.py", HERE, *sys.argv[1:]]
    return subprocess.run(command, cwd=HERE, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
