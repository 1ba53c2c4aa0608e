"""Blocks at and beyond the limits of the tree (FORMAT §11.10), wrong lists of duplicates, and whole
ones whose numbers exceed the bytes that an argument or a field has for them (block_cases.py)."""

import struct

from block_broken import FIELDS, SHAPE
from block_cases import CASES, MIB, add, block, by_hand, read, small
from block_table import Format
from block_writer import Layout

LIFTED = {"values_more": 1 << 30}
# They take seconds: Python is slow with a million of anything.
SLOW = {"argument-types-2^20", "formats-65536", "formats-65536-over", "section-kinds-2^20"}

# The list of duplicates.

def listed(name, change):
    """A block with three equal planes: leaves 1 and 2 duplicate leaf 0."""
    def write(writer, text):
        writer.byte(2, 1)
        writer.zigzag(len(text))
        writer.byte(3)
        for _ in range(3):
            writer.plane(bytes(2))
        writer.text(text * 2)
    add("tree", name, lambda text: block(
        small([text] * 2), Layout(change={"list": lambda _: change}),
        instead=lambda writer, table: {"messages": lambda: write(writer, text)}))


listed("duplicate-at-distance-0", [(1, 0), (1, 1)])
listed("duplicate-before-the-first", [(1, 2), (1, 1)])
listed("duplicate-of-leaf-0", [(0, 1), (1, 1), (1, 1)])
listed("duplicate-twice", [(1, 1), (0, 1), (1, 1)])
listed("duplicate-that-is-no-leaf", [(1, 1), (1, 1), (1, 1)])


def _two_lengths(writer, text):
    writer.byte(3, 0)
    writer.varint(1)
    writer.byte(1)
    writer.plane(bytes(3))
    writer.byte(9, len(text))
    writer.plane(text)


add("tree", "duplicate-of-another-length", lambda text: block(
    small([text] * 3), Layout(change={"list": lambda _: [(1, 1)]}),
    instead=lambda writer, table: {"messages": lambda: _two_lengths(writer, text)}))


# Limits of the tree. Each pair is a block that reaches the limit and one beyond it.

def limit(name, make, most, lift, heavy=False):
    add("whole", name, lambda text: make(text, most), heavy=heavy)
    add("limits", name + "-over", lambda text: make(text, most + 1), lift=lift, heavy=heavy)


def _deep(text, depth):
    """Ints nested in Ints, `depth` levels in all with the Strings around them."""
    def write(writer):
        writer.byte(2)
        writer.byte(*[3, 1] * (depth - 2), 0)
        writer.zigzag(len(text))
        writer.byte(*[0] * (depth - 2))
        writer.text(text * 3)
    return by_hand(small([text] * 3), write)


limit("depth-16", _deep, 16, {"depth": 17})


def _leaves(text, leaves):
    """A template for each value, with a column of one leaf."""
    # Besides 11 of the columns before: templates, list of columns, two planes.
    count = leaves - 15

    def write(writer):
        writer.byte(4)
        writer.varint(count, count)
        writer.text(b"\1\0" * count)
        writer.sized_plane(bytes(count))
        writer.planes(range(count))
        for _ in range(count):
            writer.byte(0)
            writer.text(b"")
    return by_hand(small([b""] * count, logger=text), write)


limit("leaves-65536", _leaves, 65536, {"leaves": 1 << 20}, heavy=True)


def _of_nothing(writer, templates, leaf, variables):
    """Templates whose variables all use one column, of empty strings."""
    writer.byte(4)
    writer.varint(templates, 1)
    writer.text(leaf)
    writer.sized_plane(b"\0" + b"\1" * (variables - 1))


def _variables(text, variables):
    def write(writer):
        _of_nothing(writer, 1, text + b"\1" * variables + b"\0", variables)
        writer.byte(0, 0)
        writer.text(b"")
    return by_hand(small([text]), write)


limit("variables-of-a-template-4096", _variables, 4096, {"variables": 1 << 20})


def _variables_together(text, variables):
    """Only the first template is used, and it has no variables."""
    def write(writer):
        leaf = text + b"\0" + (b"\1" * 4096 + b"\0") * 256 + b"\1" * (variables - MIB) + b"\0"
        _of_nothing(writer, 258, leaf, variables)
        writer.byte(0)
    return by_hand(small([text] * 258), write)


limit("variables-of-a-codec-2^20", _variables_together, MIB, {"variables_together": 1 << 21},
      heavy=True)


def _columns(text, columns):
    """Columns without values, since only the first template is used."""
    def write(writer):
        writer.byte(4)
        writer.varint(18, columns)
        full = (b"\1" * 4096 + b"\0") * 16
        writer.text(text + b"\0" + full + b"\1" * (columns - 65536) + b"\0")
        writer.sized_plane(bytes(columns))
        writer.byte(0)
    return by_hand(small([text] * 18), write)


limit("columns-65536", _columns, 65536, {"entries": 1 << 20})


def _templates(text, templates):
    def write(writer):
        writer.byte(4)
        writer.varint(templates, 0)
        writer.text(bytes(templates))
        writer.sized_plane(b"")
        writer.byte(0)
    return by_hand(small([b""] * templates, logger=text), write)


limit("templates-65536", _templates, 65536, {"entries": 1 << 20}, heavy=True)


def _contexts(text, count):
    def write(writer):
        writer.varint(count)
        writer.byte(1, 1, 0, 0, 0)  # one shape, which is empty; all use it
        writer.byte(0)
    return by_hand(small([text], contexts=[(b"", bytes(25))] * count), write, "contexts")


limit("contexts-65536", _contexts, 65536, {"entries": 1 << 20}, heavy=True)


def _formats(text, count):
    return block(small([text], formats=[Format(0, b"", b"", 0, b"", b"")] * count))


limit("formats-65536", _formats, 65536, {"entries": 1 << 20})


def _shapes(text, count):
    def write(writer):
        writer.byte(1)
        writer.varint(count)
        writer.byte(0)
        writer.text(b"")
        writer.byte(0)
    return by_hand(small([text], sections=[b""]), write, "sections")


limit("shapes-65536", _shapes, 65536, {"entries": 1 << 20})


def _shape_bytes(text, more):
    """The second shape is unused. Together they are longer than the size by `more`."""
    made = small([text], contexts=[(b"\0\0", bytes(25))])
    left = made.size + more - 2
    fields = struct.pack("<HBBH", 1, 5, 0, left - 6) + b"k" * (left - 6)

    def write(writer):
        writer.byte(1, 1, 2)
        writer.strings([b"\0\0", fields])
        writer.byte(0, 0)
    return by_hand(made, write, "contexts")


limit("shape-bytes-as-the-payload", _shape_bytes, 0, {"shapes_a_byte": 2})


# Values and bytes that a tree makes but no record has.

def _values(text, variables):
    """Templates with that many variables in all, each used once. All are empty strings."""
    templates = 1 + variables // 4096
    made = small([text] * templates)

    def write(writer):
        full = (text + b"\1" * 4096 + b"\0") * (templates - 1)
        _of_nothing(writer, templates, full + text + b"\1" * (variables % 4096) + b"\0", variables)
        writer.planes(range(templates))
        writer.byte(0)
        writer.text(b"")
    return made.size, by_hand(made, write)


def _values_beside(text, more):
    """As many as the limit allows beside those of the other columns, plus `more`."""
    variables = 18 * 4096
    for _ in range(2):  # the second time with the number of templates that this needs
        size, made = _values(text, variables)
        tree = read(made, LIFTED)
        variables += 4 * size + 65536 - tree.values
    return _values(text, variables + more)[1]


limit("values-by-ratio", _values_beside, 0, {"values_more": 1 << 30})


def _values_over(text):
    made = small([text] * 2100, struct.pack("<I", 2_200_000) + b"m" * 2_200_000, b"\6", 1)

    def write(writer):
        _of_nothing(writer, 1, text + b"\1" * 4000 + b"\0", 4000)
        writer.byte(0, 0)
        writer.text(b"")
    return by_hand(made, write)


add("limits", "values-over-2^23", _values_over, lift={"values": 1 << 40}, heavy=True)


def _made(text, length, argument=b""):
    """The second entry is unused. It has that length, made of variables of one long string."""
    made = small([text] * 2, struct.pack("<I", len(argument)) + argument, b"\6", 1)
    parts = 1 + length // (4 * MIB)

    def write(writer):
        writer.byte(3, 0, 2, 0)
        _of_nothing(writer, 2, text + b"\0" + b"\1" * parts + b"\0", parts)
        writer.planes([0, 1])
        writer.byte(0)
        writer.text(b"x" * (length // parts))
    return made.size, by_hand(made, write)


limit("bytes-made-by-ratio",
      lambda text, more: _made(text, 6 * _made(text, 1)[0] + MIB - len(text) + more)[1], 0,
      {"made_more": 1 << 30})
add("limits", "bytes-made-over-128-mib", lambda text: _made(text, 129 * MIB, b"m" * 22_500_000)[1],
    lift={"made": 1 << 30}, heavy=True)


def _long_frame(text):
    """An unused entry fills the text."""
    def write(writer):
        writer.byte(3, 0, 2, 0)
        writer.strings([text, b"x" * (97 * MIB)])
    return by_hand(small([text] * 2), write)


add("limits", "frames-over-96-mib", _long_frame, lift={"frames": 1 << 30}, heavy=True)


def _many_arguments(text):
    """Each has its own column, of six bytes in the meta stream."""
    count = 700_000
    return block(small([text], b"\xff\xff\xff\x7f" * count, b"\1" * count, 1))


add("limits", "meta-over-4-mib", _many_arguments, lift={"meta": 1 << 30}, heavy=True)


# Duplicates, and the parts of formats and sections.

def bound(name, make, most, lift):
    """Like limit(), but in lists of their own."""
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
    return made.size, by_hand(made, write)


def _duplicates(text, more):
    """With those of the other columns, as long as the size, plus `more`."""
    size, made = _copies(text, 1)
    tree = read(made, {"duplicates_a_byte": 9})
    return _copies(text, size - (tree.again - 1) + more)[1]


bound("duplicates-as-the-payload", _duplicates, 0, {"duplicates_a_byte": 9})
bound("argument-types-2^20", lambda text, count: block(small([text], types=b"\1" * count)),
      1 << 20, {"parts": 1 << 21})


def _section_kinds(text, count):
    """A shape with that many kinds, which no record has. The block is as large as the shapes."""
    made = small([text], struct.pack("<I", 1_100_000) + b"m" * 1_100_000, b"\6", 1, sections=[b""])

    def write(writer):
        writer.byte(1, 2)
        writer.strings([b"", b"c" * count])
        writer.byte(0)
    return by_hand(made, write, "sections")


bound("section-kinds-2^20", _section_kinds, 1 << 20, {"parts": 1 << 21})


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

for _case in CASES:
    _case.heavy |= _case.name in SLOW
