#!/usr/bin/env python3
"""Fuzzing. Without --guided: the ordinary library, seeds, kept inputs and a fixed number of inputs
mutated by seed, as run by `./dev test`. With --guided (`./dev fuzz`): libFuzzer over a library
built with its coverage, for as long as requested.

    run.py [--size S] [--guided] [--minutes M] [-k PATTERN …] [TARGET…]

An input that breaks something is kept in build/fuzz/found, with the command that runs it again.
Once it is fixed, it belongs in Tests/Fuzz/kept/TARGET."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "TestSupport")]

import cases  # noqa: E402
import collector  # noqa: E402
import seeds  # noqa: E402

OUT = ROOT / "build/fuzz"
FOUND = OUT / "found"
LIBRARY = ROOT / "build/lib"
# Numbers of mutated inputs, by size.
RUNS = {"abi": (2000, 10_000, 200_000), "adopt": (200, 1000, 20_000),
        "store": (800, 4000, 80_000), "text": (800, 4000, 80_000), "remote": (400, 2000, 20_000),
        "words": (1200, 6000, 80_000), "http": (1200, 6000, 80_000), "curl": (400, 2000, 40_000)}
# They are in Swift, and without libFuzzer a Swift test runs them (BlockGoldenTests).
GUIDED = ("block",)
COLLECTOR_RUNS = (300, 1500, 20_000)
# Limits per input: what legal ones need at most. Memory includes the fuzzer's own.
SECONDS_MAX, MEGABYTES_MAX = 30, 2048
LENGTHS = {"abi": 4096, "adopt": 16_384, "store": 32_768, "text": 4096, "remote": 4096,
           "words": 4096, "http": 4096, "curl": 2048, "block": 16_384}


def toolchain():
    swift = shutil.which("swift")
    return Path(os.path.realpath(swift)).parent


def build_plain(target):
    program = OUT / "plain" / target
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
                    f"-I{ROOT}/include", HERE / f"{target}.c", HERE / "driver.c", "-o", program,
                    f"-L{LIBRARY}", "-lcordwood", "-lpthread", f"-Wl,-rpath,{LIBRARY}"], check=True)
    return program


def build_guided(targets):
    """Builds the library with libFuzzer's coverage in its Swift and C, and each target on top."""
    subprocess.run([HERE / "build.sh", *targets], check=True)


def kept(target):
    folder = HERE / "kept" / target
    return [folder] if folder.is_dir() else []


def trouble(text, command):
    return cases.Failed(f"{text[-6000:]}\nthe input alone: {command}")


def run_plain(target, runs, first):
    program = build_plain(target)
    FOUND.mkdir(parents=True, exist_ok=True)
    folders = [OUT / "seeds" / target, *kept(target)]
    command = [program, "-runs", str(runs), "-seed", str(first), "-keep", FOUND, *folders]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    executions = re.search(r"(\d+) executions", done.stdout)
    if done.returncode != 0 or not executions:
        again = re.search(r"kept as (\S+)", done.stdout)
        raise trouble(done.stdout, f"{program} {again[1] if again else ''}")
    return f"{executions[1]} executions"


def run_guided(target, seconds):
    program = OUT / "guided" / target
    corpus = OUT / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    FOUND.mkdir(parents=True, exist_ok=True)
    command = [program, f"-max_total_time={seconds}", f"-timeout={SECONDS_MAX}",
               f"-rss_limit_mb={MEGABYTES_MAX}", f"-max_len={LENGTHS[target]}",
               "-print_final_stats=1", "-use_value_profile=1", "-reload=0",
               f"-artifact_prefix={FOUND}/{target}-", corpus, OUT / "seeds" / target,
               *kept(target)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    executions = re.search(r"number_of_executed_units: *(\d+)", done.stdout)
    coverage = re.findall(r"cov: (\d+)", done.stdout)
    if done.returncode != 0 or not executions:
        again = re.search(r"Test unit written to (\S+)", done.stdout)
        raise trouble(done.stdout, f"{program} {again[1] if again else ''}")
    return (f"{executions[1]} executions, {coverage[-1] if coverage else '?'} edges, "
            f"{len(list(corpus.iterdir()))} inputs kept")


def main():
    parser = cases.parser()
    parser.add_argument("--guided", action="store_true", help="libFuzzer")
    parser.add_argument("--minutes", type=float, default=10, help="in all, with --guided")
    arguments = parser.parse_args()
    names = [*RUNS, *(GUIDED if arguments.guided else ()), "collector"]
    table = cases.chosen(dict.fromkeys(names), arguments)
    seeds.make(LIBRARY, OUT / "seeds", arguments.guided)
    if arguments.guided:
        build_guided([target for target in table if target != "collector"])
    seconds = max(5, int(arguments.minutes * 60 / len(table)))

    def one(target, _):
        if target == "collector":
            runs = cases.sized(*COLLECTOR_RUNS) if not arguments.guided else None
            return f"{collector.attack(runs, seconds, arguments.seed, FOUND)} executions"
        if arguments.guided:
            return run_guided(target, seconds)
        return run_plain(target, cases.sized(*RUNS[target]), arguments.seed)
    run = cases.Run(cases.repeating(*(["--guided"] if arguments.guided else [])))
    run.all(table, one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
