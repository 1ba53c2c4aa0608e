"""What distinguishes records and devices: an id belongs to one record and stays the same on its way
through a store and to the collector (FORMAT §7.1), and every form in which a store is read names
the device of a record. Cases of run.py."""

import csv
import io
import json
import re
import signal
import sqlite3
import subprocess
from collections import Counter

from cases import Failed, equal, full, holds, sized
from checking import read_ledger

LINE = re.compile(rb'{.*"message":"([^"]*)".*"record_id":"([0-9a-f]{48})"}\n')
USER = re.compile(rb" (u\d+|nobody)$")
DEVICES = 400


def shown(bench, *stores):
    """What `cat --json` shows: (id, message) of each record, and its complaint. A message that ends
    with a user, or with "nobody", must be of that user."""
    pairs = []
    with subprocess.Popen([bench.command, "cat", "--json", *(stores or [bench.store])],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for line in process.stdout:
            match = LINE.fullmatch(line)
            holds(match, f"a line without an id: {line[-300:]}")
            user = USER.search(match[1])
            holds(not user or (b'"user.id":"%s"' % user[1] in line if user[1] != b"nobody"
                               else b'"user.id"' not in line), f"another user: {line}")
            pairs.append((bytes.fromhex(match[2].decode()), match[1]))
        complaint = process.stderr.read().decode()
    equal(f"cordwood cat ends: {complaint}", process.returncode, 3 if complaint else 0)
    return pairs, complaint


def ids(bench, *stores):
    """{id: message} as `cat --json` shows them. Every record must have a unique id."""
    pairs, complaint = shown(bench, *stores)
    equal("complaint", complaint, "")
    equal("different ids", len(dict(pairs)), len(pairs))
    return dict(pairs)


def record_ids_unique(bench):
    """A million records of 8 threads, whose process forks children that are killed, and itself is
    killed or lives on; live and archived."""
    each, living = sized(5_000, 42_000, 200_000), None
    try:
        for way in (0, 1):
            bench.run("ids", "storm", bench.random.randrange(1 << 30), 8, each, way,
                      codes=(0, -signal.SIGKILL))
        living = bench.start("ids", "storm", bench.random.randrange(1 << 30), 8, each, 2,
                             stdout=subprocess.PIPE)
        equal("the program", living.stdout.readline(), b"ready\n")
        live = ids(bench)
        holds(len(live) >= 24 * each, f"only {len(live)} records")
        bench.note(f"{len(live)} records")
    finally:
        if living:
            living.kill()
            living.wait(60)
            living.stdout.close()
    bench.archive()
    archived = ids(bench)
    ours = {key: text for key, text in live.items() if text.startswith(b"w ")}
    equal("records that are gone or have another id",
          [key.hex() for key, text in ours.items() if archived.get(key) != text][:3], [])
    kept = set(ours.values())
    equal("messages that are there twice", len(ours) - len(kept), 0)
    counts = Counter(int(text.split(b" ", 2)[1]) for text in kept)
    for slot, (_, returned, _, _) in read_ledger(bench.ledger).items():
        # A killed writer may have one more, whose call had not returned.
        holds(returned <= counts[slot] <= returned + 1,
              f"slot {slot}: {counts[slot]} of {returned} records")


class Steps:
    """A program that runs one step after another."""

    def __init__(self, bench, store=None):
        self.user = "nobody"
        self.process = bench.start("ids", "steps", store=store, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)

    def ask(self, step):
        self.process.stdin.write(f"{step}\n".encode())
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def do(self, *steps):
        for step in steps:
            equal(step, self.ask(step), b"done\n")
        return self

    def die(self, step="die"):
        self.process.stdin.write(f"{step}\n".encode())
        self.process.stdin.flush()
        equal(step, self.process.wait(60), -signal.SIGKILL)
        self.close()

    def close(self):
        self.process.kill()
        self.process.wait(60)
        self.process.stdin.close()
        self.process.stdout.close()


class Collector:
    words = ()  # of `cordwood upload`

    def __init__(self, bench, name="depot"):
        self.directory = bench.directory / name
        self.process = subprocess.Popen(
            [bench.command, "collect", "--listen", "127.0.0.1:0", "--directory", self.directory],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.url = self.process.stdout.readline().decode().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stdout.close()


def id_of(bench, message, store=None):
    stores = [store] if store else []
    found = [key for key, text in ids(bench, *stores).items() if text == message.encode()]
    equal(f"records {message!r}", len(found), 1)
    return found[0]


def record_id_stays(bench):
    """Live, sealed, archived by its own process and by others, merged with other lanes, and at the
    collector."""
    known, alive = {}, []

    def check(where, *messages, store=None):
        for message in messages:
            now = id_of(bench, message, store)
            equal(f"{message} {where}", now, known.setdefault(message, now))
    try:
        # More than segment 0, which has no separate file, so that there is one to seal.
        alive.append(Steps(bench).do("fill 3000", "log own"))
        check("live", "own")
        alive[0].do("roll", "log later")
        check("rolled", "own", "later")
        alive[0].do("archive")
        check("archived beside its live lane", "own", "later")
        for attempt in range(20):
            message = f"sealed {attempt}"
            alive.append(Steps(bench).do("fill 3000", f"log {message}"))
            check("live", message)
            alive.pop().die("sealed")
            check("sealed by a process that died", message)
            if any((bench.store / "lanes").glob("*.sealed")):
                break
        else:
            raise Failed("the archiver was always faster")
        # The live process archives dead lanes, too, one by one as it finds them.
        for attempt in range(20):
            for number in range(3):
                message = f"small {attempt} {number}"
                alive.append(Steps(bench).do(f"log {message}"))
                check("live", message)
                alive.pop().die()
                check("of a dead process", message)
            bench.archive()
            if any((bench.store / "archives").glob("*+*.cwa")):
                break
        else:
            raise Failed("no archive of several lanes")
        check("archived", *known)
        alive.pop().close()
        bench.archive()
        check("archived", *known)
        with Collector(bench) as collector:
            bench.finish([bench.command, "upload", bench.store, "--to", collector.url])
            equal("archives left", list((bench.store / "archives").glob("*.cwa")), [])
            check("at the collector", *known, store=collector.directory)
        bench.note(f"{len(known)} records")
    finally:
        for steps in alive:
            steps.close()


def users(bench):
    """The user changes, thousands of times, while threads, their signal handlers and forked
    children log. Each record has the user of its time: live, archived, merged, collected."""
    for turn in range(sized(2, 12, 40)):
        store = bench.directory / f"store {turn}"
        way = (turn + 1) % 4
        bench.run("ids", "users", bench.random.randrange(1 << 30), bench.random.randrange(1, 6),
                  (400, 5_000, 1_000, 10_000)[way], way,
                  codes=(-signal.SIGKILL if way & 1 else 0,), store=store)
        live = owned(bench, f"turn {turn}: live", store)
        bench.finish([bench.command, "archive", store])
        equal(f"turn {turn}: archived", owned(bench, f"turn {turn}: archived", store), live)
        bench.finish([bench.command, "compact", store])
        with Collector(bench, f"depot {turn}") as collector:
            bench.finish([bench.command, "upload", store, "--to", collector.url])
            equal(f"turn {turn}: at the collector",
                  owned(bench, f"turn {turn}: at the collector", collector.directory), live)
        bench.note(f"{len(live)} records")


def owned(bench, what, store):
    """{id: user} of what `users` of ids.c logged, each of which says the least and, in the record
    after it, the most that its user may be."""
    found, before = {}, {}
    done = subprocess.run([bench.command, "cat", "--json", store], check=False,
                          capture_output=True, timeout=300)
    equal(f"{what}: cordwood cat", (done.returncode, done.stderr.decode()), (0, ""))
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record["logger"] != "users":
            continue
        user, key = record["resource"].get("user.id"), record["record_id"]
        holds(key not in found, f"{what}: twice: {line}")
        found[key] = user
        kind, number = record["message"].split()
        # The lane and the thread.
        mine, number = key[:32], int(number)
        if kind == "s":
            holds(user is None or int(user[1:]) >= number, f"{what}: an older user: {line}")
        elif kind == "l":
            before[mine] = number, user
        elif mine in before:
            least, of = before.pop(mine)
            holds(of is None or least <= int(of[1:]) <= number,
                  f"{what}: {of}, not of {least} to {number}: {line}")
            holds(of is not None or any(n % 7 == 0 for n in range(least, number + 1)),
                  f"{what}: nobody, not of {least} to {number}: {line}")
    holds(len(found) > 10, f"{what}: only {len(found)} records")
    return found


def export(bench, store, form):
    return bench.finish([bench.command, "export", store, "--format", form])


@full
def devices_told_apart(bench):
    """Engines with resources of 400 devices, sent to one collector."""
    bench.run("ids", "devices", DEVICES)
    live = export(bench, bench.store, "ndjson")
    bench.archive()
    with Collector(bench) as collector:
        bench.finish([bench.command, "upload", bench.store, "--to", collector.url])
        store = collector.directory
        cat = bench.finish([bench.command, "cat", store])
        origin = bench.finish([bench.command, "cat", "--origin", store])
        ndjson = export(bench, store, "ndjson")
        rows = list(csv.DictReader(io.StringIO(export(bench, store, "csv"))))
        otlp = export(bench, store, "otlp")
    objects = [json.loads(line) for line in ndjson.splitlines()]
    started = [found for found in objects if found["message"] == "started"]
    wanted = sorted((f"device-{n}", f"shop-{n % 4}", f'user, "{n}"') for n in range(DEVICES))
    equal("JSON", sorted((found["host"], found["service"], found["resource"]["user.id"])
                         for found in started), wanted)
    mine = [row for row in rows if row["message"] == "started"]
    equal("CSV", sorted((row["host"], row["service"], json.loads(row["resource"])["user.id"])
                        for row in mine), wanted)
    equal("ids of CSV", sorted(row["record_id"] for row in mine),
          sorted(found["record_id"] for found in started))
    for name, text in (("cat", cat), ("cat --origin", origin), ("otlp", otlp)):
        words = set(re.split(r'[\s"/\\[\]]', text))
        equal(f"{name}: devices that it does not name",
              [n for n in range(DEVICES) if f"device-{n}" not in words][:3], [])
    equal("lines of cat --origin without their id",
          [line for line in origin.splitlines() if not re.search(r" \[[0-9a-f]{48}\]$", line)][:3],
          [])
    single(live, ndjson)
    bench.note(f"{len(started)} devices, {len(objects)} records")


def single(live, ndjson):
    """Exports of the live store, then twice of the collector's: a database keeps each record once,
    by its id."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE logs (record_id TEXT PRIMARY KEY, line TEXT)")
    for line in (live + ndjson + ndjson).splitlines():
        database.execute("INSERT OR IGNORE INTO logs VALUES (?, ?)",
                         (json.loads(line)["record_id"], line))
    kept = [line for line, in database.execute("SELECT line FROM logs")]
    equal("records made single", sorted(kept), sorted(ndjson.splitlines()))


CASES = {
    "record_ids_unique": record_ids_unique,
    "record_id_stays": record_id_stays,
    "users": users,
    "devices_told_apart": devices_told_apart,
}
