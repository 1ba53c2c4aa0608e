"""Between send and delete: lost answers, and kill -9 before and after every system call of
`cordwood upload` from its first connection on (Tests/Crash/killer.c). Nothing may be lost. Our
collector, S3 and Elasticsearch have everything once. Others have one more copy for each lost
acknowledgement or process, under the same id and with the same bytes."""

import hashlib
import random
import shutil
import socket
import subprocess
import threading
from collections import Counter

from clouds import Collector, Recorder, Rclone
from frame import CORDWOOD, ROOT, Failed, Server, equal, full, holds, plain_environment, sized
from loopback import Listener
from store import Store, archive_id, decoded, same_lines
from web import Mitmproxy, Nginx

KILLS = (10, 30, 200)


class Cutter(Server):
    """Passes requests on. Reads the first `cuts` answers to their end, discards them and cuts the
    client: the server has stored the request. In this process, one thread per connection."""

    name = "cutter"

    def __init__(self, place, upstream, cuts):
        super().__init__(place)
        self.upstream, self.cuts = upstream, cuts
        self.count, self.lock = 0, threading.Lock()

    def start(self):
        self.listener = Listener(self._serve)
        self.port = self.listener.port
        return self

    def stop(self):
        self.listener.close()

    def _serve(self, client):
        with socket.create_connection(("127.0.0.1", self.upstream)) as server:
            up, down = client.makefile("rb"), server.makefile("rb")
            while self._one(up, down, client, server):
                pass

    def _one(self, up, down, client, server):
        if not self._pass(up, server.sendall):
            return False
        with self.lock:
            self.count += 1
            is_cut = self.count <= self.cuts
        answer = []
        if not self._pass(down, answer.append) or is_cut:
            return False
        client.sendall(b"".join(answer))
        return True

    @staticmethod
    def _pass(stream, sink):
        """Passes one message with a Content-Length to its end."""
        head, length = [], 0
        while True:
            line = stream.readline()
            if not line:
                return False
            head.append(line)
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            if line in (b"\r\n", b"\n"):
                break
        sink(b"".join(head))
        while length > 0:
            data = stream.read(min(length, 1 << 16))
            if not data:
                return False
            sink(data)
            length -= len(data)
        return True


# ── What each kind of server must have in the end ──

class Sink:
    """A server that receives a store, and the comparison afterwards."""

    kind, form, encoding, more = "http", "ndjson", "gzip", ()
    is_once = False

    def __init__(self, place):
        self.place = place

    def fresh(self):
        """Sets up an empty server."""

    @property
    def url(self):
        return f"{self.server.url}/logs"

    def options(self):
        return {"kind": self.kind, "form": self.form, "encoding": self.encoding, "more": self.more,
                "environment": self.environment()}

    def environment(self):
        return {}

    def judge(self, lines, hashes, losses):
        """Raises if anything is missing, changed or there too often."""


class Lines(Sink):
    """Any HTTP server: stores everything."""

    def __init__(self, place):
        super().__init__(place)
        self.server = Recorder(place).start()

    def fresh(self):
        self.server.script(respond="http")

    def judge(self, lines, hashes, losses):
        stored = self.server.stored()
        equal("ids", set(key.strip('"') for key in stored), set(hashes))
        extra = sum(entry["times"] - 1 for entry in stored.values())
        holds(all(entry["same"] for entry in stored.values()), "other bytes under the same id")
        holds(extra <= losses, f"{extra} copies more, after {losses} losses")
        got, seen = [], set()
        for request in self.server.requests():
            body, key = self.server.body(request), request["headers"]["idempotency-key"]
            whole = body is not None and request["bytes"] == int(
                request["headers"]["content-length"])
            if whole and key not in seen:
                seen.add(key)
                got += decoded(body, request["headers"].get("content-encoding", "")).split(b"\n")
        same_lines("what the server has", Store.ours(b"\n".join(got)), lines)


class Central(Sink):
    """Our collector: has each archive once."""

    kind, form, encoding, is_once = "collector", "archive", "none", True
    server = None

    def fresh(self):
        if self.server:
            self.server.stop()
            self.place.running.remove(self.server)
            shutil.rmtree(self.server.directory)
        self.server = Collector(self.place).start()

    @property
    def url(self):
        return self.server.url

    def judge(self, lines, hashes, losses):
        got = Counter()
        for data in self.server.archives().values():
            name = archive_id(data)
            got[name] += 1
            equal("its bytes", hashlib.sha256(data).hexdigest(), hashes.get(name))
        equal("archives of each id", got, Counter(dict.fromkeys(hashes, 1)))


class Bucket(Sink):
    """S3: each archive is one object."""

    kind, form, encoding, is_once = "s3", "archive", "none", True

    def __init__(self, place):
        super().__init__(place)
        self.server = Rclone(place).start()
        self.count = 0
        self.more = ("--user", self.server.access_key)

    def fresh(self):
        self.count += 1
        self.server.bucket = f"logs{self.count}"
        self.server.make_bucket(self.server.bucket)

    @property
    def url(self):
        return f"{self.server.url}/{self.server.bucket}"

    def environment(self):
        return {"CORDWOOD_PASSWORD": self.server.secret_key}

    def judge(self, lines, hashes, losses):
        got = Counter()
        for data in self.server.objects().values():
            got[archive_id(data)] += 1
            equal("its bytes", hashlib.sha256(data).hexdigest(), hashes.get(archive_id(data)))
        equal("objects of each id", got, Counter(dict.fromkeys(hashes, 1)))


class Index(Sink):
    """Elasticsearch: each record is one document, even if it came twice."""

    kind, form, encoding, is_once = "elasticsearch", "json", "gzip", True

    def __init__(self, place):
        super().__init__(place)
        self.server = Recorder(place).start()

    def fresh(self):
        self.server.script(respond="elasticsearch")

    @property
    def url(self):
        return self.server.url

    def judge(self, lines, hashes, losses):
        """The fake makes one document per `_id`. Other tests check its content."""
        documents = self.server.documents()
        ours = [name for name, document in documents.items()
                if not is_engines_own(document)]
        equal("documents", len(ours), len(lines))


def is_engines_own(document):
    text = str(document)
    return "Cordwood.Uploader" in text or "'lifecycle'" in text or "'Cordwood" in text


SINKS = {"http": Lines, "collector": Central, "s3": Bucket, "elasticsearch": Index}


# ── Lost acknowledgements ──

def acknowledgements(what, cuts=3):
    """The server stores, the client is cut off, three times in a row."""
    def case(place):
        store = Store(place).fill(60, place.seed)
        lines, hashes = store.lines(), store.hashes()
        sink = SINKS[what](place)
        sink.fresh()
        cutter = Cutter(place, sink.server.port, cuts).start()
        url = sink.url.replace(str(sink.server.port), str(cutter.port))
        for _ in range(cuts):
            before = len(store.archives())
            done = store.upload(url, **sink.options())
            if before == len(hashes) and cutter.count <= cuts:
                equal("archives after a lost acknowledgement", len(store.archives()), before)
            if done.code == 0:
                break
        store.upload_all(url, **sink.options())
        store.is_empty()
        holds(cutter.count > cuts, "nothing was cut")
        sink.judge(lines, hashes, cuts)
        place.note(f"{len(hashes)} archives, {cutter.count} requests, {cuts} answers lost")
    return case


@full
def acknowledgements_at_nginx(place):
    """The same with mitmproxy, and nginx behind it: a killed connection, a lost answer, a 503."""
    store = Store(place).fill(60, place.seed)
    lines, hashes = store.lines(), store.hashes()
    nginx = Nginx(place).start()
    proxy = Mitmproxy(place, upstream=nginx.port,
                      script=["kill", "lose", "503", "late", "lose"]).start()
    store.upload_all(proxy.url + "/post", form="ndjson", encoding="gzip")
    store.is_empty()
    bodies = nginx.bodies()
    by_id = {}
    for name, encoding, body in bodies:
        holds(by_id.setdefault(name, body) == body, f"other bytes under the same id {name}")
    equal("ids", {name.strip('"') for name in by_id}, set(hashes))
    extra = len(bodies) - len(by_id)
    holds(extra <= 2, f"{extra} copies more, two acknowledgements were lost")
    got = b"".join(decoded(body, "gzip") for body in by_id.values())
    same_lines("what nginx has", Store.ours(got), lines)
    place.note(f"faults met: {' '.join(proxy.faults())}; {extra} copies more")


# ── Kills ──

def killer_of(place):
    program = place.folder("tools") / "killer"
    if not program.exists():
        subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-o", str(program),
                        str(ROOT / "Tests/Crash/killer.c")], check=True)
    return program


def command(store, sink):
    words = [CORDWOOD, "upload", str(store.directory), "--to", sink.url, "--kind", sink.kind,
             "--name", "t", "--timeout", "60", "--json", "--format", sink.form, "--encoding",
             sink.encoding, *sink.more]
    return words


def trace(program, words, store, sink):
    return subprocess.run([str(program), *words, "--", *command(store, sink)], check=False,
                          env=plain_environment(**sink.environment()), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=180)


def points_of(labels):
    """(side, nth, label) from the first connection on. Of repeated calls, the first and last."""
    counts, points, is_sending = Counter(), [], False
    for label in labels:
        counts[label] += 1
        is_sending = is_sending or label.startswith("connect")
        if is_sending:
            points += [(side, counts[label], label) for side in ("before", "after")]
    return points


def kills(what):
    """`cordwood upload` dies at a point. The next one finishes the work."""
    def case(place):
        fixture = Store(place, "fixture")
        for logger in ("first", "second"):
            fixture.log([b"%d of %s" % (n, logger.encode()) for n in range(200)], logger).archive()
        lines, hashes = fixture.lines(), fixture.hashes()
        equal("archives", len(hashes), 2)
        sink, program = SINKS[what](place), killer_of(place)
        store = Store(place, "survey")
        shutil.copytree(fixture.directory, store.directory)
        sink.fresh()
        # Also reports a build without this kind.
        fresh = Store(place, "whole")
        shutil.copytree(fixture.directory, fresh.directory)
        equal("exit without a kill", fresh.upload(sink.url, **sink.options()).code, 0)
        sink.judge(lines, hashes, 0)
        sink.fresh()
        whole = trace(program, ["record", str(store.directory)], store, sink)
        equal("exit of the whole run", whole.returncode, 3)
        points = points_of(whole.stdout.splitlines())
        holds(len(points) >= 10, f"only {len(points)} points: {whole.stdout[-300:]}")
        count = sized(*KILLS)
        chance = random.Random(place.seed)
        chosen = [(*point, 0) for point in points]
        if count < len(chosen):
            chosen = chance.sample(chosen, count)
        while len(chosen) < count:
            side, nth, label = chance.choice(points)
            chosen.append(("after", nth, label, int(10 ** chance.uniform(0, 4.2))))
        reached = 0
        for number, point in enumerate(chosen):
            store = Store(place, f"killed-{number}")
            shutil.copytree(fixture.directory, store.directory)
            sink.fresh()
            try:
                reached += one_kill(program, point, store, sink, lines, hashes)
            except Failed as reason:
                raise Failed(f"killed {point}: {reason}") from reason
            shutil.rmtree(store.directory)
        place.note(f"{len(points)} points, {len(chosen)} kills, {reached} at their point, 0 lost")
        holds(reached >= len(chosen) // 2, f"only {reached} of {len(chosen)} points were reached")
    return case


def one_kill(program, point, store, sink, lines, hashes):
    side, nth, label, steps = point
    done = trace(program, [side, str(store.directory), str(nth), str(steps), label], store, sink)
    holds(done.returncode in (0, 3), f"killer ended {done.returncode}: {done.stderr[-200:]}")
    store.upload_all(sink.url, **sink.options())
    store.is_empty()
    # The next pass removes what a death leaves of an archive that is gone now.
    store.upload(sink.url, **sink.options())
    left = [path.name for path in (store.directory / "queue").iterdir()]
    equal("left in queue/", left, [])
    # One process died: what it had in flight may come once more, one archive each.
    sink.judge(lines, hashes, len(hashes))
    return done.returncode == 0


CASES = {f"acknowledgements_{name}": acknowledgements(name) for name in SINKS}
CASES["acknowledgements_nginx"] = acknowledgements_at_nginx
CASES.update({f"kills_{name}": kills(name) if name == "http" else full(kills(name))
              for name in SINKS})
