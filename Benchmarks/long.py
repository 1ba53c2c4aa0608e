"""Long runs: 10 M records back to back, minutes at a million a second, 8 GB and then a minute at
three million, and archiving of typed records. Every record is read back and compared."""

import os
import resource
import shutil
import subprocess
import time

from house import CORDWOOD, KEPT, KEPT_TMPFS, last_json

ARCHIVE_SEGMENT_BYTES = 1 << 30  # nothing is sealed, and so archived, before the measurement


def sustained(house):
    total = house.few(200_000, 10_000_000)
    for load in ("w2", "w4"):
        for threads in (1, 2):
            row = house.run(house.hot(), "sustained", total // threads, load, threads=threads)
            row["million_records_s"] = round(row["records"] / row["seconds"] / 1e6, 2)
            row["mb_s"] = round(row["segment_bytes"] / row["seconds"] / 1e6, 1)
            house.gate(f"{load} x{threads}: KiB resident at most, back to back", row["peak_kib"],
                       house.limits["sustained_peak_kib"])
            row["mean"] = round(row["seconds"] * 1e9 * threads / row["records"], 1)
            house.add("sustained", "cordwood C", load, "sustained", row, threads=threads)
    if not house.quick:
        for load in ("w2", "w4"):
            archived(house, load, total // 2)


def lasting(house, seconds):
    """8 GB back to back, then a minute at 3 M/s: the host's peak memory, and how slow the slowest
    second is."""
    total, rate = house.few(1_000_000, 66_700_000), 3_000_000
    for threads in (1, 2):
        row = house.run(house.hot(), "lasting", total // threads, "w4", threads=threads,
                        environment={"LOAD_RATE": str(rate // threads),
                                     "LOAD_SECONDS": str(seconds)})
        row["million_records_s"] = round(total / row["back_to_back_seconds"] / 1e6, 2)
        what = f"w4 x{threads}, lasting"
        house.gate(f"{what}: KiB resident at most", row["peak_kib"],
                   house.limits["sustained_peak_kib"])
        if not house.quick:
            house.gate(f"{what}: ns a record in the slowest second (noise allowed)",
                       row["slowest_second"], house.limits["mean_ns_beyond_noise"])
        house.add("lasting", "cordwood C", "w4", "lasting", row, threads=threads)


def archived(house, load, count):
    """How fast one core archives what was logged."""
    store = house.where()
    try:
        said = subprocess.run(
            [house.hot(), str(store), "sustained", str(count), load], check=True, text=True,
            stdout=subprocess.PIPE,
            env=dict(os.environ, LOAD_SEGMENT_BYTES=str(ARCHIVE_SEGMENT_BYTES)))
        row = last_json(said.stdout)
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([CORDWOOD, "archive", str(store)], check=True, stdout=subprocess.DEVNULL)
        elapsed = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        size = sum(path.stat().st_size for path in store.rglob("*.cwa"))
        seen = house.check(store, load)
        house.gate(f"archived {load}: records missing, wrong or damaged",
                   abs(count - seen["records"]) + seen["wrong"] + seen["damaged"], 0)
        house.add("archived", "cordwood", load, "archived", {
            "records": count, "on_file": seen["records"], "seconds": round(elapsed, 3),
            "cpu_seconds": round(cpu, 3), "million_records_s_core": round(count / cpu / 1e6, 2),
            "mb_s_core": round(row["segment_bytes"] / cpu / 1e6, 1),
            "bytes_per_record": round(size / count, 2)})
    finally:
        shutil.rmtree(store, ignore_errors=True)


def paced(house, seconds):
    for load in ("w2", "w4"):
        for name, environment, kept in (
                ("cordwood C", {}, KEPT), ("cordwood C, tmpfs", {"LOAD_TMPFS": "1"}, KEPT_TMPFS)):
            row = house.run(house.hot(), "paced", seconds * 1_000_000, load,
                            environment=environment)
            house.add("paced", name, load, "paced", row, kept=kept)
