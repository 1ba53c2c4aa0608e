"""The hostile script: one line for each thing that servers do to clients, for every kind and form
of the build. After every attempt: an archive is gone only if the server answered 2xx to all of it;
the same id and encoding had the same bytes; attempts were counted. Prints the table."""

import re
import resource
import shutil
import time

from clouds import Recorder
from frame import Failed, equal, full, holds
from store import FAILED, NotBuilt, Store, archive_id, decoded, same_lines

PAST = "Fri, 04 Nov 2014 23:59:59 GMT"  # a wrong weekday, too
GIB = 1 << 30
# Beyond the memory of a plain upload, in KiB.
MEMORY_KIB = 32 << 10


class Kind:
    """A kind of target with one form and encoding, and the answers of its server."""

    def __init__(self, kind, form, encoding, path="", respond="", more=(), simpler=()):
        self.kind, self.form, self.encoding = kind, form, encoding
        self.path, self.respond, self.more, self.simpler = path, respond or kind, more, simpler

    def __str__(self):
        return f"{self.kind}-{self.form}-{self.encoding}"

    @property
    def is_archive(self):
        return self.form == "archive"

    def send(self, store, server, token="first", **more):
        who = {"token": token, "more": self.more}
        if self.kind == "s3":
            who = {"more": [*self.more, "--user", token],
                   "environment": {"CORDWOOD_PASSWORD": "secret"}}
        return store.upload(server.url + self.path, self.kind, self.form, self.encoding, **who,
                            **more)

    @property
    def lines(self):
        """An S3 object has no encoding that a server could refuse."""
        return [line for line in LINES if self.kind != "s3" or not line.startswith("415")]


SAP = "/mobileservices/application/a/clientlogs/v1/runtime/log/application/a?deviceId=d"
INSERT = "/?query=INSERT%20INTO%20logs%20FORMAT%20JSONEachRow"
KINDS = [
    Kind("collector", "archive", "none"),
    Kind("http", "archive", "none", "/logs/{id}", "http"),
    Kind("http", "archive", "gzip", "/logs", "http", simpler=("none",)),
    Kind("http", "ndjson", "none", "/logs", "http"),
    Kind("http", "ndjson", "gzip", "/logs", "http", simpler=("none",)),
    Kind("http", "ndjson", "zstd", "/logs", "http", simpler=("gzip", "none")),
    Kind("http", "text", "lz4", "/logs", "http", simpler=("gzip", "none")),
    Kind("sap", "sap", "none", SAP), Kind("sap", "sap", "gzip", SAP, simpler=("none",)),
    Kind("loggly", "json", "none", "/bulk/TOKEN/tag/cordwood/"),
    Kind("s3", "archive", "none", "/logs"),
    Kind("s3", "ndjson", "zstd", "/logs"),
    Kind("otlp", "otlp-protobuf", "gzip", simpler=("none",)),
    Kind("otlp", "otlp-json", "gzip", simpler=("none",)),
    Kind("loki", "json", "gzip", simpler=("none",)),
    Kind("elasticsearch", "json", "gzip", simpler=("none",)),
    Kind("splunk", "json", "gzip", simpler=("none",)),
    Kind("datadog", "json", "gzip", simpler=("none",)),
    Kind("clickhouse", "json", "gzip", INSERT, simpler=("none",)),
]


class Run:
    """One line of the script against one kind: a copy of the store, and uploads of it."""

    def __init__(self, kind, server, fixture, directory):
        self.kind, self.server = kind, server
        shutil.copytree(fixture.directory, directory)
        self.store = Store(fixture.place, directory.name)
        self.store.directory = directory
        self.wanted = fixture.lines()
        self.hashes = fixture.hashes()
        self.calls = self.peak = 0
        self.started = time.monotonic()

    def attempt(self, **more):
        self.store.wait_for_server()
        done = self.kind.send(self.store, self.server, **more)
        self.calls += 1
        self.peak = max(self.peak, done.peak_kib)
        self.check()
        return done

    def until_sent(self, attempts_max=6, **more):
        """Explicit attempts until it is sent. Returns the last result."""
        for _ in range(attempts_max):
            done = self.attempt(**more)
            if done.code == 0:
                self.store.is_empty()
                self.whole()
                return done
        raise Failed(f"not sent in {attempts_max} attempts: {done}, {self.store.states()}")

    # What must hold after every attempt

    def check(self):
        requests = self.server.requests()
        # Nothing is sent without an id, and an id always means the same bytes.
        bodies = {}
        for request in requests:
            body = self.server.body(request)
            if body is None:
                continue
            headers = request["headers"]
            key = (headers.get("idempotency-key", ""), headers.get("content-encoding", ""))
            holds(key[0], "a request without an Idempotency-Key")
            known = bodies.setdefault(key, request["sha256"])
            equal(f"the hash of a later attempt of {key}", request["sha256"], known)
            holds("expect" not in headers, "Expect was sent")
            holds(headers.get("content-type"), "no Content-Type")
            if self.kind.is_archive and key[1] == "":
                equal("the body's hash", request["sha256"], self.hashes.get(key[0].strip('"')))
        if not self.store.archives():
            holds(self.server.taken(), "the archive is gone without a 2xx")

    def counted(self, attempts, word="retry"):
        """The state's name contains the number of attempts."""
        states = self.store.states()
        holds(len(states) == 1, f"states: {states}")
        found = re.match(r"(\w+)-(\d+)", states[0])
        equal("state and attempts", (found[1], int(found[2])), (word, attempts))
        return states[0]

    def whole(self):
        """The server accepted what was logged, if the form can be read here."""
        kind, parts = self.kind, self.server.taken()
        if kind.is_archive:
            body = self.server.body(parts[-1])
            data = decoded(body, encoding_of(parts[-1]["headers"]))
            holds(archive_id(data) in self.hashes, "another archive")
        elif kind.form == "ndjson":
            lines = []
            for key in dict.fromkeys(r["headers"]["idempotency-key"] for r in parts):
                last = [r for r in parts if r["headers"]["idempotency-key"] == key][-1]
                lines += decoded(self.server.body(last), encoding_of(last["headers"])).split(b"\n")
            same_lines("what the server has", Store.ours(b"\n".join(lines)), self.wanted)


def encoding_of(headers):
    """For an object its type tells the encoding."""
    by_type = {"application/zstd": "zstd", "application/gzip": "gzip"}
    return headers.get("content-encoding") or by_type.get(headers.get("content-type"), "")


# ── The lines ──

def retried(run, *answers):
    """Each answer is one failed attempt, counted. Then the archive is sent."""
    for number in range(1, len(answers) + 1):
        done = run.attempt()
        equal("exit of an attempt that failed", done.code, FAILED)
        equal("waiting", done["waiting"], 1)
        run.counted(number)
    run.until_sent(1)
    equal("requests", len(run.server.requests()), len(answers) + 1)


def dropped(run, answers):
    retried(run, *answers)


def half(run, answers):
    retried(run, *answers)


def failing(run, answers):
    retried(run, *answers)


def told_when(run, answers):
    """Not before the server's time, not even by an explicit call."""
    run.attempt()
    state = run.counted(1)
    holds(re.match(r"retry-1-\d+-server", state), f"the server's word is not kept: {state}")
    run.kind.send(run.store, run.server)
    # Inconclusive if the machine was busy for a second.
    if time.time() * 1000 < int(state.split("-")[2]):
        equal("requests within the server's second", len(run.server.requests()), 1)
    run.until_sent(2)
    equal("requests", len(run.server.requests()), 2)


def now(run, answers):
    """A date in the past delays nothing for more than a second."""
    run.attempt()
    state = run.counted(1)
    ahead = int(state.split("-")[2]) / 1000 - time.time()
    holds(ahead < 1.1, f"not before {ahead:.1f} s from now")
    run.until_sent(1)


def new_token(run, answers):
    done = run.attempt(token="first")
    equal("exit", done.code, FAILED)
    run.counted(1, "paused")
    run.until_sent(1, token="second")
    last = run.server.requests()[-1]["headers"]
    if run.kind.kind != "loggly":  # its token stands in the URL
        holds(any("second" in value for value in last.values()), "the new token was not used")


def forbidden(run, answers):
    run.attempt()
    run.counted(1, "paused")
    run.until_sent(1)


def rests(run, answers):
    """An answer about the way to the server: one request per call, nothing is given up, and once
    the way is free the archive is sent."""
    done = run.attempt()
    equal("exit", done.code, FAILED)
    state = run.counted(1)
    holds("-refused" in state, f"the state is {state}")
    equal("requests", len(run.server.requests()), 1)
    equal("archives", len(run.store.archives()), 1)
    run.until_sent(1)


def never(run):
    """A server that accepts nothing: whatever it answers, the archive stays."""
    for number in range(1, 5):
        equal("exit", run.attempt().code, FAILED)
        run.counted(number)
    equal("requests", len(run.server.requests()), 4)
    equal("archives", len(run.store.archives()), 1)


def conflict(run, answers):
    if run.kind.kind in ("collector", "s3"):
        return retried(run, *answers)
    return rests(run, answers)


def too_large(run, answers):
    """Halved again and again, until it is accepted. Whole archives cannot be halved."""
    if run.kind.is_archive:
        return never(run)
    done = run.attempt()
    equal("exit", done.code, 0)
    run.store.is_empty()
    run.whole()
    parts = run.server.taken()
    holds(len(parts) > 1, "it was taken whole")
    holds(all(r["bytes"] <= LIMIT for r in parts), "a part over the limit was taken")
    ids = {r["headers"]["idempotency-key"] for r in parts}
    equal("ids of the parts", len(ids), len(parts))
    refusals = len(run.server.requests()) - len(parts)
    holds(refusals <= 12, f"{refusals} refusals before it was small enough")


def other_encoding(run, answers):
    kind = run.kind
    if not kind.simpler:
        return never(run)
    done = run.attempt()
    equal("exit", done.code, 0)
    run.store.is_empty()
    run.whole()
    tried = [r["headers"].get("content-encoding", "none") for r in run.server.requests()]
    equal("encodings that were tried", tried, [kind.encoding, *kind.simpler])
    equal("ids", len({r["headers"]["idempotency-key"] for r in run.server.requests()}), 1)


def huge(run, answers):
    """The status counts if the kind reads no more. Memory is bounded in any case."""
    run.until_sent(2)


LIMIT = 4000
LINES = {
    "connection dropped": (dropped, [{"action": "drop"}], {}),
    "half a response": (half, [{"action": "half"}], {}),
    "500": (failing, [{"status": 500}, {"status": 500}], {}),
    "429, Retry-After: 1": (told_when, [{"status": 429, "headers": {"Retry-After": "1"}}], {}),
    "429": (failing, [{"status": 429}], {}),
    "503, a past date": (now, [{"status": 503, "headers": {"Retry-After": PAST}}], {}),
    "503": (failing, [{"status": 503}], {}),
    "401, then a new token": (new_token, [{"status": 401}], {}),
    "403": (forbidden, [{"status": 403}], {}),
    "409": (conflict, [{"status": 409}], {}),
    "413, split": (too_large, [], {"limit": LIMIT}),
    "415, other encoding": (other_encoding, [], {}),
    "302": (rests, [{"status": 302, "headers": {"Location": "/elsewhere"}}], {}),
    "200 with 1 GiB": (huge, [{"action": "huge", "bytes": GIB, "status": 200}], {}),
}


def rules_of(kind, line):
    rules = {"respond": kind.respond, **LINES[line][2]}
    if line.startswith("415"):
        rules["refuse"] = ",".join([kind.encoding, *kind.simpler[:-1]])
    if line.startswith("413") and kind.is_archive:
        rules["limit"] = 100
    return rules


def against(kind):
    def case(place):
        fixture = Store(place, "fixture").fill(200, place.seed)
        holds(len(fixture.archives()) >= 1, "no archive")
        keep_one(fixture)
        server = Recorder(place).start()
        plain, wrong = None, []
        for line in kind.lines:
            check, answers, _ = LINES[line]
            server.script(answers, **rules_of(kind, line))
            run = Run(kind, server, fixture, place.directory / f"run-{line.split(',')[0]}")
            try:
                check(run, answers)
                outcome = "sent" if not run.store.archives() else run.store.states()[0]
            except NotBuilt:
                raise
            except Failed as reason:
                outcome = f"WRONG: {reason}"
                wrong.append(line)
            if line == "500":
                plain = run.peak
            # A child's peak begins with its parent's: ours may have grown meanwhile.
            plain = max(plain or 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            if line.startswith("200") and run.peak - plain > MEMORY_KIB:
                outcome = f"WRONG: {(run.peak - plain) >> 10} MiB more than a plain answer takes"
                wrong.append(line)
            place.note(f"\n    {line:24} {len(server.requests()):3} requests, {run.calls} attempts"
                       f", {time.monotonic() - run.started:5.2f} s: {outcome}")
            shutil.rmtree(run.store.directory)
        holds(not wrong, f"{len(wrong)} of {len(kind.lines)} lines: {', '.join(wrong)}")
    return case


def keep_one(store):
    """One archive holds the lines of this script. Other themes test several."""
    for path in store.archives()[:-1]:
        path.unlink()


# Any server, and our own.
CORE = ("http-ndjson-none", "collector-archive-none")
CASES = {str(kind): against(kind) if str(kind) in CORE else full(against(kind)) for kind in KINDS}
