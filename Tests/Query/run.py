#!/usr/bin/env python3
"""Queries: the rows and the count that the engine finds are those of the oracle's records with a
plain filter (model.py), over a store that is live, archived, or both, and while it is written.

    run.py [--size S] [--seed S] [-k PATTERN …] [CASE …]

With --size all, 300 queries per store instead of 40."""

import collections
import json
import os
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "Tests/Oracle"), str(ROOT / "Tests/TestSupport"), str(HERE),
                str(ROOT / "bindings/python/src")]

import cases  # noqa: E402
from cases import Failed, equal, holds, sized, until  # noqa: E402
from asking import Asking  # noqa: E402
from compare import ALWAYS, KNOWN, canonical, differences, plain  # noqa: E402
from decode import Store, in_order  # noqa: E402
from model import Wrong, parse, shown  # noqa: E402
from record import record_id, time_text  # noqa: E402

BUILD = Path(os.environ.get("CORDWOOD_BUILD", ROOT / "build"))
CORDWOOD = str(BUILD / "bin/cordwood")
LIBRARY = BUILD / "lib"
RECORDS = 700


def tool(*arguments, codes=(0,)):
    done = subprocess.run([CORDWOOD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, env={**os.environ, "TZ": "UTC"})
    if done.returncode not in codes:
        raise Failed(f"cordwood {' '.join(arguments)} ended {done.returncode}: "
                     f"{done.stderr.decode(errors='replace')[:300]}")
    return done


def rows(store, *arguments):
    return lines_of(tool("cat", "--json", store, *arguments).stdout)


def lines_of(printed):
    """JSON in the form of the oracle's lines."""
    lines = []
    for line in printed.split(b"\n")[:-1]:
        pairs = json.loads(line, object_pairs_hook=lambda found: found)
        holds(not ALWAYS - {name for name, _ in pairs}, f"incomplete: {line!r}")
        lines.append({name: value for name, value in pairs if name in KNOWN})
    return lines


class Writer:
    """writer.c, running. `run.py` ends those left by a failed case."""

    running = []

    def __init__(self, folder, store, seed, process, *more, records=RECORDS):
        program = folder / "writer"
        if not program.exists():
            subprocess.run(
                ["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include",
                 HERE / "writer.c", "-o", program, "-L", LIBRARY, "-lcordwood",
                 f"-Wl,-rpath,{LIBRARY}"], check=True)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("CORDWOOD_")}
        self.process = subprocess.Popen(
            [program, store, str(seed), str(records), process, *map(str, more)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        Writer.running.append(self.process)

    def ready(self):
        equal("the writer says", self.process.stdout.readline(), b"ready\n")
        return self

    def stop(self):
        """The store does not change until `end`. A running writer still measures its clock."""
        self.process.send_signal(signal.SIGSTOP)
        return self

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        equal("the writer ended", self.process.wait(), 0)
        self.process.stdout.close()
        Writer.running.remove(self.process)


def decoded(store):
    found = Store(store)
    holds(not found.problems, f"the oracle: {found.problems[:3]}")
    return in_order(found.records)


def ask_all(store, seed, count):
    """Asks the tool and the model. Returns the number of records found."""
    records = decoded(store)
    lines = [(key, plain(record), record) for key, record in records]
    chance = random.Random(seed)
    times = [time_text(shown(record)) for _, record in chance.sample(records, 20)]
    asking = Asking(chance, times)
    found, telling = 0, 0
    for number in range(count):
        query = asking.query()
        where = f"seed {seed}, query {number + 1}: -q {query!r}"
        try:
            matches = parse(query)
        except Wrong as wrong:
            raise Failed(f"{where}: the model takes it for wrong: {wrong}") from None
        expected = [(key, line) for key, line, record in lines if matches(record)]
        for difference in differences(expected, rows(store, "-q", query)):
            raise Failed(f"{where}: {difference}")
        found += len(expected)
        telling += 0 < len(expected) < len(lines)
    holds(telling > count // 3, f"only {telling} of {count} queries found some and not all")
    return f"{count} queries, {found} records, {telling} found some and not all"


def settled(store):
    """Waits until every sealed segment has become an archive."""
    until(lambda: not list(Path(store, "lanes").glob("*.sealed")), "archiving")


def stored(folder, form, seed):
    """A store in that form, and the writers that still hold it."""
    store = str(folder / form)
    if form == "live":
        writers = [Writer(folder, store, seed, "shop").ready(),
                   Writer(folder, store, seed + 1, "desk", records=100).ready()]
        return store, [writer.stop() for writer in writers]
    roll = ["roll", 150]
    Writer(folder, store, seed, "desk", *roll).ready().end()
    tool("archive", store)
    if form == "archived":
        return store, []
    writer = Writer(folder, store, seed + 1, "shop", *roll).ready()
    settled(store)
    holds(len(list(Path(store, "archives").glob("*.cwa"))) > 1, "no archive")
    return store, [writer.stop()]


def asked(form):
    def case(folder, seed):
        store, writers = stored(folder, form, seed)
        told = ask_all(store, seed, sized(12, 40, 300))
        for writer in writers:
            writer.end()
        return told
    return case


def while_written(folder, seed):
    """Each row is a record that is in the whole store and that the model finds, once. No record is
    missing that was kept when the reader began. A follower has all in the end. A store grows with
    each query, and 300 on one store took over a quarter of an hour: so five stores of 60."""
    rounds, each = sized((1, 12), (1, 12), (5, 60))
    totals = [written(folder / f"written {number}", seed + number, each)
              for number in range(rounds)]
    return f"{rounds * each} queries, {sum(totals)} records that must be found"


def written(folder, seed, count):
    folder.mkdir()
    store, ledger = str(folder / "store"), folder / "ledger"
    writer = Writer(folder, store, seed, "shop", "roll", 60, "ledger", ledger, records=400)

    def kept():
        data = ledger.read_bytes() if ledger.exists() else b""
        return struct.unpack("<Q", data)[0] if len(data) == 8 else 0

    until(lambda: kept() > 200, "the writer writes")
    chance = random.Random(seed)
    asking = Asking(chance, ["2024-01-01T00:00:00Z", "2023-11-14T22:20:00Z"])
    followed, shown_lines = "level>=warn -logger:noise", folder / "followed"
    with open(shown_lines, "wb") as output:
        follower = subprocess.Popen(
            [CORDWOOD, "tail", "-f", "-n", "100000", "--json", store, "-q", followed],
            stdout=output)
    Writer.running.append(follower)
    answers = []
    for _ in range(count):
        query, before = asking.query(), kept()
        answers.append((query, before, rows(store, "-q", query)))
    writer.end()
    holds(answers[-1][1] > answers[0][1], "nothing was written meanwhile")
    holds(list(Path(store, "archives").glob("*.cwa")), "nothing was rolled meanwhile")

    def timeless(line):
        """Measurements of a running writer still change the last digits of times."""
        return canonical({**line, "time": ""})

    def number(line):
        return int(next((value for key, value in line.get("fields", ()) if key == "n"), "-1"))

    lines = [(plain(record), record) for _, record in decoded(store)]
    total = 0
    for query, before, found in answers:
        matches = parse(query)
        expected = [line for line, record in lines if matches(record)]
        have, may = (collections.Counter(map(timeless, some)) for some in (found, expected))
        must = collections.Counter(
            timeless(line) for line in expected if 0 <= number(line) < before)
        for name, rest in (("nobody finds", have - may), ("is missing", must - have)):
            holds(not rest, f"seed {seed}, -q {query!r}: {name}: {next(iter(rest), None)}")
        total += sum(must.values())
    holds(total > 100, f"only {total} records were asked for")
    matches = parse(followed)
    expected = [timeless(line) for line, record in lines if matches(record)]
    until(lambda: shown_lines.read_bytes().count(b"\n") >= len(expected), "tail -f shows them")
    equal("tail -f -q", sorted(map(timeless, lines_of(shown_lines.read_bytes()))),
          sorted(expected))
    return total


def every_verb(folder, seed):
    store, writers = stored(folder, "mixed", seed)
    for writer in writers:
        writer.end()
    lines = [(key, plain(record), record) for key, record in decoded(store)]
    name = record_id(lines[7][2])
    for query, least in (("level>=warn", 2), ("order=7 OR user=anna", 2), ("-kind:log", 2),
                            ("i:TIMED", 2), (f"record_id:{name.upper()}", 1),
                            (f"record_id:{name[:24]}", 2), (f"record_id:{name[:-1]}", 1)):
        matches = parse(query)
        expected = [(key, line) for key, line, record in lines if matches(record)]
        count = len(expected)
        holds(count >= least, f"-q {query}: {count} records")
        stats = json.loads(tool("stats", "--json", store, "-q", query).stdout)
        equal(f"stats -q {query}", stats["records"], count)
        text = tool("export", store, "--format", "ndjson", "-q", query).stdout
        equal(f"export -q {query}", text.count(b"\n"), count)
        last = tool("tail", "-n", "5", "--json", store, "-q", query).stdout.splitlines()
        cat = tool("cat", "--json", store, "-q", query).stdout.splitlines()
        equal(f"tail -q {query}", last, cat[-5:])
    both = tool("cat", "--json", store, "-q", "level>=warn", "-q", "-level>=error").stdout
    equal("two -q", both, tool("cat", "--json", store, "-q", "level>=warn level<error").stdout)
    equal("-q beside --level", both,
          tool("cat", "--json", store, "--level", "warn", "-q", "level<error").stdout)
    # The text line of an exchange shows none of its fields.
    grep = tool("grep", "time(d )?out", "--json", store, "-q", "kind:log").stdout
    equal("grep", grep, tool("cat", "--json", store, "-q", "kind:log /time(d )?out/").stdout)
    grep = tool("grep", "-v", "out", "--json", store, "-q", "kind:log").stdout
    equal("grep -v", grep, tool("cat", "--json", store, "-q", "kind:log -out").stdout)
    where = tool("cat", "--json", store, "--where", "order=7").stdout
    equal("--where", where, tool("cat", "--json", store, "-q", "fields.order==7").stdout)
    http_is_asked_by_the_last_record(store, lines)
    ids = tool("transactions", "--list", store, "-q", "usecase=-4", "--json").stdout.splitlines()
    holds(ids and all(json.loads(line)["usecase"] == -4 for line in ids), "transactions -q")


def http_is_asked_by_the_last_record(store, lines):
    last = {}
    for _, _, record in lines:
        if record.kind == 4:
            last[dict(record.fields)[b"http.id"]] = record
    for query in ("status>=500", "-status=*", "host=api.example.com -level>=warn"):
        matches = parse(query)
        expected = sorted(key.decode() for key, record in last.items() if matches(record))
        listed = tool("http", store, "--json", "-q", query).stdout.splitlines()
        equal(f"http -q {query}", sorted(json.loads(line)["id"] for line in listed), expected)
        har = json.loads(tool("export", store, "--format", "har", "-q", query).stdout)
        equal(f"har -q {query}", len(har["log"]["entries"]), len(expected))


def readers(folder, seed):
    """With the library's Python binding."""
    os.environ.setdefault("CORDWOOD_LIBRARY", str(LIBRARY / "libcordwood.so"))
    import cordwood
    store, _ = stored(folder, "archived", seed)
    lines = [(plain(record), record) for _, record in decoded(store)]
    chance = random.Random(seed)
    asking = Asking(chance, ["2024-01-01T00:00:00Z"])
    for _ in range(sized(5, 20, 100)):
        query = asking.query()
        matches = parse(query)
        expected = [line for line, record in lines if matches(record)]
        with cordwood.read(store, kinds="all", query=query) as reader:
            equal(f"query={query!r}", len(list(reader)), len(expected))
    for query, column in (("order>=", 8), ("grün level:loud", 12), ("", 1)):
        try:
            cordwood.read(store, query=query)
        except cordwood.ArgumentError as error:
            holds(f"column {column}:" in str(error), f"{query!r}: {error}")
        else:
            raise Failed(f"query={query!r} is taken")


def errors(folder, seed):
    store, _ = stored(folder, "archived", seed)
    for query, text in (("order>=", "column 8: a value is missing"),
                           ("grün (a", "column 6: a ( without its )"),
                           ("level:loud", "column 7: no level: loud"),
                           (r"url~/(a)\1/", "column 5: a back reference"),
                           ("/((a{99}){99}){99}/", "column 1: it repeats too much")):
        done = tool("cat", store, "-q", query, codes=(2,))
        holds(text in done.stderr.decode(), f"-q {query!r}: {done.stderr}")
        holds(not done.stdout, "something was printed")
    done = tool("cat", store, "--where", "a!=b", codes=(2,))
    holds("-q 'a!=b'" in done.stderr.decode(), f"--where: {done.stderr}")
    text = tool("help", "query").stdout.decode()
    holds("level>=warn" in text and all(len(line) < 101 for line in text.splitlines()), text)
    # The examples of the page and of the help are queries.
    for name, found in (("page", (ROOT / "docs/QUERY.md").read_text()), ("help", text)):
        examples = [line.split(" -q '", 1)[1].split("'")[0]
                    for line in found.splitlines() if "  cordwood " in line and " -q '" in line]
        holds(len(examples) >= (3 if name == "help" else 10), f"{name}: {examples}")
        for query in examples:
            tool("stats", store, "-q", query)


CASES = {
    "live": asked("live"),
    "archived": asked("archived"),
    "mixed": asked("mixed"),
    "while it is written": while_written,
    "every verb": every_verb,
    "readers": readers,
    "errors": errors,
}


def main():
    parser = cases.parser("run.py")
    arguments = parser.parse_args()

    def one(_, case):
        try:
            with cases.folder("query") as folder:
                return case(folder, arguments.seed)
        finally:
            for left in Writer.running:
                left.kill()
                left.wait()
            Writer.running.clear()

    run = cases.Run()
    run.all(cases.chosen(CASES, arguments), one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
