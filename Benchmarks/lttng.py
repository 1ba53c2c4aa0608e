"""LTTng's daemons for one run of one program: starts them, creates a session, and always ends them.

Without root, everything lies in a separate home (LTTNG_HOME). As root, the daemons use the system's
run directory; if others already run there, LTTng is left out."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from house import Unsupported, output

SUB_BUFFERS, SUB_BUFFER_SIZE = 8, "1M"
DAEMON_WAIT_S, COMMAND_WAIT_S = 10, 60
KILLED_WAIT_S = 3


def others_run():
    """Whether another lttng-sessiond lives; zombies do not count."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, state = re.match(r"\d+ \((.*)\) (\S)", path.read_text()).groups()
        except (OSError, AttributeError, UnicodeDecodeError):
            continue
        if name == "lttng-sessiond" and state not in "ZX":
            return True
    return False


class Session:
    """with Session(folder) as session: run a program with session.environment; then stop()."""

    def __init__(self, folder):
        self.home, self.trace = folder / "home", folder / "trace"
        self.daemon, self.stopped = None, 0.0
        self.environment = {"LTTNG_HOME": str(self.home), "LTTNG_UST_ALLOW_BLOCKING": "1",
                            "LTTNG_UST_REGISTER_TIMEOUT": "5000"}

    def command(self, *words):
        return output("lttng", "--no-sessiond", *words, env=dict(os.environ, **self.environment),
                      stderr=subprocess.STDOUT, timeout=COMMAND_WAIT_S)

    def __enter__(self):
        if not shutil.which("lttng-sessiond"):
            raise Unsupported("no lttng-sessiond")
        if os.getuid() == 0 and others_run():
            raise Unsupported("the system's lttng-sessiond is running")
        self.home.mkdir(parents=True)
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=dict(os.environ, **self.environment))
        try:
            self.ready()
            self.command("create", "bench", f"--output={self.trace}")
            self.command("enable-channel", "--userspace", "bench", "--blocking-timeout=inf",
                         f"--subbuf-size={SUB_BUFFER_SIZE}", f"--num-subbuf={SUB_BUFFERS}")
            self.command("enable-event", "--userspace", "--channel=bench", "cordwood_bench:*")
            self.command("start", "bench")
        except BaseException as error:
            self.__exit__()
            if isinstance(error, (OSError, subprocess.SubprocessError)):
                raise Unsupported(f"lttng-sessiond does not start: {error}") from error
            raise
        return self

    def ready(self):
        """Asks until the daemon answers."""
        limit = time.monotonic() + DAEMON_WAIT_S
        while self.daemon.poll() is None and time.monotonic() < limit:
            try:
                self.command("list")
                return
            except subprocess.CalledProcessError:
                time.sleep(0.05)
        raise OSError("it does not answer")

    def stop(self, killed=False):
        """Waits until all logged records are in the trace; its (records, discarded, bytes).

        A program that is killed within a record leaves a sub-buffer that never becomes whole, and
        `destroy` would wait for it forever. So the daemons are ended after KILLED_WAIT_S, which
        writes what they have."""
        wait = ("--no-wait",) if killed else ()
        self.command("stop", *wait, "bench")
        if killed:
            time.sleep(KILLED_WAIT_S)
        self.command("destroy", *wait, "bench")
        self.stopped = time.monotonic()
        if killed:
            self.__exit__()
        said = output("babeltrace2", self.trace, "--component=sink.utils.counter",
                      "--params=step=+0", stderr=subprocess.STDOUT)
        found = {what.lower(): int(number) for number, what in
                 re.findall(r"(\d+) ([A-Za-z ]+?) messages?\n", said)}
        # A message of discarded events stands for at least one event.
        events, discarded = found["event"], found["discarded event"]
        size = sum(path.stat().st_size for path in self.trace.rglob("*") if path.is_file())
        return events, discarded, size

    def __exit__(self, *_):
        if self.daemon is None:
            return
        self.daemon.terminate()
        try:
            self.daemon.wait(DAEMON_WAIT_S)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        self.daemon = None
