"""What the server tests share: cases and their outcome, a place for each case's files and
processes, a real server's life (start on a free port of loopback, wait until it answers, stop), and
the search for its program. No fixed sleeps: conditions are polled, within a bound."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

import environments  # noqa: E402
from cases import Failed, Skipped, equal, full, holds, short, sized, until  # noqa: E402, F401
from loopback import free_port  # noqa: E402, F401

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("CORDWOOD_BUILD", ROOT / "build"))
CORDWOOD = str(BUILD / "bin/cordwood")
LIBRARY = str(BUILD / "lib/libcordwood.so")
VENV = environments.folder("servers")
SECONDS_MAX = 60


def find(program):
    """The path of a server's program, or raises Skipped."""
    places = [VENV / "bin", *map(Path, os.environ.get("PATH", "").split(":")),
              Path("/usr/sbin"), Path("/usr/local/sbin")]
    for place in places:
        if os.access(place / program, os.X_OK):
            return str(place / program)
    raise Skipped(f"{program} is not installed")


def venv_python():
    """The interpreter with the packages of requirements.txt."""
    python = VENV / "bin/python"
    if not python.exists():
        raise Skipped(f"{VENV} is not there")
    return str(python)


def plain_environment(**more):
    """Our environment, without the variables for tests of our own library."""
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("CORDWOOD_", "LD_PRELOAD", "MALLOC_", "PYTHONPATH"))
            and not k.lower().endswith("_proxy")}
    kept.update(more)
    return kept


class Place:
    """A case's directory, and the processes started for it. Both are removed when the case ends."""

    def __init__(self, directory, seed=1):
        self.directory, self.seed = directory, seed
        self.running, self.notes = [], []
        self.started = time.monotonic()
        directory.mkdir(parents=True, exist_ok=True)
        # Servers that give up root must be able to enter.
        directory.chmod(0o755)

    def folder(self, name, mode=0o755):
        path = self.directory / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        return path

    def note(self, text):
        self.notes.append(text)

    def keep(self, server):
        self.running.append(server)
        return server

    def clean(self):
        for server in reversed(self.running):
            with contextlib.suppress(Exception):
                server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class Server:
    """One server process. A subclass says how it is configured and called."""

    name = "server"
    stop_signal = signal.SIGTERM
    start_seconds = SECONDS_MAX

    def __init__(self, place, **options):
        self.place, self.options = place, options
        self.process = None
        self.port = free_port()
        count = sum(isinstance(other, Server) for other in place.running)
        self.directory = place.folder(f"{self.name}-{count}", 0o777)
        place.keep(self)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def configure(self):
        """Writes the program's configuration."""

    def command(self):
        raise NotImplementedError

    def environment(self):
        return {}

    def answers(self):
        """True once the server is usable."""
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        return False

    def start(self):
        """Tries three ports: another process may take a free one first."""
        for _ in range(3):
            self.configure()
            self._begin()
            end = time.monotonic() + self.start_seconds
            while time.monotonic() < end and self.process.poll() is None:
                if self.answers() and self.process.poll() is None:
                    return self
                time.sleep(0.01)
            if self.process.poll() is None:
                break
            self.port = free_port()
        text = self.said()[-800:]
        self.stop()
        raise Failed(f"{self.name} does not start: {text}")

    def _begin(self):
        self.log = open(self.directory / "output.txt", "wb")
        self.process = subprocess.Popen(
            [str(word) for word in self.command()], stdin=subprocess.PIPE, stdout=self.log,
            stderr=subprocess.STDOUT, cwd=self.directory, start_new_session=True,
            env=plain_environment(**self.environment()))

    def said(self):
        path = self.directory / "output.txt"
        return path.read_bytes().decode(errors="replace") if path.exists() else ""

    def stop(self):
        """Ends it and the processes it started: it leads its own session."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self._signal(self.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        self._signal(signal.SIGKILL)
        self.process.wait()
        if self.process.stdin:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        self.log.close()
        self.process = None

    def _signal(self, number):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class Certificates:
    """A certificate authority of the case, a certificate of 127.0.0.1, and a client's."""

    def __init__(self, place):
        self.directory = place.folder("certificates")
        self.authority = self.directory / "ca.pem"
        if not self.authority.exists():
            self._authority()
            self.make("server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
            self.make("client", "extendedKeyUsage=clientAuth")

    def __getitem__(self, name):
        return self.directory / name

    def _run(self, *words):
        done = subprocess.run([find("openssl"), *map(str, words)], cwd=self.directory,
                              capture_output=True, check=False)
        if done.returncode:
            raise Failed(f"openssl {words[0]}: {done.stderr.decode()[-300:]}")

    def _authority(self):
        self._run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj",
                  "/CN=tests of one case", "-keyout", "ca.key", "-out", "ca.pem")

    def make(self, name, extension):
        (self.directory / f"{name}.ext").write_text(extension + "\n")
        self._run("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                  "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._run("x509", "-req", "-days", 2, "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey",
                  "ca.key", "-CAcreateserial", "-extfile", f"{name}.ext", "-out", f"{name}.pem")
