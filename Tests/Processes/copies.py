"""A store is copied, and both go on. Whatever way their archives take, every record is shown once,
with its own user. Cases of run.py."""

import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

from cases import equal, holds, sized  # noqa: E402
from identity import Collector, Steps, shown  # noqa: E402
from serving import Serving  # noqa: E402

CLONE = "different records have one id"


class Bucket:
    """S3 as far as the uploader speaks it for small archives: an object is never replaced."""

    words = ("--kind", "s3", "--user", "key")

    def __init__(self, directory):
        self.directory = directory
        objects = directory / "archives"
        objects.mkdir(parents=True)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path = objects / self.path.rsplit("/", 1)[1].replace("%2B", "+")
                is_known = path.exists() and self.headers["If-None-Match"] == "*"
                if not is_known:
                    path.write_bytes(body)
                self.send_response(412 if is_known else 200)
                self.send_header("ETag", f'"{hashlib.md5(body).hexdigest()}"')
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = Serving(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/logs"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def copies(bench):
    """The process of the original goes on, and another one in the copy, which also archives what it
    has of the first; or the process itself goes on there, too, as a cloned machine's does. Then the
    copy's archives come to the original, or both are sent to two collectors and to S3."""
    count = clones = 0
    with Collector(bench, "first") as first, Collector(bench, "second") as second, \
            Bucket(bench.directory / "bucket") as bucket:
        depots = (first, second, bucket)
        for turn in range(sized(3, 15, 50)):
            store, copy = (bench.directory / f"{name}-{turn}" for name in ("original", "copy"))
            wanted = copied(bench, store, copy, turn)
            count += len(wanted)
            clones += len(wanted) - len({key for key, _ in wanted})
            merged = bench.directory / f"merged {turn}"
            shutil.copytree(store, merged)
            for path in (copy / "archives").iterdir():
                shutil.copy(path, merged / "archives" / path.name)
            all_once(bench, f"turn {turn}: merged", wanted, merged)
            bench.finish([bench.command, "archive", merged])
            all_once(bench, f"turn {turn}: merged and archived", wanted, merged)
            equal("lanes left", list((merged / "lanes").glob("*")), [])
            for one in bench.random.sample([store, copy], 2):
                to = bench.random.choice(depots)
                secret = {"CORDWOOD_PASSWORD": "secret"} if to is bucket else {}
                bench.finish([bench.command, "upload", one, "--to", to.url, *to.words],
                             environment=os.environ | secret)
                equal("archives left", list((one / "archives").glob("*.cwa")), [])
            all_once(bench, f"turn {turn}: sent", wanted, *(to.directory for to in depots))
    holds(clones > 0 or bench.notes, "no clone has written anything")
    bench.note(f"{count} records, {clones} with the id of another")


def copied(bench, store, copy, turn):
    """Makes both; the (id, message) that they have together."""
    told = []

    def go(steps, name):
        for _ in range(bench.random.randrange(1, 8)):
            step = bench.random.choice(["log", "log", "fill 700", "roll", "archive", "user"])
            if step == "user":
                steps.user = bench.random.choice(["nobody", "u1", "u2", "u3"])
                step = f"user {steps.user}"
            elif step == "log":
                told.append(f"{name} {turn} {len(told)} {steps.user}")
                step = f"log {told[-1]}"
            steps.do(step)
    own = Steps(bench, store)
    try:
        go(own, "before")
        is_resumed = turn % 3 == 1
        if is_resumed:
            # A machine is copied in one moment: nothing may be under way.
            own.do("archive")
        copy_of_living(store, copy)
        if is_resumed:
            number = bench.random.choice([1, 10, 2000])
            if own.ask(f"resume {number} {copy} {own.user} clone {turn}") == b"done\n":
                told.extend(f"clone {turn} {n} {own.user}" for n in range(number))
            elif not bench.notes:
                bench.note("no mount namespaces here;")
        go(own, "original")
        other = Steps(bench, copy)
        try:
            go(other, "copy")
        finally:
            other.close()
        bench.finish([bench.command, "archive", copy])
        go(own, "later")
    finally:
        own.close()
    wanted = set()
    for one in (store, copy):
        pairs, complaint = shown(bench, one)
        equal(f"turn {turn}: complaint", complaint, "")
        equal(f"turn {turn}: different ids", len({key for key, _ in pairs}), len(pairs))
        wanted.update(pairs)
    equal("messages", sorted(text for _, text in wanted if not text.startswith(b"w ")
                             and b"Cordwood" not in text), sorted(text.encode() for text in told))
    return wanted


def copy_of_living(store, copy):
    """As a backup makes it. Files of a living store may be gone before they are read."""
    done = subprocess.run(["cp", "-a", store, copy], check=False, text=True, capture_output=True,
                          env=dict(os.environ, LC_ALL="C"))
    equal("complaints of cp", [line for line in done.stderr.splitlines()
                               if not line.endswith(": No such file or directory")], [])


def all_once(bench, what, wanted, *stores):
    """The stores have these records, each once. Different ones with the same id are told."""
    pairs, complaint = shown(bench, *stores)
    equal(f"{what}: shown twice", len(pairs) - len(set(pairs)), 0)
    equal(f"{what}: lost", sorted(wanted - set(pairs))[:3], [])
    has_clones = len({key for key, _ in pairs}) < len(pairs)
    equal(f"{what}: clones are told: {complaint}", CLONE in complaint, has_clones)


CASES = {"copies": copies}
