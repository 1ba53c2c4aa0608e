#!/usr/bin/env python3
"""Makes the first inputs of fuzzing, from stores that a real writer just wrote (seed.c) and from
the lists here: `seeds.py LIBRARY-FOLDER OUT`. OUT gets one folder per target. Packs what pack.h
takes apart: the switches, then each file as patches on zeros."""

import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REPAIR, FOLLOW, FILTER, THIS_BOOT, TWICE = 1, 2, 4, 8, 16
LANE, SEGMENT, SEALED, CATALOG, JOURNAL, ARCHIVE, STORE, TARGET, QUEUE, SPARE = range(10)
# A run of at least this many zeros ends a patch.
ZEROS = 24


def patches(data):
    """(offset, bytes) of everything that is not zero."""
    found = []
    for match in re.finditer(rb"[^\0](?:[^\0]|\0{1,%d}(?=[^\0]))*" % (ZEROS - 1), data):
        for at in range(match.start(), match.end(), 60_000):
            found.append((at, data[at:min(at + 60_000, match.end())]))
    return found


def u24(number):
    return struct.pack("<I", number)[:3]


def packed(kind, a, b, data):
    parts = patches(data)
    out = bytes([kind, a, b]) + u24(len(data)) + struct.pack("<H", len(parts))
    for at, piece in parts:
        out += u24(at) + struct.pack("<H", len(piece)) + piece
    return out


def files_of(store):
    """(kind, a, b, bytes) of a store's files, lane files first: repairs take the salt from them."""
    found = []
    names = sorted({p.name.split(".")[0] for p in (store / "lanes").glob("*.*") if
                    not p.name.startswith(".")})
    for path in sorted((store / "lanes").iterdir()):
        lane, _, rest = path.name.lstrip(".").partition(".")
        flag = 128 if lane in names and names.index(lane) % 2 else 0
        data = path.read_bytes()
        if rest == "lane":
            found.insert(0, (LANE | flag, 0, 0, data))
        elif rest == "journal":
            found.append((JOURNAL | flag, 0, 0, data))
        elif match := re.fullmatch(r"(\d+)-(\d+)\.(seg|sealed)", rest):
            kind = SEGMENT if match[3] == "seg" else SEALED
            found.append((kind | flag, int(match[1]), int(match[2]), data))
        elif match := re.fullmatch(r"catalog-(\d+)", rest):
            found.append((CATALOG | flag, int(match[1]), 0, data))
    for path in sorted((store / "archives").glob("*.cwa")):
        first, last = re.search(r"\.(\d+)-(\d+)\.[0-9a-f]+\.cwa$", path.name).groups()
        found.append((ARCHIVE, int(first), int(last), path.read_bytes()))
    return found


def build(library, folder):
    program = folder / "seed"
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
                    # A site contains its file: kept inputs must not name a path of one machine.
                    f"-fmacro-prefix-map={ROOT}=/src/cordwood", f"-I{ROOT}/include",
                    str(HERE / "seed.c"), f"-L{library}", "-lcordwood", f"-Wl,-rpath,{library}",
                    "-o", str(program)], check=True)
    return program


def stores(program, folder):
    for codec in range(3):
        for how in ("live", "flushed", "rolled", "closed"):
            store = folder / f"{how}-{codec}"
            subprocess.run([program, store, str(codec), how], check=True)
            if codec == 0 or how == "closed":
                yield f"{how}-{codec}", store


def store_seeds(program, folder):
    for name, store in stores(program, folder):
        files = files_of(store)
        body = b"".join(packed(*file) for file in files)
        store_file = packed(STORE, 0, 0, (store / "store").read_bytes())
        yield name, bytes([REPAIR | THIS_BOOT]) + body
        yield name + "-boot", bytes([REPAIR | TWICE]) + body + store_file
        yield name + "-follow", bytes([REPAIR | THIS_BOOT | FOLLOW | FILTER]) + body
        names = b"".join(packed(k, 254 if k & 127 in (SEGMENT, SEALED, ARCHIVE) else a, b, d)
                         for k, a, b, d in files)
        yield name + "-numbers", bytes([REPAIR | THIS_BOOT]) + names
    extract = (ROOT / "Tests/Oracle/golden/extract.cwa").read_bytes()
    yield "extract", bytes([REPAIR | FILTER]) + packed(ARCHIVE, 0, 0, extract)
    odd = packed(TARGET, 1, 0, b"cordwood target\nname x\n") + packed(QUEUE, 0, 1, b"")
    yield "queue", bytes([0]) + odd + packed(SPARE, 1, 0, b"CWSEGM01")


FORMATS = [
    (0, "plain", b""), (0, "%d %s %f", bytes([0, 5, 2])), (0, "%1$d %1$5d %2$*1$s", bytes([0, 5])),
    (0, "%-+ #010.3Lf|%ls|%lc|%m|%p", bytes([3, 6, 0, 4, 7])),
    (0, "%*.*s %hhx %jd", bytes([0, 0, 5])),
    (0, "%70000d%.70000f", bytes([0, 2])), (0, "%n%d%", bytes([0])), (1, "%d {}", b""),
    (2, "{} {:>8.2f} {2:*^9} {3:#x}", bytes([0, 2, 5, 11])), (2, "{:{}.{}} {{}}", bytes([2, 0, 0])),
    (2, "{:e} {:a} {:G} {:c} {:?}", bytes([2, 12, 3, 9, 5])),
    (2, "{0} {1:>8.2f} {2:*^9} {3:#x}", bytes([0, 2, 5, 11])),
    (3, "\u00e9{}{}{}", bytes([2, 12, 8])), (3, "{}", bytes([2])), (4, "{}%d", bytes([0])),
]
DOUBLES = [0.0, -0.0, 1.5, 1e300, 5e-324, float("inf"), float("nan"), 9007199254740993.0]


def text_seeds():
    chance = random.Random(5)
    for number, (style, text, classes) in enumerate(FORMATS):
        arguments = b""
        for kind in classes:
            one = kind + 1
            if one in (6, 7):
                words = "w\u00efde".encode("utf-32-le" if one == 7 else "utf-8")
                arguments += struct.pack("<I", len(words) // (4 if one == 7 else 1)) + words
            elif one == 3:
                arguments += struct.pack("<d", chance.choice(DOUBLES))
            else:
                size = {1: 4, 2: 8, 4: 16, 5: 8, 8: 4, 9: 1, 10: 1, 11: 4, 12: 8, 13: 4}[one]
                arguments += bytes(chance.choice((0, 1, 5, 255)) for _ in range(size))
        body = text.encode()
        yield f"format-{number}", (bytes([style, len(classes)]) + struct.pack("<H", len(body))
                                   + body + classes + arguments)


POLICIES = [
    '{"enabled": false, "levels": {"": "warn", "a.b": "INFO+2", "c": 7, "d": "off"}}',
    '{"expiration_days": 3, "max_files": 0, "max_file_size_bytes": 65536, "quota_bytes": 1e9,'
    ' "upload_interval_s": 4294967295, "unknown": [null, true, {"x": -1.5e-3}]}',
    '{"levels": {"a": 256}}', '{"max_files": 9223372036854775808}', "[[[[[[[[]]]]]]]]", "{}",
    '{"enabled": true, "enabled": false}', '{"a\\u0000b": "\\ud83d\\ude00"}',
]
ANSWERS = [
    '{"error": {"code": "SY/530", "message": {"lang": "de", "value": "Nein"}, "innererror": {'
    '"transactionid": "4FDF", "errordetails": [{"code": "Z", "message": "m", "propertyref": "T/I",'
    ' "severity": "error"}]}}}',
    '{"error": {"code": "M/011", "message": "m", "details": [{"code": "c", "target": "t",'
    ' "@Common.numericSeverity": 4}], "innererror": {"ErrorDetails": {'
    '"@SAP__common.TransactionId": "F1"}}}}',
    '<?xml version="1.0" encoding="utf-8"?><m:error xmlns:m="urn:x"><code>c</code><message '
    'xml:lang="en">a &amp; b</message><innererror><transactionid>T</transactionid><errordetails>'
    '<errordetail><code>d</code><message>n</message><propertyref/><severity>info</severity>'
    '</errordetail></errordetails></innererror></m:error>',
    '<!DOCTYPE error [<!ENTITY a "b">]><error><code>&a;</code></error>',
]


def remote_seeds():
    for number, text in enumerate(POLICIES):
        yield f"policy-{number}", b"\1" + text.encode()
    for number, text in enumerate(ANSWERS):
        yield f"answer-{number}", b"\0" + text.encode()


UUID = "586AB00B-0A2C-4E61-9C53-3F4C59D1A0F7"
WORDS = [
    ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
     "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"),
    ('Bearer realm="a \\"b\\"", scope=x', "Basic, Digest nonce=\"a,b\", realm=c", "=,=\"\\"),
    (f"TXN17-{UUID}", f"TXN-2147483648-{UUID}", "TXN0-" + UUID.replace("5", "0")),
    ("42\0Baad!", "\xff\xfe", "x" * 4097 + "\0" + "\u00e9" * 3000),
    (f"cordwood deleted\nformat 1\nall 17\nTXN17-{UUID} 18446744073709551615\n",
     f"cordwood deleted\nformat 1\nall 17 {'0a' * 16} 5\nTXN17-{UUID} 1 {'0b' * 16} 9\n",
     "cordwood deleted\nformat 2\n", "cordwood deleted\nformat 1\nall x\n\n"),
]


def word_seeds():
    for which, texts in enumerate(WORDS):
        for number, text in enumerate(texts):
            yield f"word-{which}-{number}", bytes([which]) + text.encode()


def call_seeds():
    """Calls are decoded from bytes: any bytes are calls."""
    chance = random.Random(7)
    for number in range(48):
        yield f"calls-{number}", bytes(chance.choice((0, 1, 3, 5, chance.randrange(256)))
                                       for _ in range(chance.choice((16, 64, 256, 700))))
    for op in range(37):
        yield f"op-{op}", bytes([op]) + bytes(chance.randrange(200) for _ in range(60))


def exchange_seeds():
    """An exchange is decoded from bytes: any bytes are one."""
    chance = random.Random(11)
    for first in (0, *range(64, 200, 8), 200, 210, 220, 230, 240, 250):
        for number in range(6):
            yield f"exchange-{first}-{number}", bytes([first]) + chance.randbytes(120)
    for piece in ('"v":1,', '{"value":[', "<a b='", "<td>token</td><td>", "token:\n ", "&quot;",
                  "Basic ", "//a:b@", "password: |\n", "-----BEGIN PRIVATE KEY-----"):
        yield f"repeated-{len(piece)}", bytes([250, len(piece) - 1]) + piece.encode()


def transfer_seeds():
    """A libcurl run is decoded from bytes: any bytes are one."""
    chance = random.Random(13)
    for number in range(24):
        yield f"simple-{number}", bytes([chance.randrange(40)]) + chance.randbytes(300)
    # Steps as curl.c decodes them: a request, an answer, chunks, a text.
    asks, moved, more = bytes([0, 0, 0, 1, 0, 1, 0]), bytes([2, 1, 0, 1, 0]), bytes([7, 0, 1])
    framed, chunks = bytes([2, 0, 1, 1, 1, 0]), bytes([5, 2, 3]) + b"abc" + bytes([2]) + b"de\1\0"
    early, refused = bytes([3, 4, 0, 1, 0]), bytes([7, 1, 1])
    tunnel = bytes([0, 2, 0, 0, 1, 0, 2, 0, 0, 1, 0])
    for number, steps in enumerate((asks + moved + more + asks + framed + chunks,
                                    asks + asks + early + framed + chunks,
                                    tunnel + asks + moved + asks + framed + refused + chunks)):
        for code in range(8):
            yield f"hops-{number}-{code}", bytes([41, code, 0]) + steps
    for number in range(48):
        steps = b"".join(bytes([chance.choice((0, 2, 5, 8, chance.randrange(256)))])
                         + chance.randbytes(chance.randrange(30)) for _ in range(12))
        yield f"run-{number}", bytes([chance.randrange(40, 256)]) + chance.randbytes(2) + steps


def block_seeds():
    """Golden blocks as block.swift takes them apart, also with frames that are not compressed."""
    sys.path.insert(0, str(ROOT / "Tests/Oracle"))
    import block_golden  # pylint: disable=import-outside-toplevel
    codecs = {"zstd": 0, "lz4": 1, "none": 2}
    for of, blocks in block_golden.lists().items():
        for name, (words, stored) in blocks.items():
            forms = {words["codec"]: stored}
            if parts := block_golden.opened(words, stored):
                forms["none"] = block_golden.closed(*parts, "none")
            for codec, content in forms.items():
                yield f"{of}-{name}-{codec}", struct.pack(
                    "<BII", codecs[codec] | 4, words["count"], words["raw"]) + content


def make(library, out, guided=False):
    """guided: also the inputs of targets that only libFuzzer runs."""
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(library, folder)
        found = list(store_seeds(program, folder))
        seeds = {"store": found, "adopt": found, "text": text_seeds(), "abi": call_seeds(),
                 "remote": remote_seeds(), "words": word_seeds(),
                 "http": exchange_seeds(), "curl": transfer_seeds()}
        if guided:
            seeds["block"] = block_seeds()
        for target, inputs in seeds.items():
            (out / target).mkdir(parents=True)
            for name, data in inputs:
                (out / target / name).write_bytes(data)


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
