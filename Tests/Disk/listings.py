"""Directory listings that run beside renames, archives and journals without a lane file: adopters
remove nothing of a living lane, archive nothing twice, and lose nothing. RELIABILITY R32, R34."""

import itertools
import json
import os
import shutil
import subprocess
import time

from harness import (HERE, OK, SECONDS_MAX, TOOL, equal, exact, holds, until)

SEGMENT = 1 << 20
# Of `cordwood verify` at a lane file; the state is known before the last.
LOOKS_MAX = 8


class Stepped:
    """A run of the tool that stops until `go`: in the middle of its listing of lanes/ with that
    number, or (looks) at a look at a lane file."""

    def __init__(self, place, number, *words, looks=False):
        library = place.directory / "listing.so"
        if not library.exists():
            subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC",
                            "-shared", HERE / "listing.c", "-o", library, "-ldl"], check=True)
        self.step = place.directory / f"step-{len(place.hosts)}"
        environment = dict(os.environ, LD_PRELOAD=str(library), LISTING_STEP=str(self.step),
                           LISTING_NUMBER=str(number), **({"LISTING_LOOK": "1"} if looks else {}))
        self.process = subprocess.Popen([TOOL, *map(str, words)], env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        place.hosts.append(self)
        self.stopped = False

        def reached():
            self.stopped = self.step.with_name(self.step.name + ".reached").exists()
            return self.stopped or self.process.poll() is not None
        until(reached, "the listing")

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def go(self):
        """Its exit code and output."""
        self.step.with_name(self.step.name + ".go").touch()
        out, err = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, out, err


def names(store):
    return set(os.listdir(store / "lanes"))


def archive(store, *words, code=0):
    done = subprocess.run([TOOL, "archive", *words, store], capture_output=True, text=True,
                          check=False, timeout=SECONDS_MAX)
    equal(f"cordwood archive: {done.stdout}{done.stderr}", done.returncode, code)
    return done.stdout, done.stderr


def made_behind_the_cursor(place, records, ready):
    """A process opens the store and logs while `cordwood archive` is in the middle of each of its
    listings, which miss its lane file but see its newer files. All of them stay."""
    stopped = 0
    for number in range(1, 6):
        store = place.directory / f"store{number}"
        first = place.host(store).open()
        first.close()
        first.end()
        run = Stepped(place, number, "archive", store)
        stopped += run.stopped
        host = place.host(store).open(segment=SEGMENT)
        host.write(records, 100)
        equal("cw_flush", int(host.ask("flush", 60_000)), OK)
        lane = next(n[:-5] for n in names(store) if n.endswith(".lane") and
                    f"-{host.process.pid}-" in n)

        def of_lane():
            return {n for n in names(store) if n.lstrip(".").startswith(lane)}
        until(lambda: ready(of_lane()), "what the lane is to have")
        before = of_lane()
        code, out, err = run.go()
        equal(f"listing {number}: files of a living lane that are gone", before - names(store),
              set())
        equal(f"listing {number}: {out}{err}exit", code, 0)
        host.write(5000, 100)
        equal("cw_flush", int(host.ask("flush", 60_000)), OK)
        exact(host)
        host.end()
    holds(stopped >= 2, f"only {stopped} listings stopped")
    place.note(f"{stopped} listings")


def spare_behind_the_cursor(place):
    made_behind_the_cursor(place, 200, lambda have: any(".spare-" in n for n in have))


def segment_behind_the_cursor(place):
    made_behind_the_cursor(place, 2000, lambda have: any(n.endswith(".seg") for n in have))


def sealed_behind_the_cursor(place):
    """A segment is sealed while a reader lists the lanes: its old name vanishes before the cursor
    gets there, its new one appears where it has passed. The reader shows its records."""
    words = place.words()
    store = place.directory / "store"
    host = place.host(store, words).open(segment=SEGMENT)
    host.write(2000, 100)
    # Nothing is archived: an archive would have the records.
    words.fail(5, "sync")
    run = Stepped(place, 1, "cat", "--json", store)
    holds(run.stopped, "the reader's listing did not stop")
    equal("cw_roll", int(host.ask("roll")), OK)
    until(lambda: any(n.endswith(".sealed") for n in names(store)), "a sealed segment")
    code, out, err = run.go()
    equal(f"cordwood cat: {err}", code, 0)
    shown = [json.loads(line) for line in out.splitlines()]
    equal("records shown", sum(r["logger"] == "disk" for r in shown), 2000)
    words.fail(0, "sync")
    exact(host)
    host.end()


def closed_beside_verify(place):
    """A process closes its engine, and another then adopts its lane or does not, while `cordwood
    verify` stops in a listing or at the lane. The lane is live, closed or gone; nobody
    calls it unclean."""
    seen = {}
    moments = [(False, number) for number in (1, 2)]
    moments += [(True, number) for number in range(1, LOOKS_MAX)]
    for (looks, number), is_adopted in itertools.product(moments, (False, True)):
        moment = f"{'look' if looks else 'listing'} {number}, adopted: {is_adopted}"
        store = place.directory / f"store-{len(place.hosts)}"
        host = place.host(store).open()
        host.write(10, 100)
        run = Stepped(place, number, "verify", "--json", store, looks=looks)
        holds(run.stopped, f"{moment}: did not stop")
        host.close()
        host.end()
        if is_adopted:
            archive(store)
        code, out, err = run.go()
        equal(f"{moment}: {err}exit", code, 0)
        state = [lane["state"] for lane in json.loads(out)["lanes"]]
        seen.setdefault(" ".join(state) or "gone", []).append(moment)
    equal(f"states ({seen.get('unclean')})", set(seen), {"live", "closed", "gone"})


def dead_host(place, store, count, **options):
    """A lane of a killed process. Returns its name."""
    before = names(store) if (store / "lanes").exists() else set()
    host = place.host(store).open(**options)
    equal("kept", host.write(count, 100)["kept"], count)
    host.kill()
    return next(n[:-5] for n in sorted(names(store) - before) if n.endswith(".lane"))


def unreadable_archive(place):
    """An unreadable archive of several lanes, whose adopter died before it removed them: none of
    them is archived twice. Lanes that it cannot cover are adopted."""
    store = place.directory / "store"
    # Its name comes before theirs.
    dead_host(place, store, 3000, segment=SEGMENT)
    aside = place.directory / "aside"
    (store / "lanes").rename(aside)
    (store / "lanes").mkdir(mode=0o700)
    begun = int(time.time())
    until(lambda: int(time.time()) > begun, "the next second")
    for _ in range(3):
        dead_host(place, store, 10)
    saved = place.directory / "saved"
    shutil.copytree(store / "lanes", saved)
    archive(store)
    made = list((store / "archives").glob("*+2.*.cwa"))
    equal("archives of three lanes", len(made), 1)
    for path in saved.iterdir():
        shutil.copy2(path, store / "lanes")
    good = made[0].read_bytes()
    made[0].write_bytes(bytes(64) + good[64:])
    for path in aside.iterdir():
        shutil.copy2(path, store / "lanes")
    _, err = archive(store, code=3)
    holds("left alone" in err and made[0].name in err, f"not told: {err}")
    equal("lanes that wait", names(store), {p.name for p in saved.iterdir()})
    equal("archives", len(list((store / "archives").glob("*.cwa"))), 2)
    # An engine does not adopt them either, and retention leaves the archive.
    host = place.host(store).open(quota=1 << 20, interval=1)
    host.write(10, 100)
    host.ask("roll")
    equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
    host.close()
    holds({p.name for p in saved.iterdir()} <= names(store), "an engine adopted them")
    host.end()
    made[0].write_bytes(good)
    archive(store)
    equal("lanes", names(store), set())
    reader = place.host(store)
    read = reader.read()
    equal("records, damaged", (read["logs"], read["damaged"]), (3040, 0))
    reader.end()


def orphan_journal(place):
    """A journal whose lane file was removed: what a flush made durable there goes into an archive
    before the journal is removed. A living process's journal stays."""
    store = place.directory / "store"
    host = place.host(store).open(segment=SEGMENT)
    host.write(100, 100)
    equal("cw_flush", int(host.ask("flush", 60_000)), OK)
    lane = next(n for n in names(store) if n.endswith(".lane"))
    journal = lane.replace(".lane", ".journal")
    os.unlink(store / "lanes" / lane)
    archive(store)
    holds(journal in names(store), "the journal of a living process was removed")
    host.kill()
    out, _ = archive(store)
    equal("files that are left", names(store), set())
    reader = place.host(store)
    read = reader.read()
    equal(f"{out}records, bad, damaged", (read["logs"], read["bad"], read["damaged"]), (100, 0, 0))
    # Of the lane, and of the new lane that its owner may have begun before it was killed.
    made = sorted((store / "archives").glob("*.cwa"))
    archive(store)
    equal("archived again", sorted((store / "archives").glob("*.cwa")), made)
    reader.end()
    # One that holds nothing, and three whose content is unknown.
    (store / "lanes/20260101T000000Z-1-0000000000000001.journal").write_bytes(b"junk")
    archive(store)
    equal("files that are left", names(store), set())
    odd = store / "lanes/20260101T000000Z-1-0000000000000002.journal"
    for content in (b"CWJRNL01" + bytes(200), b"CWJRNL00" + bytes(200), bytes(200)):
        odd.write_bytes(content)
        _, err = archive(store, code=3)
        holds("left alone" in err and odd.exists(), f"not told: {err}")


CASES = {f.__name__: f for f in (
    spare_behind_the_cursor, segment_behind_the_cursor, sealed_behind_the_cursor,
    closed_beside_verify, unreadable_archive, orphan_journal)}
