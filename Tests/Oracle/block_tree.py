"""The outer structure of a block (BLOCK, What is stored) and its limits: directory, frames of three
codecs, leaves of both kinds that have frames of their own, and the sum of what columns hold. The
rest is as in dense_tree.py."""

import subprocess
from dataclasses import dataclass

from dense_tree import SKIPPABLE, Limits, Tree, frame_sizes, inflated, within
from wire import Bytes, Damage, crc32c, u16, u32

LZ4 = 0x184D2204
CODECS = ("zstd", "lz4", "none")


@dataclass(frozen=True)
class BlockLimits(Limits):
    """Adds the numbers that only BLOCK has."""

    payload_ratio: int = Limits.payload  # none: a stored byte may stand for the largest size
    record_bytes: int = 64  # size a record, at least
    processes: int = 4096
    attributes: int = 65536
    frame_count: int = 1024
    size_more: int = 0  # the sum of the columns may exceed the size by that


LIMITS = BlockLimits()


class BlockTree(Tree):
    """Takes the parts of one block. raw_bytes is its size (BLOCK, Size)."""

    string_codecs = 11

    def __init__(self, records, size, codec, stored, limits=LIMITS):
        if codec not in CODECS:
            raise Damage(f"codec {codec} of frames")
        self.codec_of_frames, self.texts, self.size = codec, [], 0
        within("records × 64", limits.record_bytes * records, size)
        self._open(records, size, None, stored, limits)

    def _frames(self, stored):
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
        sizes, inflate = {"zstd": (frame_sizes, inflated), "lz4": (_lz4_sizes, _lz4_inflated),
                          "none": (_plain_sizes, _plain_inflated)}[self.codec_of_frames]
        found = self._contents(source, content[24:24 + 12 * count], sizes, inflate)
        self.is_joined = count == 1
        return found if count > 1 else [*found, b""]

    def add(self, count):
        """BLOCK, Size: bytes that a column holds. Called before its values are made: those that a
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
        self.used()
        if self.size != self.raw_bytes and not self.limits.size_more:
            raise Damage(f"size {self.raw_bytes}, but the block holds {self.size}")

    def text_leaf(self):
        length = self.meta.varint()
        source = self.pool if self.is_joined else self.text
        content = source.take(length) if length < self.text_bytes else self._frame()
        if len(content) != length:
            raise Damage("a text of another length")
        self.texts.append(content)
        return self._leaf(content)


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
