"""The writers of the crash tests and their model: how each is built and started, and how a store is
compared with what its threads were told is kept. Used by crash.py, deaths.py and points.py."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cases
import swift_hosts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CORDWOOD = str(ROOT / "build/bin/cordwood")
LIBRARY = str(ROOT / "build/lib/libcordwood.so")
THREADS = 8
HOSTS = ("c", "cpp", "python", "swift")
LINKS = [f"-I{ROOT}/include", f"-L{ROOT}/build/lib", "-lcordwood", "-lpthread",
         f"-Wl,-rpath,{ROOT}/build/lib"]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-O2"]


class Failed(cases.Failed):
    """Why a case failed; and the counts, if the records were compared."""

    def __init__(self, text, tally=None):
        super().__init__(text)
        self.tally = tally


def compile_c(folder, name):
    """Compiles a C program of this folder."""
    program = str(folder / name)
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", *WARNINGS, str(HERE / f"{name}.c"), *LINKS,
                    "-o", program], check=True)
    return program


def compile_cpp(folder):
    program = str(folder / "writer-cpp")
    subprocess.run(["c++", "-std=c++17", "-D_GNU_SOURCE", *WARNINGS, str(HERE / "writer.cpp"),
                    *LINKS, "-o", program], check=True)
    return program


def build_accelerator(folder):
    """The Python package with its accelerator, built in the same way as for its own tests."""
    place = ROOT / "bindings/python/tests/run.py"
    spec = importlib.util.spec_from_file_location("python_tests", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    target = folder / "python"
    shutil.copytree(module.build(), target)
    return str(target)


class Programs:
    """Built when first requested, into one folder."""

    def __init__(self, folder):
        self.folder, self.built = folder, {}

    def _once(self, name, make):
        if name not in self.built:
            self.built[name] = make()
        return self.built[name]

    @property
    def check(self):
        return self._once("check", lambda: compile_c(self.folder, "check"))

    def tool(self, name):
        return self._once(name, lambda: compile_c(self.folder, name))

    def writer(self, host, seed):
        """(command, environment). Every second Python writer uses ctypes."""
        if host == "c":
            return [self._once("c", lambda: compile_c(self.folder, "writer"))], None
        if host == "cpp":
            return [self._once("cpp", lambda: compile_cpp(self.folder))], None
        if host == "swift":
            return [str(swift_hosts.program("Writer"))], None
        package = self._once("python", lambda: build_accelerator(self.folder))
        environment = dict(os.environ, CORDWOOD_LIBRARY=LIBRARY, PYTHONPATH=package,
                           PYTHONDONTWRITEBYTECODE="1",
                           CORDWOOD_PYTHON_ACCELERATOR=str(seed // 2 % 2))
        return [sys.executable, str(HERE / "writer.py")], environment


# ── The model ──

class Tally:
    """The counts of check.c."""
    NAMES = ("kept", "read", "lost", "torn", "twice", "disordered", "invented", "damaged")

    def __init__(self, numbers=(0,) * 8):
        for name, number in zip(self.NAMES, numbers):
            setattr(self, name, number)

    def add(self, other):
        for name in self.NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def is_clean(self):
        return not any(getattr(self, name) for name in self.NAMES[2:])

    def __str__(self):
        return ", ".join(f"{getattr(self, name)} {name}" for name in self.NAMES)


def look(programs, groups, places):
    """Compares, without a verdict. groups: (logger, seed, kept file)."""
    words = [str(word) for group in groups for word in group]
    done = subprocess.run([programs.check, *words, "--", *map(str, places)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed(f"check ended {done.returncode}: {done.stderr.decode()[-500:]}")
    return [Tally([int(word) for word in line.split()]) for line in done.stdout.splitlines()]


def compare_kept(programs, when, logger, seed, kept, *places):
    return compare_groups(programs, when, [(logger, seed, kept)], places)


def compare_groups(programs, when, groups, places):
    """The sum, if every group is clean."""
    total = Tally()
    for (logger, *_), tally in zip(groups, look(programs, groups, places)):
        if not tally.is_clean:
            raise Failed(f"{when}: {logger}: {tally}", tally)
        total.add(tally)
    return total


def cordwood(*arguments, codes=(0,)):
    done = subprocess.run([CORDWOOD, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode not in codes:
        raise Failed(f"cordwood {' '.join(map(str, arguments))} ended {done.returncode}: "
                     f"{(done.stdout + done.stderr).decode(errors='replace')[-500:]}")
    return done.stdout


def verify(store, known=None):
    """The report of a store that is whole, except for problems that end in `known`."""
    report = json.loads(cordwood("verify", "--json", store, codes=(0, 3) if known else (0,)))
    problems = [text for text in report["problems"] if not known or not text.endswith(known)]
    if problems:
        raise Failed(f"verify: {problems[:3]}")
    return report


def states(report):
    return [lane["state"] for lane in report["lanes"]]


def left_in_lanes(store):
    return sorted(path.name for path in (Path(store) / "lanes").iterdir())


def kept_sum(path):
    data = path.read_bytes() if path.exists() else b""
    return sum(int.from_bytes(data[at:at + 8], "little") for at in range(0, 64 * THREADS, 64))
