"""Compares ours with spdlog, glog and LTTng-UST: the same work in the same run, in turn (A B C,
A B C), and what `kill -9` at full rate leaves of each."""

import os
import shutil
import signal
import subprocess
import time

import lttng
from house import CXX, HERE, KEPT, C, Unsupported, joined, last_json

PERIOD_NS = 4_000_000  # of bursts: between two, all engines except glog drain their queues
PACED_RATE = 100_000   # of single calls: even the slowest reaches it
FAILURES = (Unsupported, subprocess.SubprocessError)
KILL_AFTER_S, KILL_AFTER_QUICK_S = 0.3, 0.02
# What a kill loses, from each engine's own documentation; the kill runs count it.
LOSES = {"spdlog": "no: stdio's buffer", "spdlog async": "no: a queue and stdio's buffer",
         "glog": "no: stdio's buffer, 30 s", "LTTng-UST": "nearly: its daemons' memory"}


def pkg(name):
    done = subprocess.run(["pkg-config", "--cflags", "--libs", name], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode:
        raise Unsupported(f"no development files of {name}")
    return done.stdout.split()


class Engine:
    """A program with load.h's modes, and how its records on file are counted afterwards."""

    def __init__(self, house, name, program, environment=None, kept=KEPT):
        self.house, self.name, self.program, self.kept = house, name, program, kept
        self.environment = environment or {}

    def command(self, where, mode, count, workload, threads):
        return [self.program, str(where), mode, str(count), workload, str(threads)]

    def run(self, mode, count, workload, threads=1, environment=None):
        where = self.house.where()
        try:
            done = subprocess.run(
                self.command(where, mode, count, workload, threads), check=True,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=dict(os.environ, **self.environment, **(environment or {})))
            row = last_json(done.stdout)
            return self.finish(row, where, workload)
        finally:
            shutil.rmtree(where, ignore_errors=True)

    def finish(self, row, where, workload):
        row["on_file"], size = self.on_file(where, workload)
        row["bytes_per_record"] = round(size / max(1, row["on_file"]), 2)
        return row

    def on_file(self, where, workload):
        """(whole records, bytes) of all text files."""
        count = size = 0
        for path in where.iterdir():
            if not path.is_file() or path.is_symlink():
                continue
            size += path.stat().st_size
            with path.open("rb") as lines:
                count += sum(line.endswith(b"\n") and line[:1] in b"[I" for line in lines)
        return count, size

    def kill(self, workload):
        """{returned, on_file} of a run at full rate that `kill -9` ends."""
        where = self.house.where()
        try:
            return self.killed(where, workload, {})
        finally:
            shutil.rmtree(where, ignore_errors=True)

    def killed(self, where, workload, environment):
        kept = self.house.folder / f"kept-{next(self.house.numbers)}"
        process = subprocess.Popen(
            self.command(where, "kill", 0, workload, 1), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, LOAD_KEPT=str(kept), **self.environment, **environment))
        try:
            limit = time.monotonic() + 30
            while process.poll() is None and time.monotonic() < limit and self.returned(kept) == 0:
                time.sleep(0.01)
            time.sleep(self.house.few(KILL_AFTER_QUICK_S, KILL_AFTER_S))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        returned = self.returned(kept)
        kept.unlink()
        if returned == 0:
            raise Unsupported(f"{self.name} wrote nothing before it was killed")
        return {"returned": returned, "on_file": self.on_file(where, workload)[0]}

    @staticmethod
    def returned(kept):
        try:
            return int.from_bytes(kept.read_bytes()[:8], "little")
        except OSError:
            return 0


class Ours(Engine):
    def finish(self, row, where, workload):
        super().finish(row, where, workload)
        row["bytes_per_record"] = round(row["segment_bytes"] / row["records"], 2)
        return row

    def on_file(self, where, workload):
        seen = self.house.check(where, workload)
        size = sum(path.stat().st_size for path in where.rglob("*") if path.is_file())
        return seen["records"] - seen["wrong"], size


class Lttng(Engine):
    """Each run has its own daemons, which end with it."""

    def run(self, mode, count, workload, threads=1, environment=None):
        where = self.house.where()
        try:
            with lttng.Session(where) as session:
                started = time.monotonic()
                done = subprocess.run(
                    self.command(where, mode, count, workload, threads), check=True,
                    stdout=subprocess.PIPE, text=True,
                    env=dict(os.environ, **session.environment, **(environment or {})))
                row = last_json(done.stdout)
                ended = time.monotonic()
                row["on_file"], row["dropped"], size = session.stop()
                if mode == "sustained":  # until the trace was complete, without counting it
                    row["closed_seconds"] += session.stopped - ended
                row["bytes_per_record"] = round(size / max(1, row["on_file"]), 2)
                row["whole_run_s"] = round(ended - started, 3)
                return row
        finally:
            shutil.rmtree(where, ignore_errors=True)

    def kill(self, workload):
        where = self.house.where()
        try:
            with lttng.Session(where) as session:
                self.session = session
                return self.killed(where, workload, session.environment)
        finally:
            shutil.rmtree(where, ignore_errors=True)

    def on_file(self, where, workload):
        events, _, size = self.session.stop(killed=True)
        return events, size


def ours(house):
    return [Ours(house, "cordwood C", house.hot()), Ours(house, "cordwood C++", house.hot_cpp()),
            Ours(house, "cordwood C++ macros", house.hot_macros())]


def spdlogs(house):
    program = house.program("spdlog", "peers/spdlog.cpp", *pkg("spdlog"), "-lpthread",
                            compiler=CXX)
    return [Engine(house, "spdlog", program, kept=LOSES["spdlog"]),
            Engine(house, "spdlog async", program, {"LOAD_ASYNC": "1"}, LOSES["spdlog async"])]


def glogs(house):
    program = house.program("glog", "peers/glog.cpp", *pkg("libglog"), "-lpthread", compiler=CXX)
    return [Engine(house, "glog", program, kept=LOSES["glog"])]


def lttngs(house):
    for tool in ("lttng-sessiond", "babeltrace2"):
        if not shutil.which(tool):
            raise Unsupported(f"no {tool}")
    program = house.program("lttng", "peers/lttng.c", f"-I{HERE}/peers", *pkg("lttng-ust"),
                            "-ldl", "-lpthread", compiler=C)
    return [Lttng(house, "LTTng-UST", program, kept=LOSES["LTTng-UST"])]


def engines(house, makers):
    found = []
    for make in makers:
        try:
            found += make(house)
        except Unsupported as why:
            house.note(f"left out of the peers: {why}")
    return found


def leave_out(house, found, engine, why):
    """Notes a peer that does not run here; one of ours fails the run."""
    if isinstance(engine, Ours):
        raise why
    house.note(f"{engine.name} left out: {why}")
    found.remove(engine)


def alternate(house, found, mode, count, loads, rounds, threads=1, environment=None):
    """One row for each engine and workload, from `rounds` runs each, taken in turn."""
    for load in loads:
        rows = {}
        for _ in range(rounds):
            for engine in list(found):
                try:
                    row = engine.run(mode, count, load, threads, environment)
                    rows.setdefault(engine, []).append(row)
                except FAILURES as why:
                    leave_out(house, found, engine, why)
        for engine in found:
            row = house.add("peers", engine.name, load, mode, joined(rows[engine]),
                            threads=threads, kept=engine.kept)
            if isinstance(engine, Ours):
                house.gate(f"{engine.name} {mode} {load} x{threads} beside its peers: records "
                           "missing on file", row["records"] - row["on_file"], 0)


def kills(house, found, rounds):
    for engine in list(found):
        try:
            runs = [engine.kill("w2") for _ in range(rounds)]
        except FAILURES as why:
            leave_out(house, found, engine, why)
            continue
        lost = [max(0, run["returned"] - run["on_file"]) for run in runs]
        house.add("kill", engine.name, "w2", "kill", {
            "kills": rounds, "records": sum(run["returned"] for run in runs),
            "on_file": sum(run["on_file"] for run in runs), "lost": sum(lost),
            "lost_most": max(lost), "kills_with_loss": sum(count > 0 for count in lost)},
            kept=engine.kept)
        if isinstance(engine, Ours):
            house.gate(f"{engine.name}: records lost in {rounds} x kill -9", sum(lost), 0)


def measure(house):
    quick = house.quick
    makers = (ours, spdlogs) if quick else (ours, spdlogs, glogs, lttngs)
    found = engines(house, makers)
    bursts = {"LOAD_PERIOD_NS": str(house.few(1_000_000, PERIOD_NS))}
    paced = {"LOAD_RATE": str(PACED_RATE)}
    rounds = house.few(1, 3)
    alternate(house, found, "bursts", house.few(150, 500), house.few(("w2",),
              ("w1", "w2", "w3", "w4")), rounds, environment=bursts)
    if not quick:
        alternate(house, found, "bursts", 500, ("w2",), rounds, threads=2, environment=bursts)
        alternate(house, found, "paced", 300_000, ("w2", "w4"), rounds, environment=paced)
        alternate(house, found, "sustained", 1_000_000, ("w2", "w4"), rounds)
    kills(house, found, house.few(1, 5))
    mean = {row["engine"]: row["mean"] for row in house.rows
            if row["part"] == "peers" and row["mode"] == "bursts" and row["workload"] == "w2"
            and row["threads"] == 1}
    house.more["ratios_w2"] = {name: round(figure / mean["cordwood C"], 1)
                               for name, figure in mean.items() if name != "cordwood C"}
    if "spdlog" in mean:
        house.gate("w2: mean of spdlog's mean", round(mean["cordwood C"] / mean["spdlog"], 3),
                   house.limits["of_spdlog_beyond_noise"])
