"""Death, exit and fork of a host: records whose calls returned are in the store. Console output."""
import json
import os
import pty
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from support import StoreCase, cordwood


class ProcessTest(StoreCase):
    """Hosts in separate processes."""

    def python(self, program: str) -> "subprocess.CompletedProcess[str]":
        """Runs a program with `cordwood` imported and `store` set."""
        start = f"import cordwood, os, signal, sys\nstore = {self.store!r}\n"
        package = str(Path(cordwood.__file__).resolve().parents[1])
        environment = {**os.environ, "PYTHONPATH": package}
        quiet = ["-W", "ignore::DeprecationWarning"]  # 3.12 and later: fork beside threads
        return subprocess.run([sys.executable, *quiet, "-c", start + program], env=environment,
                              timeout=60, capture_output=True, text=True, check=False)

    def test_killed(self) -> None:
        ended = self.python(
            "log = cordwood.open(store).logger('a')\n"
            "for i in range(1000): log.info('%d', i)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n")
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        self.assertEqual([record.message for record in self.records()],
                         [str(index) for index in range(1000)])

    def test_exit_without_close(self) -> None:
        ended = self.python("cordwood.open(store).logger('a').info('x'); sys.exit(3)")
        self.assertEqual((ended.returncode, ended.stderr), (3, ""))
        self.assertEqual(self.only().message, "x")

    def test_logging_in_atexit(self) -> None:
        ended = self.python("import atexit\nlog = cordwood.open(store).logger('a')\n"
                            "atexit.register(log.info, 'late')\n")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(self.only().message, "late")

    def test_console_forges_no_line(self) -> None:
        """On the console, too, a message cannot move the cursor or begin a record."""
        forged = "2026-01-01 00:00:00.000+00:00 FATAL init[1:1] auth: forged"
        message = f"who\x1b[2J\u009b31m\u2028\u202e\r{forged}\n{forged}\n\ttail\x7f\n"
        ended = self.python(
            "log = cordwood.open(store, console='text', console_level='info').logger('a\\nb')\n"
            f"log.info({message!r}, **{{'k\\n\\x1b': 'v\\n\\u2066'}})\n")
        lines = ended.stderr.splitlines()
        self.assertEqual(len(lines), 3, ended.stderr)
        self.assertRegex(lines[0], r"^\d{4}-.* INFO .* a\\nb: who\\x1b\[2J\\u009b31m"
                                   r"\\u2028\\u202e\\r2026-")
        self.assertEqual(lines[1], "    | " + forged)
        self.assertTrue(
            lines[2].startswith("    | \ttail\\x7f\\n k\\n\\x1b=\"v\\n\\u2066\""), lines)
        self.assertEqual(self.only().message, message)

    def test_console_of_json_on_a_terminal(self) -> None:
        """JSON keeps every byte, and contains nothing that a terminal obeys."""
        message = "a\u009b31m\x7f\u2028\u202e\u2066b"
        terminal, host = pty.openpty()
        program = (f"import cordwood\nengine = cordwood.open({self.store!r}, console='json')\n"
                   f"engine.logger('a').info({message!r})\n")
        environment = {**os.environ,
                       "PYTHONPATH": str(Path(cordwood.__file__).resolve().parents[1])}
        with subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=host):
            os.close(host)
        shown = os.read(terminal, 65536)
        os.close(terminal)
        self.assertEqual(json.loads(shown)["message"], message)
        self.assertEqual(shown.strip(), shown.strip().decode("ascii").encode())

    def test_fork(self) -> None:
        ended = self.python(
            "log = cordwood.open(store).logger('a')\n"
            "log.info('parent')\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    for i in range(100): log.info('child %d', i)\n"
            "    os._exit(0)\n"
            "status = os.waitpid(child, 0)[1]\n"
            "log.info('after')\n"
            "sys.exit(status)\n")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        found = self.records()
        self.assertEqual(sorted(record.message for record in found),
                         sorted(["parent", "after"] + [f"child {i}" for i in range(100)]))
        self.assertEqual(len({record.pid for record in found}), 2)

    def test_multiprocessing(self) -> None:
        ended = self.python(
            "import multiprocessing\n"
            "log = cordwood.open(store).logger('a')\n"
            "def work(n): log.info('job', n=n); return n\n"
            "with multiprocessing.get_context('fork').Pool(3) as pool:\n"
            "    pool.map(work, range(30))\n")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual({record.fields["n"] for record in self.records()}, set(range(30)))

    def cut(self, **options: object) -> "subprocess.CompletedProcess[str]":
        """A program whose segments are truncated again and again while it writes."""
        return self.python(
            "import glob, os, resource\n"
            "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
            f"engine = cordwood.open(store, segment_bytes=65536, **{options!r})\n"
            "log, cuts = engine.logger('app'), 0\n"
            "while cuts < 100:\n"
            "    for path in glob.glob(store + '/lanes/*.seg'):\n"
            "        try: os.truncate(path, 4096)\n"
            "        except FileNotFoundError: continue\n"
            "        cuts += 1\n"
            "    for n in range(100): log.info('x' * 200)\n"
            "engine.roll()\n"
            "while not log.info('still here'): pass\n"
            "engine.close()\n"
            "print('end')\n")

    def test_sigbus_guard(self) -> None:
        ended = self.cut(sigbus_guard=True)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "end\n", ""))
        self.assertIn("still here", [record.message for record in self.records()])

    def test_without_sigbus_guard(self) -> None:
        """What the option is for: without it, the host dies when it stores into the hole."""
        self.assertEqual(self.cut().returncode, -signal.SIGBUS)

    def test_missing_library_says_what_to_do(self) -> None:
        program = "import os; os.environ['CORDWOOD_LIBRARY'] = '/nowhere.so'; import cordwood"
        package = str(Path(cordwood.__file__).resolve().parents[1])
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                               env={**os.environ, "PYTHONPATH": package}, check=False)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("./dev build", ended.stderr)
        self.assertIn("/nowhere.so", ended.stderr)


if __name__ == "__main__":
    unittest.main()
