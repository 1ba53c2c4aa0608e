"""Archiving plain lines beside `zstd -3` on the same file: size of the archive, and how fast."""

import resource
import subprocess
import tempfile
import time
from pathlib import Path


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
        elapsed, cpu = seconds_of([cordwood, "archive", str(store)])
        zstd_elapsed, zstd_cpu = seconds_of(["zstd", "-3", "-q", "-o", str(packed), str(source)])
        archived = sum(path.stat().st_size for path in store.rglob("*.cwa"))
        zstd = packed.stat().st_size
    megabytes = raw / 1e6
    return {"file": source.name, "raw_bytes": raw, "archive_bytes": archived, "zstd3_bytes": zstd,
            "of_zstd3": round(archived / zstd, 3), "archive_mb_s": round(megabytes / elapsed, 1),
            "archive_cpu_s": round(cpu, 3), "zstd3_mb_s": round(megabytes / zstd_elapsed, 1),
            "zstd3_cpu_s": round(zstd_cpu, 3)}
