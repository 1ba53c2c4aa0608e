#!/usr/bin/env python3
"""Hosts that crash with cw_crash_handler_install and without it. The process must end the same way,
to the last bit of its wait status and the signal's facts in its core, and the store must hold the
record. `run.py [-k PATTERN …] [CASE …]`; the last line counts. A failed case prints the command
that runs it again."""

import json
import os
import platform
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "Oracle"))
sys.path.insert(0, str(HERE.parent / "TestSupport"))

import cases  # noqa: E402
from cases import Failed, Skipped  # noqa: E402
from cases import holds as expect  # noqa: E402
from compare import compare  # noqa: E402
from settings import forget_settings  # noqa: E402

CORDWOOD = str(ROOT / "build/bin/cordwood")
LIBRARY = ROOT / "build/lib/libcordwood.so"
SECONDS_MAX = 360
X86 = platform.machine() == "x86_64"
CORES = Path("/proc/sys/kernel/core_pattern").read_text().strip() == "core"
NULLS = {"address": "0x0000000000000010"}
ILL = "SIGILL" if X86 else "SIGTRAP"


# ── Processes ──

class Ended:
    def __init__(self, status, text, core):
        self.status, self.text, self.core = status, text, core

    def how(self):
        if os.WIFSIGNALED(self.status):
            dumped = ", core dumped" if os.WCOREDUMP(self.status) else ""
            return signal.Signals(os.WTERMSIG(self.status)).name + dumped
        return f"exit {os.WEXITSTATUS(self.status)}"


def run_process(command, folder, environment=None):
    """In its own folder, with core dumps of any size."""
    folder.mkdir()
    output = folder / "output"

    def prepare():
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    with open(output, "wb") as file:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [str(word) for word in command], cwd=folder, stdout=file, stderr=subprocess.STDOUT,
            preexec_fn=prepare, env=dict(os.environ, **(environment or {})))
    bound = time.monotonic() + SECONDS_MAX
    while True:
        pid, status = os.waitpid(process.pid, os.WNOHANG)
        if pid:
            process.returncode = 0
            break
        if time.monotonic() > bound:
            process.kill()
            process.wait()
            raise Failed(f"hangs: {output.read_text(errors='replace')[-1000:]}")
        time.sleep(0.005)
    cores = sorted(folder.glob("core*"))
    core = signal_in_core(cores[0]) if cores else None
    for path in cores:
        path.unlink()
    return Ended(status, output.read_text(errors="replace"), core)


def signal_in_core(path):
    """(signal, code, address if the kernel gives one) of NT_SIGINFO in a core file; or None."""
    with open(path, "rb") as file:
        head = file.read(64)
        offset, = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        for i in range(count):
            file.seek(offset + i * size)
            kind, _, at, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
            if kind != 4:
                continue
            file.seek(at)
            notes, here = file.read(length), 0
            while here + 12 <= len(notes):
                name, bytes_, type_ = struct.unpack_from("<III", notes, here)
                body = here + 12 + (name + 3 & ~3)
                if type_ == 0x53494749:
                    number, _, code = struct.unpack_from("<iii", notes, body)
                    address, = struct.unpack_from("<Q", notes, body + 16)
                    return number, code, address if code > 0 else 0
                here = body + (bytes_ + 3 & ~3)
    return None


# ── Records ──

def cat(store, *flags):
    done = subprocess.run([CORDWOOD, "cat", *flags, str(store)], capture_output=True, check=False)
    expect(done.returncode == 0, f"cat: exit {done.returncode}, {done.stderr.decode()[-500:]}")
    return done.stdout.decode()


def records(store):
    return [json.loads(line) for line in cat(store, "--json").splitlines()]


def crashes(store):
    return [r for r in records(store) if r["logger"] == "Cordwood.Crash"]


def messages(store):
    return [r["message"] for r in records(store) if r["logger"] == "host"]


FRAME = re.compile(r"#(\d+) (0x[0-9a-f]{16})(?: \((.+)\+(0x[0-9a-f]+)\)(?: \(BuildId: (\w+)\))?)?$")


def frames(record):
    lines = record["fields"].get("exception.stacktrace", "").split("\n")
    found = [FRAME.match(line) for line in lines if line]
    expect(all(found), f"a line of the backtrace is no frame: {lines}")
    expect([int(f[1]) for f in found] == list(range(len(found))), f"frames are missing: {lines}")
    return found


def names(record, module):
    """Functions of that module in the backtrace, found only by its offsets."""
    offsets = [f[4] for f in frames(record) if f[3] == str(module)]
    out = subprocess.run(["addr2line", "-f", "-e", str(module), *offsets], check=True, text=True,
                         stdout=subprocess.PIPE).stdout.splitlines()
    return out[::2]


def build_id(module):
    out = subprocess.run(["readelf", "-n", str(module)], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    found = re.search(r"Build ID: (\w+)", out)
    return found[1] if found else None


def check_record(record, name, code=None, fields=None):
    have = record["fields"]
    expect(record["level"] == "FATAL" and record["kind"] == "log", f"level or kind: {record}")
    expect(have["signal"] == name == have["exception.type"], f"not {name}: {have}")
    expect(have["signal_number"] == getattr(signal, name), f"signal_number: {have}")
    expect(record["message"].startswith(name), record["message"])
    expect(have["tid"] == record["tid"], f"tid: {record}")
    expect(re.fullmatch("0x[0-9a-f]{16}", have["pc"]), f"pc: {have}")
    expect(have["thread"], f"thread: {have}")
    if code is not None:
        expect(have.get("code_name") == code, f"not {code}: {have}")
    for key, value in (fields or {}).items():
        expect(have.get(key) == value, f"{key} is not {value}: {have}")
    expect(frames(record)[0][2] == have["pc"], f"the backtrace begins elsewhere: {have}")


def check_store(store):
    """Text, JSON and the oracle; live, then archived."""
    live = crashes(store)
    compare(str(store), CORDWOOD)
    text = cat(store)
    expect("FATAL" in text and live[0]["message"] in text, f"cat does not show it:\n{text}")
    subprocess.run([CORDWOOD, "archive", str(store)], check=True, stdout=subprocess.DEVNULL)
    expect(not list((store / "lanes").iterdir()), "the dead process's lane was not adopted")
    expect(crashes(store) == live, "the archive has another record")
    compare(str(store), CORDWOOD)


# ── Cases ──

class Suite:
    def __init__(self, folder):
        self.folder = folder
        self.host = folder / "host"
        self.unloaded = folder / "unloader"
        self.compile("host.c", self.host, "-rdynamic", f"-L{ROOT}/build/lib", "-lcordwood",
                     "-lpthread", f"-Wl,-rpath,{ROOT}/build/lib")
        self.compile("unloaded.c", self.unloaded, "-ldl")

    @staticmethod
    def compile(source, program, *flags):
        subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result",
                        "-Wno-infinite-recursion", "-Wno-array-bounds", "-O1", "-g",
                        "-fno-optimize-sibling-calls", f"-I{ROOT}/include", str(HERE / source),
                        "-o", str(program), *flags], check=True)

    def both(self, name, command, environment=None):
        """(store, how it ended). Without the handler it ends the same way, with the same output."""
        work = self.folder / name
        work.mkdir()
        plain = run_process(command(work / "plain-store", "plain"), work / "plain", environment)
        store = work / "crash-store"
        ours = run_process(command(store, "crash"), work / "crash", environment)
        expect(ours.status == plain.status,
               f"{ours.how()}, {plain.how()} without the handler\n{ours.text[-1000:]}")
        # Addresses of mappings made after the handler's own stacks differ.
        expect((ours.core or ())[:2] == (plain.core or ())[:2],
               f"core says {ours.core}, {plain.core} without the handler")
        expect(not (CORES and os.WCOREDUMP(ours.status)) or ours.core, "the core has no signal")
        ours.plain = plain.text
        return store, ours

    def host_case(self, name, environment=None):
        return self.both(name, lambda store, mode: [self.host, name, store, mode], environment)


def died(name, code=None, fields=None, signal_name=None, calls=(), extra=None, count=1):
    """A case of host.c that dies by that signal and leaves a crash record."""
    def body(suite):
        store, ended = suite.host_case(name)
        expect(os.WIFSIGNALED(ended.status), f"{ended.how()}: {ended.text[-1000:]}")
        expect(signal.Signals(os.WTERMSIG(ended.status)).name == signal_name, ended.how())
        found = crashes(store)
        expect(len(found) == count or count is None and found,
               f"{len(found)} records, {count} expected")
        for record in found:
            check_record(record, signal_name, code, fields)
        address = found[-1]["fields"].get("address")
        expect(not (ended.core and address) or int(address, 16) == ended.core[2],
               f"the core says {ended.core}, the record {address}")
        expect("before" in messages(store), "the record before is lost")
        known = names(found[0], suite.host)
        for call in calls:
            expect(call in known, f"{call} is not in the backtrace: {known}")
        if extra:
            extra(suite, store, ended, found)
        check_store(store)
    return body


def check_modules(suite, _store, _ended, found):
    own = build_id(suite.host)
    ids = {f[3]: f[5] for f in frames(found[0])}
    expect(own is None or ids[str(suite.host)] == own, f"build ids: {ids}")


def check_storm(_suite, store, ended, _found):
    told = [int(word) for word in ended.text.split() if word.isdigit()]
    own = [int(m[4:]) for m in messages(store) if m.startswith("own")]
    expect(own == list(range(len(own))) and len(own) > told[-1], f"{len(own)} of {told[-1]}")
    alarms = sum(m == "alarm" for m in messages(store))
    expect(alarms >= 50, f"{alarms} records of handlers")


def check_child(suite, store, ended, found):
    pid, status = map(int, re.search(r"child (\d+) (-?\d+)", ended.text).groups())
    _, plain = map(int, re.search(r"child (\d+) (-?\d+)", ended.plain).groups())
    expect(status == plain, f"the child ends with {status}, {plain} without the handler")
    expect([r["pid"] for r in found] == [pid], f"not {pid}: {found}")
    expect("after" in messages(store), "the parent's record is lost")
    del suite


def lived(name, check):
    def body(suite):
        store, ended = suite.host_case(name)
        check(suite, store, ended, crashes(store))
    return body


def exits(code):
    def check(_suite, _store, ended, _found):
        expect(os.WIFEXITED(ended.status) and os.WEXITSTATUS(ended.status) == code,
               f"{ended.how()}: {ended.text[-1000:]}")
    return check


def with_records(count, more=None, code=0):
    def check(suite, store, ended, found):
        exits(code)(suite, store, ended, found)
        expect(len(found) == count, f"{len(found)} records, {count} expected")
        for record in found:
            check_record(record, "SIGSEGV")
        if more:
            more(suite, store, ended, found)
    return check


def goes_on(_suite, store, _ended, _found):
    expect(messages(store)[-1] == "after", "what was logged behind the fault is lost")


def in_heap(_suite, store, _ended, _found):
    expect(messages(store) == ["before", "handler", "thread"], f"{messages(store)}")


def no_record(suite, store, ended, found):
    del suite, store
    expect(not found, f"{len(found)} records, none expected")
    expect(os.WIFSIGNALED(ended.status), ended.how())


def handler_before(_suite, _store, ended, found):
    expect(ended.text.startswith("handler 11 1 0x10"), ended.text)
    check_record(found[0], "SIGSEGV", "SEGV_MAPERR", NULLS)


def two_engines(_suite, store, _ended, found):
    second = crashes(Path(f"{store}-second"))
    expect(len(second) == 1 and second[0]["message"] == found[0]["message"], f"second: {second}")


def nested(_suite, store, ended, found):
    exits(0)(None, None, ended, found)
    sent = list(map(int, re.search(r"sent (\d+) (\d+) (\d+)", ended.text).groups()))
    seen = [[], [], []]
    for message in messages(store):
        if message != "before":
            writer, number, _ = map(int, message.split())
            seen[writer].append(number)
    expect(seen[0] == list(range(sent[0])), "the thread's own records are not in order")
    for writer in (1, 2):
        lost = sorted(set(range(sent[writer])) - set(seen[writer]))
        expect(not lost, f"writer {writer}: {lost[:9]} of {sent[writer]} are lost")
        twice = sorted(number for number, count in Counter(seen[writer]).items() if count > 1)
        expect(not twice, f"writer {writer}: {twice[:9]} are there twice")
        expect(len(seen[writer]) == sent[writer], f"writer {writer}: more than {sent[writer]}")


def grandchild(_suite, store, ended, found):
    exits(0)(None, None, ended, found)
    expect(len(found) == 2 and len({r["pid"] for r in found}) == 2, f"{found}")
    expect("child" in messages(store), "the child's record is lost")


def unloaded(suite):
    store, ended = suite.both(
        "unloaded", lambda store, mode: [suite.unloaded, LIBRARY, store, mode])
    expect(os.WIFSIGNALED(ended.status), f"{ended.how()}: {ended.text}")
    check_record(crashes(store)[0], "SIGSEGV", "SEGV_MAPERR", NULLS)


def swift_trap(suite):
    if not shutil.which("swiftc"):
        raise Skipped("no swiftc")
    program = suite.folder / "trap"
    subprocess.run(["swiftc", "-O", "-g", "-I", str(ROOT / "include/cordwood"),
                    str(HERE / "trap.swift"), "-L", str(ROOT / "build/lib"), "-lcordwood",
                    "-Xlinker", "-rpath", "-Xlinker", str(ROOT / "build/lib"), "-o",
                    str(program)], check=True, stdout=subprocess.DEVNULL)
    # Its own backtracer would get the signals first.
    store, ended = suite.both(
        "swift_trap", lambda store, mode: [program, store, mode], {"SWIFT_BACKTRACE": "enable=no"})
    expect(os.WIFSIGNALED(ended.status), f"{ended.how()}: {ended.text}")
    record = crashes(store)[0]
    check_record(record, ILL)
    known = names(record, program)
    expect(any("takeBeyond" in name for name in known), f"the backtrace: {known}")
    check_store(store)


def python(when):
    def body(suite):
        store, ended = suite.both(
            f"python_{when}",
            lambda store, mode: [sys.executable, HERE / "python_host.py", store, mode, when],
            {"PYTHONPATH": str(ROOT / "bindings/python/src"), "CORDWOOD_LIBRARY": str(LIBRARY)})
        expect(os.WIFSIGNALED(ended.status), f"{ended.how()}: {ended.text}")
        found = crashes(store)
        expect(len(found) == 1, f"{len(found)} records: {ended.text}")
        # faulthandler calls the earlier handler by raising the signal again.
        check_record(found[0], "SIGSEGV", "SI_TKILL" if when == "after" else "SEGV_MAPERR")
        shown = "string_at" in ended.text and "Segmentation fault" in ended.text
        expect(shown == (when != "never"), f"faulthandler says: {ended.text}")
    return body


SEGV = {"signal_name": "SIGSEGV", "code": "SEGV_MAPERR"}
HEAP = {**SEGV, "fields": NULLS, "calls": ["read_null", "enter_heap", "crash_in_heap"]}
OVERFLOW = {"signal_name": "SIGSEGV", "calls": ["deeper"]}
CASES = {
    "segv": died("segv", fields=NULLS, calls=["read_null", "case_segv", "main"],
                 extra=check_modules, **SEGV),
    "null_call": died("null_call", fields={"pc": "0x" + "0" * 16},
                      calls=["call_null", "case_null_call", "main"], **SEGV),
    "bus": died("bus", "BUS_ADRERR", signal_name="SIGBUS", calls=["case_bus"]),
    "ill": died("ill", signal_name=ILL, calls=["trap", "case_ill"]),
    "fpe": died("fpe", "FPE_INTDIV", signal_name="SIGFPE", calls=["case_fpe"]),
    "abort": died("abort", "SI_TKILL", signal_name="SIGABRT", calls=["case_abort", "main"]),
    "trap": died("trap", signal_name="SIGTRAP", calls=["case_trap"]),
    "sys": died("sys", "SYS_SECCOMP", signal_name="SIGSYS", calls=["case_sys"]),
    "sent": died("sent", "SI_USER", signal_name="SIGSEGV", calls=["case_sent"]),
    "overflow_main": died("overflow_main", **OVERFLOW),
    "overflow_thread": died("overflow_thread", **OVERFLOW),
    "overflow_late": died("overflow_late", **OVERFLOW),
    "small_stack": died("small_stack", fields=NULLS, calls=["read_null"], **SEGV),
    "wild_stack": died("wild_stack", signal_name=ILL),
    "malloc": died("malloc", **HEAP),
    "malloc_thread": died("malloc_thread", **HEAP),
    "malloc_child": lived("malloc_child", lambda *all_: (exits(0)(*all_), check_child(*all_))),
    "malloc_handler": lived("malloc_handler", with_records(0, in_heap)),
    "append": died("append", fields=NULLS, calls=["case_append"], **SEGV),
    "storm": cases.full(died("storm", fields=NULLS, calls=["storm"], extra=check_storm, **SEGV)),
    "console": died("console", **HEAP),
    "together": died("together", count=None, **SEGV),
    "handler_before": lived("handler_before", with_records(1, handler_before, code=42)),
    "handler_after": died("handler_after", fields=NULLS, **SEGV),
    "handler_jumps": lived("handler_jumps", with_records(64, goes_on)),
    "handler_mends": lived("handler_mends", with_records(1, goes_on)),
    "handler_once": died("handler_once", signal_name="SIGSEGV", count=2),
    "ignored": lived("ignored", with_records(0, goes_on)),
    "ignored_fault": died("ignored_fault", fields=NULLS, **SEGV),
    "two_engines": died("two_engines", fields=NULLS, extra=two_engines, **SEGV),
    "closed": lived("closed", no_record),
    "reopened": died("reopened", fields=NULLS, **SEGV),
    "child": lived("child", lambda *all_: (exits(0)(*all_), check_child(*all_))),
    "grandchild": lived("grandchild", grandchild),
    "off": lived("off", no_record),
    "unloaded": unloaded,
    "bad_arguments": lived("bad_arguments", exits(0)),
    "threads_end": lived("threads_end", exits(0)),
    "threads_reaped": cases.full(lived("threads_reaped", exits(0))),
    "nested": cases.full(lived("nested", nested)),
    "memory_of_rules": lived("memory_of_rules", exits(0)),
    "memory_of_texts": lived("memory_of_texts", exits(0)),
    "swift_trap": swift_trap,
    "python_never": python("never"),
    "python_before": python("before"),
    "python_after": python("after"),
}


def main():
    table = cases.chosen(CASES, cases.parser().parse_args())
    forget_settings()
    run = cases.Run()
    with cases.folder("signals") as folder:
        suite = Suite(folder)

        def one(name, case):
            try:
                case(suite)
            finally:
                shutil.rmtree(folder / name, ignore_errors=True)
        run.all(table, one, jobs=2)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
