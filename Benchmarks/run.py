#!/usr/bin/env python3
"""`./dev bench`: figures of the append path, of an idle engine and of archiving.

    run.py [--quick] [--json FILE]

Counts gate: they do not depend on the machine. Times inform, and fail only beyond what noise
explains (thresholds.json). Figures of another machine are another machine's."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import archive  # noqa: E402

CORDWOOD = str(ROOT / "build/bin/cordwood")
LOGS = ROOT.parent / "shared/data/logs"
FEW, MANY = 20_000, 120_000
WORKLOADS = ("w1", "w2", "w3", "w4")


def build(folder):
    library = [f"-I{ROOT}/include", f"-L{ROOT}/build/lib", "-lcordwood", "-lpthread",
               f"-Wl,-rpath,{ROOT}/build/lib"]
    flags = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror"]
    hot, idle, nothing = f"{folder}/hot", f"{folder}/idle", f"{folder}/nothing"
    subprocess.run([*flags, str(HERE / "hot.c"), *library, "-o", hot], check=True)
    subprocess.run([*flags, "-DENGINE", str(HERE / "idle.c"), *library, "-o", idle], check=True)
    subprocess.run([*flags, str(HERE / "idle.c"), "-o", nothing], check=True)
    return hot, idle, nothing


def said(*command):
    """The JSON line a program ends with."""
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out.splitlines()[-1])


def instructions(hot, folder, workload):
    """Of the loop, the call and whatever it calls: what 100,000 more records add under
    callgrind."""
    totals = []
    for count in (FEW, MANY):
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--toggle-collect=write_{workload}",
             f"--callgrind-out-file={folder}/callgrind.{workload}.{count}", hot,
             f"{folder}/counted-{workload}-{count}", "count", str(count), workload], check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        totals.append(int(re.search(r"Collected\s*:\s*(\d+)", done.stderr)[1]))
    return round((totals[1] - totals[0]) / (MANY - FEW), 1)


def sources(quick):
    found = [ROOT / "examples/sample.log"]
    if LOGS.is_dir():
        names = sorted(LOGS.glob("*.*"), key=lambda path: -path.stat().st_size)
        found += [path for path in names if path.suffix != ".md"][:1 if quick else 6]
    return found


def measure(quick):
    with tempfile.TemporaryDirectory() as folder:
        hot, idle, nothing = build(folder)
        out = {"append": {}, "costs": {}, "bytes": {}, "instructions": {}}
        for load in (*WORKLOADS, "off"):
            found = said(hot, f"{folder}/bursts-{load}", "bursts", "1000" if quick else "30000",
                         load)
            out["append"].update({f"{load}_{name}": row for name, row in found.items()})
        for load in ("w2", "w4"):
            found = said(hot, f"{folder}/sustained-{load}", "sustained",
                         "2000" if quick else "20000", load)
            out["append"].update({f"{load}_{name}_sustained": row for name, row in found.items()})
            found = said(hot, f"{folder}/calls-{load}", "calls",
                         "500000" if quick else "20000000", load)
            out["append"].update({f"{load}_{name}": row for name, row in found.items()})
        for load in WORKLOADS:
            out["costs"][load] = said(hot, f"{folder}/costs-{load}", "costs", "2000", load)
            out["bytes"][load] = said(hot, f"{folder}/bytes-{load}", "bytes", "100000", load)
            out["instructions"][load] = instructions(hot, folder, load)
        engine, bare = said(idle, f"{folder}/idle-store"), said(nothing)
        out["idle"] = {"resident_kib_over_nothing": engine["resident_kib"] - bare["resident_kib"],
                       "open_ms": engine["open_ms"]}
        out["archive"] = [archive.measure(CORDWOOD, path) for path in sources(quick)]
    return out


def gates(out, limits):
    """(name, figure, limit) of everything that may fail a build."""
    for load in WORKLOADS:
        yield (f"{load}: instructions a record", out["instructions"][load],
               limits["instructions_per_record"][load])
        yield (f"{load}: bytes a record in its segment", out["bytes"][load]["bytes_per_record"],
               limits["bytes_per_record"][load])
        costs = out["costs"][load]
        if costs.get("unsupported"):
            continue
        yield f"{load}: allocations", costs["allocations"], limits["allocations"]
        yield (f"{load}: % of bursts of 100 with a system call",
               round(100 * costs["bursts_with_system_calls"] / costs["bursts"], 2),
               limits["bursts_with_system_calls_percent"])
    yield ("KiB of an idle engine over nothing", out["idle"]["resident_kib_over_nothing"],
           limits["idle_resident_kib_over_nothing"])
    yield ("archived sample, of zstd -3", out["archive"][0]["of_zstd3"],
           limits["archive_of_zstd3_sample"])
    for load in WORKLOADS:
        yield (f"{load}: ns a record, one thread (noise allowed)",
               out["append"][f"{load}_one_thread"]["mean"], limits["mean_ns_beyond_noise"])


def show(out):
    print(f"{'one record, ns':36} {'mean':>8} {'p50':>8} {'p99':>8} {'p99.9':>8} "
          f"{'max':>9}")
    for name, figures in out["append"].items():
        print(f"{name:36} {figures['mean']:8.1f} {figures['p50']:8.1f} {figures['p99']:8.1f} "
              f"{figures['p99.9']:8.1f} {figures['max']:9.0f}")
    print(f"idle engine: {out['idle']['resident_kib_over_nothing']} KiB over nothing, "
          f"open and first record {out['idle']['open_ms']} ms")
    print(f"{'archive':24} {'raw':>10} {'cwa':>9} {'zstd -3':>9} {'ratio':>6} {'MB/s':>7} "
          f"{'zstd MB/s':>9}")
    for row in out["archive"]:
        print(f"{row['file']:24} {row['raw_bytes']:10,} {row['archive_bytes']:9,} "
              f"{row['zstd3_bytes']:9,} {row['of_zstd3']:6.3f} {row['archive_mb_s']:7.1f} "
              f"{row['zstd3_mb_s']:9.1f}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench")
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    limits = json.loads((HERE / "thresholds.json").read_text())
    out = measure(arguments.quick)
    out["cores"] = os.cpu_count()
    show(out)
    passed = failed = 0
    for name, figure, limit in gates(out, limits):
        good = figure <= limit
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok   ' if good else 'FAIL '} {name}: {figure} (at most {limit})")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(out) + "\n", encoding="utf-8")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
