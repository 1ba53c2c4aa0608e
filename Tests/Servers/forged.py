"""Archives that say something else than their maker did: other covers, or that they replace others
(docs/FORMAT.md, §11.1). The id is that of what they say."""

import hashlib
import struct

FRAME = 8
COVERS = 72


def _table():
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        yield number


TABLE = list(_table())


def crc(data):
    value = 0xffffffff
    for byte in data:
        value = TABLE[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xffffffff


class Cover:
    def __init__(self, lane, first, last, name, gap=0, seals=()):
        self.lane, self.first, self.last, self.name = lane, first, last, name
        self.gap, self.seals = gap, list(seals)

    def raw(self):
        return (self.lane + struct.pack("<QQ", self.first, self.last) + bytes([len(self.name)])
                + self.name + struct.pack("<QI", self.gap, len(self.seals))
                + b"".join(struct.pack("<Q", number) + digest for number, digest in self.seals))

    def named(self):
        """What the id is made of."""
        seals = b"".join(digest for _, digest in self.seals)
        return (self.lane + struct.pack("<QI", self.gap, len(self.seals))
                + (seals or struct.pack("<QQ", self.first, self.last)))


class Archive:
    """Of one plain file."""

    def __init__(self, data):
        length, = struct.unpack_from("<I", data, 4)
        self.head, self.rest = data[FRAME:FRAME + length], data[FRAME + length:]
        count, = struct.unpack_from("<I", self.head, 56)
        at, self.covers = COVERS, []
        for _ in range(count):
            lane, first, last, size = struct.unpack_from("<16sQQB", self.head, at)
            at += 33
            name = self.head[at:at + size]
            gap, seals = struct.unpack_from("<QI", self.head, at + size)
            at += size + 12
            self.covers.append(Cover(lane, first, last, name, gap, [
                struct.unpack_from("<Q16s", self.head, at + 24 * k) for k in range(seals)]))
            at += 24 * seals
        footer, = struct.unpack_from("<I", data, len(data) - 16)
        self.records, = struct.unpack_from("<Q", data, len(data) - footer + FRAME + 24)
        self.replaced = []

    def id(self):
        told = struct.pack("<I", struct.unpack_from("<I", self.head, 64)[0])
        told += b"".join(name for name, _ in self.replaced)
        told += b"".join(cover.named() for cover in self.covers)
        return hashlib.sha256(b"cordwood archive 1" + told).digest()[:16]

    def id_text(self):
        text = self.id().hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def data(self):
        head = bytearray(self.head[:COVERS] + b"".join(cover.raw() for cover in self.covers)
                         + b"".join(name + struct.pack("<Q", count)
                                    for name, count in self.replaced))
        head[12:16] = struct.pack("<I", len(head))
        head[32:48] = self.id()
        head[56:60] = struct.pack("<I", len(self.covers))
        head[68:72] = struct.pack("<I", len(self.replaced))
        head[60:64] = bytes(4)
        head[60:64] = struct.pack("<I", crc(head))
        span, = struct.unpack_from("<I", self.rest, len(self.rest) - 16)
        foot = bytearray(self.rest[len(self.rest) - span + FRAME:])
        foot[8:24] = self.id()
        blocks, = struct.unpack_from("<I", foot, 56)
        for at in range(80, 80 + 72 * blocks, 72):
            offset, = struct.unpack_from("<Q", foot, at)
            foot[at:at + 8] = struct.pack("<Q", offset + len(head) - len(self.head))
        foot[-12:-8] = struct.pack("<I", crc(foot[:-12]))
        return (struct.pack("<II", 0x184D2A50, len(head)) + head
                + self.rest[:len(self.rest) - span + FRAME] + foot)
