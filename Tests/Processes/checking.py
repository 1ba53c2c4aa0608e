"""The records that this suite's processes were told are kept, against what a reader shows: the
ledger that host.h writes, and the lines of `cordwood cat --json` or of a follower."""

import json
import struct
import subprocess
from pathlib import Path

from cases import Failed

SLOT = struct.Struct("<IIQQQ")


def read_ledger(path):
    """{slot: (pid, returned, refused, spare)} of the used slots."""
    data = Path(path).read_bytes()
    used = {}
    for index in range(1, len(data) // SLOT.size):
        pid, taken, returned, refused, spare = SLOT.unpack_from(data, index * SLOT.size)
        if taken:
            used[index] = (pid, returned, refused, spare)
    return used


def cat(command, store, codes=(0,)):
    """The store's records as the command line shows them. Code 3: it reports that some are gone."""
    done = subprocess.run([command, "cat", "--json", store], capture_output=True, check=False,
                          timeout=300)
    if done.returncode not in codes:
        raise Failed(f"cordwood cat ends {done.returncode}: {done.stderr.decode()[-1000:]}")
    return done.stdout.decode(errors="replace").splitlines()


def by_slot(lines):
    """{slot: [(number, pid)]} in the order of the lines; and all other messages."""
    found, others = {}, []
    for line in lines:
        record = json.loads(line)
        words = record["message"].split(" ")
        if words[0] == "w" and len(words) >= 3:
            found.setdefault(int(words[1]), []).append((int(words[2]), record["pid"]))
        elif not record["logger"].startswith("Cordwood"):
            others.append(record)
    return found, others


def compare(ledger, lines, killed=False, what="the store", late=0):
    """Each record is there once, in its writer's order, with its writer's pid; none is missing.
    Killed writers may each have one more, whose call had not returned. late: the number of writers
    whose records a following reader may show late (CW_VIEW_LATE). Returns the count."""
    found, others = by_slot(lines)
    problems = []
    total = 0
    for index, (pid, returned, _, _) in ledger.items():
        mine = found.pop(index, [])
        numbers = [number for number, _ in mine]
        total += len(numbers)
        if any(other != pid for _, other in mine):
            problems.append(f"slot {index}: pids {sorted({p for _, p in mine})}, not {pid}")
        wanted = list(range(returned))
        if numbers == wanted or killed and numbers == wanted + [returned]:
            continue
        if late > 0 and sorted(numbers) in (wanted, wanted + [returned] * killed):
            late -= 1
            continue
        missing = sorted(set(wanted) - set(numbers))
        twice = len(numbers) - len(set(numbers))
        extra = [n for n in numbers if n >= returned]
        problems.append(f"slot {index}, pid {pid}: {len(missing)} of {returned} missing "
                        f"{missing[:5]}, {twice} twice, {len(extra)} not returned {extra[:3]}, "
                        f"{'in' if numbers == sorted(numbers) else 'out of'} order")
    for index in found:
        problems.append(f"slot {index} is nobody's")
    if problems:
        raise Failed(f"{what}: " + "\n  ".join(problems[:20]))
    return total, others
