"""Blocks of method 2, "dense columns" (FORMAT §11.6, §11.7): decodes their columns into the
equivalent payload of method 1."""

import struct
from collections import Counter

from dense_codecs import (doubles, ints, low_bytes, numbers, signed, sized_strings, strings)
from dense_tree import LIMITS, Tree, within
from wire import Bytes, Damage, crc32c

MASK = 2**64 - 1
# §8.7: bytes per argument that is a number.
NUMBERS = {1: 4, 2: 8, 5: 8, 8: 4, 9: 1, 10: 1, 11: 4, 12: 8}
NULL, CUT = 0xFFFFFFFF, 1 << 31


def varint(value):
    """The shortest varint of a number modulo 2^64."""
    value &= MASK
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def zigzag(value):
    value = signed(value)
    return varint((value << 1) ^ (value >> 63))


def decode(header, stored, limits=LIMITS):
    """The payload of method 1. `header` is the content of the block's header."""
    return decode_tree(Tree(header, stored, limits))


def decode_tree(tree):
    streams = _streams(tree)
    tree.end()
    payload = struct.pack("<21I", 20, *map(len, streams)) + b"".join(streams)
    if len(payload) != tree.raw_bytes or crc32c(payload) != tree.payload_crc:
        raise Damage("the payload is not what was encoded")
    return payload


def _streams(tree):
    streams, count = [b""] * 20, tree.records
    for number in (0, 1, 2, 3, 16):
        streams[number] = tree.text_leaf()
    formats = _formats(streams[16], tree.limits)
    streams[4] = _contexts(tree)
    streams[10] = kinds = b"".join(low_bytes(ints(tree, count), 1))
    streams[9] = b"".join(low_bytes(ints(tree, count), 1))
    thread, threads = ints(tree, count), Bytes(streams[1]).varint()
    if not all(0 <= number < threads for number in thread):
        raise Damage("no such thread")
    streams[5] = b"".join(map(varint, thread))
    time, offset = ints(tree, count), ints(tree, count)
    streams[6], streams[7] = _differences(time), _differences(offset)
    streams[8] = b"".join(map(zigzag, ints(tree, count)))
    streams[11] = b"".join(map(varint, ints(tree, count)))
    streams[12] = b"".join(map(varint, ints(tree, count)))
    chosen = ints(tree, sum(kind >> 6 & 1 for kind in kinds))
    if not all(0 <= number < len(formats) for number in chosen):
        raise Damage("no such format")
    streams[17] = b"".join(map(varint, chosen))
    streams[18] = arguments(tree, formats, chosen)
    utc = [time[at] + offset[at] for at, kind in enumerate(kinds) if kind & 32]
    runs = sections(tree, utc)
    streams[14], streams[15] = b"".join(varint(len(run)) for run in runs), b"".join(runs)
    messages = strings(tree, count - len(chosen))
    streams[13] = b"".join(varint(len(message)) for message in messages)
    streams[19] = b"".join(tree.bounded(piece for message in messages
                                        for piece in (message, b"\n")))
    return streams


def _formats(stream, limits):
    """The argument types of each format (§11.4, stream 16)."""
    source, found = Bytes(stream), []
    count = source.varint()
    within("formats", count, limits.entries)
    for _ in range(count):
        source.varint()
        source.str(), source.str(), source.u8(), source.str()
        found.append(source.str())
    within("argument types", sum(map(len, found)), limits.parts)
    return found


def _differences(values):
    return b"".join(zigzag(value - before) for before, value in zip([0] + values, values))


def _contexts(tree):
    count = tree.meta.varint()
    within("contexts", count, tree.limits.entries)
    lists, found_traces = field_lists(tree, count), traces(tree, count)
    return varint(count) + b"".join(tree.bounded(
        varint(len(found)) + found + trace for found, trace in zip(lists, found_traces)))


def arguments(tree, formats, chosen):
    """The bytes of all arguments. `formats`: the types of each format's arguments; `chosen`: the
    format of each record."""
    uses = Counter(chosen)
    columns = [[iter(_argument(tree, kind, uses[number])) for kind in types]
               for number, types in enumerate(formats)]
    return b"".join(tree.bounded(next(column) for number in chosen
                                 for column in columns[number]))


def _argument(tree, kind, count):
    if kind in NUMBERS:
        return low_bytes(ints(tree, count), NUMBERS[kind])
    if kind in (3, 13):
        return doubles(tree, count, 8 if kind == 3 else 4)
    if kind == 4:
        return sized_strings(tree, count, 16)
    if kind not in (6, 7):
        raise Damage(f"argument type {kind}")
    marks = ints(tree, count)
    if not all(0 <= mark <= 2 for mark in marks):
        raise Damage("a string that is neither whole, cut nor NULL")
    found = iter(strings(tree, len(marks) - marks.count(2)))
    return list(tree.bounded(_string(mark, found, 4 if kind == 7 else 1) for mark in marks))


def _string(mark, found, unit):
    if mark == 2:
        return struct.pack("<I", NULL)
    value = next(found)
    if len(value) % unit:
        raise Damage("a part of a wide character")
    return struct.pack("<I", len(value) // unit | (CUT if mark else 0)) + value


def _shapes(tree, parse):
    """Form 1 of fields and sections: S, and the S strings."""
    count = tree.meta.varint()
    if not 1 <= count <= tree.limits.entries:
        raise Damage(f"{count} shapes")
    found = strings(tree, count)
    for shape in found:
        tree.shape(len(shape))
    parsed, parts = [], 0
    for shape in found:
        parsed.append(parse(shape))
        parts += len(shape if parse is bytes else parsed[-1][1])
        within("parts of shapes", parts, tree.limits.parts)
    return parsed


def field_lists(tree, count):
    """Runs of bytes that are lists of fields (§8.2), or empty."""
    if count == 0:
        return []
    tree.count(count)
    if tree.form("FieldLists") == 0:
        return strings(tree, count)
    shapes = _shapes(tree, _fields)
    chosen = numbers(tree, count, len(shapes))
    lengths = {field: 0 for _, fields in shapes for field in fields}
    for number, used in Counter(chosen).items():
        for field in shapes[number][1]:
            lengths[field] += used
    columns = {field: iter(_values(tree, field[0], length)) for field, length in lengths.items()}
    return list(tree.bounded(
        shapes[number][0] + b"".join(_field(field, next(columns[field]))
                                     for field in shapes[number][1])
        for number in chosen))


def _fields(shape):
    """The start of a list, and the (type, key) of each of its fields."""
    if not shape:
        return b"", []
    source = Bytes(shape)
    fields = []
    for _ in range(source.u16()):
        kind, reserved = source.u8(), source.u8()
        if not 1 <= kind <= 5 or reserved:
            raise Damage("a field that cannot be")
        fields.append((kind, source.take(source.u16())))
    if source.left:
        raise Damage("bytes behind the last field")
    return shape[:2], fields


def _values(tree, kind, count):
    if kind in (1, 2):
        return low_bytes(ints(tree, count), 8)
    if kind == 3:
        return doubles(tree, count, 8)
    if kind == 4:
        return low_bytes(ints(tree, count), 1)
    return list(tree.bounded(struct.pack("<I", len(value)) + value
                             for value in strings(tree, count)))


def _field(field, value):
    kind, key = field
    return struct.pack("<BBH", kind, 0, len(key)) + key + value


def traces(tree, count):
    """Traces (§8.4), 25 bytes each."""
    if count == 0:
        return []
    tree.count(count)
    if tree.form("Traces") == 0:
        return [bytes(25)] * count
    return [b"".join(parts) for parts in zip(
        sized_strings(tree, count, 16), sized_strings(tree, count, 8),
        low_bytes(ints(tree, count), 1))]


def sections(tree, utc):
    """The sections of the records that have some. `utc` contains the time of each."""
    count = len(utc)
    if count == 0:
        return []
    if tree.form("Sections") == 0:
        return list(tree.bounded(strings(tree, count)))
    shapes = _shapes(tree, bytes)
    chosen = numbers(tree, count, len(shapes))
    lengths = dict.fromkeys(sorted(set(b"".join(shapes))), 0)
    for number, used in Counter(chosen).items():
        for kind in shapes[number]:
            lengths[kind] += used
    times = (time for time, number in zip(utc, chosen) for kind in shapes[number] if kind == 6)
    columns = {kind: iter(_bodies(tree, kind, length, times))
               for kind, length in lengths.items()}
    return list(tree.bounded(
        b"".join(tree.bounded(_section(kind, next(columns[kind])) for kind in shapes[number]))
        for number in chosen))


def _bodies(tree, kind, count, times):
    if kind == 2:
        return field_lists(tree, count)
    if kind == 3:
        return low_bytes(ints(tree, count), 4)
    if kind == 5:
        return traces(tree, count)
    if kind == 6:
        return low_bytes([value + time for value, time in zip(ints(tree, count), times)], 8)
    if kind == 9:
        return low_bytes(ints(tree, count), 8)
    return strings(tree, count)


def _section(kind, body):
    return struct.pack("<BBHI", kind, 0, 0, len(body)) + body
