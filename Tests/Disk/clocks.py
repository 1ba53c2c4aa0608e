"""Clocks that jump: UTC set by a day while a host logs, a suspend, a counter that the kernel does
not trust; time zones and daylight saving time in the output. RELIABILITY R30; FORMAT §4."""

import datetime
import json
import os
import subprocess
import sys
import threading
import time
import zoneinfo

from harness import LIBRARY, ROOT, TOOL, Skipped, equal, exact, holds, until

DAY = 86_400


def utc(words_s):
    return time.time() + words_s


def stepped(place, flags=0, distrust=False, seconds=0):
    """Forward by a day, back by two, forward by one: each group of records shows the clock of its
    time, in the order of writing."""
    words = place.words()
    if distrust:
        words.distrust_counter()
    store = place.directory / "store"
    host = place.host(store, words).open(flags=flags, segment=64 << 10)
    groups = []
    number = 0
    opened = time.monotonic()
    offsets = iter((0, DAY, -DAY, 0))
    while True:
        offset = next(offsets, None)
        if offset is None:
            # A step proves nothing if a pair of clocks that is due anyway shows it: after its tenth
            # second the engine takes a pair every ten.
            if time.monotonic() >= opened + seconds:
                break
            offset = DAY if len(groups) % 2 else 0
        words.move(realtime_s=offset)
        words.looked()
        low = utc(offset)
        equal("kept", host.write(500, 50)["kept"], 500)
        groups.append((number, number + 500, low, utc(offset)))
        number += 500
        if flags:
            # The coarse clock cannot tell records before and after a step within one tick.
            time.sleep(0.02)
        if len(groups) == 2:
            host.ask("roll")
    for closed in (False, True):
        if closed:
            host.ask("roll")
            host.ask("wait", 60_000)
        times, count = shown(host)
        equal("records", count[0], number)
        equal("out of the order of writing", count[2], 0)
        for first, after, low, high in groups:
            wrong = [n for n in range(first, after)
                     if not low - 0.05 <= times[n] / 1e9 <= high + 0.05]
            if wrong:
                n = wrong[0]
                holds(False, f"{len(wrong)} records of {first}…{after} have other times: {n} is "
                      f"{times[n] / 1e9 - low:.3f} s after the first could be")
    exact(host)
    host.end()


def shown(host):
    text, counts = host.ask("times").rsplit("|", 1)
    times = {int(n): int(t) for n, t in (pair.split(":") for pair in text.split())}
    return times, [int(word) for word in counts.split()]


def utc_set(place):
    stepped(place, seconds=14)


def utc_set_coarse(place):
    stepped(place, flags=2)


def utc_set_counter_not_trusted(place):
    stepped(place, distrust=True)


def utc_set_over_restarts(place):
    """Three processes in sequence, each with its clock a day off: lanes of one boot keep the order
    of writing, each record its own UTC."""
    words = place.words()
    store = place.directory / "store"
    groups, number = [], 0
    for offset in (0, DAY, -DAY):
        words.move(realtime_s=offset)
        host = place.host(store, words).open()
        low = utc(offset)
        host.write(300, 50)
        groups.append((low, utc(offset)))
        number += 300
        host.close()
        host.end()
    words.move()
    done = subprocess.run([TOOL, "cat", "--json", "--utc", store], capture_output=True, check=True,
                          text=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    times = [datetime.datetime.fromisoformat(r["time"].replace("Z", "+00:00")).timestamp()
             for r in records if r.get("logger") == "disk"]
    equal("records", len(times), number)
    for index, (low, high) in enumerate(groups):
        part = times[index * 300:(index + 1) * 300]
        holds(all(low - 0.05 <= t <= high + 0.05 for t in part),
              f"process {index}: times are not its own, or the processes are out of order")


def suspended(place):
    """BOOTTIME runs ahead of MONOTONIC by an hour, and UTC with it, as after a suspend."""
    words = place.words()
    host = place.host(place.directory / "store", words).open()
    low = utc(0)
    host.write(300, 50)
    middle = utc(0)
    words.move(realtime_s=3600, boottime_s=3600)
    words.looked()
    after = utc(3600)
    host.write(300, 50)
    high = utc(3600)
    times, count = shown(host)
    equal("records, back in time, out of order", count, [600, 0, 0])
    holds(all(low - 0.05 <= times[n] / 1e9 <= middle + 0.05 for n in range(300)), "before it")
    holds(all(after - 0.05 <= times[n] / 1e9 <= high + 0.05 for n in range(300, 600)), "after it")
    exact(host)
    host.end()


def counter_jumps(place, jump):
    """The processor's counter, simulated, jumps: times before and after are right, and so is the
    order. Between the jump and the engine's next look they may be wrong."""
    words = place.words()
    host = place.host(place.directory / "store", words)
    if int(host.ask("trap")) != 0:
        raise Skipped("the counter cannot be trapped")
    host.open()
    groups = []
    for number in range(3):
        if number:
            words.looked()  # times since the engine's last look may be wrong
            host.ask("jump", jump)
        words.looked()
        low = utc(0)
        host.write(300, 50)
        groups.append((low, utc(0)))
    times, count = shown(host)
    equal("records, back in time, out of order", count, [900, 0, 0])
    for number, (low, high) in enumerate(groups):
        wrong = [n for n in range(number * 300, number * 300 + 300)
                 if not low - 0.05 <= times[n] / 1e9 <= high + 0.05]
        if wrong:
            n = wrong[0]
            holds(False, f"{len(wrong)} records of group {number}: {times[n] / 1e9 - low:.3f} s "
                  "after the first could be")
    exact(host)
    host.end()


def counter_reset(place):
    counter_jumps(place, "zero")


def counter_ran_through_a_suspend(place):
    counter_jumps(place, 2 * 3600 * 10**9)


def roll_age_with_a_stepped_clock(place):
    """Roll by age follows the monotonic clock: a jump of UTC neither causes nor prevents a roll."""
    words = place.words()
    host = place.host(place.directory / "store", words).open(age=3600)
    host.write(10, 50)
    words.move(realtime_s=DAY)
    words.looked()
    equal("sealed by a jump", host.totals()["sealed"], 0)
    host.close()
    host.end()
    words.move(realtime_s=0)
    host = place.host(place.directory / "store", words).open(age=1)
    host.write(10, 50)
    words.move(realtime_s=-DAY)
    end = time.monotonic() + 30
    while host.totals()["sealed"] == 0:
        holds(time.monotonic() < end, "not rolled with a clock set back")
        time.sleep(0.02)
    host.close()
    host.end()


def zones(place):
    """cat in several time zones, around both daylight saving changes, against Python's zoneinfo."""
    words = place.words()
    store = place.directory / "store"
    moments = [datetime.datetime(2026, 3, 29, 0, 59, 58, tzinfo=datetime.timezone.utc),
               datetime.datetime(2026, 10, 25, 0, 59, 58, tzinfo=datetime.timezone.utc),
               datetime.datetime(2026, 11, 1, 5, 59, 58, tzinfo=datetime.timezone.utc)]
    for moment in moments:
        words.move(realtime_s=moment.timestamp() - time.time())
        host = place.host(store, words).open()
        for second in range(4):
            words.move(realtime_s=moment.timestamp() + second - time.time())
            words.looked()
            host.write(1, 50)
        host.close()
        host.end()
    plain = text(store, "UTC0", "--utc")
    checked = 0
    for zone in ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe",
                 "Pacific/Kiritimati"):
        try:
            rules = zoneinfo.ZoneInfo(zone)
        except zoneinfo.ZoneInfoNotFoundError as why:
            raise Skipped("no time zone data") from why
        lines = text(store, zone)
        equal(f"lines in {zone}", len(lines), len(plain))
        for there, here in zip(lines, plain):
            moment = datetime.datetime.fromisoformat(here.replace("Z", "+00:00"))
            wanted = moment.astimezone(rules)
            got = datetime.datetime.fromisoformat(there)
            equal(f"{here} in {zone}", (got.replace(tzinfo=None), got.utcoffset()),
                  (wanted.replace(tzinfo=None), wanted.utcoffset()))
            checked += 1
    place.note(f"{checked} times")


def text(store, zone, *flags):
    done = subprocess.run([TOOL, "cat", *flags, store], capture_output=True, check=True, text=True,
                          env=dict(os.environ, TZ=zone))
    return [stamp(line) for line in done.stdout.splitlines()]


def stamp(line):
    words = line.split()
    return words[0] if "T" in words[0] else "T".join(words[:2])


# Ten days ahead on both clocks of the boot; UTC is the machine's.
NAMESPACE = ("unshare", "-T", "--monotonic", str(10 * DAY), "--boottime", str(10 * DAY), "-f",
             "--kill-child")


def time_namespace(place, flags=0):
    """Hosts in two time namespaces log in turns: readers in either show both in the order of
    writing, following or not, live or archived, and nobody takes the other's clock for a jump."""
    if subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode:
        raise Skipped("no time namespace can be made")
    store = place.directory / "store"
    hosts = [place.host(store, before=before).open(flags=flags, days=30, interval=1)
             for before in ((), NAMESPACE)]
    follow = [TOOL, "tail", "-n", "0", "-f", "--json", store]
    followers = [subprocess.Popen([*before, *follow], stdout=subprocess.PIPE, text=True)
                 for before in ((), NAMESPACE)]
    told = [[], []]
    readers = [threading.Thread(target=lambda lines=lines, one=one: lines.extend(
        json.loads(line) for line in one.stdout)) for lines, one in zip(told, followers)]
    try:
        for reader in readers:
            reader.start()
        # Wait until both followers have shown something, so that neither misses a turn.
        until(lambda: hosts[0].write(1, 50) and all(told), "the followers follow")
        turns = []
        for turn in range(8):
            low = utc(0)
            hosts[turn % 2].write(50, 50)
            time.sleep(0.02)  # the coarse clock's tick
            turns.append((low, utc(0)))
        wanted = {line["record_id"] for line in of_turns(listed(store))}
        until(lambda: all(wanted <= {line["record_id"] for line in lines} for lines in told),
              "both see all")
    finally:
        for one in followers:
            one.kill()
        for reader in readers:
            reader.join()
    for lines in told:
        in_turns([line for line in lines if line["record_id"] in wanted], turns)
    rolled = [host.totals()["sealed"] for host in hosts]
    equal("segments that were a day old", rolled[1], rolled[0])
    for archived in (False, True):
        if archived:
            for host in hosts:
                host.close()
                equal("removed", host.removed(), [])
                host.end()
            subprocess.run([TOOL, "archive", store], check=True, capture_output=True)
        for before in ((), NAMESPACE):
            lines = listed(store, before)
            in_turns(of_turns(lines), turns)
            holds(not any("may have jumped" in line["message"] for line in lines), "a jump is told")


def listed(store, before=()):
    done = subprocess.run([*before, TOOL, "cat", "--json", store], capture_output=True, check=True,
                          text=True)
    return list(map(json.loads, done.stdout.splitlines()))


def of_turns(lines):
    """The last 400 of the hosts' records: those before them were for the followers."""
    return [line for line in lines if line["logger"] == "disk"][-400:]


def in_turns(lines, turns):
    equal("records", len(lines), 50 * len(turns))
    pids = [line["pid"] for line in lines]
    equal("processes in turns", [pids[at] for at in range(0, len(pids), 50)],
          4 * [pids[0], pids[50]])
    equal("each turn's own", [len(set(pids[at:at + 50])) for at in range(0, len(pids), 50)],
          len(turns) * [1])
    for line, (low, high) in zip(lines[::50], turns):
        moment = datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
        holds(low - 0.05 <= moment <= high + 0.05, f"{line['time']} is not of its turn")


def time_namespace_coarse(place):
    time_namespace(place, flags=2)


DELETING = """
import sys
sys.path.insert(0, sys.argv[1])
import cordwood
engine = cordwood.open(sys.argv[2])
one = engine.transaction(17)
for line in sys.stdin:
    word = line.strip()
    if word == "event":
        one.event(1)
    elif word == "roll":
        engine.roll()
    else:
        engine.delete_transactions(one.id if word == "delete" else None)
    print(sum(info.events for info in engine.transactions()), flush=True)
engine.close()
"""


def deletion_and_a_stepped_clock(place):
    """Records logged before are forgotten and those logged after are not, whatever the clock was
    set to in between; live and archived (FORMAT §2.3)."""
    words = place.words()
    environment = {**os.environ, "LD_PRELOAD": str(place.programs[1]),
                   "DISK_WORDS": str(words.path), "DISK_STORE": str(place.directory / "store"),
                   "CORDWOOD_LIBRARY": str(LIBRARY)}
    host = subprocess.Popen(
        [sys.executable, "-c", DELETING, ROOT / "bindings/python/src", place.directory / "store"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    at = None

    def ask(word, offset, wanted):
        nonlocal at
        if offset != at:
            at = offset
            words.move(realtime_s=offset)
            words.looked()
        host.stdin.write(word + "\n")
        host.stdin.flush()
        equal(f"events after {word} at {offset} s", host.stdout.readline().strip(), str(wanted))
    try:
        for delete in ("delete", "delete all"):
            ask("event", DAY, 1)  # fast
            ask("roll", 0, 1)
            ask(delete, 0, 0)
            ask("event", -DAY, 1)  # set back
            ask("event", 0, 2)
            ask("roll", 0, 2)
            ask(delete, -DAY, 0)
            ask("event", -DAY, 1)
            ask(delete, -DAY, 0)
        host.stdin.close()
        equal("exit", host.wait(60), 0)
    finally:
        host.kill()
        host.wait()
        host.stdout.close()


CASES = {f.__name__: f for f in (
    utc_set, utc_set_coarse, utc_set_counter_not_trusted, utc_set_over_restarts, suspended,
    counter_reset, counter_ran_through_a_suspend, roll_age_with_a_stepped_clock,
    deletion_and_a_stepped_clock, zones, time_namespace, time_namespace_coarse)}
