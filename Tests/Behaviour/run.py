#!/usr/bin/env python3
"""The rules of the systems that Cordwood replaces, a test a rule and named after it: B-SAP (log
upload of SAP), B-ROLL (upload when a file rolls), B-NET (how transfers fail). By a host of the
Python binding and the tool, against the scripted server and the fakes of Tests/TestSupport.

    run.py [-k NAME …]"""

import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "TestSupport")]

from settings import forget_settings  # noqa: E402


def main():
    forget_settings("CORDWOOD_LIBRARY", "CORDWOOD_BUILD")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    import sending
    names = sys.argv[sys.argv.index("-k") + 1:] if "-k" in sys.argv else []
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in names] or None
    result = unittest.TextTestRunner(verbosity=2).run(loader.discover(str(HERE)))
    sending.clean()
    bad = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    return 1 if bad or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
