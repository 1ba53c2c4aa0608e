"""A store that is moved while a process writes to it: the process follows the directory that it
opened, and so do readers. Cases of run.py."""

import json
import signal
import subprocess
import time

from cases import equal, holds, sized, until
from checking import cat, compare, read_ledger


def moved(bench):
    """The directory or its parent is renamed at random moments; sometimes another one takes the
    name. Archiving and a follower go on; the host ends or is killed."""
    for turn in range(sized(4, 12, 60)):
        home = bench.directory / str(turn)
        (home / "parent").mkdir(parents=True)
        bench.ledger = home / "ledger"
        one(bench, home)


def one(bench, home):
    place, moves = home / "parent/store", bench.random.randint(1, 3)
    is_killed = bench.random.random() < 0.5
    host = bench.start("moved", "host", store=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal("the host", host.stdout.readline(), b"ready\n")
    wait_for_archive(place, 0)
    with open(home / "seen", "wb") as seen, subprocess.Popen(
            [bench.command, "tail", "-f", "-n", "1", "--json", place], stdout=seen,
            stderr=subprocess.PIPE) as follower:
        until(lambda: (home / "seen").stat().st_size, "the follower's first record")
        for _ in range(moves):
            time.sleep(bench.random.random() / 5)
            place = move(bench.random, home, place)
            wait_for_archive(place, archives(place))
        if is_killed:
            host.kill()
        said = host.communicate()[0].decode()
        equal("the host ends", host.returncode, -signal.SIGKILL if is_killed else 0)
        wait_for_last(bench, home / "seen")
        follower.kill()
    if not is_killed:
        equal("the host's counts", said.split()[:2], ["dropped", "0"])
    bench.finish([bench.command, "archive", place])
    lines = cat(bench.command, place)
    total, _ = compare(read_ledger(bench.ledger), lines, is_killed)
    bench.note(f"{total} records, {moves} moves{', killed' if is_killed else ''}")
    check_told(lines, moves)
    left = [path for path in home.rglob("*") if path.suffix in {".lane", ".seg", ".sealed"}
            or path.suffix == ".cwa" and place not in path.parents]
    equal("files that lie elsewhere, or are left", left, [])


def check_told(lines, moves):
    """Each new place was told once, and no loss that did not happen."""
    shown = [json.loads(line) for line in lines]
    equal("gaps", [r for r in shown if r["kind"] == "gap"], [])
    told = [r for r in shown if r["logger"] == "Cordwood.Store"]
    holds(len(told) <= moves and all("was moved" in r["message"] for r in told),
          f"of {moves} moves: {told}")


def wait_for_last(bench, seen):
    """The follower shows the last record of each writer."""
    ends = [f'"w {slot} {kept - 1} ' for slot, (_, kept, _, _) in
            read_ledger(bench.ledger).items()]
    until(lambda: all(end in seen.read_text() for end in ends), "the follower's last records")


def archives(store):
    return len(list((store / "archives").glob("*.cwa")))


def wait_for_archive(store, before):
    until(lambda: archives(store) > before, f"an archive in {store}")


def move(random, home, place):
    """Renames the store or its parent. Returns where the store is then."""
    number, way = random.randrange(1 << 30), random.choice(["store", "taken", "parent"])
    parent = home / "parent"
    if way == "parent" and parent in place.parents:
        parent.rename(home / f"parent-{number}")
        return home / f"parent-{number}" / place.name
    place.rename(home / f"store-{number}")
    if way == "taken":
        place.mkdir()
    return home / f"store-{number}"


CASES = {"moved": moved}
