"""Archives for tests (FORMAT §11): lays blocks of block_writer.py, an extract and the footer into a
file. Nothing that ships uses it."""

import hashlib
import struct
from collections import Counter
from dataclasses import dataclass

from block_table import LANE_ID
from block_writer import parsed_sections, skippable
from column_encoder import varint
from tree import CODECS
from wire import crc32c

MASK = 2**64 - 1
LANE = b"20261121T081530Z-812-9f3c5a0de1b27788"


@dataclass
class Facts:
    """What headers and footers record about a block."""

    time_min: int
    time_max: int
    written_min: int
    written_max: int
    levels: int
    kinds: int


def facts(table):
    utc = table.utc()
    shown = [_shown(utc, at, run) for at, run in zip(
        (at for at, kind in enumerate(table.kind) if kind & 32), table.sections)]
    times = shown + [utc[at] for at, kind in enumerate(table.kind) if not kind & 32] or [0]
    levels = kinds = 0
    for level, kind in zip(table.level, table.kind):
        levels |= 1 << (level - 1 if level else 31)
        kinds |= 1 << (kind & 7)
    utc = utc or [0]
    return Facts(min(times), max(times), min(utc), max(utc), levels, kinds)


def _shown(utc, at, run):
    for kind, body in parsed_sections(run) or ():
        if kind == 6:
            return int.from_bytes(body, "little")
    return utc[at]


def header(words, stored, **changed):
    """The content of the header of a block of block_writer.py, with these changes."""
    found = facts(words["table"])
    words = dict(compat=0, incompat=0, effort=1, reserved=0, more=0, **{
        **words, "codec": CODECS.index(words["codec"])}) | changed
    content = bytearray(128)
    struct.pack_into("<8sQQBBHIQQQQIIII", content, 0, b"CWBLCK01", words["compat"],
                     words["incompat"], words["effort"], words["codec"], words["reserved"],
                     words["count"], words["raw"], len(stored), found.time_min, found.time_max,
                     found.levels, found.kinds, crc32c(stored), words["more"])
    struct.pack_into("<QQ", content, 88, found.written_min, found.written_max)
    struct.pack_into("<I", content, 80, crc32c(content))
    return bytes(content)


def extract(first, block):
    """The frame of an extract (FORMAT §11.11) for an archive whose first record has that time."""
    head = bytearray(24)
    struct.pack_into("<8sQB", head, 0, b"CWEXTR01", first, 17)
    return skippable(bytes(head) + header(*block) + block[1])


def archive(blocks, copies=b""):
    """An archive of these (header's content, bytes after it), and of the frame of an extract."""
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
