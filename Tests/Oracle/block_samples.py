"""Blocks for every reader, by seed, and those of block_cases.py. The records that a reader must
find are those of the table that a block was made of, not what the reader of blocks made of it."""

import ctypes
import random
import struct
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import block_bounds  # noqa: E402,F401 (adds to CASES)
import block_broken  # noqa: E402,F401 (adds to CASES)
import block_hostile  # noqa: E402,F401 (adds to CASES)
import block_limits  # noqa: E402,F401 (adds to CASES)
from block_cases import CASES, LANE_ID, UTC, Codec  # noqa: E402
from block_table import Format, Process, Site, Table, Thread, records  # noqa: E402
from block_writer import Layout, encode  # noqa: E402
from column_encoder import NUMBERED, Choice  # noqa: E402
from record import as_json  # noqa: E402
from sample_texts import (BRACES, DOUBLES, EDGES, FINITE, FORMATS, JSON_TEXTS, TEXTS,  # noqa: E402
                          hex_text, number_text, odd_text, plain_text, stamp_text)
from tree import CODECS  # noqa: E402

# Texts that do not hide in planes.
LETTERS = {"Strings": (10,), "FieldLists": (1,), "Sections": (1,)}


class Sample:
    """The table of `count` records. `odd` ones have no meaning as records (unknown kinds of
    sections, undefined numbers) but must come back. `alone`: all are of one process of the lane
    LANE_ID."""

    def __init__(self, seed, count=60, odd=False, texts=None, traces=True, decimals=False, hour=0,
                 json=False, alone=False):
        self.random, self.count, self.odd, self.json = random.Random(seed), count, odd, json
        self.texts, self.traces, self.decimals = texts or self._text, traces, decimals
        self.start, self.alone = 1000 + 3600 * 10**9 * hour, alone
        self.arguments, self.numbers = bytearray(), {name: [] for name in (
            "kind", "level", "logger", "context", "format", "sections", "messages")}
        self.loggers = [b"", b"net.http", b"db", b"\xff\0"][:self._upto(4, 1)]
        self.sites = [Site(self._upto(900), b"a.c", b"main"), Site(7, b"", b"")]
        self._tables()
        self.contexts = [(self._list(), self._trace()) for _ in range(self._upto(4))]
        if odd:
            self.contexts += [(b"", bytes(25)), (b"\0\0", bytes(25)), (b"junk", self._trace())]
        times = self._times()
        for _ in range(count):
            self._record()
        self.table = Table(
            self.processes, self.threads, self.loggers, self.sites, self.formats, self.contexts,
            **self.numbers, **times, arguments=bytes(self.arguments))

    def _upto(self, most, least=0):
        return self.random.randint(least, most)

    def _tables(self):
        chance = self.random
        threads = self._upto(5, 1)
        self.formats = [Format(self._upto(900), b"a.c", b"main", *form)
                        for form in [(0, *form) for form in FORMATS] + list(BRACES)]
        if self.alone:
            self.processes = [
                Process(LANE_ID, bytes(16), 812, UTC, 1000, b"host", [(b"k", b"v\n")])]
        else:
            self.processes = [self._process(number) for number in range(self._upto(4, 1))]
        self.threads = [Thread(
            self._upto(len(self.processes) - 1), chance.choice((serial + 1, 2**32 - 1 - serial)),
            self._upto(2**31), chance.choice((b"", b"main", b"\xff", b"a\nb")))
            for serial in range(threads)]

    def _process(self, number):
        chance = self.random
        keys = chance.choice(((), (b"service.name",), (b"k", b"host.name"), (b"", b"a", b"\xff")))
        return Process(
            chance.randbytes(16), chance.choice((bytes(16), chance.randbytes(16))),
            chance.choice((1, 812 + number, 2**31 - 1)), UTC + self._upto(10**9),
            self._upto(10**12), chance.choice((b"", b"host", b"a b", "größe".encode())),
            [(key, chance.choice((b"", b"v", b"1.2\n", b"x" * 200))) for key in keys])

    def _times(self):
        chance = self.random
        times, offsets, threads = [], [], []
        time, offset = self.start, UTC
        for _ in range(self.count):
            time += chance.choice((0, 1, 5, 1000, self._upto(10**9), -self._upto(900) * self.odd))
            offset += chance.choice((0,) * 20 + (1, -5))
            times.append(chance.choice(EDGES) if self.odd and chance.random() < 0.1 else time)
            offsets.append(chance.choice(EDGES) if self.odd and chance.random() < 0.05 else offset)
            threads.append(self._upto(len(self.threads) - 1))
        first = self._upto(2**33)
        expected = {}
        sequences = []
        for thread in threads:
            value = expected.get(thread, first) + chance.choice((0,) * 9 + (3,))
            sequences.append(value - expected.get(thread, 0))
            expected[thread] = value + 1
        if self.odd:
            sequences = [chance.choice((step, *EDGES)) for step in sequences]
        return dict(thread=threads, time=times, offset=offsets, sequence=sequences)

    def _record(self):
        chance = self.random
        kind = chance.choice((0, 0, 0, 0, 2, 3, 4)) | 16 * (chance.random() < 0.05)
        rich, deferred = chance.random() < 0.4, chance.random() < 0.3
        if self.odd and chance.random() < 0.1:
            kind |= self._upto(31)
        numbers = self.numbers
        numbers["level"].append(chance.choice((9, 9, 9, 13, 17, 1, 24, 0)))
        numbers["logger"].append(self._upto(len(self.loggers) - 1))
        numbers["context"].append(self._upto(len(self.contexts)))
        if deferred:
            kind |= 64
            numbers["format"].append(self._upto(len(self.formats) - 1))
            kind |= 8 * self._arguments(self.formats[numbers["format"][-1]].types)
        else:
            numbers["messages"].append(self.texts(chance))
        if rich:
            kind |= 32
            numbers["sections"].append(self._sections(
                deferred, kind & 8 or not deferred and chance.random() < 0.1))
        numbers["kind"].append(kind)

    def _sections(self, deferred, cut):
        chance, found = self.random, []
        if chance.random() < 0.6:
            found.append((2, self._list() if not self.odd or chance.random() < 0.9 else b"junk"))
        # A deferred record uses the place of its format.
        if chance.random() < 0.3 and (self.odd or not deferred):
            found.append((3, struct.pack("<I", self._upto(1))))
        if chance.random() < 0.2 and (self.odd or not deferred):
            found.append((4, struct.pack("<IHH", 12, 3, 1) + b"b.cf"))
        if chance.random() < 0.3:
            found.append((5, self._trace()))
        if chance.random() < 0.3:
            found.append((6, struct.pack("<Q", UTC + self._upto(10**12))))
        if chance.random() < 0.1:
            found.append((7, struct.pack("<III", 1, 2, 0) + b"EMm"))
        if cut:
            found.append((9, struct.pack("<Q", self._upto(10**9))))
        if self.odd:
            chance.shuffle(found)
            found += [(self._upto(255), self._text(chance))] * (chance.random() < 0.1)
            found += [(6, b"short")] * (chance.random() < 0.02)
        return b"".join(struct.pack("<BBHI", kind, 0, 0, len(body)) + body for kind, body in found)

    def _trace(self):
        chance = self.random
        if not self.traces:
            return bytes(25)
        return chance.choice((bytes(25), chance.randbytes(16) + bytes(8) + b"\1",
                              bytes(range(1, 26)), chance.randbytes(25)))

    def _list(self):
        """A list of fields."""
        chance = self.random
        keys = chance.choice(((b"user", b"n"), (b"n", b"n", b""), (b"path", b"took", b"ok"), ()))
        found = b""
        for key in keys:
            kind = self._upto(5, 1)
            reserved = self.odd and chance.random() < 0.02
            found += struct.pack("<BBH", kind, self.json or reserved, len(key)) + key
            if kind in (1, 2):
                found += struct.pack("<Q", self._int() & 2**64 - 1)
            elif kind == 3:
                found += struct.pack("<Q", self._double(self.odd))
            elif kind == 4:
                found += bytes([self._upto(1)])
            else:
                text = chance.choice(JSON_TEXTS) if self.json else self._text(chance)
                found += struct.pack("<I", len(text)) + text
        return struct.pack("<H", len(keys)) + found

    def _int(self):
        return self.random.choice((*EDGES, self._upto(99), self._upto(2**63)))

    def _double(self, any_kind=True):
        """Its bits. JSON cannot express non-finite values."""
        decimal = struct.unpack("<Q", struct.pack("<d", self._upto(10**6) / 1000))[0]
        if self.decimals:
            return decimal
        return self.random.choice((*DOUBLES[:None if any_kind else FINITE], *[decimal] * 3))

    def _arguments(self, types):
        """Returns whether one was cut."""
        chance, cut = self.random, False
        for kind in types:
            if kind in (1, 8, 11):
                value = self._int() if self.odd else self._upto(40)
                self.arguments.extend(struct.pack("<I", value & 2**32 - 1))
            elif kind in (2, 5, 12):
                self.arguments.extend(struct.pack("<Q", self._int() & 2**64 - 1))
            elif kind == 3:
                self.arguments.extend(struct.pack("<Q", self._double()))
            elif kind == 13:
                self.arguments.extend(struct.pack("<f", chance.choice((0.1, -0.0, 2.5, 1e30))))
            elif kind == 4:
                made = bytes(ctypes.c_longdouble(chance.choice((0.5, -3.25, 1e30))))
                self.arguments.extend(chance.randbytes(16) if self.odd else made[:10] + bytes(6))
            elif kind in (9, 10):
                self.arguments.extend(bytes([self._upto(1) if kind == 9 else self._upto(126, 33)]))
            else:
                cut |= self._string(kind)
        return cut

    def _string(self, kind):
        chance = self.random
        if chance.random() < 0.1:
            self.arguments.extend(b"\xff" * 4)
            return False
        text = self._text(chance)
        length = len(text)
        if kind == 7:
            text = b"".join(struct.pack("<I", byte % 128 or 65) for byte in text)
        cut = chance.random() < 0.1
        self.arguments.extend(struct.pack("<I", length | cut << 31) + text)
        return cut

    @staticmethod
    def _text(chance):
        return chance.choice((plain_text, odd_text, number_text, hex_text))(chance)


def good(seed, prefer=None, count=24, layout=None, tidy=False, **words):
    """A block of that seed's sample."""
    return encode(Sample(seed, count, **words).table, Choice(seed, prefer, tidy),
                  layout or Layout(codec=CODECS[seed % 3]))


def good_blocks():
    """(name, function that returns the block) of all that were not made by hand."""
    for kind, number in sorted(NUMBERED):
        words = {"texts": TEXTS[number]} if kind == "Strings" else {}
        words["decimals"] = (kind, number) == ("Doubles", 1)
        words["traces"] = (kind, number) != ("Traces", 0)
        prefer = {"Strings": (3,), "Sections": (1,), kind: (number,)}
        if kind in ("Ints", "Doubles"):
            prefer = {kind: (number,)}
        yield (f"{kind.lower()}-{number}", lambda prefer=prefer, words=words, number=number:
               good(100 + number, prefer, **words))
    for codec in CODECS:
        for name, layout in (
                ("few", Layout(20, 60, codec=codec)),
                ("many", Layout(1, 1, duplicates=0.5, codec=codec)),
                ("of-planes", Layout(1, 1 << 20, duplicates=0, codec=codec)),
                ("of-texts", Layout(1 << 20, 1, codec=codec)),
                ("one", Layout(joined=True, duplicates=0.5, codec=codec)),
                ("with-flags", Layout(codec=codec, flags=1))):
            yield (f"frames-{name}-{codec}", lambda layout=layout: good(
                30, LETTERS, layout=layout, tidy=layout.flags == 1))
        yield f"empty-{codec}", lambda codec=codec: good(
            40, count=0, layout=Layout(codec=codec))
        yield f"large-{codec}", lambda codec=codec: good(
            50, count=400, layout=Layout(300, 4000, codec=codec))
    yield "one-record", lambda: good(41, count=1)
    yield "json-fields", lambda: good(42, json=True)
    yield "stamps", lambda: good(43, {"Strings": (4,)}, texts=stamp_text)
    yield "times-over-2^63", lambda: good(44, hour=2_562_100)
    for seed in range(60, 80):
        chance = random.Random(seed)
        layout = Layout(chance.choice((1, 5, 40, 1 << 20)), chance.choice((1, 5, 40, 1 << 20)),
                             chance.choice((0, 0.5, 1)), CODECS[seed % 3])
        yield f"seed-{seed}", lambda seed=seed, layout=layout, count=chance.choice((2, 7, 40)): (
            good(seed, count=count, layout=layout))


def expected(block):
    """The lines of JSON."""
    words, _ = block
    return "".join(as_json(record) + "\n" for record in records(
        words.get("shown", words["table"])))


def cases(heavy=False):
    """(case, codec of its frames where it does not say). Those that any codec may have and that
    reach no limit have all by turns."""
    limits = {case.name.removesuffix("-over") for case in CASES if case.name.endswith("-over")}
    for at, case in enumerate(CASES):
        if case.heavy == heavy:
            small = (case.turns and case.group not in ("limits", "bounds")
                     and case.name not in limits)
            yield case, CODECS[at % 3] if small else "zstd"


def made(case, codec="zstd"):
    """The block of a case."""
    try:
        Codec.now = codec
        return case.block()
    finally:
        Codec.now = "zstd"
