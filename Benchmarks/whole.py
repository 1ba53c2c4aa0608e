"""What a record costs from its call to the finished archive: instructions of all threads under
callgrind, and bytes of segments and archives; beside the same records in spdlog's text file.

Counts of two runs are the same within 0.5 %, because both archive the same. The program logs all
records into one segment, at times of its own clock (hot.h), then rolls and waits for one archive of
several blocks. An archive of one small block takes up to three times as many instructions a record:
its method (docs/ARCHITECTURE.md) spends more time to save bytes."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

from house import CORDWOOD, CXX, OURS, ROOT, WORKLOADS, Unsupported, last_json
from peers import pkg

RECORDS, QUICK_RECORDS = 200_000, 60_000
SERVICE_THREADS = 4
# More than all records take.
SEGMENT_BYTES = 64 << 20
LOADS = (*WORKLOADS, "service", "text")
QUICK_LOADS = ("service", "text")
# The engine's threads in the order in which it starts them; the program's first one is 1.
SUPPLY, SHIP = 2, 3
# What the threads of our programs run.
HOST = re.compile(r"^c?fn=\(\d+\) (work|load_thread)$", re.M)
# The steps of archiving: part of the name of each one's function. One that has another's name
# behind it includes that step.
STEPS = {
    "reading the lane": ("PrimedSourceC4next",),
    "gathering a block": ("5BlockV4fill", "reading the lane"),
    "columns": ("LLyyAA0C0VzAA0C7ProblemOYKF",),  # BlockEncoder.columns of a block
    "packing": ("BlockEncoderV6encode_", "columns"),
    "reading back": ("BlockMakerV4make_", "packing"),
}


def ours(house, load):
    """The program of a load, whose records have times of its own clock."""
    if load in WORKLOADS:
        return house.program("whole", "hot.c", "-DTOLD", *OURS)
    lines = ("-DLINES",) if load == "text" else ()
    return house.program(f"whole-{load}", "service.c", "-DTOLD", *lines, *OURS)


def spdlogs(house, load):
    flags = [*pkg("spdlog"), "-lpthread"]
    if load in WORKLOADS:
        return house.program("spdlog", "peers/spdlog.cpp", *flags, compiler=CXX)
    lines = ("-DLINES",) if load == "text" else ()
    return house.program(f"spdlog-{load}", "peers/spdlog_service.cpp", *lines, *flags,
                         compiler=CXX)


def part_of(text):
    """Which part of the work a thread's profile belongs to, and its instructions."""
    thread = int(re.search(r"^thread: (\d+)$", text, re.M)[1])
    part = "call"
    if thread == SHIP:
        part = "archiving"
    elif thread == SUPPLY or thread > SHIP and not HOST.search(text):
        part = "helper"
    return part, int(re.search(r"^totals: (\d+)$", text, re.M)[1])


def steps_of(text):
    """Instructions of each step in the archiver's profile. It has a function's whole cost where it
    is called: `cfn=(12) name`, `calls=…`, then a line and the cost."""
    names = dict(re.findall(r"^c?fn=\((\d+)\) (.+)$", text, re.M))
    whole = Counter()
    for number, cost in re.findall(r"^cfn=\((\d+)\).*\ncalls=.*\n\S+ (\d+)$", text, re.M):
        whole[names[number]] += int(cost)
    all_of = {step: sum(cost for name, cost in whole.items() if part in name)
              for step, (part, *_) in STEPS.items()}
    return {step: all_of[step] - sum(all_of[inner] for inner in inside)
            for step, (_, *inside) in STEPS.items()}


def counted(house, program, load, records):
    """(instructions of each part, those of each step, what the program printed, its directory)"""
    store = house.where()
    profile = Path(f"{store}.callgrind")
    words = (["whole", str(records), load] if load in WORKLOADS
             else [str(records), str(SERVICE_THREADS)])
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes",
         f"--callgrind-out-file={profile}", program, str(store), *words], check=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=dict(os.environ, LOAD_ARCHIVE="1", LOAD_SEGMENT_BYTES=str(SEGMENT_BYTES),
                 LD_LIBRARY_PATH=str(house.folder / "named")))
    parts, steps = Counter(), {}
    for path in store.parent.glob(f"{profile.name}-*"):
        text = path.read_text(encoding="utf-8")
        part, instructions = part_of(text)
        parts[part] += instructions
        if part == "archiving":
            steps = steps_of(text)
    return parts, steps, last_json(done.stdout), store


def on_file(house, store, load):
    """The number of records that are as they were logged."""
    if load in WORKLOADS:
        seen = house.check(store, load)
        return seen["records"] - seen["wrong"]
    lines = subprocess.run([CORDWOOD, "cat", str(store)], check=True, stdout=subprocess.PIPE)
    return lines.stdout.count(b"\n")


def of_ours(house, load, records):
    parts, steps, said, store = counted(house, ours(house, load), load, records)
    archives = list(store.glob("archives/*.cwa"))
    return {"workload": load, "records": records, "on_file": on_file(house, store, load),
            "archives": len(archives), "instructions": round(sum(parts.values()) / records),
            **{part: round(parts[part] / records) for part in ("call", "archiving", "helper")},
            "steps": {step: round(figure / records) for step, figure in steps.items()},
            "segment_bytes": round(said["segment_bytes"] / records, 2),
            "archive_bytes": round(sum(path.stat().st_size for path in archives) / records, 2)}


def of_spdlog(house, load, records):
    parts, _, _, where = counted(house, spdlogs(house, load), load, records)
    written = (where / "spdlog.log").read_bytes()
    return {"instructions": round(sum(parts.values()) / records),
            "bytes": round(len(written) / written.count(b"\n"), 2)}


def measure(house):
    loads, records = house.few((QUICK_LOADS, QUICK_RECORDS), (LOADS, RECORDS))
    # The library before its names were removed.
    named = house.folder / "named"
    named.mkdir()
    (named / "libcordwood.so.0").symlink_to(ROOT / "build/work/libcordwood.so")
    for load in loads:  # programs are built one at a time
        ours(house, load)
    rows = house.more["whole"] = house.each(of_ours, [(house, load, records) for load in loads])
    limits = house.limits["whole"][house.few("quick", "full")]
    for row in rows:
        load = row["workload"]
        house.gate(f"{load}, whole: records missing or wrong in one archive",
                   abs(records - row["on_file"]) + row["archives"] - 1, 0)
        house.gate(f"{load}, whole: instructions a record", row["instructions"],
                   limits["instructions"][load])
        house.gate(f"{load}, whole: bytes a record in its archive", row["archive_bytes"],
                   limits["archive_bytes"][load])
    if house.quick:
        return
    try:
        for load in loads:
            spdlogs(house, load)
    except Unsupported as why:
        house.note(f"spdlog is left out of `whole`: {why}")
        return
    peers = house.each(of_spdlog, [(house, load, records) for load in loads])
    for row, peer in zip(rows, peers):
        row["spdlog"] = peer
