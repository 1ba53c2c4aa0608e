"""A full disk is drained by uploads: they need no room, for sending is what makes room.
RELIABILITY, UPLOADS."""

import errno
import json
import os
import subprocess
import sys

from harness import OK, ROOT, TOOL, ballast, equal, holds


class Server:
    """fault_server.py, which keeps each body."""

    def __init__(self, directory, answers=()):
        self.directory = directory
        directory.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, ROOT / "Tests/TestSupport/fault_server.py", directory,
             json.dumps(list(answers))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/in"

    def lines(self):
        """Of all bodies of NDJSON."""
        return [line for path in sorted(self.directory.glob("body-*"))
                for line in path.read_text().splitlines()]

    @property
    def requests(self):
        return len((self.directory / "requests.jsonl").read_text().splitlines())

    def end(self):
        self.process.kill()
        self.process.wait()


def upload(store, url, *words, environment=None):
    return subprocess.run([TOOL, "upload", store, "--kind", "http", "--to", url, *words],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, **(environment or {})})


def room(disk):
    """Bytes that a file can still get."""
    path = disk / "probe"
    try:
        with open(path, "wb", buffering=0) as file:
            return file.write(b"x" * 4096)
    except OSError:
        return 0
    finally:
        path.unlink(missing_ok=True)


def drained(place, disk, is_registered):
    """With 0 bytes free, every record leaves, once."""
    store, made, each = disk / "store", 4, 5_000
    server = Server(place.directory / f"server{len(place.mounts)}-{int(is_registered)}")
    words = ["--format", "ndjson"]
    try:
        host = place.host(store).open(quota=0, interval=3600, segment=1 << 20)
        if is_registered:
            upload(store, server.url, *words)
        for _ in range(made):
            equal("kept", host.write(each, 100)["kept"], each)
            host.ask("roll")
            equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
        host.close()
        host.end()
        for path in (disk / "ballast", disk / "rest"):
            ballast(disk, 0, path.name)
        with open(disk / "rest", "ab", buffering=0) as file:
            try:
                while file.write(b"x" * 512):
                    pass
            except OSError:
                pass
        equal("room", room(disk), 0)
        done = upload(store, server.url, *words)
        equal("the exit", (done.returncode, done.stderr if is_registered else ""), (0, ""))
        if not is_registered:
            holds("no room to register" in done.stderr, done.stderr)
        left = sorted(path.name for name in ("archives", "queue")
                      for path in (store / name).iterdir())
        equal("left", left, [])
        ids = [json.loads(line)["record_id"] for line in server.lines()]
        equal("records", len(ids), made * each)
        equal("twice", len(ids) - len(set(ids)), 0)
        equal("targets", len(list((store / "targets").iterdir())), 1)
    finally:
        server.end()


def uploads_from_full_tmpfs(place):
    for is_registered in (True, False):
        drained(place, place.tmpfs(32), is_registered)


def uploads_from_full_ext4(place):
    for is_registered in (True, False):
        drained(place, place.ext4(48), is_registered)


def rounds_share_one_timeout(place):
    """While a full disk keeps the last records from being archived, the command sends on in rounds:
    each answer makes room. All rounds share its --timeout."""
    store, words = place.directory / "store", place.words()
    server = Server(place.directory / "server", [{"status": 200}, {"action": "hang"}] * 3)
    try:
        host = place.host(store).open(quota=0, interval=3600, segment=1 << 20)
        for _ in range(4):
            equal("kept", host.write(10, 100)["kept"], 10)
            host.ask("roll")
            equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
        equal("kept", host.write(10, 100)["kept"], 10)
        host.kill()
        words.only(".part")
        words.fail(errno.ENOSPC, "open")
        done = upload(store, server.url, "--requests-max", "1", "--timeout", "2",
                      environment={"LD_PRELOAD": str(place.programs[1]),
                                   "DISK_WORDS": str(words.path), "DISK_STORE": str(store)})
        equal("the exit", done.returncode, 4)
        holds("1 sent" in done.stdout, done.stdout)
        equal("requests", server.requests, 2)
    finally:
        server.end()


CASES = {f.__name__: f for f in (uploads_from_full_tmpfs, uploads_from_full_ext4,
                                 rounds_share_one_timeout)}
