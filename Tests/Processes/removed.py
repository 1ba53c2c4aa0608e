"""Archives that one process removes unsent while another has the target, or before one opens the
store: each is told once, to one host, and counted in `cordwood stats`. Cases of run.py."""

import collections
import contextlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from cases import equal, holds, sized, until
from checking import cat

HERE = Path(__file__).resolve().parent
NOWHERE = "http://127.0.0.1:1/"  # nothing listens there
FULL, LIMIT, CONSENT = -11, -13, -18  # CW_E_…


class Host:
    """A process of removedhost.py. `told` is what it has said so far. ending: words for ending.c,
    which kills it."""

    def __init__(self, bench, targets, ending=None, **options):
        library = Path(os.environ.get("CORDWOOD_LIBRARY", bench.command.parent.parent
                                      / "lib/libcordwood.so"))
        self.told = []
        self.process = subprocess.Popen(
            [sys.executable, HERE / "removedhost.py", bench.store, json.dumps(options),
             json.dumps(targets)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=dict(os.environ, CORDWOOD_LIBRARY=str(library), PYTHONDONTWRITEBYTECODE="1",
                     **(ending or {})))
        self.is_ready = False
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        until(lambda: self.is_ready or self.process.poll() is not None, "the host's targets")
        holds(self.is_ready or ending, "the host has ended")

    def read(self):
        for line in map(json.loads, self.process.stdout):
            if line[0] == "ready":
                self.is_ready = True
            else:
                self.told.append(line)

    def end(self):
        self.process.stdin.close()
        self.reader.join()
        equal("the host ends", self.process.wait(60), 0)


@contextlib.contextmanager
def hosts(started):
    """Ends them all. They are killed if the case fails."""
    try:
        yield
        for host in started:
            host.end()
    finally:
        for host in started:
            host.process.kill()


def fill(bench, count):
    """Makes archives. Returns {name: number of records}."""
    before, made = set(archives(bench)), {}
    for _ in range(count):
        lines = b"".join(os.urandom(100).hex().encode() + b"\n"
                         for _ in range(bench.random.randint(1, 400)))
        subprocess.run([bench.command, "log", "--store", bench.store, "--logger", "removed"],
                       input=lines, check=True)
        bench.archive()
        name, = set(archives(bench)) - before - set(made)
        # With the engine's own, such as the one that tells of a file system that is not mapped.
        made[name] = len(cat(bench.command, bench.store / "archives" / name))
    return made


def archives(bench):
    return {path.name for path in (bench.store / "archives").glob("*.cwa")}


def stats(bench):
    """{reason: (archives, records)}."""
    found = json.loads(bench.finish([bench.command, "stats", "--json", bench.store]))
    return {sum_["reason"]: (sum_["archives"], sum_["records"]) for sum_ in found["not_sent"]}


def check_told(made, gone, targets, reason, status, *started):
    """Of each archive that was made and removed, each target was told once, and the store's host
    once; of those that are left, nobody."""
    said = collections.Counter(tuple(line) for host in started for line in host.told
                               if line[1] in made)
    wanted = collections.Counter(
        [("completed", name, target, status) for name in gone for target in targets]
        + [("removed", name, "", reason) for name in gone])
    equal("told too often, or what did not happen", said - wanted, {})
    equal("not told", wanted - said, {})


def told(made, *started):
    return sum(line[1] in made for host in started for line in host.told)


def removed_by_another(bench):
    """A tool or another host removes; hosts that share a target run beside it, and one of them
    tells."""
    for reason, status in (("consent", CONSENT), ("quota", FULL), ("count", LIMIT)):
        bench.store = bench.directory / reason
        made = fill(bench, sized(4, 8, 30))
        running = [Host(bench, {"a": NOWHERE, "b": NOWHERE}), Host(bench, {"b": NOWHERE})]
        names = {"a", "b"}
        with hosts(running):
            if reason == "consent":  # the hosts remove what they were sending then
                bench.finish([bench.command, "consent", bench.store, "denied"])
                until(lambda: not archives(bench), "removal")
            elif reason == "quota":
                bench.finish([bench.command, "log", "--store", bench.store, "--logger", "z",
                              "--quota-bytes", "1", os.devnull])
            else:  # another host, whose own target the store knows
                names.add("c")
                Host(bench, {"c": NOWHERE}).end()
                remover = Host(bench, {"c": NOWHERE}, archives_max=1)
                running.append(remover)
                # It goes on while it lives: its own records become archives, too.
                until(lambda: sum(line[2] == "c" for line in remover.told)
                      >= len(set(made) - archives(bench)) >= len(made) - 1, "removal")
                remover.end()
            gone = set(made) - archives(bench)
            holds(gone, f"{reason}: nothing was removed")
            until(lambda: told(made, *running) >= len(gone) * (len(names) + 1), "callbacks", 20)
        check_told(made, gone, names, reason, status, *running)
        equal(reason, stats(bench), {reason: (len(gone), sum(made[name] for name in gone))})
        bench.note(f"{reason}: {len(gone)} of {len(made)}")


def removed_before_open(bench):
    """Nobody runs while a tool removes. The next host is told, the one after it is not."""
    made = fill(bench, sized(3, 6, 30))
    first = Host(bench, {"a": NOWHERE})
    with hosts([first]):
        pass
    equal("told before", first.told, [])
    bench.finish([bench.command, "consent", bench.store, "denied"])
    started = [Host(bench, {"b": NOWHERE}, told=False)]
    with hosts(started):
        started.append(Host(bench, {"a": NOWHERE}))
        until(lambda: told(made, *started) >= 2 * len(made), "callbacks", 20)
    started.append(Host(bench, {"a": NOWHERE}))
    with hosts(started[-1:]):
        pass
    check_told(made, made, {"a"}, "consent", CONSENT, *started)
    equal("sums", stats(bench), {"consent": (len(made), sum(made.values()))})


class Server:
    """Takes everything."""

    def __enter__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):  # noqa: N802
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}/in"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def removed_kills(bench):
    """A tool that removes is killed before each of its calls. What it had unlinked is told and
    counted; the rest is sent, and nobody hears of its removal."""
    killed, archives_gone, archives_sent = 0, 0, 0
    with Server() as url:
        while True:
            bench.store = bench.directory / f"store-{killed}"
            made = fill(bench, 2)
            with hosts([Host(bench, {"a": NOWHERE})]):
                pass
            done = subprocess.run(
                [bench.command, "consent", bench.store, "denied"], check=False,
                env=dict(os.environ, END_AT=str(1 + killed * sized(4, 1, 1)),
                         LD_PRELOAD=str(bench.programs / "ending.so")))
            gone = set(made) - archives(bench)
            counts = {"consent": (len(gone), sum(made[name] for name in gone))} if gone else {}
            equal("sums", stats(bench), counts)
            bench.finish([bench.command, "consent", bench.store, "granted"])
            host = Host(bench, {"a": url})
            with hosts([host]):
                until(lambda: not archives(bench) & set(made), "uploads", 20)
                until(lambda: told(made, host) >= len(made) + len(gone), "callbacks", 20)
            sent = [tuple(line) for line in host.told if line[1] in set(made) - gone]
            equal("sent", sorted(sent), sorted(("completed", name, "a", 0)
                                               for name in set(made) - gone))
            check_told(gone, gone, {"a"}, "consent", CONSENT, host)
            equal("sums once all was sent", stats(bench), counts)
            archives_gone, archives_sent = archives_gone + len(gone), archives_sent + len(sent)
            if done.returncode == 0:
                break
            equal("the tool ends", done.returncode, -signal.SIGKILL)
            killed += 1
    holds(killed >= 3 and archives_gone and archives_sent, "the kills hit nothing")
    bench.note(f"{killed} kills, {archives_gone} archives removed, {archives_sent} sent")


def teller_kills(bench):
    """A host that removes archives, and has a callback for it, is killed before each of its calls.
    No removal is reported twice, and none that did not happen. The next host's callback gets
    exactly those that the first one had not claimed."""
    template, killed, lost, gone_all = bench.directory / "template", 0, 0, 0
    bench.store = template
    made = fill(bench, 4)
    with hosts([Host(bench, {"a": NOWHERE})]):
        pass
    for end in [*range(1, sized(20, 26, 80), sized(7, 1, 1)), 1_000_000]:
        bench.store = bench.directory / f"store-{end}"
        shutil.copytree(template, bench.store)
        first = Host(bench, {"a": NOWHERE}, archives_max=1, ending={
            "LD_PRELOAD": str(bench.programs / "ending.so"), "END_FROM": ".removed.new",
            "END_AT": str(end)})

        def is_over(first=first):
            gone = set(made) - archives(bench)
            return first.process.poll() is not None or (
                len(gone) >= len(made) - 1 and told(made, first) >= 2 * len(gone))
        with contextlib.ExitStack() as stack:
            stack.callback(first.process.kill)
            until(is_over, "the end")
            first.process.stdin.close()
            first.reader.join()
            is_killed = first.process.wait(60) == -signal.SIGKILL
            holds(is_killed or first.process.returncode == 0, "the host fails")
        gone = set(made) - archives(bench)
        left = untold(bench, gone)
        second = Host(bench, {"a": NOWHERE})
        with hosts([second]):
            until(lambda: told(made, second) >= len(left), "callbacks")
        said = [tuple(line) for line in first.told + second.told if line[1] in made]
        wanted = {line for name in gone for line in
                  (("completed", name, "a", LIMIT), ("removed", name, "", "count"))}
        equal("told twice, or what did not happen",
              collections.Counter(said) - collections.Counter(wanted), {})
        equal("told by the next host", sorted((line[1], line[2]) for line in second.told
                                              if line[1] in made), sorted(left))
        lost, gone_all = lost + len(wanted) - len(said), gone_all + len(gone)
        holds(is_killed or wanted == set(said), f"not told: {wanted - set(said)}")
        killed += is_killed
    holds(killed >= 2 and gone_all, "the kills hit nothing")
    bench.note(f"{killed} kills, {gone_all} archives removed, {lost} callbacks never ran")


def untold(bench, gone):
    """[(archive, target; "": its host)] that the store's file still offers to programs."""
    path, found = bench.store / "removed", []
    for words in map(str.split, path.read_text().splitlines() if path.exists() else []):
        if words[0] == "archive" and f"{words[2]}.cwa" in gone:
            found += [(f"{words[2]}.cwa", "" if name == "@" else name.split("-")[0])
                      for name in words[6:]]
    return found


CASES = {
    "teller_kills": teller_kills,
    "removed_by_another": removed_by_another,
    "removed_before_open": removed_before_open,
    "removed_kills": removed_kills,
}
