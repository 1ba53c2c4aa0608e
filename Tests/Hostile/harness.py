"""How a hostile case runs a command: bounded in time and memory, until it ends by itself."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

from cases import Failed  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = Path(os.environ.get("CORDWOOD_LIBRARY", ROOT / "build/lib/libcordwood.so")).parent
CORDWOOD = LIBRARY.parent / "bin/cordwood"
# Wide, for loaded machines. Hanging, looping or unbounded growth is far beyond.
SECONDS_MAX = 100


class Done:
    def __init__(self, code, text, seconds, megabytes):
        self.code, self.text, self.seconds, self.megabytes = code, text, seconds, megabytes


def run(*command, environment=None, preexec=None, seconds=SECONDS_MAX, megabytes=None, codes=None):
    """Runs to the end. seconds: processor time; the wall clock's limit is five times that."""
    def prepare():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if preexec:
            preexec()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=subprocess.STDOUT, preexec_fn=prepare,
                                 env=dict(os.environ, **(environment or {})))
        end = time.monotonic() + 5 * seconds
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                raise Failed(f"{command[1:3]}: no end in {5 * seconds} s")
            time.sleep(0.005)
        child.returncode = code = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read(4 << 20).decode(errors="replace")
    done = Done(code, text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024)
    if code < 0 or codes is not None and code not in codes:
        raise Failed(f"{command[1:]}: ends with {code}\n{text[-2000:]}")
    if megabytes and done.megabytes > megabytes:
        raise Failed(f"{command[1:]}: {done.megabytes} MiB resident, over {megabytes}")
    return done


def tool(*arguments, **limits):
    limits.setdefault("codes", (0, 1, 3, 4, 5))
    return run(CORDWOOD, *arguments, **limits)
