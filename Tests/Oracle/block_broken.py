"""Blocks whose columns each break one rule of FORMAT §11.4 and §11.7 to §11.9 (block_cases.py). Odd
but whole ones are at the end."""

import struct

from block_cases import Clock, add, block, column, small
from block_writer import Layout
from column_parts import NULL


def ints(name, write, values=3):
    """The lengths of the messages. `write` writes them by hand after the codec's number."""
    def by_lengths(writer, text):
        writer.byte(2)
        write(writer, len(text))
        writer.text(text * values)
    column("ints", name, by_lengths, lambda text: small([text] * values))


def _codec(number, *numbers):
    def write(writer, length):
        writer.byte(number)
        writer.zigzag(length)
        writer.byte(*numbers)
    return write


ints("ints-codec-8", _codec(8))
ints("ints-codec-255", _codec(255))


def _planes_9(writer, length):
    writer.byte(1)
    writer.zigzag(length)
    writer.byte(9)
    for _ in range(9):
        writer.plane(bytes(3))


ints("planes-9", _planes_9)


def _dictionary(entries, chosen):
    """`entries` None: the actual number."""
    def write(writer, length):
        writer.byte(3)
        writer.varint(entries)
        if entries:
            writer.byte(0)
            writer.zigzag(length)
        writer.planes(chosen)
    return write


ints("int-dictionary-without-entries", _dictionary(0, [0, 0, 0]))
ints("int-dictionary-over-values", _dictionary(4, [0, 0, 0]))
ints("int-dictionary-beyond", _dictionary(2, [0, 1, 2]))
ints("int-dictionary-beyond-63-bits", _dictionary(2, [0, 1, 2**64 - 1]))
ints("int-dictionary-of-2^62", _dictionary(1 << 62, [0, 0, 0]))


def _runs(runs, lengths):
    def write(writer, length):
        writer.byte(7)
        writer.varint(runs)
        writer.byte(0)
        writer.zigzag(length)
        writer.byte(1)
        writer.zigzag(min(lengths))
        writer.planes([number - min(lengths) for number in lengths])
    return write


ints("runs-of-0", _runs(3, [3, 0, 0]))
ints("runs-that-are-negative", _runs(3, [3, 1, -1]))
ints("runs-too-short", _runs(2, [1, 1]))
ints("runs-too-long", _runs(2, [2, 2]))
ints("runs-that-wrap", _runs(3, [2**63 - 1, 2**63 - 1, 5]))
ints("runs-over-values", _runs(4, [1, 1, 1, 1]))
ints("runs-none", lambda writer, length: writer.byte(7, 0))


def _buckets(bits, symbols=(16, 16, 16)):
    def write(writer, length):
        writer.byte(5)
        writer.zigzag(length - 16)
        writer.plane(bytes(symbols))
        writer.sized_plane(bits)
    return write


ints("buckets-left-over", _buckets(b"\x40"))
ints("buckets-too-long", _buckets(b"\0\0"))
ints("buckets-too-short", _buckets(b""))


# Numbers out of range.

def _number(value):
    def write(writer, _):
        writer.byte(0)
        writer.zigzag(value)
    return write


def columns(name, at, write, **made):
    """A column of the record beside a message, or of one deferred record."""
    column("columns", name, write, lambda text: small([text], **made), at=at)


columns("thread-beyond", "thread", _number(1))
columns("thread-negative", "thread", _number(-1))
columns("format-beyond", "format", _number(1), count=1)
columns("format-negative", "format", _number(-1), count=1)
add("columns", "argument-type-0", lambda text: block(small([text], types=b"\0")))
add("columns", "argument-type-14", lambda text: block(small([text], types=b"\x0e")))


# Arguments.

def doubles(name, number, *values):
    """Doubles of 8 bytes in decimal, except the codec's number and its parameters."""
    def write(writer, _):
        writer.byte(*number)
        writer.ints(values)
    columns(name, "arguments", write, types=b"\3", count=len(values),
            deferred=b"".join(struct.pack("<d", value / 10**number[-1]) for value in values))


doubles("doubles-codec-3", [3], 1, 2)
doubles("doubles-of-10-digits", [1, 10], 1, 2)
doubles("doubles-over-2^53", [1, 0], 2**53 + 1, 1)
doubles("doubles-below-2^53", [1, 2], -2**53 - 1, 1)
doubles("doubles-least-number", [1, 2], -2**63, 1)


def texts(name, kind, marks, leaf, deferred, size=1):
    """Arguments that are strings of `size` bytes each."""
    def write(writer, _):
        writer.ints(marks)
        writer.byte(9, size)
        writer.plane(leaf)
    columns(name, "arguments", write, types=bytes([kind]), count=len(marks), deferred=deferred)


texts("text-mark-3", 6, [3, 0], b"ab", struct.pack("<IcIc", 1 | 1 << 31, b"a", 1, b"b"))
texts("text-mark-negative", 6, [-1, 0], b"ab", struct.pack("<IcIc", 1, b"a", 1, b"b"))
texts("wide-of-5-bytes", 7, [0, 2], b"abcde", struct.pack("<I4sI", 1, b"abcd", NULL), 5)


def _extended(size):
    def write(writer, _):
        writer.byte(9, size)
        writer.plane(bytes(size))
    return write


columns("extended-of-15-bytes", "arguments", _extended(15), types=b"\4", count=1,
        deferred=bytes(16))
columns("extended-of-17-bytes", "arguments", _extended(17), types=b"\4", count=1,
        deferred=bytes(16))


# Contexts and sections.

FIELDS = struct.pack("<HBBH", 1, 4, 0, 1) + b"k\1"
SHAPE = FIELDS[:-1]


def contexts(name, *parts, traces=(0,), run=FIELDS):
    """A context: the parts of its fields and of its trace. A number is a byte, bytes are Strings of
    one value, and a list is planes."""
    def write(writer, _):
        writer.varint(1)
        for part in (*parts, *traces):
            if isinstance(part, int):
                writer.byte(part)
            elif isinstance(part, bytes):
                writer.strings([part])
            else:
                writer.planes(part)
    columns(name, "contexts", write, contexts=[(run, bytes(25))])


contexts("fields-form-2", 2, FIELDS)
contexts("fields-form-255", 255, FIELDS)
contexts("shapes-0", 1, 0, 0, 0, 2, run=b"")
contexts("shape-beyond", 1, 1, SHAPE, [1], 0, 2)
contexts("shape-of-type-0", 1, 1, struct.pack("<HBBH", 1, 0, 0, 1) + b"k", 0, 0, 2)
contexts("shape-of-type-6", 1, 1, struct.pack("<HBBH", 1, 6, 0, 1) + b"k", 0, 0, 2)
contexts("shape-too-long", 1, 1, SHAPE + b"k", 0, 0, 2)
contexts("shape-too-short", 1, 1, SHAPE[:-1], 0, 0, 2)
contexts("shape-of-1-byte", 1, 1, b"\0", 0, run=b"\0")
contexts("traces-form-2", 0, FIELDS, traces=(2,))
contexts("trace-id-of-15-bytes", 0, FIELDS, traces=(1, bytes(15), bytes(8), 0, 0))
contexts("span-id-of-9-bytes", 0, FIELDS, traces=(1, bytes(16), bytes(9), 0, 0))

SECTION = struct.pack("<BBHI", 9, 0, 0, 8) + bytes(8)


def sections(name, *numbers, run=SECTION, shape=b"\x09"):
    def write(writer, _):
        writer.byte(numbers[0])
        if numbers[0] == 1:
            writer.varint(numbers[1])
            writer.byte(0)
            writer.text(shape)
        writer.byte(*numbers[2:])
    columns(name, "sections", write, sections=[run])


sections("sections-form-2", 2)
sections("section-shapes-0", 1, 0)


def _section_beyond(writer, _):
    writer.byte(1, 1)
    writer.strings([b"\x09"])
    writer.planes([1])
    writer.byte(0, 0)


columns("section-shape-beyond", "sections", _section_beyond, sections=[SECTION])


# Strings: the logger is named after the case, the values are the messages.

def strings(name, values, *parts, group="strings"):
    """Writes the values from parts: a number is a byte, bytes are a text leaf, a list is planes,
    and a function is called with the writer."""
    def write(writer, _):
        for part in parts:
            if isinstance(part, int):
                writer.byte(part)
            elif isinstance(part, bytes):
                writer.text(part)
            elif isinstance(part, list):
                writer.planes(part)
            else:
                part(writer)
    column(group, name, write, lambda text: small(values, logger=text))


def numbers(*values):
    return lambda writer: writer.ints(values)


def plane(content):
    return lambda writer: writer.plane(content)


strings("lines-too-few", [b"a", b"b"], 1, b"a\nb")
strings("lines-without-the-last-newline", [b"a", b"b"], 1, b"a\nbb")
strings("lines-too-many", [b"a", b"b"], 1, b"a\nb\nc\n")
strings("lines-and-more", [b"a", b"b"], 1, b"a\nb\nc")
strings("sized-negative", [b"abc", b""], 2, numbers(4, -1), b"abc")
strings("sized-too-short", [b"a", b"b"], 2, numbers(1, 1), b"abc")
strings("sized-too-long", [b"a", b"bc"], 2, numbers(1, 3), b"abc")
strings("sized-that-wraps", [b"a", b"b"], 2, numbers(2**63 - 1, 2**63 - 1, 4), b"ab")
strings("dictionary-mode-2", [b"a", b"b"], 3, 2, 2, [0, 1], 2, numbers(1, 1), b"ab")
strings("dictionary-without-entries", [b"", b""], 3, 0, 0, 0)
strings("dictionary-over-values", [b"a", b"a"], 3, 0, 3, 0, 0, b"a")
strings("dictionary-beyond", [b"a", b"b"], 3, 0, 2, [0, 2], 2, numbers(1, 1), b"ab")
strings("dictionary-named-beyond", [b"a", b"a"], 3, 1, 1, [0, 2], 0, b"a")
strings("dictionary-named-before-any", [b"a", b"a"], 3, 1, 1, [1, 0], 0, b"a")
strings("dictionary-entry-not-named", [b"a", b"a"], 3, 1, 2, [0, 1], 2, numbers(1, 1), b"ab")
strings("dictionary-named-too-often", [b"a", b"a"], 3, 1, 1, [0, 0], 0, b"a")
strings("digits-of-0", [b"0", b"0"], 6, 0, numbers(0, 0))
strings("digits-of-19", [b"%019d" % 5] * 2, 6, 19, numbers(5, 5))
strings("digits-too-many", [b"10", b"100"], 6, 2, numbers(10, 100))
strings("digits-negative", [b"10", b"-1"], 6, 2, numbers(10, -1))
strings("decimal-of-18-places", [b"0.%018d" % 5], 7, numbers(18), numbers(5))
strings("decimal-of-minus-1-places", [b"5", b"5"], 7, numbers(-1, 0), numbers(5, 5))
strings("hex-case-2", [b"ab"], 8, 2, bytes(2), plane(b"\xab"))
strings("hex-pattern-empty", [b"", b""], 8, 0, b"", plane(b""))
strings("hex-pattern-without-digits", [b"x", b"x"], 8, 0, b"x", plane(b""))
strings("hex-pattern-of-256", [b"0" + b"x" * 255], 8, 0, b"\0" + b"x" * 255, plane(b"\0"))
strings("hex-half-left-over", [b"abc"], 8, 0, bytes(3), plane(b"\xab\xc1"))
strings("fixed-of-0", [b"", b""], 9, 0, plane(b""))


# Templates.

def templates(name, values, size, width, leaf, named, *parts, group="templates"):
    strings(name, values, 4, lambda writer: writer.varint(size, width), leaf,
            lambda writer: writer.sized_plane(named), *parts, group=group)


def text(*values):
    """A column of strings."""
    return lambda writer: writer.strings(values)


templates("templates-0", [b"", b""], 0, 0, b"", b"", 0)
templates("templates-over-values", [b"a"], 2, 0, b"a\0b\0", b"", 0)
templates("template-beyond", [b"a", b"a"], 1, 0, b"a\0", b"", [0, 1])
templates("template-without-end", [b"a", b"a"], 1, 0, b"a", b"", 0)
templates("template-left-over", [b"a", b"a"], 1, 0, b"a\0b\0", b"", 0)
templates("template-missing", [b"a", b"a"], 2, 0, b"a\0", b"", 0)
templates("template-escapes-6", [b"\6", b"\6"], 1, 0, b"\5\6\0", b"", 0)
templates("template-ends-in-an-escape", [b"\5"], 1, 0, b"\5", b"", 0)
templates("template-ends-in-a-form", [b"00:00:00"], 1, 1, b"\4\0", b"\0", 0, numbers(0))
templates("column-not-named-yet", [b"aa"], 1, 1, b"\1\1\0", b"\1\0", 0, text(b"a", b"a"))
templates("column-beyond", [b"aa"], 1, 1, b"\1\1\0", b"\0\2", 0, text(b"a", b"a"))
templates("columns-too-few", [b"ab"], 1, 1, b"\1\1\0", b"\0\0", 0, text(b"a"), text(b"b"))
templates("columns-too-many", [b"aa"], 1, 2, b"\1\1\0", b"\0\1", 0, text(b"a", b"a"))
templates("columns-left-over", [b"a"], 1, 1, b"\1\0", b"\0\1", 0, text(b"a"))
templates("columns-missing", [b"ab"], 1, 2, b"\1\1\0", b"\0", 0, text(b"a"), text(b"b"))
templates("column-of-two-bytes", [b"ab"], 1, 1, b"\1\2\0", b"\0\1", 0, text(b"a", b"b"))
templates("column-of-strings-and-times", [b"a00:00:00"], 1, 1, b"\1\4\0\0\0", b"\0\1", 0,
          text(b"a", b"00:00:00"))
templates("column-of-two-forms", [b"00:00:0100:00:00.1"], 1, 1, b"\4\0\0\4\x50\0\0", b"\0\1", 0,
          numbers(1, 1))


def time(name, form, number, shown, **group):
    templates("time-" + name, [shown], 1, 1, b"\4" + struct.pack("<H", form) + b"\0", b"\0", 0,
              numbers(number), **group)


time("bit-10", 1 << 10, 0, b"00:00:00")
time("bit-15", 1 << 15, 0, b"00:00:00")
time("of-a-day-with-slashes", 4, 0, b"00:00:00")
time("of-a-day-with-t", 8, 0, b"00:00:00")
time("of-a-month-with-slashes", 2 | 4, 0, b"01/Jan/1970:00:00:00")
time("of-a-month-with-a-fraction", 2 | 1 << 4 | 1 << 6, 0, b"01/Jan/1970:00:00:00.0")
time("of-a-month-with-digits", 2 | 1 << 6, 0, b"01/Jan/1970:00:00:00")
time("mark-without-digits", 1 << 4, 0, b"00:00:00.")
time("digits-without-a-mark", 1 << 6, 0, b"00:00:00")
time("of-10-digits", 1 << 4 | 10 << 6, 0, b"00:00:00.0000000000")
time("of-the-next-day", 0, 86400, b"24:00:00")
time("before-the-day", 0, -1, b"-1:59:59")
time("in-the-year-10000", 1, 253402300800, b"10000-01-01 00:00:00")
time("before-the-year-0", 1, -62167219201, b"-001-12-31 23:59:59")
time("of-a-month-in-the-year-10000", 2, 253402300800, b"01/Jan/10000:00:00:00")
for what, bits in (("slashes", 4), ("t", 8), ("a-mark", 16), ("digits", 64), ("a-fraction", 80)):
    time("of-a-stamp-with-" + what, 3 | bits, 0, b"Jan  1 00:00:00", group="stamps")
time("before-the-stamps-year", 3, -1, b"Dec 31 23:59:59", group="stamps")
time("behind-the-stamps-year", 3, 366 * 86400, b"Jan  1 00:00:00", group="stamps")


# Whole, though no known writer makes them.

def whole(name, write=None, at="messages", made=None, layout=None, changed=None):
    def instead(writer, shown):
        return {at: lambda: write(writer, shown)} if write else {}

    add("whole", name, lambda shown: block(
        made(shown) if made else small([shown] * 3), layout,
        lambda writer, table: instead(writer, shown), changed))


def _padded(writer, shown):
    writer.byte(2, 0)
    writer.zigzag(len(shown))
    writer.meta[-1] |= 128
    writer.byte(*[128] * 8, 0)
    writer.text(shown * 3)


def _names(writer, shown):
    """A repeated name that is not the newest: values 0, 1, 0, 0, 1."""
    writer.byte(3, 1, 2)
    writer.planes([0, 0, 2, 2, 1])
    writer.strings([shown, shown + b", other"])


def _slope(writer, _):
    writer.byte(4)
    writer.zigzag(Clock.now, 1)
    writer.planes([9, 0, 0])


def _eight(writer, shown):
    writer.byte(2, 1)
    writer.zigzag(len(shown))
    writer.byte(8)
    for _ in range(8):
        writer.plane(bytes(3))
    writer.text(shown * 3)


def _unused_entry(writer, shown):
    writer.byte(3, 0, 3)
    writer.planes([2, 2, 2])
    writer.strings([b"unused", b"", shown])


def _unused_template(writer, shown):
    writer.byte(4, 3, 1)
    writer.text(b"unused \1\0" + shown + b"\0\0")
    writer.sized_plane(b"\0")
    writer.planes([1, 1, 1])


def _unused_shape(writer, _):
    writer.varint(1)
    writer.byte(1, 2)
    writer.strings([struct.pack("<HBBH", 1, 5, 0, 1) + b"u", SHAPE])
    writer.planes([1])
    writer.ints([1])
    writer.byte(0)


def _with_a_context(shown):
    return small([shown], contexts=[(FIELDS, bytes(25))])


def _with_an_argument(shown):
    return small([shown], struct.pack("<i", -5), b"\1", 1)


whole("varint-of-10-bytes", _padded)
whole("argument-above-4-bytes", _number(2**32 - 5), "arguments", _with_an_argument)
whole("slope-with-a-first-number", _slope, "time")
whole("planes-of-zeros", _eight)
whole("entries-unused", _unused_entry)
whole("templates-unused", _unused_template)
whole("shape-unused", _unused_shape, "contexts", _with_a_context)
whole("named-again", _names, made=lambda shown: small(
    [shown if at == b"0" else shown + b", other" for at in (b"0", b"1", b"0", b"0", b"1")]))
whole("a-frame-for-each-plane", _eight, layout=Layout(plane_bytes=1, duplicates=0))
whole("a-plane-as-long-as-planes", _eight, layout=Layout(plane_bytes=3, duplicates=0))
whole("duplicates-of-duplicates", _eight, layout=Layout(
    change={"list": lambda entries: [(1, 1)] * 7}))


def _empty_leaves(writer, shown):
    """Buckets without bits."""
    writer.byte(2, 5)
    writer.zigzag(len(shown) - 7)
    writer.plane(b"\7\7\7")
    writer.sized_plane(b"")
    writer.text(shown * 3)


whole("plane-of-no-bytes", _empty_leaves)
whole("plane-of-no-bytes-beside-frames", _empty_leaves, layout=Layout(
    plane_bytes=1, duplicates=0))
