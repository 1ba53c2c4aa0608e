"""Every other way in which a writing process ends without cw_close. Each case runs eight threads at
full rate, lets the process die, and compares the records they were told are kept with the store, as
it lies and after another process archived it. Part of crash.py (--deaths)."""

import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

from cases import until
from hosts import Failed, compare_kept, cordwood, kept_sum, left_in_lanes, states, verify

RECORDS = 3000
PATIENCE_S = 60
TRAPS = (-signal.SIGILL, -signal.SIGTRAP)
ABORT, SEGV, TERM = (-signal.SIGABRT,), (-signal.SIGSEGV,), (-signal.SIGTERM,)

# host, how, how the process must end
CASES = [
    ("c", "abort", ABORT), ("c", "_exit", (3,)), ("c", "exit", (3,)), ("c", "return", (3,)),
    ("c", "quick_exit", (3,)), ("c", "kill", (-signal.SIGKILL,)), ("c", "term", TERM),
    ("c", "trap", TRAPS), ("c", "segv", SEGV), ("c", "overflow", SEGV), ("c", "exec", (3,)),
    ("cpp", "throw", ABORT), ("cpp", "thread", ABORT), ("cpp", "noexcept", ABORT),
    ("cpp", "joinable", ABORT), ("cpp", "return", (3,)), ("cpp", "exit", (3,)),
    ("swift", "index", TRAPS), ("swift", "unwrap", TRAPS), ("swift", "add", TRAPS),
    ("swift", "fatal", TRAPS), ("swift", "exit", (3,)),
    ("python", "exit", (3,)), ("python", "raise", (1,)), ("python", "_exit", (3,)),
    ("python", "abort", ABORT), ("python", "term", TERM), ("python", "segv", SEGV),
]


def start(programs, folder, host, seed, *words):
    command, environment = programs.writer(host, seed)
    return subprocess.Popen(
        [*command, str(folder / "store"), str(folder / "kept"), str(1 << 20), str(seed), *words],
        env=environment, stderr=subprocess.PIPE)


def ends(child, expected):
    try:
        _, text = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise Failed("the process does not end") from None
    if child.returncode not in expected:
        raise Failed(f"ended {child.returncode}, not {expected}: {text.decode()[-300:]}")


@contextmanager
def killed(child):
    """The host, while the block runs. Afterwards it is killed."""
    try:
        yield child
    finally:
        child.kill()
    ends(child, (-signal.SIGKILL,))


def recovered(programs, folder, seed):
    """As it lies, then archived. Nothing but the archives remains."""
    store, kept = folder / "store", folder / "kept"
    tally = compare_kept(programs, "as it lies", "crash", seed, kept, store)
    verify(store)
    cordwood("archive", store)
    if left_in_lanes(store):
        raise Failed(f"left after archive: {left_in_lanes(store)[:3]}")
    again = compare_kept(programs, "archived", "crash", seed, kept, store)
    verify(store)
    if again.read != tally.read:
        raise Failed(f"{tally.read} records as it lay, {again.read} in the archive")
    return tally


def dies(programs, folder, seed, host, how, expected):
    ends(start(programs, folder, host, seed, how, str(RECORDS)), expected)
    if kept_sum(folder / "kept") < RECORDS - 8:
        raise Failed("it died too soon")
    return recovered(programs, folder, seed)


def live_lane_stays(programs, folder, seed):
    """While the process lives no other process adopts its lane."""
    store, kept = folder / "store", folder / "kept"
    if "live" not in states(verify(store)):
        raise Failed("verify does not say that the lane lives")
    before = kept_sum(kept)
    cordwood("archive", store)
    if "live" not in states(verify(store)):
        raise Failed("the lane of a living process was adopted")
    return before


def main_thread_ends(programs, folder, seed):
    """main calls pthread_exit: the process looks like a zombie, but its threads keep logging."""
    with killed(start(programs, folder, "c", seed, "pthread_exit", str(RECORDS))) as child:
        until(lambda: state_of(child.pid) == "Z", "main's thread ends")
        before = live_lane_stays(programs, folder, seed)
        until(lambda: kept_sum(folder / "kept") > before + 1000, "the others log on")
    return recovered(programs, folder, seed)


def all_threads_end(programs, folder, seed):
    """Main's thread ends, then the others: the engine's own threads still run, and archive."""
    with killed(start(programs, folder, "c", seed, "last", str(RECORDS))):
        until(lambda: kept_sum(folder / "kept") == RECORDS // 8 * 8, "all is logged")
        live_lane_stays(programs, folder, seed)
    return recovered(programs, folder, seed)


def state_of(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def killed_while_stopped(programs, folder, seed):
    """SIGSTOP in the middle of appends, then others read, then SIGKILL: as the OOM killer does."""
    store, kept = folder / "store", folder / "kept"
    with killed(start(programs, folder, "c", seed, "never", str(1 << 60))) as child:
        until(lambda: kept_sum(kept) > RECORDS, "it logs")
        os.kill(child.pid, signal.SIGSTOP)
        until(lambda: all_stopped(child.pid), "it stops")
        compare_kept(programs, "stopped", "crash", seed, kept, store)
        live_lane_stays(programs, folder, seed)
    return recovered(programs, folder, seed)


def all_stopped(pid):
    threads = list(Path(f"/proc/{pid}/task").iterdir())
    return all(state_of(f"{pid}/task/{thread.name}") == "T" for thread in threads)


def table(only):
    """The cases of these hosts: name → (programs, folder, seed) → tally."""
    found = {f"{host} {how}": (lambda programs, folder, seed, case=(host, how, expected):
                               dies(programs, folder, seed, *case))
             for host, how, expected in CASES}
    found["c pthread_exit"] = main_thread_ends
    found["c last"] = all_threads_end
    found["c stopped"] = killed_while_stopped
    return {name: body for name, body in found.items() if name.split()[0] in only}
