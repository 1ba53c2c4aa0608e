#!/usr/bin/env python3
"""The C interface from outside: builds abi.c against build/lib/libcordwood.so and runs its cases,
each in its own process and directory. `run.py [-k PATTERN …] [CASE …]`; the last line counts."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

import cases  # noqa: E402
from cases import Failed, Skipped  # noqa: E402
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
    """Flips some bytes, far past the header. Places are fractions of what was written."""
    data = bytearray(path.read_bytes())
    written = len(data.rstrip(b"\0"))
    for part in places:
        at = int(written * part)
        for i in range(at, min(at + 64, written)):
            data[i] ^= 0xFF
    path.write_bytes(data)


def damaged_segment(suite, store):
    suite.run("fill", store)
    segments = [p for p in (store / "lanes").iterdir() if p.suffix in (".seg", ".sealed")]
    flip(max(segments, key=lambda p: p.stat().st_size), [0.2, 0.45, 0.7])
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


# A host may contain objects of both kinds (docs/ABI.md).
OBJECTS = {"appends": (), "calls": ("-DCW_APPEND_CALL",)}
OBJECT = """
#include <cordwood/cordwood.h>
int NAME(cw_logger *log);
int NAME(cw_logger *log) {
    for (int i = 0; i < 20000; i++) {
        CW_INFO(log, "%d by %s", i, "NAME");
        CW_INFO(log, "%.*s", 4, "NAME and more");
        if (cw_write(log, CW_LEVEL_WARN, "NAME", 4) != CW_OK) return 1;
    }
    return 0;
}
"""
HOST = """
#include <cordwood/cordwood.h>
DECLARED
int main(int argc, char **argv) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[argc - 1];
    options.segment_bytes = 256u << 10;
    cw_engine *engine;
    cw_logger *log;
    if (cw_open(&options, &engine) || cw_logger_get(engine, "objects", &log)) return 2;
    if (CALLED) return 3;
    return cw_close(&engine, 60000) == CW_OK ? 0 : 4;
}
"""


def compiled(folder, name, text, include, *options):
    subprocess.run(["gcc", "-std=c11", "-O2", *options, "-I", include, "-x", "c", "-", "-c", "-o",
                    folder / f"{name}.o"], input=text.encode(), check=True)
    return folder / f"{name}.o"


def mixed_objects(_, store):
    """Objects that append and objects that call, in one process: every record is kept and read."""
    store.mkdir()
    include = ROOT / "include"
    objects = [compiled(store, name, OBJECT.replace("NAME", name), include, *options)
               for name, options in OBJECTS.items()]
    host = HOST.replace("DECLARED", "".join(f"int {name}(cw_logger *);\n" for name in OBJECTS))
    host = host.replace("CALLED", " || ".join(f"{name}(log)" for name in OBJECTS))
    program, lane = store / "host", store / "store"
    subprocess.run(["gcc", compiled(store, "main", host, include), *objects, "-o", program, "-L",
                    ROOT / "build/lib", "-lcordwood", f"-Wl,-rpath,{ROOT / 'build/lib'}"],
                   check=True)
    subprocess.run([program, lane], check=True, timeout=SECONDS_MAX)
    lines = subprocess.run([ROOT / "build/bin/cordwood", "cat", lane, "--json"], check=True,
                           capture_output=True).stdout.splitlines()
    found = Counter(json.loads(line)["message"] for line in lines)
    for at in OBJECTS:
        numbers = [found[f"{i} by {at}"] for i in range(20000)]
        if set(numbers) != {1} or found[at[:4]] != 40000:
            raise Failed(f"{at}: {Counter(numbers)}, {found[at[:4]]}")


PARTS = {"fill", "damaged", "newer", "append_fences_missing"}  # of other cases


def table(program):
    """Every case of the program runs, by itself or with the setup around it here."""
    lines = subprocess.run([program], capture_output=True, check=True, text=True).stdout
    found = {}
    for name, size in map(str.split, lines.splitlines()):
        if name not in PARTS:
            found[name] = partial(lambda name, suite, store: suite.run(name, store), name)
            found[name].size = size
    return found | {
        "damaged_segment": damaged_segment,
        "damaged_archive": damaged_archive,
        "newer_store": newer_store,
        "mixed_objects": cases.full(mixed_objects),
        "console_text": console("console_text", is_text),
        "console_json": console("console_json", is_json),
        "console_auto": console("console_auto", is_json),
        "console_sync": console("console_sync", is_text),
        "full_disk": full_disk("full_disk"),
        "full_disk_written": full_disk("full_disk_written"),
    }


def main():
    arguments = cases.parser().parse_args()
    forget_settings()
    with cases.folder("abi") as directory:
        suite, run = Suite(build(directory)), cases.Run()

        def one(name, case):
            work = directory / name
            work.mkdir()
            work.chmod(0o755)
            try:
                case(suite, work / "store")
            finally:
                shutil.rmtree(work, ignore_errors=True)
        run.all(cases.chosen(table(suite.program), arguments), one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
