#!/usr/bin/env python3
"""Stores made by an attacker, and what the engine exposes to its surroundings:

    hostile.py [--size S] [-k PATTERN …] [CASE …]

Every run is bounded in time and memory, ends by itself and not by a signal, and leaves the targets
of links alone. The last line counts."""

import json
import os
import pty
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Fuzz"), str(HERE.parent / "TestSupport")]

import cases  # noqa: E402
import cuts  # noqa: E402
import makers  # noqa: E402
import seeds  # noqa: E402
import strangers  # noqa: E402
from cases import Failed, full, sized  # noqa: E402
from harness import CORDWOOD, LIBRARY, run, tool  # noqa: E402


class Suite:
    def __init__(self, folder):
        self.folder = folder
        self.host = folder / "host"
        self.opens = folder / "opens.so"
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra",
                        "-Werror", f"-I{ROOT}/include", HERE / "host.c", "-o", self.host,
                        f"-L{LIBRARY}", "-lcordwood", "-lpthread", f"-Wl,-rpath,{LIBRARY}"],
                       check=True)
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-Wall",
                        "-Wextra", "-Werror", HERE / "opens.c", "-o", self.opens, "-ldl"],
                       check=True)
        self.seed = seeds.build(LIBRARY, folder)

    def store(self, name, how="rolled"):
        """A store left by a writer: a dead lane with a journal, a segment, an archive."""
        path = self.folder / name
        run(self.seed, path, "0", how, codes=(0,))
        if how == "rolled":
            run(self.seed, path, "0", "flushed", codes=(0,))
        return path

    def readers(self, store, **limits):
        """Every verb that reads, each within its limits."""
        for verb in (["cat", store], ["cat", "--json", store], ["stats", store],
                     ["verify", store], ["target", store, "list"], ["tail", store, "-n", "5"],
                     ["http", store], ["http", "--har", store]):
            tool(*verb, **limits)

    def everybody(self, store, **limits):
        """Everything that opens stores. What changes them comes last."""
        self.readers(store, **limits)
        run(self.host, "log", store, codes=(0,), **limits)
        tool("archive", store, **limits)
        tool("upload", store, "--to", "http://127.0.0.1:1", "--timeout", "2", codes=range(8))
        tool("consent", store, "denied", codes=range(8))
        self.readers(store, **limits)
        self.collect(store)

    def collect(self, store):
        """A collector on it: starts or says why not, and ends when asked."""
        process = subprocess.Popen([CORDWOOD, "collect", "--directory", store, "--listen",
                                    "127.0.0.1:0"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        try:
            line = process.stdout.readline()
            process.terminate()
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failed("collect does not end") from None
        finally:
            process.stdout.close()
        if code not in (0, 4, 5):
            raise Failed(f"collect ends with {code}: {line!r}")


# ── Names that are no files ──

def members(store):
    """A file of each sort, and names that do not exist yet."""
    lanes = store / "lanes"
    found = {"store": store / "store", "new store": store / ".store.new",
             "collector": store / ".collector", "new target": store / "targets/.new",
             "target": store / "targets/nobody"}
    found["lane"] = next(lanes.glob("*.lane"))
    for sort, rest in (("segment", "00000001-0001.seg"), ("sealed", "00000009-0001.sealed"),
                       ("catalog", "catalog-1"), ("journal", "journal")):
        found[sort] = found["lane"].with_suffix("." + rest)
    found["archive"] = next((store / "archives").glob("*.cwa"))
    found["state"] = store / "queue" / f"{found['archive'].stem}@nobody.sent-200"
    return found


def special_files(suite):
    victim = suite.folder / "victim"
    victim.write_bytes(b"nobody's business\n" * 500)
    victim.chmod(0o640)
    before = victim.read_bytes()
    model = suite.store("model")
    (model / "targets").mkdir(exist_ok=True)
    (model / "queue").mkdir(exist_ok=True)
    kinds = ["fifo", "directory", "nothing", "zero", str(victim)]
    if os.geteuid() == 0:
        kinds.append("device")
    sorts = members(model)
    count = 0
    for number, kind in enumerate(kinds):
        # Each sort alone would need hundreds of runs: three stores per kind, each with a third.
        for part in range(3):
            store = suite.folder / f"special-{number}-{part}"
            shutil.copytree(model, store, symlinks=True)
            for index, sort in enumerate(sorted(sorts)):
                if index % 3 != part:
                    continue
                makers.special(store / sorts[sort].relative_to(model), kind)
                count += 1
            suite.everybody(store, seconds=20, megabytes=256)
            if victim.read_bytes() != before or victim.stat().st_mode & 0o7777 != 0o640:
                raise Failed(f"the file that a link leads to was changed: {kind}, {part}")
            shutil.rmtree(store)
    return f"{count} files replaced"


def linked_directories(suite):
    """lanes, archives, targets, queue link elsewhere: nothing is made or removed there."""
    for name in ("lanes", "archives", "targets", "queue"):
        store = suite.store(f"linked-{name}")
        other = suite.store(f"other-{name}")
        for folder in ("targets", "queue"):
            (store / folder).mkdir(exist_ok=True)
            (other / folder).mkdir(exist_ok=True)
        (other / "targets/nobody").write_text("cordwood target\nname nobody\n")
        (other / "queue/x@nobody.sent-200").touch()
        before = sorted((p.name, p.stat().st_size, p.stat().st_mtime_ns)
                        for p in (other / name).iterdir())
        shutil.rmtree(store / name)
        (store / name).symlink_to(other / name)
        suite.everybody(store, seconds=20)
        after = sorted((p.name, p.stat().st_size, p.stat().st_mtime_ns)
                       for p in (other / name).iterdir())
        if before != after:
            raise Failed(f"{name}: {before} became {after}")


def linked_root(suite):
    """The store's own directory is a link, like /var/log/app to a larger disk: everything works."""
    real = suite.folder / "elsewhere/data"
    for number, target in enumerate(("elsewhere/data", str(real), "link-0")):
        link = suite.folder / f"link-{number}"
        real.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        run(suite.seed, link, "0", "rolled", codes=(0,))
        run(suite.seed, link, "0", "flushed", codes=(0,))
        run(suite.host, "log", link, codes=(0,))
        if not link.is_symlink() or not (real / "store").is_file():
            raise Failed(f"{link} is no link any more, or no store was made behind it")
        for verb in ("verify", "stats"):
            tool(verb, link, codes=(0,))
        for verb in (["consent", link, "granted"], ["target", link, "list"], ["archive", link],
                     ["verify", link], ["tail", "-n", "3", link]):
            tool(*verb, codes=(0,))
        lines = tool("cat", "--json", link, codes=(0,)).text
        if lines.count("\n") < 3 or lines != tool("cat", "--json", real, codes=(0,)).text:
            raise Failed(f"{lines.count(chr(10))} lines by the link, others behind it")
        if not list((real / "archives").glob("*.cwa")) or list((real / "lanes").glob("*.seg")):
            raise Failed("archive did not work by the link")
        suite.everybody(link)
        shutil.rmtree(real)
    # Nothing is made behind a dangling link.
    for command in ([suite.seed, link, "0", "rolled"], [CORDWOOD, "consent", link, "granted"]):
        if run(*command).code == 0:
            raise Failed("a link to nothing is taken for a store")
    if real.exists():
        raise Failed("a directory was made behind a link to nothing")


def numbers(suite):
    """Segment numbers at the ends of their range."""
    store = makers.store(suite.folder / "numbers")
    makers.lane(store, boot=b"B" * 16)
    body = makers.record(b"far away")
    for number in (2**63, 2**64 - 1):
        with open(makers.segment_path(store, number), "wb") as file:
            file.write(makers.segment_header(number, b"B" * 16, 8192))
            file.write(makers.chunk_header(4096, 4096, 128 + len(body), 1) + body)
            file.truncate(8192)
    suite.everybody(store)


# ── More than there is ──

@full
def large_records(suite):
    """Segments whose only record is a quarter of a gigabyte of holes, all with the same time: more
    than the allowed memory."""
    store = makers.store(suite.folder / "large")
    makers.lane(store)
    makers.sparse_segments(store, sized(8, 8, 32), 256 << 20)
    done = tool("verify", store, megabytes=1200)
    archived = tool("archive", store, megabytes=1500)
    return f"verify {done.megabytes} MiB, {done.seconds:.1f} s; archive {archived.megabytes} MiB"


def unknown_names(suite):
    """60,000 chunks whose record names a logger that is not in 8 MiB of catalogs."""
    store = makers.store(suite.folder / "unknown")
    makers.lane(store)
    makers.many_chunks(store, 1, 60_000)
    makers.catalogs(store, 8, 1 << 20)
    done = tool("verify", store, seconds=60, megabytes=400)
    return f"{done.seconds:.1f} s, {done.megabytes} MiB"


def long_catalogs(suite):
    """63 growth files of 256 MiB of holes; a list of 200,000 attributes."""
    store = makers.store(suite.folder / "catalogs")
    names = b"".join(makers.catalog_entry(3, 0, b"\x06%06d\x01x" % n) for n in range(100_000))
    makers.lane(store)
    makers.catalogs(store, 1, 1 << 24, names)
    done = tool("verify", store, seconds=60, megabytes=400)
    makers.catalogs(store, 63, 256 << 20)
    holes = tool("verify", store, seconds=100, megabytes=700)
    return f"{done.seconds:.1f} s, holes {holes.seconds:.1f} s, {holes.megabytes} MiB"


def long_journal(suite):
    """From another boot: 60,000 frames over 3,000 chunks that exist only in the journal."""
    store = makers.store(suite.folder / "journal")
    makers.lane(store, boot=b"B" * 16)
    makers.journal(store, 60_000, 3_000)
    done = tool("verify", store, seconds=60, megabytes=400)
    return f"{done.seconds:.1f} s, {done.megabytes} MiB"


def inflating_archives(suite):
    """Blocks that inflate 20,000-fold in each codec, and one of few bytes whose records share a
    long message; whole and broken."""
    blocks = [makers.inflating(1, 44 << 20, "zstd"), makers.inflating(1, 44 << 20, "lz4"),
              makers.inflating(43, 1 << 20, "zstd")]
    store = makers.store(suite.folder / "bombs")
    makers.archive(store, blocks * 20)
    told = []
    for verb in (["verify", store], ["cat", "--level", "fatal", store]):
        done = tool(*verb, seconds=100, megabytes=400)
        told.append(f"{verb[0]} {done.seconds:.1f} s, {done.megabytes} MiB")
    # More than declared, less than declared, and a size that no block has.
    for of, (stored, whole, codec, records) in enumerate(blocks):
        for size in (64 * records + 1000, whole - 1, whole + 5, 1 << 40, 2**64 - 1):
            other = makers.store(suite.folder / f"bomb-{of}-{size}")
            makers.archive(other, [(stored, size, codec, records)])
            tool("verify", other, seconds=20, megabytes=300, codes=(3,))
    return "; ".join(told)


@full
def junk(suite):
    """10,000 names in lanes/, a tenth as many in archives/ and queue/."""
    store = suite.store("junk")
    (store / "queue").mkdir(exist_ok=True)
    for number in range(10_000):
        name = (f"junk{number}", f"x{number}.lane", f".hidden{number}",
                f"{makers.LANE[:-6]}{number:06}.{number:08}-0001.seg")[number % 4]
        (store / "lanes" / name).touch()
        if number % 10 == 0:
            (store / "archives" / f"junk{number}.cwa").touch()
            (store / "queue" / f"junk{number}@t{number}.sent-200").touch()
    told = []
    for verb in ("verify", "stats", "cat"):
        done = tool(verb, store, seconds=100, megabytes=500)
        told.append(f"{verb} {done.seconds:.1f} s, {done.megabytes} MiB")
    done = run(suite.host, "log", store, seconds=100, megabytes=500, codes=(0,))
    told.append(f"host {done.seconds:.1f} s, {done.megabytes} MiB")
    return "; ".join(told)


# ── Names and words that are orders ──

ESCAPE = "\x1b]0;pwned\x07\x1b[2J\u009b31m\u2028\u202e\nlane fake: live\n"
FORGED = "2026-01-01 00:00:00.000+00:00 FATAL init[1:1] auth: forged"
# A supposed login name; and bytes that a Latin-1 terminal obeys.
MESSAGE = f"who{ESCAPE}\r{FORGED}\n{FORGED}\n\ttail\u2066\x7f".encode() + b" \x9b2J \xff\n"
RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+Z-]")
# What output must never contain: controls except tab and newline, and bidi controls.
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escapes_store(suite, name):
    """Escapes and forged lines in a message, in names of lane, process, archive and target."""
    store = makers.store(suite.folder / name)
    makers.lane(store, name=f"evil{ESCAPE}".replace("/", "_"))
    path = makers.lane(store)
    data = bytearray(path.read_bytes())
    body = makers.record(MESSAGE)
    data[20480:20480 + 128] = makers.chunk_header(4096, 1024, 128 + len(body), 1)
    data[20608:20608 + len(body)] = body
    text = ESCAPE.encode()
    data[152:154] = len(text).to_bytes(2, "little")
    data[160:160 + len(text)] = text
    path.write_bytes(data)
    (store / "archives" / f"broken{ESCAPE}.cwa").write_bytes(b"junk")
    (store / "targets" / "t").write_text(f"cordwood target\nname {ESCAPE}")
    return store


def harmless(verb, shown):
    """Valid UTF-8 without control characters or forged lines."""
    text = shown.replace(b"\r\n", b"\n").decode()
    text = re.sub("\x1b\\[(?:0|2|3[1236]|1;31)m", "", text)  # colours
    if OBEYED.search(text):
        raise Failed(f"{verb} shows {text[:500]!r}")
    if re.search(r"^lane fake", text, re.M):
        raise Failed(f"{verb}: a line was forged: {text!r}")
    return text


def terminal(suite):
    """Escapes in messages, fields, file and process names reach no terminal and no pipe, and forge
    no line. --raw-control prints the bytes."""
    store = escapes_store(suite, "escapes")
    broken = next((store / "archives").iterdir())
    for verb in (["cat", store], ["tail", store], ["verify", store], ["stats", store],
                 ["target", store, "list"], ["grep", "who", store], ["verify", broken],
                 ["export", store, "--format", "text"], ["cat", "--json", store],
                 ["export", store, "--format", "sap"], ["export", store, "--format", "csv"]):
        harmless(verb, on_terminal([CORDWOOD, *verb]))
    records = 2
    for verb in (["cat", store], ["tail", store], ["export", store, "--format", "text"],
                 ["grep", "", store], ["verify", store], ["verify", broken], ["stats", store],
                 ["target", store, "list"]):
        done = subprocess.run([CORDWOOD, *verb], capture_output=True, check=False)
        harmless(verb, done.stderr)
        lines = harmless(verb, done.stdout).splitlines()
        if verb[0] not in ("cat", "tail", "export", "grep"):
            continue
        starts = [line for line in lines if RECORD.match(line)]
        others = [line for line in lines if not RECORD.match(line) and line[:6] != "    | "]
        if len(starts) != records or others or len(lines) != records + 4:
            raise Failed(f"{verb} to a pipe: {records} records, {lines}")
        if any(FORGED in line[:len(FORGED)] for line in lines):
            raise Failed(f"{verb}: a record was forged: {lines}")
    for verb in (["cat", "--raw-control"], ["export", "--format", "raw"], ["grep", "who",
                 "--raw-control"], ["tail", "--raw-control"]):
        done = subprocess.run([CORDWOOD, *verb, store], capture_output=True, check=False)
        if MESSAGE not in done.stdout:
            raise Failed(f"{verb}: not byte for byte: {done.stdout!r}")
        if MESSAGE not in on_terminal([CORDWOOD, *verb, store]).replace(b"\r\n", b"\n"):
            raise Failed(f"{verb} on a terminal: not byte for byte")


def unclean(suite):
    """Lanes of killed processes are named, counted beyond twenty, and not called damage."""
    store = makers.store(suite.folder / "unclean")
    for number in range(25):
        path = makers.lane(store, name=f"lane-{number:02}")
        data = bytearray(path.read_bytes())
        data[576:580] = bytes(4)  # closed
        path.write_bytes(data)
    done = tool("stats", store, codes=(0,))
    if ("25 ended without closing)" not in done.text or "  and 5 more" not in done.text
            or [done.text.count(f"  lane-{number:02}, ") for number in range(25)]
            != [1] * 20 + [0] * 5 or "damage" in done.text):
        raise Failed(f"stats: {done.text}")
    facts = json.loads(tool("stats", "--json", store, codes=(0,)).text)
    if facts["lanes_unclean"] != 25 or len(facts["unclean"]) != 25:
        raise Failed(f"stats --json: {facts}")


def on_terminal(command):
    primary, secondary = pty.openpty()
    child = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                             stdout=secondary, stderr=secondary)
    os.close(secondary)
    shown = b""
    try:
        while piece := os.read(primary, 65536):
            shown += piece
    except OSError:  # the other end has closed
        pass
    os.close(primary)
    child.wait(60)
    return shown


# ── What it shows of itself ──

def modes(suite):
    """0600 and 0700 under any umask, unless the umask leaves less."""
    for mask in (0, 0o022, 0o077):
        store = suite.folder / f"modes-{mask:o}" / "deep" / "store"
        run(suite.host, "life", store, codes=(0,), preexec=lambda mask=mask: os.umask(mask))
        tool("archive", store, preexec=lambda mask=mask: os.umask(mask))
        for path in [store.parent, store, *store.rglob("*")]:
            mode = stat.S_IMODE(path.lstat().st_mode)
            if path.is_symlink():
                continue
            wanted = 0o700 if path.is_dir() else 0o600
            if mode != wanted:
                raise Failed(f"umask {mask:o}: {path} is {mode:o}")


# Paths whose last part may be a link: the store that the host names, memory (FORMAT 2), and system
# files. glibc opens those of locale and names by itself.
FOLLOWED = re.compile(r"^/(?:proc|sys|etc|usr|lib|dev/null|run)")


def opens(suite):
    """Each open in a whole life: O_CLOEXEC and O_NOFOLLOW, modes of new files."""
    store = suite.folder / "opened"
    record = suite.folder / "opens.txt"
    run(suite.host, "life", store, codes=(0,),
        environment={"LD_PRELOAD": str(suite.opens), "OPENS": str(record)})
    count = 0
    for line in record.read_text(errors="replace").splitlines():
        call, flags, mode, path = line.split(" ", 3)
        flags, mode = int(flags), int(mode, 8)
        if call == "mkdirat":
            if mode != 0o700:
                raise Failed(f"mkdirat with {mode:o}: {path}")
            continue
        if FOLLOWED.match(path):
            continue
        count += 1
        if not flags & os.O_CLOEXEC:
            raise Failed(f"{call} without O_CLOEXEC: {path}")
        if not flags & os.O_NOFOLLOW:
            raise Failed(f"{call} without O_NOFOLLOW: {path}")
        if flags & os.O_CREAT and mode != 0o600:
            raise Failed(f"{call} makes {path} with {mode:o}")
    if count < 30:
        raise Failed(f"only {count} opens were seen")
    return f"{count} opens"


def threads(suite):
    run(suite.host, "threads", suite.folder / "threads", codes=(0,))


def signals(suite):
    """The host's handler and sigwait get every signal. SIGTERM ends it."""
    done = subprocess.run([suite.host, "signals", suite.folder / "signals"], capture_output=True,
                          timeout=300, check=False)
    if done.returncode != -15:
        raise Failed(f"ends with {done.returncode}: {done.stdout.decode()}")


def steady(suite):
    """R39: at a steady rate nothing is unmapped."""
    done = run(suite.host, "steady", suite.folder / "steady", codes=(0,),
               environment={"LD_PRELOAD": str(suite.opens)})
    return done.text.strip()


def exits(suite):
    started = time.monotonic()
    for number in range(20):
        run(suite.host, "exit", suite.folder / f"exit-{number}", codes=(0,))
        tool("verify", suite.folder / f"exit-{number}", codes=(0,))
    if time.monotonic() - started > 100:
        raise Failed("20 exits took over 100 s")


def sockets(suite):
    """A UNIX socket in place of a file."""
    store = suite.store("socket")
    for sort in ("segment", "archive", "state"):
        path = members(store)[sort]
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            os.chdir(path.parent)
            server.bind(path.name[:100])
            os.chdir(ROOT)
            if path.name[100:]:
                os.rename(path.parent / path.name[:100], path)
    suite.everybody(store, seconds=20)


CASES = [special_files, linked_directories, linked_root, sockets, numbers, large_records,
         unknown_names, long_catalogs, long_journal, inflating_archives, junk, terminal, unclean,
         modes, opens, threads, signals, steady, exits, *cuts.CASES, *strangers.CASES]


def main():
    arguments = cases.parser().parse_args()
    table = cases.chosen({case.__name__: case for case in CASES}, arguments)
    with cases.folder("hostile") as directory:
        suite, run = Suite(directory), cases.Run()
        run.all(table, lambda _, case: case(suite))
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
