"""What the blocks of block_broken.py, block_limits.py, block_hostile.py and block_bounds.py are
made of. Each breaks one rule of FORMAT §11.4 to §11.9 or one limit of §11.10, and no other: all its
checksums match, and a block beyond a limit is whole without that limit. A reader must report each
as damaged. Beside them are whole blocks that reach a limit, or that no known writer makes."""

from dataclasses import dataclass, field, replace

from block import decode
from block_table import LANE_ID, Format, Process, Site, Table, Thread
from block_writer import Layout, encode
from column_encoder import Choice
from tree import LIMITS, Tree

UTC = 1_790_000_000 * 10**9
MIB = 1 << 20
CASES = []


@dataclass
class Case:
    """`lift`: the limits (Limits in tree.py) without which the block is whole. A `heavy` one takes
    seconds to make. `turns`: its frames may have any codec."""

    group: str
    name: str
    make: object
    lift: dict = field(default_factory=dict)
    heavy: bool = False
    turns: bool = False

    def block(self):
        """(words of its header, the bytes after it)."""
        return self.make(self.text())

    def text(self):
        """The message of its records, if a reader shows them, or their logger."""
        return f"{'whole' if self.is_whole else 'accepted'} {self.name}".encode()

    @property
    def is_whole(self):
        return self.group.startswith("whole")


class Codec:
    """Of the frames of a block that does not say."""

    now = "zstd"


class Clock:
    """The monotonic time of the next block's first record: an archive's blocks are in time
    order."""

    now = 1000


def small(messages, deferred=b"", types=b"", count=0, contexts=(), sections=(), formats=None,
          logger=b"h", rows=None):
    """The table of records with these messages, the first of them with these sections; then `count`
    deferred ones, whose arguments have these types and together are `deferred`. `rows`: the
    monotonic time, sequence and level of each."""
    total = len(messages) + count
    rows = rows or [(Clock.now + number, number, 9) for number in range(total)]
    kinds = [0] * len(messages) + [64] * count
    for number in range(len(sections)):
        kinds[number] |= 32
    sequences = [number for _, number, _ in rows]
    return Table(
        processes=[Process(LANE_ID, bytes(16), 812, UTC, 1000, b"p", [])],
        threads=[Thread(0, 1, 813, b"")], loggers=[logger], sites=[Site(9, b"b.c", b"f")],
        formats=[Format(7, b"a.c", b"main", 1, b"late", types)] if formats is None else formats,
        contexts=list(contexts), kind=kinds, level=[level for _, _, level in rows],
        thread=[0] * total, time=[time for time, _, _ in rows], offset=[UTC - 1000] * total,
        sequence=[number - before for before, number in zip(
            [0] + [number + 1 for number in sequences], sequences)],
        logger=[0] * total, context=[0] * total, format=[0] * count, arguments=deferred,
        sections=list(sections), messages=list(messages))


# Codecs without leaves, if they can hold the values.
TIDY = {"Ints": (0, 4), "Doubles": (0,), "Strings": (0, 2), "FieldLists": (1,), "Traces": (0, 1),
        "Sections": (1,), "mode": (0,)}


def block(table, layout=None, instead=None, changed=None):
    layout = layout or Layout()
    return encode(table, Choice(1, TIDY, tidy=True), replace(
        layout, codec=layout.codec or Codec.now), instead, changed)


def read(block, lift=None):
    """The tree of a block that is whole without these limits."""
    words, stored = block
    tree = Tree(words["count"], words["raw"], words["codec"], stored, replace(
        LIMITS, **(lift or {})))
    tree.found = decode(tree)
    return tree


def mine(group, name, make, **words):
    """`make` returns a block for the text."""
    CASES.append(Case(group, name, make, **words))


def add(group, name, make, **words):
    """Likewise; its frames may have any codec."""
    mine(group, name, make, turns=True, **words)


def by_hand(table, write, at="messages"):
    """`write` is called with the writer, and writes that column."""
    return block(table, instead=lambda writer, table: {at: lambda: write(writer)})


def column(group, name, write, made=None, at="messages", **words):
    """`write` is called with the writer and the text, and writes that column. `made` returns the
    table for the text; otherwise the text is repeated in three messages."""
    def make(text):
        return by_hand(made(text) if made else small([text] * 3),
                       lambda writer: write(writer, text), at)
    add(group, name, make, **words)


def made(name, make=None, layout=None, instead=None, changed=None, group="block", **words):
    """A block of small() with something else."""
    def found(text):
        return block(make(text) if make else small([text]), layout,
                     (lambda writer, table: instead(writer, text)) if instead else None,
                     changed(text) if callable(changed) else changed)
    mine(group, name, found, **words)


def whole(name, *arguments, **words):
    made(name, *arguments, group="whole", **words)
