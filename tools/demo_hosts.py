"""The four programs of examples/ as the demo runs them: how each is built, started, counted and,
for the C one, killed. Their interface is the same:

    PROGRAM STORE INPUT_FILE --threads N --kept FILE

Each line is logged once: repeated text would flatter the compressor that looks back furthest. Line
i goes to thread i mod N. FILE holds one little-endian u64 a thread, the number of lines whose call
returned, in a shared mapping, so that it survives a kill. A program that ends by itself prints one
JSON line: host, kept, ns_per_record. The cost of a record is measured separately, in one thread
that repeats the file until nothing is cold."""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THREADS = 4
# The killed program's pause after each line: it makes one pass long enough to be cut in half.
KILL_PAUSE_US = 500
PATIENCE_S = 300
WARM_RECORDS = 200_000


class Trouble(Exception):
    pass


class Run:
    """One process, and the records that it was told are kept."""

    def __init__(self, host, pid, kept, killed):
        self.host, self.pid, self.kept, self.killed = host, pid, kept, killed


def only(pattern):
    found = sorted(ROOT.glob(pattern))
    if not found:
        raise Trouble(f"no {pattern}")
    return str(found[0])


def build(folder, log):
    """host → command. The output of compilers goes to `log`."""
    include = [f"-I{ROOT}/include", f"-L{ROOT}/build/lib", f"-Wl,-rpath,{ROOT}/build/lib"]
    libraries = ["-lcordwood", "-lpthread"]
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
    c_program, cpp_program = str(folder / "host-c"), str(folder / "host-cpp")
    subprocess.run(["cc", "-std=c11", *warnings, only("examples/c/*.c"), *include, *libraries,
                    "-o", c_program], check=True, stdout=log, stderr=log)
    subprocess.run(["g++", "-std=c++17", *warnings, only("examples/cpp/*.cpp"), *include,
                    *libraries, "-o", cpp_program], check=True, stdout=log, stderr=log)
    # In the build directory of the tool, so that the package is compiled once for both.
    swift = [str(ROOT / "tools/swiftpm.sh"), "release", "build", "--package-path",
             str(ROOT / "examples/swift"), "--scratch-path", str(ROOT / ".build"), "--product",
             "Example"]
    subprocess.run(swift, check=True, stdout=log, stderr=log)
    binaries = Path(subprocess.run([*swift, "--show-bin-path"], check=True, text=True,
                                   stdout=subprocess.PIPE, stderr=log).stdout.strip())
    return {"c": [c_program], "cpp": [cpp_program],
            "python": [sys.executable, only("examples/python/*.py")],
            "swift": [str(binaries / "Example")]}


def kept(path):
    if not path.exists():
        return [0] * THREADS
    data = path.read_bytes()[:8 * THREADS].ljust(8 * THREADS, b"\0")
    return list(struct.unpack(f"<{THREADS}Q", data))


def environment():
    return dict(os.environ, CORDWOOD_LIBRARY=str(ROOT / "build/lib/libcordwood.so"),
                PYTHONPATH=str(ROOT / "bindings/python/src"), PYTHONDONTWRITEBYTECODE="1")


def start(command, store, source, counters, *more):
    return subprocess.Popen(
        [*command, str(store), str(source), "--threads", str(THREADS), "--kept", str(counters),
         *more], stdout=subprocess.PIPE, env=environment())


def measure(commands, folder, source, lines):
    """host → ns a record."""
    found = {}
    for host, command in commands.items():
        store = folder / "warm"
        done = subprocess.run(
            [*command, str(store), str(source), "--threads", "1", "--repeat",
             str(max(1, WARM_RECORDS // lines))], check=True, stdout=subprocess.PIPE,
            env=environment(), timeout=PATIENCE_S)
        found[host] = float(json.loads(done.stdout.splitlines()[-1])["ns_per_record"])
        shutil.rmtree(store)
    return found


def run_whole(host, command, store, source, counters):
    child = start(command, store, source, counters)
    try:
        out, _ = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        raise Trouble(f"the {host} program did not end") from None
    if child.returncode != 0:
        raise Trouble(f"the {host} program ended {child.returncode}")
    said = json.loads(out.splitlines()[-1])
    counted = kept(counters)
    if said["kept"] != sum(counted):
        raise Trouble(f"the {host} program says {said['kept']} kept, its counters {counted}")
    return Run(host, child.pid, counted, False)


def run_killed(host, command, store, source, lines, counters):
    child = start(command, store, source, counters, "--pause-us", str(KILL_PAUSE_US))
    deadline = time.monotonic() + PATIENCE_S
    try:
        while sum(kept(counters)) < lines / 2:
            if child.poll() is not None:
                raise Trouble(f"the {host} program ended before it could be killed")
            if time.monotonic() > deadline:
                raise Trouble(f"the {host} program keeps nothing")
            time.sleep(0.0005)  # a poll: the counters decide the moment
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    if child.returncode != -signal.SIGKILL:
        raise Trouble(f"the {host} program ended before it was killed")
    return Run(host, child.pid, kept(counters), True)
