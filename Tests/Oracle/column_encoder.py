"""An encoder of columns for tests (FORMAT §11.8, §11.9): for each run of values it picks by seed
one of the codecs that can hold them, not the smallest. Only the tests and golden files use it;
nothing that ships does."""

import random
import re
import struct
from fractions import Fraction

from column_codecs import MASK, MONTHS, signed, time_text

HEX = (b"0123456789abcdef", b"0123456789ABCDEF")
# From this depth on, only codecs without nested ones are used.
DEEP = 10


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


class Choice:
    """Decides by seed. `prefer` names the codecs to use if they can hold the values, first match
    first, as {"Ints": (0, 3)}; only near the root, so that trees end. A `tidy` one does nothing odd
    (planes that are all zero, values without their template, dictionaries in another order)."""

    def __init__(self, seed, prefer=None, tidy=False):
        self.random, self.prefer, self.tidy = random.Random(seed), prefer or {}, tidy

    def pick(self, kind, possible, depth=0):
        wanted = [number for number in self.prefer.get(kind, ()) if number in possible]
        return wanted[0] if wanted and depth < 3 else self.random.choice(possible)

    def odd(self, chance):
        return not self.tidy and self.random.random() < chance


class Writer:
    """Collects the meta stream and the leaves of one tree."""

    def __init__(self, choice):
        self.choice, self.meta, self.leaves, self.depth = choice, bytearray(), [], 0

    def byte(self, *values):
        self.meta += bytes(values)

    def varint(self, *values):
        for value in values:
            self.meta += varint(value)

    def zigzag(self, *values):
        for value in values:
            self.meta += zigzag(value)

    def text(self, content):
        self.varint(len(content))
        self.leaves.append((True, bytes(content)))

    def plane(self, content):
        self.leaves.append((False, bytes(content)))

    def sized_plane(self, content):
        self.varint(len(content))
        self.plane(content)

    def planes(self, values):
        width = (max(value.bit_length() for value in values) + 7) // 8
        if self.choice.odd(0.1):
            width = self.choice.random.randint(width, 8)
        self.byte(width)
        for byte in range(width):
            self.plane(bytes(value >> 8 * byte & 255 for value in values))

    def buckets(self, values):
        symbols, bits, at = bytearray(), 0, 0
        for value in values:
            power = value.bit_length() - 1
            if value < 16:
                symbols.append(value)
                continue
            symbols.append(16 + 4 * (power - 4) + (value >> power - 2 & 3))
            bits |= (value & (1 << power - 2) - 1) << at
            at += power - 2
        self.plane(symbols)
        self.sized_plane(bits.to_bytes((at + 7) // 8, "little"))

    def codec(self, kind, writers, possible, values):
        number = self.choice.pick(kind, possible, self.depth)
        self.byte(number)
        self.depth += 1
        writers[number](self, values)
        self.depth -= 1

    def ints(self, values):
        """Signed numbers, or unsigned ones with the same number of bits."""
        if not values:
            return
        values = [signed(value) for value in values]
        possible = [1, 2, 4, 5, 6] + ([3, 7] if self.depth < DEEP else [])
        self.codec("Ints", INTS, possible + [0] * (len(set(values)) == 1), values)

    def doubles(self, values):
        """Of 8 or 4 bytes each."""
        if not values:
            return
        self.codec("Doubles", DOUBLES, [0, 2] + [1] * (_decimals(values) is not None), values)

    def strings(self, values):
        if not values:
            return
        possible = [number for number, test in STRING_TESTS.items() if test(values)]
        if self.depth < DEEP:
            possible += [3] + [4] * (self.depth < 3)
        self.codec("Strings", STRINGS, possible, values)


def _offset(writer, values, put=Writer.planes):
    first = min(values)
    if writer.choice.odd(0.2):
        first = signed(writer.choice.random.getrandbits(64))
    writer.zigzag(first)
    put(writer, [(value - first) & MASK for value in values])


def _zigzags(values):
    return [(value << 1 ^ value >> 63) & MASK for value in map(signed, values)]


def _delta(writer, values, put=Writer.planes):
    first = writer.choice.random.choice((values[0], 0, -2**63))
    writer.zigzag(first)
    put(writer, _zigzags(value - before for before, value in zip([first] + values, values)))


def _int_dictionary(writer, values):
    entries = list(dict.fromkeys(values))
    writer.choice.random.shuffle(entries)
    places = {value: place for place, value in enumerate(entries)}
    writer.varint(len(entries))
    writer.ints(entries)
    writer.planes([places[value] for value in values])


def _slope(writer, values):
    steps = [signed(value - before) for before, value in zip(values, values[1:])] or [7]
    writer.zigzag(values[0], steps[0])
    turns = _zigzags(step - before for before, step in zip(steps[:1] + steps, steps))
    writer.planes([0] + turns[:len(values) - 1])


def _runs(writer, values):
    runs = []
    for value in values:
        if runs and runs[-1][0] == value and not writer.choice.odd(0.1):
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    writer.varint(len(runs))
    writer.ints([value for value, _ in runs])
    writer.ints([length for _, length in runs])


INTS = {
    0: lambda writer, values: writer.zigzag(values[0]), 1: _offset, 2: _delta, 3: _int_dictionary,
    4: _slope, 5: lambda writer, values: _offset(writer, values, Writer.buckets),
    6: lambda writer, values: _delta(writer, values, Writer.buckets), 7: _runs,
}


def _decimals(values):
    """The decimal places, and the whole numbers that yield exactly these values; or None."""
    form = "<d" if values and len(values[0]) == 8 else "<f"
    numbers = [struct.unpack(form, value)[0] for value in values]
    if any(number != number or abs(number) > 2**53 for number in numbers):
        return None
    for places in range(10):
        found = [round(Fraction(number) * 10**places) for number in numbers]
        if any(abs(number) > 2**53 for number in found):
            return None
        if [struct.pack(form, number / 10**places) for number in found] == values:
            return places, found
    return None


def _double_planes(writer, values):
    for digits in zip(*values):
        writer.plane(bytes(digits))


def _double_decimal(writer, values):
    places, numbers = _decimals(values)
    writer.byte(places)
    writer.ints(numbers)


def _double_words(writer, values):
    words = [int.from_bytes(value, "little") for value in values]
    if len(values[0]) == 4 and writer.choice.odd(0.5):
        words = [word - 2**32 for word in words]  # the high half is ignored
    writer.ints(words)


DOUBLES = {0: _double_planes, 1: _double_decimal, 2: _double_words}


def _sized(writer, values):
    writer.ints([len(value) for value in values])
    writer.text(b"".join(values))


def _sized_lines(writer, values):
    writer.ints([len(value) for value in values])
    writer.text(b"".join(value + b"\n" for value in values))


def _string_dictionary(writer, values):
    mode = writer.choice.pick("mode", (0, 1))
    entries = list(dict.fromkeys(values))
    writer.byte(mode)
    writer.varint(len(entries))
    if mode == 0:
        writer.choice.random.shuffle(entries)
    places = {value: place for place, value in enumerate(entries)}
    numbers, known = [], 0
    for value in values:
        new = places[value] == known
        numbers.append(places[value] if mode == 0 else 0 if new else known - places[value])
        known += new
    writer.planes(numbers)
    writer.strings(entries)


INT, DECIMAL = re.compile(rb"-?(0|[1-9]\d*)\Z"), re.compile(rb"(-?)(0|[1-9]\d*)(?:\.(\d+))?\Z")


def _one_length(values, most):
    return 1 <= len(values[0]) <= most and len(set(map(len, values))) == 1


def _is_int(value):
    return bool(INT.match(value)) and value != b"-0" and -2**63 <= int(value) < 2**63


def _as_decimal(value):
    match = DECIMAL.match(value)
    if not match or len(match[3] or b"") > 17:
        return None
    number = int(match[1] + match[2] + (match[3] or b""))
    minus_zero = number == 0 and match[1]
    return None if minus_zero or not -2**63 <= number < 2**63 else (len(match[3] or b""), number)


def _int(writer, values):
    writer.ints([int(value) for value in values])


def _digits(writer, values):
    writer.byte(len(values[0]))
    writer.ints([int(value) for value in values])


def _decimal(writer, values):
    pairs = [_as_decimal(value) for value in values]
    writer.ints([places for places, _ in pairs])
    writer.ints([number for _, number in pairs])


def _hex_case(values):
    """The case, 0 or 1, and the pattern; or None."""
    if not _one_length(values, 255):
        return None
    for case, digits in enumerate(HEX):
        pattern = bytes(0 if all(byte in digits for byte in place) else place[0]
                        for place in zip(*values))
        literal = all(byte == 0 or len(set(place)) == 1 and place[0]
                      for byte, place in zip(pattern, zip(*values)))
        # A literal NUL would count as a digit.
        nul = any(byte == 0 and place[0] == 0 for byte, place in zip(pattern, zip(*values)))
        if literal and not nul and 0 in pattern:
            return case, pattern
    return None


def _hex(writer, values):
    case, pattern = _hex_case(values)
    writer.byte(case)
    writer.text(pattern)
    whole = b""
    for value in values:
        digits = bytes(byte for byte, mark in zip(value, pattern) if mark == 0)
        whole += bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
    writer.plane(whole)


def _fixed(writer, values):
    writer.byte(len(values[0]))
    writer.plane(b"".join(values))


STRING_TESTS = {
    0: lambda values: len(set(values)) == 1,
    1: lambda values: not any(b"\n" in value for value in values),
    2: lambda values: True,
    5: lambda values: all(map(_is_int, values)),
    6: lambda values: _one_length(values, 18) and all(
        set(value) <= set(b"0123456789") for value in values),
    7: lambda values: None not in map(_as_decimal, values),
    8: lambda values: _hex_case(values) is not None,
    9: lambda values: _one_length(values, 255),
    10: lambda values: True,
}

CLOCK = rb"(\d\d):(\d\d):(\d\d)"
PART = rb"(?:([.,:])(\d{1,9}))?"
PLACE = re.compile(
    rb"(?P<iso>(\d{4})([-/])(\d\d)\3(\d\d)([ T])" + CLOCK + PART + rb")"
    rb"|(?P<clf>(\d\d)/(" + b"|".join(MONTHS) + rb")/(\d{4}):" + CLOCK + rb")"
    rb"|(?P<day>" + CLOCK + PART + rb")|(?P<word>[\w.+-]*\d[\w.+-]*)"
    rb"|(?P<stamp>(" + b"|".join(MONTHS) + rb") ( [1-9]|[1-9]\d) " + CLOCK + rb")", re.ASCII)


def _days(year, month, day):
    """Days since 1970, by counting: slow, and unlike the decoder's method."""
    def leap(of):
        return of % 4 == 0 and (of % 100 != 0 or of % 400 == 0)
    lengths = [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        return None
    past = year - 1
    leaps = past // 4 - past // 100 + past // 400 - 477
    return 365 * (year - 1970) + leaps + sum(lengths[:month - 1]) + day - 1


def _time(match):
    """(form, number) of a match; or None."""
    parts = [part for part in match.groups()]
    if match["iso"]:
        year, line, month, day, space, *clock, mark, fraction = parts[1:11]
        form, days = 1 | 4 * (line == b"/") | 8 * (space == b"T"), (year, month, day)
    elif match["clf"]:
        day, month, year, *clock = parts[12:18]
        form, mark, fraction = 2, None, None
        days = (year, MONTHS.index(month) + 1, day)
    elif match["stamp"]:
        month, day, *clock = parts[26:31]
        form, mark, fraction = 3, None, None
        days = (2000, MONTHS.index(month) + 1, day)
    else:
        *clock, mark, fraction = parts[19:24]
        form, days = 0, None
    hour, minute, second = map(int, clock)
    since = _days(*map(int, days)) if days else 0
    if since is None or hour > 23 or minute > 59 or second > 59:
        return None
    if form == 3:
        since -= 10957
    seconds, digits = since * 86400 + hour * 3600 + minute * 60 + second, len(fraction or b"")
    if mark:
        form |= b".,:".index(mark) + 1 << 4 | digits << 6
    number = seconds * 10**digits + int(fraction or 0)
    if not -2**63 <= number < 2**63:
        return None
    assert time_text(form, number) == match[0], (match[0], form, number)
    return form, number


def _split(value):
    """The literals of a value, one more than its variables, and (form or None, value) of each."""
    literals, variables, at = [], [], 0
    for match in PLACE.finditer(value):
        if len(variables) == 4000:
            break
        time = None if match["word"] else _time(match)
        literals.append(value[at:match.start()])
        variables.append(time or (None, match[0]))
        at = match.end()
    return literals + [value[at:]], variables


def _escaped(literal):
    return b"".join(bytes([5, byte]) if byte < 6 else bytes([byte]) for byte in literal)


def _templates(writer, values):
    chance = writer.choice.random
    kinds, chosen, found = {}, [], []
    for value in values:
        literals, variables = ([value], []) if writer.choice.odd(0.05) else _split(value)
        key = (tuple(literals), tuple(form for form, _ in variables))
        if key not in kinds:
            kinds[key] = (len(kinds), [chance.randint(1, 3) if form is None else 4
                                       for form, _ in variables])
        chosen.append(kinds[key][0])
        found.append([content for _, content in variables])
    leaf, named, columns, places = bytearray(), bytearray(), [], []
    for (literals, forms), (_, bytes_of) in kinds.items():
        for literal, form, kind in zip(literals, forms, bytes_of):
            leaf += _escaped(literal) + bytes([kind])
            leaf += struct.pack("<H", form) if kind == 4 else b""
        leaf += _escaped(literals[-1]) + b"\0"
        mine = []
        for key in zip(bytes_of, forms):
            known = [number for number, (other, _) in enumerate(columns) if other == key]
            if known and (writer.choice.odd(0.3) or len(columns) > 1000):
                mine.append(chance.choice(known))
                named += varint(mine[-1] + 1)
            else:
                mine.append(len(columns))
                columns.append((key, []))
                named += varint(0)
        places.append(mine)
    for number, contents in zip(chosen, found):
        for place, content in zip(places[number], contents):
            columns[place][1].append(content)
    writer.varint(len(kinds), len(columns))
    writer.text(leaf)
    writer.sized_plane(named)
    writer.planes(chosen)
    for (kind, _), contents in columns:
        (writer.ints if kind == 4 else writer.strings)(contents)


STRINGS = {
    0: lambda writer, values: writer.text(values[0]),
    1: lambda writer, values: writer.text(b"".join(value + b"\n" for value in values)),
    2: _sized, 3: _string_dictionary, 4: _templates, 5: _int, 6: _digits, 7: _decimal, 8: _hex,
    9: _fixed, 10: _sized_lines,
}

# The numbers in the page, in the form of Tree.met.
NUMBERED = {(kind, number) for kind, numbers in (
    ("Ints", INTS), ("Doubles", DOUBLES), ("Strings", STRINGS), ("FieldLists", (0, 1)),
    ("Traces", (0, 1)), ("Sections", (0, 1)), ("mode", (0, 1))) for number in numbers}
