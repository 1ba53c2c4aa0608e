"""Hosts that enter a smaller room after they opened a store, and stores of several users. Cases of
run.py."""

import contextlib
import os
import re
import stat
import subprocess
from pathlib import Path

from cases import equal, holds, sized, until
from checking import cat, compare, read_ledger
from owners import AS_USER, NO_PROC, USER, needs, own

ROOT = Path(__file__).resolve().parent.parent.parent


def owned(bench):
    """{(kind, owner, group, permissions)} of all that is in the store."""
    found = set()
    for path in bench.store.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # it was renamed
            facts = path.lstat()
            kind = "folder" if stat.S_ISDIR(facts.st_mode) else "file"
            found.add((kind, facts.st_uid, facts.st_gid, oct(stat.S_IMODE(facts.st_mode))))
    return found


def dropped(bench):
    """A daemon opens the store of the user that it becomes then. Root's tools make files there,
    too."""
    needs()
    own(bench)
    wanted = {("folder", USER, USER, "0o700"), ("file", USER, USER, "0o600")}
    bench.run("many", "brief", 2, codes=(-9,))
    bench.archive()
    equal("what root made", owned(bench), wanted)
    bench.run("rooms", "drop", USER)
    equal("what both made", owned(bench), wanted)
    bench.finish([*AS_USER, bench.command, "archive", bench.store])
    bench.check(killed=True)


def dropped_outside(bench):
    """The store is root's own, so nothing can be made there any more: the cause is permission."""
    needs()
    said = bench.run("rooms", "drop", USER, "refused")
    holds(said.startswith("CW_E_FULL: ") and "permission" in said, said)
    gaps = [record for record in bench.records() if record["kind"] == "gap"]
    equal("causes", {record["fields"]["gap.causes"] for record in gaps}, {"permission"})
    bench.archive()
    bench.check()


def shared(bench):
    """The group of a store reads what was made there by its owner and by root, whatever the umask
    was; others do not."""
    needs()
    reader, group = 4711, 4712
    bench.store.mkdir()
    os.chown(bench.store, USER, group)
    for path in (bench.directory, bench.directory.parent, bench.programs):
        path.chmod(0o755)
    host = bench.start("rooms", "group", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        equal("the host", host.stdout.readline(), b"ready\n")
        # A file is root's for the moment between open(2) and fchown(2).
        wanted = {("folder", USER, group, "0o2750"), ("file", USER, group, "0o640")}
        until(lambda: owned(bench) == wanted, f"all belongs to {USER} and {group}")
        for groups, codes in ((group, (0,)), (reader, (1, 2, 3, 4))):
            lines = bench.finish(["setpriv", f"--reuid={reader}", f"--regid={groups}",
                                  "--clear-groups", bench.command, "cat", bench.store], codes)
            equal(f"records that group {groups} sees", lines.count("w 1 "),
                  200 if codes == (0,) else 0)
    finally:
        host.communicate()
    equal("the host ends", host.returncode, 0)
    bench.check()


def tool_without_proc(bench):
    """The command does the same without /proc, and so does a program that is linked statically."""
    needs(NO_PROC)

    def both(*words, codes=(0,)):
        """What it says with /proc and without it."""
        said = [bench.finish([*way, bench.command, *words], codes) for way in ([], NO_PROC)]
        equal(" ".join(map(str, words[:2])), *reversed(said))
        return said[0]
    for way in (NO_PROC, []):
        done = subprocess.run(
            [*way, bench.command, "log", "--logger", "rooms", "--store", bench.store],
            input=b"one\ntwo\n", check=False, capture_output=True)
        equal("log ends", (done.returncode, done.stderr), (0, b""))
    bench.run("many", "brief", 2, codes=(-9,))
    bench.finish([*NO_PROC, bench.programs / "many_static", "brief", bench.store, bench.ledger])
    shown = both("cat", "--json", bench.store)
    for text, count in (('"one"', 2), ('"two"', 2), ('"w 1 0 ', 1), ('"w 2 0 ', 1)):
        equal(text, shown.count(text), count)
    both("tail", "-n", "3", bench.store)
    both("grep", "two", bench.store)
    both("stats", "--json", bench.store)
    both("verify", bench.store)
    both("--help")
    both("cat", "--nonsense", bench.store, codes=(2,))
    both(codes=(0,))
    bench.finish([*NO_PROC, bench.command, "archive", bench.store])
    bench.check(killed=True)


def few_descriptors(bench):
    """A lane of many segments, and many lanes, in processes that may open 64 files."""
    count = sized(300, 2_000, 20_000)
    few = ["prlimit", "--nofile=64", bench.command]
    bench.run("rooms", "segments", count, codes=(-9,))
    bench.run("many", "pile", sized(100, 300, 900))

    def check():
        lines = bench.finish([*few, "cat", "--json", bench.store]).splitlines()
        compare(read_ledger(bench.ledger), lines, killed=True)
        # In each slot, the last may be one more.
        last = bench.finish([*few, "tail", "-n", "1", "--json", bench.store])
        equal("the last record", last.splitlines(), lines[-1:])
    check()
    bench.finish([*few, "archive", bench.store])
    equal("left", os.listdir(bench.store / "lanes"), [])
    check()
    bench.note(f"{count} segments")


def listed():
    """The system calls that RELIABILITY lists: those of an engine that is open, and those by which
    threads begin."""
    text = (ROOT / "docs/RELIABILITY.md").read_text()
    both = re.findall(r"^    ([a-z_0-9 ]+)$", text[text.index("## Filters"):], re.MULTILINE)
    return [" ".join(both[:-1]).split(), both[-1].split()]


# Of the test's own program.
HOST = ["exit_group", "read", "write"]


def under_filter(others, what, calls, renews=True):
    """A host under a filter. Between two rounds it may lose its lane's file."""
    def body(bench):
        with bench.start("rooms", "filter", others, what, *calls(), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True) as host:
            try:
                for turn in range(3):
                    line = host.stdout.readline()
                    equal("the host", line or f"ends {host.wait()}", "round\n")
                    if turn == 1 and renews:
                        for lane in (bench.store / "lanes").glob("*.lane"):
                            lane.unlink()
                        # Its writers leave the old one just before.
                        until(lambda: any(record["logger"] == "Cordwood.Store"
                                          for record in bench.records((0, 3))), "the new lane")
                    if turn < 2:
                        host.stdin.write("\n")
                        host.stdin.flush()
                said = host.communicate()[0]
                equal("the host ends", (host.returncode, said[-2000:]), (0, ""))
            finally:
                host.kill()
        if what == "quota":
            size = sum(path.stat().st_blocks * 512 for path in bench.store.rglob("*"))
            holds(size <= 3 << 20, f"the store has {size} bytes")
            return
        # Nobody adopts the segments of a lane whose file is missing. All were archived before.
        bench.finish([bench.command, "archive", bench.store], (0, 3) if renews else (0,))
        compare(read_ledger(bench.ledger), cat(bench.command, bench.store, (0, 3)))
    return body


# A sandbox that knows nothing of us: no files can be opened, no thread can begin.
LITTLE = ("write read futex exit_group exit rt_sigreturn rt_sigprocmask clock_gettime nanosleep "
          "clock_nanosleep brk munmap mprotect madvise close getpid gettid sched_yield mmap clone3 "
          "restart_syscall tgkill").split()

CASES = {"dropped": dropped, "dropped_outside": dropped_outside, "shared": shared,
         "tool_without_proc": tool_without_proc, "few_descriptors": few_descriptors,
         "filter_listed": under_filter("kill", "all", lambda: HOST + sum(listed(), [])),
         "filter_quota": under_filter("kill", "quota", lambda: HOST + sum(listed(), [])),
         "filter_no_threads": under_filter("refuse", "all", lambda: HOST + listed()[0]),
         "filter_little": under_filter("refuse", "little", lambda: LITTLE, renews=False)}
