"""Arguments, field lists, traces and sections of a block (FORMAT §11.7), as bytes of §8. Each
function takes a Tree positioned before the column."""

import struct
from collections import Counter

from column_codecs import doubles, ints, low_bytes, numbers, sized_strings, strings
from tree import within
from wire import Bytes, Damage

# §8.7: bytes per argument that is a number.
NUMBERS = {1: 4, 2: 8, 5: 8, 8: 4, 9: 1, 10: 1, 11: 4, 12: 8}
NULL, CUT = 0xFFFFFFFF, 1 << 31


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
