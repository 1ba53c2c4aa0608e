"""A server that is away for a day, with clocks that are moved (Tests/Disk/interpose.c). What then
waits is sent oldest first, in bounded memory. Log calls take no longer than without uploads."""

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time

from clouds import Collector, Fake, Recorder
from frame import BUILD, ROOT, equal, free_port, full, holds, plain_environment, short, sized
from store import Host, Store, archive_id, decoded
from web import Nginx

sys.path.insert(0, str(ROOT / "Tests/Disk"))
from harness import Words, interposer  # noqa: E402

DAY_S, GIB = 86_400, 1 << 30
STEPS = (24, 24, 96)
BACKLOG = (128 << 20, 128 << 20, 5 * GIB)
MEMORY_KIB = 32 << 10
# The maximum of simultaneous requests: an archive may be this far ahead of an older one.
AT_ONCE = 32


def order_of(name):
    """`<lane>.<first>-<last>.<digits>.cwa`: by the lane's time, then by number."""
    lane, numbers, *_ = name.split(".")
    return lane, int(numbers.split("-")[0])


def displaced(names):
    """The largest distance of any from the position of its age."""
    wanted = {name: index for index, name in enumerate(sorted(names, key=order_of))}
    return max((abs(index - wanted[name]) for index, name in enumerate(names)), default=0)


def day(place):
    """No server for a day of the host's clock: attempts become rare, nothing is lost, and once it
    is back everything is sent by itself, oldest first."""
    steps = sized(*STEPS)
    store = Store(place)
    words = Words(place.directory / "words")
    port = free_port()
    library = interposer(place.folder("tools"))
    environment = {"LD_PRELOAD": str(library), "DISK_WORDS": str(words.path),
                   "DISK_STORE": str(store.directory)}
    with Host(place, store, environment) as host:
        host.open(upload_interval_s=1, expiration_days=0)
        server = Recorder(place).start()
        host.target(f"http://127.0.0.1:{port}/logs", kind="http", format="ndjson",
                    encoding="gzip", name="t")
        for number in range(steps):
            words.move(realtime_s=number * DAY_S / steps)
            host("write", messages=[f"record {number}"])
            host("roll")
            host("wait")
        waiting = [path.name for path in store.archives()]
        equal("archives that wait", len(waiting), steps)
        # On a busy machine the day may pass before the uploader has looked at the clock twice.
        host("until", word="attempting", count=2, seconds=60)
        attempts = [event for event in host("events") if event[0] == "attempting"]
        holds(2 <= len(attempts) <= 3 * steps, f"{len(attempts)} attempts in {steps} steps")
        # It is back at the same address two hours later.
        server.stop()
        server = Recorder(place, arguments=[f"port={port}"])
        server.start()
        equal("the port", server.port, port)
        words.move(realtime_s=DAY_S + 7200)
        holds(host("until", word="completed", count=len(waiting), seconds=60),
              f"not all was sent: {store.states()}")
        events = host("events")
        host("close")
    order = [event[1] for event in events if event[0] == "attempting" and event[1] in waiting]
    far = displaced(list(dict.fromkeys(order)))
    holds(far <= AT_ONCE, f"an archive was {far} places from its turn: {short(order)}")
    equal("completed more than once", sorted(e[1] for e in events if e[0] == "completed"),
          sorted(set(e[1] for e in events if e[0] == "completed")))
    text = b"".join(store_of(server, request) for request in server.taken())
    for number in range(steps):
        holds(b'"message":"record %d"' % number in text, f"record {number} is lost")
    place.note(f"{steps} archives, {len(attempts)} attempts in the day, {far} places out of order")


def month(place):
    """Away for a month, with an archive a day, and then a Loki whose window is a week. What it
    accepts is there, each record once. The rest is kept, its records counted, and is sent on
    request once the window is wider."""
    days, each, window = 30, 20, 7
    store = Store(place)

    def lines(wanted):
        return sorted(f"day {day:02} record {number:02}" for day in wanted
                      for number in range(each))

    def taken(loki):
        return sorted(re.findall(r"day \d\d record \d\d", loki.stored()))
    with Host(place, store) as host:
        host.open(upload_interval_s=3600)
        for day in range(days):
            if day == days - window:
                oldest = time.time_ns()
            host("write", messages=lines([day]))
            host("roll")
            host("wait")
        loki = Fake(place, kind="loki", settings={"oldest_ns": oldest}).start()
        host.target(loki.url, kind="loki", name="loki", loggers=["app"])
        answer = host("upload", timeout=120)
        old = range(days - window)
        equal("status", answer["status"], "CW_E_UPLOAD")
        equal("what Loki has", taken(loki), lines(range(days - window, days)))
        equal("refused, quarantined",
              (answer["result"]["refused"], answer["result"]["quarantined"]),
              (len(old) * each, len(old)))
        equal("archives that stay", len(store.archives()), len(old))
        equal("states", store.states(),
              [f"kept-400-{each}"] * len(old))
        # Nothing is sent again until requested.
        equal("again", host("upload", timeout=120)["result"]["failed"], 0)
        host("close")
    wide = Fake(place, kind="loki").start()
    subprocess.run([BUILD / "bin/cordwood", "queue", store.directory, "retry"], check=True,
                   capture_output=True)
    sent = store.upload(wide.url, "loki", name="loki", more=["--send-loggers", "app"])
    equal("exit code", sent.code, 0)
    equal("what the wide one has", taken(wide), lines(old))
    equal("archives that stay", store.archives(), [])
    place.note(f"{days * each} records, {len(old) * each} older than {window} days")


@full
def fleet(place):
    """Hosts behind an ingress that answers 404 for ten minutes, because its service is not there
    yet. Nothing is given up. Then everything arrives by itself, each archive once."""
    count, each, limit = 5, 10, 90
    words = Words(place.directory / "words")
    library = interposer(place.folder("tools"))
    ingress, collector = Nginx(place).start(), Collector(place).start()
    stores = [Store(place, f"store-{number}") for number in range(count)]
    with contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(Host(place, store, {
            "LD_PRELOAD": str(library), "DISK_WORDS": str(words.path),
            "DISK_STORE": str(store.directory)})) for store in stores]
        for host in hosts:
            host.open(upload_interval_s=1, expiration_days=0)
            host.target(ingress.url, name="t")
        for minute in range(each):
            words.move(realtime_s=60 * minute)
            for number, host in enumerate(hosts):
                host("write", messages=[f"host {number} minute {minute}"])
                host("roll")
                host("wait")
        for host in hosts:
            holds(host("until", word="attempting", count=1), "a host did not try")
        hashes = {}
        for store in stores:
            equal("archives that wait", len(store.archives()), each)
            equal("states but retry", [state for state in store.states()
                                       if not state.startswith("retry-")], [])
            hashes.update(store.hashes())
        answers = [entry["status"] for entry in ingress.seen()]
        equal("answers", set(answers), {404})
        holds(len(answers) <= count * each, f"{len(answers)} requests in ten minutes")
        minutes = each
        ingress.passes(collector.url)
        while any(store.archives() for store in stores):
            minutes += 1
            holds(minutes < limit, f"not all is there after {minutes} minutes of the clock: "
                                   f"{[store.queue() for store in stores]}")
            words.move(realtime_s=60 * minutes)
            for host in hosts:
                host("until", word="completed", count=each, seconds=0.2)
    equal("what is there", {archive_id(data): hashlib.sha256(data).hexdigest()
                            for data in collector.archives().values()}, hashes)
    place.note(f"{count} hosts, {len(hashes)} archives, {len(answers)} requests that were answered "
               f"404; all there after {minutes} minutes")


def store_of(server, request):
    return decoded(server.body(request), request["headers"].get("content-encoding", ""))


def backlog(form, encoding):
    def case(place):
        """A backlog of that size, then the server is back: memory, order, completeness."""
        size = sized(*BACKLOG)
        store = Store(place)
        nginx = Nginx(place).start()
        with Host(place, store) as host:
            host.open(quota_bytes=0, expiration_days=0, codec="none")
            host("fill", bytes=size)
            host("roll")
            host("wait", timeout=600)
            host("close")
        names = [path.name for path in store.archives()]
        waits = sum(path.stat().st_size for path in store.archives())
        holds(waits >= size, f"only {waits} bytes wait")
        with Host(place, store) as host:
            host.open(quota_bytes=0, expiration_days=0)
            before = host("memory", forget=True)["VmRSS"]
            host.target(nginx.url + "/discard", kind="http", format=form, encoding=encoding,
                        name="t")
            started = time.monotonic()
            answer = host("upload", timeout=900)
            seconds = time.monotonic() - started
            peak = host("memory")["VmHWM"]
            events = host("events")
            host("close")
        equal("status", answer["status"], "CW_OK")
        equal("archives that stay", [n for n in names if (store.directory / "archives" / n)
                                     .exists()], [])
        order = [event[1] for event in events if event[0] == "attempting"]
        far = displaced([name for name in order if name in names])
        holds(far <= AT_ONCE, f"an archive was {far} places from its turn")
        ids = [entry["id"] for entry in nginx.seen("/discard")]
        equal("requests for each id", len(ids), len(set(ids)))
        more = peak - before
        place.note(f"{waits >> 20} MiB in {len(names)} archives: {more >> 10} MiB of memory, "
                   f"{waits / seconds / 1e6:.0f} MB/s, {far} places out of order")
        holds(more <= MEMORY_KIB, f"{more} KiB more than before, at most {MEMORY_KIB}")
    case.is_alone = True
    return case


@full
def latency(place):
    """p99.9 of log calls with a server that is away and a backlog, beside a run without a target.
    The same while the backlog drains, for information only."""
    program = place.folder("tools") / "latency"
    subprocess.run(["cc", "-std=gnu11", "-O2", f"-I{ROOT}/include", "-o", str(program),
                    str(ROOT / "Tests/Servers/latency.c"), f"-L{BUILD}/lib", "-lcordwood",
                    f"-Wl,-rpath,{BUILD}/lib"], check=True)
    nginx = Nginx(place).start()
    seconds, rounds = sized(("2", 3), ("2", 3), ("10", 5))
    found = {"without": [], "away": [], "draining": []}
    urls = {"without": [], "away": [f"http://127.0.0.1:{free_port()}/logs"],
            "draining": [nginx.url + "/discard"]}
    filled = Store(place, "filled")
    with Host(place, filled) as host:
        host.open(quota_bytes=0, codec="none")
        host("fill", bytes=64 << 20)
        host("roll")
        host("wait")
        host("close")
    for number in range(rounds):
        for what, url in urls.items():
            store = Store(place, f"{what}-{number}")
            shutil.copytree(filled.directory, store.directory)
            done = subprocess.run([str(program), str(store.directory), seconds, "50000", *url],
                                  check=True, capture_output=True, env=plain_environment())
            found[what].append(json.loads(done.stdout))
            shutil.rmtree(store.directory)
    # Other work on the machine only adds; a wait for the uploader would be in every round.
    least = {what: min(row["p99.9"] for row in rows) for what, rows in found.items()}
    for what, rows in found.items():
        place.note(f"{what}: p99.9 {least[what]:.0f} ns, {sum(r['late'] for r in rows)} late")
    holds(all(row["failed"] > 0 for row in found["away"]), "no attempt was made")
    # A busy machine may need a round of two seconds to make the first body.
    holds(any(row["sent"] > 0 for row in found["draining"]), "nothing was sent")
    holds(least["away"] <= 1.5 * least["without"] + 1000,
          f"p99.9 {least['away']:.0f} ns with a server away, {least['without']:.0f} without")


latency.is_alone = True
CASES = {"day": day, "month": month, "fleet": fleet, "latency": latency,
         "backlog_archives": full(backlog("archive", "none")),
         "backlog_lines": full(backlog("ndjson", "gzip"))}
