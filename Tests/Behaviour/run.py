#!/usr/bin/env python3
"""The rules of the systems that Cordwood replaces, each a test named after it: B-SAP (log upload of
SAP), B-ROLL (upload when a file rolls), B-NET (how transfers fail), B-TXN (application
transactions), B-HTTP (captured exchanges). Hosts in C, C++, Python and Swift and the tool run
against the scripted server and the fakes of Tests/TestSupport. docs/TESTING.md says where each rule
is tested.

    run.py [-k PATTERN …] [--list]"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "TestSupport")]

import sending  # noqa: E402, F401  (finds the binding for the tests)
import unittests  # noqa: E402

if __name__ == "__main__":
    sys.exit(unittests.main(HERE))
