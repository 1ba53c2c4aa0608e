#!/usr/bin/env python3
"""Processes: forks, daemons, clones, crowds on one store, life cycles. Builds the programs beside
this file and runs each case in its own directory.

    run.py [--size S] [--seed N] [--keep] [-k PATTERN …] [CASE …]

A failure prints its seed and the command that repeats it. The last line counts."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

import cases  # noqa: E402
import copies  # noqa: E402
import crowd  # noqa: E402
import identity  # noqa: E402
import memory  # noqa: E402
import moved  # noqa: E402
import owners  # noqa: E402
import privileged  # noqa: E402
import removed  # noqa: E402
import rooms  # noqa: E402
from cases import Failed, Skipped, sized, until  # noqa: E402
from checking import cat, compare, read_ledger  # noqa: E402
from settings import forget_settings  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
LIBRARIES = Path(os.environ.get("CORDWOOD_LIBRARY", ROOT / "build/lib/libcordwood.so")).parent
COMMAND = Path(os.environ.get("CORDWOOD_COMMAND", LIBRARIES.parent / "bin/cordwood"))
INCLUDE = ["-I", LIBRARIES.parent.parent / "include" if not (ROOT / "include").exists()
           else ROOT / "include"]
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", *INCLUDE]
SYSTEM = ["-lstdc++", "-lm", "-lpthread", "-ldl"]
SECONDS_MAX = 600
QUIET_SECONDS = 10  # of a lane whose lock a descriptor holds; AdoptionWitness.quietNs


class Bench:
    """A case's directory, the programs, and a seeded generator."""

    def __init__(self, programs, directory, seed):
        self.programs, self.directory = programs, directory
        self.random = random.Random(seed)
        self.store, self.ledger = directory / "store", directory / "ledger"
        self.command = COMMAND
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                                CORDWOOD_LIBRARY=str(LIBRARIES / "libcordwood.so"))
        self.notes = []

    def note(self, text):
        """A figure for the last line of the case."""
        self.notes.append(text.strip())

    def start(self, program, case, *words, store=None, **options):
        """Starts a program of ours on the case's store, or on that one."""
        return subprocess.Popen([self.programs / program, case, store or self.store, self.ledger,
                                 *map(str, words)], **options)

    def run(self, program, case, *words, codes=(0,), store=None):
        """Runs it to its end. Returns its output."""
        command = [self.programs / program, case, store or self.store, self.ledger,
                   *map(str, words)]
        return self.finish(command, codes)

    def finish(self, command, codes=(0,), environment=None):
        """Runs a command to its end. Returns its output."""
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=SECONDS_MAX, check=False, env=environment,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as error:
            text = (error.stdout or b"").decode(errors="replace")[-2000:]
            raise Failed(f"{command[:2]} hangs: {text}") from error
        text = done.stdout.decode(errors="replace")
        if done.returncode not in codes:
            raise Failed(f"{[str(w) for w in command[:2]]} ends {done.returncode}\n{text[-3000:]}")
        return text

    def check(self, killed=False):
        """Compares ledger and store. Returns the count, and all other messages."""
        total, others = compare(read_ledger(self.ledger), cat(COMMAND, self.store), killed)
        self.note(f"{total} records")
        return total, others

    def records(self, codes=(0,)):
        """The records a reader shows, one dictionary each."""
        return [json.loads(line) for line in cat(COMMAND, self.store, codes)]

    def archive(self):
        """Adopts dead lanes."""
        return self.finish([COMMAND, "archive", self.store])


# ── Forks ──

def fork_storm(bench):
    bench.note(bench.run("forks", "storm", sized(40, 200, 1000)))
    bench.check()


def fork_early(bench):
    """Right after open, while the parent's helpers do everything for the first time."""
    stuck = 0
    rounds = sized(4, 20, 2000)
    for _ in range(rounds):
        text = bench.run("forks", "early", bench.random.choice([0, 0, 100, 300, 1000]))
        stuck += int(text.split()[0])
        if bench.random.random() < 0.05:
            bench.check()
            shutil.rmtree(bench.store)
            bench.ledger.unlink()
    bench.note(f"{rounds * 4} forks, {stuck} children without helpers")
    if stuck:
        raise Failed(bench.notes[-1])


def fork_beside_open(bench):
    rounds = sized(8, 40, 1000)
    for _ in range(rounds):
        bench.run("forks", "beside", bench.random.randrange(4000))
    bench.check()


def fork_spawn(bench):
    bench.run("forks", "spawn", bench.ledger, sized(5, 20, 200))
    bench.check()


def fork_vfork_first(bench):
    bench.run("forks", "vfork_first")
    bench.check()


def daemon(first):
    def body(bench):
        foreign = bench.directory / "foreign"
        content = bytes(range(256)) * 4096
        foreign.write_bytes(content)
        bench.run("forks", "daemon", foreign, int(first))
        until(lambda: any(s[3] for s in read_ledger(bench.ledger).values()), "the daemon's end")
        ended = [s[3] for s in read_ledger(bench.ledger).values() if s[3]]
        if ended != [1]:
            raise Failed(f"the daemon ended {ended}")
        if foreign.read_bytes() != content:
            raise Failed("the host's own file was written to")
        bench.check()
    return body


def fork_clone(bench):
    bench.run("forks", "clone", sized(20, 60, 600))
    bench.check()


def orphan(way, *options):
    """R31: the parent is killed, a child lives on with everything inherited. If that includes the
    lock, the lane is adopted once it has not changed for a while."""
    def body(bench):
        note = bench.directory / "child"
        bench.run("forks", "orphan", way, note, *options, codes=(-9,))
        child = int(note.read_text())
        begun = time.monotonic()
        try:
            def adopted():
                bench.archive()
                return not list((bench.store / "lanes").glob("*.lane"))
            until(adopted, "adoption beside the idle child")
            if options and time.monotonic() - begun < QUIET_SECONDS - 1:
                raise Failed("adopted before it had been quiet for long enough")
            bench.check()
            os.kill(child, 0)
        finally:
            os.kill(child, 9)
    return body


def lane_replaced(bench):
    """R32: an adopter's lock counts only if the name still refers to the locked file."""
    bench.run("many", "brief", 2, codes=(-9,))
    lanes = bench.store / "lanes"
    bench.finish([bench.command, "archive", bench.store],
                 environment=dict(os.environ, LD_PRELOAD=str(bench.programs / "replace.so")))
    if len(list(lanes.glob("*.lane"))) != 1 or list((bench.store / "archives").glob("*.cwa")):
        raise Failed("a lane was adopted under the lock of another file")
    bench.archive()
    if list(lanes.glob("*")):
        raise Failed(f"left: {os.listdir(lanes)}")
    bench.check(killed=True)


def first_thread_ends(bench):
    """R31: a process whose first thread has ended looks like a zombie, but lives: its lane is not
    adopted, however long it does not change."""
    process = bench.start("forks", "left", stdin=subprocess.PIPE)
    try:
        stat = Path(f"/proc/{process.pid}/stat")
        until(lambda: stat.read_text(errors="replace").rpartition(")")[2].split()[0] == "Z",
                 "the first thread's end")
        until(lambda: sum(s[1] for s in read_ledger(bench.ledger).values()) == 20, "records")
        process.send_signal(signal.SIGSTOP)
        for _ in range(2):
            bench.archive()
            if len(list((bench.store / "lanes").glob("*.lane"))) != 1:
                raise Failed("the lane of a living process was adopted")
        process.send_signal(signal.SIGCONT)
        process.stdin.close()
        if process.wait(60) != 0:
            raise Failed(f"ended {process.returncode}")
    finally:
        process.kill()
    bench.check()


def fork_idle(bench):
    """R25: idle children keep no deleted file of the store."""
    process = bench.start("forks", "idle", sized(8, 30, 200), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE)
    pids = []
    for line in process.stdout:
        words = line.decode().split()
        if words[0] == "pids":
            pids = [int(word) for word in words[1:]]
            break
        bench.note(line.decode())
    held = []
    for pid in pids:
        for link in (Path("/proc") / str(pid) / "fd").iterdir():
            target = os.readlink(link)
            if str(bench.store) in target and target.endswith("(deleted)"):
                held.append(f"{pid}: descriptor of {target}, {os.stat(link).st_blocks // 2} KiB")
        for line in (Path("/proc") / str(pid) / "maps").read_text().splitlines():
            if str(bench.store) in line:
                held.append(f"{pid}: {line}")
    process.stdin.close()
    code = process.wait(60)
    bench.note(f"{len(pids)} idle children")
    if code != 0 or not pids or held:
        raise Failed(f"ended {code}, {len(pids)} children, {len(held)} hold:\n  "
                     + "\n  ".join(held[:20] + bench.notes[:20]))
    bench.check()


def python_host(way, children, records):
    def body(bench):
        count, begun = sized(*children), time.monotonic()
        bench.note(bench.finish(
            [sys.executable, "-W", "ignore::DeprecationWarning", HERE / "pyhost.py", way,
             bench.store, bench.ledger, str(count), str(records)], environment=bench.environment))
        if way == "fork" and time.monotonic() - begun > 120:
            raise Failed("the children took over 120 s")
        ledger = read_ledger(bench.ledger)
        if way != "prefork":
            short = [s for i, s in ledger.items() if i >= 16 and s[1] != records]
            if short or sum(1 for i in ledger if i >= 16) != count:
                raise Failed(f"not {count} children with {records} records each: {short[:5]}")
        bench.check(killed=way == "prefork")
    return body


# ── Life ──

def life(case, *counts, checked=True):
    def body(bench):
        text = bench.run("life", case, sized(*counts))
        if text:
            bench.note(text)
        if checked:
            bench.check()
    return body


def life_threads(bench):
    count = sized(3_000, 20_000, 100_000)
    bench.run("life", "threads", count)
    others = compare({}, cat(COMMAND, bench.store))[1]
    numbers = sorted(int(r["message"].split()[1]) for r in others)
    if numbers != list(range(count)):
        raise Failed(f"{len(numbers)} records, {len(set(numbers))} different, of {count}")
    bench.note(f"{count} threads")


def life_exit(bench):
    rounds = sized(2, 8, 400)
    for i in range(rounds):
        bench.run("life", "exit", i % 2)
        if i % 20 == 19:
            bench.archive()
    bench.note(f"{rounds} exits")
    bench.check(killed=True)


def unload(bench):
    bench.note(bench.run("loader", "unload", bench.programs / "plugin_static.so",
                         sized(20, 100, 1000)))
    bench.note(bench.run("loader", "unload", bench.programs / "copy1/plugin.so",
                         sized(20, 100, 1000)))
    check_plugins(bench)


def twice(bench):
    bench.run("loader", "twice", bench.programs / "plugin_static.so",
              bench.programs / "copy1/plugin.so", bench.programs / "copy2/plugin.so")
    check_plugins(bench)


def shared_place(bench):
    bench.run("loader", "place", bench.programs / "plugin_static.so",
              bench.programs / "copy1/plugin.so", bench.programs / "copy2/plugin.so")
    others = compare({}, cat(COMMAND, bench.store))[1]
    shared = sorted(r["message"] for r in others if not r["message"].startswith("place "))
    if shared != sorted(f"shared {n // 3}" for n in range(36)):
        raise Failed(f"at one place of several copies: {shared}")


def check_plugins(bench):
    _, others = bench.check()
    places = sum(r["message"].startswith("place ") for r in others)
    plugins = sum(1 for _ in others)
    if places != plugins or not places:
        raise Failed(f"{places} records of places, {plugins} of all others")


def swift_host(bench):
    program = bench.programs / "swifthost"
    if not program.exists():
        raise Skipped("no swiftc here")
    rounds = sized(5, 30, 300)
    bench.note(bench.finish([program, bench.programs / "copy1/plugin.so", bench.store,
                             str(rounds)]))
    others = compare({}, cat(COMMAND, bench.store))[1]
    said = sorted(r["message"] for r in others if r["message"].startswith("s "))
    if said != sorted(f"s {n}" for n in range(rounds)):
        raise Failed(f"{len(said)} of {rounds} records")


CASES = {
    "fork_storm": fork_storm,
    "fork_early": fork_early,
    "fork_beside_open": fork_beside_open,
    "fork_spawn": fork_spawn, "fork_vfork_first": fork_vfork_first,
    "fork_daemon": daemon(first=False),
    "fork_daemon_logged": daemon(first=True),
    "fork_clone": fork_clone,
    "fork_orphan": orphan("fork"),
    "clone_orphan": orphan("clone"),
    "clone_orphan_descriptor": orphan("clone", "descriptor"),
    "fork_idle": fork_idle,
    "first_thread_ends": first_thread_ends,
    "lane_replaced": lane_replaced,
    "python_fork": python_host("fork", (30, 200, 200), 100),
    "python_spawn": python_host("spawn", (2, 6, 60), 100),
    "python_forkserver": python_host("forkserver", (3, 12, 100), 100),
    "python_prefork": python_host("prefork", (12, 60, 600), 50),
    **owners.CASES,
    **moved.CASES,
    **rooms.CASES,
    **privileged.CASES,
    **removed.CASES,
    **memory.CASES,
    "crowd": crowd.crowd,
    "adopters": crowd.adopters,
    "readers_beside_adopters": crowd.readers_beside_adopters,
    "short_lived": crowd.short_lived,
    "named": crowd.named,
    "listings": crowd.listings,
    "listings_behind": crowd.listings_behind, "long_lane": crowd.long_lane,
    "reopen": life("reopen", 300, 400, 10_000, checked=False),
    "engines": life("engines", 0, 0, 0),
    "close_in_callback": life("callback", 0, 0, 0, checked=False),
    "keys": life("keys", 400, 1600, 20_000),
    "pool": cases.only_all(life("pool", 40_000, 40_000, 40_000, checked=False)),
    "threads": life_threads,
    "leave": life("leave", 15, 60, 1000),
    "exit": life_exit,
    "unload": unload,
    "twice": twice,
    "shared_place": shared_place,
    **identity.CASES,
    **copies.CASES,
    "swift_host": swift_host,
}


def compile_all(directory, swift):
    """Builds the programs, the modules and two copies of the shared library."""
    def gcc(*words):
        subprocess.run(["gcc", *FLAGS, *words], check=True)
    linked = ["-L", LIBRARIES, "-lcordwood", "-lpthread", f"-Wl,-rpath,{LIBRARIES}"]
    for name in ("forks", "many", "life", "owners", "ids", "moved", "rooms", "memory"):
        gcc(HERE / f"{name}.c", "-o", directory / name, *linked)
    static = LIBRARIES / "libcordwood.a"
    gcc(HERE / "loader.c", "-o", directory / "loader", static, *SYSTEM)
    gcc("-static", "-Wl,--no-warnings", HERE / "many.c", "-o", directory / "many_static", static,
        *SYSTEM)
    gcc(HERE / "privileged.c", "-o", directory / "privileged", static, *SYSTEM)
    gcc("-shared", "-fPIC", HERE / "plugin.c", "-o", directory / "plugin_static.so", static,
        *SYSTEM)
    for name in ("copy1", "copy2"):
        copy = directory / name
        copy.mkdir()
        shutil.copy(LIBRARIES / "libcordwood.so", copy / "libcordwood.so.0")
        gcc("-shared", "-fPIC", HERE / "plugin.c", "-o", copy / "plugin.so",
            copy / "libcordwood.so.0", f"-Wl,-rpath,{copy}")
    gcc("-shared", "-fPIC", HERE / "count.c", "-o", directory / "count.so", "-ldl")
    for name in ("replace", "ending"):
        gcc("-shared", "-fPIC", HERE / f"{name}.c", "-o", directory / f"{name}.so")
    if shutil.which("swiftc") and swift:
        subprocess.run(["swiftc", "-O", "-static-stdlib", HERE / "swifthost.swift", "-o",
                        directory / "swifthost"], check=True)


def main():
    parser = cases.parser()
    parser.add_argument("--keep", action="store_true", help="leave the directory of failed cases")
    arguments = parser.parse_args()
    table = cases.chosen(CASES, arguments)
    forget_settings("CORDWOOD_LIBRARY", "CORDWOOD_COMMAND")
    run, kept = cases.Run(), []

    def one(name, case):
        work = directory / name
        work.mkdir()
        bench = Bench(programs, work, arguments.seed)
        try:
            case(bench)
        except Failed as why:
            if arguments.keep:
                kept.append(shutil.move(work, tempfile.mkdtemp(prefix="cordwood-processes-")))
                raise Failed(f"{why}\nleft: {kept[-1]}") from why
            raise
        shutil.rmtree(work, ignore_errors=True)
        return "; ".join(bench.notes)

    with cases.folder("processes") as directory:
        programs = directory / "programs"
        programs.mkdir()
        compile_all(programs, "swift_host" in table)
        run.all(table, one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
