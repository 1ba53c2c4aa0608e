"""A thread in the middle of an append, a sealer in the middle of sealing its segment, and a death
(duel.c): every instruction of the append against the sealer's last ones before it stores the
chunk's length. The record that is cut off and written again must be there once. Runs with the
points of crash.py."""

import random
import subprocess
import tempfile
from pathlib import Path

from cases import FAILED, Outcome
from hosts import Failed, Tally, compare_kept, verify

# The library's append, and the header's.
SEEDS = (6, 5)
# Steps of an append, and the sealer's steps before the store; RELIABILITY R1, R2.
APPEND_STEPS, MOMENTS = 150, 8
# Not all of them reach their moment. Of so many, some do.
SAMPLE_LEAST = 10
REACHED, PASSED_BY = 0, 3


def moments(programs, folder, seed):
    done = subprocess.run([programs.tool("duel"), "find", str(folder / "store"),
                           str(folder / "kept"), str(seed), "0"], stdout=subprocess.PIPE,
                          check=True)
    return done.stdout.decode().split()[:MOMENTS]


def one(programs, folder, seed, steps, address):
    """(reached, tally)."""
    store, kept = folder / "store", folder / "kept"
    done = subprocess.run([programs.tool("duel"), "kill", str(store), str(kept), str(seed),
                           str(steps), address], stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (REACHED, PASSED_BY, 4):
        raise Failed(f"duel ended {done.returncode}")
    tally = compare_kept(programs, "as it lies", "crash", seed, kept, store)
    verify(store)
    subprocess.run([programs.tool("workload"), "recover", str(store), str(folder / "after"), "7"],
                   check=True)
    compare_kept(programs, "recovered", "crash", seed, kept, store)
    return done.returncode == REACHED, tally


def chosen(arguments, seed, found):
    """Of one seed: steps of the append against each of the sealer's moments."""
    if arguments.sample:  # the likely ones
        found = found[:2]
    pairs = [(seed, steps, address) for address in found for steps in range(APPEND_STEPS)]
    if not arguments.sample:
        return pairs
    count = min(len(pairs), max(SAMPLE_LEAST, arguments.sample // 8))
    return random.Random(arguments.seed).sample(pairs, count)


def go_through(run, arguments, programs):
    reached, total = [], Tally()

    def duel(_, pair):
        with tempfile.TemporaryDirectory(dir=top) as folder:
            was_reached, tally = one(programs, Path(folder), *pair)
        reached.extend([pair[0]] * was_reached)
        total.add(tally)

    with tempfile.TemporaryDirectory(prefix="cordwood-duels-") as top:
        pairs = []
        for seed in SEEDS:
            folder = Path(top) / f"find{seed}"
            folder.mkdir()
            pairs += chosen(arguments, seed, moments(programs, folder, seed))
        run.all({f"duel {seed} {steps} {address}": (seed, steps, address)
                 for seed, steps, address in pairs}, duel)
    for seed in SEEDS:
        if seed not in reached:
            run.add(Outcome(f"duels {seed}", FAILED, 0.0, "none reached its moment"))
    print(f"{len(pairs)} duels, {len(reached)} at their moment; {total}")
