"""What lasts: 10 M records back to back, minutes at a million a second, archiving typed records.
Every record is read back and compared."""

import os
import resource
import shutil
import subprocess
import time

from house import CORDWOOD, KEPT, KEPT_TMPFS, last_json

ARCHIVE_SEGMENT_BYTES = 1 << 30  # nothing is sealed, so nothing archived, before it is measured


def sustained(house):
    total = house.few(200_000, 10_000_000)
    for load in ("w2", "w4"):
        for threads in (1, 2):
            row = house.run(house.hot(), "sustained", total // threads, load, threads=threads)
            row["million_records_s"] = round(row["records"] / row["seconds"] / 1e6, 2)
            row["mb_s"] = round(row["segment_bytes"] / row["seconds"] / 1e6, 1)
            row["mean"] = round(row["seconds"] * 1e9 * threads / row["records"], 1)
            house.add("sustained", "cordwood C", load, "sustained", row, threads=threads)
    if not house.quick:
        for load in ("w2", "w4"):
            archived(house, load, total // 2)


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
