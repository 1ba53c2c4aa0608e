"""Whose lane may be adopted: a busy lock means life and a free lock death, in every namespace and
without /proc. Owners that others may mistake for dead log beside adopters. Every kept record must
be there once. Cases of run.py."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

from cases import Failed, Skipped, sized, until
from checking import read_ledger

# A user that is not root: root sees all of /proc.
USER = 65534
# Views of the system: prefixes of a command.
HIDDEN = ["unshare", "--mount", "sh", "-c",
          'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"]
NO_PROC = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
# The /proc that it sees has another namespace's numbers, without its own number.
OTHER_PROC = ["unshare", "--pid", "--fork", "sh", "-c",
              'echo 3999999 > /proc/sys/kernel/ns_last_pid; "$@" & wait $!', "sh"]
BESIDE_OWNER = "in the owner's pid namespace"
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]


def needs(*ways):
    if os.geteuid() != 0:
        raise Skipped("namespaces and other users need root")
    for way in ways:
        if subprocess.run([*way, "true"], capture_output=True, check=False).returncode != 0:
            raise Skipped(f"{way[0]} {way[1]} is refused here")


def own(bench):
    """The user owns the store and can reach it."""
    bench.store.mkdir()
    bench.ledger.touch()
    for path in (bench.store, bench.ledger, bench.directory):
        os.chown(path, USER, USER)
    for path in (bench.directory, bench.directory.parent, bench.programs):
        path.chmod(0o755)


class Owner:
    """A process of owners.c that logs until it is told to stop."""

    def __init__(self, bench, *words, way=()):
        self.bench = bench
        self.process = subprocess.Popen(
            [*way, bench.programs / "owners", "log", bench.store, bench.ledger,
             *map(str, words)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if line.strip() != "ready":
            raise Failed(f"the owner says {line!r}, ends {self.process.wait()}")
        # Its own number here: `unshare --fork` and a shell precede it.
        self.pid = self.process.pid
        while children := subprocess.run(["pgrep", "-P", str(self.pid)], capture_output=True,
                                         text=True, check=False).stdout.split():
            self.pid = int(children[0])

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        self.process.stdout.read()
        code = self.process.wait(60)
        if code != 0:
            raise Failed(f"the owner ends {code}")

    def kill(self):
        if self.process.poll() is None:
            try:
                self.signal(signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait(60)


def lanes(bench):
    """Lanes, except those being made, which have hidden names."""
    return sorted(path.name for path in (bench.store / "lanes").glob("*.lane")
                  if not path.name.startswith("."))


def spared(words, way, adopter, what):
    """An owner that adopters cannot see properly is stopped, so that its lane does not change,
    beside an adopter that may wait as long as it likes."""
    def body(bench):
        needs(*(w for w in (way, adopter) if w and w is not BESIDE_OWNER))
        own(bench)
        owner = Owner(bench, *words, way=way)
        try:
            before = lanes(bench)
            owner.signal(signal.SIGSTOP)
            beside = adopter
            if adopter is BESIDE_OWNER:
                beside = ["nsenter", f"--pid=/proc/{owner.pid}/ns/pid"]
            bench.finish([*beside, bench.command, "archive", bench.store])
            if not set(before) <= set(lanes(bench)):
                raise Failed(f"the lane of {what} was adopted: {lanes(bench)}, not {before}")
            owner.signal(signal.SIGCONT)
            owner.end()
        finally:
            owner.kill()
        bench.check()
    return body


def executes(bench):
    """After exec(2) the old image has ended, and with it the owner of its lane."""
    owner = Owner(bench, "exec")
    try:
        until(lambda: b"sleep" in open(f"/proc/{owner.pid}/cmdline", "rb").read(),
                       "the other program")
        bench.archive()
        if lanes(bench):
            raise Failed(f"left beside the program that was executed: {lanes(bench)}")
        bench.check()
    finally:
        owner.kill()


@contextlib.contextmanager
def overlay(bench, place, *lower):
    """Mounts overlayfs on a folder. lower: the folders that its lower layer has."""
    needs()
    layers, mounted = bench.directory / "layers", []
    for path in (place, layers):
        path.mkdir()
    try:
        for kind, path in (("tmpfs", layers), ("overlay", place)):
            options = []
            if kind == "overlay":
                for name in ("lower", "upper", "work", *(f"lower/{name}" for name in lower)):
                    (layers / name).mkdir(parents=True)
                options = ["-o", f"lowerdir={layers}/lower,upperdir={layers}/upper,"
                                 f"workdir={layers}/work"]
            done = subprocess.run(["mount", "-t", kind, *options, "none", path], check=False,
                                  capture_output=True)
            if done.returncode != 0:
                raise Skipped(f"no {kind} can be mounted here")
            mounted.append(path)
        yield
    finally:
        for path in reversed(mounted):
            subprocess.run(["umount", "-l", path], check=False)


def on_overlay(bench):
    """overlayfs maps the file of the lower layer, so a mapping holds no lock there. Containers keep
    their stores on it. One owner keeps its descriptors, the other closes all."""
    owners = []
    with overlay(bench, bench.store):
        try:
            for words in ([], ["close"]):
                owners.append(Owner(bench, *words))
            before = lanes(bench)
            # The owners' ship threads adopt a second after open.
            until = time.monotonic() + 3
            while time.monotonic() < until:
                bench.archive()
            if lanes(bench) != before:
                raise Failed(f"living lanes were adopted: {lanes(bench)}, not {before}")
            for owner in owners:
                owner.end()
            bench.check()
        finally:
            for owner in owners:
                owner.kill()


def removed_from_overlay(what):
    """The same as `removed`, for folders of the lower layer, whose link count stays."""
    def body(bench):
        place = bench.directory / "overlay"
        bench.store = place / "store"
        with overlay(bench, place, "store/lanes", "store/archives"):
            removed(what)(bench)
    return body


def storm(bench):
    """Owners of all kinds, stopped and continued, beside adopters of all kinds."""
    needs(HIDDEN, NO_PROC, OTHER_PROC)
    own(bench)
    seconds = sized(2, 15, 120)
    kinds = [
        ([f"uid={USER}", "segment=65536"], HIDDEN),
        ([f"uid={USER}", "close", "segment=65536"], HIDDEN),
        ([f"uid={USER}", "refuse", "close", "pause=5000"], ()),
        (["segment=65536", "pause=300"], OTHER_PROC),
        (["refuse", "pause=5000"], OTHER_PROC),
    ]
    rounds = stops = 0
    owners, running = [], []
    try:
        for words, way in kinds:
            owners.append(Owner(bench, *words, way=way))
        adopters = [[*HIDDEN, *AS_USER], NO_PROC, OTHER_PROC, [],
                    *(["nsenter", f"--pid=/proc/{owner.pid}/ns/pid"] for owner in owners[3:])]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            owner = bench.random.choice(owners)
            owner.signal(signal.SIGSTOP if bench.random.random() < 0.5 else signal.SIGCONT)
            stops += 1
            running = [r for r in running if r.poll() is None]
            if len(running) < 2:
                way = bench.random.choice(adopters)
                running.append(subprocess.Popen(
                    [*way, bench.command, "archive", bench.store],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                rounds += 1
            time.sleep(bench.random.random() * 0.3)
        for adopter in running:
            adopter.wait(60)
        if len(lanes(bench)) < len(owners):
            raise Failed(f"{len(lanes(bench))} lanes of {len(owners)} owners")
        for owner in owners:
            owner.end()
    finally:
        for adopter in running:
            adopter.kill()
        for owner in owners:
            owner.kill()
    refused = [s[2] for _, s in sorted(read_ledger(bench.ledger).items())]
    if any(refused):
        raise Failed(f"records were refused, by owner: {refused}")
    bench.note(f"{rounds} adopters, {stops} stops")
    bench.check()


def left(bench):
    """The numbers of the records that are there, the reported maximum of lost ones, and the number
    of reports."""
    numbers, gone, words = [], 0, 0
    for record in bench.records(codes=(0, 3)):  # reports segments without their lane file
        if record["message"].startswith("w "):
            numbers.append(int(record["message"].split()[2]))
        elif record["logger"] == "Cordwood.Store":
            gone += record["fields"]["records_lost_at_most"]
            words += 1
    return numbers, gone, words


def remove(paths):
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def removed(what, *words, again=False, pause_us=100):
    """Files of a living lane are removed. Its owner begins a new lane within a second, and reports
    the maximum of lost records. What it keeps from then on is there once. again: the removed files
    may have been sealed meanwhile, and are not those being written; pause_us: between two records,
    long enough that a segment lasts for more than one check by its owner."""
    def body(bench):
        owner = Owner(bench, "segment=65536", f"pause={pause_us}", *words)
        try:
            before = set(lanes(bench))
            until(lambda: list((bench.store / "lanes").glob("*.seg")), "a segment")
            remove(what(bench.store))

            def renewed_lane():
                if not set(lanes(bench)) - before and again:
                    remove(what(bench.store))
                return set(lanes(bench)) - before
            until(renewed_lane, "a new lane")
            # The owner reports it after the switch.
            until(lambda: left(bench)[2], "word of the new lane")
            renewed, = read_ledger(bench.ledger).values()
            until(lambda: next(iter(read_ledger(bench.ledger).values()))[1]
                           > renewed[1] + 1000, "records in it")

            def all_told():
                slot, = read_ledger(bench.ledger).values()
                numbers, gone, _ = left(bench)
                return slot[1] - sum(number < slot[1] for number in numbers) <= gone
            # The engine looks for lost archives a second later.
            until(all_told, "word of all that is gone")
            owner.end()
        finally:
            owner.kill()
        slot, = read_ledger(bench.ledger).values()
        numbers, gone, _ = left(bench)
        if len(numbers) != len(set(numbers)) or numbers != sorted(numbers):
            raise Failed("records twice, or out of order")
        lost = slot[1] - len(numbers)
        if not 0 <= lost <= gone:
            raise Failed(f"{lost} of {slot[1]} lost, {gone} told")
        missing = set(range(renewed[1], slot[1])) - set(numbers)
        if missing:
            raise Failed(f"{len(missing)} records lost after the new lane had begun")
        # Between the removal and the new lane no segment can be made.
        bench.note(f"{len(numbers)} records, {lost} lost, at most {gone} told, {slot[2]} refused")
    return body


def files(pattern):
    return lambda store: list((store / "lanes").glob(pattern))


CASES = {
    "owner_hidden": spared([f"uid={USER}"], HIDDEN, [*HIDDEN, *AS_USER], "a hidden process"),
    "owner_without_proc": spared([], [], NO_PROC, "a process without /proc"),
    "owner_other_proc": spared([], OTHER_PROC, BESIDE_OWNER, "another namespace's process"),
    "owner_written": spared(["refuse", "close"], [], OTHER_PROC,
                            "a daemon that writes by pwrite"),
    "owner_executes": executes,
    "owner_on_overlay": on_overlay,
    "owners_storm": storm,
    "lane_file_removed": removed(files("*.lane")),
    "segment_removed": removed(files("*.seg"), again=True, pause_us=1000),
    "lanes_removed": removed(lambda store: [store / "lanes"]),
    "store_removed": removed(lambda store: [store]),
    "store_removed_closed": removed(lambda store: [store], "close"),
    "lanes_removed_from_overlay": removed_from_overlay(lambda store: [store / "lanes"]),
    "store_removed_from_overlay": removed_from_overlay(lambda store: [store]),
}
