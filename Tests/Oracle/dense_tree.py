"""The outer structure of a block of method 2 (FORMAT §11.6) and its limits (§11.10): directory and
frames, the meta stream, and the leaves in the order of the tree. The codecs of §11.8 and §11.9 and
the columns of §11.7 read from a Tree, which counts against the limits."""

import contextlib
import subprocess
from dataclasses import dataclass

from wire import Bytes, Damage, NewerVersion, crc32c, u16, u32

SKIPPABLE, ZSTD = 0x184D2A50, 0xFD2FB528
MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """The table of §11.10, a name for each number. Tests lift some of them."""

    records: int = 1 << 19
    records_a_byte: int = 1
    payload: int = 64 * MIB
    payload_ratio: int = 32768
    frame_ratio: int = 32768
    frames: int = 96 * MIB
    meta: int = 4 * MIB
    leaves: int = 65536
    duplicates_a_byte: int = 1
    depth: int = 16
    entries: int = 65536
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

    string_codecs = 10

    def __init__(self, header, stored, limits=LIMITS):
        """`header` is the content of the block's header (§11.2); `stored` the bytes after it."""
        self._open(u32(header, 28), int.from_bytes(header[32:40], "little"), u32(header, 76),
                   stored, limits)

    def _open(self, records, raw_bytes, raw_crc, stored, limits):
        self.limits, self.records = limits, records
        self.raw_bytes, self.raw_crc = raw_bytes, raw_crc
        within("recordCount", records, limits.records, limits.records_a_byte * raw_bytes)
        within("rawBytes", raw_bytes, limits.payload, limits.payload_ratio * len(stored))
        frames = self._frames(stored)
        pool, self.text, self.large = Bytes(frames[0]), Bytes(frames[1]), frames[:1:-1]
        self.meta = Bytes(pool.take(self.meta_bytes))
        self.duplicates = self._duplicates(pool)
        self.pool, self.leaves, self.planes = pool, [], []
        self.depth = self.values = self.made = self.shapes = self.again = 0
        self.met = set()  # (codec's kind, number), for tests

    def _frames(self, stored):
        """Returns the contents of all frames."""
        source = Bytes(stored)
        if source.u32() != SKIPPABLE:
            raise Damage("no directory")
        content = source.take(source.u32())
        if len(content) < 28 or content[:8] != b"CWDIRB01":
            raise Damage("no directory")
        if crc32c(content[:-4]) != u32(content, len(content) - 4):
            raise Damage("the directory's crc does not match")
        if content[8] & 0xD0:
            raise NewerVersion(f"flags {content[8]:#x} of a directory")
        count, self.meta_bytes, self.plane_bytes = u16(content, 10), u32(content, 12), u32(
            content, 16)
        self.payload_crc = u32(content, 20)
        if not 2 <= count <= 1024 or len(content) < 28 + 12 * count or self.plane_bytes == 0:
            raise Damage("a directory that cannot be")
        return self._contents(source, content[24:24 + 12 * count], frame_sizes, inflated)

    def _contents(self, source, entries, sizes_of, inflate):
        """The contents of the frames in `source`, by the entries of the directory."""
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
        return self._leaf(self.text.take(self.meta.varint()))

    def plane_leaf(self, length):
        number = len(self.planes)
        distance = self.duplicates.pop(number, None)
        if distance is not None:
            content = self.planes[number - distance]
            self.again += len(content)
            within("bytes of duplicates", self.again,
                   self.limits.duplicates_a_byte * self.raw_bytes)
        elif length >= self.plane_bytes:
            content = self._frame()
        else:
            content = self.pool.take(length)
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
        within("leaves", len(self.leaves) + 1, self.limits.leaves)
        self.leaves.append(content)
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

    def bounded(self, pieces):
        """Yields the pieces, unless they exceed the bytes of the payload."""
        total = 0
        for piece in pieces:
            total += len(piece)
            within("the payload", total, self.raw_bytes)
            yield piece

    def end(self):
        """Called after the last column: everything must be used, and the checksum must match."""
        self.used()
        if crc32c(b"".join(self.leaves)) != self.raw_crc:
            raise Damage("rawCRC does not match")

    def used(self):
        if self.duplicates:
            raise Damage("a duplicate that is no leaf")
        if self.meta.left or self.pool.left or self.text.left or self.large:
            raise Damage("bytes that no leaf uses")


def within(what, count, *limits):
    if count > min(limits):
        raise Damage(f"{what}: {count}, at most {min(limits)}")


def frame_sizes(frame):
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


def inflated(frames):
    run = subprocess.run(["zstd", "-dc"], input=b"".join(frames), stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=False)
    if run.returncode:
        raise Damage("zstd does not read a frame")
    return run.stdout
