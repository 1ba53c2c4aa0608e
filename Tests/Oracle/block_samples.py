"""Blocks for every reader of docs/BLOCK.md, by seed, and those of block_hostile.py. The records
that a reader must find are those of the payload of method 1 that a block was made of (FORMAT
§11.4), not what the reader of blocks made of it."""

import random
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import block_bounds  # noqa: E402,F401 (adds to MINE)
from archive import decode_payload  # noqa: E402
from block_hostile import CODECS, MINE, SHARED, Block  # noqa: E402
from block_writer import BlockLayout, BlockWriter, encode  # noqa: E402
from dense import varint  # noqa: E402
from dense_encoder import DOUBLES, INTS, Choice  # noqa: E402
from dense_hostile import Making  # noqa: E402
from dense_samples import TEXTS, Sample, odd_text, stamp_text, string  # noqa: E402
from record import as_json  # noqa: E402

UTC = 1_790_000_000 * 10**9
# Every codec and form, as Tree.met names them.
NUMBERED = {(kind, number) for kind, numbers in (
    ("Ints", INTS), ("Doubles", DOUBLES), ("Strings", BlockWriter.string_writers),
    ("FieldLists", (0, 1)), ("Traces", (0, 1)), ("Sections", (0, 1)), ("mode", (0, 1)))
    for number in numbers}
# Texts that do not hide in planes.
LETTERS = {"Strings": (10,), "FieldLists": (1,), "Sections": (1,)}
LONG_TEXTS = {**TEXTS, 10: odd_text}


class BlockSample(Sample):
    """Records of several processes with attributes."""

    def _tables(self):
        super()._tables()
        chance = self.random
        count = self._upto(4, 1)
        self.streams[0] = varint(count) + b"".join(map(self._process, range(count)))
        self.streams[1] = varint(self.threads) + b"".join(
            varint(self._upto(count - 1)) + varint(chance.choice((serial + 1, 2**32 - 1 - serial)))
            + varint(self._upto(2**31)) + string(chance.choice((b"", b"main", b"\xff", b"a\nb")))
            for serial in range(self.threads))

    def _process(self, number):
        chance = self.random
        keys = chance.choice(((), (b"service.name",), (b"k", b"host.name"), (b"", b"a", b"\xff")))
        return (chance.randbytes(16) + chance.choice((bytes(16), chance.randbytes(16)))
                + varint(chance.choice((1, 812 + number, 2**31 - 1)))
                + varint(UTC + self._upto(10**9)) + varint(self._upto(10**12))
                + string(chance.choice((b"", b"host", b"a b", "größe".encode())))
                + varint(len(keys)) + b"".join(
                    string(key) + string(chance.choice((b"", b"v", b"1.2\n", b"x" * 200)))
                    for key in keys))


def good(seed, prefer=None, count=24, layout=None, tidy=False, **words):
    """A block of that seed's sample."""
    sample = BlockSample(seed, count, **words)
    return encode(sample.payload, count, Choice(seed, prefer, tidy), layout or BlockLayout(
        codec=CODECS[seed % 3]))


def good_blocks():
    """(name, function that returns the block) of all that were not made by hand."""
    for kind, number in sorted(NUMBERED):
        words = {"texts": LONG_TEXTS[number]} if kind == "Strings" else {}
        words["decimals"] = (kind, number) == ("Doubles", 1)
        words["traces"] = (kind, number) != ("Traces", 0)
        prefer = {"Strings": (3,), "Sections": (1,), kind: (number,)}
        if kind in ("Ints", "Doubles"):
            prefer = {kind: (number,)}
        yield (f"{kind.lower()}-{number}", lambda prefer=prefer, words=words, number=number:
               good(100 + number, prefer, **words))
    for codec in CODECS:
        for name, layout in (
                ("few", BlockLayout(20, 60, codec=codec)),
                ("many", BlockLayout(1, 1, duplicates=0.5, codec=codec)),
                ("of-planes", BlockLayout(1, 1 << 20, duplicates=0, codec=codec)),
                ("of-texts", BlockLayout(1 << 20, 1, codec=codec)),
                ("one", BlockLayout(joined=True, duplicates=0.5, codec=codec)),
                ("with-flags", BlockLayout(codec=codec, flags=1))):
            yield (f"frames-{name}-{codec}", lambda layout=layout: good(
                30, LETTERS, layout=layout, tidy=layout.flags == 1))
        yield f"empty-{codec}", lambda codec=codec: good(
            40, count=0, layout=BlockLayout(codec=codec))
        yield f"large-{codec}", lambda codec=codec: good(
            50, count=400, layout=BlockLayout(300, 4000, codec=codec))
    yield "one-record", lambda: good(41, count=1)
    yield "json-fields", lambda: good(42, json=True)
    yield "stamps", lambda: good(43, {"Strings": (4,)}, texts=stamp_text)
    yield "times-over-2^63", lambda: good(44, hour=2_562_100)
    for seed in range(60, 80):
        chance = random.Random(seed)
        layout = BlockLayout(chance.choice((1, 5, 40, 1 << 20)), chance.choice((1, 5, 40, 1 << 20)),
                             chance.choice((0, 0.5, 1)), CODECS[seed % 3])
        yield f"seed-{seed}", lambda seed=seed, layout=layout, count=chance.choice((2, 7, 40)): (
            good(seed, count=count, layout=layout))


def expected(block):
    """The lines of JSON."""
    words, _ = block
    return "".join(as_json(record) + "\n" for record in decode_payload(
        words["payload"], words["count"], {}))


def cases(heavy=False):
    """Those of block_hostile.py. Those that reach no limit have frames of all codecs by turns."""
    limits = {case.name.removesuffix("-over") for case in SHARED if case.name.endswith("-over")}
    for at, case in enumerate(SHARED + MINE):
        if case.heavy == heavy:
            small = (case in SHARED and case.group not in ("limits", "bounds")
                     and case.name not in limits)
            yield case, CODECS[at % 3] if small else "zstd"


def made(case, codec):
    """The block of a case."""
    before = Making.way
    try:
        Making.way, Block.codec = Block, codec
        return case.block()
    finally:
        Making.way, Block.codec = before, "zstd"
