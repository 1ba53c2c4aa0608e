"""The outer structure of a block (FORMAT §11.6) and its limits (§11.10): directory and frames of
three codecs, the meta stream, the leaves in the order of the tree, and the sum of what columns
hold. The columns and their codecs read from a Tree, which counts against the limits."""

import contextlib
import subprocess
from dataclasses import dataclass

from wire import Bytes, Damage, crc32c, u16, u32

SKIPPABLE, ZSTD, LZ4 = 0x184D2A50, 0xFD2FB528, 0x184D2204
# In the order of their numbers (§11.2).
CODECS = ("zstd", "lz4", "none")
MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """The table of §11.10, a name for each number. Tests lift some of them."""

    records: int = 1 << 19
    record_bytes: int = 64  # size a record, at least
    size: int = 64 * MIB
    size_more: int = 0  # the sum of the columns may exceed the size by that
    frame_count: int = 1024
    frame_ratio: int = 32768
    frames: int = 96 * MIB
    meta: int = 4 * MIB
    leaves: int = 65536
    duplicates_a_byte: int = 1
    depth: int = 16
    entries: int = 65536
    processes: int = 4096
    attributes: int = 65536
    variables: int = 4096
    variables_together: int = 1 << 20
    values: int = 1 << 23
    values_more: int = 65536
    made: int = 128 * MIB
    made_more: int = MIB
    shapes_a_byte: int = 1
    parts: int = 1 << 20


LIMITS = Limits()


class Tree:
    """Takes the parts of one block in the order of the tree."""

    def __init__(self, records, size, codec, stored, limits=LIMITS):
        """What the block's header says of it, and the bytes after the header."""
        if codec not in CODECS:
            raise Damage(f"codec {codec} of frames")
        self.records, self.raw_bytes, self.codec_of_frames = records, size, codec
        self.limits, self.size = limits, 0
        within("records × 64", limits.record_bytes * records, size)
        within("recordCount", records, limits.records)
        within("rawBytes", size, limits.size)
        frames = self._frames(stored)
        pool, self.text, self.large = Bytes(frames[0]), Bytes(frames[1]), frames[:1:-1]
        self.meta = Bytes(pool.take(self.meta_bytes))
        self.duplicates = self._duplicates(pool)
        self.pool, self.leaves, self.planes, self.texts = pool, 0, [], []
        self.depth = self.values = self.made = self.shapes = self.again = 0
        self.met = set()  # (codec's kind, number), for tests

    def _frames(self, stored):
        """The contents of all frames; of a block of one frame, and of no text."""
        source = Bytes(stored)
        if source.u32() != SKIPPABLE:
            raise Damage("no directory")
        content = source.take(source.u32())
        if len(content) < 28 or content[:8] != b"CWCOLS01":
            raise Damage("no directory")
        if crc32c(content[:-4]) != u32(content, len(content) - 4):
            raise Damage("the directory's crc does not match")
        self.flags, count = content[8], u16(content, 10)
        self.meta_bytes, self.plane_bytes, self.text_bytes = (
            u32(content, 12), u32(content, 16), u32(content, 20))
        if not 1 <= count <= self.limits.frame_count:
            raise Damage(f"{count} frames")
        if len(content) < 28 + 12 * count:
            raise Damage("a directory shorter than its entries")
        if self.plane_bytes == 0 or self.text_bytes == 0:
            raise Damage("a directory that cannot be")
        found = self._contents(source, content[24:24 + 12 * count])
        self.is_joined = count == 1
        return found if count > 1 else [*found, b""]

    def _contents(self, source, entries):
        """The contents of the frames in `source`, by the entries of the directory."""
        sizes_of, inflate = {"zstd": (_zstd_sizes, _zstd_inflated),
                             "lz4": (_lz4_sizes, _lz4_inflated),
                             "none": (_plain_sizes, _plain_inflated)}[self.codec_of_frames]
        frames, sizes = [], []
        for at in range(0, len(entries), 12):
            size, crc = u32(entries, at + 4), u32(entries, at + 8)
            frame = source.take(u32(entries, at))
            within("content of a frame", size, self.limits.frame_ratio * len(frame))
            if crc32c(frame) != crc:
                raise Damage("a frame's crc does not match")
            if sizes_of(frame) != (size, len(frame)):
                raise Damage("a frame that is not what the directory says")
            frames.append(frame)
            sizes.append(size)
        if source.left:
            raise Damage("bytes behind the last frame")
        within("content of all frames", sum(sizes), self.limits.frames)
        within("metaBytes", self.meta_bytes, self.limits.meta, sizes[0])
        whole = Bytes(inflate(frames))
        return [whole.take(size) for size in sizes]

    def _duplicates(self, pool):
        found, number = {}, 0
        for index in range(pool.varint()):
            step, distance = pool.varint(), pool.varint()
            number += step
            if index and step == 0 or not 1 <= distance <= number:
                raise Damage("a duplicate of nothing")
            found[number] = distance
        return found

    def text_leaf(self):
        length = self.meta.varint()
        source = self.pool if self.is_joined else self.text
        content = source.take(length) if length < self.text_bytes else self._frame()
        if len(content) != length:
            raise Damage("a text of another length")
        self.texts.append(content)
        return self._leaf(content)

    def plane_leaf(self, length):
        number = len(self.planes)
        distance = self.duplicates.pop(number, None)
        if distance is not None:
            content = self.planes[number - distance]
            self.again += len(content)
            within("bytes of duplicates", self.again,
                   self.limits.duplicates_a_byte * self.raw_bytes)
        else:
            content = self.pool.take(length) if length < self.plane_bytes else self._frame()
        if len(content) != length:
            raise Damage("a plane of another length")
        self.planes.append(content)
        return self._leaf(content)

    def _frame(self):
        """The next frame, which is one large leaf."""
        if not self.large:
            raise Damage("a leaf without a frame")
        return self.large.pop()

    def _leaf(self, content):
        self.leaves += 1
        within("leaves", self.leaves, self.limits.leaves)
        return content

    def count(self, values):
        """Called before memory is allocated for that many values."""
        self.values += values
        within("values", self.values, self.limits.values,
               4 * self.raw_bytes + self.limits.values_more)

    def make(self, length):
        """Called before a string of that length is made (Strings 4 to 8)."""
        self.made += length
        within("bytes of values made", self.made, self.limits.made,
               6 * self.raw_bytes + self.limits.made_more)

    def shape(self, length):
        self.shapes += length
        within("bytes of shapes", self.shapes, self.limits.shapes_a_byte * self.raw_bytes)

    @contextlib.contextmanager
    def codec(self, kind, values):
        """Enters a nested codec. Yields its number."""
        within("codecs inside one another", self.depth + 1, self.limits.depth)
        self.count(values)
        number = self.meta.u8()
        self.met.add((kind, number))
        self.depth += 1
        yield number
        self.depth -= 1

    def form(self, kind):
        """The number of a form: 0 or 1."""
        number = self.meta.u8()
        if number > 1:
            raise Damage(f"form {number} of {kind}")
        self.met.add((kind, number))
        return number

    def add(self, count):
        """Bytes that a column holds (§11.10). Called before its values are made: those that a
        constant or a dictionary repeats are one object until then."""
        self.size += count
        within("size", self.size, self.raw_bytes + self.limits.size_more)

    def bounded(self, pieces):
        """Pieces of a column that add() counts later."""
        total = self.size
        for piece in pieces:
            total += len(piece)
            within("size", total, self.raw_bytes + self.limits.size_more)
            yield piece

    def end(self):
        """Called after the last column: everything must be used, and the sum must match."""
        if self.duplicates:
            raise Damage("a duplicate that is no leaf")
        if self.meta.left or self.pool.left or self.text.left or self.large:
            raise Damage("bytes that no leaf uses")
        if self.size != self.raw_bytes and not self.limits.size_more:
            raise Damage(f"size {self.raw_bytes}, but the block holds {self.size}")


def within(what, count, *limits):
    if count > min(limits):
        raise Damage(f"{what}: {count}, at most {min(limits)}")


def _zstd_sizes(frame):
    """(content, stored) bytes of the leading zstd frame, by its headers (RFC 8878, 3.1.1)."""
    source = Bytes(frame)
    if source.u32() != ZSTD:
        raise Damage("no zstd frame")
    descriptor = source.u8()
    single, size_flag = descriptor >> 5 & 1, descriptor >> 6
    if descriptor & 3 or size_flag == 0 and not single:
        raise Damage("a zstd frame without its content size, or with a dictionary")
    source.take(0 if single else 1)
    content = int.from_bytes(source.take((1, 2, 4, 8)[size_flag]), "little")
    content += 256 if size_flag == 1 else 0
    last = False
    while not last:
        word = int.from_bytes(source.take(3), "little")
        last, kind = word & 1, word >> 1 & 3
        source.take(1 if kind == 1 else word >> 3)
    source.take(4 if descriptor & 4 else 0)
    return content, source.at


def _zstd_inflated(frames):
    run = subprocess.run(["zstd", "-dc"], input=b"".join(frames), stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=False)
    if run.returncode:
        raise Damage("zstd does not read a frame")
    return run.stdout


def _plain_sizes(frame):
    source = Bytes(frame)
    if source.u32() != SKIPPABLE:
        raise Damage("no skippable frame")
    content = source.take(source.u32())
    return len(content), source.at


def _plain_inflated(frames):
    return b"".join(frame[8:] for frame in frames)


def _lz4_sizes(frame):
    """(content, stored) bytes of the leading LZ4 frame, by its headers."""
    source = Bytes(frame)
    if source.u32() != LZ4:
        raise Damage("no LZ4 frame")
    flags = source.u8()
    source.u8()
    if flags >> 6 != 1 or flags & 1:
        raise Damage("an LZ4 frame of another version, or with a dictionary")
    content = source.u64() if flags & 8 else 0
    source.u8()
    while True:
        word = source.u32()
        if word == 0:
            break
        if not flags & 8:
            raise Damage("an LZ4 frame without its content size that is not empty")
        source.take((word & 0x7FFFFFFF) + (4 if flags & 16 else 0))
    source.take(4 if flags & 4 else 0)
    return content, source.at


def _lz4_inflated(frames):
    run = subprocess.run(["lz4", "-dc"], input=b"".join(frames), stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=False)
    if run.returncode:
        raise Damage("lz4 does not read a frame")
    return run.stdout
