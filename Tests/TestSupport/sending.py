"""What suites that send from a host of the Python binding share: a place for files, the scripted
server, and a test with its own store and engine."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from cases import json_lines, until
from settings import forget_settings

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("CORDWOOD_BUILD", ROOT / "build"))
CORDWOOD = BUILD / "bin/cordwood"
SCRIPTED = ROOT / "Tests/TestSupport/fault_server.py"
sys.path.insert(0, str(ROOT / "bindings/python/src"))
os.environ.setdefault("CORDWOOD_LIBRARY", str(BUILD / "lib/libcordwood.so"))

# The tests must not use the caller's settings and proxies.
forget_settings("CORDWOOD_LIBRARY", "CORDWOOD_BUILD")
for proxy in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[proxy]

import cordwood  # noqa: E402

WORK = Path(tempfile.mkdtemp(prefix="cordwood-sending-"))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)


def another_second():
    """Returns in another second of UTC, whose text differs. The engine's own clock may run a
    little behind."""
    second = int(time.time())
    until(lambda: time.time() >= second + 1.05, "the next second")


class Scripted:
    """Tests/TestSupport/fault_server.py: the n-th request gets the n-th answer, then 200."""

    def __init__(self, case, answers=(), *pems, rules=None):
        more = [*pems, *(f"{name}={value}" for name, value in (rules or {}).items())]
        self.directory = Path(tempfile.mkdtemp(dir=WORK))
        self.process = subprocess.Popen(
            [sys.executable, "-u", SCRIPTED, self.directory, json.dumps(list(answers)), *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        self.url = f"{'https' if pems else 'http'}://127.0.0.1:{self.port}"
        case.addCleanup(self.stop)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    @property
    def requests(self):
        return sorted(json_lines(self.directory / "requests.jsonl"),
                      key=lambda line: line["number"])

    def body(self, number):
        return (self.directory / f"body-{number}").read_bytes()


class StoreCase(unittest.TestCase):
    """A test with its own store and engine, whose timer is stopped."""

    def setUp(self):
        self.store = Path(tempfile.mkdtemp(dir=WORK))
        self.engine = self.open()

    def open(self, **options):
        engine = cordwood.open(self.store, **{"upload_interval_s": 3600, **options})
        self.addCleanup(engine.close, 60)
        self.log = engine.logger("app")
        return engine

    def add(self, url, **options):
        options = {"name": "target", "kind": "http", "format": "ndjson", **options}
        return self.engine.add_target(url, **options)

    def upload(self, timeout=30):
        return self.engine.upload(timeout=timeout)

    def archive(self):
        """Archives what was logged since the last time."""
        self.engine.roll()
        self.engine.archive_wait(30)

    def fails(self, timeout=30):
        """Runs an upload that must fail. Returns the error."""
        with self.assertRaises(cordwood.UploadError) as caught:
            self.engine.upload(timeout=timeout)
        return caught.exception

    def sent_lines(self, body):
        return [line for line in map(json.loads, body.splitlines()) if line["logger"] == "app"]

    @property
    def causes(self):
        """The causes of failures that the uploader logged."""
        return [record.fields["cause"] for record in cordwood.read(self.store, level="warn")
                if record.logger.startswith("Cordwood.") and "cause" in record.fields]
