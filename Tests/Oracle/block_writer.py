"""A writer of blocks for tests (docs/BLOCK.md): makes the columns of a payload of method 1, encodes
them by seed, and lays their leaves into frames of any codec. Nothing that ships uses it."""

import os
import struct
import subprocess
import tempfile
from collections import namedtuple
from dataclasses import dataclass, field
from functools import partial

from dense import varint
from dense_encoder import STRING_TESTS, STRINGS, Writer
from dense_writer import (Table, argument, contexts, laid, plain_frame, sections, skippable,
                          varints, zstd_frame)
from wire import Bytes, crc32c

MASK32 = 2**32 - 1


def _sized_lines(writer, values):
    writer.ints([len(value) for value in values])
    writer.text(b"".join(value + b"\n" for value in values))


class BlockWriter(Writer):
    """Adds codec 10."""

    string_tests = {**STRING_TESTS, 10: lambda values: True}
    string_writers = {**STRINGS, 10: _sized_lines}


Process = namedtuple("Process", "lane boot pid realtime monotonic name attributes")
Thread = namedtuple("Thread", "process serial id name")
Site = namedtuple("Site", "line file function")
Format = namedtuple("Format", "line file function style text types")


class BlockTable(Table):
    """The columns of a payload."""

    def __init__(self, payload, count):
        super().__init__(payload, count)
        self.processes = self._entries(0, lambda source: Process(
            source.take(16), source.take(16), *varints(source, 3), source.str(),
            [(source.str(), source.str()) for _ in range(source.varint())]))
        self.threads = self._entries(1, lambda source: Thread(*varints(source, 3), source.str()))
        self.loggers = self._entries(2, Bytes.str)
        self.sites = self._entries(3, lambda source: Site(
            source.varint(), source.str(), source.str()))
        self.formats = self._entries(16, lambda source: Format(
            source.varint(), source.str(), source.str(), source.u8(), source.str(), source.str()))

    def _entries(self, stream, read):
        source = Bytes(self.streams[stream])
        found = [read(source) for _ in range(source.varint())]
        assert not source.left, stream
        return found

    @property
    def size(self):
        """BLOCK, Size. The streams of arguments, sections and messages are as long as it says."""
        attributes = [pair for row in self.processes for pair in row.attributes]
        rows = [*self.processes, *self.threads, *self.sites, *self.formats, *attributes,
                *((name,) for name in self.loggers), *((run,) for run, _ in self.contexts)]
        strings = [part for row in rows for part in row if isinstance(part, bytes)]
        return 64 * (self.count + len(rows)) + sum(map(len, strings)) + sum(
            len(self.streams[stream]) for stream in (15, 18, 19))


def _processes(writer, rows):
    writer.varint(len(rows))
    pairs = [pair for row in rows for pair in row.attributes]
    writer.strings([row.lane for row in rows])
    writer.strings([row.boot for row in rows])
    for name in ("pid", "realtime", "monotonic"):
        writer.ints([getattr(row, name) for row in rows])
    writer.strings([row.name for row in rows])
    writer.ints([len(row.attributes) for row in rows])
    writer.strings([key for key, _ in pairs])
    writer.strings([value for _, value in pairs])


def _rows(writer, rows, names):
    """A number of entries, and a column for each name. Numbers have Ints."""
    writer.varint(len(rows))
    for name in names.split():
        values = [getattr(row, name) for row in rows]
        (writer.strings if any(isinstance(value, bytes) for value in values)
         else writer.ints)(values)


def _loggers(writer, names):
    writer.varint(len(names))
    writer.strings(names)


def columns(writer, table, instead=None):
    """Writes all columns. `instead` maps a column's name to its own writer."""
    put = {
        "processes": lambda: _processes(writer, table.processes),
        "threads": lambda: _rows(writer, table.threads, "process serial id name"),
        "loggers": lambda: _loggers(writer, table.loggers),
        "sites": lambda: _rows(writer, table.sites, "line file function"),
        "formats": lambda: _rows(writer, table.formats, "line file function style text types"),
    }
    for name in ("kind", "level", "thread", "time", "offset", "sequence", "logger", "context",
                 "format"):
        put[name] = lambda name=name: writer.ints(getattr(table, name))
    put |= {
        "contexts": lambda: contexts(writer, table.contexts),
        "arguments": lambda: [argument(writer, *column) for column in table.arguments],
        "sections": lambda: sections(writer, table),
        "messages": lambda: writer.strings(table.messages),
    }
    for name, write in put.items():
        (instead or {}).get(name, write)()


def _rotated(value, bits):
    return (value << bits | value >> 32 - bits) & MASK32


def xxh32(data):
    """XXH32 of fewer than 16 bytes."""
    value = 374761393 + len(data)
    whole = len(data) // 4 * 4
    for word, in struct.iter_unpack("<I", data[:whole]):
        value = _rotated(value + word * 3266489917 & MASK32, 17) * 668265263 & MASK32
    for byte in data[whole:]:
        value = _rotated(value + byte * 374761393 & MASK32, 11) * 2654435761 & MASK32
    value = (value ^ value >> 15) * 2246822519 & MASK32
    value = (value ^ value >> 13) * 3266489917 & MASK32
    return value ^ value >> 16


def plain_lz4_frame(content, flags=0x68, more=b""):
    """An LZ4 frame of stored blocks. `more`: what follows the content size."""
    head = bytes([flags, 0x40]) + (struct.pack("<Q", len(content)) if flags & 8 else b"") + more
    out = struct.pack("<I", 0x184D2204) + head + bytes([xxh32(head) >> 8 & 255])
    for at in range(0, len(content), 1 << 16):
        piece = content[at:at + (1 << 16)]
        out += struct.pack("<I", len(piece) | 1 << 31) + piece
    return out + bytes(4)


def lz4_frame(content):
    if not content:
        return plain_lz4_frame(content)  # the tool would leave the size out
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "content")
        with open(name, "wb") as file:
            file.write(content)
        return subprocess.run(["lz4", "-q", "--content-size", "-c", name], check=True,
                              stdout=subprocess.PIPE).stdout


FRAMES = {"zstd": zstd_frame, "lz4": lz4_frame, "none": skippable}
PLAIN = {"zstd": plain_frame, "lz4": plain_lz4_frame, "none": skippable}


def quick_frame(codec, content):
    """Small contents are not compressed: starting a tool costs more."""
    return (PLAIN if len(content) < 4096 else FRAMES)[codec](content)


@dataclass
class BlockLayout:
    """How leaves become frames. Tests of damage change the output."""

    plane_bytes: int = 1 << 20
    text_bytes: int = 1 << 20
    duplicates: float = 1.0  # share of the equal planes that become duplicates
    codec: str = "zstd"
    frame: object = None  # None: quick_frame
    flags: int = 0
    more: bytes = b""  # after the entries of the directory
    change: dict = field(default_factory=dict)  # (list, frames, directory) → what is written
    joined: bool = False  # no frame for text


def stored(writer, layout):
    """Directory and frames."""
    change = layout.change
    entries, contents = laid(writer, layout, layout.text_bytes, layout.joined)
    entries = change.get("list", lambda same: same)(entries)
    head = varint(len(entries)) + b"".join(varint(step) + varint(back) for step, back in entries)
    contents[0] = bytes(writer.meta) + head + contents[0]
    contents = change.get("contents", lambda same: same)(contents)
    frame = layout.frame or partial(quick_frame, layout.codec)
    frames = [frame(content) for content in contents]
    words = dict(flags=layout.flags, reserved=0, count=len(frames), meta=len(writer.meta),
                 plane=layout.plane_bytes, text=layout.text_bytes, more=layout.more, entries=[
                     (len(frame), len(content), crc32c(frame))
                     for frame, content in zip(frames, contents)])
    words = change.get("directory", lambda same: same)(words)
    directory = b"CWCOLS01" + struct.pack("<BBHIII", *(words[name] for name in (
        "flags", "reserved", "count", "meta", "plane", "text")))
    directory += b"".join(struct.pack("<III", *entry) for entry in words["entries"])
    directory += words["more"]
    directory += struct.pack("<I", crc32c(directory))
    return skippable(directory) + b"".join(frames)


def encode(payload, count, choice, layout=None, instead=None, changed=None):
    """(words of the first line, and the payload; the bytes after it). `instead` is called with the
    writer and the table, and returns what columns() takes. `changed` replaces words of the first
    line."""
    layout = layout or BlockLayout()
    table, writer = BlockTable(payload, count), BlockWriter(choice)
    columns(writer, table, instead(writer, table) if instead else None)
    words = dict(payload=payload, count=count, raw=table.size, codec=layout.codec)
    words |= changed or {}
    return words, stored(writer, layout)


def file_of(words, content):
    """A file as block.py reads it."""
    return b"block %d %d %s\n" % (words["count"], words["raw"], words["codec"].encode()) + content
