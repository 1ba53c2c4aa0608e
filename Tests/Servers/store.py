"""A store for the tests: written by `cordwood log` or by a host of the Python binding, sent by
`cordwood upload` or by that host, and compared: what a server has against what was logged."""

import contextlib
import gzip
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from pathlib import Path

from frame import CORDWOOD, HERE, LIBRARY, ROOT, Failed, Skipped, equal, find, holds, \
    plain_environment

FAILED = 5  # exit code of a failed upload
# Messages of a build about missing features, or of a binding about unknown options.
ABSENT = ("is not built yet", "unexpected keyword argument", "Unknown option", "is none of",
          "is not known")


class NotBuilt(Skipped):
    """The product reports that it lacks the subject of the case."""


def nasty_lines(count, seed=1):
    """Bytes that are not text among others that are: `cordwood log` keeps them unchanged."""
    chance = random.Random(seed)
    fixed = [b"plain", b"", b"\xff\xfe\x80", b"a\0b", b'quote " back \\', b"crlf\r", b"#" * 7,
             b"\x1b[31mred", "grüße, 世界, 🪵".encode(), b"{}", b" " * 70, b"\xed\xa0\x80"]
    lines = []
    for number in range(count):
        text = fixed[number % len(fixed)]
        lines.append(b"%d " % number + text + chance.randbytes(8).hex().encode())
    return lines


class Upload:
    """The output of `cordwood upload --json`."""

    def __init__(self, code, output, complaint, peak_kib):
        self.code, self.complaint, self.peak_kib = code, complaint, peak_kib
        lines = output.splitlines()
        self.result = json.loads(lines[-1]) if lines else {}

    def __getitem__(self, name):
        return self.result[name]

    def __str__(self):
        return f"exit {self.code}, {self.result}, {self.complaint.strip()[-300:]}"


class Store:
    def __init__(self, place, name="store"):
        self.place = place
        self.directory = place.directory / name

    # ── Writing ──

    def log(self, lines, logger="app", level="info"):
        """Lines of bytes, one record each."""
        self.tool("log", "--store", self.directory, "--logger", logger, "--level", level,
                  data=b"".join(line + b"\n" for line in lines))
        return self

    def fill(self, count=300, seed=1):
        """All kinds of text from the tool, then fields and hostile text from a host, archived."""
        self.log(nasty_lines(count, seed))
        with Host(self.place, self) as host:
            host.open()
            host("hostile", count=count, seed=seed)
            host("close")
        return self.archive()

    def archive(self):
        self.tool("archive", self.directory)
        return self

    # ── Reading ──

    def tool(self, *words, data=None, good=(0,)):
        done = subprocess.run([CORDWOOD, *map(str, words)], input=data, capture_output=True,
                              check=False, env=plain_environment(), timeout=600)
        if done.returncode not in good:
            raise Failed(f"cordwood {words[0]} ended {done.returncode}: "
                         f"{done.stderr.decode(errors='replace')[-300:]}")
        return done.stdout

    def lines(self, form="ndjson", where=None):
        """As the tool exports them, without the engine's own records."""
        return self.ours(self.tool("export", where or self.directory, "--format", form))

    @staticmethod
    def ours(data):
        return [line for line in data.split(b"\n")
                if line and b'"logger":"Cordwood.' not in line and b'"kind":"log"' in line]

    def archives(self):
        return sorted((self.directory / "archives").glob("*.cwa"))

    def hashes(self):
        """SHA-256 of each archive, by its id (FORMAT §11.1)."""
        return {archive_id(path.read_bytes()): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in self.archives()}

    def queue(self):
        """The states in the names of queue/: `target.state`."""
        folder = self.directory / "queue"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted(name.rpartition("@")[2] for name in names if "@" in name)

    def states(self):
        return [name.partition(".")[2] for name in self.queue()]

    # ── Sending ──

    def upload(self, url, kind="http", form=None, encoding=None, headers=(), token=None,
               name="t", timeout=60, more=(), environment=None):
        words = ["upload", str(self.directory), "--to", url, "--kind", kind, "--name", name,
                 "--timeout", str(timeout), "--json", *map(str, more)]
        words += ["--format", form] if form else []
        words += ["--encoding", encoding] if encoding else []
        for header in headers:
            words += ["--header", header]
        given = plain_environment(**({"CORDWOOD_TOKEN": token} if token else {}))
        given.update(environment or {})
        upload = run_upload([CORDWOOD, *words], given, timeout + 120)
        if any(word in upload.complaint for word in ABSENT):
            raise NotBuilt(upload.complaint.strip().splitlines()[-1][:120])
        return upload

    def upload_all(self, url, rounds=40, seconds=60, **options):
        """Explicit attempts until nothing waits. Returns their number. Waits for a server's
        Retry-After, as in the state's name."""
        end = time.monotonic() + seconds
        for number in range(1, rounds + 1):
            done = self.upload(url, **options)
            if done.code == 0:
                return number
            holds(time.monotonic() < end, f"not sent within {seconds} s: {done}; {self.states()}")
            self.wait_for_server()
        raise Failed(f"not sent in {rounds} attempts: {done}; {self.states()}")

    def wait_for_server(self):
        held = [int(state.split("-")[2]) for state in self.states()
                if re.match(r"retry-\d+-\d+-server", state)]
        now = time.time() * 1000
        if held and max(held) > now:
            time.sleep(min(max(held) - now + 5, 5_000) / 1000)

    def is_empty(self):
        equal("archives that stay", [path.name for path in self.archives()], [])
        equal("states that stay", self.queue(), [])


def run_upload(words, environment, seconds):
    """Runs it to its end, and reads its peak of memory."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaint:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=complaint, env=environment)
        watch = threading.Timer(seconds, process.kill)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        holds(process.returncode != -9, f"hangs: {' '.join(words)}")
        output.seek(0)
        complaint.seek(0)
        return Upload(process.returncode, output.read().decode(errors="replace"),
                      complaint.read().decode(errors="replace"), usage.ru_maxrss)


class Host:
    """host.py on a store, in its own process. A context manager."""

    def __init__(self, place, store, environment=None):
        self.store = store
        given = plain_environment(
            CORDWOOD_LIBRARY=LIBRARY, PYTHONPATH=str(ROOT / "bindings/python/src"),
            PYTHONDONTWRITEBYTECODE="1", **(environment or {}))
        self.process = subprocess.Popen([sys.executable, str(HERE / "host.py")], env=given,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        place.keep(self)

    def tell(self, word, /, **more):
        self.process.stdin.write(json.dumps({"do": word, **more}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"the host is dead: {self.process.wait()}")
        return json.loads(line)

    def __call__(self, word, /, **more):
        """The command's own answer. An error of the binding raises Failed."""
        answer = self.ask(word, **more)
        if "ok" not in answer:
            raise Failed(f"{word}: {answer}")
        return answer["ok"]

    def ask(self, word, /, **more):
        self.tell(word, **more)
        answer = self.answer()
        refusal = answer.get("refused", "") + str(answer.get("error", ""))
        if any(absent in refusal for absent in ABSENT):
            raise NotBuilt(refusal[:120])
        return answer

    def open(self, **options):
        self("open", store=str(self.store.directory), **options)
        return self

    def target(self, url, **options):
        return self("target", url=url, **options)

    def stop(self):
        """Ends it immediately."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.process.stdin.close()
            equal("the host's exit", self.process.wait(60), 0)
        self.stop()


def archive_id(data):
    """In the form that uploads use."""
    at = data.index(b"CWARCH01") + 32
    text = data[at:at + 16].hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def decoded(body, encoding):
    """A body's content: one gzip member or one zstd frame, nothing after it."""
    if encoding in ("", None, "none", "identity"):
        return body
    if encoding == "gzip":
        inflate = zlib.decompressobj(31)
        data = inflate.decompress(body) + inflate.flush()
        holds(inflate.eof and not inflate.unused_data, "the body is not one gzip member")
        equal("by another decoder", gzip.decompress(body), data)
        return data
    done = subprocess.run([find({"zstd": "zstd", "lz4": "lz4"}[encoding]), "-dc"], input=body,
                          capture_output=True, check=False)
    holds(done.returncode == 0, f"{encoding}: {done.stderr.decode()[-200:]}")
    return done.stdout


def same_lines(what, got, wanted):
    """The same lines with the same counts, in any order."""
    got, wanted = Counter(got), Counter(wanted)
    if got != wanted:
        missing, extra = wanted - got, got - wanted
        raise Failed(f"{what}: {sum(missing.values())} missing {list(missing)[:1]}, "
                     f"{sum(extra.values())} too many {list(extra)[:1]}")


def archive_lines(store, data, folder):
    """The lines of an archive that a server stored."""
    path = Path(folder) / f"{archive_id(data)}.cwa"
    path.write_bytes(data)
    lines = store.lines(where=path)
    os.unlink(path)
    return lines
