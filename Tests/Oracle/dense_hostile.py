"""Blocks of method 2 that each break one rule of FORMAT §11.6 or one limit of §11.10, and nothing
else: all their checksums match, and a block beyond a limit is whole without that limit. A reader
must report each as damaged (or newer), and continue with the next block. Beside them are whole
blocks that reach a limit."""

import struct
from dataclasses import dataclass, field

from dense import decode_tree, varint, zigzag
from dense_encoder import Choice
from dense_tree import Limits, Tree
from dense_writer import LANE_ID, Layout, encode, plain_frame, zstd_frame
from wire import crc32c

UTC = 1_790_000_000 * 10**9
MIB = 1 << 20
LIFTED = {"values_more": 1 << 30}
CASES = []


@dataclass
class Case:
    """`lift`: the limits (Limits in dense_tree.py) without which the block is whole. A `heavy` one
    takes seconds to make."""

    group: str
    name: str
    make: object
    lift: dict = field(default_factory=dict)
    heavy: bool = False

    def block(self):
        """(header's content, the bytes after it)."""
        return self.make(self.text())

    def text(self):
        """The message of its records, if a reader shows them, or their logger."""
        return f"{'whole' if self.is_whole else 'accepted'} {self.name}".encode()

    @property
    def is_whole(self):
        return self.group.startswith("whole")


class Dense:
    """Makes blocks of method 2, and reads them."""

    tables = 5  # leaves before those of the contexts

    @staticmethod
    def encode(made, layout, instead, changed):
        return encode(*made, Choice(1, TIDY, tidy=True), layout or Layout(frame=zstd_frame),
                      instead, changed)

    @staticmethod
    def read(block, lift):
        """The tree of a block that is whole without these limits."""
        tree = Tree(*block, Limits(**lift))
        decode_tree(tree)
        return tree

    @staticmethod
    def size(made):
        """What limits go by."""
        return len(made[0])


class Making:
    """What makes the blocks. block_samples.py makes those of another page from the same cases."""

    way = Dense


class Clock:
    """The monotonic time of the next block's first record: an archive's blocks are in time
    order."""

    now = 1000


def steps(values, usual=0):
    """The first value, then each difference to its predecessor, less `usual`."""
    return zigzag(values[0]) + b"".join(
        zigzag(value - before - usual) for before, value in zip(values, values[1:]))


def small(messages, deferred=b"", types=b"", count=0, contexts=(), sections=(), formats=None,
          logger=b"h", rows=None):
    """(payload, count): records with these messages, the first of them with these sections; then
    `count` deferred ones, whose arguments have these types and together are `deferred`. `rows`: the
    monotonic time, sequence and level of each."""
    if formats is None:
        formats = varint(1) + varint(7) + b"\3a.c\4main\1\4late" + varint(len(types)) + types
    total = len(messages) + count
    rows = rows or [(Clock.now + number, number, 9) for number in range(total)]
    kinds = bytearray(len(messages)) + b"\x40" * count
    for number in range(len(sections)):
        kinds[number] |= 32
    streams = [
        varint(1) + LANE_ID + bytes(16) + varint(812) + varint(UTC) + varint(1000) + b"\1p\0",
        varint(1) + b"\0\1" + varint(813) + b"\0", varint(1) + varint(len(logger)) + logger,
        varint(1) + varint(9) + b"\3b.c\1f",
        varint(len(contexts)) + b"".join(varint(len(run)) + run + trace
                                         for run, trace in contexts),
        bytes(total), steps([time for time, _, _ in rows]),
        varint(2 * (UTC - 1000)) + bytes(total - 1), steps([number for _, number, _ in rows], 1),
        bytes(level for _, _, level in rows), bytes(kinds), bytes(total), bytes(total),
        b"".join(varint(len(text)) for text in messages),
        b"".join(varint(len(run)) for run in sections), b"".join(sections), formats, bytes(count),
        deferred, b"".join(text + b"\n" for text in messages)]
    return struct.pack("<21I", 20, *map(len, streams)) + b"".join(streams), total


# Codecs without leaves, if they can hold the values.
TIDY = {"Ints": (0, 4), "Doubles": (0,), "Strings": (0, 2), "FieldLists": (1,), "Traces": (0, 1),
        "Sections": (1,), "mode": (0,)}


def block(made, layout=None, instead=None, changed=None):
    return Making.way.encode(made, layout, instead, changed)


def add(group, name, make, **words):
    CASES.append(Case(group, name, make, **words))


def column(group, name, write, made=None, at="messages", **words):
    """`write` is called with the writer and the text, and writes that column by hand. `made`
    returns what small() returns for the text; otherwise the text is repeated in three messages."""
    def make(text):
        return block(made(text) if made else small([text] * 3),
                     instead=lambda writer, table: {at: lambda: write(writer, text)})
    add(group, name, make, **words)


# The block's header, the directory, the frames.

def changed(name, group="block", **words):
    add(group, name, lambda text: block(small([text]), changed=words))


changed("records-over-bytes", count=1 << 20)
changed("records-over-2^22", count=(1 << 22) + 1, raw=5_000_000)
changed("raw-bytes-over-64-mib", raw=64 * MIB + 1)
changed("raw-bytes-over-ratio", raw=1 << 25)
add("block", "raw-bytes-one-more", lambda text: block(
    small([text]), changed={"raw": len(small([text])[0]) + 1}))
changed("raw-crc", raw_crc=7)
changed("method-3", "newer", method=3)
changed("codec-1", "newer", codec=1)
changed("incompat", "newer", incompat=1 << 40)


def directory(name, change, group="block"):
    add(group, name, lambda text: block(small([text]), Layout(
        change={"directory": lambda words: {**words, **change(words)}})))


def _entry(index, stored=0, raw=0, crc=0):
    def change(words):
        entries = [list(entry) for entry in words["entries"]]
        for place, more in enumerate((stored, raw, crc)):
            entries[index][place] += more
        return {"entries": entries}
    return change


directory("frame-over-ratio", _entry(0, raw=1 << 24))
directory("frame-content-one-more", _entry(1, raw=1))
directory("frame-content-one-less", _entry(1, raw=-1))
directory("frame-crc", _entry(0, crc=-1))
directory("frames-stored-one-less", _entry(1, stored=-1))
directory("frame-count-0", lambda words: {"count": 0})
directory("frame-count-1", lambda words: {"count": 1})
directory("frame-count-over-entries", lambda words: {"count": 3})
directory("frame-count-over-1024", lambda words: {"count": 1025, "more": bytes(12 * 1023)})
directory("meta-over-frame", lambda words: {"meta": words["entries"][0][1] + 1})
directory("plane-bytes-0", lambda words: {"plane": 0})
directory("payload-crc", lambda words: {"crc": words["crc"] ^ 1})
directory("flag-4", lambda words: {"flags": 0x10}, "newer")
directory("flag-7", lambda words: {"flags": 0x8F}, "newer")


def rewritten(name, change):
    """`change` is applied to the bytes after the block's header."""
    def make(text):
        head, stored = block(small([text]))
        head, stored = bytearray(head), change(stored)
        struct.pack_into("<Q", head, 40, len(stored))
        struct.pack_into("<I", head, 72, crc32c(stored))
        struct.pack_into("<I", head, 80, 0)
        struct.pack_into("<I", head, 80, crc32c(head))
        return bytes(head), stored
    add("block", name, make)


def _frames(stored):
    return 8 + struct.unpack_from("<I", stored, 4)[0]


rewritten("directory-crc", lambda stored: stored[:20] + bytes([stored[20] ^ 1]) + stored[21:])
rewritten("directory-magic", lambda stored: stored[:8] + b"X" + stored[9:])
rewritten("directory-missing", lambda stored: stored[_frames(stored):])
rewritten("directory-in-another-frame", lambda stored: b"\x51" + stored[1:])
rewritten("directory-too-long", lambda stored: stored[:5] + b"\xff" + stored[6:])
rewritten("directory-too-short", lambda stored: stored[:4] + b"\x18" + bytes(3) + stored[8:32])
rewritten("bytes-behind-frames", lambda stored: stored + b"\0")
rewritten("frame-behind-frames", lambda stored: stored + plain_frame(b""))
rewritten("frame-missing", lambda stored: stored[:stored.rindex(struct.pack("<I", 0xFD2FB528))])
rewritten("gap-before-frames", lambda stored: stored[:_frames(stored)] + bytes(8)
          + stored[_frames(stored):])


def framed(name, frame):
    add("block", name, lambda text: block(small([text]), Layout(frame=frame)))


def _unsized(content):
    """With a window instead of the content size."""
    return (struct.pack("<IBB", 0xFD2FB528, 0, 0x38)
            + (len(content) << 3 | 1).to_bytes(3, "little") + content)


framed("frame-without-content-size", _unsized)
framed("frame-and-an-empty-one", lambda content: plain_frame(content) + plain_frame(b""))
framed("frame-is-skippable", lambda content: struct.pack("<II", 0x184D2A50, len(content)) + content)


def contents(name, change):
    add("block", name, lambda text: block(small([text]), Layout(change={"contents": change})))


contents("frame-of-no-plane", lambda frames: frames + [b"plane"])
contents("pool-left", lambda frames: [frames[0] + b"\0", frames[1]])
contents("pool-short", lambda frames: [frames[0][:-1], frames[1]])
contents("text-left", lambda frames: [frames[0], frames[1] + b"\0"])
contents("text-short", lambda frames: [frames[0], frames[1][:-1]])


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


def by_hand(made, write, at="messages"):
    return block(made, instead=lambda writer, table: {at: lambda: write(writer)})


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
    count = leaves - Making.way.tables - 4  # templates, list of columns, two planes

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
    return block(small([text], formats=varint(count) + bytes(6 * count)))


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
    """The second shape is unused. Together they are longer than the payload by `more`."""
    made = small([text], contexts=[(b"\0\0", bytes(25))])
    left = Making.way.size(made) + more - 2
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
    return Making.way.size(made), by_hand(made, write)


def _values_beside(text, more):
    """As many as the limit allows beside those of the other columns, plus `more`."""
    variables = 18 * 4096
    for _ in range(2):  # the second time with the number of templates that this needs
        size, made = _values(text, variables)
        tree = Making.way.read(made, LIFTED)
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
    return Making.way.size(made), by_hand(made, write)


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
