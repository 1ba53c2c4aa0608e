"""Blocks and archives of method 2 for tests (FORMAT §11.6, §11.7): splits a payload of method 1
into columns, encodes them, and lays their leaves into frames and blocks into an archive."""

import hashlib
import struct
import subprocess
from collections import Counter
from dataclasses import dataclass, field

from dense import CUT, NULL, NUMBERS, varint
from dense_codecs import signed
from dense_encoder import Writer
from wire import Bytes, crc32c

MASK = 2**64 - 1
LANE_ID = bytes(range(16))
LANE = b"20261121T081530Z-812-9f3c5a0de1b27788"


def skippable(content):
    return struct.pack("<II", 0x184D2A50, len(content)) + content


class Table:
    """The columns of §11.7, from a payload."""

    def __init__(self, payload, count):
        source = Bytes(payload)
        lengths = [source.u32() for _ in range(source.u32())]
        self.count, self.streams = count, [source.take(length) for length in lengths]
        assert len(lengths) == 20 and not source.left
        reading = [Bytes(stream) for stream in self.streams]
        self.contexts = self._contexts(reading[4])
        self.kind, self.level = list(self.streams[10]), list(self.streams[9])
        deferred = sum(kind >> 6 & 1 for kind in self.kind)
        rich = sum(kind >> 5 & 1 for kind in self.kind)
        self.thread = varints(reading[5], count)
        self.time = self._sums(reading[6])
        self.offset = self._sums(reading[7])
        self.sequence = [reading[8].zigzag() for _ in range(count)]
        self.logger, self.context = varints(reading[11], count), varints(reading[12], count)
        self.format = varints(reading[17], deferred)
        self.arguments = self._arguments(reading[18])
        self.sections = [reading[15].take(length) for length in varints(reading[14], rich)]
        self.messages = []
        for length in varints(reading[13], count - deferred):
            self.messages.append(reading[19].take(length))
            assert reading[19].take(1) == b"\n"
        for number in (*range(4, 16), 17, 18, 19):
            assert number in (9, 10) or not reading[number].left, number

    @staticmethod
    def _contexts(source):
        return [(source.take(source.varint()), source.take(25)) for _ in range(source.varint())]

    def _sums(self, source):
        found, value = [], 0
        for _ in range(self.count):
            value = signed(value + source.zigzag())
            found.append(value)
        return found

    def _arguments(self, source):
        """(type, values) for each argument of each format."""
        formats, columns = Bytes(self.streams[16]), []
        for _ in range(formats.varint()):
            formats.varint(), formats.str(), formats.str(), formats.u8(), formats.str()
            columns.append([(kind, []) for kind in formats.str()])
        for number in self.format:
            for kind, values in columns[number]:
                values.append(_argument(source, kind))
        return [column for of_format in columns for column in of_format]


def varints(source, count):
    return [source.varint() for _ in range(count)]


def _argument(source, kind):
    if kind in NUMBERS:
        return int.from_bytes(source.take(NUMBERS[kind]), "little", signed=kind in (1, 8))
    if kind in (3, 13):
        return source.take(8 if kind == 3 else 4)
    if kind == 4:
        return source.take(16)
    word = source.u32()
    if word == NULL:
        return 2, b""
    return word >> 31, source.take((word & ~CUT) * (4 if kind == 7 else 1))


def columns(writer, table, instead=None):
    """Writes all columns of a table. `instead` maps a column's name to its own writer."""
    put = {
        "contexts": lambda: contexts(writer, table.contexts),
        "kind": lambda: writer.ints(table.kind), "level": lambda: writer.ints(table.level),
        "thread": lambda: writer.ints(table.thread), "time": lambda: writer.ints(table.time),
        "offset": lambda: writer.ints(table.offset),
        "sequence": lambda: writer.ints(table.sequence),
        "logger": lambda: writer.ints(table.logger),
        "context": lambda: writer.ints(table.context),
        "format": lambda: writer.ints(table.format),
        "arguments": lambda: [argument(writer, *column) for column in table.arguments],
        "sections": lambda: sections(writer, table),
        "messages": lambda: writer.strings(table.messages),
    }
    for number in (0, 1, 2, 3, 16):
        writer.text(table.streams[number])
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


@dataclass
class Layout:
    """How leaves become frames. Tests of damage change the output."""

    plane_bytes: int = 1 << 20
    duplicates: float = 1.0  # share of the equal planes that become duplicates
    frame: object = plain_frame
    flags: int = 0
    more: bytes = b""  # after the entries of the directory
    change: dict = field(default_factory=dict)  # (list, frames, directory) → what is written


def laid(writer, layout, text_bytes=float("inf"), joined=False):
    """The list of duplicates, and the contents of all frames without it and the meta stream.
    text_bytes: longer text leaves have frames of their own. joined: the others are in the pool."""
    pool, text, large, entries, planes, last = bytearray(), bytearray(), [], [], [], 0
    for is_text, content in writer.leaves:
        if is_text:
            if len(content) >= text_bytes:
                large.append(content)
            else:
                (pool if joined else text).extend(content)
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
    return entries, [bytes(pool), *(() if joined else (bytes(text),)), *large]


def stored(writer, payload, layout=Layout()):
    """The bytes after the block's header, and rawCRC."""
    list_of, (pool, text, *large) = laid(writer, layout)
    change = layout.change
    list_of = change.get("list", lambda same: same)(list_of)
    head = varint(len(list_of)) + b"".join(varint(step) + varint(back) for step, back in list_of)
    contents = [bytes(writer.meta) + head + pool, text, *large]
    contents = change.get("contents", lambda same: same)(contents)
    frames = [layout.frame(content) for content in contents]
    entries = [(len(frame), len(content), crc32c(frame))
               for frame, content in zip(frames, contents)]
    words = dict(flags=layout.flags | 32 * writer.stamps, count=len(frames), meta=len(writer.meta),
                 plane=layout.plane_bytes, crc=crc32c(payload), entries=entries, more=layout.more)
    words = change.get("directory", lambda same: same)(words)
    directory = b"CWDIRB01" + struct.pack("<BBHIII", words["flags"], 0, words["count"],
                                          words["meta"], words["plane"], words["crc"])
    directory += b"".join(struct.pack("<III", *entry) for entry in words["entries"])
    directory += words["more"]
    directory += struct.pack("<I", crc32c(directory))
    whole = skippable(directory) + b"".join(frames)
    return whole, crc32c(b"".join(content for _, content in writer.leaves))


@dataclass
class Facts:
    """What headers and footers record about a payload."""

    count: int
    time_min: int
    time_max: int
    written_min: int
    written_max: int
    levels: int
    kinds: int


def facts(table):
    utc = [(time + offset) & MASK for time, offset in zip(table.time, table.offset)]
    shown = [_shown(utc, at, run) for at, run in zip(
        (at for at, kind in enumerate(table.kind) if kind & 32), table.sections)]
    plain = [utc[at] for at, kind in enumerate(table.kind) if not kind & 32]
    times = shown + plain or [0]
    levels = kinds = 0
    for level, kind in zip(table.level, table.kind):
        levels |= 1 << (level - 1 if level else 31)
        kinds |= 1 << (kind & 7)
    utc = utc or [0]
    return Facts(table.count, min(times), max(times), min(utc), max(utc), levels, kinds)


def _shown(utc, at, run):
    for kind, body in parsed_sections(run) or ():
        if kind == 6:
            return int.from_bytes(body, "little")
    return utc[at]


def header(found, payload, whole, raw_crc, changed):
    """The content of a block's header, with the changes in `changed`."""
    words = dict(compat=0, incompat=0, method=2, codec=0, count=found.count, raw=len(payload),
                 raw_crc=raw_crc)
    words.update(changed)
    content = bytearray(128)
    content[0:8] = b"CWBLCK01"
    struct.pack_into("<QQBBHIQQQQIIII", content, 8, words["compat"], words["incompat"],
                     words["method"], words["codec"], 0, words["count"], words["raw"], len(whole),
                     found.time_min, found.time_max, found.levels, found.kinds, crc32c(whole),
                     words["raw_crc"])
    struct.pack_into("<QQ", content, 88, found.written_min, found.written_max)
    struct.pack_into("<I", content, 80, crc32c(content))
    return bytes(content)


def encode(payload, count, choice, layout=Layout(), instead=None, changed=None):
    """(header's content, the bytes after it) of a block with that payload. `instead` is called with
    the writer and the table, and returns what columns() takes. `changed` is header()'s."""
    table, writer = Table(payload, count), Writer(choice)
    columns(writer, table, instead(writer, table) if instead else None)
    whole, raw_crc = stored(writer, payload, layout)
    return header(facts(table), payload, whole, raw_crc, changed or {}), whole


def plain(payload, count):
    """The same for a block of method 1, with codec none."""
    whole = skippable(payload)
    return header(facts(Table(payload, count)), payload, whole, crc32c(payload),
                  {"method": 1, "codec": 2}), whole


def extract(first, payload, count):
    """An extract's frame (FORMAT §11.11) for an archive whose first record has that time."""
    content, whole = plain(payload, count)
    head = bytearray(24)
    struct.pack_into("<8sQB", head, 0, b"CWEXTR01", first, 17)
    return skippable(bytes(head) + content + whole)


def archive(blocks, copies=b""):
    """An archive of these (header's content, bytes after it), and of an extract's frame."""
    covers = LANE_ID + struct.pack("<QQ", 0, 0) + varint(len(LANE)) + LANE + bytes(12)
    identifier = hashlib.sha256(b"cordwood archive 1" + bytes(4) + LANE_ID + bytes(12)
                                + bytes(16)).digest()[:16]
    head = bytearray(72) + covers
    head[0:8] = b"CWARCH01"
    struct.pack_into("<II", head, 8, 1, len(head))
    head[32:48] = identifier
    struct.pack_into("<QI", head, 48, 1_790_000_000 * 10**9, 1)
    struct.pack_into("<I", head, 60, crc32c(head))
    out = skippable(bytes(head))
    entries, counts, times, written, raw = b"", Counter(), [], [], 0
    for content, whole in blocks:
        entry = bytearray(72)
        struct.pack_into("<QQ", entry, 0, len(out), 136 + len(whole))
        entry[16:40] = content[48:72]  # times, levels, kinds
        entry[40:44], entry[44:48], entry[48:56] = content[28:32], content[72:76], content[32:40]
        entry[56:72] = content[88:104]
        entries += entry
        counts["records"] += int.from_bytes(content[28:32], "little")
        if any(content[28:32]):
            times += struct.unpack_from("<QQ", content, 48)
            written += struct.unpack_from("<QQ", content, 88)
        raw += int.from_bytes(content[32:40], "little")
        out += skippable(content) + whole
    sides = struct.pack("<IIQQ", 1, crc32c(copies), len(out), len(copies)) if copies else b""
    out += copies
    foot = b"CWFOOT01" + identifier + struct.pack(
        "<QQQQIIQQ", counts["records"], min(times, default=0), max(times, default=0), raw & MASK,
        len(blocks), 1 if copies else 0, min(written, default=0), max(written, default=0))
    foot += entries + sides
    foot += struct.pack("<I", 8 + len(foot) + 16)
    foot += struct.pack("<I", crc32c(foot)) + b"CWAREND1"
    return out + skippable(foot)
