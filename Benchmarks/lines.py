"""Finds the cache lines that two producers both store to, in a trace of every store (valgrind's
lackey): a proof by counts that does not depend on the machine.

`hot STORE lines N WORKLOAD` lets two threads log in turn, a few records each, between two stores to
the thread's mark. Nearly all these sections run the same number of instructions: they are quiet. A
longer one contains the claim of a chunk, which may touch shared words, or another thread's work. No
line may be stored to in quiet sections of both threads."""

import os
import re
import subprocess
from collections import Counter, defaultdict

LINE = 128  # processors fetch lines of 64 bytes in pairs
SECTIONS = 24


class NoProof(Exception):
    """The trace does not suffice for a proof."""


def sections(trace, marks):
    """(thread, instructions, [(address, size) of each store]) of each section of a trace."""
    thread, count, stores = None, 0, []
    for line in trace:
        kind = line[:2]
        if kind == b"I ":
            count += 1
        elif kind == b" S" or kind == b" M":
            address, size = line[3:].split(b",")
            address = int(address, 16)
            if address in marks:
                if thread is None:
                    thread = marks[address]
                else:
                    yield thread, count, stores
                    thread = None
                count, stores = 0, []
            elif thread is not None:
                stores.append((address, int(size)))


def shared(found):
    """How many sections were quiet, and the lines that both threads stored to."""
    by_thread, writers, quiet = defaultdict(list), defaultdict(set), defaultdict(int)
    for thread, count, stores in found:
        by_thread[thread].append((count, stores))
    if sorted(by_thread) != [0, 1]:
        raise NoProof(f"threads {sorted(by_thread)} in the trace, not 0 and 1")
    for thread, all_of in by_thread.items():
        usual = Counter(count for count, _ in all_of).most_common(1)[0][0]
        for count, stores in all_of:
            if count != usual:
                continue
            quiet[thread] += 1
            for address, size in stores:
                for line in range(address // LINE, (address + size - 1) // LINE + 1):
                    writers[line].add(thread)
        if quiet[thread] * 2 < len(all_of):
            raise NoProof(f"only {quiet[thread]} of {len(all_of)} sections were quiet")
    return {"quiet_sections": [quiet[0], quiet[1]],
            "lines_stored_to": [sum(thread in seen for seen in writers.values())
                                for thread in (0, 1)],
            "shared": [hex(line * LINE) for line, seen in writers.items() if len(seen) > 1]}


def measure(house, program, workload):
    store = house.where()
    trace = f"{store}.trace"
    done = subprocess.run(
        ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={trace}", program,
         str(store), "lines", str(SECTIONS), workload], check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True)
    first, second = re.search(r"mark (\w+) (\w+)", done.stderr).groups()
    marks = {int(first, 16): 0, int(second, 16): 1}
    with open(trace, "rb") as lines:
        seen = shared(sections(lines, marks))
    os.unlink(trace)
    # An address stands for one line only while nothing else is mapped there: all sections must lie
    # in the segment after the lane file's own, which the warm-up has filled.
    if not list((store / "lanes").glob("*.00000001-*.seg")):
        raise NoProof("the segment was sealed meanwhile")
    return seen
