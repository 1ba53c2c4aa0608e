"""More blocks like those of dense_hostile.py, which lists them: at and beyond the limits on
duplicates, records and the parts of formats and sections (FORMAT §11.10), and whole ones whose
numbers exceed the bytes that a payload has for them."""

import struct

from dense_broken import FIELDS, SHAPE
from dense_hostile import Making, add, block, by_hand, changed, small

changed("records-over-2^19", "bounds", count=(1 << 19) + 1, raw=5_000_000)


def limit(name, make, most, lift):
    """Like limit() of dense_hostile.py, but in separate files."""
    add("whole-bounds", name, lambda text: make(text, most))
    add("bounds", name + "-over", lambda text: make(text, most + 1), lift=lift)


def _copies(text, length):
    """Duplicates of that total length: columns of a template that only an unused entry has."""
    made = small([text] * 2)
    full, rest = divmod(length, 255)
    columns = [b"y" * 255] * (full + 1) + [b"x" * rest] * 2 * (rest > 0)

    def write(writer):
        writer.byte(3, 0, 2, 0, 4)
        writer.varint(2, len(columns))
        writer.text(text + b"\0" + b"\1" * len(columns) + b"\0")
        writer.sized_plane(bytes(len(columns)))
        writer.planes([0, 1])
        for content in columns:
            writer.byte(9, len(content))
            writer.plane(content)
    return Making.way.size(made), by_hand(made, write)


def _duplicates(text, more):
    """With those of the other columns, as long as the payload, plus `more`."""
    size, made = _copies(text, 1)
    tree = Making.way.read(made, {"duplicates_a_byte": 9})
    return _copies(text, size - (tree.again - 1) + more)[1]


limit("duplicates-as-the-payload", _duplicates, 0, {"duplicates_a_byte": 9})
limit("argument-types-2^20", lambda text, count: block(small([text], types=b"\1" * count)),
      1 << 20, {"parts": 1 << 21})


def _section_kinds(text, count):
    """A shape with that many kinds, which no record has. The payload is as long as the shapes."""
    made = small([text], struct.pack("<I", 1_100_000) + b"m" * 1_100_000, b"\6", 1, sections=[b""])

    def write(writer):
        writer.byte(1, 2)
        writer.strings([b"", b"c" * count])
        writer.byte(0)
    return by_hand(made, write, "sections")


limit("section-kinds-2^20", _section_kinds, 1 << 20, {"parts": 1 << 21})


# Whole: only the low bytes of numbers count; and a record that states its place twice.

def low(name, at, write, **made):
    add("whole-low", name, lambda text: by_hand(small([text], **made), write, at))


def _flags(writer):
    writer.varint(1)
    writer.byte(0)
    writer.strings([FIELDS])
    writer.byte(1)
    writer.strings([bytes(range(1, 17))])
    writer.strings([bytes(range(1, 9))])
    writer.ints([(7 << 8) + 1])


def _bool(writer):
    writer.varint(1)
    writer.byte(1, 1)
    writer.strings([SHAPE])
    writer.byte(0)
    writer.ints([1 - (1 << 40)])
    writer.byte(0)


def _site(writer):
    writer.byte(1, 1)
    writer.strings([b"\3"])
    writer.byte(0)
    writer.ints([5 << 32])


SITE = struct.pack("<BBHII", 3, 0, 0, 4, 0)
PLACE = struct.pack("<BBHIIHH", 4, 0, 0, 12, 12, 3, 1) + b"d.cg"

low("trace-flags-above-a-byte", "contexts", _flags,
    contexts=[(FIELDS, bytes(range(1, 17)) + bytes(range(1, 9)) + b"\1")])
low("bool-above-a-byte", "contexts", _bool, contexts=[(FIELDS, bytes(25))])
low("site-above-4-bytes", "sections", _site, sections=[SITE])
add("whole-low", "deferred-with-another-place", lambda text: block(small(
    [text], b"\5\0\0\0" * 2, b"\1", 2, sections=[b"", SITE, PLACE])))
