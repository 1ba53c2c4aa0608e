"""The API's answers are those that the command line prints of the same store."""

import collections
import contextlib
import json
import random
import shutil
import subprocess
import sys
import threading
import time

import changes
from stores import PARTS, cat, let_go, mixed, oracle, plain, tool, write
from asking import Asking
from cases import equal, full, holds, sized
from serving import CORDWOOD, Server, environment
from steady import PER_SECOND, Steady, equal_costs


def walk(server, direction, limit, **parameters):
    """All rows, page by page."""
    rows, key = [], parameters.pop("from_", None)
    while True:
        more = {"from_": key} if key else {}
        found, done = server.rows(dir=direction, limit=limit, parts="rows", **more, **parameters)
        holds(len(found) <= limit, f"{len(found)} rows of {limit}")
        rows += found
        if done["next"] is None:
            return rows
        equal("next", done["next"], found[-1]["key"])
        key = done["next"]


@full
def equal_times(folder, seed):
    """10,000 records with one time: each once, in both directions, archived and live."""
    store = folder / "store"
    write(store, 7_000, times=1_800_000_000.0, roll=1_000)
    tool("archive", store)
    write(store, 3_000, times=1_800_000_000.0)
    wanted = [line["record_id"] for line in cat(store)]
    equal("records", len([line for line in cat(store) if line["kind"] == "log"]), 10_000)
    with Server(store) as server:
        forward = [row["record_id"] for row in walk(server, "forward", 700)]
        equal("forward", forward, wanted)
        back = [row["record_id"] for row in walk(server, "back", 1_000)]
        equal("back", back[::-1], wanted)
        chance = random.Random(seed)
        rows = walk(server, "forward", 1_000)
        for _ in range(12):
            at = chance.randrange(len(rows))
            key = rows[at]["key"]
            older, _ = server.rows(dir="back", limit=30, from_=key, parts="rows")
            newer, _ = server.rows(dir="forward", limit=30, from_=key, parts="rows")
            ids = [row["record_id"] for row in [*older[::-1], rows[at], *newer]]
            equal(f"around {at}", ids, wanted[max(at - 30, 0):at + 31])
        # A page may continue from a record that the query excludes.
        some = [line["record_id"] for line in cat(store, "-q", "n<5000 kind=log")]
        apart = next(row for row in rows if (row.get("fields") or {}).get("n") == 6_000)
        place = wanted.index(apart["record_id"])
        found, _ = server.rows(dir="back", limit=40, from_=apart["key"], q="n<5000 kind=log",
                               parts="rows")
        before = [name for name in wanted[:place] if name in set(some)]
        equal("from a row apart", [row["record_id"] for row in found], before[::-1][:40])


# Runs a command and prints its memory in KiB.
MEMORY = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


@full
def large_rows(folder, seed):
    """Pages of large records end sooner, and memory is bounded, including that of `tail -n`."""
    count, size = 160, 500_000
    store = folder / "store"
    write(store, count, message=f"%0{size}d")
    tool("archive", store)
    wanted = [line["record_id"] for line in cat(store, "-q", "kind=log")]
    equal("records", len(wanted), count)
    with Server(store) as server:
        rows, done = server.rows(dir="back", limit=1_000, q="kind=log", parts="rows")
        holds(8 <= len(rows) < 20, f"{len(rows)} rows in a page")
        equal("next", done["next"], rows[-1]["key"])
        rows += walk(server, "back", 1_000, q="kind=log", from_=done["next"])
        equal("back", [row["record_id"] for row in rows[::-1]], wanted)
        middle = rows[count // 2]
        lines = server.lines(f"around/{middle['key']}", n=100)
        ids = [line["row"]["record_id"] for line in lines if "row" in line]
        holds(middle["record_id"] in ids and len(ids) < count, f"{len(ids)} around a record")
        most = server.memory() >> 20
        holds(most < 72, f"{most} MiB in memory")
    # A child's memory begins with its parent's, which is small here.
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, CORDWOOD, "tail", "-n", "140", "-q", "kind=log", "--json",
         store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, env=environment())
    ids = [json.loads(line)["record_id"] for line in done.stdout.splitlines()]
    equal("tail", ids, wanted[-140:])
    tail = int(done.stderr) >> 10
    holds(tail < 64, f"{tail} MiB for tail")
    return f"{most} MiB, tail {tail} MiB"


def levels_of(lines):
    numbers = {"": 0, "TRACE": 1, "DEBUG": 2, "INFO": 3, "NOTICE": 4, "WARN": 5, "ERROR": 6,
               "FATAL": 7}
    found = [0] * 8
    for line in lines:
        name, _, more = line["level"].partition("+")
        group = numbers[name]
        # INFO+1 is NOTICE; levels in between belong to the lower group.
        found[group] += 1
    return found


def check_counts(server, query, lines):
    """The histogram and the facets of the whole result."""
    answer = server.lines("query", q=query, parts=PARTS, limit=5)
    done = answer[-1]["done"]
    equal(f"{query}: matched", (done["matched"], done["exact"]), (len(lines), True))
    hist = next(line["hist"] for line in answer if "hist" in line)
    holds(len(hist["bins"]) <= 200, f"{query}: {len(hist['bins'])} bins")
    sums = [sum(bins[1][level] for bins in hist["bins"]) for level in range(8)]
    equal(f"{query}: levels of the bins", sums, levels_of(lines))
    step = int(hist["step_ns"])
    starts = [int(start) for start, _ in hist["bins"]]
    equal(f"{query}: bins", starts, sorted(start // step * step for start in starts))
    facets = {line["facet"]["key"]: line["facet"] for line in answer if "facet" in line}
    equal(f"{query}: facets", sorted(facets),
          ["host", "level", "logger", "place", "process", "service", "thread"])
    for key, of in (
            ("level", lambda line: line["level"]), ("logger", lambda line: line["logger"]),
            ("process", lambda line: line["process"] or ""),
            ("service", lambda line: line["service"] or ""),
            ("host", lambda line: line["host"] or ""),
            ("place", lambda line: f"{line['file']}:{line.get('line', 0)}"
             if line.get("file") else "")):
        counted = collections.Counter(map(of, lines))
        equal(f"{query}: {key}", dict(facets[key]["top"]), dict(counted))
        equal(f"{query}: others of {key}", facets[key]["others"], 0)
        counts = [count for _, count in facets[key]["top"]]
        equal(f"{query}: order of {key}", counts, sorted(counts, reverse=True))
    equal(f"{query}: threads", sum(count for _, count in facets["thread"]["top"]), len(lines))


def queries(folder, seed):
    """Rows, counts, bins and facets of generated queries are those of the command line."""
    store, held = mixed(folder, seed)
    lines = cat(store)
    matching = oracle(store)
    chance = random.Random(seed)
    asking = Asking(chance, [line["time"] for line in chance.sample(lines, 20)])
    telling = 0
    try:
        with Server(store) as server:
            count = sized(40, 200, 400)
            for number in range(count):
                query = asking.query()
                where = f"seed {seed}, query {number + 1}: {query!r}"
                expected = cat(store, "-q", query)
                rows, done = server.rows(q=query, parts="rows,count", limit=1_000)
                equal(f"{where}: matched", done["matched"], len(expected))
                equal(f"{where}: the oracle", matching(query), len(expected))
                equal(f"{where}: back", [plain(row) for row in rows[::-1]], expected[-1_000:])
                found = walk(server, "forward", 300, q=query)
                equal(f"{where}: forward", [plain(row) for row in found], expected)
                if number % 10 == 0:
                    equal(f"{where}: back by 50", [plain(row) for row in
                                                   walk(server, "back", 50, q=query)[::-1]],
                          expected)
                if number % 5 == 0:
                    check_counts(server, query, expected)
                telling += 0 < len(expected) < len(lines)
            holds(telling > count // 3, f"only {telling} of {count} queries tell anything")
            since, until_ = lines[300]["time"], lines[900]["time"]
            rows, done = server.rows(since=since, until=until_, parts="rows,count", limit=1_000)
            expected = cat(store, "--since", since, "--until", until_)
            equal("between two times", [plain(row) for row in rows[::-1]], expected)
            equal("their count", done["matched"], len(expected))
            command = server.get("command", q="order=7 'it\\'s'", since="2h ago", until="now")
            equal("a command", command.json["text"],
                  f"cordwood cat {store} -q 'order=7 '\\''it\\'\\''s'\\''' --since '2h ago' "
                  "--until now")
            text = server.get("command", q="level>=warn").json["text"]
            done = subprocess.run(["sh", "-c", f'exec "$0" {text[9:]} --json', CORDWOOD],
                                  stdout=subprocess.PIPE, check=True, env=environment())
            equal("as it runs", done.stdout.count(b"\n"), len(cat(store, "-q", "level>=warn")))
    finally:
        let_go(held)
    return f"{count} queries, {telling} found some and not all"


def one_record(folder, seed):
    """Whole, by its key; its neighbours in all records, in its thread, process and trace."""
    store, held = mixed(folder, seed)
    try:
        with Server(store) as server:
            rows = walk(server, "forward", 1_000)
            chance = random.Random(seed)
            traced = [at for at, row in enumerate(rows) if row.get("trace_id")]
            for at in [*chance.sample(range(len(rows)), 15), *chance.sample(traced, 5)]:
                row = rows[at]
                whole = server.get(f"record/{row['key']}").json
                extra = {name: whole.pop(name) for name in ("thread", "exception", "hex")
                         if name in whole}
                equal("the record", whole, row)
                thrown = (row.get("fields") or {}).get("exception.type")
                equal("its exception", (extra.get("exception") or {}).get("type"), thrown)
                name = row["record_id"]
                for scope, belongs in (
                        ("all", lambda one: True),
                        ("thread", lambda one: one["record_id"][:32] == name[:32]),
                        ("process", lambda one: one["record_id"][:24] == name[:24]),
                        ("trace", lambda one: one.get("trace_id") == row.get("trace_id"))):
                    if scope == "trace" and not row.get("trace_id"):
                        equal("no trace", server.api(f"around/{row['key']}", scope=scope).status,
                              400)
                        continue
                    lines = server.lines(f"around/{row['key']}", scope=scope, n=9)
                    found = [line["row"] for line in lines if "row" in line]
                    some = [one for one in rows if belongs(one)]
                    place = some.index(row)
                    wanted = some[max(place - 9, 0):place + 10]
                    equal(f"{scope} around {at}", [{k: v for k, v in one.items() if k != "self"}
                                                   for one in found], wanted)
                    equal(f"{scope}: itself", [one["key"] for one in found if one.get("self")],
                          [row["key"]])
            nobody = rows[0]["key"][:-8] + "_______8"
            for path in (f"record/{nobody}", f"around/{nobody}"):
                equal(path, server.api(path).status, 404)
            equal("from nobody", server.api("query", from_=nobody).status, 404)
            equal("tail from nobody", server.api("tail", from_=nobody).status, 404)
            totals = server.get("store").json
            stats = json.loads(tool("stats", "--json", store).stdout)
            store_totals = totals["stores"][0]
            equal("records", store_totals["records"], stats["records"])
            equal("archives", store_totals["archives"], stats["archives"])
            equal("lanes", (store_totals["lanes"], store_totals["lanes_live"]), (1, 1))
            equal("first", store_totals["first_ns"], min(rows, key=lambda r: int(r["time_ns"]))
                  ["time_ns"])
            equal("last", store_totals["last_ns"], max(rows, key=lambda r: int(r["time_ns"]))
                  ["time_ns"])
            equal("trouble", (totals["problems"], totals["locked"]), ([], []))
    finally:
        let_go(held)


@full
def certain_rows(folder, seed):
    """For a rare match, rows of the newest blocks arrive while older blocks are searched, each
    once, newest first."""
    store = folder / "store"
    count, wanted = 40_000, [39_999, 29_999, 19_999, 9_999]
    write(store, count, roll=2_000)
    tool("archive", store)
    query = "9999"

    def numbers(found):
        return [row["fields"]["n"] for row in found]

    with Server(store) as server:
        lines = server.lines("query", q=query, parts=PARTS)
        equal("the rows", numbers(line["row"] for line in lines if "row" in line), wanted)
        order = [name for line in lines for name in line]
        # The first progress line comes after 16,384 records, of which attempts read 10,000 at most.
        early = order[:order.index("progress")]
        equal("before the first progress", early, ["row"])
        equal("after it", [name for name in order[1:] if name != "progress"],
              ["row"] * 3 + ["hist"] + ["facet"] * 7 + ["done"])
        equal("counted", (lines[-1]["done"]["matched"], lines[-1]["done"]["exact"]), (4, True))
        for limit in range(1, 6):
            equal(f"pages of {limit}", numbers(walk(server, "back", limit, q=query)), wanted)
            rows, done = server.rows(q=query, limit=limit, parts="rows,count")
            equal(f"the first {limit}", (numbers(rows), done["matched"]), (wanted[:limit], 4))
        # From a row on, also from one that the query excludes.
        for q in (query, "kind=log n=29998"):
            key = server.rows(q=q, limit=1, parts="rows")[0][0]["key"]
            lines = server.lines("query", q=query, parts="rows", from_=key)
            rows = [line["row"] for line in lines if "row" in line]
            equal(f"beyond one of {q}", numbers(rows), wanted[1:] if q == query else wanted[2:])
        # If the rows are complete before the counts, a line says so.
        lines = server.lines("query", q="kind=log /1$/", limit=10, parts="rows,count")
        order = [name for line in lines for name in line if name != "progress"]
        equal("rows, then counts", order, ["row"] * 10 + ["rows", "done"])
        equal("their number", next(line["rows"] for line in lines if "rows" in line), 10)
        equal("all", lines[-1]["done"]["matched"], count // 10)


def live(folder, seed):
    """While a writer writes and segments roll: a tail has every record once, pages lose none, and
    keys still lead to the same records once they are archived."""
    store = folder / "live"
    write(store, 50)
    with Server(store) as server:
        newest = server.rows(limit=1)[0][0]["key"]
        got, ready = [], threading.Event()

        def follow():
            with server.stream("tail", **{"from": newest}) as answer:
                while line := answer.readline():
                    parsed = json.loads(line)
                    ready.set()
                    if "row" in parsed:
                        got.append(parsed["row"])
                        if parsed["row"]["message"] == "the end":
                            return

        thread = threading.Thread(target=follow)
        thread.start()
        holds(ready.wait(60), "the tail says nothing")
        pages = []
        import cordwood
        with cordwood.open(str(store)) as engine:
            log = engine.logger("live")
            for number in range(1_500):
                log.info("live %d", number, n=number)
                if number % 250 == 249:
                    engine.roll()
                    rows, done = server.rows(limit=1_000, q="live", parts=PARTS)
                    pages.append((number, rows, done))
                time.sleep(0.001)
            log.info("the end")
        thread.join(60)
        holds(not thread.is_alive(), "the tail has no end")
        messages = [row["message"] for row in got if row["message"].startswith("live ")]
        equal("a tail", messages, [f"live {number}" for number in range(1_500)])
        for number, rows, done in pages:
            wanted = [f"live {n}" for n in range(number + 1)]
            equal(f"after {number}", [row["message"] for row in rows[::-1]], wanted[-1_000:])
            equal(f"counted after {number}", done["matched"], number + 1)
        tool("archive", store)
        for row in pages[0][1][:5]:
            again = server.get(f"record/{row['key']}").json
            equal("archived since", again["record_id"], row["record_id"])
        with server.stream("tail", q="nothing") as answer:
            holds("now_ns" in json.loads(answer.readline()), "no clock")


def young(folder, seed):
    """A tail continues from a record written just now, and returns the next one."""
    store = folder / "store"
    with changes.Host(store) as host, Server(store) as server:
        for number in range(20):
            host.say(f"word {number}")
            rows, _ = server.rows(limit=1)
            equal("the newest", rows[0]["message"], f"loud word {number}")
            with server.stream("tail", **{"from": rows[0]["key"]}) as answer:
                host.say(f"next {number}")
                while True:
                    line = json.loads(answer.readline())
                    if "row" in line:
                        break
                equal("the next", line["row"]["message"], f"loud next {number}")


def floods(folder, seed):
    """A tail shows a limited number of records per second, and counts those it skips."""
    store = folder / "store"
    write(store, 10)
    with Server(store) as server:
        with server.stream("tail") as answer:
            answer.readline()
            began = time.monotonic()
            write(store, 20_000, message="flood %d")
            rows = skipped = 0
            while rows + skipped < 20_000:
                line = json.loads(answer.readline())
                rows += "row" in line and line["row"]["message"].startswith("flood")
                skipped += line.get("skipped", 0)
            seconds = time.monotonic() - began
        # Records of the writer's library itself may be among those skipped.
        holds(rows + skipped <= 20_010, f"{rows} shown, {skipped} skipped")
        holds(rows <= 2_000 * (seconds + 2), f"{rows} rows in {seconds:.1f} s")
        holds(skipped > 0, "none was skipped")
    return f"{rows} shown, {skipped} skipped"


@full
def steady(folder, seed):
    """A tail of 5,000 records a second misses none, its memory does not grow, and the writer's cost
    is that without a reader. With --size all for ten minutes."""
    count = PER_SECOND * sized(8, 8, 600)
    store = folder / "store"
    writer = Steady(folder, store, count)
    with Server(store) as server, server.stream("tail") as answer:
        answer.readline()
        writer.begin()
        rows = skipped = 0
        while rows + skipped < count:
            line = json.loads(answer.readline())
            rows += "row" in line and line["row"]["message"].startswith("steady")
            skipped += line.get("skipped", 0)
        writer.end()
        most = server.memory() >> 20
    # Records of the library itself may be among those skipped.
    holds(rows + skipped <= count + 20, f"{rows} shown, {skipped} skipped of {count}")
    holds(most < 60, f"{most} MiB in memory")

    @contextlib.contextmanager
    def followed(store):
        with Server(store) as server, subprocess.Popen(
                ["curl", "-sN", f"http://{server.authority}/api/tail",
                 *(word for name, value in server.headers().items()
                   for word in ("-H", f"{name}: {value}"))], stdout=subprocess.PIPE) as reader:
            holds(reader.stdout.readline().startswith(b'{"now_ns"'), "no tail")
            threading.Thread(target=lambda: collections.deque(reader.stdout, 0)).start()
            yield
            reader.terminate()

    return f"{most} MiB; {equal_costs(folder, followed)}"


def hostile(folder, seed):
    """Bytes that are not text, text that looks like markup, long lines, and damage."""
    import cordwood
    store = folder / "store"
    texts = [b"<script>alert(1)</script></title>", b"nul \0 here", b"\xff\xfe not UTF-8 \xc3",
             b"rtl \xe2\x80\xae txt", b"x" * 1_000_000, b"line\nbreak\r\n{\"row\":{}}\n",
             b"\"quotes\\\" \x1b[31m"]
    with cordwood.open(str(store)) as engine:
        log = engine.logger("<img src=x>")
        for text in texts:
            log.write("info", text)
        log.info("fields", **{"<b>": "\x00", "raw": b"\xff\x00\xfe"})
    expected = cat(store)
    with Server(store) as server:
        for archived in (False, True):
            if archived:
                tool("archive", store)
            rows, done = server.rows(parts=PARTS)
            equal("rows", [plain(row) for row in rows[::-1]], expected)
            equal("matched", done["matched"], len(expected))
            row = next(row for row in rows if "message_base64" in row)
            whole = server.get(f"record/{row['key']}").json
            equal("its bytes", bytes.fromhex(whole["hex"]["message"]), texts[2])
            equal("a kind", server.get(f"record/{row['key']}").headers["Content-Type"],
                  "application/json")
        long = next(row for row in rows if len(row["message"]) == 1_000_000)
        equal("found by its text", server.rows(q="x" * 4_000)[0][0]["key"], long["key"])
        archive = max((store / "archives").glob("*.cwa"), key=lambda one: one.stat().st_size)
        data = bytearray(archive.read_bytes())
        for at in range(len(data) // 3, len(data) // 3 + 40):
            data[at] ^= 0x5a
        archive.write_bytes(data)
        lines = server.lines("query", parts=PARTS)
        problems = [line["problem"] for line in lines if "problem" in line]
        holds(problems and problems[0].startswith("damaged: "), f"{problems}")
        equal("exact", lines[-1]["done"]["exact"], False)
        shutil.rmtree(store)
        answer = server.api("query")
        equal("without the store", answer.status, 500)
        holds(server.get("store").json["problems"], "no problem")
