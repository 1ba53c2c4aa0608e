"""Swift's reader and writer of blocks against the oracle: hostile texts, and blocks whose bytes
were changed. Only --all builds the tool that this takes (block_against.py)."""

import json
import os
import random
import struct
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import block_against  # noqa: E402
import deferred  # noqa: E402
from block import columns, decode  # noqa: E402
from block_golden import closed, entries, entry, found_lines, lists, opened  # noqa: E402
from block_cases import read  # noqa: E402
from block_samples import cases, expected, good_blocks, made  # noqa: E402
from cases import only_all  # noqa: E402
from record import as_json  # noqa: E402
from tree import CODECS, LIMITS, Tree  # noqa: E402
from wire import Bytes, Damage  # noqa: E402

TEXT_BYTES = 1_000_000_000
# Of the texts' blocks the oracle reads one in so many: it takes seconds for each.
EVERY = 80
CHANGES, BATCH = 10_000, 250


def lines(words, stored, limits=LIMITS):
    """None: damaged."""
    try:
        tree = Tree(words["count"], words["raw"], words["codec"], stored, limits)
        return "".join(as_json(record) + "\n" for record in decode(tree))
    except Damage:
        return None


def arguments(words, stored):
    """The lines, where a deferred record has its arguments as message. What makes a text of changed
    ones is tested elsewhere. None: damaged."""
    try:
        tree = Tree(words["count"], words["raw"], words["codec"], stored)
        found = columns(tree)
        records, source, chosen = decode(tree, found), Bytes(found.arguments), iter(
            found.numbers["format"])
    except Damage:
        return None
    for record, kind in zip(records, found.numbers["kind"]):
        if kind & 64:
            start = source.at
            deferred.arguments(found.formats[next(chosen)].types, source)
            record.message = found.arguments[start:source.at]
    return "".join(as_json(record) + "\n" for record in records)


# Members of a line that a section may decide.
OF_SECTIONS = {"time", "fields", "file", "line", "function", "trace_id", "span_id", "message",
               "message_base64"}


def outside(line):
    """A line without them. Changed sections are FORMAT §8.1, and tested elsewhere."""
    return [pair for pair in line if pair[0] not in OF_SECTIONS]


def parsed(text):
    return [json.loads(line, object_pairs_hook=list) for line in text.split("\n") if line]


@only_all
class Against(unittest.TestCase):
    def test_texts(self):
        """What Swift wrote of them at each effort it reads again (block_tool.swift), and of a share
        the oracle finds what was put in."""
        with tempfile.TemporaryDirectory() as folder:
            print(block_against.texts(TEXT_BYTES, 1, folder, EVERY), end="")
            total = 0
            for path in sorted(Path(folder).glob("*.list")):
                wanted = parsed(path.with_suffix(".json").read_text())
                for effort, block in entries(path.read_bytes()).items():
                    total += block[0]["raw"]
                    with self.subTest(f"{path.name}: {effort}"):
                        self.assertEqual(parsed(lines(*block) or ""), wanted)
            print(f"the oracle read {total} bytes")

    def test_generated(self):
        """Blocks that are too large to be golden, or take seconds each to make."""
        known = {name for of in lists().values() for name in of}
        for name, make in good_blocks():
            if name not in known:
                self.compare(name, make(), True)
        for case, codec in (*cases(), *cases(heavy=True)):
            if case.name.replace("^", "_") not in known:
                block = made(case, codec)
                self.compare(case.name, block, case.is_whole)
                if case.lift:
                    read(block, case.lift)

    def compare(self, name, block, is_whole):
        result, text = found_lines(block_against.tool("lines", entry("one", *block)))["one"]
        with self.subTest(name):
            self.assertEqual(result, "whole" if is_whole else "damaged")
            self.assertEqual(lines(*block), expected(block) if is_whole else None)
            if is_whole:
                self.assertEqual(parsed(text), parsed(expected(block)))

    def test_changes(self):
        """A block is whole for both or damaged for both, and then has the same records."""
        chance = random.Random(1)
        blocks = [block for of in lists().values() for block in of.values() if len(block[1]) < 6000]
        # The whole ones first, which most changes are made of.
        blocks.sort(key=lambda block: lines(*block) is None)
        whole = sum(lines(*block) is not None for block in blocks)
        parts = [opened(*block) for block in blocks]
        counts, apart = {True: 0, False: 0}, 0
        for _ in range(0, CHANGES, BATCH):
            batch = {str(at): _changed(chance, blocks, parts, whole) for at in range(BATCH)}
            found = found_lines(block_against.tool(
                "arguments", b"".join(entry(name, *block) for name, block in batch.items())))
            for name, block in batch.items():
                wanted, (result, text) = arguments(*block), found[name]
                counts[wanted is not None] += 1
                same = result == ("damaged" if wanted is None else "whole")
                if same and wanted and wanted != text:
                    ours, theirs = parsed(text), parsed(wanted)
                    same = list(map(outside, ours)) == list(map(outside, theirs))
                    apart += ours != theirs
                if not same:
                    kept = Path(tempfile.mkdtemp(), "changed.block")
                    kept.write_bytes(entry("changed", *block))
                    self.fail(f"{result} here, there {'damaged' if wanted is None else 'whole'}: "
                              f"{kept}")
        print(f"{counts[True]} whole, of which {apart} were compared without sections; "
              f"{counts[False]} damaged")
        self.assertGreater(counts[True], CHANGES / 20)


def _changed(chance, blocks, parts, whole):
    at = chance.randrange(whole if chance.random() < 0.8 else len(blocks))
    (words, stored), part = blocks[at], parts[at]
    kind = chance.randrange(10)
    if kind < 4 or part is None:
        other = chance.choice(blocks)[1]
        return _words(chance, words) if kind == 3 else words, (
            _edited(chance, stored, other), stored[:chance.randrange(len(stored) + 1)],
            stored[:chance.randrange(len(stored) + 1)] + other[chance.randrange(len(other) + 1):],
            stored)[kind % 4]
    # Behind right checksums.
    head, contents = bytearray(part[0]), list(part[1])
    other = chance.choice([part for part in parts if part])[1]
    for _ in range(chance.choice((1, 1, 2, 3))):
        number = min(chance.randrange(len(contents)), chance.randrange(len(contents)))
        contents[number] = _edited(chance, contents[number], chance.choice(other))
    if kind == 9:
        place = chance.choice((8, 12, 16, 20))
        word, = struct.unpack_from("<I", head, place)
        struct.pack_into("<I", head, place, max(word + chance.randrange(-3, 4), 0) & 2**32 - 1)
    elif len(contents[0]) != len(part[1][0]) and chance.random() < 0.7:
        # What was put into the pool was put into the meta stream.
        word, = struct.unpack_from("<I", head, 12)
        struct.pack_into("<I", head, 12, max(word + len(contents[0]) - len(part[1][0]), 0))
    words = {**words, "codec": chance.choice(CODECS)}
    stored = closed(bytes(head), contents, words["codec"])
    return _sized(words, stored) if chance.random() < 0.8 else words, stored


def _sized(words, stored):
    """With the size that the changed columns have."""
    try:
        tree = Tree(words["count"], words["raw"], words["codec"], stored, replace(
            LIMITS, size_more=1 << 22))
        columns(tree)
        return {**words, "raw": tree.size}
    except Damage:
        return words


def _words(chance, words):
    name = chance.choice(("count", "raw"))
    return {**words, name: max(words[name] + chance.choice((-64, -2, -1, 1, 2, 64)), 0),
            "codec": chance.choice((words["codec"], *CODECS))}


def _edited(chance, content, other):
    if not content:
        return other[:chance.randrange(3)]
    at, size = chance.randrange(len(content)), chance.choice((1, 1, 2, 9))
    kind = chance.randrange(6)
    if kind < 3:
        byte = (content[at] ^ 1 << chance.randrange(8), chance.choice((0, 1, 127, 128, 255)),
                (content[at] + chance.choice((-2, -1, 1, 2))) % 256)[kind]
        return content[:at] + bytes([byte]) + content[at + 1:]
    if kind == 3:
        return content[:at] + content[at + size:]
    if kind == 4:
        return content[:at] + chance.randbytes(size) + content[at:]
    start = chance.randrange(len(other) + 1)
    piece = other[start:start + chance.choice((1, 4, 16))]
    return content[:at] + piece + content[at + len(piece):]


if __name__ == "__main__":
    unittest.main()
