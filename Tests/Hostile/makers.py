"""What hostile.py puts into stores: segments, catalogs, journals and archives that claim to be
larger than they are, laid out from docs/FORMAT.md by hand (the content of blocks: by the oracle's
writer). Holes take no disk space."""

import os
import struct
import sys
import zlib
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "Oracle"))

import block_cases  # noqa: E402
from block_writer import Layout  # noqa: E402
from tree import CODECS  # noqa: E402

LANE = "20261121T081530Z-812-9f3c5a0de1b27788"
SALT = 0x1122334455667788
SKIPPABLE = 0x184D2A50


def _table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def boot_id():
    return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip()
                         .replace("-", ""))


def lane_header(boot, catalog_bytes=8192):
    head = bytearray(4096)
    struct.pack_into("<8sIIQQ16s16s16sQIIQQQQ", head, 0, b"CWLANE01", 1, 65536, 0, 0,
                     b"L" * 16, boot, bytes(16), SALT, 812, 0, 1, 0, 10**18, 10**9)
    struct.pack_into("<IIIIIIH", head, 128, 8192, catalog_bytes, 4096, 64, 16384, 49152, 4)
    head[160:164] = b"evil"
    struct.pack_into("<I", head, 576, 1)
    return bytes(head)


def segment_header(number, boot, size, sealed=False):
    head = bytearray(4096)
    struct.pack_into("<8sIIQQ16s16sQIIQQQQI", head, 0, b"CWSEGM01", 1, 4096, 0, 0, b"L" * 16,
                     boot, number, 1, 2, SALT, size, 10**9, 10**9, 3 if sealed else 1)
    struct.pack_into("<Q", head, 128, size)
    struct.pack_into("<Q", head, 256, size)
    struct.pack_into("<II", head, 512, 0, 1)
    struct.pack_into("<QQQQ", head, 576, 0, 10**9, 10**9, 10**18)
    if sealed:
        struct.pack_into("<I", head, 404, crc32c(head[:112] + head[384:404] + head[512:]))
    return bytes(head)


def chunk_header(offset, size, committed, thread, sequence=0):
    head = bytearray(128)
    struct.pack_into("<QIIQQIII", head, 0, SALT, committed, size, offset, 10**9, thread, sequence,
                     thread)
    return bytes(head)


def record(payload, logger=0, kind=1, length=None):
    data = struct.pack("<IIIBBH", length or 16 + len(payload), 0, logger, 9, kind, 0) + payload
    return data + bytes(-len(data) % 8)


def store(folder):
    for name in ("lanes", "archives", "queue", "targets"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "store").write_text(
        "cordwood store\nformat 1\ncompat 0\nincompat 0\nid " + "0" * 31
        + "1\ncreated 2026-11-21T08:15:30Z\nconsent granted\n")
    return folder


def lane(folder, boot=None, extra=b"", name=LANE):
    """A lane file whose segment 0 holds one record."""
    boot = boot_id() if boot is None else boot
    data = bytearray(65536)
    data[:4096] = lane_header(boot)
    data[8192:8192 + len(extra)] = extra
    data[16384:16384 + 4096] = segment_header(0, boot, 49152)[:4096]
    struct.pack_into("<I", data, 16384 + 72, 0)
    body = record(b"one honest record")
    data[20480:20480 + 128] = chunk_header(4096, 1024, 128 + len(body), 1)
    data[20608:20608 + len(body)] = body
    path = folder / "lanes" / f"{name}.lane"
    path.write_bytes(data)
    return path


def segment_path(folder, number, name=LANE):
    return folder / "lanes" / f"{name}.{number:08}-0001.seg"


def sparse_segments(folder, count, size):
    """Segments with one record each that fills the segment: a message of zeros, as a hole."""
    for number in range(1, count + 1):
        with open(segment_path(folder, number), "wb") as file:
            file.write(segment_header(number, boot_id(), size))
            length = size - 4096 - 128
            file.write(chunk_header(4096, size - 4096, size - 4096, number))
            file.write(record(b"", length=length)[:16])
            file.truncate(size)


def many_chunks(folder, number, chunks, logger=77):
    """The smallest possible chunks, each with a record of a logger that no catalog has."""
    size = 4096 + 1024 * chunks
    body = record(b"who?", logger=logger)
    with open(segment_path(folder, number), "wb") as file:
        file.write(segment_header(number, boot_id(), size))
        for index in range(chunks):
            head = chunk_header(4096 + 1024 * index, 1024, 128 + len(body), 1, index)
            file.write((head + body).ljust(1024, b"\0"))


def catalog_entry(kind, identifier, payload):
    rest = struct.pack("<B3xI", kind, identifier) + payload
    entry = struct.pack("<QII", SALT, 16 + len(rest), crc32c(rest)) + rest
    return entry + bytes(-len(entry) % 16)


def catalogs(folder, count, size, entries=b""):
    for index in range(1, count + 1):
        with open(folder / "lanes" / f"{LANE}.catalog-{index}", "wb") as file:
            head = struct.pack("<8sII16sQ", b"CWCATA01", 1, min(size, 2**32 - 1), b"L" * 16, SALT)
            file.write(head.ljust(64, b"\0") + entries)
            file.truncate(size)


def journal(folder, frames, chunks):
    """Frames that each cover a small part of one chunk, in turn, of segment 1."""
    def frame(kind, segment, chunk, start, end, head, content):
        rest = struct.pack("<IIQQII", kind, 0, segment, chunk, start, end) + head.ljust(64, b"\0")
        rest += content
        data = struct.pack("<QII", 5, 16 + len(rest), crc32c(rest)) + rest
        return data + bytes(-len(data) % 8)
    size = 4096 + 1024 * chunks
    with open(folder / "lanes" / f"{LANE}.journal", "wb") as file:
        file.write(struct.pack("<8sII16sQ", b"CWJRNL01", 1, 0, b"L" * 16, 5).ljust(64, b"\0"))
        file.write(frame(3, 1, 0, 0, 4096, b"", segment_header(1, b"B" * 16, size)))
        body = record(b"saved")
        for index in range(frames):
            at = 4096 + 1024 * (index % chunks)
            head = chunk_header(at, 1024, 128 + len(body), 1, index % chunks)[:64]
            file.write(frame(1, 1, at, 128, 128 + len(body), head, body))


# ── Archives ──

def skippable(content):
    return struct.pack("<II", SKIPPABLE, len(content)) + content


def summed(content, at):
    content = bytearray(content)
    struct.pack_into("<I", content, at, 0)
    struct.pack_into("<I", content, at, crc32c(content))
    return bytes(content)


def block(stored, size, codec, records):
    head = bytearray(128)
    struct.pack_into("<8sQQBBHIQQQQIII", head, 0, b"CWBLCK01", 0, 0, 0, codec, 0, records, size,
                     len(stored), 1, 2, 1, 1, crc32c(stored))
    struct.pack_into("<QQ", head, 88, 1, 2)
    return skippable(summed(head, 80)) + stored


def archive(folder, blocks, name=LANE, first=1):
    """blocks: (directory and frames, size, codec, number of records)."""
    cover = (b"L" * 16 + struct.pack("<QQ", first, first) + bytes([len(name)]) + name.encode()
             + bytes(12))
    head = bytearray(72) + cover
    struct.pack_into("<8sIIQQ16sQI", head, 0, b"CWARCH01", 1, len(head), 0, 0, b"I" * 16, 1, 1)
    path = folder / "archives" / f"{name}.{first:08}-{first:08}.{b'I'.hex() * 8}.cwa"
    entries = b""
    with open(path, "wb") as file:
        file.write(skippable(summed(head, 60)))
        for stored, size, codec, records in blocks:
            at, whole = file.tell(), block(stored, size, codec, records)
            file.write(whole)
            entries += struct.pack("<QQQQIIIIQQQ", at, len(whole), 1, 2, 1, 1, records,
                                   crc32c(stored), size, 1, 2)
        foot = struct.pack("<8s16sQQQQIIQQ", b"CWFOOT01", b"I" * 16, sum(b[3] for b in blocks), 1,
                           2, sum(b[1] for b in blocks), len(blocks), 0, 1, 2) + entries
        foot += struct.pack("<I", len(foot) + 16 + 8)
        foot += struct.pack("<I", crc32c(foot)) + b"CWAREND1"
        file.write(skippable(foot))
    return path


def inflating(count, length, codec):
    """A block (FORMAT §11.6) of `count` records whose messages are zeros, for archive()."""
    table = block_cases.small([bytes(length)] * count)
    table.processes = [table.processes[0]._replace(lane=b"L" * 16)]
    words, stored = block_cases.block(table, Layout(codec=codec))
    return stored, words["raw"], CODECS.index(codec), count


def hole(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def deflate_bomb(size):
    """gzip of zeros, for bodies."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


def special(path, what):
    """Replaces a file by something that is not a file."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    if what == "fifo":
        os.mkfifo(path, 0o600)
    elif what == "directory":
        path.mkdir()
        (path / "inside").write_text("kept")
    elif what == "nothing":
        path.symlink_to("/nonexistent/anywhere")
    elif what == "zero":
        path.symlink_to("/dev/zero")
    elif what == "device":
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
    else:
        path.symlink_to(what)
