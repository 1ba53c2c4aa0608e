#!/usr/bin/env python3
"""The C interface from outside: builds abi.c against build/lib/libcordwood.so and runs its cases,
each in a process and a directory of its own. `run.py [--all] [CASE …]`; the last line counts."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

from settings import forget_settings  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
SECONDS_MAX = 600
SKIPPED = 77


def build(directory):
    program = directory / "abi"
    subprocess.run(
        ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion",
         "-Wsign-conversion", "-O1", "-g", "-I", ROOT / "include", HERE / "abi.c", "-o", program,
         "-L", ROOT / "build/lib", "-lcordwood", "-lpthread",
         f"-Wl,-rpath,{ROOT / 'build/lib'}"], check=True)
    return program


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


class Suite:
    def __init__(self, program):
        self.program = program

    def run(self, case, store):
        try:
            done = subprocess.run([self.program, case, store], capture_output=True,
                                  timeout=SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"hangs: {(error.stdout or b'').decode()[-2000:]}") from error
        if done.returncode == SKIPPED:
            raise Skipped(done.stdout.decode() or "the system does not allow it")
        if done.returncode != 0:
            text = done.stdout.decode(errors="replace")[:3000]
            text += done.stderr.decode(errors="replace")[-2000:]
            raise Failed(f"exit {done.returncode}\n{text}")
        return done.stderr.decode(errors="replace")


def flip(path, places):
    """Turns some bytes round, far behind the header."""
    data = bytearray(path.read_bytes())
    for part in places:
        at = int(len(data) * part)
        for i in range(at, min(at + 64, len(data))):
            data[i] ^= 0xFF
    path.write_bytes(data)


def damaged_segment(suite, store):
    suite.run("fill", store)
    segments = [p for p in (store / "lanes").iterdir() if p.suffix in (".seg", ".sealed")]
    flip(max(segments, key=lambda p: p.stat().st_size), [0.15])
    suite.run("damaged", store)


def damaged_archive(suite, store):
    suite.run("fill", store)
    archives = list((store / "archives").rglob("*.cwa"))
    flip(max(archives, key=lambda p: p.stat().st_size), [0.4])
    suite.run("damaged", store)


def newer_store(suite, store):
    suite.run("fill", store)
    path = store / "store"
    path.write_text(path.read_text().replace("format 1", "format 2"))
    suite.run("newer", store)


def console(case, check):
    def body(suite, store):
        text = suite.run(case, store)
        if not check(text):
            raise Failed(f"stderr is {text!r}")
    return body


def is_json(text):
    lines = [json.loads(line) for line in text.splitlines()]
    return any(line["message"] == "seen on the console" for line in lines)


def is_text(text):
    return "seen on the console" in text and "{" not in text and "\x1b" not in text


def full_disk(name):
    return lambda suite, store: on_small_disk(suite, store, name)


def on_small_disk(suite, store, name):
    store.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", store]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode != 0:
        raise Skipped("tmpfs cannot be mounted: " + done.stderr.decode().strip())
    try:
        suite.run(name, store / "store")
    finally:
        subprocess.run(["umount", store], check=True)


PARTS = {"fill", "damaged", "newer", "append_fences_missing"}  # of other cases


def cases(program):
    """Every case of the program runs: by itself, or by what is set up around it here."""
    names = subprocess.run([program], capture_output=True, check=True, text=True).stdout.split()
    table = {name: (lambda suite, store, name=name: suite.run(name, store))
             for name in names if name not in PARTS}
    return table | {
        "damaged_segment": damaged_segment,
        "damaged_archive": damaged_archive,
        "newer_store": newer_store,
        "console_text": console("console_text", is_text),
        "console_json": console("console_json", is_json),
        "console_auto": console("console_auto", is_json),
        "console_sync": console("console_sync", is_text),
        "full_disk": full_disk("full_disk"),
        "full_disk_written": full_disk("full_disk_written"),
    }


def main():
    wanted = [name for name in sys.argv[1:] if name != "--all"]
    forget_settings()
    directory = Path(tempfile.mkdtemp(prefix="cordwood-abi-"))
    directory.chmod(0o755)
    passed = failed = 0
    try:
        suite = Suite(build(directory))
        table = cases(suite.program)
        if set(wanted) - set(table):
            sys.exit(f"no such case: {', '.join(sorted(set(wanted) - set(table)))}")
        for name, body in table.items():
            if wanted and name not in wanted:
                continue
            work = directory / name
            work.mkdir()
            work.chmod(0o755)
            try:
                body(suite, work / "store")
                passed += 1
            except Skipped as why:
                print(f"{name}: SKIPPED, {why}", flush=True)
            except Failed as why:
                print(f"{name}: FAILED, {why}\n  again: {Path(__file__).name} {name}", flush=True)
                failed += 1
            shutil.rmtree(work, ignore_errors=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
