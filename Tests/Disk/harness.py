"""What the cases share: the host program (host.c) with its answers by name, the words of the
interposer (interpose.c), small file systems, and the files of a store. Standard library only. A
case is a function that takes a Place. It raises Failed or Skipped."""

import contextlib
import errno
import json
import mmap
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

from cases import Failed, Skipped, equal, full, holds, sized, until  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
LIBRARY = Path(os.environ.get("CORDWOOD_LIBRARY", ROOT / "build/lib/libcordwood.so"))
TOOL = Path(os.environ.get("CORDWOOD_TOOL", ROOT / "build/bin/cordwood"))
# Longer than any answer takes on a loaded machine: a host that does not answer hangs.
SECONDS_MAX = 120

OK, E_IO, E_FULL, E_TIMEOUT = 0, -10, -11, -14
DROP, BLOCK = 1, 2
FLAG_SIGBUS_GUARD = 8
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g"]
CAUSES = ("disk_full", "disk_quota", "store_quota", "file_limit", "descriptors", "memory",
          "not_ready", "permission", "other")
REASONS = {1: "quota", 2: "count", 3: "expired", 4: "consent"}


def build(directory):
    """Builds the host and the interposer, once per run."""
    host = directory / "host"
    subprocess.run(["gcc", *FLAGS, "-I", ROOT / "include", HERE / "host.c", "-o", host,
                    "-L", LIBRARY.parent, "-lcordwood", "-lpthread",
                    f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
    return host, interposer(directory)


def interposer(directory):
    """Builds interpose.c there."""
    library = directory / "interpose.so"
    subprocess.run(["gcc", *FLAGS, "-fPIC", "-shared", HERE / "interpose.c", "-o", library, "-ldl"],
                   check=True)
    return library


class Words:
    """The shared words of interpose.c, in its order."""
    CALLS = ["open", "write", "sync", "rename", "allocate", "unlink", "truncate"]

    def __init__(self, path):
        self.path, self.waited = path, 0
        path.write_bytes(bytes(4096))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)

    def fail(self, error, *calls):
        for call in calls:
            struct.pack_into("<i", self.memory, 4 * self.CALLS.index(call), error)

    def delay(self, ms, *calls):
        for call in calls:
            struct.pack_into("<i", self.memory, 32 + 4 * self.CALLS.index(call), ms)

    def count(self, call):
        return struct.unpack_from("<Q", self.memory, 64 + 8 * self.CALLS.index(call))[0]

    def more(self, times, *calls):
        """Returns once so many more of these calls were made."""
        def count():
            return sum(map(self.count, calls))
        before = count()
        until(lambda: count() >= before + times, f"{times} more {calls}")

    def move(self, realtime_s=0, boottime_s=0):
        struct.pack_into("<qq", self.memory, 128, int(realtime_s * 10**9), int(boottime_s * 10**9))

    def wait(self, seconds):
        """So much time passes at once, on all clocks but the processor's counter
        (distrust_counter)."""
        self.waited += seconds
        self.move(realtime_s=self.waited, boottime_s=self.waited)
        struct.pack_into("<q", self.memory, 216, int(self.waited * 10**9))

    def looked(self):
        """Returns when the engine's supply thread has seen the current clocks and acted on them:
        the second pass to end from now on began after this call. With the coarse clock, one that
        began a tick later."""
        def passes():
            return struct.unpack_from("<Q", self.memory, 160)[0]
        for _ in range(2):
            before = passes()
            until(lambda: passes() >= before + 2, "the engine looks at its clocks")
            time.sleep(0.01)  # a tick of the coarse clock, which has one pair

    def only(self, *parts):
        """Calls fail and wait only on paths that contain one of these two parts; none: on all."""
        words = [part.encode() for part in parts] + [b"", b""]
        struct.pack_into("<24s24s", self.memory, 168, words[0], words[1])

    def pretend(self, file_system):
        struct.pack_into("<q", self.memory, 144, file_system)

    def distrust_counter(self):
        struct.pack_into("<i", self.memory, 152, 1)


class Host:
    """One run of host.c on a store."""

    def __init__(self, program, store, words=None, interposer=None, environment=None, before=()):
        environ = {k: v for k, v in os.environ.items() if not k.startswith("CORDWOOD_")}
        environ.update(environment or {})
        self.store = store
        if words:
            environ.update(LD_PRELOAD=str(interposer), DISK_WORDS=str(words.path),
                           DISK_STORE=str(store))
        self.process = subprocess.Popen(
            [*before, program, store], stdin=subprocess.PIPE, env=environ,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def tell(self, *command):
        self.process.stdin.write(" ".join(str(word) for word in command) + "\n")
        self.process.stdin.flush()

    def answer(self):
        def hangs():
            self.hung = True
            self.process.kill()
        self.hung = False
        timer = threading.Timer(SECONDS_MAX, hangs)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            code = self.process.wait()
            raise Failed("the host hangs" if self.hung else f"the host is dead: exit {code}, "
                         + self.process.stderr.read()[-500:])
        return line.strip()

    def ask(self, *command):
        try:
            self.tell(*command)
        except BrokenPipeError:
            pass
        return self.answer()

    def numbers(self, *command):
        return [int(word) for word in self.ask(*command).split()]

    def open(self, wanted=OK, **options):
        equal("cw_open", int(self.ask("open", *(f"{k}={int(v)}" for k, v in options.items()))),
              wanted)
        return self

    def write(self, count, size=0):
        names = ["kept", "refused", "other", "ns", "longest_ns"]
        return dict(zip(names, self.numbers("write", count, size)))

    def totals(self):
        names = ["sent", "kept", "refused", "other", "status", "dropped", "written", "archives",
                 "removed", "sealed", "runs"]
        return dict(zip(names, self.numbers("totals")))

    @contextlib.contextmanager
    def writing(self, threads, size):
        """So many threads log at full rate during the body. No call may take ten seconds."""
        self.numbers("threads", threads, SECONDS_MAX * 1000, size)
        yield
        longest = int(self.ask("stop")) / 1e9
        holds(longest < 10, f"a call took {longest:.1f} s")

    def grows(self, what, more=1):
        """Returns once one of these totals has grown by so much."""
        before = self.totals()[what]
        until(lambda: self.totals()[what] >= before + more, f"{more} more {what}")

    def words(self):
        return self.ask("words")

    def causes(self):
        """Refusals by cause, without zeros."""
        return {cause: n for cause, n in zip(CAUSES, self.numbers("causes")) if n > 0}

    def gaps(self):
        """The causes that gap records name, one set per record."""
        return [set(words.split()) for words in self.ask("gaps").split(",") if words]

    def read(self):
        names = ["status", "logs", "gaps", "missing", "bad", "damaged"]
        return dict(zip(names, self.numbers("read")))

    def close(self, wanted=OK):
        equal("cw_close", int(self.ask("close", 60000)), wanted)

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=SECONDS_MAX)
        equal("the host's exit", code, 0)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def removed(self):
        pairs = [word.rsplit("=", 1) for word in self.ask("removed").split()]
        return [(name, REASONS.get(int(reason), reason)) for name, reason in pairs]


def exact(host, threads=1, closes=True, cause=None):
    """sent = read + dropped, in stats and on the disk. Each refusal is in a gap record, each run of
    refusals of one thread in one of its own. Several threads may share one. If there is only one
    cause, stats and gap records name it and no other."""
    total = host.totals()
    if cause and total["refused"]:
        equal("refusals by cause", host.causes(), {cause: total["refused"]})
    equal("answers other than OK and FULL", total["other"], 0)
    if total["status"] == OK:
        equal("records_dropped", total["dropped"], total["refused"])
    if closes:
        host.close()
    read = host.read()
    equal("status of the reader", read["status"], OK)
    equal("records read", read["logs"], total["kept"])
    equal("records missing by gap records", read["missing"], total["refused"])
    equal("sent", total["sent"], read["logs"] + read["missing"])
    equal("out of order or twice", read["bad"], 0)
    equal("damaged places", read["damaged"], 0)
    if threads == 1:
        equal("gap records", read["gaps"], total["runs"])
    else:
        holds(read["gaps"] <= total["runs"], f"{read['gaps']} gap records of {total['runs']} gaps")
    if cause and read["gaps"]:
        equal("causes in gap records", host.gaps(), [{cause}] * read["gaps"])
        told = subprocess.run([TOOL, "stats", "--json", host.store], check=True,
                              stdout=subprocess.PIPE)
        told = json.loads(told.stdout)
        equal("cordwood stats", (told["not_kept"], told["not_kept_causes"]),
              (total["refused"], [cause]))
    return total, read


class Place:
    """A case's directory, and what it mounted and started there."""

    def __init__(self, directory, programs, seed):
        self.directory, self.programs = directory, programs
        self.seed = seed
        self.mounts, self.hosts, self.notes = [], [], []

    def host(self, store, words=None, environment=None, before=()):
        """`before`: the words of a command that starts it."""
        program, interposer = self.programs
        host = Host(program, store, words, interposer, environment, before)
        self.hosts.append(host)
        return host

    def words(self):
        return Words(self.directory / "words")

    def note(self, text):
        self.notes.append(text)

    def mount(self, *arguments):
        point = self.directory / f"mount{len(self.mounts)}"
        point.mkdir()
        if os.geteuid() != 0:
            raise Skipped("mounting needs root")
        done = subprocess.run(["mount", *arguments, point], capture_output=True, check=False)
        if done.returncode != 0:
            raise Skipped("mount: " + done.stderr.decode(errors="replace").strip())
        self.mounts.append(point)
        return point

    def tmpfs(self, mebibytes):
        return self.mount("-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs")

    def ext4(self, mebibytes, options="loop"):
        image = self.directory / f"image{len(self.mounts)}"
        with open(image, "wb") as file:
            file.truncate(mebibytes << 20)
        if not shutil.which("mkfs.ext4"):
            raise Skipped("no mkfs.ext4")
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True, capture_output=True)
        return self.mount("-o", options, image)

    def clean(self):
        for host in self.hosts:
            if host.process.poll() is None:
                host.kill()
        for point in reversed(self.mounts):
            # Lazily only if something still uses it: the loop device goes with the last user.
            if subprocess.run(["umount", point], capture_output=True, check=False).returncode:
                subprocess.run(["umount", "-l", point], capture_output=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def ballast(directory, keep, name="ballast"):
    """Fills a file system except for `keep` bytes. Returns the file that does so."""
    path = directory / name
    with open(path, "wb") as file:
        for _ in range(1000):
            status = os.statvfs(directory)
            room = status.f_bavail * status.f_frsize - keep
            try:
                if room > 0:
                    held = os.fstat(file.fileno()).st_blocks * 512
                    os.posix_fallocate(file.fileno(), 0, held + room)
                return path
            except OSError as problem:
                # An engine took some of the room after the measurement.
                if problem.errno != errno.ENOSPC:
                    raise
    raise AssertionError(f"{directory} could not be filled")


def disk_bytes(store):
    """The disk space of the store's files now, by inode. A file that vanishes meanwhile is omitted,
    a renamed one counts once."""
    sizes = {}
    for folder, _, names in os.walk(store):
        for name in names:
            try:
                status = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            sizes[status.st_ino] = status.st_blocks * 512
    return sizes
