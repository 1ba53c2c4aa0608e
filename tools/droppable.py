#!/usr/bin/env python3
"""Lets the linker drop what is never called, and merge equal functions: droppable.py ARCHIVE COPY.

The Swift compiler marks each public function and constant of a library as retained
(SHF_GNU_RETAIN), for programs that look them up by name. In our libraries only cw_* are visible, so
no program can. The copy of the archive lacks these marks. Records that the runtime walks (sections
swift5_…) keep theirs.

Functions with equal instructions may be merged if their addresses are never compared. Objects of
clang have a table of the addresses that matter (.llvm_addrsig). Swift compares none, and its
compiler writes no table: the copy has an empty one in place of a section that ELF linkers ignore.

The runtime's variables for backtraces, 64 KiB of zeros, take no room in the file."""

import struct
import sys

RETAIN = 1 << 21  # SHF_GNU_RETAIN
NULL, SYMBOLS, NO_BITS, OPTIONS, ADDRESSES = 0, 2, 8, 0x6FFF4C01, 0x6FFF4C03  # sh_type
KINDS = (b".text", b".rodata", b".data", b".bss")
MAGIC, MEMBER_HEADER = b"!<arch>\n", 60


def members(archive):
    """Where each member begins."""
    at = len(MAGIC)
    while at + MEMBER_HEADER <= len(archive):
        size = int(archive[at + 48:at + 58])
        yield at + MEMBER_HEADER
        at += MEMBER_HEADER + size + size % 2


def clear(archive, start):
    """Clears the marks of one object: ELF, 64 bits, little-endian."""
    if archive[start:start + 6] != b"\x7fELF\x02\x01":
        return
    table, = struct.unpack_from("<Q", archive, start + 40)
    count, names = struct.unpack_from("<HH", archive, start + 60)
    first = start + table
    # Numbers that are too large for the file's header are in the first section's.
    if count == 0:
        count, = struct.unpack_from("<Q", archive, first + 32)
    if names == 0xFFFF:
        names, = struct.unpack_from("<I", archive, first + 40)
    texts = start + struct.unpack_from("<Q", archive, first + 64 * names + 24)[0]
    headers = range(first, first + 64 * count, 64)
    kinds = [struct.unpack_from("<I", archive, header + 4)[0] for header in headers]
    is_swift = any(archive.startswith(b".swift_modhash\0", texts + name_of(archive, header))
                   for header in headers)
    for header, kind in zip(headers, kinds):
        name, flags = texts + name_of(archive, header), flags_of(archive, header)
        if flags & RETAIN and archive.startswith(KINDS, name):
            struct.pack_into("<Q", archive, header + 8, flags & ~RETAIN)
        if kind == OPTIONS and is_swift and SYMBOLS in kinds:
            struct.pack_into("<I", archive, header + 4, ADDRESSES)
            struct.pack_into("<QI", archive, header + 32, 0, kinds.index(SYMBOLS))
        elif kind == ADDRESSES and struct.unpack_from("<I", archive, header + 40) == (0,):
            # objcopy may have moved the symbols that it names.
            struct.pack_into("<I", archive, header + 4, NULL)
        elif archive.startswith(b"swift5_backtrace\0", name):
            at, size = struct.unpack_from("<QQ", archive, header + 24)
            if not any(archive[start + at:start + at + size]):
                struct.pack_into("<I", archive, header + 4, NO_BITS)


def name_of(archive, header):
    return struct.unpack_from("<I", archive, header)[0]


def flags_of(archive, header):
    return struct.unpack_from("<Q", archive, header + 8)[0]


def main():
    with open(sys.argv[1], "rb") as file:
        archive = bytearray(file.read())
    if not archive.startswith(MAGIC):
        sys.exit(f"droppable: {sys.argv[1]} is no archive")
    for start in members(archive):
        clear(archive, start)
    with open(sys.argv[2], "wb") as file:
        file.write(archive)


main()
