"""The codecs of columns (FORMAT §11.8, §11.9). Each function takes a Tree positioned before the
codec, and the number of its values. It returns a list of that many. Numbers are signed."""

import re
import struct
from collections import Counter

from wire import Bytes, Damage

MASK = 2**64 - 1
MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def signed(number):
    """The signed number with the same 64 bits."""
    number &= MASK
    return number - 2**64 if number >> 63 else number


def unzigzag(number):
    return (number >> 1) ^ -(number & 1)


def between(what, number, least, most):
    if not least <= number <= most:
        raise Damage(f"{what} {number}, not {least} to {most}")
    return number


def planes(tree, count):
    width = between("planes", tree.meta.u8(), 0, 8)
    if width == 0:
        return [0] * count
    leaves = [tree.plane_leaf(count) for _ in range(width)]
    return [int.from_bytes(bytes(digits), "little") for digits in zip(*leaves)]


def numbers(tree, count, most):
    """Planes whose numbers must be below `most`."""
    found = planes(tree, count)
    if max(found, default=0) >= most:
        raise Damage("a number of nothing")
    return found


def buckets(tree, count):
    symbols = tree.plane_leaf(count)
    leaf = tree.plane_leaf(tree.meta.varint())
    bits, at, found = int.from_bytes(leaf, "little"), 0, []
    if len(leaf) != (sum(_bits(symbol) for symbol in symbols) + 7) // 8:
        raise Damage("buckets with too few or too many bits")
    for symbol in symbols:
        if symbol < 16:
            found.append(symbol)
            continue
        width = _bits(symbol)
        found.append((4 + symbol % 4 << width) + _piece(leaf, at, width))
        at += width
    if bits >> at:
        raise Damage("bits left over that are not zero")
    return found


def _bits(symbol):
    """The number of bits that follow a symbol: e − 2."""
    return 0 if symbol < 16 else 2 + (symbol - 16) // 4


def _piece(leaf, at, width):
    whole = int.from_bytes(leaf[at // 8:(at + width + 7) // 8], "little")
    return whole >> at % 8 & (1 << width) - 1


def ints(tree, count):
    if count == 0:
        return []
    with tree.codec("Ints", count) as number:
        if number > 7:
            raise Damage(f"codec {number} of Ints")
        return [signed(value) for value in (
            _const, _offset, _delta, _dictionary, _slope, _log_offset, _log_delta,
            _runs)[number](tree, count)]


def _const(tree, count):
    return [tree.meta.zigzag()] * count


def _offset(tree, count, take=planes):
    first = tree.meta.zigzag()
    return [first + number for number in take(tree, count)]


def _delta(tree, count, take=planes):
    value, found = tree.meta.zigzag(), []
    for number in take(tree, count):
        value += unzigzag(number)
        found.append(value)
    return found


def _log_offset(tree, count):
    return _offset(tree, count, buckets)


def _log_delta(tree, count):
    return _delta(tree, count, buckets)


def _dictionary(tree, count):
    size = between("entries", tree.meta.varint(), 1, count)
    entries = ints(tree, size)
    return [entries[number] for number in numbers(tree, count, size)]


def _slope(tree, count):
    value, step = tree.meta.zigzag(), tree.meta.zigzag()
    found = [value]
    for number in planes(tree, count)[1:]:
        step += unzigzag(number)
        value += step
        found.append(value)
    return found


def _runs(tree, count):
    size = between("runs", tree.meta.varint(), 1, count)
    values, lengths = ints(tree, size), ints(tree, size)
    if min(lengths) < 1 or sum(lengths) != count:
        raise Damage("runs that are not as many as the values")
    return [value for value, length in zip(values, lengths) for _ in range(length)]


def doubles(tree, count, size):
    """Returns each number's `size` bytes."""
    if count == 0:
        return []
    with tree.codec("Doubles", count) as number:
        if number == 0:
            leaves = [tree.plane_leaf(count) for _ in range(size)]
            return [bytes(digits) for digits in zip(*leaves)]
        if number == 1:
            scale = 10 ** between("digits", tree.meta.u8(), 0, 9)
            found = ints(tree, count)
            between("a decimal's magnitude", max(map(abs, found)), 0, 2**53)
            # Python rounds the quotient of whole numbers to the nearest 8-byte number.
            return [struct.pack("<d" if size == 8 else "<f", value / scale) for value in found]
        if number == 2:
            return low_bytes(ints(tree, count), size)
        raise Damage(f"codec {number} of Doubles")


def low_bytes(values, size):
    return [(value & MASK).to_bytes(8, "little")[:size] for value in values]


def strings(tree, count):
    if count == 0:
        return []
    with tree.codec("Strings", count) as number:
        if number > 10:
            raise Damage(f"codec {number} of Strings")
        return (_same, _lines, _sized, _named, _templates, _int, _digits, _decimal, _hex,
                _fixed, _sized_lines)[number](tree, count)


def sized_strings(tree, count, size):
    """Strings that must all have that many bytes."""
    found = strings(tree, count)
    if any(len(value) != size for value in found):
        raise Damage(f"a value that has not {size} bytes")
    return found


def _same(tree, count):
    return [tree.text_leaf()] * count


def _lines(tree, count):
    found = tree.text_leaf().split(b"\n")
    if len(found) != count + 1 or found[-1]:
        raise Damage("lines that are not as many as the values")
    return found[:-1]


def _sized(tree, count):
    lengths = ints(tree, count)
    leaf = Bytes(tree.text_leaf())
    if min(lengths) < 0 or sum(lengths) != leaf.left:
        raise Damage("lengths that are not those of the values")
    return [leaf.take(length) for length in lengths]


def _sized_lines(tree, count):
    lengths = ints(tree, count)
    leaf = Bytes(tree.text_leaf())
    if min(lengths) < 0 or sum(lengths) + count != leaf.left:
        raise Damage("lengths that are not those of the lines")
    found = []
    for length in lengths:
        found.append(leaf.take(length))
        if leaf.take(1) != b"\n":
            raise Damage("a line without its newline")
    return found


def _named(tree, count):
    mode = between("mode", tree.meta.u8(), 0, 1)
    tree.met.add(("mode", mode))
    size = between("entries", tree.meta.varint(), 1, count)
    if mode == 0:
        found = numbers(tree, count, size)
    else:
        found, known = [], 0
        for number in planes(tree, count):
            if number > known:
                raise Damage("an entry that was not named yet")
            found.append(known - number if number else known)
            known += number == 0
        if known != size:
            raise Damage("more or fewer entries than are named")
    entries = strings(tree, size)
    return [entries[number] for number in found]


def _made(tree, values, text):
    found = []
    for value in values:
        made = text(value)
        tree.make(len(made))
        found.append(made)
    return found


def _int(tree, count):
    return _made(tree, ints(tree, count), lambda value: b"%d" % value)


def _digits(tree, count):
    size = between("digits", tree.meta.u8(), 1, 18)
    return _made(tree, ints(tree, count),
                 lambda value: b"%0*d" % (size, between("digits of", value, 0, 10**size - 1)))


def _decimal(tree, count):
    points, magnitudes = ints(tree, count), ints(tree, count)
    return _made(tree, zip(points, magnitudes), lambda pair: _point(*pair))


def _point(places, number):
    between("places", places, 0, 17)
    text = b"%0*d" % (places + 1, abs(number))
    if places:
        text = text[:-places] + b"." + text[-places:]
    return b"-" + text if number < 0 else text


def _hex(tree, count):
    upper = between("case", tree.meta.u8(), 0, 1)
    pattern = tree.text_leaf()
    between("bytes of a pattern", len(pattern), 1, 255)
    digits = pattern.count(0)
    between("digits of a pattern", digits, 1, 255)
    size = (digits + 1) // 2
    leaf = tree.plane_leaf(count * size)

    def text(at):
        spelled = leaf[at:at + size].hex()
        if digits % 2 and spelled[-1] != "0":
            raise Damage("half a byte left over that is not zero")
        found = iter((spelled.upper() if upper else spelled).encode())
        return bytes(byte or next(found) for byte in pattern)

    return _made(tree, range(0, count * size, size), text)


def _fixed(tree, count):
    size = between("bytes", tree.meta.u8(), 1, 255)
    leaf = Bytes(tree.plane_leaf(count * size))
    return [leaf.take(size) for _ in range(count)]


def _templates(tree, count):
    size = between("templates", tree.meta.varint(), 1, min(tree.limits.entries, count))
    width = between("columns", tree.meta.varint(), 0, tree.limits.entries)
    templates = _parsed(tree, tree.text_leaf(), size)
    columns = _assigned(templates, tree.plane_leaf(tree.meta.varint()), width)
    chosen = numbers(tree, count, size)
    uses = Counter(chosen)
    lengths = [0] * width
    for number, used in uses.items():
        for part in templates[number]:
            if isinstance(part, int):
                lengths[part] += used
    values = [iter(_column(tree, key, length)) for key, length in zip(columns, lengths)]
    found = []
    for number in chosen:
        parts = [next(values[part]) if isinstance(part, int) else part
                 for part in templates[number]]
        tree.make(sum(map(len, parts)))
        found.append(b"".join(parts))
    return found


PIECE = re.compile(rb"[\x00-\x03]|\x04(..)|\x05([\x00-\x05])|[\x06-\xff]+", re.DOTALL)


def _parsed(tree, leaf, size):
    """Each template as a list of literals and, for each variable, (byte, form of a time)."""
    templates, parts, at, variables, together = [], [], 0, 0, 0
    while len(templates) < size:
        match = PIECE.match(leaf, at)
        if not match:
            raise Damage("a template without its end")
        at, byte = match.end(), leaf[at]
        if byte == 0:
            templates.append(parts)
            parts, variables = [], 0
        elif byte < 5:
            parts.append((byte, _form(int.from_bytes(match[1], "little")) if byte == 4 else 0))
            variables, together = variables + 1, together + 1
            if variables > tree.limits.variables or together > tree.limits.variables_together:
                raise Damage("too many variables")
        else:
            parts.append(match[2] or match[0])
    if at != len(leaf):
        raise Damage("bytes behind the last template")
    return templates


def _assigned(templates, leaf, width):
    """Replaces each variable by its column's number. Returns each column's (byte, form)."""
    source, columns = Bytes(leaf), []
    for template in templates:
        for place, key in enumerate(template):
            if isinstance(key, bytes):
                continue
            number = source.varint()
            template[place] = number - 1 if number else len(columns)
            if number == 0:
                columns.append(key)
            elif number > len(columns) or columns[number - 1] != key:
                raise Damage("a column that is not the variable's")
    if len(columns) != width or source.left:
        raise Damage("columns that no variable has")
    return columns


def _column(tree, key, count):
    kind, form = key
    if kind != 4:
        return strings(tree, count)
    return [time_text(form, value) for value in ints(tree, count)]


def _form(word):
    """§11.9, the form of a time: returned unchanged if it is valid."""
    kind, mark, digits = word & 3, word >> 4 & 3, word >> 6 & 15
    if (word >> 10 or kind != 1 and word & 12 or kind >= 2 and mark
            or digits > 9 or (mark == 0) != (digits == 0)):
        raise Damage(f"form {word:#x} of a time")
    return word


def time_text(form, number):
    mark, digits = form >> 4 & 3, form >> 6 & 15
    seconds, fraction = divmod(number, 10**digits)
    tail = b".,:"[mark - 1:mark] + b"%0*d" % (digits, fraction) if mark else b""
    days, rest = divmod(seconds, 86400)
    clock = b"%02d:%02d:%02d" % (rest // 3600, rest // 60 % 60, rest % 60) + tail
    if form & 3 == 0:
        between("seconds of a day", seconds, 0, 86399)
        return clock
    if form & 3 == 3:
        between("seconds of a year", seconds, 0, 366 * 86400 - 1)
        _, month, day = civil(10957 + days)
        return b"%s %2d " % (MONTHS[month - 1], day) + clock
    year, month, day = civil(days)
    between("year", year, 0, 9999)
    if form & 3 == 2:
        return b"%02d/%s/%04d:" % (day, MONTHS[month - 1], year) + clock
    date = b"%04d-%02d-%02d" % (year, month, day)
    return (date.replace(b"-", b"/") if form & 4 else date) + (b"T" if form & 8 else b" ") + clock


def civil(days):
    """(year, month, day) of the Gregorian calendar. Internally years begin in March."""
    era, day = divmod(days + 719468, 146097)
    of_era = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * of_era + of_era // 4 - of_era // 100
    month = (5 * day + 2) // 153
    day += 1 - (153 * month + 2) // 5
    month += 3 if month < 10 else -9
    return of_era + 400 * era + (month <= 2), month, day
