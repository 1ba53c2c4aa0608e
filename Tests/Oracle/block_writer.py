"""A writer of blocks for tests (FORMAT §11.4 to §11.7): encodes the columns of a table by seed, and
lays their leaves into frames of any codec. Nothing that ships uses it."""

import os
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial

from column_encoder import Writer, varint
from column_parts import NUMBERS
from wire import Bytes, crc32c

MASK32 = 2**32 - 1


def skippable(content):
    return struct.pack("<II", 0x184D2A50, len(content)) + content


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
        "arguments": lambda: [
            argument(writer, *column) for column in table.argument_columns()],
        "sections": lambda: sections(writer, table),
        "messages": lambda: writer.strings(table.messages),
    }
    for name, write in put.items():
        (instead or {}).get(name, write)()


def contexts(writer, found):
    writer.varint(len(found))
    field_lists(writer, [fields for fields, _ in found])
    traces(writer, [trace for _, trace in found])


def argument(writer, kind, values):
    if kind in NUMBERS:
        writer.ints(values)
    elif kind in (3, 13):
        writer.doubles(values)
    elif kind == 4:
        writer.strings(values)
    else:
        writer.ints([mark for mark, _ in values])
        writer.strings([value for mark, value in values if mark != 2])


def parsed_fields(run):
    """(shape, [(type, key, value)]) of a list of fields if form 1 can hold it; or None."""
    if not run:
        return b"", []
    source, found, shape = Bytes(run), [], run[:2]
    if len(run) < 2:
        return None
    for _ in range(source.u16()):
        if source.left < 4:
            return None
        kind, reserved, length = source.u8(), source.u8(), source.u16()
        size = {1: 8, 2: 8, 3: 8, 4: 1, 5: 4}.get(kind)
        if reserved or size is None or source.left < length + size:
            return None
        key, value = source.take(length), source.take(size)
        if kind == 5:
            if source.left < int.from_bytes(value, "little"):
                return None
            value = source.take(int.from_bytes(value, "little"))
        shape += struct.pack("<BBH", kind, 0, length) + key
        found.append((kind, key, value))
    return None if source.left else (shape, found)


def field_lists(writer, runs):
    if not runs:
        return
    parsed = [parsed_fields(run) for run in runs]
    form = writer.choice.pick("FieldLists", (0,) if None in parsed else (0, 1))
    writer.byte(form)
    if form == 0:
        writer.strings(runs)
        return
    shapes = list(dict.fromkeys(shape for shape, _ in parsed))
    pairs = {}
    for shape in shapes:
        for kind, key, _ in next(found for other, found in parsed if other == shape):
            pairs.setdefault((kind, key), [])
    for _, found in parsed:
        for kind, key, value in found:
            pairs[kind, key].append(value)
    writer.varint(len(shapes))
    writer.strings(shapes)
    writer.planes([shapes.index(shape) for shape, _ in parsed])
    for (kind, _), values in pairs.items():
        if kind == 3:
            writer.doubles(values)
        elif kind == 5:
            writer.strings(values)
        else:
            writer.ints([int.from_bytes(value, "little") for value in values])


def traces(writer, found):
    if not found:
        return
    form = writer.choice.pick("Traces", (1,) if any(map(any, found)) else (0, 1))
    writer.byte(form)
    if form:
        writer.strings([trace[:16] for trace in found])
        writer.strings([trace[16:24] for trace in found])
        writer.ints([trace[24] for trace in found])


SIZES = {3: 4, 5: 25, 6: 8, 9: 8}


def parsed_sections(run):
    """[(kind, body)] if form 1 can hold them; or None."""
    source, found = Bytes(run), []
    while source.left:
        if source.left < 8:
            return None
        kind, reserved, length = source.u8(), source.take(3), source.u32()
        if any(reserved) or source.left < length or SIZES.get(kind, length) != length:
            return None
        found.append((kind, source.take(length)))
    return found


def sections(writer, table):
    if not table.sections:
        return
    parsed = [parsed_sections(run) for run in table.sections]
    form = writer.choice.pick("Sections", (0,) if None in parsed else (0, 1))
    writer.byte(form)
    if form == 0:
        writer.strings(table.sections)
        return
    shapes = [bytes(kind for kind, _ in found) for found in parsed]
    known = list(dict.fromkeys(shapes))
    writer.varint(len(known))
    writer.strings(known)
    writer.planes([known.index(shape) for shape in shapes])
    utc = [time + offset for time, offset, kind in zip(table.time, table.offset, table.kind)
           if kind & 32]
    for kind in sorted(set(b"".join(known))):
        bodies = [(body, time) for found, time in zip(parsed, utc)
                  for other, body in found if other == kind]
        whole = [int.from_bytes(body, "little") for body, _ in bodies]
        if kind == 2:
            field_lists(writer, [body for body, _ in bodies])
        elif kind == 5:
            traces(writer, [body for body, _ in bodies])
        elif kind == 6:
            writer.ints([value - time for value, (_, time) in zip(whole, bodies)])
        elif kind in (3, 9):
            writer.ints(whole)
        else:
            writer.strings([body for body, _ in bodies])


def plain_frame(content):
    """A zstd frame of raw and RLE blocks (RFC 8878, 3.1.1): the same bytes on every machine."""
    out = bytearray(struct.pack("<IBQ", 0xFD2FB528, 0xE0, len(content)))
    pieces = [content[at:at + (1 << 17)] for at in range(0, len(content), 1 << 17)] or [b""]
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        same = len(piece) > 1 and piece.count(piece[0]) == len(piece)
        out += (len(piece) << 3 | 2 * same | last).to_bytes(3, "little")
        out += piece[:1] if same else piece
    return bytes(out)


def zstd_frame(content):
    if len(content) < 64:
        return plain_frame(content)
    return subprocess.run(["zstd", "-19", "-c", f"--stream-size={len(content)}"], input=content,
                          stdout=subprocess.PIPE, check=True).stdout


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
class Layout:
    """How leaves become frames. Tests of damage change the output."""

    plane_bytes: int = 1 << 20
    text_bytes: int = 1 << 20
    duplicates: float = 1.0  # share of the equal planes that become duplicates
    codec: str = None  # zstd
    frame: object = None  # None: quick_frame
    flags: int = 0
    more: bytes = b""  # after the entries of the directory
    change: dict = field(default_factory=dict)  # (list, frames, directory) → what is written
    joined: bool = False  # no frame for text


def laid(writer, layout):
    """The list of duplicates, and the contents of all frames without it and the meta stream."""
    pool, text, large, entries, planes, last = bytearray(), bytearray(), [], [], [], 0
    for is_text, content in writer.leaves:
        if is_text:
            if len(content) >= layout.text_bytes:
                large.append(content)
            else:
                (pool if layout.joined else text).extend(content)
            continue
        equal = [at for at, other in enumerate(planes) if other == content]
        if equal and writer.choice.random.random() < layout.duplicates:
            entries.append((len(planes) - last, len(planes) - writer.choice.random.choice(equal)))
            last = len(planes)
        elif len(content) >= layout.plane_bytes:
            large.append(content)
        else:
            pool += content
        planes.append(content)
    return entries, [bytes(pool), *(() if layout.joined else (bytes(text),)), *large]


def stored(writer, layout):
    """Directory and frames."""
    change = layout.change
    entries, contents = laid(writer, layout)
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


def encode(table, choice, layout=None, instead=None, changed=None):
    """(words of its header, and the table; the bytes after the header). `instead` is called with
    the writer and the table, and returns what columns() takes. `changed` replaces words; "shown" is
    the table of what a reader finds, if it is another."""
    layout, writer = layout or Layout(), Writer(choice)
    layout = replace(layout, codec=layout.codec or "zstd")
    columns(writer, table, instead(writer, table) if instead else None)
    words = dict(table=table, count=table.count, raw=table.size, codec=layout.codec)
    words |= changed or {}
    return words, stored(writer, layout)


def file_of(words, content):
    """A file as block.py reads it."""
    return b"block %d %d %s\n" % (words["count"], words["raw"], words["codec"].encode()) + content
