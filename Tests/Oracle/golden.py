#!/usr/bin/env python3
"""Golden archives for every reader, and their expected content (FORMAT §11).

    golden.py        writes those that are missing into golden/, and adds them to expected.json

Files are added, never changed: the page defines their meaning, and a later encoder may make others.
In `hostile` and `newer` a whole block ("after NAME") follows each block that breaks the rule NAME,
or is of a newer format. golden/blocks has blocks for all rules (block_golden.py)."""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent / "golden"
sys.path.insert(0, str(FOLDER.parent))

from archive_writer import archive, extract, header  # noqa: E402
from block_cases import Clock, block, small  # noqa: E402
from block_golden import rows  # noqa: E402
from block_samples import LETTERS, cases, expected, good, made  # noqa: E402
from block_writer import Layout  # noqa: E402
from column_encoder import NUMBERED  # noqa: E402
from sample_texts import TEXTS, stamp_text  # noqa: E402
from tree import CODECS  # noqa: E402

# Of the blocks in golden/blocks, archives have one in so many, and none that is larger.
EVERY, LARGEST = 8, 3_000
LINES = {"Strings": (10,), "FieldLists": (0,)}


def alone(seed, prefer=None, layout=None, hour=None, **words):
    """A block whose records are of the archive's lane, `hour` after those of hour 0."""
    return good(seed, prefer, 12, layout or Layout(), alone=True,
                hour=seed % 100 if hour is None else hour, **words)


def of_kinds(*kinds):
    """A block for each number of these kinds of codecs and forms."""
    for hour, (kind, number) in enumerate(sorted(pair for pair in NUMBERED if pair[0] in kinds)):
        words = {"texts": TEXTS[number]} if kind == "Strings" else {}
        words["decimals"] = (kind, number) == ("Doubles", 1)
        words["traces"] = (kind, number) != ("Traces", 0)
        prefer = {"Strings": (3,), "Sections": (1,), kind: (number,)}
        yield alone(number, prefer if kind not in ("Ints", "Doubles") else {kind: (number,)},
                    hour=hour, **words)


def of_codec(codec):
    """Few frames, many, one, and a block without records."""
    for hour, layout in enumerate((
            Layout(codec=codec, flags=1), Layout(1, 1, 0.5, codec), Layout(20, 60, codec=codec),
            Layout(codec=codec, joined=True, flags=1))):
        yield alone(30, LETTERS, layout, hour, tidy=layout.flags == 1)
    yield good(40, count=0, layout=Layout(codec=codec), alone=True)


def samples():
    """(name, blocks, what is changed in their headers)."""
    yield "ints", list(of_kinds("Ints")), {}
    yield "doubles", list(of_kinds("Doubles")), {}
    yield "strings", list(of_kinds("Strings")), {}
    yield "forms", list(of_kinds("FieldLists", "Traces", "Sections", "mode")), {}
    for codec in CODECS:
        yield f"codec-{codec}", list(of_codec(codec)), {}
    yield "codecs-mixed", [alone(50 + hour, layout=Layout(codec=codec), hour=hour)
                           for hour, codec in enumerate(CODECS * 2)], {}
    for effort in (0, 1, 2, 3, 255):
        yield f"effort-{effort}", [alone(60, {} if effort else LINES)], {"effort": effort}
    yield "header", [alone(61)], {"compat": 1 << 63 | 1, "reserved": 0xFFFF, "more": 2**32 - 1}
    yield "json-fields", [alone(62, json=True)], {}
    yield "stamps", [alone(63, {"Strings": (4,)}, texts=stamp_text)], {}
    yield "whole", [found for _, found in some(True)], {}
    yield "no-blocks", [], {}


def some(is_whole):
    """(name, block) of some of the cases."""
    found = []
    for case, codec in cases():
        if case.is_whole == is_whole:
            Clock.now += 10**6
            block_of = made(case, codec)
            if len(block_of[1]) <= LARGEST:
                found.append((case.name, block_of))
    return found[::EVERY]


def with_extract():
    """Blocks of several codecs, and copies of their severe records (FORMAT §11.11)."""
    lines = [(1000 + number, number, 17 + number % 7 if number % 64 == 40 else 9)
             for number in range(512)]

    def of(lines, codec="zstd"):
        return block(small([b"order %d" % number for _, number, _ in lines], rows=lines),
                     Layout(codec=codec))
    blocks = [of(lines[at:at + 128], CODECS[at // 128 % 3]) for at in range(0, 512, 128)]
    return blocks, extract(1000, of([line for line in lines if line[2] > 9]))


def newer():
    """(name, changes in the header of a block)."""
    yield "codec-3", {"codec": 3}
    yield "codec-255", {"codec": 255}
    yield "incompat-0", {"incompat": 1}
    yield "incompat-63", {"incompat": 1 << 63}
    yield "incompat-and-codec", {"incompat": 2, "codec": 4}


def checksum(found):
    """The header of a block whose storedCRC is another one."""
    return header(found[0], found[1][:-1] + bytes([found[1][-1] ^ 1]))


def hostile():
    """(name, header's content, bytes after it) of blocks that must be called damaged."""
    for name, found in some(False):
        yield name, header(*found), found[1]
    found = block(small([b"accepted stored-crc"]))
    yield "stored-crc", checksum(found), found[1]


def of_newer():
    for name, change in newer():
        found = block(small([b"accepted " + name.encode()]))
        yield name, header(*found, **change), found[1]


def told(kind, blocks):
    """An archive of these blocks, and what a reader finds in it."""
    out, names, after = [], [], []
    for name, head, stored in blocks:
        Clock.now += 10**6
        after.append(block(small([b"after " + name.encode()])))
        names.append(name)
        out += [(head, stored), (header(*after[-1]), after[-1][1])]
    return archive(out), expectation(after) | {kind: names}


def expectation(blocks):
    """The number of readable records and the SHA-256 of their lines."""
    return rows("".join(map(expected, blocks)))


def archives():
    """(name, function that returns the archive and what a reader finds in it)."""
    for name, blocks, change in samples():
        yield name, lambda blocks=blocks, change=change: (archive(
            [(header(*found, **change), found[1]) for found in blocks]), expectation(blocks))
    yield "hostile", lambda: told("damaged", hostile())
    yield "newer", lambda: told("newer", of_newer())
    blocks, copies = with_extract()
    yield "extract", lambda: (archive(
        [(header(*found), found[1]) for found in blocks], copies), expectation(blocks))


def main():
    FOLDER.mkdir(exist_ok=True)
    place = FOLDER / "expected.json"
    known = json.loads(place.read_text()) if place.exists() else {}
    for name, make in archives():
        path = FOLDER / f"{name}.cwa"
        if path.exists():
            continue
        data, known[path.name] = make()
        path.write_bytes(data)
        place.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
        print(f"{path.name}: {len(data)} bytes, {known[path.name]['records']} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
