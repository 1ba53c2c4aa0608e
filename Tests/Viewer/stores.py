"""Stores for the viewer's tests, and the command line's output for them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "Tests/TestSupport"), str(ROOT / "Tests/Query"),
                str(ROOT / "Tests/Oracle"), str(ROOT / "bindings/python/src")]
os.environ.setdefault("CORDWOOD_LIBRARY", str(ROOT / "build/lib/libcordwood.so"))

from cases import Failed, equal, holds, until  # noqa: E402
from decode import Store  # noqa: E402
from model import parse  # noqa: E402
from serving import BUILD, CORDWOOD, environment  # noqa: E402

PARTS = "rows,hist,facets,count"


def tool(*arguments, codes=(0,)):
    done = subprocess.run([CORDWOOD, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, env=environment())
    if done.returncode not in codes:
        raise Failed(f"cordwood {arguments} ended {done.returncode}: {done.stderr[:300]!r}")
    return done


def cat(store, *arguments):
    printed = tool("cat", "--json", store, *arguments).stdout
    return [json.loads(line) for line in printed.split(b"\n")[:-1]]


def plain(row):
    """A row as `cat --json` prints it."""
    return {name: value for name, value in row.items() if name not in ("key", "time_ns", "self")}


def write(store, count, message="record %d", times=None, name="app", roll=0, **fields):
    """Writes records by the Python binding, in its own process. roll: records per archive."""
    program = f"""
import logging, sys
import cordwood
engine = cordwood.open(sys.argv[1])
handler = cordwood.Handler(engine)
logger = logging.getLogger({name!r})
for number in range({count}):
    made = logger.makeRecord({name!r}, logging.INFO, "place.py", 1 + number % 7,
                             {message!r} % number if "%" in {message!r} else {message!r}, (), None,
                             extra=dict({fields!r}, n=number))
    if {times!r}:
        made.created = {times!r}
    handler.emit(made)
    if {roll} and number % {roll} == {roll} - 1:
        engine.roll()
        engine.archive_wait()
engine.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(store)], check=False, stderr=subprocess.PIPE,
        env=environment(PYTHONPATH=str(ROOT / "bindings/python/src"),
                        CORDWOOD_LIBRARY=os.environ["CORDWOOD_LIBRARY"]))
    equal("the writer ended", (done.returncode, done.stderr), (0, b""))


def writer(folder, store, seed, process, *more, records):
    """writer.c of the query tests: every kind of record."""
    program = folder / "writer"
    if not program.exists():
        subprocess.run(
            ["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include",
             ROOT / "Tests/Query/writer.c", "-o", program, "-L", BUILD / "lib", "-lcordwood",
             f"-Wl,-rpath,{BUILD / 'lib'}"], check=True)
    return subprocess.Popen(
        [program, str(store), str(seed), str(records), process, *map(str, more)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())


def mixed(folder, seed, records=700):
    """A store of archives, and of a lane held by a stopped process."""
    store = folder / "mixed"
    first = writer(folder, store, seed, "desk", "roll", 150, records=records)
    first.communicate(timeout=60)
    tool("archive", store)
    second = writer(folder, store, seed + 1, "shop", "roll", 150, records=records)
    equal("the writer says", second.stdout.readline(), b"ready\n")
    until(lambda: not list((store / "lanes").glob("*.sealed")), "archiving")
    second.send_signal(signal.SIGSTOP)
    return store, second


def oracle(store):
    """A function that counts what a query finds among the records that the oracle decodes, with a
    plain filter written from QUERY.md."""
    found = Store(str(store))
    holds(not found.problems, f"the oracle: {found.problems[:3]}")
    return lambda query: sum(map(parse(query), found.records))


def let_go(process):
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
