"""Our append path: nanoseconds in bursts and in single calls, from C and from C++, and the counts
that gate: instructions (callgrind), allocations, system calls, bytes, shared lines."""

import os
import re
import shutil
import statistics
import subprocess
from pathlib import Path

import lines
from house import C, KEPT, KEPT_TMPFS, OURS, WORKLOADS, last_json, output

COUNTED = 40_000
# What follows a writer's name in C and in C++.
WRITERS = ("", "(unsigned long, unsigned long)")
COPY = "a TSC read and a copy"


def instructions(house, program, workload, count=COUNTED, environment=None):
    """Instructions of a record under callgrind: loop, call and everything called. The program calls
    its writer twice (load.h); each call is a profile of its own, and the second counts."""
    store = house.where()
    profile = f"{store}.callgrind"
    subprocess.run(
        ["valgrind", "--tool=callgrind", f"--toggle-collect=*write_{workload}*",
         *(f"--dump-after=write_{workload}{arguments}" for arguments in WRITERS),
         f"--callgrind-out-file={profile}", program, str(store), "count", str(count), workload],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=dict(os.environ, **(environment or {})))
    shutil.rmtree(store)
    totals = re.search(r"^totals: (\d+)$", Path(f"{profile}.2").read_text(encoding="utf-8"), re.M)
    return round(int(totals[1]) / count, 1)


def place_bytes(house):
    """Bytes of code of a function that is one place of w2."""
    place = house.folder / "place.o"
    subprocess.run([*C, "-x", "c", "-", "-c", *OURS[:1], "-o", str(place)], check=True, text=True,
                   input="#include <cordwood/cordwood.h>\nvoid place(cw_logger *, int, double);\n"
                         "void place(cw_logger *log, int id, double price) {\n"
                         '    CW_INFO(log, "order %d at %f", id, price);\n}\n')
    return int(re.search(r" (\w+) T place$", output("nm", "-S", place), re.M)[1], 16)


def copy_program(house):
    return house.program("tickscopy", "copy.c", "-DTICKS")


def beside_copy(house):
    """Compares an append with reading the counter and copying as many bytes, the lower bound for
    any engine that keeps the time. The programs take turns; each ratio is of one round."""
    engines = {COPY: copy_program(house), "cordwood C": house.hot(),
               "cordwood C++ macros": house.hot_macros()}
    for load in WORKLOADS:
        rounds = [{engine: house.run(program, "bursts", house.few(100, 1000), load, counted=False)
                   for engine, program in engines.items()} for _ in range(house.few(3, 5))]
        for engine in engines:
            times = [row[engine]["p50"] for row in rounds]
            low, middle, high = statistics.quantiles(times, n=4)
            house.more.setdefault("beside_copy", []).append({
                "engine": engine, "workload": load, "threads": 1, "p50": round(middle, 1),
                "from": round(low, 1), "to": round(high, 1), "of_copy": round(statistics.median(
                    row[engine]["p50"] / row[COPY]["p50"] for row in rounds), 2)})


def counts(house):
    """Counts that do not depend on the machine. guests.py has those of Swift's program."""
    seen, limits = {}, house.limits
    languages = {"c": house.hot(), "c coarse clock": house.hot(), "cpp": house.hot_cpp(),
                 "cpp macros": house.hot_macros()}
    if not house.quick:
        languages[COPY] = copy_program(house)
    cases = [(house, program, load, COUNTED,
              {"LOAD_COARSE": "1"} if language == "c coarse clock" else None)
             for language, program in languages.items() for load in WORKLOADS]
    *figures, places = house.each(instructions, [*cases, (house, house.hot_places(), "w2")])
    for language in languages:
        seen[language] = dict(zip(WORKLOADS, figures))
        del figures[:len(WORKLOADS)]
        for load, limit in limits["instructions_per_record"].get(language, {}).items():
            house.gate(f"{language} {load}: instructions a record", seen[language][load], limit)
    house.more["instructions_per_record"] = seen
    house.more["instructions_per_record_of_places"] = places
    house.gate(f"c w2, {house.few('100', '1,000')} places: instructions a record", places,
               limits["instructions_per_record"]["c places"]["w2"])
    house.more["bytes_per_place"] = place_bytes(house)
    house.gate("c w2: bytes of code a place", house.more["bytes_per_place"],
               limits["bytes_per_place"])
    house.more["bytes_per_record"] = {}
    for load in WORKLOADS:
        said = last_json(output(house.hot(), house.where(), "bytes", 100000, load))
        house.more["bytes_per_record"][load] = said["bytes_per_record"]
        house.gate(f"{load}: bytes a record in its segment", said["bytes_per_record"],
                   limits["bytes_per_record"][load])
        said = last_json(output(house.hot(), house.where(), "costs", 2000, load))
        if said.get("unsupported"):
            house.note("no system call dispatch in this kernel: calls are not counted")
            continue
        house.gate(f"{load}: allocations", said["allocations"], limits["allocations"])
        house.gate(f"{load}: % of bursts of 100 with a system call",
                   round(100 * said["bursts_with_system_calls"] / said["bursts"], 2),
                   limits["bursts_with_system_calls_percent"])
    for load in house.few(("w2",), ("w2", "w4")):
        seen = lines.measure(house, house.hot(), load)
        house.more.setdefault("lines", {})[load] = seen
        house.gate(f"{load}: lines of {lines.LINE} bytes stored to by both of two producers",
                   len(seen["shared"]), 0)


def in_bursts(house, engine, program, bursts):
    for load in (*WORKLOADS, "off"):
        row = house.run(program, "bursts", bursts, load, counted=load != "off")
        house.add("hot", engine, load, "bursts", row, kept="–" if load == "off" else KEPT)


def times(house):
    """With --quick, only those that gate."""
    bursts, calls = house.few(150, 5_000), house.few(200_000, 5_000_000)
    in_bursts(house, "cordwood C", house.hot(), bursts)
    for load in ("w2", "w4"):
        row = house.add("hot", "cordwood C", load, "paced",
                        house.run(house.hot(), "paced", calls, load))
        house.gate(f"{load}: times a second that the helpers of a busy engine wake",
                   round(row["helper_wakes"] / max(row["seconds"], 1), 1),
                   house.limits["wakes_s"]["busy"])
    for load in WORKLOADS:
        house.gate(f"{load}: ns a record, one thread (noise allowed)",
                   house.find(part="hot", engine="cordwood C", workload=load, mode="bursts",
                              threads=1)["mean"], house.limits["mean_ns_beyond_noise"])
    if house.quick:
        return
    in_bursts(house, "cordwood C++", house.hot_cpp(), bursts)
    in_bursts(house, "cordwood C++ macros", house.hot_macros(), bursts)
    house.add("hot", "cordwood C, 1,000 places", "w2", "bursts",
              house.run(house.hot_places(), "bursts", bursts, "w2"))
    for load in ("w2", "w4"):
        row = house.run(house.hot(), "bursts", bursts, load, threads=2)
        house.add("hot", "cordwood C", load, "bursts", row, threads=2)
        house.add("hot", "a plain copy", load, "paced",
                  house.run(house.program("copy", "copy.c"), "paced", calls, load, counted=False),
                  kept="no: memory")
    beside_copy(house)
    for name, switch, kept in (("coarse clock", "LOAD_COARSE", KEPT),
                               ("tmpfs", "LOAD_TMPFS", KEPT_TMPFS)):
        row = house.run(house.hot(), "bursts", bursts, "w2", environment={switch: "1"})
        house.add("hot", f"cordwood C, {name}", "w2", "bursts", row, kept=kept)


def measure(house):
    times(house)
    counts(house)
