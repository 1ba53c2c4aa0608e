"""Death at numbered points, without test code in the product. A workload (workload.c) runs under
killer.c, which kills it before or after each of its system calls that change a file, or a number of
instructions after one. After each death the store is compared with the model as it lies, recovered
by `cordwood archive` or by a new engine, and compared again: nothing lost, nothing twice, nothing
left behind. Part of crash.py (--points).

A point's name is MODE|SIDE|NTH|STEPS|LABEL: the nth call of that label in a run.
build/crash-points.txt lists the numbers of all points of the last run."""

import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import cases
import duels
from aged import make_old
from hosts import (CORDWOOD, HERE, ROOT, Failed, Programs, Tally, compare_groups, cordwood,
                   left_in_lanes, verify)

MODES = ("roll", "adopt", "compact", "sealed", "upload", "limits", "memory", "written", "encrypted",
         "steps")
COMPACTING = ("compact", "sealed")  # plain archives, encrypted ones
OLD, EXPIRED = range(21, 27), range(31, 34)
ARCHIVES_MAX = 8
RECOVERY_S = 120
# A refusal, a lost acknowledgement, a cut connection; all others are accepted.
ANSWERS = [{}, {"status": 503}, {"action": "lose"}, {}, {"action": "drop"}]
MEMORY = Path(f"/dev/shm/cordwood-segments-{os.geteuid()}")
SEED = 5
# The number of instructions tried after each mark, and the stride.
MARK_STEPS = {1: (700, 1), 2: (200, 1), 3: (700, 3), 4: (300, 1), 5: (700, 3), 6: (300, 1),
              7: (700, 3), 8: (700, 3), 9: (14_000, 20), 10: (700, 3)}
# If a run has more calls of one kind (such as writes of single records), only this many are tried.
CALLS_OF_A_KIND = 48
memory_lock = threading.Lock()


class Point:
    def __init__(self, mode, side, nth, steps, label):
        self.mode, self.side, self.nth, self.steps, self.label = mode, side, nth, steps, label

    @classmethod
    def parse(cls, text):
        mode, side, nth, steps, label = text.split("|")
        return cls(mode, side, int(nth), int(steps), label)

    def __str__(self):
        return "|".join(map(str, (self.mode, self.side, self.nth, self.steps, self.label)))


# ── What a run starts from ──

class Fixtures:
    """A store for each mode, and the groups of records in it before the run."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.groups = {}
        for mode in MODES:
            self.groups[mode] = self.make(mode, folder / mode)

    def work(self, what, seed, store):
        kept = self.folder / f"kept-{store.name}-{what}{seed}"
        subprocess.run([self.programs.tool("workload"), what, str(store), str(kept), str(seed)],
                       check=True)
        return f"{what}{seed}", seed, kept

    def make(self, mode, store):
        groups = []
        if mode == "limits":
            for seed in [*EXPIRED, *OLD]:
                groups.append(self.work("old", seed, store))
                before = set((store / "archives").iterdir())
                cordwood("archive", store)
                fresh = set((store / "archives").iterdir()) - before
                if seed in EXPIRED:
                    for archive in fresh:
                        make_old(archive, 90)
        elif mode in COMPACTING:
            # Lanes with archives of their own, and an archive that two lanes share.
            to = ["--encrypt-to", make_key(self.folder)] if mode == "sealed" else []
            for seeds in ((11,), (12, 13), (14,)):
                for seed in seeds:
                    groups.append(self.work("dead" if seed < 13 else "old", seed, store))
                cordwood("archive", store, *to)
            make_sent(store)
        elif mode != "steps":
            if mode == "encrypted":
                os.environ["CRASH_RECIPIENT"] = make_key(self.folder)
            for seed in (11, 12) if mode != "upload" else (11,):
                groups.append(self.work("dead", seed, store))
            if mode == "upload":
                # Nothing is deleted before the second has it, however late it is added.
                register(store, "second", "http", "ndjson", "gzip")
        return groups


SENT = "@sent.sent-200"


def make_key(folder):
    """All readers and compactions of this run have the key. Returns the recipient."""
    key = folder / "key.txt"
    if not key.exists():
        cordwood("keygen", "-o", key)
        os.environ["CORDWOOD_IDENTITY"] = str(key)
    return key.read_text(encoding="ascii").split("public key: ")[1].split()[0]


def register(store, name, kind, form, encoding):
    """As if a previous run had added the target."""
    for folder in ("targets", "queue"):
        (store / folder).mkdir(mode=0o700, exist_ok=True)
    (store / "targets" / name).write_text(f"cordwood target\nname {name}\nkind {kind}\n"
                                          f"format {form}\nencoding {encoding}\norigin -\n")


def make_sent(store):
    """A target has every archive. It takes only transactions, so what it has stays in the store."""
    register(store, "sent", "transactions", "sap", "none")
    for archive in (store / "archives").glob("*.cwa"):
        (store / "queue" / f"{archive.stem}{SENT}").touch()


class Server:
    """The fault server, and what it accepted."""

    def __init__(self, folder):
        self.folder = folder
        self.child = subprocess.Popen(
            [sys.executable, str(ROOT / "Tests/TestSupport/fault_server.py"), str(folder),
             json.dumps(ANSWERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = self.child.stdout.readline().strip()

    def close(self):
        self.child.stdin.close()
        self.child.wait()

    def requests(self):
        for request in cases.json_lines(self.folder / "requests.jsonl"):
            number = request["number"]
            answer = ANSWERS[number - 1] if number <= len(ANSWERS) else {}
            key = request["headers"].get("idempotency-key", "").strip('"')
            action = answer.get("action", "")
            is_whole = request["bytes"] == int(request["headers"].get("content-length", -1))
            if action == "drop" or answer.get("status", 200) != 200 or not is_whole:
                continue
            yield request["path"], key, action == "", self.folder / f"body-{number}"

    def archives(self, store_ids):
        """Bodies of archives that are no longer in the store, one per id. Each id must always have
        the same bytes, and be gone only after both targets acknowledged it."""
        bodies, acknowledged = {}, set()
        for path, key, is_acknowledged, body in self.requests():
            target = "first" if path == "/v1/archives" else "second"
            if is_acknowledged:
                acknowledged.add((target, key))
            known = bodies.setdefault((target, key), body)
            if known.read_bytes() != body.read_bytes():
                raise Failed(f"{target} got other bytes under the same id {key}")
        gone = []
        for (target, key), body in bodies.items():
            if key in store_ids:
                continue
            if (("first", key) not in acknowledged) or (("second", key) not in acknowledged):
                raise Failed(f"archive {key} was deleted without both answers")
            if target == "first":
                named = body.with_name(f"{key}.cwa")
                if not named.exists():
                    os.link(body, named)
                gone.append(named)
        return gone


def archive_ids(store):
    """In the form of FORMAT §11.1, as uploads name them."""
    found = set()
    for path in (store / "archives").glob("*.cwa"):
        data = path.read_bytes()[:256]
        at = data.index(b"CWARCH01") + 32
        text = data[at:at + 16].hex()
        found.add("-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])))
    return found


# ── One death ──

class Case:
    def __init__(self, programs, fixtures, point, folder):
        self.programs, self.point, self.folder = programs, point, folder
        self.store = folder / "store"
        self.kept = folder / "kept"
        self.planted = fixtures.groups[point.mode]
        shutil.copytree(fixtures.folder / point.mode, self.store,
                        symlinks=True) if self.planted else None
        self.server = None
        if point.mode == "upload":
            (folder / "server").mkdir()
            self.server = Server(folder / "server")

    def command(self):
        if self.point.mode == "adopt":
            return [CORDWOOD, "archive", str(self.store)]
        if self.point.mode in COMPACTING:
            return [CORDWOOD, "compact", "--hours", "0", str(self.store)]
        port = [self.server.port] if self.server else []
        return [self.programs.tool("workload"), self.point.mode, str(self.store), str(self.kept),
                str(SEED), *port]

    def killer(self, *words):
        return subprocess.run(
            [self.programs.tool("killer"), *words, "--", *self.command()], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def survey(self):
        """The labels of a run without a kill."""
        done = self.killer("record", str(self.store))
        if done.returncode != 3:
            raise Failed(f"{self.point.mode}: the whole run ended {done.returncode}: "
                         f"{done.stderr.decode()[-500:]}")
        return done.stdout.decode().splitlines()

    def die(self):
        """True if the point was reached."""
        p = self.point
        done = self.killer(p.side, str(self.store), str(p.nth), str(p.steps), p.label)
        if done.returncode not in (0, 3):
            raise Failed(f"killer ended {done.returncode}: {done.stderr.decode()[-300:]}")
        return done.returncode == 0

    # What must be true

    def compare(self, when, more=()):
        groups = [("crash", SEED, self.kept), *more]
        groups += [g for g in self.planted if g[0] not in self.removable()]
        places = [self.store] if (self.store / "lanes").is_dir() else []
        if self.server:
            places += self.server.archives(archive_ids(self.store) if places else set())
        tally = compare_groups(self.programs, when, groups, places)
        if self.point.mode == "limits":
            self.check_limits(when)
        if self.point.mode == "steps":
            self.check_users(when)
        return tally

    def check_users(self, when):
        """Thread 4 of the workload logs after the user was set, all others before that."""
        for line in cordwood("cat", "--json", "--logger", "crash", self.store).splitlines():
            record = json.loads(line)
            user, number = record["resource"].get("user.id"), record["message"].split(" ", 1)[0]
            if user != ("u2" if number == "t4" else None):
                raise Failed(f"{when}: {number} is of the user {user}")

    def removable(self):
        return {f"old{seed}" for seed in [*OLD, *EXPIRED]}

    def check_limits(self, when):
        """Removable archives are removed oldest first. Each that stays is whole."""
        names = sorted(path.name for path in (self.store / "archives").glob("*.cwa"))
        there = []
        for logger, seed, kept in self.planted:
            tally = look_one(self.programs, (logger, seed, kept), self.store)
            if tally.torn or tally.twice or tally.damaged or (tally.lost and tally.read):
                raise Failed(f"{when}: {logger}: {tally}")
            if seed in OLD:
                there.append(tally.read > 0)
        if there != sorted(there):
            raise Failed(f"{when}: a younger archive went before an older one: {there}, {names}")

    def recover(self, by_engine):
        after = self.folder / "kept-after"
        # A lane that was being made at death counts as left behind after a while.
        for path in (self.store / "lanes").glob(".*.lane"):
            os.utime(path, (time.time() - 7200,) * 2)
        # So does an archive that was being merged from others.
        if self.point.mode in COMPACTING:
            for path in (self.store / "archives").glob("*.part"):
                os.utime(path, (time.time() - 7200,) * 2)
        port = [self.server.port] if self.server else []
        mode = "recover-limits" if self.point.mode == "limits" else "recover"
        more = []
        if by_engine or self.server or self.point.mode == "limits":
            run = subprocess.run([self.programs.tool("workload"), mode, str(self.store),
                                  str(after), "7", *port], stderr=subprocess.PIPE, check=False,
                                 timeout=RECOVERY_S)
            if run.returncode != 0:
                raise Failed(f"the next process ended {run.returncode}: {run.stderr.decode()}")
            more = [("after", 7, after)]
        if self.point.mode == "limits":
            count = len(list((self.store / "archives").glob("*.cwa")))
            if count > ARCHIVES_MAX:
                raise Failed(f"{count} archives stay, {ARCHIVES_MAX} may")
        cordwood("archive", self.store)
        if self.point.mode in COMPACTING:
            cordwood("compact", "--hours", "0", self.store)
            self.check_sent(by_engine)
        return more

    def check_sent(self, by_engine):
        """Sent records count as sent in their new archive. A new engine's own do not."""
        unsent = {path.stem for path in (self.store / "archives").glob("*.cwa")} - {
            path.name[:-len(SENT)] for path in (self.store / "queue").glob(f"*{SENT}")}
        if len(unsent) > int(by_engine):
            raise Failed(f"{sorted(unsent)} would be sent again")

    def left_behind(self):
        found = left_in_lanes(self.store)
        found += [p.name for p in (self.store / "archives").iterdir() if p.suffix != ".cwa"]
        for folder in ("queue", "targets", "."):
            found += [p.name for p in (self.store / folder).iterdir() if p.name.startswith(".")]
        stems = {p.stem for p in (self.store / "archives").iterdir()}
        found += [p.name for p in (self.store / "queue").iterdir()
                  if p.name.rpartition("@")[0] not in stems]
        return found

    def run(self, by_engine):
        before = memory_files()
        reached = self.die()
        if self.kept_nothing():
            return reached, Tally()
        tally = self.compare("as it lies")
        verify(self.store, self.known_problem())
        more = self.recover(by_engine)
        self.compare("recovered", more)
        verify(self.store, self.known_problem())
        left = self.left_behind()
        if not more and ".clock.new" in left:
            left.remove(".clock.new")  # the next engine's, which looks for old archives
        if ".removed.new" in left:
            left.remove(".removed.new")  # that of the next one that removes something unsent
        if self.point.mode == "memory":  # the only such case at this time
            left += sorted(memory_files() - before)
        if left:
            raise Failed(f"left behind: {left[:4]}")
        return reached, tally

    def known_problem(self):
        """The problem of the expired archives: see make_old."""
        return "its footer entry differ" if self.point.mode == "limits" else None

    def kept_nothing(self):
        """The process died before it made a store."""
        return not (self.store / "lanes").is_dir() and not self.kept_count()

    def kept_count(self):
        return any(self.kept.read_bytes()) if self.kept.exists() else False

    def close(self):
        if self.server:
            self.server.close()


def look_one(programs, group, store):
    from hosts import look
    return look(programs, [group], [store])[0]


def memory_files():
    return {path.name for path in MEMORY.iterdir()} if MEMORY.is_dir() else set()


# ── All of them ──

def own_shared_memory():
    """A private /dev/shm, so that leftovers there belong to this test. False: not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) != 0:  # CLONE_NEWNS
        return False
    private = (1 << 14) | (1 << 18)  # MS_REC | MS_PRIVATE
    if libc.mount(b"none", b"/", None, private, None) != 0:
        return False
    return libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, None) == 0


def all_points(surveys):
    """Each call of a whole run, before and after. Each instruction after a mark."""
    points = []
    for mode, labels in surveys.items():
        if mode == "steps":
            points += [Point(mode, "after", nth, steps, "mark")
                       for nth, (most, stride) in MARK_STEPS.items()
                       for steps in range(0, most, stride)]
            continue
        counts, all_of = Counter(), Counter(labels)
        for label in labels:
            counts[label] += 1
            if is_taken(counts[label], all_of[label]):
                points += [Point(mode, side, counts[label], 0, label)
                           for side in ("before", "after")]
    return points


def is_taken(nth, count):
    """The first and the last of many, and an even selection between them."""
    if count <= CALLS_OF_A_KIND or min(nth, count + 1 - nth) <= CALLS_OF_A_KIND // 4:
        return True
    return nth % -(-2 * count // CALLS_OF_A_KIND) == 0


def random_points(surveys, count, chance):
    """That many random numbers of instructions after a call. None if only "steps" is surveyed: its
    numbered points are instructions already."""
    calls = [(mode, label) for mode, labels in surveys.items() if mode != "steps"
             for label in labels]
    points = []
    for _ in range(count if calls else 0):
        mode, label = chance.choice(calls)
        nth = chance.randint(1, surveys[mode].count(label))
        points.append(Point(mode, "after", nth, int(10 ** chance.uniform(0, 4.2)), label))
    return points


def survey(programs, fixtures, modes, top):
    found = {}
    for mode in modes:
        with tempfile.TemporaryDirectory(dir=top) as folder:
            case = Case(programs, fixtures, Point(mode, "", 0, 0, ""), Path(folder))
            try:
                found[mode] = case.survey()
            finally:
                case.close()
    return found


def one_point(programs, fixtures, point, by_engine, top):
    """(reached, tally)."""
    with tempfile.TemporaryDirectory(dir=top) as folder:
        if point.mode == "memory":
            memory_lock.acquire()
        case = None
        try:
            case = Case(programs, fixtures, point, Path(folder))
            return case.run(by_engine)
        finally:
            if case:
                case.close()
            if point.mode == "memory":
                memory_lock.release()


def chosen(arguments, surveys):
    if arguments.point:
        return [Point.parse(arguments.point)]
    points, chance = all_points(surveys), random.Random(arguments.seed)
    if arguments.sample:  # equally many of each workload, and at least one
        picked, most = [], max(1, arguments.sample // len(surveys))
        for mode in surveys:
            own = [point for point in points if point.mode == mode]
            picked += chance.sample(own, min(len(own), most))
        return picked + random_points(surveys, arguments.sample // 4, chance)
    return points + random_points(surveys, len(points) // 10, chance)


def write_numbers(points):
    lines = [f"{number} {point}" for number, point in enumerate(points, 1)]
    (ROOT / "build/crash-points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def again(arguments):
    def command(name):
        if name.startswith("point "):
            return f"./dev crash --point '{name.removeprefix('point ')}'"
        return (f"./dev crash --points --mode duels --seed {arguments.seed} "
                f"--sample {arguments.sample}")
    return command


def chosen_modes(arguments):
    """Those to run. Ends the process for an unknown one."""
    known = ["duels", *MODES]
    modes = dict.fromkeys(arguments.mode.split(",") if arguments.mode else known)
    if arguments.point:
        modes = {Point.parse(arguments.point).mode: None}
    if unknown := [mode for mode in modes if mode not in known]:
        sys.exit(f"no such mode: {', '.join(unknown)}; there are {', '.join(known)}")
    return list(cases.chosen(modes, arguments))


def run(arguments):
    """Returns the exit code. Whole runs of the workloads determine the points, so the selection is
    by workload."""
    modes = chosen_modes(arguments)
    run_ = cases.Run(again(arguments), is_brief=True)
    if not own_shared_memory() and "memory" in modes:
        modes.remove("memory")
        run_.add(cases.Outcome("memory", cases.SKIPPED, 0.0, "no /dev/shm of its own"))
    with tempfile.TemporaryDirectory(prefix="cordwood-points-") as top:
        programs = Programs(Path(top))
        programs.tool("killer"), programs.tool("workload"), programs.check
        (Path(top) / "fixtures").mkdir()
        if "duels" in modes:
            modes.remove("duels")
            duels.go_through(run_, arguments, programs)
        if modes:
            fixtures = Fixtures(programs, Path(top) / "fixtures")
            surveys = survey(programs, fixtures, modes, top)
            points = chosen(arguments, surveys)
            if not arguments.point:
                write_numbers(all_points(surveys))
            go_through(run_, arguments, programs, fixtures, points, surveys, top)
    return run_.end()


def go_through(run_, arguments, programs, fixtures, points, surveys, top):
    found = []  # (mode, reached, tally)

    def one(_, entry):
        number, point = entry
        try:
            found.append((point.mode, *one_point(programs, fixtures, point, number % 2 == 1, top)))
        except Exception as reason:
            found.append((point.mode, True, getattr(reason, "tally", None) or Tally()))
            raise

    run_.all({f"point {point}": (number, point) for number, point in enumerate(points)}, one,
             arguments.jobs)
    total, runs = Tally(), Counter(mode for mode, _, _ in found)
    reached = Counter(mode for mode, was_reached, _ in found if was_reached)
    for _, _, tally in found:
        total.add(tally)
    for mode in surveys:
        labels = surveys[mode]
        print(f"{mode:8} {len(labels):5} calls of {len(set(labels))} kinds, {runs[mode]} deaths, "
              f"{reached[mode]} at their point")
    print(f"{len(all_points(surveys))} numbered points, {len(found)} deaths, "
          f"{sum(reached.values())} at their point; {total}")
