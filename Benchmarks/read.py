"""Reads a store back: its end, a word in it, its errors, its statistics, all of it, and a Python
loop; compared with zstdcat and grep, and rg -z, over the same lines. The store is made once by seed
(read.c) and kept in build/bench. Another one has a thousand archives that all overlap in time
(many.c). A third is a collector's folder of a thousand devices (devices.c). Counts gate: bytes that
a verb reads, its memory, its instructions on a small store, what it inflates of dense blocks, and
the cost of opening many archives. Times inform."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from house import C, CORDWOOD, HERE, OURS, ROOT, output

SEED = 20261125
NEEDLE, ABSENT, DIGITS = "needle 7f3a", "nowhere in it", "4242"
VERBS = {
    # First with nothing remembered of the store, then with what the first run remembered.
    "tail -n 50": ["tail", "-n", "50"],
    "tail -n 50 again": ["tail", "-n", "50"],
    "grep a needle": ["grep", "-F", NEEDLE],
    "grep an absent word": ["grep", "-F", ABSENT],
    # Most numbers are arguments: they are searched without making the texts.
    "grep -c of digits": ["grep", "-c", "-F", DIGITS],
    # Warnings are read from every block, errors only from the extracts.
    "--level warn": ["cat", "--level", "warn"],
    "--level error": ["cat", "--level", "error"],
    "stats": ["stats"],
    "cat": ["cat"],
    "cat --json": ["cat", "--json"],
    "export --format csv": ["export", "--format", "csv"],
    "cat of 8 copies": ["cat"],
}
# Verbs that get the same store several times: each time stamp occurs as often.
COPIES = {"cat of 8 copies": 8}
# Over a store whose blocks are dense if the engine had the time.
DENSE_VERBS = ["tail -n 50", "tail -n 50 again", "grep a needle", "grep an absent word",
               "--level warn", "--level error", "stats", "cat"]
# A Python loop over a store: three attributes of each record.
PYTHON = """
import sys, cordwood
def main():
    count = 0
    for record in cordwood.read(sys.argv[1]):
        record.time, record.logger, record.message
        count += 1
    print(f"{cordwood.accelerated} {count}")
main()
"""
# Overlapping archives, and the records of each.
LANES, OF_EACH = 1_000, 2_000
MANY_VERBS = {
    "tail -n 50": ["tail", "-n", "50"],
    "grep -c a needle": ["grep", "-c", "-F", NEEDLE],
    "grep a needle": ["grep", "-F", NEEDLE],
    "grep -m 3": ["grep", "-m", "3", "order"],
    "--level error": ["cat", "--level", "error"],
    "stats": ["stats"],
    "cat": ["cat"],
}
# A collector's folder: devices, archives of each, and records of each archive.
DEVICES, ARCHIVES_EACH, RECORDS_EACH = 1_000, 20, 20
# Over that folder; the second shows what the first left remembered.
DEVICE_VERBS = {
    "a device's last 200, unknown": ["tail", "-n", "200", "-q", "host.name:dev-9"],
    "another device's last 200": ["tail", "-n", "200", "-q", "host.name:dev-77"],
}
# Needs the facts of each archive, but no record.
OPENING = ["cat", "--since", "2100-01-01"]
# Records of the two stores whose difference callgrind counts.
FEW, MANY = 20_000, 100_000


def made(house, count, method="plain"):
    """The store of `count` records, and its lines under zstd; made again if read.c has changed."""
    folder = ROOT / f"build/bench/read-{count}-{method}"
    mark, source = folder / "made", (HERE / "read.c").read_text(encoding="utf-8")
    if mark.is_file() and mark.read_text(encoding="utf-8") == source:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = house.program("read", "read.c", *OURS, compiler=C)
    output(program, folder / "store", count, SEED, method)
    output(CORDWOOD, "archive", "--method", method, folder / "store")
    with subprocess.Popen([CORDWOOD, "cat", str(folder / "store")],
                          stdout=subprocess.PIPE) as lines:
        subprocess.run(["zstd", "-3", "-q", "-o", str(folder / "lines.zst")], check=True,
                       stdin=lines.stdout)
    if lines.returncode:
        raise RuntimeError("cordwood cat failed")
    mark.write_text(source, encoding="utf-8")
    return folder


def made_many(house):
    """The store of overlapping archives; made again if many.c has changed."""
    folder = ROOT / "build/bench/read-many"
    mark, source = folder / "made", (HERE / "many.c").read_text(encoding="utf-8")
    if mark.is_file() and mark.read_text(encoding="utf-8") == source:
        return folder / "store"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = house.program("many", "many.c", *OURS, compiler=C)
    # In memory, since a disk would sync every archive.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else folder) as fast:
        output(program, f"{fast}/store", LANES, OF_EACH, SEED)
        output(CORDWOOD, "archive", "--method", "plain", f"{fast}/store")
        shutil.copytree(f"{fast}/store", folder / "store")
    mark.write_text(source, encoding="utf-8")
    return folder / "store"


def made_devices(house, devices):
    """A collector's folder; made again if devices.c has changed."""
    folder = ROOT / f"build/bench/read-devices-{devices}"
    mark, source = folder / "made", (HERE / "devices.c").read_text(encoding="utf-8")
    if mark.is_file() and mark.read_text(encoding="utf-8") == source:
        return folder / "store"
    shutil.rmtree(folder, ignore_errors=True)
    archives = folder / "store/archives"
    archives.mkdir(parents=True)
    program = house.program("devices", "devices.c", *OURS, compiler=C)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else folder) as fast:
        output(program, fast, devices, ARCHIVES_EACH, RECORDS_EACH, SEED)
        for path in Path(fast).rglob("*.cwa"):
            shutil.copyfile(path, archives / path.name)
    mark.write_text(source, encoding="utf-8")
    return folder / "store"


def read_of(pid):
    """What an ended process, not yet waited for, has read by system calls: bytes, calls."""
    text = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    return [int(re.search(rf"^{key}: (\d+)", text, re.MULTILINE)[1]) for key in ("rchar", "syscr")]


def run(command, good=(0,), environment=None):
    """The cost of a command: seconds, bytes read, memory; and the number of lines it prints."""
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          env=dict(os.environ, **(environment or {}))) as process:
        lines = 0
        while piece := process.stdout.read(1 << 20):
            lines += piece.count(b"\n")
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        elapsed, (taken, calls) = time.monotonic() - started, read_of(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in good:
        raise RuntimeError(f"{' '.join(command)} ended {process.returncode}")
    return {"seconds": round(elapsed, 3), "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
            "read_bytes": taken, "reads": calls, "rss_kib": usage.ru_maxrss, "lines": lines}


def command_of(verb, store):
    words = VERBS[verb]
    return [CORDWOOD, *words, *[str(store)] * COPIES.get(verb, 1)]


def counted(house, command, environment=None, stdout=subprocess.DEVNULL):
    """Instructions of a command under callgrind, and its output. A child's peak memory starts at
    this process's own, so the output of verbs is not collected."""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={house.folder}/callgrind",
         *command], check=False, stdout=stdout, stderr=subprocess.PIPE,
        env=dict(os.environ, **(environment or {})))
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.decode(errors="replace")[-500:])
    return int(re.search(rb"Collected\s*:\s*(\d+)", done.stderr)[1]), done.stdout


def of_a_record(house, command_of_store, environment=None, stdout=subprocess.DEVNULL,
                method="plain"):
    """Instructions that one more record adds, and the output of each command."""
    (few, first), (many, second) = [
        counted(house, command_of_store(made(house, count, method) / "store"), environment, stdout)
        for count in (FEW, MANY)]
    return (many - few) / (MANY - FEW), [first, second]


def instructions(house, verb, method="plain"):
    """Instructions that one more record adds to a verb."""
    more, _ = of_a_record(house, lambda store: command_of(verb, store), method=method)
    return round(more / COPIES.get(verb, 1), 1)


def served(house, method):
    """Instructions that one more record adds to the viewer's counts of a whole store."""
    sys.path.insert(0, str(ROOT / "Tests/Viewer"))
    serving = importlib.import_module("serving")
    found = {}
    for count in (FEW, MANY):
        under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={house.folder}/callgrind"]
        server = serving.Server(made(house, count, method) / "store", under=under)
        _, done = server.rows(parts="hist,facets")
        house.gate(f"viewer of {count} {method}: records not counted",
                   abs(done["matched"] - count) + (not done["exact"]), 0)
        found[count] = int(re.search(r"Collected\s*:\s*(\d+)", server.end())[1])
    return round((found[MANY] - found[FEW]) / (MANY - FEW), 1)


def inflated(house, verb, store, count):
    """Frames that a verb inflates for 10,000 records, and bytes for one."""
    counter = house.program("inflated.so", "inflated.c", "-shared", "-fPIC", compiler=C)
    path = house.folder / "inflated"
    run(command_of(verb, store), good=(0, 1),
        environment={"LD_PRELOAD": counter, "INFLATED": str(path), "CORDWOOD_CACHE": "off"})
    frames, size = map(int, path.read_text(encoding="ascii").split())
    return {"frames": round(frames * 10_000 / count, 1), "inflated": round(size / count, 2)}


def python(house, folder, count):
    """A Python loop, timed over the whole store and counted over the small ones."""
    sys.path.insert(0, str(ROOT / "bindings/python/tests"))
    package = importlib.import_module("run").build()
    environment = dict(os.environ, PYTHONPATH=str(package), PYTHONHASHSEED="0",
                       CORDWOOD_LIBRARY=str(ROOT / "build/lib/libcordwood.so"))
    environment.pop("CORDWOOD_PYTHON_ACCELERATOR", None)

    def command(store):
        return [sys.executable, "-c", PYTHON, str(store)]
    done = timed(lambda: subprocess.run(
        command(folder / "store"), check=True, stdout=subprocess.PIPE, env=environment))
    more, printed = of_a_record(house, command, environment, subprocess.PIPE)
    seen = [done.pop("result").stdout, *printed]
    row = {**done, "ns": round(done["cpu_s"] * 1e9 / count), "instructions": round(more, 1)}
    return row, [text.split() == [b"True", str(wanted).encode()]
                 for text, wanted in zip(seen, (count, FEW, MANY))]


def timed(work):
    """Seconds, processor time of the processes that work() waits for, and its result."""
    before, started = os.times(), time.monotonic()
    result = work()
    after = os.times()
    cpu = (after.children_user + after.children_system
           - before.children_user - before.children_system)
    return {"seconds": round(time.monotonic() - started, 3), "cpu_s": round(cpu, 3),
            "result": result}


def piped(folder, word):
    """zstdcat and grep over the lines."""
    def work():
        with subprocess.Popen(["zstdcat", str(folder / "lines.zst")],
                              stdout=subprocess.PIPE) as lines:
            return subprocess.run(["grep", "-c", "-F", word], stdin=lines.stdout, check=False,
                                  stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, LC_ALL="C"))
    row = timed(work)
    return {"lines": int(row.pop("result").stdout), **row}


def searched(folder, word):
    """rg -z over the lines, which runs zstd."""
    row = run(["rg", "-z", "-F", word, str(folder / "lines.zst")], good=(0, 1))
    return {key: row[key] for key in ("seconds", "cpu_s", "lines")}


def expected(verb, count):
    """Lines that a verb prints; None: not known."""
    return {"tail -n 50": 50, "tail -n 50 again": 50, "grep a needle": 1,
            "grep an absent word": 0, "grep -c of digits": 1, "cat": count, "cat --json": count,
            "export --format csv": count + 1, "cat of 8 copies": count * 8}.get(verb)


def measure_many(house):
    """A thousand archives of the same time: memory, how often a block is loaded, and opening."""
    limits, store = house.limits["read_many"], made_many(house)
    size = sum(path.stat().st_size for path in store.rglob("*.cwa"))
    rows = {}
    for verb, words in MANY_VERBS.items():
        row = rows[verb] = run([CORDWOOD, *words, str(store)],
                               environment={"CORDWOOD_CACHE": "off"})
        row["of_archives"] = round(row["read_bytes"] / size, 2)
        house.gate(f"{verb} of {LANES} archives: KiB of memory", row["rss_kib"],
                   limits["rss_kib"].get(verb, limits["rss_kib"]["others"]))
        house.gate(f"{verb} of {LANES} archives: bytes read, of the archives'",
                   row["of_archives"], limits["of_archives"])
        house.say(f"{verb} of {LANES} archives: {row}")
    for verb, lines in (("tail -n 50", 50), ("grep a needle", 1), ("grep -m 3", 3),
                        ("cat", LANES * OF_EACH)):
        house.gate(f"{verb} of {LANES} archives: lines missing or too many",
                   abs(rows[verb]["lines"] - lines), 0)
    for what in ("cold", "warm"):
        cache = {"XDG_CACHE_HOME": f"{house.folder}/cache"}
        row = rows[f"opening {what}"] = run([CORDWOOD, *OPENING, str(store)], environment=cache)
        house.gate(f"opening {LANES} archives {what}: reads", row["reads"], limits["reads"][what])
        house.say(f"opening {LANES} archives {what}: {row}")
    instructions_of_all, _ = counted(house, [CORDWOOD, *OPENING, str(store)], cache)
    row["instructions"] = round(instructions_of_all / LANES)
    house.gate("opening warm: instructions an archive", row["instructions"],
               limits["instructions_an_archive"])
    house.more["read_many"] = {"archives": LANES, "records": LANES * OF_EACH,
                               "archive_bytes": size, "verbs": rows}


def measure_devices(house):
    """A collector's folder: opening it, and the last records of one device."""
    limits, devices = house.limits["read_devices"], house.few(DEVICES // 10, DEVICES)
    store = made_devices(house, devices)
    archives = len(list((store / "archives").iterdir()))
    house.gate("archives of the devices: missing or too many",
               abs(archives - devices * ARCHIVES_EACH), 0)
    # Not the cache of the many archives.
    cache = {"XDG_CACHE_HOME": f"{house.folder}/cache-devices"}
    rows = {}
    for what, words in (("opening cold", OPENING), ("opening warm", OPENING),
                        *DEVICE_VERBS.items()):
        row = rows[what] = run([CORDWOOD, *words, str(store)], environment=cache)
        house.gate(f"{archives} archives of devices, {what}: KiB of memory", row["rss_kib"],
                   limits["rss_kib"])
        if what in limits["reads"]:
            house.gate(f"{archives} archives of devices, {what}: reads", row["reads"],
                       limits["reads"][what])
        if what in DEVICE_VERBS:
            house.gate(f"{archives} archives of devices, {what}: lines missing or too many",
                       abs(row["lines"] - 200), 0)
        if what in limits["instructions_an_archive"]:
            total, _ = counted(house, [CORDWOOD, *words, str(store)], cache)
            row["instructions"] = round(total / archives)
            house.gate(f"{archives} archives of devices, {what}: instructions an archive",
                       row["instructions"],
                       limits["instructions_an_archive"][what]["quick" if house.quick else "full"])
        house.say(f"{archives} archives of devices, {what}: {row}")
    house.more["read_devices"] = {"archives": archives, "verbs": rows}


def measure(house):
    measure_many(house)
    measure_devices(house)
    count = house.few(1_000_000, 10_000_000)
    limits = house.limits["read"]
    folder = made(house, count)
    store = folder / "store"
    size = sum(path.stat().st_size for path in store.rglob("*.cwa"))
    scale = "quick" if house.quick else "full"
    rows = {}
    cache = {"XDG_CACHE_HOME": f"{house.folder}/cache-read"}
    for verb in VERBS:
        row = rows[verb] = run(command_of(verb, store), good=(0, 1), environment=cache)
        row["of_archives"] = round(row["read_bytes"] / size, 3)
        # Every block once, plus headers, footers and what the loader reads.
        if verb not in COPIES:
            few = {"--level error": "errors_of_archives", "tail -n 50": "tail_of_archives",
                   "tail -n 50 again": "tail_again_of_archives"}.get(verb, "of_archives")
            house.gate(f"{verb}: bytes read, of the archives'", row["of_archives"],
                       limits[few][scale])
        lines = expected(verb, count)
        if lines is not None:
            house.gate(f"{verb}: lines missing or too many", abs(row["lines"] - lines), 0)
        most = limits["rss_kib_copies"][scale] if verb in COPIES else limits["rss_kib"]
        house.gate(f"{verb}: KiB of memory", row["rss_kib"], most)
        # How much of a small store tail reads depends on how its writers were scheduled.
        if verb in limits["instructions_per_record"]:
            row["instructions"] = instructions(house, verb)
            house.gate(f"{verb}: instructions a record more", row["instructions"],
                       limits["instructions_per_record"][verb])
        house.say(f"{verb}: {row}")
    dense = made(house, count, "dense") / "store"
    for verb in DENSE_VERBS:
        row = rows[f"dense: {verb}"] = run(command_of(verb, dense), good=(0, 1),
                                           environment=cache)
        lines = expected(verb, count)
        if lines is not None:
            house.gate(f"dense: {verb}: lines missing or too many", abs(row["lines"] - lines), 0)
        house.gate(f"dense: {verb}: KiB of memory", row["rss_kib"], limits["rss_kib"])
        row |= inflated(house, verb, dense, count)
        # What tail inflates does not grow with the store; a small one has fewer whole archives.
        for what, words in (("frames", "frames inflated of 10,000 records"),
                            ("inflated", "bytes inflated a record")):
            if verb.startswith("tail") or house.quick:
                continue
            house.gate(f"dense: {verb}: {words}", row[what], limits["dense"][what][verb])
        if verb in limits["dense"]["instructions_per_record"]:
            row["instructions"] = instructions(house, verb, "dense")
            house.gate(f"dense: {verb}: instructions a record more", row["instructions"],
                       limits["dense"]["instructions_per_record"][verb])
        house.say(f"dense: {verb}: {row}")
    for method, most in limits["viewer_instructions_per_record"].items():
        more = served(house, method)
        rows[f"viewer: counts, {method}"] = {"instructions": more}
        house.gate(f"viewer: counts, {method}: instructions a record more", more, most)
        house.say(f"viewer: counts, {method}: {more} instructions a record")
    row, right = python(house, folder, count)
    rows["python"] = row
    house.say(f"python: {row}")
    house.gate("python: loops that missed records or had no accelerator", right.count(False), 0)
    house.gate("python: instructions a record more", row["instructions"],
               limits["instructions_per_record"]["python"])
    peers = {"zstdcat | grep a needle": piped(folder, NEEDLE),
             "zstdcat | grep an absent word": piped(folder, ABSENT)}
    if shutil.which("rg"):
        peers["rg -z a needle"] = searched(folder, NEEDLE)
        peers["rg -z an absent word"] = searched(folder, ABSENT)
    else:
        house.say("rg -z: left out, ripgrep is not installed")
    for what, row in peers.items():
        house.say(f"{what}: {row}")
    rows.update(peers)
    house.gate("zstdcat | grep: needles", abs(rows["zstdcat | grep a needle"]["lines"] - 1), 0)
    house.more["read"] = {
        "records": count, "archive_bytes": size, "verbs": rows,
        "dense_archive_bytes": sum(path.stat().st_size for path in dense.rglob("*.cwa"))}
