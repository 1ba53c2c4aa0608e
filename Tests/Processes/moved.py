"""A store that is moved or removed while a process writes to it and another follows it: both keep
to the directory that they opened, and go on with a new one once it is gone. Cases of run.py."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import swift_hosts
from cases import equal, holds, sized, until
from checking import by_slot, cat, compare, read_ledger
from identity import Collector
from owners import NO_PROC, needs

# The arguments that each host takes before the store.
PYTHON_HOST = [sys.executable, Path(__file__).resolve().parent / "pyhost.py", "moved"]


def c_host(bench):
    return [bench.programs / "moved", "host"]


def moved(bench):
    """The directory or its parent, which may be a mount, is renamed at random moments; sometimes
    another one takes the name. Archives, uploads and the follower go on; adopters run beside. The
    host, in C or Python, ends or is killed."""
    c = c_host(bench)
    move_many(bench, sized(4, 12, 60), [c, c, PYTHON_HOST, c])


def moved_swift(bench):
    """The same under a host in Swift. A case of its own, since mutations of the library, which
    `moved` catches, would build that host each time."""
    move_many(bench, sized(1, 4, 20), [[swift_hosts.program("Moved")]])


def move_many(bench, rounds, hosts):
    """These hosts take turns."""
    records = 0
    for turn in range(rounds):
        home = bench.directory / str(turn)
        (home / "parent").mkdir(parents=True)
        bench.ledger = home / "ledger"
        with contextlib.ExitStack() as stack:
            if turn % 4 == 1 and os.geteuid() == 0:
                stack.enter_context(mounts(home))
            collector = stack.enter_context(Collector(bench, f"depot {turn}")) if turn % 2 else None
            records += move_about(bench, hosts[turn % len(hosts)], home, collector)
    bench.note(f"{rounds} stores, {records} records")


def moved_closed(bench):
    """The same, and the host closes all descriptors, before or after the renames. Its own files
    get the numbers."""
    rounds, records = sized(3, 20, 60), 0
    for turn in range(rounds):
        home = bench.directory / str(turn)
        (home / "parent").mkdir(parents=True)
        bench.ledger = home / "ledger"
        with contextlib.ExitStack() as stack:
            # At the smallest size, one target would take longer than all the rest.
            collector = (stack.enter_context(Collector(bench, f"depot {turn}"))
                         if turn % 4 == 3 else None)
            records += move_about(bench, c_host(bench), home, collector, closes=True)
    bench.note(f"{rounds} stores, {records} records")


def move_about(bench, command, home, collector, closes=False):
    """Returns the number of records."""
    place, moves = home / "parent/store", bench.random.randint(1, 3)
    is_killed = bench.random.random() < 0.5
    environment = dict(bench.environment)
    if collector:
        environment["CORDWOOD_TARGET"] = collector.url
    with watched(bench, command, place, home / "seen", environment) as host:
        for step in range(moves):
            time.sleep(bench.random.random() / 5)
            closing = bench.random.choice([0, 1, 2][step == 0:]) if closes else 0
            if closing == 1:
                close_all(host)
            place = move(bench.random, home, place)
            if closing == 2:
                close_all(host)
            wait_for_archive(place, collector)
            bench.finish([bench.command, "archive", place])
        if is_killed:
            host.kill()
        said = host.communicate()[0].decode()
        equal(f"the host ends: {said}", host.returncode, -signal.SIGKILL if is_killed else 0)
    if not is_killed:
        equal("the host says", said, "dropped 0\n")
    bench.finish([bench.command, "archive", place])
    stores = [path.parent for path in home.rglob("archives")]
    equal("stores", stores, [place])
    if collector:
        bench.finish([bench.command, "upload", place, "--to", collector.url])
        holds(not list((place / "archives").glob("*.cwa")), "archives are left")
        place = collector.directory
    lines = cat(bench.command, place)
    total, _ = compare(read_ledger(bench.ledger), lines, is_killed)
    check_told(lines, moves)
    left = [path for path in home.rglob("*") if path.suffix in {".lane", ".seg", ".sealed"}
            or path.suffix == ".cwa" and place not in path.parents]
    equal("files that lie elsewhere, or are left", left, [])
    return total


def close_all(host):
    """The host closes the descriptors that are not its own."""
    host.stdin.write(b"\n")
    host.stdin.flush()
    equal("the host", host.stdout.readline(), b"closed\n")


@contextlib.contextmanager
def mounts(home):
    """The parent is a mount, which may be moved within `home`: that one is private."""
    try:
        for words in (["--bind", home, home], ["--make-private", home],
                      ["-t", "tmpfs", "none", home / "parent"]):
            if subprocess.run(["mount", *words], check=False, capture_output=True).returncode:
                break  # Not allowed here: it is a directory, then.
        yield
    finally:
        subprocess.run(["umount", "-R", "-l", home], check=False, capture_output=True)


def move(random, home, place):
    """Renames the store or its parent. Returns where the store is then."""
    way = random.choice(["store", "taken", "parent"])
    # /proc/self/maps does not tell the last two apart: a store has one of them.
    number = ["", "a\nb", "a\\012b"][int(home.name) % 3] + str(random.randrange(1 << 30))
    if way == "parent":
        parent = home / f"parent-{number}"
        if place.parent.is_mount():
            parent.mkdir()
            subprocess.run(["mount", "--move", place.parent, parent], check=True)
        else:
            place.parent.rename(parent)
        return parent / place.name
    place.rename(place.parent / f"store-{number}")
    if way == "taken":
        place.mkdir()
    return place.parent / f"store-{number}"


def check_told(lines, moves):
    """Each new place was told once, and no loss that did not happen."""
    shown = [json.loads(line) for line in lines]
    equal("gaps", [r for r in shown if r["kind"] == "gap"], [])
    told = [r for r in shown if r["logger"] == "Cordwood.Store"]
    holds(len(told) <= moves and all("was moved" in r["message"] for r in told),
          f"of {moves} moves: {told}")


def places(bench, rounds):
    """The places of each round: (turn, directory, store, where the store is moved to)."""
    for turn in range(rounds):
        home = bench.directory / str(turn)
        home.mkdir()
        bench.ledger = home / "ledger"
        yield turn, home, home / "store", home / "elsewhere"


def moved_unseen(bench):
    """Without /proc, the engine cannot find a store that was moved before the host closed its
    descriptors. It goes on with one at the path, and calls lost only what it refused."""
    needs(NO_PROC)
    rounds = sized(4, 20, 40)
    for turn, home, store, elsewhere in places(bench, rounds):
        is_killed = turn % 2 == 1
        with unseen(bench, home, "host") as host:
            equal("the host", host.stdout.readline(), b"ready\n")
            wait_for_archive(store)
            store.rename(elsewhere)
            if turn % 4 >= 2:
                store.mkdir()
            close_all(host)
            if bench.random.random() < 0.5:
                store.mkdir(exist_ok=True)
            wait_for_archive(store)
            if turn % 4 == 0:
                # A second after it began anew, the engine looks whether this is the same store.
                time.sleep(1.5)
            if is_killed:
                host.kill()
            said = host.communicate()[0].decode()
            equal(f"the host ends: {said}", host.returncode, -signal.SIGKILL if is_killed else 0)
            refused = sum(slot[2] for slot in read_ledger(bench.ledger).values())
            equal("the host says", said, "" if is_killed else f"dropped {refused}\n")
        check_unseen(bench, store, elsewhere, is_killed)
    bench.note(f"{rounds} stores")


def moved_unseen_removed(bench):
    """As above, but then the second store is removed. The engine reports the loss of that store's
    records, and not of those in the store that was moved."""
    needs(NO_PROC)
    rounds = sized(1, 3, 8)
    for _, home, store, elsewhere in places(bench, rounds):
        with unseen(bench, home, "host") as host:
            equal("the host", host.stdout.readline(), b"ready\n")
            wait_for_archive(store)
            wait_for_archive(store)
            store.rename(elsewhere)
            close_all(host)
            wait_for_archive(store)
            until(lambda store=store: removed(store), "the store's removal")
            wait_for_archive(store)
            host.communicate()
            equal("the host ends", host.returncode, 0)
        lines = []
        for place in (elsewhere, store):
            bench.finish([bench.command, "archive", place])
            lines += cat(bench.command, place)
        ledger, found = read_ledger(bench.ledger), by_slot(lines)[0]
        gone = sum(slot[1] + slot[2] for slot in ledger.values()) - sum(map(len, found.values()))
        told = sum(r["fields"].get("records_lost_at_most", 0) for r in map(json.loads, lines)
                   if r["logger"] == "Cordwood.Store")
        # The count includes a few records that the engine wrote itself.
        holds(0 < told <= gone + 200, f"{told} told of {gone} that are gone or were refused")
    bench.note(f"{rounds} stores")


@contextlib.contextmanager
def unseen(bench, home, case):
    """A host without /proc."""
    environment = {**bench.environment, "CORDWOOD_TEST_OWN": str(home / "own")}
    with subprocess.Popen(
            [*NO_PROC, bench.programs / "moved", case, home / "store", bench.ledger, "removed"],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        try:
            yield host
        finally:
            host.kill()


def check_unseen(bench, store, elsewhere, is_killed):
    """All that was kept is in the two stores, and what is told as lost was refused."""
    lines = []
    for place in (elsewhere, store):
        bench.finish([bench.command, "archive", place])
        lines += cat(bench.command, place)
    ledger = read_ledger(bench.ledger)
    compare(ledger, lines, is_killed)
    shown, refused = [json.loads(line) for line in lines], sum(s[2] for s in ledger.values())
    told = sum(r["fields"]["gap.records"] for r in shown if r["kind"] == "gap")
    # The count of a lane that is not mapped is lost with its descriptor.
    is_written = any("pwrite" in r["message"] for r in shown if r["logger"] == "Cordwood.Engine")
    holds(told == refused or (is_killed or is_written) and told <= refused,
          f"{told} told of {refused} refused")
    told = [r["message"] for r in shown if r["logger"] == "Cordwood.Store"]
    lost = sum("could not be found" in text for text in told)
    holds(lost == 1 or is_killed and lost == 0, f"told: {told}")
    holds(all("was moved" in text for text in told if "could not be found" not in text),
          f"told: {told}")


def child_moved(bench):
    """A daemon closes what it inherited, and the store is moved before its first record. It goes
    on with one at the path, to which a link may lead."""
    needs(NO_PROC)
    for turn, home, store, elsewhere in places(bench, sized(2, 8, 20)):
        place = home / "place" if turn % 2 else store
        if turn % 2:
            place.mkdir()
            store.symlink_to(place)
        with unseen(bench, home, "child") as host:
            equal("the host", host.stdout.readline(), b"closed\n")
            place.rename(elsewhere)
            if turn % 2:
                place.mkdir()
            host.stdin.write(b"\n")
            host.stdin.flush()
            until(lambda store=store: (store / "lanes").exists() and any(
                "could not be found" in line for line in
                cat(bench.command, store, codes=(0, 1, 3))), "the record")
            said = host.communicate()[0].decode()
            equal("the host says", said, "dropped 0\n")
        check_unseen(bench, store, elsewhere, False)


def moved_contents(bench):
    """All that a store contains is moved, but not its directory: `mv store/* elsewhere`. The host
    goes on in a new lane there, and calls lost only what it refused."""
    rounds = sized(2, 12, 40)
    for _, home, store, elsewhere in places(bench, rounds):
        elsewhere.mkdir()
        environment = {**bench.environment, "CORDWOOD_TEST_OWN": str(home / "own")}
        with subprocess.Popen(
                [bench.programs / "moved", "host", store, bench.ledger, "removed"],
                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
            try:
                equal("the host", host.stdout.readline(), b"ready\n")
                wait_for_archive(store)
                time.sleep(bench.random.random() / 5)
                for path in sorted(store.iterdir()):
                    path.rename(elsewhere / path.name)
                wait_for_archive(store)
                time.sleep(1.5)  # As in moved_unseen.
                said = host.communicate()[0].decode()
            finally:
                host.kill()
            equal(f"the host ends: {said}", host.returncode, 0)
            refused = sum(slot[2] for slot in read_ledger(bench.ledger).values())
            equal("the host says", said, f"dropped {refused}\n")
        check_unseen(bench, store, elsewhere, False)
    bench.note(f"{rounds} stores")


def made_again(bench):
    """The store is removed. The host makes another in its place, which the follower shows."""
    rounds = sized(2, 8, 60)
    for turn in range(rounds):
        home = bench.directory / str(turn)
        home.mkdir()
        bench.ledger = home / "ledger"
        with watched(bench, c_host(bench), home / "store", home / "seen", None,
                     "removed") as host:
            time.sleep(bench.random.random() / 5)
            until(lambda: removed(home / "store"), "the store's removal")
            wait_for_archive(home / "store")
            said = host.communicate()[0].decode()
            holds(host.returncode == 0, f"the host ends {host.returncode}: {said[-1000:]}")
    bench.note(f"{rounds} stores")


def removed(store):
    """False: the host made files meanwhile."""
    shutil.rmtree(store, ignore_errors=True)
    return not store.exists()


@contextlib.contextmanager
def watched(bench, command, store, seen, environment, *words):
    """A host, and a follower whose lines go to a file. In the end the follower must show each
    writer's last record."""
    environment = {**(environment or bench.environment), "CORDWOOD_TEST_OWN": f"{seen}.own"}
    command = [*command, store, bench.ledger, *words]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as host, open(seen, "wb") as shown:
        follower = None
        try:
            equal("the host", host.stdout.readline(), b"ready\n")
            wait_for_archive(store)
            follower = subprocess.Popen(
                [bench.command, "tail", "-f", "-n", "1", "--json", store], stdout=shown,
                stderr=subprocess.DEVNULL)
            until(lambda: seen.stat().st_size, "the follower's first record")
            yield host
            ends = [f'"w {slot} {kept - 1} ' for slot, (_, kept, _, _) in
                    read_ledger(bench.ledger).items()]
            until(lambda: all(end in seen.read_text() for end in ends),
                  "the follower's last records")
        finally:
            host.kill()
            if follower:
                follower.kill()
                follower.wait()


def wait_for_archive(store, collector=None):
    """One more than there are, here or at the collector."""
    def archives():
        return {path.name for place in (store, collector and collector.directory) if place
                for path in (place / "archives").glob("*.cwa")}
    before = archives()
    until(lambda: archives() - before, f"an archive of {store}")


CASES = {"moved": moved, "moved_swift": moved_swift, "moved_closed": moved_closed,
         "moved_unseen": moved_unseen, "moved_unseen_removed": moved_unseen_removed,
         "child_moved": child_moved, "moved_contents": moved_contents, "made_again": made_again}
