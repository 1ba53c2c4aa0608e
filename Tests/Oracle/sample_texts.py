"""Texts and numbers for the records of the tests, by seed: as programs write them, between some
that no program would write."""

import struct

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
    10: lambda chance: odd_text(chance),
}
