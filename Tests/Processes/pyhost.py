"""A multi-threaded Python host whose children log: multiprocessing by fork, spawn and forkserver,
and workers forked before the work as web servers do, killed and forked again. Or it has no
children, and its store is moved (moved.py).

    pyhost.py WAY STORE LEDGER [CHILDREN RECORDS]

Each writer owns a slot of the ledger (host.h) by its number and counts its kept records there.
run.py compares. Prints the seconds until all children had ended. Exits with 0 if all is well."""

import mmap
import multiprocessing
import os
import select
import signal
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings/python/src"))
import cordwood  # noqa: E402  pylint: disable=wrong-import-position

SLOT = struct.Struct("<IIQQQ")
SLOTS_MAX = 65536
THREADS = 4


class Writer:
    """One slot of the ledger, and the records that belong to it."""

    def __init__(self, path, index, log):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SLOTS_MAX * SLOT.size)
        self.index, self.log, self.returned = index, log, 0
        self.note()

    def note(self):
        self.memory[self.index * SLOT.size:(self.index + 1) * SLOT.size] = SLOT.pack(
            os.getpid(), 1, self.returned, 0, 0)

    def write(self):
        kept = self.log.info("w %d %d from Python", self.index, self.returned)
        if kept:
            self.returned += 1
            self.note()
        return kept


ENGINE = LOG = None


def child(way, store, path, index, records):
    """A multiprocessing child. If it was not forked, it opens the store itself."""
    engine, log = ENGINE, LOG
    if engine is None:
        engine = cordwood.open(store)
        log = engine.logger("python.child")
    writer = Writer(path, index, log)
    for _ in range(records):
        if not writer.write():
            sys.exit(3)
    if index % 3 == 0 or way != "fork":
        engine.close(20.0)


def noise(path, index, stop):
    """A thread of the parent that logs continuously."""
    writer = Writer(path, index, LOG)
    while not stop.is_set():
        if not writer.write():
            os._exit(4)
        time.sleep(0.0005)


def run_multiprocessing(way, store, path, children, records):
    """In waves, like a pool. A child that does not end is killed and counted."""
    context = multiprocessing.get_context(way)
    failed = 0
    for first in range(0, children, 20):
        wave = [context.Process(target=child, args=(way, store, path, 16 + n, records))
                for n in range(first, min(first + 20, children))]
        for process in wave:
            process.start()
        for process in wave:
            process.join(60)
            if process.exitcode != 0:
                print(f"child ended with {process.exitcode}", flush=True)
                process.kill()
                failed += 1
    return failed


def worker(path, index, records):
    """A web server's worker: logs, occasionally from another thread; ends by SIGTERM."""
    signal.alarm(60)
    writer = Writer(path, index, LOG)
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
    thread = threading.Thread(target=lambda: None)
    thread.start()
    for _ in range(records):
        if not writer.write():
            os._exit(3)
    thread.join()
    while True:
        time.sleep(0.05)  # not pause: Python's handler runs after it, if SIGTERM came just before


def run_prefork(path, children, records):
    """Keeps 8 workers. Each that has logged is ended and replaced, half by SIGKILL."""
    failed = 0
    alive = {}
    started = 0
    table = Writer(path, 15, LOG)
    while started < children or alive:
        while len(alive) < 8 and started < children:
            index = 16 + started
            pid = os.fork()
            if pid == 0:
                worker(path, index, records)
            alive[pid] = (index, time.monotonic())
            started += 1
        for pid, (index, since) in list(alive.items()):
            entry = table.memory[index * SLOT.size:(index + 1) * SLOT.size]
            if SLOT.unpack(entry)[2] < records and time.monotonic() - since < 60:
                continue
            if time.monotonic() - since >= 60:
                failed += 1
            os.kill(pid, signal.SIGKILL if index % 2 else signal.SIGTERM)
            os.waitpid(pid, 0)
            del alive[pid]
        time.sleep(0.002)
    return failed


def run_until_eof():
    """Segments roll until stdin ends."""
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        ENGINE.roll()
    return 0


def main():
    """Opens, starts threads and children, closes."""
    global ENGINE, LOG  # pylint: disable=global-statement
    way, store, path, *counts = sys.argv[1:]
    children, records = map(int, counts or (0, 0))
    with open(path, "w+b") as file:
        file.truncate(SLOTS_MAX * SLOT.size)
    ENGINE = cordwood.open(store)
    LOG = ENGINE.logger("python.parent")
    stop = threading.Event()
    threads = [threading.Thread(target=noise, args=(path, 1 + n, stop)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    if way == "moved":
        failed = run_until_eof()
    elif way == "prefork":
        failed = run_prefork(path, children, records)
    else:
        failed = run_multiprocessing(way, store, path, children, records)
    if way != "moved":
        print(f"{children} children in {time.monotonic() - begun:.1f} s", flush=True)
    stop.set()
    for thread in threads:
        thread.join()
    if way == "moved":
        ENGINE.roll()
        ENGINE.archive_wait(20.0)
        print(f"dropped {ENGINE.stats().records_dropped}", flush=True)
    ENGINE.close(20.0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
