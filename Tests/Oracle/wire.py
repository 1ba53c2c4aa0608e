"""Numbers and strings as stored (FORMAT §1). Nothing on disk is trusted: a read past the end raises
Damage, and the caller decides what that ends."""

import struct


class Damage(Exception):
    """Bytes that violate the format."""


class NewerVersion(Exception):
    """A version or an incompat bit that is unknown to this decoder."""


def u16(data, at):
    return _unpack("<H", data, at)


def u32(data, at):
    return _unpack("<I", data, at)


def u64(data, at):
    return _unpack("<Q", data, at)


def _unpack(form, data, at):
    try:
        return struct.unpack_from(form, data, at)[0]
    except struct.error:
        raise Damage("a number past the end") from None


class Bytes:
    """Reads forward through one piece of bytes."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    @property
    def left(self):
        return len(self.data) - self.at

    def take(self, count):
        if count > self.left:
            raise Damage("a length past the end")
        piece = bytes(self.data[self.at:self.at + count])
        self.at += count
        return piece

    def u8(self):
        if self.at >= len(self.data):
            raise Damage("a length past the end")
        self.at += 1
        return self.data[self.at - 1]

    def u16(self):
        return int.from_bytes(self.take(2), "little")

    def u32(self):
        return int.from_bytes(self.take(4), "little")

    def u64(self):
        return int.from_bytes(self.take(8), "little")

    def varint(self):
        value = self.u8()
        if value < 0x80:
            return value
        value &= 0x7F
        for index in range(1, 10):
            byte = self.u8()
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value & (2**64 - 1)
        raise Damage("a varint of more than 10 bytes")

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def str(self):
        return self.take(self.varint())


def _crc_tables():
    """The CRC of each byte followed by 0 to 3 zero bytes."""
    first = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        first.append(value)
    tables = [first]
    for _ in range(3):
        tables.append([(value >> 8) ^ first[value & 255] for value in tables[-1]])
    return tables


_CRC = _crc_tables()


def crc32c(data):
    last, third, second, first = _CRC
    data, value = bytes(data), 0xFFFFFFFF
    whole = len(data) // 4 * 4
    for word, in struct.iter_unpack("<I", data[:whole]):
        value ^= word
        value = (first[value & 255] ^ second[value >> 8 & 255] ^ third[value >> 16 & 255]
                 ^ last[value >> 24])
    for byte in data[whole:]:
        value = (value >> 8) ^ last[(value ^ byte) & 255]
    return value ^ 0xFFFFFFFF


def check_words(what, version, incompat):
    """FORMAT §1, feature words."""
    if version > 1 or incompat != 0:
        raise NewerVersion(f"{what}: version {version}, incompat {incompat:#x}")
