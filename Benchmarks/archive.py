"""Compares archives of plain lines with `zstd -3` on the same file: size, speed, and the sizes of
dense blocks and of `zstd -19`. Measures the instructions and memory of archiving, and the cost of
typed records like a service's. Sizes, instructions and memory gate."""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from house import CORDWOOD, OURS, output
from read import counted

# Files above count as large; the others are samples of a few thousand lines.
LARGE_BYTES = 2_000_000
# Instructions and memory are counted for these, if they are present.
COUNTED = ("kafka.log", "Linux_full.log", "apache_elastic.log")
SERVICE_RECORDS, SERVICE_THREADS, LANE_RECORDS = 400_000, 4, 5_000
# Records whose instructions are counted.
COUNTED_RECORDS = 40_000
ARCHIVINGS = 5
EXPORT = [CORDWOOD, "export", "--format", "raw"]
# Bytes archived or exported in a run: with fewer, the time cannot be told from the tool's startup.
TIMED_BYTES = 32_000_000


def seconds_of(command):
    """(elapsed, CPU) of a command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    elapsed = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(cordwood, source):
    raw = source.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        store, packed = Path(folder, "store"), Path(folder, "packed.zst")
        subprocess.run([cordwood, "log", "--store", str(store), "--logger", "bench", str(source)],
                       check=True, stdout=subprocess.DEVNULL)
        dense = Path(folder, "dense")
        shutil.copytree(store, dense, symlinks=True)
        elapsed, cpu = seconds_of([cordwood, "archive", "--method", "plain", str(store)])
        _, dense_cpu = seconds_of([cordwood, "archive", "--method", "dense", str(dense)])
        zstd_elapsed, zstd_cpu = seconds_of(["zstd", "-3", "-q", "-o", str(packed), str(source)])
        archived, densely = (sum(path.stat().st_size for path in place.rglob("*.cwa"))
                             for place in (store, dense))
        zstd = packed.stat().st_size
        subprocess.run(["zstd", "-19", "-q", "-f", "-o", str(packed), str(source)], check=True)
        most = packed.stat().st_size
    megabytes = raw / 1e6
    return {"file": source.name, "raw_bytes": raw, "archive_bytes": archived, "zstd3_bytes": zstd,
            "zstd19_bytes": most, "dense_bytes": densely,
            "dense_of_zstd3": round(densely / zstd, 3), "dense_of_zstd19": round(densely / most, 3),
            "dense_mb_cpu_s": round(raw / 1e6 / max(dense_cpu, 1e-3), 1),
            "of_zstd3": round(archived / zstd, 3), "archive_mb_s": round(megabytes / elapsed, 1),
            "archive_cpu_s": round(cpu, 3), "zstd3_mb_s": round(megabytes / zstd_elapsed, 1),
            "zstd3_cpu_s": round(zstd_cpu, 3),
            "zstd3_mb_s_core": round(megabytes / max(zstd_cpu, 1e-3), 1)}


def archived_bytes(store):
    return sum(path.stat().st_size for path in Path(store).rglob("*.cwa"))


# A child's peak memory starts at its parent's, and this process is large: a small one starts it.
RESIDENT = """import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))"""


def resident_kib(command):
    return int(output(sys.executable, "-S", "-c", RESIDENT, *command))


def logged(house, source, copies=1):
    """A store of the file's lines, repeated `copies` times."""
    store = house.where()
    output(CORDWOOD, "log", "--store", store, "--logger", "bench", *[source] * copies)
    return store


def densely(house, source, copies=1):
    """The same, archived in dense blocks."""
    store = logged(house, source, copies)
    output(CORDWOOD, "archive", "--method", "dense", store)
    return str(store)


def exporting_seconds(store):
    """The least processor time of several exports of the original lines."""
    return min(seconds_of([*EXPORT, store])[1] for _ in range(ARCHIVINGS))


def speeds(house, files):
    """Megabytes of each file that are archived and exported in a second of processor time, without
    the time for an empty store."""
    in_own = archiving_seconds(house, logged(house, os.devnull))
    out_own = exporting_seconds(densely(house, os.devnull))
    rows = []
    for source in files:
        copies = TIMED_BYTES // source.stat().st_size + 1
        megabytes = copies * source.stat().st_size / 1e6
        seconds = archiving_seconds(house, logged(house, source, copies)) - in_own
        out_seconds = exporting_seconds(densely(house, source, copies)) - out_own
        rows.append({"file": source.name, "in_mb_s_core": round(megabytes / max(seconds, 1e-3)),
                     "out_mb_s_core": round(megabytes / max(out_seconds, 1e-3))})
    return rows


def costs(house, source):
    """Instructions of archiving in dense blocks, compared with `zstd -3`, and of exporting the file
    (`export --format raw`); memory of archiving and compacting. The tool's own cost, that of an
    empty archive, is subtracted."""
    empty = logged(house, os.devnull)
    size = source.stat().st_size
    archive = [CORDWOOD, "archive", "--method", "dense"]
    nothing = resident_kib([*archive, str(empty)])
    own, _ = counted(house, [*archive, str(empty)])
    ours, _ = counted(house, [*archive, str(logged(house, source))])
    zstd, _ = counted(house, ["zstd", "-3", "-q", "-c", str(source)])
    out, out_own = (counted(house, [*EXPORT, densely(house, path)])[0]
                    for path in (source, os.devnull))
    store = logged(house, source)
    kib = resident_kib([*archive, str(store)]) - nothing
    compact = resident_kib([CORDWOOD, "compact", "--hours", "0", str(store)]) - nothing
    return {"file": source.name, "instructions_a_byte": round((ours - own) / size, 1),
            "of_zstd3_instructions": round((ours - own) / zstd, 2), "kib": kib,
            "compact_kib": compact, "out_instructions_a_byte": round((out - out_own) / size, 2)}


def served(house, records, threads):
    store = house.where()
    output(house.program("service", "service.c", "-DTOLD", *OURS), store, records, threads)
    return store


def typed_cost(house):
    """Instructions of archiving one record of a service, without those for an empty archive."""
    archive = [CORDWOOD, "archive", "--method", "dense"]
    own, _ = counted(house, [*archive, str(logged(house, os.devnull))])
    all_of_them, _ = counted(
        house, [*archive, str(served(house, COUNTED_RECORDS, SERVICE_THREADS))])
    return round((all_of_them - own) / COUNTED_RECORDS)


def typed_speed(house, records):
    """Millions of a service's records archived in a second of processor time, without the time for
    an empty archive."""
    own = archiving_seconds(house, logged(house, os.devnull))
    store = served(house, records, SERVICE_THREADS)
    return round(records / 1e6 / max(archiving_seconds(house, store) - own, 1e-3), 2)


def archiving_seconds(house, store):
    """The least processor time of several archivings of that store."""
    found = []
    for _ in range(ARCHIVINGS):
        copy = house.where()
        shutil.copytree(store, copy, symlinks=True, dirs_exist_ok=True)
        found.append(seconds_of([CORDWOOD, "archive", "--method", "dense", str(copy)])[1])
        shutil.rmtree(copy)
    return min(found)


def typed(house, records, threads):
    """Typed records of nine places, compared with `zstd -3` of their text."""
    store = served(house, records, threads)
    lines = house.folder / "service.txt"
    with lines.open("wb") as file:
        subprocess.run([CORDWOOD, "cat", str(store)], check=True, stdout=file)
    packed = len(subprocess.run(["zstd", "-3", "-q", "-c", str(lines)], check=True,
                                stdout=subprocess.PIPE).stdout)
    lines.unlink()
    output(CORDWOOD, "archive", "--method", "dense", store)
    size = archived_bytes(store)
    return {"records": records, "threads": threads, "bytes_a_record": round(size / records, 2),
            "of_zstd3": round(size / packed, 3)}


def mean(rows, name):
    """The geometric mean."""
    return round(statistics.geometric_mean(row[name] for row in rows), 3)


def gates(house, rows, files):
    """Adds the gates that the files in `rows` permit; `files`: their paths."""
    limits = house.limits["archive"]
    large = [row for row in rows[1:] if row["raw_bytes"] > LARGE_BYTES]
    small = [row for row in rows[1:] if row["raw_bytes"] <= LARGE_BYTES]
    if large:
        house.gate("large files, dense of zstd -3", mean(large, "dense_of_zstd3"),
                   limits["large_of_zstd3"])
        house.gate("large files, dense of zstd -19", mean(large, "dense_of_zstd19"),
                   limits["of_zstd19"])
        house.more["dense_of_zstd3_seconds"] = round(statistics.geometric_mean(
            row["zstd3_mb_s_core"] / row["dense_mb_cpu_s"] for row in large), 2)
    if small:
        house.gate("small files, dense of zstd -3", mean(small, "dense_of_zstd3"),
                   limits["small_of_zstd3"])
    house.gate("dense of plain, the worst file",
               max(round(row["dense_bytes"] / row["archive_bytes"], 3) for row in rows), 1.02)
    counts = [costs(house, path) for path in files if path.name in COUNTED]
    for row in counts:
        name = row["file"]
        for key, what in (("instructions_a_byte", "instructions a byte"),
                          ("out_instructions_a_byte", "instructions a byte given back")):
            house.gate(f"{what}, {name}", row[key], limits[key].get(name, limits[key]["any"]))
        house.gate(f"instructions, of zstd -3, {name}", row["of_zstd3_instructions"],
                   limits["of_zstd3_instructions"])
        house.gate(f"KiB over nothing, {name}", row["kib"], limits["kib"])
        house.gate(f"KiB over nothing, compacting {name}", row["compact_kib"],
                   limits["compact_kib"])
    service = typed(house, house.few(40_000, SERVICE_RECORDS), SERVICE_THREADS)
    lane = typed(house, LANE_RECORDS, 1)
    house.gate("a service's records, bytes each", service["bytes_a_record"],
               limits["typed_bytes"])
    house.gate("a service's records, of text under zstd -3", service["of_zstd3"],
               limits["typed_of_zstd3"])
    house.gate("a lane of 5,000, bytes each", lane["bytes_a_record"], limits["lane_bytes"])
    service["instructions_a_record"] = typed_cost(house)
    house.gate("a service's records, instructions each", service["instructions_a_record"],
               limits["typed_instructions"])
    service["million_records_s_core"] = typed_speed(house, house.few(40_000, SERVICE_RECORDS))
    house.more["archive_speeds"] = speeds(
        house, [path for path in files if path.stat().st_size > LARGE_BYTES])
    house.more["archive_costs"] = counts
    house.more["archive_typed"] = [service, lane]
