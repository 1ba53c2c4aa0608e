"""Retention and limits: count, age and quota against a plain model, over restarts and clock jumps;
the files of a store under load; the engine's memory; two enforcers and two uploaders on one store.
TESTING B-ROLL-2, -5; RELIABILITY R38."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time

from cases import json_lines, whole_lines
from harness import OK, ROOT, TOOL, disk_bytes, equal, exact, full, holds, sized, until

DAY = 86_400
SEGMENT_MIN = 64 << 10


def archives(store):
    return {p.name for p in (store / "archives").glob("*.cwa")}


# ── Against a model ──

class Model:
    """An archive here is its name and the UTC of its newest record. The oldest are removed
    first, expired ones before the count applies. A clock step of over an hour holds expired ones
    back until a day of boot time has passed. The check needs archives and a limit by age."""

    def __init__(self):
        self.kept, self.removed = {}, []
        self.ahead, self.waits_until = None, 0

    def look(self, limits, now, boottime):
        """True if the engine writes down that it waits."""
        if not limits["days"] or not self.kept:
            return False
        ahead = now - boottime
        if self.ahead is None:
            jumped = now > max(self.kept.values()) + DAY
        else:
            jumped = abs(ahead - self.ahead) > 3600
        self.ahead = ahead
        if jumped:
            self.waits_until = boottime + DAY
        return jumped

    def apply(self, limits, now, boottime):
        if boottime >= self.waits_until:
            for name, newest in self.in_order():
                if limits["days"] and newest < now - limits["days"] * DAY:
                    self.remove(name, "expired")
        for name, _ in self.in_order():
            if not limits["count"] or len(self.kept) <= limits["count"]:
                break
            self.remove(name, "count")

    def in_order(self):
        return sorted(self.kept.items(), key=lambda item: (item[1], item[0]))

    def remove(self, name, reason):
        del self.kept[name]
        self.removed.append((name, reason))


class Skewed:
    """The hosts' clocks: days that pass, and days by which the wall clock is set."""

    def __init__(self, words):
        self.words, self.passed, self.set = words, 0, 0
        words.move()

    def move(self, passed=0, days=0):
        self.passed += passed
        self.set += days
        self.words.move(realtime_s=(self.passed + self.set) * DAY, boottime_s=self.passed * DAY)
        self.words.looked()

    def move_unseen(self, days):
        """While no host runs."""
        self.set += days
        self.words.move(realtime_s=(self.passed + self.set) * DAY, boottime_s=self.passed * DAY)

    def now(self):
        return time.time() + (self.passed + self.set) * DAY

    def boottime(self):
        return time.clock_gettime(time.CLOCK_BOOTTIME) + self.passed * DAY


def last_look(store):
    """From the store's `clock`, in seconds: how far the wall clock was ahead of boot time at the
    engine's last look, and the boot time until which it waits. Assumes a single boot."""
    seen = [line.split() for line in whole_lines(store / "clock") if line.startswith("seen ")]
    if not seen:
        return 0, 0
    boottime, realtime, until_ns = (int(word) for word in seen[-1][2:5])
    return (realtime - boottime) / 1e9, until_ns / 1e9


def waits_until(store):
    return last_look(store)[1]


def modelled(place):
    """Random limits, writes, passing days, clocks set forward, restarts with other limits: the
    remaining archives and the reported reason of each removal are the model's."""
    chance = random.Random(place.seed)
    words = place.words()
    removals = waits = 0
    for round_number in range(sized(1, 2, 8)):
        store = place.directory / f"store{round_number}"
        # Its limits are named: such a record, after a host's last roll, is one more archive.
        store.mkdir(mode=0o700)
        (store / "removed").write_text("cordwood removed\nformat 1\nnamed count\nnamed expired\n")
        model, told, known, clock = Model(), [], set(), Skewed(words)
        host = None

        def look():
            nonlocal waits
            is_first = model.ahead is None
            jumped = model.look(limits, clock.now(), clock.boottime())
            if is_first and model.ahead is not None:
                # Else a day that passes now precedes the engine's first look.
                until((store / "clock").exists, "the engine's first look")
            if jumped:
                waits += 1
                # An earlier jump's wait may be as long: the look must be at this clock.
                until(lambda: all(abs(a - b) < 120 for a, b in zip(
                          last_look(store), (model.ahead, model.waits_until))),
                      f"the engine sees that the clock jumped, and waits until {model.waits_until}")
            model.apply(limits, clock.now(), clock.boottime())
            # Else removals by count now would become removals by age when more days have passed.
            until(lambda: archives(store) == set(model.kept), f"{limits}, {clock.passed} days and "
                  f"{clock.set}: the model's archives {sorted(model.kept)}, not "
                  f"{sorted(archives(store))}")
        for _ in range(14):
            if host is None or chance.random() < 0.2:
                if host:
                    host.close()
                    told += host.removed()
                    host.end()
                limits = {"count": chance.choice([0, 0, 1, 3, 5]),
                          "days": chance.choice([0, 2, 2, 10, 30])}
                host = place.host(store, words).open(interval=1, quota=0, **limits)
                look()
            if chance.random() < 0.4:
                if chance.random() < 0.7:
                    clock.move(passed=chance.choice([1, 1, 3, 9, 35]))
                else:
                    # Not back: the engine's warning, whose time may be the earlier one, would then
                    # be the newest record of its archive.
                    clock.move(days=chance.choice([3, 40]))
                look()
            host.write(chance.randrange(1, 50), 100)
            now = clock.now()
            equal("cw_roll", int(host.ask("roll")), OK)
            equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)

            new = set()

            def is_made():
                # It may be removed at once: then its callback names it a moment later.
                new.update((archives(store) | {name for name, _ in host.removed()}) - known)
                return new
            until(is_made, "a new archive")
            equal("new archives", len(new), 1)
            known |= new
            model.kept[new.pop()] = now
            look()
            until(lambda: len(told + host.removed()) >= len(model.removed), "callbacks")
            equal("callbacks", sorted(told + host.removed()), sorted(model.removed))
        host.close()
        equal("callbacks", sorted(told + host.removed()), sorted(model.removed))
        host.end()
        removals += len(model.removed)
    place.note(f"{removals} removals, {waits} clocks that were set")


def a_jump_deletes_nothing(place):
    """The wall clock is set forward by forty days, beside a running engine and between two: nothing
    expires within a day of boot time, which is reported once. Then it does. Count goes on."""
    words = place.words()
    store = place.directory / "store"
    clock = Skewed(words)
    options = {"interval": 1, "quota": 0, "days": 30}

    def make(host, count):
        for _ in range(count):
            host.write(20, 100)
            equal("cw_roll", int(host.ask("roll")), OK)
            equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
    host = place.host(store, words).open(**options)
    make(host, 3)
    until(lambda: (store / "clock").exists(), "the clocks are written down")
    old = archives(store)
    clock.move(days=40)
    until(lambda: waits_until(store) > clock.boottime(), "the jump is seen")
    first = waits_until(store)
    make(host, 1)
    holds(old <= archives(store), "the jump deleted archives")
    host.close()
    equal("removed", host.removed(), [])
    host.end()
    # Records now have the new clock's time: only the file says that the engine waits.
    words.only("/clock")
    words.fail(errno.EIO, "open")
    host = place.host(store, words).open(**options)
    looks = words.count("open")
    make(host, 1)
    until(lambda: words.count("open") > looks, "the clocks are read")
    host.close()
    words.fail(0, "open")
    equal("removed while it could not be read", host.removed(), [])
    host.end()
    # Another run, another jump; and a run with a limit by count, which goes on.
    clock.move_unseen(days=40)
    host = place.host(store, words).open(**options)
    until(lambda: waits_until(store) != first, "the next run sees the second jump")
    make(host, 1)
    holds(old <= archives(store), "the second jump deleted archives")
    host.close()
    equal("removed", host.removed(), [])
    host.end()
    done = subprocess.run([TOOL, "cat", "--json", "--logger", "Cordwood.Uploader", store],
                          capture_output=True, check=True, text=True)
    told = [line for line in done.stdout.splitlines() if "clock may have jumped" in line]
    equal("times that it was told", len(told), 2)
    host = place.host(store, words).open(count=5, **options)
    until(lambda: len(host.removed()) == 1, "the count goes on")
    equal("reasons", {reason for _, reason in host.removed()}, {"count"})
    clock.move(passed=2)
    # The callback comes after the file is removed.
    until(lambda: not old & archives(store) and "expired" in dict(map(reversed, host.removed())),
          "what is expired goes after a day")
    equal("reasons", {reason for _, reason in host.removed()}, {"count", "expired"})
    host.close()
    host.end()


def zero_is_unlimited(place):
    words = place.words()
    clock = Skewed(words)
    host = place.host(place.directory / "store", words).open(quota=0, count=0, days=0, age=0,
                                                             segment=SEGMENT_MIN)
    for _ in range(20):
        host.write(600, 100)
        host.ask("roll")
    equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
    clock.move(passed=1000)
    for _ in range(2):
        # Retention looks after each archive, before the next one is made.
        host.write(1, 100)
        host.ask("roll")
        equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
    equal("removed", host.removed(), [])
    exact(host)
    host.end()


def rolls_by_size_and_age(place):
    """B-ROLL-2: by size, by age, each alone; age 0 never."""
    words = place.words()
    words.distrust_counter()
    host = place.host(place.directory / "size", words).open(segment=SEGMENT_MIN, age=0)
    host.write(10_000, 100)
    until(lambda: host.totals()["sealed"] >= 15, "segments of 64 KiB for 1.2 MB")
    equal("cw_roll", int(host.ask("roll")), OK)  # full segments wait for no thread
    host.write(1, 100)
    sealed = host.totals()["sealed"]
    words.wait(2 * DAY)
    words.looked()
    equal("sealed by age 0", host.totals()["sealed"], sealed)
    exact(host)
    host.end()
    host = place.host(place.directory / "age", words).open(age=DAY)
    host.write(10, 100)
    words.wait(DAY)
    until(lambda: host.totals()["sealed"] == 1, "rolled by age")
    exact(host)
    host.end()


# ── Under load ──

class Sampler:
    """The maximum disk space of the store's files, and the host's memory, while it ran."""

    def __init__(self, store, process_id):
        self.store, self.process_id = store, process_id
        self.most = self.anon = self.file = self.count = 0
        self.stop = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop:
            # Files that come and go during the count were never there together, and a new one may
            # get the inode of a removed one: so the host is stopped meanwhile.
            os.kill(self.process_id, signal.SIGSTOP)
            try:
                until(lambda: os.waitid(os.P_PID, self.process_id, os.WSTOPPED | os.WNOHANG),
                      "the host stands still")
                self.most = max(self.most, sum(disk_bytes(self.store).values()))
            finally:
                os.kill(self.process_id, signal.SIGCONT)
            with open(f"/proc/{self.process_id}/status") as file:
                kib = {k: int(v.split()[0]) for k, v in (line.split(":", 1) for line in file)
                       if k.startswith("Rss")}
            self.anon = max(self.anon, kib["RssAnon"])
            self.file = max(self.file, kib["RssFile"] + kib["RssShmem"])
            self.count += 1
            time.sleep(0.005)

    def end(self):
        self.stop = True
        self.thread.join()


def each_once(host, store):
    """Every archive that was made is there, or one callback said why it was removed."""
    def accounted():
        # The engine may still be removing archives. It reports one after its file is gone.
        removed, there = host.removed(), archives(store)
        holds(not there & {name for name, _ in removed}, "an archive told to be removed is there")
        total = host.totals()
        return total["archives"] == len(there) + len(removed) and \
            total["removed"] == len(removed) and [removed]
    removed, = until(accounted, "made = there + removed, each of them counted and reported")
    names = [name for name, _ in removed]
    equal("archives told twice", len(names), len(set(names)))
    return removed


def under_load(place, threads, quota, seconds, **options):
    """Threads at full rate: the store's files never exceed the quota plus one segment, each removal
    is reported once, and the counts are exact for everything that retention left."""
    store = place.directory / "store"
    host = place.host(store).open(quota=quota, **options)
    segment = min(options.get("segment", 16 << 20), max(SEGMENT_MIN, quota // 8 & ~0xFFFF))
    sampler = Sampler(store, host.process.pid)
    try:
        host.numbers("threads", threads, seconds * 1000, 150)
        host.ask("join")
    finally:
        sampler.end()
    host.ask("roll")
    host.ask("wait", 60_000)
    total = host.totals()
    equal("other answers", total["other"], 0)
    equal("records_dropped", total["dropped"], total["refused"])
    removed = each_once(host, store)
    equal("reasons", {reason for _, reason in removed} - {"quota"}, set())
    holds(sampler.most <= quota + segment,
          f"{sampler.most} bytes in files, quota {quota}, segment {segment}")
    host.close()
    read = host.read()
    equal("out of order or twice", read["bad"], 0)
    equal("damaged", read["damaged"], 0)
    host.end()
    place.note(f"{total['sent'] / seconds / 1e6:.1f} M/s by {threads}, {total['refused']} refused, "
               f"{len(removed)} removed, files at most {sampler.most >> 10} KiB of "
               f"{quota >> 10} + {segment >> 10}, memory {sampler.anon >> 10} MiB + files "
               f"{sampler.file >> 10} MiB")
    return total, sampler, removed


def quota_small(place):
    under_load(place, 4, 4 << 20, 3)


@full
def quota_middle(place):
    total, _, removed = under_load(place, 2, 64 << 20, 4)
    holds(removed and total["kept"] > 0, "retention was not needed")


def quota_of_slow_writers(place):
    """If writers are slower than the archiver nothing is refused: old archives make room."""
    store = place.directory / "store"
    quota = 8 << 20
    host = place.host(store).open(quota=quota, codec=2)
    # From the second part on, room is made again and again.
    for _ in range(2):
        sampler = Sampler(store, host.process.pid)
        try:
            for _ in range(30):
                equal("refused", host.write(2000, 200)["refused"], 0)
                equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
        finally:
            sampler.end()
        holds(sampler.most <= quota + (1 << 20), f"{sampler.most} bytes in files")
    # Two MiB of the quota stay free of archives, and an archive has one.
    holds(sampler.most > quota * 5 / 8, "far more was removed than had to be")
    removed = each_once(host, store)
    holds(removed, "nothing was removed")
    equal("reasons", {reason for _, reason in removed}, {"quota"})
    host.close()
    read = host.read()
    equal("out of order or twice", read["bad"], 0)
    host.end()
    place.note(f"{len(removed)} removed, files at most {sampler.most >> 10} KiB, "
               f"{read['logs']} records left")


def memory_is_bounded(place):
    """64 threads at full rate and a small quota: the engine's memory stays below the limit in
    ARCHITECTURE.md, and does not grow with time."""
    store = place.directory / "store"
    seconds = sized(1, 5, 20)
    total, sampler, _ = under_load(place, 64, 32 << 20, seconds)
    holds(sampler.anon < 160 << 10, f"{sampler.anon >> 10} MiB of private memory")
    holds(sampler.file < 192 << 10, f"{sampler.file >> 10} MiB of mapped files")
    holds(total["sent"] > 0 and store.exists(), "nothing was sent")


def a_roll_waits_for_retention(place):
    """Also if the disk is slow to remove an archive, and however many small archives there are,
    which take more disk space than they hold."""
    store, words = place.directory / "store", place.words()
    host = place.host(store, words).open(quota=2 << 20, segment=SEGMENT_MIN, codec=2)

    def roll():
        host.write(40, 1000)
        started = time.monotonic()
        equal("cw_roll", int(host.ask("roll")), OK)
        return time.monotonic() - started

    for _ in range(100):
        roll()
        equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
    holds(host.removed(), "nothing had to be removed")
    words.only("/archives/")
    words.delay(500, "unlink")
    holds(any(roll() > 0.3 for _ in range(40)), "no roll had to wait")
    words.delay(0, "unlink")
    host.close()
    host.end()


# ── Several at one store ──

def two_enforcers(place):
    """Two processes on one store with hardly any quota: each archive is removed once, with one
    callback in one of them. R38."""
    store = place.directory / "store"
    hosts = [place.host(store).open(quota=1, interval=1) for _ in range(2)]
    for _ in range(sized(8, 8, 25)):
        for host in hosts:
            host.write(50, 100)
        for host in hosts:
            host.tell("roll")
        for host in hosts:
            host.answer()
        for host in hosts:
            host.tell("wait", 60_000)
        for host in hosts:
            equal("cw_archive_wait", int(host.answer()), OK)
    # That little room may not fit another segment: then cw_roll returns CW_E_FULL.
    made = sum(host.totals()["archives"] for host in hosts)
    holds(made >= 8, f"only {made} archives were made")
    until(lambda: not archives(store) and sum(len(h.removed()) for h in hosts) >= made,
          "all are removed, and told")
    names = [name for host in hosts for name, _ in host.removed()]
    equal("removals told", len(names), made)
    equal("told twice", len(set(names)), made)
    equal("reasons", {reason for host in hosts for _, reason in host.removed()}, {"quota"})
    for host in hosts:
        host.close()
        host.end()
    place.note(f"{made} archives")


def uploaders_and_enforcer(place):
    """Two uploaders and an enforcer with hardly any quota: each archive reaches the server once, or
    its removal is reported once."""
    store = place.directory / "store"
    requests = place.directory / "server"
    requests.mkdir()
    server = subprocess.Popen(
        [sys.executable, ROOT / "Tests/TestSupport/fault_server.py", requests, "[]"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline())
        host = place.host(store).open(quota=0, interval=1)
        made = sized(40, 40, 120)
        for _ in range(made):
            host.write(50, 100)
            host.ask("roll")
            equal("cw_archive_wait", int(host.ask("wait", 60_000)), OK)
        holds(len(archives(store)) == made, "archives are missing")
        url = f"http://127.0.0.1:{port}/in/{{name}}"
        uploads = [subprocess.Popen([TOOL, "upload", store, "--kind", "http", "--to", url],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for _ in range(2)]

        def arrived():
            return [line["path"].rsplit("/", 1)[1]
                    for line in json_lines(requests / "requests.jsonl")]

        def told():
            return [name for name, _ in enforcer.removed() + host.removed()]

        until(arrived, "the first arrives")
        enforcer = place.host(store).open(quota=1, interval=1)
        for upload in uploads:
            upload.communicate(timeout=60)
        until(lambda: not archives(store), "all are gone")
        until(lambda: len(arrived()) + len(told()) >= made, "the last callback")
        sent, removed = arrived(), told()
        equal("sent twice", len(sent), len(set(sent)))
        equal("told twice", len(removed), len(set(removed)))
        equal("sent and removed unsent", set(sent) & set(removed), set())
        equal("sent or removed", len(sent) + len(removed), made)
        for each in (host, enforcer):
            each.close()
            each.end()
        place.note(f"{len(sent)} sent, {len(removed)} removed")
    finally:
        server.kill()
        server.wait()


CLOCKS = {f.__name__: f for f in (modelled, a_jump_deletes_nothing)}
CASES = {f.__name__: f for f in (
    zero_is_unlimited, rolls_by_size_and_age, quota_small,
    quota_middle, quota_of_slow_writers, memory_is_bounded, a_roll_waits_for_retention,
    two_enforcers, uploaders_and_enforcer)}
