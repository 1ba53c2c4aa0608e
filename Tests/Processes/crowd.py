"""Many processes and one store: killed writers beside readers and a follower, killed adopters,
processes that live for one record. Cases of run.py."""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from cases import Failed, full, sized
from checking import cat, compare, read_ledger


def usage(directory):
    """The number of files, and their disk space in bytes."""
    files = [path for path in Path(directory).rglob("*") if path.is_file()]
    return len(files), sum(path.lstat().st_blocks * 512 for path in files)


@full
def crowd(bench):
    """50 processes start, log, are killed and replaced. Readers and `tail -f` see everything."""
    bench.run("many", "brief", 0)  # the store must exist before the follower
    seen = bench.directory / "followed"
    errors = bench.directory / "errors"
    with open(seen, "wb") as out, open(errors, "wb") as told:
        follower = subprocess.Popen([bench.command, "tail", "-f", "-n", "100", "--json",
                                     bench.store], stdout=out, stderr=told)
    processes = []
    kills = reads = 0
    try:
        # It starts with the last 100 records, and must not miss any from here on.
        until = time.monotonic() + 60
        while '"message":"w 1 0 ' not in seen.read_text(errors="replace"):
            if follower.poll() is not None or time.monotonic() > until:
                raise Failed("tail -f does not show what is there")
            time.sleep(0.05)
        until = time.monotonic() + sized(8, 8, 60)
        while time.monotonic() < until:
            while len(processes) < 50:
                processes.append(bench.start("many", "writer", bench.random.randrange(1 << 30),
                                             stdout=subprocess.PIPE))
            for _ in range(bench.random.randrange(1, 12)):
                process = processes.pop(bench.random.randrange(len(processes)))
                process.send_signal(signal.SIGKILL)
                code = process.wait(60)
                if code != -signal.SIGKILL:
                    raise Failed(f"a writer ended {code}: {process.stdout.read()[-2000:]}")
                process.stdout.close()
                kills += 1
            before = read_ledger(bench.ledger)
            lines = cat(bench.command, bench.store)
            reads += 1
            check_prefix(before, lines)
    except BaseException:
        follower.kill()
        follower.wait(60)
        raise
    finally:
        for process in processes:
            process.kill()
            process.wait(60)
            process.stdout.close()
    ledger = read_ledger(bench.ledger)
    bench.note(f"{kills + len(processes)} kills, {reads} readers")
    try:
        compare(ledger, cat(bench.command, bench.store), killed=True)
        bench.archive()
        total, _ = bench.check(killed=True)
        await_follower(follower, seen, ledger, total, errors)
    finally:
        follower.kill()
        follower.wait(60)


def check_prefix(before, lines):
    """A reader shows at least what was kept before it began, each record once."""
    counts = {}
    for line in lines:
        at = line.find('"message":"w ')
        if at >= 0:
            words = line[at + 11:at + 60].split(" ")
            counts.setdefault(int(words[1]), []).append(int(words[2]))
    for index, (_, returned, _, _) in before.items():
        numbers = counts.get(index, [])
        if numbers[:returned] != list(range(returned)) or len(set(numbers)) != len(numbers):
            raise Failed(f"a reader beside writers: slot {index} has {len(numbers)} of "
                         f"{returned}, {len(numbers) - len(set(numbers))} twice")


def await_follower(follower, seen, ledger, total, errors):
    """The follower has shown every record once, in any order among lanes. On a busy machine it may
    reach a segment only after it is archived, and shows it after the lane's next one. This may
    happen to few writers."""
    until = time.monotonic() + 60
    while True:
        lines = seen.read_text(errors="replace").splitlines(keepends=True)
        lines = [line for line in lines if line.endswith("\n") and '"message":"w ' in line]
        if len(lines) >= total or time.monotonic() > until:
            break
        if follower.poll() is not None:
            raise Failed(f"tail -f ended: {errors.read_bytes()[-1000:]}")
        time.sleep(0.2)
    compare(ledger, lines, killed=True, what="tail -f", late=len(ledger) // 50)


def dead_lanes(bench, count):
    """That many lanes with one record each, of processes killed at the same time."""
    bench.run("many", "pile", count)
    lanes = len(list((bench.store / "lanes").glob("*.lane")))
    if lanes != count:
        raise Failed(f"{lanes} lanes, not {count}")


def adopters(bench):
    """R32: dozens of adopters, killed at random. Each existing record is in an archive once."""
    rounds = kills = lanes = 0
    while kills < sized(6, 20, 300):
        count = sized(80, 300, 900)
        dead_lanes(bench, count)
        lanes += count
        rounds += 1
        running = []
        while list((bench.store / "lanes").glob("*.lane")):
            while len(running) < sized(8, 16, 50):
                running.append(subprocess.Popen(
                    [bench.command, "archive", bench.store], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL))
            time.sleep(bench.random.random() * 0.01)
            for _ in range(min(bench.random.randrange(1, 12), len(running))):
                process = running.pop(bench.random.randrange(len(running)))
                process.kill()
                kills += process.wait(60) != 0
        for process in running:
            process.wait(120)
        bench.archive()
        left = sorted(os.listdir(bench.store / "lanes"))
        if left:
            raise Failed(f"{len(left)} files are left in lanes/: {left[:5]}")
    bench.note(f"{lanes} lanes in {rounds} rounds, {kills} adopters killed")
    bench.check()


def readers_beside_adopters(bench):
    """Lanes become archives while they are read, also those that a reader opens later: each record
    is there once."""
    rounds, count = sized(3, 8, 100), sized(400, 400, 900)
    dead_lanes(bench, count)
    ledger = read_ledger(bench.ledger)
    for turn in range(rounds):
        store = bench.directory / str(turn)
        subprocess.run(["cp", "-a", bench.store, store], check=True)
        adopter = subprocess.Popen([bench.command, "archive", store], stdout=subprocess.DEVNULL)
        for _ in range(2):
            compare(ledger, cat(bench.command, store), killed=True, what=f"round {turn}")
        adopter.wait(120)
        compare(ledger, cat(bench.command, store), killed=True, what=f"round {turn}, archived")
    bench.note(f"{count} lanes, {rounds} rounds")


def named(bench):
    """Short processes that open the store while adopters list it, among many names. None of them
    loses a spare, a journal or a segment, and no adopter reports a missing lane file. R32."""
    bench.run("many", "brief", 0)
    for number in range(sized(1_000, 3_000, 20_000)):
        (bench.store / f"lanes/filler{number}").touch()
    rounds = bench.directory / "rounds"
    rounds.touch()
    stop, said = threading.Event(), []

    def adopt():
        while not stop.is_set():
            done = subprocess.run([bench.command, "archive", bench.store], check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
            if done.returncode != 0:
                said.append(done.stdout[-1000:])
            with open(rounds, "ab") as file:
                file.write(b".")
    adopters = [threading.Thread(target=adopt) for _ in range(2)]
    for thread in adopters:
        thread.start()
    left, running = sized(6, 24, 600), []
    try:
        while left or running:
            while left and len(running) < 12:
                running.append(bench.start("many", "named", rounds, stdout=subprocess.PIPE))
                left -= 1
            process = running.pop(0)
            text = process.communicate(timeout=300)[0].decode(errors="replace")
            if process.returncode != 0:
                raise Failed(f"a process ended {process.returncode}: {text[-1000:]}")
    finally:
        stop.set()
        for process in running:
            process.kill()
            process.communicate()
        for thread in adopters:
            thread.join()
    if said:
        raise Failed(f"{len(said)} adopters of {rounds.stat().st_size}: {said[0]}")
    bench.note(f"{rounds.stat().st_size} rounds of adopters")
    bench.check()


def short_lived(bench):
    """Processes that live for one record under a quota of 8 MiB: closed, left or killed in turn,
    all left, all closed. Some of them archive what the others leave, so few lanes wait. Later
    processes compact their archives."""
    count = sized(150, 300, 3_000)
    for ways in ("012", "1", "0"):
        begun = time.monotonic()
        bench.note(bench.run("many", "briefs", count, ways))
        files, size = usage(bench.store)
        lanes = len(list((bench.store / "lanes").glob("*.lane")))
        bench.note(f"{count} that end by {ways} in {time.monotonic() - begun:.1f} s: "
                   f"{files} files, {lanes} lanes, {size >> 10} KiB")
        if size > 8 << 20 or lanes > 64 + 16:
            raise Failed(f"{lanes} lanes, {size} bytes after {count} processes of {ways}")
    count *= 3
    begun = time.monotonic()
    text = bench.archive()
    took = time.monotonic() - begun
    files, size = usage(bench.store)
    bench.note(f"archived in {took:.1f} s: {files} files, {size >> 10} KiB")
    if list((bench.store / "lanes").iterdir()):
        raise Failed(f"lanes are left: {text}")
    if files > count / 16 + 20:
        raise Failed(f"{files} files for {count} dead lanes")
    bench.check()


def counted(bench, *words):
    """What a program does, by kind of system call (count.c)."""
    environment = dict(os.environ, LD_PRELOAD=str(bench.programs / "count.so"))
    text = bench.finish(words, environment=environment)
    said = text.rsplit("listings ", 1)[1].split()
    return dict(zip(["listings"] + said[1::2], map(int, said[::2])))


def listings(bench):
    """Archiving lists the store's directories once for 32 lanes. For lanes that archives have,
    left behind by killed adopters, it lists a bounded number of times, however many there are.
    A reader opens each lane once for its header and once for the rest, which it reads at once."""
    count = sized(200, 300, 1000)
    dead_lanes(bench, count)
    kept = bench.directory / "kept"
    shutil.copytree(bench.store / "lanes", kept, ignore=shutil.ignore_patterns("*.lane"))

    for words in (["tail", "-n", "3"], ["cat"]):
        did = counted(bench, bench.command, *words, bench.store)
        bench.note(f"{words[0]} of {count} lanes: {did}")
        for kind, each, rest in (("listings", 0, 12), ("opens", 2, 60), ("reads", 3, 60),
                                 ("facts", 4, 100)):
            if did[kind] > each * count + rest:
                raise Failed(f"{words[0]} of {count} lanes: {did[kind]} {kind}")

    def listed_at_most(bound, what):
        listed = counted(bench, bench.command, "archive", bench.store)["listings"]
        bench.note(f"{listed} listings for {what}")
        if listed > bound:
            raise Failed(f"{listed} directory listings for {what}")
        left = os.listdir(bench.store / "lanes")
        if left:
            raise Failed(f"{len(left)} files are left in lanes/: {left[:5]}")

    listed_at_most(8 + count // 32, f"{count} lanes")
    shutil.copytree(kept, bench.store / "lanes", dirs_exist_ok=True)
    listed_at_most(8, f"what is left of {count}")
    bench.check()


def segments_left(bench):
    return len(list((bench.store / "lanes").glob("*.s*")))


def long_lane(bench):
    """A dead lane of many segments becomes several archives. An adopter that is killed in between
    leaves the rest to the next one, and nothing twice."""
    count = sized(620, 2_000, 20_000)
    environment = dict(os.environ, LD_PRELOAD=str(bench.programs / "count.so"))
    bench.finish([bench.programs / "rooms", "segments", bench.store, bench.ledger, str(count)],
                 (-9,), environment)
    archives = bench.store / "archives"
    total, made, kills = segments_left(bench), 0, 0
    if total < count or list(archives.glob("*.cwa")):
        raise Failed(f"{total} segments wait, not {count}")
    # The second one dies while it removes what the first one archived; the third one removes the
    # rest, archives more, and dies while it removes that.
    second = bench.random.randrange(2, 500)
    for each, wanted in ((1, 1), (second, 1), (530 - second + bench.random.randrange(60), 2)):
        environment["KILL_AT_REMOVAL"] = str(each)
        bench.finish([bench.command, "archive", bench.store], (-9,), environment)
        kills += 1
        made = len(list(archives.glob("*.cwa")))
        if made != wanted or segments_left(bench) > total - 500 * (made - 1):
            raise Failed(f"{made} archives, {segments_left(bench)} of {total} segments left")
    bench.check(killed=True)
    bench.archive()
    made = len(list(archives.glob("*.cwa")))
    if segments_left(bench) or made > 3 + count // 500:
        raise Failed(f"{made} archives, {segments_left(bench)} segments left")
    bench.note(f"{total} segments, {kills} adopters killed, {made} archives")
    bench.check(killed=True)


def listings_behind(bench):
    """An engine that is thousands of segments behind lists its store now and then, not for each
    archive, and puts many small segments into one. None is archived before all are sealed."""
    count = sized(250, 2_000, 20_000)
    did = counted(bench, bench.programs / "rooms", "behind", bench.store, bench.ledger, str(count))
    archives = len(list((bench.store / "archives").glob("*.cwa")))
    bench.note(f"{count} segments in {archives} archives: {did}")
    if did["listings"] > 150 or archives > 10 + count // 64:
        raise Failed(f"{did['listings']} listings, {archives} archives of {count} segments")
    bench.check()
