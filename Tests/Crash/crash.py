#!/usr/bin/env python3
"""Kills an eight-thread writer at random moments at full rate and reads its store, first as it lies
and again after another process adopted and archived it. Every record whose call had returned must
be there, whole, once, in its thread's order. Writers in C, C++, Python and Swift in turn.

    crash.py [--kills N] [--seed S] [--only c,cpp,python,swift] [--jobs 2] [--size S] [-k PATTERN …]
    crash.py --deaths        every other way to die (deaths.py)
    crash.py --points [--sample N]   death at numbered points (points.py): at a sample, with
                                     --size all at each

A failure prints the command that repeats the run, as far as the kernel allows."""

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Oracle"))
sys.path.insert(0, str(HERE.parent / "TestSupport"))
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import deaths  # noqa: E402
from compare import compare  # noqa: E402
from hosts import (CORDWOOD, HOSTS, Failed, Programs, Tally, compare_kept, cordwood,  # noqa: E402
                   kept_sum, left_in_lanes, states, verify)

SEGMENTS = (64 << 10, 1 << 20, 16 << 20)
# Maximum records of a run, as a power of ten: slower hosts get fewer.
MOST = {"c": 5.3, "cpp": 5.3, "python": 4.6, "swift": 5.0}
# With more records the slow oracle checks a run only with --size all, with fewer it checks every
# fifth.
ORACLE_RECORDS = 20_000
PATIENCE_S = 120


def check_oracle(store):
    count, differences = compare(str(store), CORDWOOD)
    if differences:
        raise Failed("the oracle disagrees: " + differences[0][:2000])
    return count


def check_values(program, folder):
    """All kinds of arguments, as the tool and the oracle read them: live, dead and archived."""
    for ending in ([], ["close"]):
        store = str(folder / ("values" + "".join(ending)))
        subprocess.run([program, store, "values", *ending], check=True)
        if check_oracle(store) < 10_000:
            raise Failed("values: records are missing")
        cordwood("archive", store)
        check_oracle(store)
    store = str(folder / "places")
    subprocess.run([program, store, "places"], check=True)
    if check_oracle(store) < 133_000:
        raise Failed("places: records are missing")


def write_and_kill(programs, host, store, kept, seed):
    """The writer runs until a chosen number of records is kept, and for a chosen time longer."""
    chance = random.Random(seed)
    target = int(10 ** chance.uniform(0, MOST[host]))
    command, environment = programs.writer(host, seed)
    # Every fourth C writer has no fallocate(2): its records are written, not mapped.
    written = ["written"] if seed // 4 % 4 == 0 and host == "c" else []
    child = subprocess.Popen(
        [*command, str(store), str(kept), str(SEGMENTS[seed // 4 % len(SEGMENTS)]), str(seed),
         *written], env=environment)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while kept_sum(kept) < target:
            if child.poll() is not None:
                raise Failed(f"the writer ended by itself: {child.returncode}")
            if time.monotonic() > deadline:
                raise Failed(f"the writer keeps {kept_sum(kept)} records only")
            time.sleep(0.0002)  # a poll, not a wait: the target decides the moment
        moment = time.perf_counter() + chance.uniform(0, 0.002)
        while time.perf_counter() < moment:
            pass
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    if child.returncode != -signal.SIGKILL:
        raise Failed(f"the writer ended {child.returncode}")


def one_kill(programs, folder, host, seed):
    store, kept = folder / "store", folder / "kept"
    write_and_kill(programs, host, store, kept, seed)
    tally = compare_kept(programs, "as it lies", "crash", seed, kept, store)
    oracle = cases.sized(False, False, True) or (tally.read <= ORACLE_RECORDS and seed % 5 == 0)
    if oracle:
        check_oracle(store)
    if "unclean" not in states(verify(store)):
        raise Failed("verify does not say that the stop was unclean")

    # Adopted by an engine, or by the tool only.
    if seed // 4 % 2 == 1:
        other = programs.tool("workload")
        subprocess.run([other, "recover", str(store), str(folder / "kept-after"), "7"], check=True)
    cordwood("archive", store)
    if left_in_lanes(store):
        raise Failed(f"left after archive: {left_in_lanes(store)[:3]}")
    again = compare_kept(programs, "archived", "crash", seed, kept, store)
    if again.read != tally.read:
        raise Failed(f"{tally.read} records as it lay, {again.read} in the archive")
    if states(verify(store)):
        raise Failed("verify still finds a lane")
    if oracle:
        check_oracle(store)
    return tally


def kill_table(arguments, only):
    """The hosts alternate: seed mod 4 selects the host."""
    seeds = [seed for seed in range(arguments.seed, arguments.seed + arguments.kills * len(HOSTS))
             if HOSTS[seed % len(HOSTS)] in only][:arguments.kills]
    return {f"{HOSTS[seed % len(HOSTS)]} kill {seed}": (HOSTS[seed % len(HOSTS)], seed)
            for seed in seeds}


def kill_all(run, programs, table, arguments):
    found = []  # (host, tally)

    def kill(_, entry):
        host, seed = entry
        with tempfile.TemporaryDirectory(dir=programs.folder) as folder:
            try:
                found.append((host, one_kill(programs, Path(folder), host, seed)))
            except Exception as reason:
                found.append((host, getattr(reason, "tally", None) or Tally()))
                raise

    # Builds here, so that two threads do not build the same program.
    for host in {host for host, _ in table.values()}:
        programs.writer(host, 0)
    programs.tool("workload"), programs.check
    run.all(table, kill, arguments.jobs)
    whole = Tally()
    for host in HOSTS:
        total = Tally()
        tallies = [tally for other, tally in found if other == host]
        for tally in tallies:
            total.add(tally)
        whole.add(total)
        if tallies:
            print(f"{host:8} {len(tallies):5} kills, {total}")
    print(f"{len(found)} kills, {whole.kept} records returned, {whole.lost} lost, "
          f"{whole.torn} torn, {whole.twice} duplicated")


def die_all(run, programs, table, seed):
    total = Tally()

    def death(_, body):
        with tempfile.TemporaryDirectory(dir=programs.folder) as folder:
            total.add(body(programs, Path(folder), seed))
    run.all(table, death)
    print(f"{len(table)} deaths: {total}")


def again(arguments):
    def command(name):
        host, how, *seed = name.split()
        if how == "kill":
            return f"./dev crash --kills 1 --seed {seed[0]} --only {host}"
        return f"./dev crash --{'values' if how == 'values' else 'deaths'} " \
               f"--seed {arguments.seed} '{name}'"
    return command


def run_all(arguments):
    """Kills, and the other ways to die. Returns the exit code."""
    only, values, kills, dying = arguments.only.split(","), {}, {}, {}
    if arguments.kills and (arguments.values or not arguments.deaths):
        kills = kill_table(arguments, only)
        if arguments.values and "swift" in only:
            values = {"swift values": cases.full(check_values)}
    if arguments.deaths:
        dying = deaths.table(only)
    table = cases.chosen({**values, **kills, **dying}, arguments)
    run = cases.Run(again(arguments))
    with cases.folder("crash") as top:
        programs = Programs(top)
        run.all({name: case for name, case in table.items() if name in values},
                lambda *_: check_values(programs.writer("swift", 0)[0][0], top))
        for some, act in ((kills, lambda part: kill_all(run, programs, part, arguments)),
                          (dying, lambda part: die_all(run, programs, part, arguments.seed))):
            if part := {name: case for name, case in table.items() if name in some}:
                act(part)
    return run.end()


def main():
    parser = cases.parser("./dev crash", "death under writing threads")
    parser.add_argument("--kills", type=int, help="so many, by seed")
    parser.add_argument("--only", default=",".join(HOSTS), help="the writers")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--values", action="store_true", help="kinds of values of the Swift host")
    parser.add_argument("--deaths", action="store_true", help="the other ways to die")
    parser.add_argument("--points", action="store_true",
                        help="death at numbered points: a sample, with --size all each")
    parser.add_argument("--sample", type=int, help="so many points, by seed; 0: all of them")
    parser.add_argument("--mode", help="points of one workload")
    parser.add_argument("--point", help="one point, as a failure names it")
    arguments = parser.parse_args()
    if arguments.kills is None:
        arguments.kills = cases.sized(12, 48, 200)
    if arguments.sample is None:
        arguments.sample = cases.sized(24, 80, 0)
    if arguments.points or arguments.point:
        import points
        return points.run(arguments)
    return run_all(arguments)


if __name__ == "__main__":
    sys.exit(main())
