"""Payloads of method 1 for the tests of method 2 (FORMAT §11.4), by seed: records as programs write
them, between records that no program would write. `odd` ones have no meaning as records (unknown
kinds of sections, undefined numbers) but are payloads that must come back."""

import ctypes
import random
import struct

from dense import varint, zigzag
from dense_writer import LANE_ID

UTC = 1_790_000_000 * 10**9
EDGES = (0, 1, -1, 15, 16, 17, 127, 128, 255, 256, 2**31 - 1, -2**31, 2**53, 2**53 + 1, 2**63 - 1,
         -2**63, 2**63, 2**64 - 1)
DOUBLES = tuple(struct.unpack("<Q", struct.pack("<d", value))[0] for value in (
    0.0, -0.0, 0.1, 1 / 3, 5e-324, 1e308, 2.0**53, 123456.789, float("inf"), float("-inf"))) + (
    0x7FF8000000000001, 0xFFF0000000000001)
FINITE = 8  # the first of them
FORMATS = (
    (b"%d of %s", b"\1\6"), (b"%ld %p %m", b"\2\5\x08"), (b"%.3f|%Lg", b"\3\4"),
    (b"[%ls] %*.*f", b"\7\1\1\3"), (b"plain", b""), (b"%s%s%s", b"\6\6\6"))
BRACES = ((2, b"{} {:x} {} {}", b"\x09\x0b\x0c\x0a"), (3, b"{} and {} by {}", b"\3\x0d\6"))


# Strings of form 1 (FORMAT §8.2), and some that only claim to be.
JSON_TEXTS = [b'{"id":7,"items":[{"sku":"x"},null]}', b' [ 1 ,\n "\\u00e9" ] ', b"7", b"1e400",
              b'"caf\xc3\xa9"', b"[" * 20 + b"]" * 20, b"[" * 21 + b"]" * 21, b"{broken", b"",
              b'"\\ud800"', b'"\xff"', b"NaN"]


class Sample:
    """One payload: `count` records in `streams`."""

    def __init__(self, seed, count=60, odd=False, texts=None, traces=True, decimals=False, hour=0,
                 json=False):
        self.random, self.count, self.odd, self.json = random.Random(seed), count, odd, json
        self.texts, self.traces, self.decimals = texts or self._text, traces, decimals
        self.start = 1000 + 3600 * 10**9 * hour
        self.streams = [b""] * 20
        self.loggers = [b"", b"net.http", b"db", b"\xff\0"][:self._upto(4, 1)]
        self.places = [(self._upto(900), b"a.c", b"main"), (7, b"", b"")]
        self._tables()
        self.contexts = [(self._list(), self._trace()) for _ in range(self._upto(4))]
        if odd:
            self.contexts += [(b"", bytes(25)), (b"\0\0", bytes(25)), (b"junk", self._trace())]
        self.streams[4] = varint(len(self.contexts)) + b"".join(
            varint(len(found)) + found + trace for found, trace in self.contexts)
        self._records()
        self.payload = struct.pack("<21I", 20, *map(len, self.streams)) + b"".join(self.streams)

    def _upto(self, most, least=0):
        return self.random.randint(least, most)

    def _tables(self):
        self.streams[0] = (varint(1) + LANE_ID + bytes(16) + varint(812) + varint(UTC)
                           + varint(1000) + b"\4host" + varint(1) + b"\1k\2v\n")
        self.threads = self._upto(5, 1)
        self.streams[1] = varint(self.threads) + b"".join(
            b"\0" + varint(serial + 1) + varint(813 + serial) + b"\1t"
            for serial in range(self.threads))
        self.streams[2] = varint(len(self.loggers)) + b"".join(map(string, self.loggers))
        self.streams[3] = varint(len(self.places)) + b"".join(
            varint(line) + string(file) + string(function) for line, file, function in self.places)
        self.formats = [(0, *form) for form in FORMATS] + list(BRACES)
        self.streams[16] = varint(len(self.formats)) + b"".join(
            varint(self._upto(900)) + b"\3a.c\4main" + bytes([style]) + string(form)
            + string(types) for style, form, types in self.formats)

    def _records(self):
        chance = self.random
        times, offsets, threads = [], [], []
        time, offset = self.start, UTC
        for _ in range(self.count):
            time += chance.choice((0, 1, 5, 1000, self._upto(10**9), -self._upto(900) * self.odd))
            offset += chance.choice((0,) * 20 + (1, -5))
            times.append(chance.choice(EDGES) if self.odd and chance.random() < 0.1 else time)
            offsets.append(chance.choice(EDGES) if self.odd and chance.random() < 0.05 else offset)
            threads.append(self._upto(self.threads - 1))
        first = self._upto(2**33)
        expected = {}
        sequences = []
        for thread in threads:
            value = expected.get(thread, first) + chance.choice((0,) * 9 + (3,))
            sequences.append(value - expected.get(thread, 0))
            expected[thread] = value + 1
        if self.odd:
            sequences = [chance.choice((step, *EDGES)) for step in sequences]
        self.streams[5] = b"".join(map(varint, threads))
        self.streams[6] = differences(times)
        self.streams[7] = differences(offsets)
        self.streams[8] = b"".join(map(zigzag, sequences))
        for _ in range(self.count):
            self._record()

    def _record(self):
        chance = self.random
        kind = chance.choice((0, 0, 0, 0, 2, 3, 4)) | 16 * (chance.random() < 0.05)
        rich, deferred = chance.random() < 0.4, chance.random() < 0.3
        if self.odd and chance.random() < 0.1:
            kind |= self._upto(255) & 0x9F
        self._put(9, bytes([chance.choice((9, 9, 9, 13, 17, 1, 24, 0))]))
        self._put(11, varint(self._upto(len(self.loggers) - 1)))
        self._put(12, varint(self._upto(len(self.contexts))))
        message = b""
        if deferred:
            kind |= 64
            number = self._upto(len(self.formats) - 1)
            self._put(17, varint(number))
            kind |= 8 * self._arguments(self.formats[number][2])
        else:
            message = self.texts(chance)
            self._put(13, varint(len(message)))
            self._put(19, message + b"\n")
        if rich:
            kind |= 32
            run = self._sections(deferred, kind & 8 or not deferred and chance.random() < 0.1)
            self._put(14, varint(len(run)))
            self._put(15, run)
        self._put(10, bytes([kind]))

    def _put(self, stream, content):
        self.streams[stream] += content

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
                self._put(18, struct.pack("<I", value & 2**32 - 1))
            elif kind in (2, 5, 12):
                self._put(18, struct.pack("<Q", self._int() & 2**64 - 1))
            elif kind == 3:
                self._put(18, struct.pack("<Q", self._double()))
            elif kind == 13:
                self._put(18, struct.pack("<f", chance.choice((0.1, -0.0, 2.5, 1e30))))
            elif kind == 4:
                made = bytes(ctypes.c_longdouble(chance.choice((0.5, -3.25, 1e30))))
                self._put(18, chance.randbytes(16) if self.odd else made[:10] + bytes(6))
            elif kind in (9, 10):
                self._put(18, bytes([self._upto(1) if kind == 9 else self._upto(126, 33)]))
            else:
                cut |= self._string(kind)
        return cut

    def _string(self, kind):
        chance = self.random
        if chance.random() < 0.1:
            self._put(18, b"\xff" * 4)
            return False
        text = self._text(chance)
        length = len(text)
        if kind == 7:
            text = b"".join(struct.pack("<I", byte % 128 or 65) for byte in text)
        cut = chance.random() < 0.1
        self._put(18, struct.pack("<I", length | cut << 31) + text)
        return cut

    @staticmethod
    def _text(chance):
        return chance.choice((plain_text, odd_text, number_text, hex_text))(chance)


def string(content):
    return varint(len(content)) + content


def differences(values):
    return b"".join(zigzag(value - before) for before, value in zip([0] + values, values))


def plain_text(chance):
    """Texts for which templates are made."""
    return chance.choice((
        b"GET /cart/%d 200 in %d.%d ms" % (chance.randint(0, 99), chance.randint(0, 9),
                                           chance.randint(0, 999)),
        b"worker %d started" % chance.randint(0, 9), b"no variable", b"",
        b"block blk_%x of %d" % (chance.getrandbits(40), chance.getrandbits(20)),
        time_of(chance) + b" peer " + b"%d.%d" % (chance.randint(0, 255), chance.randint(0, 255)),
        b"%d,%d," % (chance.randint(-9, 9), chance.randint(0, 5))))


def time_of(chance):
    """Times of every form, and texts that only resemble times."""
    clock = b"%02d:%02d:%02d" % (chance.choice((0, 9, 23, 24)), chance.choice((0, 59)),
                                 chance.choice((0, 59, 60)))
    digits = chance.randint(1, 9)
    part = chance.choice((b"", b".", b",", b":"))
    part += b"%0*d" % (digits, chance.randrange(10**digits)) if part else b""
    year, month, day = chance.choice((
        (1970, 1, 1), (1969, 12, 31), (2026, 11, 21), (2000, 2, 29), (1900, 2, 28), (0, 3, 1),
        (0, 2, 29), (9999, 12, 31), (2023, 2, 30), (1600, 2, 29)))
    names = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
    line = chance.choice((b"-", b"/"))
    return chance.choice((
        clock + part, b"%s %2d " % (names[month - 1], day) + clock,
        b"%02d/%s/%04d:" % (day, names[month - 1], year) + clock,
        line.join((b"%04d" % year, b"%02d" % month, b"%02d" % day)) + chance.choice((b" ", b"T"))
        + clock + part))


def stamp_text(chance):
    """Line starts in the form of syslog, and texts that only resemble them."""
    names = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Non".split()
    return b"%s%s%s %02d:%02d:%02d host ran %d" % (
        chance.choice(names), chance.choice((b" ", b"  ", b" ")),
        chance.choice((b"%2d", b"%2d", b"%02d", b"%d")) % chance.randint(0, 31),
        chance.choice((0, 9, 23, 24)), chance.choice((0, 59)), chance.choice((0, 59, 60)),
        chance.randint(0, 9))


def odd_text(chance):
    return chance.choice((
        b"", b"\n", b"a\nb", b"\0", bytes(range(8)), b"\xff\xfe", "größer 雪".encode(),
        b"x" * chance.randint(1, 300), chance.randbytes(chance.randint(0, 40)), b"1 2\0003 4\5",
        b" ".join(b"%d" % number for number in range(chance.randint(1, 60)))))


def number_text(chance):
    return chance.choice((
        b"%d" % chance.choice(EDGES), b"%d.%03d" % (chance.randint(-5, 5), chance.randint(0, 999)),
        b"007", b"-0", b"-0.5", b"0.0000000000000001", b"12345678901234567890", b"1.", b".5",
        b"%04d" % chance.randint(0, 9999), b"-9223372036854775808", b"92233720368547758.07"))


def hex_text(chance):
    return chance.choice((
        b"%08x" % chance.getrandbits(32), b"%08X" % chance.getrandbits(32), b"deadbeef",
        b"0x%05x" % chance.getrandbits(20)))


# For each codec of strings, a text of messages that it can hold.
TEXTS = {
    0: lambda chance: b"the same\nwith a line",
    1: lambda chance: b"line %s" % chance.choice((b"", b"\0", b"\xff", b"7")),
    2: lambda chance: odd_text(chance),
    3: lambda chance: chance.choice((b"", b"one", b"two\n", b"%d" % chance.randint(0, 20))),
    4: plain_text,
    5: lambda chance: b"%d" % chance.choice((0, -1, 2**63 - 1, -2**63, chance.randint(-99, 99))),
    6: lambda chance: b"%06d" % chance.choice((0, 999999, chance.randint(0, 999999))),
    7: lambda chance: b"%s%d.%0*d" % (chance.choice((b"", b"-")), chance.randint(1, 999),
                                      chance.choice((1, 2, 3)), chance.randint(0, 9)),
    8: lambda chance: b"id={%04X-%03X}" % (chance.getrandbits(16), chance.getrandbits(12)),
    9: lambda chance: chance.randbytes(5) + b"\n\0",
}
