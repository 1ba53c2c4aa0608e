"""The list of devices has the counts of the command line, from archives, of which it reads only
columns, and each once, and from lanes. A query for one device does not open other archives."""

import collections
import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

from stores import ROOT, cat, plain
from cases import Skipped, equal, holds
from serving import CORDWOOD, Server, environment

# Each device logs in place of a process. Every archive is like one that a collector received.
FLEET = """
import cordwood, sys
store, first, last, records, fields = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5:]
for number in range(first, last):
    engine = cordwood.open(store, console="off", process_name="shop")
    engine.set_resource("host.name", f"dev-{number % 1000}")
    engine.set_resource("service.version", f"1.{number // 1000}")
    log = engine.logger("app")
    for record in range(records):
        more = {fields[0]: fields[1]} if fields and record == 0 else {}
        (log.error if record % 10 == 9 else log.info)(f"record {record} of {number}", **more)
    engine.roll()
    engine.archive_wait(30)
    engine.close()
"""


def fleet(store, first, last, records=20, *fields):
    done = subprocess.run(
        [sys.executable, "-c", FLEET, str(store), str(first), str(last), str(records), *fields],
        stderr=subprocess.PIPE, check=False,
        env=environment(PYTHONPATH=str(ROOT / "bindings/python/src"),
                        CORDWOOD_LIBRARY=os.environ["CORDWOOD_LIBRARY"]))
    equal("the fleet", (done.returncode, done.stderr), (0, b""))


def named(store, name):
    """A store with that name as machine, program, logger and field."""
    done = subprocess.run(
        [sys.executable, "-c", """
import cordwood, sys
store, name = sys.argv[1:]
with cordwood.open(store, console="off", process_name=name) as engine:
    engine.set_resource("host.name", name)
    engine.set_resource("service.name", name)
    engine.logger(name).error(name, **{name: name})
    engine.roll()
    engine.archive_wait(30)
""", str(store), name], stderr=subprocess.PIPE, check=False,
        env=environment(PYTHONPATH=str(ROOT / "bindings/python/src"),
                        CORDWOOD_LIBRARY=os.environ["CORDWOOD_LIBRARY"]))
    equal("the store", (done.returncode, done.stderr), (0, b""))


def counted(lines, name=lambda line: line["host"] or ""):
    """By device: records, errors, gaps, the first and the last time."""
    found = collections.defaultdict(lambda: [0, 0, 0, "9", ""])
    for line in lines:
        one = found[name(line)]
        one[0] += 1
        one[1] += line["level"].startswith(("ERROR", "FATAL"))
        one[2] += line["kind"] == "gap"
        one[3] = min(one[3], line["time"])
        one[4] = max(one[4], line["time"])
    return dict(found)


def time_of(ns):
    seconds, rest = divmod(int(ns), 1_000_000_000)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def figures(server, **parameters):
    answer = server.get("devices", **parameters).json
    return {row["name"]: [row["records"], row["errors"], row["gaps"], time_of(row["first_ns"]),
                          time_of(row["last_ns"])] for row in answer["rows"]}, answer


def devices(folder, seed):
    """The figures are those of `cordwood cat`, cold and warm, for archives and lanes."""
    store = folder / "store"
    fleet(store, 0, 40)
    fleet(store, 1000, 1010)
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    with Server(store, env=cache) as server:
        lines = cat(store)
        wanted = counted(lines)
        for state in ("cold", "warm"):
            found, answer = figures(server)
            equal(state, found, wanted)
            equal("devices", (answer["devices"], answer["matched"], answer["next"]),
                  (40, 40, None))
            equal("unknown", answer["unknown_archives"], 0)
            for row in answer["rows"]:
                equal("bins", (len(row["counts"]), sum(row["counts"])), (48, row["records"]))
            names = [row["name"] for row in answer["rows"]]
            equal("the latest first", names[0], "dev-9")
        version = {row["name"]: row["version"] for row in answer["rows"]}
        equal("versions", (version["dev-3"], version["dev-30"]), ("1.1", "1.0"))
        size = sum(path.stat().st_size for path in (store / "archives").iterdir())
        total = sum(row["bytes"] for row in answer["rows"])
        holds(size * 0.99 <= total <= size, f"{total} bytes of {size}")
        by_service, _ = figures(server, by="process")
        equal("by process", {name: row[0] for name, row in by_service.items()},
              dict(collections.Counter(line["process"] for line in lines)))
        equal("part of a name", sorted(figures(server, q="DEV-3")[0]),
              sorted(name for name in wanted if name.startswith("dev-3")))
        for order, key in (("name", lambda row: row["name"]),
                           ("records", lambda row: (-row["records"], row["name"])),
                           ("errors", lambda row: (-row["errors"], row["name"]))):
            rows = figures(server, sort=order)[1]["rows"]
            equal(order, rows, sorted(rows, key=key))
        paged, key = [], None
        while True:
            answer = figures(server, limit=7, **({"from_": key} if key else {}))[1]
            paged += [row["name"] for row in answer["rows"]]
            key = answer["next"]
            if key is None:
                break
        equal("pages", paged, names)
        for parameters in ({"by": "x"}, {"sort": "x"}, {"limit": 1001}):
            equal(f"{parameters}", server.api("devices", **parameters).status, 400)
        holds(list((folder / "cache/cordwood").glob("*.facts")), "nothing is remembered")


def one_device(folder, seed):
    """A query for one device opens only its archives, and finds what a full read finds."""
    if not Path("/usr/bin/strace").exists():
        raise Skipped("needs strace")
    store = folder / "store"
    fleet(store, 0, 40, 20)
    fleet(store, 40, 42, 20, "host.name", "dev-7")  # a field has priority over the attribute
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    queries = ["host.name:dev-7", "host.name=dev-8", "NOT host.name:dev-7",
               "host.name:dev-7 level>=error", "host.name:dev-7 OR host.name:dev-9",
               "host.name=* NOT host.name=dev-1", "service.name:shop host.name:dev-2",
               "host.name!=dev-3", "host.name~/dev-1[0-3]/"]
    without = {query: [plain(line) for line in cat(store, "-q", query)] for query in queries}
    with Server(store, env=cache) as server:
        server.get("devices")
        for query in queries:
            rows, done = server.rows(q=query, parts="rows,count", limit=1000, dir="forward")
            equal(query, [plain(row) for row in rows], without[query])
            equal(query, done["matched"], len(rows))
        rows, _ = server.rows(q="host.name:dev-7", limit=5)
        equal("the last ones", [plain(row) for row in rows], without["host.name:dev-7"][::-1][:5])

    def opened(*words):
        log = folder / "strace"
        subprocess.run(["strace", "-f", "-e", "trace=openat,open", "-o", log, CORDWOOD, "cat",
                        store, *words], env=environment(**cache), stdout=subprocess.DEVNULL,
                       check=True)
        return re.findall(r'archives/([^"]+\.cwa)"', log.read_text())

    holds(len(set(opened())) >= 42, "the archives are fewer")
    few = opened("-q", "host.name:dev-8")
    # Its own archive, and the two in which some record has such a field.
    holds(len(set(few)) <= 3, f"{len(set(few))} archives are opened for one device")
    # The command line alone: it remembers what the first query for a device had to read.
    cache = {"XDG_CACHE_HOME": str(folder / "another cache")}
    first, second = (opened("-q", f"host.name:dev-{number}") for number in (8, 9))
    holds(len(first) >= 42, f"{len(first)} archives are opened at first")
    holds(len(set(second)) <= 3, f"{len(set(second))} archives are opened for another device")
    for query in queries:
        found = [plain(line) for line in cat(store, "-q", query)]
        equal(f"the command line: {query}", found, without[query])
