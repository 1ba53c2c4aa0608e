#!/usr/bin/env python3
"""How uploads reach their servers, against the built library: TLS, HTTP/2, proxies, credentials,
transports of the host's own, and places where no secret may be found.

    run.py [-k PATTERN …] [--list]

Installs what is missing: tinyproxy (Debian), caddy (PyPI, in the servers suite's virtual
environment). The last line counts."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "Tests/TestSupport")]

import environments  # noqa: E402
import unittests  # noqa: E402


def install():
    needs = ". tools/common.sh; needs openssl tinyproxy-bin python3-venv gcc"
    subprocess.run(["bash", "-c", needs], cwd=ROOT, check=True)
    environments.interpreter("servers")


if __name__ == "__main__":
    install()
    sys.exit(unittests.main(HERE))
