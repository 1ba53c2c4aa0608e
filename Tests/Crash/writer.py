"""Like writer.c, in Python: writes at full rate from eight threads until it is killed, or dies by
itself. A shared mapping, which outlives the process, counts what each thread was told is kept.

    writer.py STORE KEPT_FILE SEGMENT_BYTES SEED [HOW RECORDS]

Odd threads pass arguments; 2, 6: text and a field; 0, 4: bytes. HOW: main dies in this way when
RECORDS records are kept. Threads are daemons: the interpreter ends without them."""

import ctypes
import mmap
import os
import signal
import sys
import threading
import time

import cordwood

THREADS, LONGEST = 8, 3000
LETTERS = "".join(chr(ord("a") + index % 26) for index in range(LONGEST + 26))


def filler(seed, thread, number):
    length = LONGEST if number % 997 == 996 else 20 + (
        number * 7919 + thread * 104729 + seed) % 180
    start = number % 26
    return LETTERS[start:start + length]


def run(log, thread, seed, kept):
    number = 0
    while True:
        text = filler(seed, thread, number)
        if thread % 2:
            done = log.info("t%d n%d %s", thread, number, text)
        elif thread % 4 == 2:
            done = log.info(f"t{thread} n{number} {text}", number=number)
        else:
            done = log.write("info", f"t{thread} n{number} {text}".encode())
        if not done:  # refused and counted: not kept, and this thread ends
            return
        number += 1
        kept[thread * 8] = number


def die(how):
    if how == "exit":
        sys.exit(3)
    if how == "raise":
        raise RuntimeError("nobody catches this")
    if how == "_exit":
        os._exit(3)
    if how == "abort":
        os.abort()
    if how == "term":
        os.kill(os.getpid(), signal.SIGTERM)
    if how == "segv":
        ctypes.string_at(8)


def main():
    store, counters, segment, seed = sys.argv[1:5]
    how, records = sys.argv[5:7] if len(sys.argv) > 5 else ("", "0")
    with open(counters, "w+b") as file:
        file.truncate(4096)
        kept = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
    engine = cordwood.open(store, segment_bytes=int(segment))
    log = engine.logger("crash")
    threads = [threading.Thread(target=run, args=(log, number, int(seed), kept), daemon=True)
               for number in range(THREADS)]
    for thread in threads:
        thread.start()
    while not how or sum(kept[::8]) < int(records):
        time.sleep(0.001)
    die(how)


if __name__ == "__main__":
    main()
