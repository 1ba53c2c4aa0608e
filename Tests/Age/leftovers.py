"""What archived records leave in the other files of a store: nothing, where archives are encrypted
or consent is denied. Words are planted, and every file of the store is searched for them, byte by
byte."""

import mmap
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import cordwood
from age import ROOT, archives, holds, run, same, wait
from cases import sized

WORD = re.compile(rb"planted-(\d{8})-word")
MEMORY = Path(f"/dev/shm/cordwood-segments-{os.geteuid()}")
SEGMENT = 65_536


def word(number):
    return f"planted-{number:08d}-word"


def words(full=1_000_000):
    return sized(20_000, full, 1_000_000)


def found(store):
    """How many words lie in which of the store's files."""
    result = {}
    for path in [*Path(store).rglob("*"), *(MEMORY.glob("*") if MEMORY.exists() else [])]:
        try:
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                count = sum(1 for _ in WORD.finditer(data))
        except (OSError, ValueError):  # a directory, an empty file, or gone meanwhile
            continue
        if count:
            result[path.name] = count
    return result


def plant(engine, first, end, flush_every=0):
    log = engine.logger("app")
    for number in range(first, end):
        log.info(word(number))
        if flush_every and number % flush_every == 0:
            engine.flush("machine")


def archive(engine):
    engine.roll()
    engine.archive_wait(timeout=300)


def read_words(store, key):
    return [int(WORD.fullmatch(record.message.encode()).group(1))
            for record in cordwood.read(store, logger="app", identity=key)]


def case_leftovers_beside(folder):
    """While the engine runs, beside readers: segments, spares, segment 0 and the journal."""
    store, count, seen = folder.path / "s", words(), []

    def follow():
        for record in cordwood.read(store, logger="app", identity=folder.key, follow=True,
                                    idle_timeout=120):
            seen.append(record.message)
            if record.message == word(count):
                return

    with cordwood.open(store, encrypt_to=folder.recipient, segment_bytes=SEGMENT) as engine:
        follower = threading.Thread(target=follow)
        follower.start()
        holds(wait(lambda: plain_is_found(engine, store)), "a word that is not archived is found")
        parts = 10
        for part in range(parts):
            plant(engine, count * part // parts, count * (part + 1) // parts, count // 50)
            holds(list((store / "lanes").glob("*.journal")), "no journal")
            archive(engine)
            same(found(store), {}, f"words, part {part}")
        plant(engine, count, count + 1)
        follower.join(300)
        same(seen, [word(number) for number in range(count + 1)], "followed")
        same(len(read_words(store, folder.key)), count + 1, "words read")
    same(found(store), {}, "words after close")
    same(os.listdir(store / "lanes"), [], "files after close")
    same(read_words(store, folder.key), list(range(count + 1)), "words read")


def plain_is_found(engine, store):
    """The search finds what must be there."""
    engine.logger("other").info(word(99_999_999))
    return found(store) != {}


def case_leftovers_of_bursts(folder):
    """Without a reader, files of archived segments would be used again at this rate."""
    store, count = folder.path / "s", 20_000
    with cordwood.open(store, encrypt_to=folder.recipient, segment_bytes=SEGMENT) as engine:
        bursts = sized(6, 20, 20)
        for burst in range(bursts):
            plant(engine, count * burst, count * (burst + 1))
            archive(engine)
            same(found(store), {}, f"words, burst {burst}")
        same(engine.stats().segments_reused, 0, "segments used again")
    same(read_words(store, folder.key), list(range(bursts * count)), "words read")


def case_leftovers_after_close(folder):
    """Close archives what is left, with and without segments in memory."""
    for tmpfs in (False, True):
        store = folder.path / f"s{tmpfs:d}"
        with cordwood.open(store, encrypt_to=folder.recipient, segment_bytes=SEGMENT,
                           tmpfs=tmpfs) as engine:
            plant(engine, 0, 3000, 700)
            holds(found(store), "a word that is not archived is found")
        same(found(store), {}, f"words, tmpfs={tmpfs}")
        same(os.listdir(store / "lanes"), [], "files after close")
        same(read_words(store, folder.key), list(range(3000)), "words read")


def killed(body, *arguments):
    """Runs a process to its end, and kills it."""
    program = f"""
import sys
sys.path[:0] = [{str(ROOT / "bindings/python/src")!r}, {str(ROOT / "Tests/Age")!r},
                {str(ROOT / "Tests/TestSupport")!r}]
import cordwood, leftovers
{body}
print("done", flush=True)
sys.stdin.read()
"""
    writer = subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holds(writer.stdout.readline() == b"done\n", "the writer")
    writer.send_signal(signal.SIGKILL)
    writer.wait()


def case_leftovers_killed(folder):
    """The next process archives what a killed one left, and removes its files."""
    store, count = folder.path / "s", words(300_000)
    killed("""
store, recipient, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
engine = cordwood.open(store, encrypt_to=recipient, segment_bytes=65536)
leftovers.plant(engine, 0, count // 2, count // 10)
leftovers.archive(engine)
leftovers.plant(engine, count // 2, count, count // 10)
""", store, folder.recipient, count)
    holds(found(store), "a word that is not archived is found")
    with cordwood.open(store, encrypt_to=folder.recipient, segment_bytes=SEGMENT) as engine:
        holds(wait(lambda: engine.stats().lanes == 1), "the lane was not adopted")
        same(found(store), {}, "words after the adoption")
    same(read_words(store, folder.key), list(range(count)), "words read")


def denied(folder, deny, full):
    """What denied consent removes is gone from the files of a running engine, which goes on."""
    store, count = folder.path / "s", words(full)
    with cordwood.open(store, segment_bytes=SEGMENT) as engine:
        engine.add_target("http://127.0.0.1:9", name="t")
        while not is_reused(store):
            plant(engine, 0, count, count // 4)
            archive(engine)
        holds(set(found(store)) - {path.name for path in archives(store)},
              "words beside the archives")
        deny(engine, store)
        holds(wait(lambda: found(store) == {}, 120), f"words stay in {found(store)}")
        engine.logger("app").info("after")
        archive(engine)
    same([record.message for record in cordwood.read(store, logger="app")], ["after"], "read")


def case_leftovers_denied(folder):
    denied(folder, lambda engine, store: run("consent", store, "denied"), 1_000_000)


def case_leftovers_denied_by_the_host(folder):
    denied(folder, lambda engine, store: engine.set_consent("denied"), 100_000)


def is_reused(store):
    """The open segment lies in a file that has the words of an earlier one."""
    return any("-0001." not in name for name in found(store) if name.endswith(".seg"))


def case_leftovers_denied_after_death(folder):
    """The command clears what a killed process left, and keeps what is not archived, with its
    journal."""
    store, count = folder.path / "s", words(100_000)
    killed("""
store, count = sys.argv[1], int(sys.argv[2])
engine = cordwood.open(store, segment_bytes=65536)
engine.add_target("http://127.0.0.1:9", name="t")
while not leftovers.is_reused(store):
    leftovers.plant(engine, 0, count, count // 2)
    leftovers.archive(engine)
for number in range(50):
    engine.logger("app").info(f"later {number}")
engine.flush("machine")
""", store, count)
    before = set(found(store))
    lanes = {path.name for path in (store / "lanes").iterdir()}
    for end in (".lane", ".journal", ".seg"):
        holds(any(name.endswith(end) for name in before & lanes), f"{end}: {before}")
    run("consent", store, "denied")
    same(found(store), {}, "words")
    journal, = (store / "lanes").glob("*.journal")
    holds(b"later " in journal.read_bytes(), "the journal lacks what is not archived")
    for _ in range(2):
        left = [record.message for record in cordwood.read(store, logger="app")]
        same(left, [f"later {number}" for number in range(50)], "read")
        run("verify", store)
        run("archive", store)


def case_leftovers_of_a_move_to_the_disk(folder):
    """A process was killed while it put a segment on the disk: two links lead to the file in
    memory. The command keeps that file while a segment's name leads to it."""
    store = folder.path / "s"
    killed("""
engine = cordwood.open(sys.argv[1], segment_bytes=65536, tmpfs=True)
for _ in range(4):  # the first segments are not in memory
    engine.logger("first").info("first")
    leftovers.archive(engine)
for number in range(50):
    engine.logger("app").info(f"later {number}")
""", store)
    name, = (path for path in (store / "lanes").glob("*.seg") if path.is_symlink())
    lane = name.name.partition(".")[0]
    spares = {path: os.readlink(path) for path in (store / "lanes").glob(f".{lane}.spare-*")
              if path.is_symlink()}
    second = store / "lanes" / f".{lane}.spare-0123456789abcdef"
    os.symlink(os.readlink(name), second)
    run("consent", store, "denied")
    same([path for path in (second, *spares) if os.path.lexists(path)], [], "hidden names left")
    same([file for file in spares.values() if os.path.exists(file)], [], "spares left")
    read = [record.message for record in cordwood.read(store, logger="app")]
    same(read, [f"later {number}" for number in range(50)], "read")
    file = os.readlink(name)
    run("archive", store)
    same(os.path.exists(file), False, "the archived file in memory is there")
