"""Archives (FORMAT §11), read by walking their frames. The `zstd` and `lz4` command-line tools
inflate the frames of blocks, to the same bytes that any other program would get."""

import hashlib
import struct

from block import decode
from tree import CODECS, SKIPPABLE, Tree
from wire import Bytes, Damage, check_words, crc32c, u32, u64


class Archive:
    """One `.cwa` file: its covers at once, its records on demand."""

    def __init__(self, path, report):
        self.path, self.report = path, report
        with open(path, "rb") as file:
            self.data = file.read()
        content = self._skippable(0)
        if content is None or content[:8] != b"CWARCH01":
            raise Damage(f"{path}: not an archive")
        check_words(path, u32(content, 8), u64(content, 24))
        if crc32c(content[:60] + bytes(4) + content[64:]) != u32(content, 60):
            raise Damage(f"{path}: the header's crc does not match")
        self.id = bytes(content[32:48])
        source, words = Bytes(content[72:]), b""
        self.covers = []
        for _ in range(u32(content, 56)):
            lane, first, last, name = source.take(16), source.u64(), source.u64(), source.str()
            self.covers.append((lane, first, last, name))
            gap, seals = source.u64(), [(source.u64(), source.take(16))
                                        for _ in range(source.u32())]
            if first > last or not all(first <= number <= last for number, _ in seals):
                raise Damage(f"{path}: a cover, or its seals")
            words += struct.pack("<16sQI", lane, gap, len(seals)) + b"".join(
                digest for _, digest in seals)
            if not seals:
                words += struct.pack("<QQ", first, last)
        replaced = [(source.take(16), source.u64()) for _ in range(u32(content, 68))]
        self.replaced = [identifier for identifier, _ in replaced]
        self.names = {cover[0]: cover[3].decode() for cover in self.covers}
        words = b"".join(self.replaced) + words
        lost = content[64:68]
        if hashlib.sha256(b"cordwood archive 1" + lost + words).digest()[:16] != self.id:
            report(f"{path}: the archive id is not that of its records")
        self.body = 8 + len(content)

    def _skippable(self, at):
        """The content of the skippable frame at `at`, or None."""
        if at + 8 > len(self.data) or u32(self.data, at) != SKIPPABLE:
            return None
        end = at + 8 + u32(self.data, at + 4)
        return self.data[at + 8:end] if end <= len(self.data) else None

    def blocks(self):
        """(offset, header's content, the bytes after it) of every block whose checksums hold."""
        at, found, walked, footer, sides = self.body, [], [], None, []
        while at < len(self.data):
            content = self._skippable(at)
            if content is None:
                self.report(f"{self.path}: no frame at {at}")
                at = self._next_block(at + 1)
                continue
            magic = content[:8]
            if magic == b"CWFOOT01":
                footer = (at, content)
                break
            if magic != b"CWBLCK01" and (walked or magic == b"CWEXTR01"):
                if magic == b"CWEXTR01":
                    self._check_extract(content)
                sides.append((at, self.data[at:at + 8 + len(content)]))
                at += 8 + len(content)
                continue
            if magic != b"CWBLCK01" or len(content) < 128 or crc32c(
                    content[:80] + bytes(4) + content[84:]) != u32(content, 80):
                self.report(f"{self.path}: damaged block header at {at}")
                at = self._next_block(at + 1)
                continue
            start = at + 8 + len(content)
            stored = self.data[start:start + u64(content, 40)]
            walked.append((at, 8 + len(content) + u64(content, 40), u32(content, 28)))
            if is_newer(content):
                self.report(f"{self.path}: a newer block at {at}")
            elif len(stored) != u64(content, 40) or crc32c(stored) != u32(content, 72):
                self.report(f"{self.path}: damaged block at {at}")
            else:
                found.append((at, content, stored))
            at = start + u64(content, 40)
        self._check_footer(walked, footer, sides)
        return found

    def _next_block(self, at):
        """§11.3: after the walk is lost, the next frame with a magic of ours."""
        places = [self.data.find(magic, at + 8) for magic in (b"CWBLCK01", b"CWFOOT01")]
        places = [place - 8 for place in places if place >= 0]
        return min(places) if places else len(self.data)

    def _check_extract(self, content):
        """Checks its block (FORMAT §11.11)."""
        block, stored = content[24:152], content[152:]
        try:
            if (len(content) < 152 or crc32c(block[:80] + bytes(4) + block[84:]) != u32(block, 80)
                    or block[:8] != b"CWBLCK01" or u64(block, 40) != len(stored)
                    or crc32c(stored) != u32(block, 72)):
                raise Damage("its header")
            if is_newer(block):
                self.report(f"{self.path}: a newer block in the extract")
            else:
                records_of(block, stored)
        except Damage as damage:
            self.report(f"{self.path}: the extract is damaged: {damage}")

    def _check_footer(self, walked, footer, sides):
        if footer is None:
            self.report(f"{self.path}: no footer")
            return
        at, content = footer
        crc_at = len(content) - 12
        entries = [(u64(content, entry), u64(content, entry + 8), u32(content, entry + 40))
                   for entry in range(80, 80 + 72 * u32(content, 56), 72)]
        first = 80 + 72 * len(entries)
        said = [(u32(content, entry + 4), u64(content, entry + 8), u64(content, entry + 16))
                for entry in range(first, first + 24 * u32(content, 60), 24)]
        if (content[-8:] != b"CWAREND1" or content[8:24] != self.id
                or u32(content, len(content) - 16) != 8 + len(content)
                or crc32c(content[:crc_at]) != u32(content, crc_at)
                or at + 8 + len(content) != len(self.data) or entries != walked
                or said != [(crc32c(frame), place, len(frame)) for place, frame in sides]
                or first + 24 * len(said) + 16 != len(content)
                or u64(content, 24) != sum(entry[2] for entry in entries)):
            self.report(f"{self.path}: the footer does not say what the blocks are")

    def records(self):
        for at, content, stored in self.blocks():
            try:
                found = records_of(content, stored)
            except Damage as damage:
                self.report(f"{self.path}: damaged block at {at}: {damage}")
                continue
            for record in found:
                record.lane.name = self.names.get(record.lane.id, record.lane.id.hex())
                yield record


def is_newer(header):
    return u64(header, 16) != 0 or header[25] >= len(CODECS)


def records_of(header, stored):
    """The records of a block, of the content of its header and the bytes after that."""
    return decode(Tree(u32(header, 28), u64(header, 32), CODECS[header[25]], stored))
