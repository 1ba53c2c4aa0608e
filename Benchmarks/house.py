"""Shared by all parts of `./dev bench`: where programs are built and stores made, how a program is
run and its output parsed, how a store is read back and counted, and which machine this is.

Everything lies under build/bench, on the file system of the checkout. Stores are removed after each
run. One run at a time."""

import datetime
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CORDWOOD = str(ROOT / "build/bin/cordwood")
WORKLOADS = ("w1", "w2", "w3", "w4")
KEPT, KEPT_TMPFS = "yes: a mapped file", "yes: a mapped file in memory"
OURS = [f"-I{ROOT}/include", f"-I{HERE}", f"-L{ROOT}/build/lib", "-lcordwood", "-lpthread",
        f"-Wl,-rpath,{ROOT}/build/lib"]
# Keeps a writer in one piece: callgrind counts from its name to its end.
WHOLE = ["-fno-reorder-blocks-and-partition"]
C = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", *WHOLE, "-Wall", "-Wextra", "-Werror"]
# Keeps the checkout's path, whose length would affect some counts, out of __FILE__.
CXX = ["g++", "-std=c++17", "-D_GNU_SOURCE", "-O2", *WHOLE, "-Wall", "-Wextra", "-Werror",
       f"-fmacro-prefix-map={HERE}/=Benchmarks/"]


class Unsupported(Exception):
    """Something required is not installed, or does not run here; the text says what."""


def output(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                          text=True, **more).stdout


def last_json(text):
    """The JSON line a program ends with."""
    return json.loads(text.splitlines()[-1])


class House:
    """A run of the benchmarks: its scratch folder, its programs, its rows and its gates."""

    def __init__(self, quick):
        self.quick = quick
        self.rows, self.gates, self.notes, self.more = [], [], [], {}
        self.limits = json.loads((HERE / "thresholds.json").read_text())
        (ROOT / "build/bench").mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="run-", dir=ROOT / "build/bench"))
        self.programs, self.numbers = {}, itertools.count(1)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def few(self, quick, full):
        return quick if self.quick else full

    def say(self, text):
        print(text, flush=True)

    def note(self, text):
        """Notes what was left out, and why."""
        self.notes.append(text)
        self.say(f"note: {text}")

    def gate(self, name, figure, limit):
        self.gates.append({"name": name, "figure": figure, "limit": limit,
                           "good": figure <= limit})

    def program(self, name, source, *flags, compiler=None):
        """Builds a program, once a run."""
        if name not in self.programs:
            path = self.folder / name
            with_what = compiler or (CXX if source.endswith(".cpp") else C)
            subprocess.run([*with_what, str(HERE / source), *flags, "-o", str(path)], check=True)
            self.programs[name] = str(path)
        return self.programs[name]

    def hot(self):
        return self.program("hot", "hot.c", *OURS)

    def hot_places(self):
        return self.program("hotplaces", "hot.c", f"-DPLACES={self.few('TEN', 'HUNDRED')}", *OURS)

    def hot_cpp(self):
        return self.program("hotpp", "hot.cpp", *OURS)

    def hot_macros(self):
        return self.program("hotmacros", "hot.cpp", "-DMACROS", *OURS)

    def where(self):
        """A new empty directory for one run's files."""
        path = self.folder / f"store-{next(self.numbers)}"
        path.mkdir()
        return path

    @staticmethod
    def each(call, cases):
        """The result of `call` for each tuple of arguments. The calls run beside each other: they
        must not measure time."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda case: call(*case), cases))

    def check(self, store, workload):
        """Compares every record of a store with what was logged."""
        return last_json(output(self.program("check", "check.c", *OURS), store, workload))

    def run(self, program, mode, count, workload, threads=1, environment=None, counted=True):
        """Runs one of our programs: its output, and the records counted afterwards."""
        store = self.where()
        try:
            done = subprocess.run([program, str(store), mode, str(count), workload, str(threads)],
                                  stdout=subprocess.PIPE, text=True, check=True,
                                  env=dict(os.environ, **(environment or {})))
            row = last_json(done.stdout)
            row["bytes_per_record"] = round(row["segment_bytes"] / row["records"], 2)
            if counted:
                seen = self.check(store, workload)
                row["on_file"] = seen["records"]
                self.gate(f"{Path(program).name} {mode} {workload} x{threads}: records missing, "
                          "wrong or damaged on file", abs(row["records"] - seen["records"])
                          + seen["wrong"] + seen["damaged"], 0)
            return row
        finally:
            shutil.rmtree(store, ignore_errors=True)

    def add(self, part, engine, workload, mode, figures, threads=1, kept=KEPT):
        row = {"part": part, "engine": engine, "workload": workload, "mode": mode,
               "threads": threads, "kept": kept, **figures}
        self.rows.append(row)
        return row

    def find(self, **wanted):
        for row in self.rows:
            if all(row.get(key) == value for key, value in wanted.items()):
                return row
        return None


def joined(rounds):
    """Joins several runs into one row: the median of times, the worst `max`, the sums of counts."""
    out = dict(rounds[0])
    for key, value in out.items():
        values = sorted(row[key] for row in rounds if isinstance(row.get(key), (int, float)))
        if not values:
            continue
        if key in ("records", "on_file", "dropped", "slow_appends", "late", "seconds",
                   "closed_seconds", "segment_bytes", "user_s", "system_s", "faults",
                   "writer_faults", "archive_bytes_in", "archive_bytes_out"):
            out[key] = sum(values)
        elif key == "max":
            out[key] = values[-1]
        else:
            out[key] = values[len(values) // 2] if len(values) % 2 else round(
                (values[len(values) // 2 - 1] + values[len(values) // 2]) / 2, 2)
        if isinstance(value, float) and isinstance(out[key], float):
            out[key] = round(out[key], 4)
    out["rounds"] = len(rounds)
    return out


def first_line(*command):
    try:
        done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.stdout.splitlines()[0].strip() if done.stdout else ""
    except OSError:
        return ""


def versions():
    """Versions of everything involved, as far as installed."""
    found = {"cordwood": first_line(CORDWOOD, "--version"),
             "commit": first_line("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"),
             "swift": first_line("swift", "--version"), "gcc": first_line("cc", "--version"),
             "g++": first_line("g++", "--version"), "python": platform.python_version(),
             "valgrind": first_line("valgrind", "--version"),
             "zstd": re.sub(r".*(v[0-9.]+).*", r"\1", first_line("zstd", "--version"))}
    for package in ("libspdlog-dev", "libgoogle-glog-dev", "liblttng-ust-dev", "lttng-tools",
                    "babeltrace2"):
        version = first_line("dpkg-query", "-W", "-f", "${Version}", package)
        if version and "no packages" not in version:
            found[package] = version
    return {name: version for name, version in found.items() if version}


def machine(folder):
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(encoding="ascii"))
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    system = first_line("findmnt", "-no", "FSTYPE,OPTIONS", "--target", str(folder))
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"cpu": cpu[1] if cpu else platform.machine(), "cores": os.cpu_count(),
            "memory_gib": round(int(memory[1]) / 2**20) if memory else None,
            "kernel": platform.release(), "architecture": platform.machine(),
            "file_system": re.sub(r"\s+", " ", system), "when": now.strftime("%Y-%m-%d %H:%M UTC"),
            "load_before": os.getloadavg()[0], "command": "./dev bench " + " ".join(
                word for word in sys.argv[1:] if not word.endswith((".json", ".svg"))
                and word not in ("--json", "--plot"))}
