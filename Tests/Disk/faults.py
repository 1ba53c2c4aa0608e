"""Disks that fail: read-only in the middle of writing, the store deleted, files truncated by
others, EIO on every call, syncs that take seconds, no preallocation. RELIABILITY R12, R13, R14,
R33, R36, R38."""

import errno
import os
import random
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

from harness import (E_IO, E_TIMEOUT, FLAG_SIGBUS_GUARD, OK, SECONDS_MAX, TOOL, Failed, Skipped,
                     equal, exact, full, holds, sized, until)

SEGMENT = 1 << 20


def failing_calls(place):
    """Each call that changes the disk returns EIO for a while, alone and all together, while four
    threads log: no kept record is lost, the rest is counted, and the engine recovers."""
    words = place.words()
    store = place.directory / "store"
    host = place.host(store, words).open(segment=SEGMENT)
    # Segments that can be preallocated are not truncated. The core does not wait for rare calls.
    groups = [["write"], ["rename"], ["open"], ["allocate"], words.CALLS]
    rare = [["sync"], ["unlink"]]
    groups += sized([], rare, rare)
    for error in sized((errno.EIO,), (errno.EIO,), (errno.EIO, errno.ENOSPC)):
        for calls in groups:
            with host.writing(4, 100):
                host.grows("kept")
                words.fail(error, *calls)
                host.grows("sent", 20_000)
                host.tell("roll")
                words.more(1, *calls)
                words.fail(0, *calls)
                host.answer()
            status, us = host.numbers("resume", 30_000, 100)
            equal(f"{calls}: logging after it", status, OK)
    equal("cw_roll", int(host.ask("roll")), OK)
    equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
    total, read = exact(host, threads=4)
    host.end()
    place.note(f"{total['kept']} kept, {total['refused']} refused, {read['gaps']} gap records")


def failed_sync_is_told(place):
    """R36: a flush whose sync failed never returns OK. A later one writes everything again."""
    words = place.words()
    host = place.host(place.directory / "store", words).open(segment=SEGMENT)
    host.write(1000, 100)
    equal("a flush", int(host.ask("flush", 30_000)), OK)
    host.write(1000, 100)
    words.fail(errno.EIO, "sync")
    equal("a flush whose sync fails", int(host.ask("flush", 30_000)), E_IO)
    syncs = words.count("sync")
    words.fail(0, "sync")
    opened = words.count("open")
    equal("the next", int(host.ask("flush", 30_000)), OK)
    holds(words.count("sync") > syncs, "OK without a sync")
    holds(words.count("open") > opened, "the old journal was believed")
    exact(host)
    host.end()


def failed_sync_heals(place):
    """R36: if a sync of a sealed segment's file fails, a second sync that returns 0 does not make
    flushes OK. An archive that holds the segment does. Until then the journal stays: it may be the
    only place of records that earlier flushes reported as OK."""
    words = place.words()
    host = place.host(place.directory / "store", words).open(segment=SEGMENT)
    lanes = place.directory / "store/lanes"
    host.write(1000, 100)
    equal("a flush", int(host.ask("flush", 30_000)), OK)
    journal, = (path.stat().st_ino for path in lanes.glob("[!.]*.journal"))
    words.only(".sealed", ".cwa")
    words.fail(errno.EIO, "sync")
    host.write(250_000, 100)
    equal("cw_roll", int(host.ask("roll")), OK)

    def mapped():
        return len(set(re.findall(r"/lanes/(\S+\.sealed)$",
                                  Path(f"/proc/{host.process.pid}/maps").read_text(), re.M)))
    # Mapped segments are copied to the journal. Only unmapped ones are synced as files.
    until(lambda: mapped() < len(list(lanes.glob("*.sealed"))), "the release of a sealed segment")
    equal("a flush whose sync fails", int(host.ask("flush", 30_000)), E_IO)
    words.only(".cwa")
    equal("the next, without an archive", int(host.ask("flush", 30_000)), E_IO)
    equal("the journal", [path.stat().st_ino for path in lanes.glob("[!.]*.journal")], [journal])
    words.fail(0, "sync")
    equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
    equal("a flush behind it", int(host.ask("flush", 30_000)), OK)
    host.write(1000, 100)
    equal("and one more", int(host.ask("flush", 30_000)), OK)
    exact(host)
    host.end()


def failed_catalog(place):
    """R36: a full region of names whose sync fails is nowhere else, and no archive holds it. The
    engine abandons the lane for a new one. Flushes fail until an archive holds what it left."""
    words = place.words()
    host = place.host(place.directory / "store", words).open(segment=SEGMENT)
    lanes = place.directory / "store/lanes"
    equal("kept", host.write(1000, 100)["kept"], 1000)
    left = {path.name for path in lanes.glob("*.lane")}
    equal("names", int(host.ask("names", 1000)), 1000)
    words.only(".lane")
    words.fail(errno.EIO, "sync")
    equal("a flush whose sync fails", int(host.ask("flush", 30_000)), E_IO)
    until(lambda: {path.name for path in lanes.glob("*.lane")} - left, "a new lane")
    equal("kept in it", host.write(1000, 100)["kept"], 1000)
    words.fail(0, "sync")
    until(lambda: int(host.ask("flush", 30_000)) == OK, "an archive of what was left")
    holds(not left & {path.name for path in lanes.glob("*.lane")}, "OK before the lane is gone")
    equal("kept after it", host.write(1000, 100)["kept"], 1000)
    equal("a flush as before", int(host.ask("flush", 30_000)), OK)
    exact(host)
    host.end()


def lost_journal(place):
    """After a journal is removed, the next flush makes another with all of its content."""
    host = place.host(place.directory / "store").open(segment=SEGMENT)
    host.write(1000, 100)
    equal("a flush", int(host.ask("flush", 30_000)), OK)
    journals = list((place.directory / "store/lanes").glob("*.journal"))
    equal("journals", len(journals), 1)
    size = journals[0].stat().st_size
    journals[0].unlink()
    host.write(10, 100)
    equal("the next", int(host.ask("flush", 30_000)), OK)
    holds(journals[0].exists(), "the flush said OK for a file without a name")
    holds(journals[0].stat().st_size > size, "not all is in the new one")
    exact(host)
    host.end()


def slow_sync(place):
    """A sync that takes two seconds delays no writer."""
    words = place.words()
    host = place.host(place.directory / "store", words).open(segment=SEGMENT)
    words.delay(2000, "sync")
    host.numbers("threads", sized(1, 4, 4), 3000, 100)
    host.ask("roll")
    equal("a flush with little time", int(host.ask("flush", 50)), E_TIMEOUT)
    longest = int(host.ask("join")) / 1e9
    syncs = words.count("sync")
    words.delay(0, "sync")
    holds(syncs > 0, "nothing was synced")
    total, _ = exact(host, threads=4)
    host.end()
    equal("refused", total["refused"], 0)
    holds(longest < 1.5, f"a call took {longest:.2f} s")
    place.note(f"{total['kept']} kept, longest call {longest * 1000:.0f} ms, {syncs} slow syncs")


def no_preallocation(place):
    """Network file systems and the like: records are written by pwrite(2), also if writes fail, and
    on a full disk. Each gap is reported."""
    words = place.words()
    words.fail(errno.EOPNOTSUPP, "allocate")
    host = place.host(place.directory / "store", words).open(segment=SEGMENT)
    resumed = 0
    for error in (errno.EIO, errno.ENOSPC, errno.EIO):
        equal("kept", host.write(1000, 100)["kept"], 1000)
        words.fail(error, "write")
        equal("refused", host.write(1000, 100)["refused"], 1000)
        words.fail(0, "write")
        status, us = host.numbers("resume", 30_000, 100)
        equal("after it", status, OK)
        holds(us < 1_000_000, f"resumed after {us} us")
        resumed = max(resumed, us)
    words.fail(errno.EIO, "write")
    equal("refused", host.write(100, 100)["refused"], 100)
    words.fail(0, "write")
    total, read = exact(host)
    equal("gap records", read["gaps"], 4)
    host.end()
    place.note(f"{total['kept']} kept, {total['refused']} refused, {read['gaps']} gaps, resumed "
               f"within {resumed // 1000} ms")


def read_only_remount(place):
    """An ext4 that turns read-only after an error (errors=remount-ro, set off by its own trigger),
    under four threads and the guard: the host lives, kept records are read, the rest counts."""
    disk = place.ext4(48, "loop,errors=remount-ro")
    device = subprocess.run(["findmnt", "-no", "SOURCE", disk], capture_output=True, check=True,
                            text=True).stdout.strip()
    trigger = Path("/sys/fs/ext4") / Path(device).name / "trigger_fs_error"
    host = place.host(disk / "store").open(segment=SEGMENT, flags=FLAG_SIGBUS_GUARD)
    equal("kept", host.write(20_000, 100)["kept"], 20_000)
    with host.writing(4, 100):
        host.grows("kept")
        try:
            trigger.write_text("the test's\n")
        except OSError as why:
            raise Skipped(f"{trigger}: {why.strerror}") from why
        # Clean pages are not dirtied again: the kernel writes back and refuses the next store.
        os.sync()
        host.grows("refused", 1000)
    options = subprocess.run(["findmnt", "-no", "OPTIONS", disk], capture_output=True, check=True,
                             text=True).stdout
    holds(options.startswith("ro") or "emergency_ro" in options, f"mounted {options}")
    total = host.totals()
    read = host.read()
    equal("records read", read["logs"], total["kept"])
    equal("out of order or twice", read["bad"], 0)
    equal("records_dropped", total["dropped"], total["refused"])
    status = int(host.ask("close", 30_000))
    host.end()
    place.note(f"{total['kept']} kept and read, {total['refused']} refused, close {status}")


def goes_on(place, host):
    """After its store was deleted, the engine creates it again within a second and starts a new
    lane there, without being reopened. Everything kept from then on can be read, and gap records
    report at least as many records as are gone."""
    until(lambda: list(host.store.glob("lanes/[!.]*.lane")),
          "a lane in the store that was made again")
    longest = int(host.ask("join")) / 1e9
    holds(longest < 10, f"a call took {longest:.1f} s")
    total = host.totals()
    equal("answers other than OK and FULL", total["other"], 0)
    equal("kept in the new lane", host.write(1000, 100)["kept"], 1000)
    total = host.totals()

    def all_told():
        read = host.read()
        return read["missing"] >= total["sent"] - read["logs"]
    until(all_told, "word of all that is gone")
    host.close()
    read = host.read()
    holds(read["logs"] >= 1000, f"{read['logs']} records are left")
    equal("out of order or twice", read["bad"], 0)
    lost = total["sent"] - read["logs"]
    holds(read["missing"] >= lost, f"{lost} of {total['sent']} gone, {read['missing']} told")
    host.end()
    place.note(f"{lost} of {total['sent']} gone, {read['missing']} told, {total['refused']} "
               f"refused, longest call {longest * 1000:.0f} ms")


def deleted(place):
    """The store is deleted while threads log."""
    host = place.host(place.directory / "store").open(segment=SEGMENT)
    host.write(5000, 100)
    host.numbers("threads", 4, 1500, 100)
    shutil.rmtree(host.store, ignore_errors=True)
    goes_on(place, host)


@full
def deleted_after_refusals(place):
    """Some records had been refused, and the gap records that reported them are deleted too."""
    words = place.words()
    host = place.host(place.directory / "store", words).open(segment=SEGMENT)
    host.numbers("threads", 4, 1500, 100)
    words.fail(errno.ENOSPC, "allocate", "write")
    until(lambda: host.totals()["refused"], "a refusal")
    words.fail(0, "allocate", "write")
    host.ask("join")
    until(lambda: host.write(1, 100)["kept"], "room")
    # A thread reports its own refusals and those of the threads that share its slot.
    host.numbers("threads", 64, 100, 100)
    host.ask("join")
    equal("cw_roll", int(host.ask("roll")), OK)
    equal("cw_archive_wait", int(host.ask("wait", 60000)), OK)
    shutil.rmtree(host.store)
    goes_on(place, host)


def deleted_slowly(place):
    """The archives are deleted long after the lanes, and the file `store` last. The engine creates
    `store` again with the same consent."""
    words = place.words()
    words.distrust_counter()
    host = place.host(place.directory / "store", words).open(segment=SEGMENT)
    subprocess.run([TOOL, "consent", host.store, "pending"], check=True, capture_output=True)
    for _ in range(2):
        host.write(20000, 100)
        equal("cw_roll", int(host.ask("roll")), OK)
        equal("cw_archive_wait", int(host.ask("wait", 60000)), OK)
        shutil.rmtree(host.store / "lanes", ignore_errors=True)
        until(lambda: list(host.store.glob("lanes/[!.]*.lane")), "a lane")
        words.wait(3600)  # slowly
        words.looked()
    holds(list(host.store.glob("archives/*.cwa")), "no archive")
    shutil.rmtree(host.store / "archives")
    (host.store / "store").unlink()
    goes_on(place, host)
    consent = subprocess.run([TOOL, "consent", host.store], check=True, capture_output=True)
    equal("the consent", consent.stdout, b"pending\n")


@full
def renewed_later(place):
    """A lane loses its file while the disk has no room for another. The engine retries each second,
    and records kept once there is room are read."""
    store, words = place.directory / "store", place.words()
    host = place.host(store, words).open(segment=SEGMENT)
    host.write(1000, 100)
    words.only(".lane")
    words.fail(errno.ENOSPC, "allocate")
    before = words.count("allocate")
    for path in store.glob("lanes/[!.]*.lane"):
        path.unlink()
    until(lambda: words.count("allocate") >= before + 3, "it is tried again")
    equal("lanes", list(store.glob("lanes/*.lane")), [])
    words.fail(0, "allocate")
    until(lambda: list(store.glob("lanes/[!.]*.lane")), "a new lane")
    until(lambda: host.read()["missing"] > 0, "word of it")
    kept = host.read()["logs"]
    equal("kept in the new lane", host.write(1000, 100)["kept"], 1000)
    total = host.totals()
    host.close()
    read = host.read()
    equal("read", read["logs"], kept + 1000)
    equal("out of order or twice", read["bad"], 0)
    lost = total["sent"] - total["refused"] - read["logs"]
    holds(read["missing"] >= lost, f"{lost} of {total['sent']} gone, {read['missing']} told")
    host.end()
    place.note(f"{words.count('allocate') - before} tries, {lost} gone")


# ── Files that somebody else cuts ──

def cut_while_written(place, choose, rounds, writers=3, flags=FLAG_SIGBUS_GUARD):
    """Threads log while files are truncated. Then all records logged after the last cut are there.
    The records that a cut took are gone, but no others: none twice, none out of order."""
    store = place.directory / "store"
    chance = random.Random(place.seed)
    host = place.host(store).open(segment=SEGMENT, flags=flags)
    host.write(2000, 100)
    cuts = 0
    for _ in range(rounds):
        host.numbers("threads", writers, 300, 100)
        until_s = time.monotonic() + 0.25
        while time.monotonic() < until_s:
            cuts += choose(store, chance)
            time.sleep(chance.random() * 0.03)
        longest = int(host.ask("join")) / 1e9
        holds(longest < 10, f"a call took {longest:.1f} s")
    before = host.totals()
    status, _ = host.numbers("resume", 30_000, 100)
    equal("logging after it", status, OK)
    after = host.write(20_000, 100)
    equal("kept after the last cut", after["kept"], 20_000)
    host.ask("close", 60_000)
    read = host.read()
    total = host.totals()
    equal("status of the reader", read["status"], OK)
    equal("out of order or twice", read["bad"], 0)
    holds(read["logs"] <= total["kept"], f"{read['logs']} read, {total['kept']} kept")
    holds(read["logs"] >= 20_000, f"only {read['logs']} read of 20,000 after the last cut")
    holds(cuts > 0, "nothing was cut")
    host.end()
    place.note(f"{cuts} cuts, {total['kept']} told OK, {read['logs']} left, "
               f"{before['refused']} refused")


def cut(path, size_of_cut):
    """Truncates a file of a living host, which may have renamed or removed it since it was listed.
    Returns how many it cut, 0 or 1. size_of_cut receives the file's size."""
    try:
        os.truncate(path, size_of_cut(path.stat().st_size))
    except FileNotFoundError:
        return 0
    return 1


def any_segment(store, chance):
    names = list((store / "lanes").glob("*.seg")) + list((store / "lanes").glob("*.sealed"))
    return cut(chance.choice(names), lambda size: chance.choice(
        [0, 1, 4096, 5000, size // 2, max(0, size - 4096)])) if names else 0


def cut_segments(place):
    cut_while_written(place, any_segment, sized(1, 3, 10))


def cut_anything(place):
    """Lane files, too: their names and counts are lost, the host lives."""
    def choose(store, chance):
        lanes = list((store / "lanes").glob("*.lane"))
        if lanes and chance.random() < 0.2:
            return cut(chance.choice(lanes), lambda _: chance.choice([0, 4096, 10_000]))
        return any_segment(store, chance)
    store = place.directory / "store"
    chance = random.Random(place.seed)
    host = place.host(store).open(segment=SEGMENT, flags=FLAG_SIGBUS_GUARD)
    cuts = 0
    for _ in range(sized(1, 2, 6)):
        host.numbers("threads", 3, 400, 100)
        until_s = time.monotonic() + 0.35
        while time.monotonic() < until_s:
            cuts += choose(store, chance)
            time.sleep(chance.random() * 0.03)
        holds(int(host.ask("join")) / 1e9 < 10, "a call hangs")
    host.ask("flush", 5000)
    host.ask("close", 20_000)
    read = host.read()
    equal("out of order or twice", read["bad"], 0)
    host.end()
    place.note(f"{cuts} cuts, {read['logs']} left")


def size_of(path):
    """Of a file that may have lost that name by now: then it has been mended or removed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 1 << 62


def cut_mends_itself(place):
    """A cut without a store into the hole: within about a tenth of a second the file has its length
    again, without the guard. R13."""
    store = place.directory / "store"
    host = place.host(store).open(segment=SEGMENT)
    host.write(5000, 100)
    segments = list((store / "lanes").glob("*.seg"))
    holds(segments, "no segment")
    for path in segments:
        cut(path, lambda _: 4096)
    until(lambda: all(size_of(p) > 4096 for p in segments), "mending")
    equal("kept after it", host.write(20_000, 100)["kept"], 20_000)
    host.close()
    read = host.read()
    holds(20_000 <= read["logs"] <= 25_000, f"{read['logs']} read")
    equal("out of order or twice", read["bad"], 0)
    host.end()


def without_guard(place):
    """The documented exception, which shows that the tests above test something: without the flag a
    store into the hole kills the host by SIGBUS."""
    store = place.directory / "store"
    for _ in range(20):
        host = place.host(store).open(segment=SEGMENT)
        host.write(2000, 100)
        host.tell("threads", 4, 600, 100)
        host.answer()
        died = None
        for _ in range(40):
            for path in (store / "lanes").glob("*.seg"):
                cut(path, lambda _: 0)
            time.sleep(0.005)
            died = host.process.poll()
            if died is not None:
                break
        host.kill()
        if died == -7:
            return
    raise Failed("it was never killed: the cuts meet nothing")


def guard_and_the_hosts_handler(place):
    """The host's own faults go to its handler, which was there first. Ours do not."""
    store = place.directory / "store"
    host = place.host(store)
    equal("sigaction", int(host.ask("handler")), 0)
    host.open(segment=SEGMENT, flags=FLAG_SIGBUS_GUARD)
    for wanted in (1, 2):
        equal("faults that the host's handler saw, and the store after it",
              host.numbers("fault", place.directory / "own"), [wanted, 2])
        host.numbers("threads", 3, 200, 100)
        for path in (store / "lanes").glob("*.seg"):
            cut(path, lambda _: 0)
        host.ask("join")
    equal("kept after it", host.write(5000, 100)["kept"], 5000)
    host.close()
    equal("out of order or twice", host.read()["bad"], 0)
    host.end()


def guard_without_a_handler(place):
    """If the host has no handler, its own fault kills it as usual, by SIGBUS."""
    host = place.host(place.directory / "store").open(flags=FLAG_SIGBUS_GUARD)
    host.write(10, 100)
    host.tell("fault", place.directory / "own")
    equal("exit", host.process.wait(timeout=SECONDS_MAX), -7)


def readers_beside_cuts(place):
    """Whatever is cut, readers return records or report damage. They never die. R12."""
    store = place.directory / "store"
    chance = random.Random(place.seed)
    host = place.host(store).open(segment=64 << 10)
    host.write(30_000, 100)
    host.ask("roll")
    host.ask("wait", 60_000)
    host.write(5000, 100)
    host.kill()
    reader = place.host(store)
    rounds = sized(3, 15, 200)
    for _ in range(rounds):
        copy = place.directory / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(store, copy)
        files = [p for p in copy.rglob("*") if p.is_file() and p.name != "store"]
        stop = threading.Event()

        def cut_some():
            while not stop.is_set():
                cut(chance.choice(files), lambda size: chance.randrange(size + 1))
                time.sleep(0.002)
        cutter = threading.Thread(target=cut_some)
        cutter.start()
        try:
            other = place.host(copy)
            read = other.read()
            equal("out of order or twice", read["bad"], 0)
            other.end()
        finally:
            stop.set()
            cutter.join()
    equal("of the whole store", reader.read()["logs"], 35_000)
    reader.end()
    place.note(f"{rounds} rounds")


def another_machines_lane(place):
    """On a network file system a lane of another machine is left alone, since its lock may not be
    visible here; one of this machine is adopted. On a local disk both are: it was moved. R33."""
    words = place.words()
    store = place.directory / "store"
    if not os.path.exists("/etc/machine-id"):
        raise Skipped("this machine has no id")
    dead = [place.host(store, words).open() for _ in range(2)]
    for host in dead:
        host.write(100, 100)
    for host in dead:
        host.kill()
    lanes = sorted((store / "lanes").glob("*.lane"))
    equal("lanes of the dead", len(lanes), 2)
    with open(lanes[0], "r+b") as file:
        file.seek(64)
        file.write(bytes(range(16)))
    words.pretend(0x6969)
    host = place.host(store, words).open()
    until(lambda: not lanes[1].exists(), "adoption of this machine's lane")
    host.close()
    holds(lanes[0].exists(), "the other machine's lane was adopted")
    host.end()
    words.pretend(0)
    host = place.host(store, words).open()
    until(lambda: not lanes[0].exists(), "adoption of a moved store's lane")
    host.close()
    equal("records", host.read()["logs"], 200)
    host.end()


CASES = {f.__name__: f for f in (
    failing_calls, failed_sync_is_told, failed_sync_heals, failed_catalog, lost_journal, slow_sync,
    no_preallocation, read_only_remount, deleted, deleted_after_refusals,
    deleted_slowly, renewed_later,
    cut_segments, cut_anything, cut_mends_itself, without_guard, guard_and_the_hosts_handler,
    guard_without_a_handler, readers_beside_cuts, another_machines_lane)}
