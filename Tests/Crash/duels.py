"""A thread in the midst of an append, a sealer in the midst of sealing its segment, and a death
(duel.c): every instruction of the append against the sealer's last ones before it stores the
chunk's length. The record that is cut off and written again must be there once. Goes with the
points of crash.py."""

import random
import subprocess
import tempfile
from pathlib import Path

from hosts import Failed, Tally, compare_kept, verify

SEED = 5
# Instructions of an append, and those before the store; PROTOCOL R1, R2.
APPEND_STEPS, MOMENTS = 150, 8
REACHED, PASSED_BY = 0, 3


def moments(programs, folder):
    done = subprocess.run([programs.tool("duel"), "find", str(folder / "store"),
                           str(folder / "kept"), str(SEED), "0"], stdout=subprocess.PIPE,
                          check=True)
    return done.stdout.decode().split()[:MOMENTS]


def one(programs, folder, steps, address):
    """(reached, tally)."""
    store, kept = folder / "store", folder / "kept"
    done = subprocess.run([programs.tool("duel"), "kill", str(store), str(kept), str(SEED),
                           str(steps), address], stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (REACHED, PASSED_BY, 4):
        raise Failed(f"duel ended {done.returncode}")
    tally = compare_kept(programs, "as it lies", "crash", SEED, kept, store)
    verify(store)
    subprocess.run([programs.tool("workload"), "recover", str(store), str(folder / "after"), "7"],
                   check=True)
    compare_kept(programs, "recovered", "crash", SEED, kept, store)
    return done.returncode == REACHED, tally


def run(arguments, programs):
    passed = failed = reached = 0
    total = Tally()
    with tempfile.TemporaryDirectory(prefix="cordwood-duels-") as top:
        (Path(top) / "find").mkdir()
        pairs = [(steps, address) for address in moments(programs, Path(top) / "find")
                 for steps in range(APPEND_STEPS)]
        if arguments.sample:
            likely = [pair for pair in pairs if pair[1] in {p[1] for p in pairs[:2 * APPEND_STEPS]}]
            pairs = random.Random(arguments.seed).sample(likely, arguments.sample // 4)
        for steps, address in pairs:
            with tempfile.TemporaryDirectory(dir=top) as folder:
                try:
                    was_reached, tally = one(programs, Path(folder), steps, address)
                    reached += was_reached
                    total.add(tally)
                    passed += 1
                except (Failed, subprocess.CalledProcessError) as reason:
                    failed += 1
                    print(f"FAIL duel {steps} {address}: {reason}\n  again: ./dev crash --points "
                          f"--mode duels --seed {arguments.seed} --sample {arguments.sample}",
                          flush=True)
    if not reached:
        failed += 1
        print("FAIL duels: none reached its moment")
    print(f"{len(pairs)} duels, {reached} at their moment; {total}")
    return passed, failed
