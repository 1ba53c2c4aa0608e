#!/usr/bin/env python3
"""Makes docs/pictures/viewer.png again: the page over a seeded store, with invented times, names
and places. Needs what journeys.py needs.

    picture.py [FILE]"""

import collections
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(ROOT / "Tests/TestSupport")]

import cases  # noqa: E402
import environments  # noqa: E402
import journeys  # noqa: E402

BYTES_MAX = 150_000
SIZE = {"width": 1280, "height": 720}

# One machine's program: argv is the store, the machine, the program and a seed.
PROGRAM = """
import logging, random, sys
import cordwood
store, host, name, seed = sys.argv[1:]
chance = random.Random(seed)
engine = cordwood.open(store, process_name=name, level="trace", console="off")
engine.set_resource("host.name", host)
engine.set_resource("service.name", name)
engine.set_resource("os.version", "12")
handler = cordwood.Handler(engine)
WORDS = [
    ("http", logging.INFO, "http.py", 88, "GET /orders/%d: 200 in %d ms"),
    ("http", logging.INFO, "http.py", 88, "POST /orders/%d: 201 in %d ms"),
    ("db", logging.DEBUG, "db.py", 41, "order %d read in %d us"),
    ("cart", logging.INFO, "cart.py", 17, "order %d: %d items"),
    ("db", logging.WARNING, "db.py", 52, "order %d waits for a lock since %d ms"),
    ("pay", logging.ERROR, "pay.py", 130, "order %d: the bank timed out after %d ms"),
]
for number in range(900):
    at = 1_790_000_000 + number * 2 + chance.random() * 2
    late = 560 < number < 640
    pick = chance.choices(WORDS, [30, 8, 25, 12, 6 if late else 1, 9 if late else 0.2])[0]
    logger, level, file, line, text = pick
    order = 7_000 + number // 3
    made = logging.getLogger().makeRecord(
        f"{name}.{logger}", level, file, line, text, (order, chance.randrange(3, 900)), None,
        extra={"order": order, "customer": chance.choice(["anna", "bo", "chen", "dora"])})
    made.created, made.threadName = at, f"worker-{number % 3}"
    handler.emit(made)
engine.close()
"""


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pixels(png):
    """Width, and rows of (red, green, blue), of Chromium's output: 8 bits, no interlacing."""
    width, height, depth, color = struct.unpack(">IIBB", png[16:26])
    size = {2: 3, 6: 4}[color]
    cases.equal("bits", depth, 8)
    packed, at = b"", 8
    while at < len(png):
        length = struct.unpack(">I", png[at:at + 4])[0]
        if png[at + 4:at + 8] == b"IDAT":
            packed += png[at + 8:at + 8 + length]
        at += length + 12
    data, stride = zlib.decompress(packed), width * size
    before, rows = bytearray(stride), []
    for start in range(0, height * (stride + 1), stride + 1):
        kind, row = data[start], bytearray(data[start + 1:start + 1 + stride])
        for index in range(stride if kind else 0):
            left = row[index - size] if index >= size else 0
            up, corner = before[index], before[index - size] if index >= size else 0
            if kind == 4:
                near = left + up - corner
                guess = min((left, up, corner), key=lambda one: abs(near - one))
            else:
                guess = (left, up, (left + up) // 2)[kind - 1]
            row[index] = (row[index] + guess) & 255
        rows.append([tuple(row[index:index + 3]) for index in range(0, stride, size)])
        before = row
    return width, rows


def in_few_colours(png):
    """The same picture with at most 256 colours: the frequent ones; others become the nearest."""
    width, rows = pixels(png)
    found = collections.Counter(one for row in rows for one in row)
    palette = [color for color, _ in found.most_common(256)]
    number = {color: index for index, color in enumerate(palette)}
    for color in found:
        if color not in number:
            number[color] = min(range(len(palette)), key=lambda index: sum(
                (a - b) ** 2 for a, b in zip(color, palette[index])))
    data = b"".join(b"\0" + bytes(number[one] for one in row) for row in rows)
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0))
            + chunk(b"PLTE", b"".join(map(bytes, palette)))
            + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def draw(browser, folder, file):
    store = folder / "store"
    for seed, (host, name) in enumerate((("web-1", "shop"), ("web-2", "shop"), ("pay-1", "bank"))):
        subprocess.run(
            [sys.executable, "-c", PROGRAM, store, host, name, str(seed)], check=True,
            env={**os.environ, "CORDWOOD_LIBRARY": str(journeys.BUILD / "lib/libcordwood.so"),
                 "PYTHONPATH": str(ROOT / "bindings/python/src")})
    server = journeys.Server(store)
    context = browser.new_context(viewport=SIZE, color_scheme="light", timezone_id="UTC")
    page = context.new_page()
    page.goto(server.link)
    page.goto(server.link.split("/open/")[0] + "/#q=kind%3Dlog+level%3E%3Dinfo")
    page.reload()
    page.locator("#count", has_text="match").wait_for()
    page.locator(".row", has_text="timed out").last.click()
    page.locator("#detail dl").wait_for()
    page.wait_for_load_state("networkidle")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(in_few_colours(page.screenshot()))
    context.close()
    server.end()


def main():
    file = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs/pictures/viewer.png")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        python = environments.interpreter("viewer")
        os.execv(python, [python, *sys.argv])
    with cases.folder("picture") as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=journeys.CHROMIUM, args=["--no-sandbox"])
        draw(browser, folder, file)
        browser.close()
    size = file.stat().st_size
    print(f"{file}: {size} bytes, at most {BYTES_MAX}")
    return int(size > BYTES_MAX)


if __name__ == "__main__":
    sys.exit(main())
