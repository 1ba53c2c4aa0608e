"""Text of deferred records (FORMAT §8.7): arguments by the site's types, printed one directive at a
time by this machine's C library."""

import ctypes
import re

from wire import Bytes, Damage

LIBC = ctypes.CDLL(None)
DIRECTIVE = re.compile(rb"%(?:(\d+)\$)?([#0\- +'I]*)(\*(?:(\d+)\$)?|\d+)?"
                       rb"(?:(\.)(\*(?:(\d+)\$)?|\d+)?)?(hh|h|ll|l|q|j|z|Z|t|L)?([A-Za-z%])")
WIDE, TEXT, NULL, CUT = 7, 6, 0xFFFFFFFF, 1 << 31
MOST = 1 << 20


def arguments(types, source):
    """[(type, value)]; strings are bytes, NULL is None; whether one was cut."""
    values, cut = [], False
    for kind in types:
        if kind in (1, 8):
            values.append((kind, int.from_bytes(source.take(4), "little", signed=True)))
        elif kind in (2, 5):
            values.append((kind, int.from_bytes(source.take(8), "little", signed=True)))
        elif kind == 3:
            values.append((kind, ctypes.c_double.from_buffer_copy(source.take(8)).value))
        elif kind == 4:
            values.append((kind, source.take(16)))
        elif kind in (TEXT, WIDE):
            word = source.u32()
            unit = 4 if kind == WIDE else 1
            if word == NULL:
                values.append((kind, None))
                continue
            values.append((kind, source.take((word & ~CUT) * unit)))
            cut = cut or bool(word & CUT)
        else:
            raise Damage(f"argument type {kind}")
    return values, cut


def text_of(style, form, values):
    if style == 1 or b"%" not in form:
        return form
    out, at, following = [], 0, [0]

    def index(position):
        if position is not None:
            return int(position) - 1
        following[0] += 1
        return following[0] - 1

    while at < len(form):
        sign = form.find(b"%", at)
        if sign < 0:
            out.append(form[at:])
            break
        out.append(form[at:sign])
        match = DIRECTIVE.match(form, sign)
        if not match:
            return form
        at = match.end()
        if match[0] == b"%%":
            out.append(b"%")
            continue
        piece = _print(match, values, index)
        if piece is None:
            return form
        out.append(piece)
    return b"".join(out)


def _number(spelled, position, values, index):
    if spelled is None:
        return None
    if not spelled.startswith(b"*"):
        return min(int(spelled), MOST)
    place = index(position)
    if place >= len(values) or values[place][0] != 1:
        raise Damage("a width that is no int")
    return max(min(values[place][1], MOST), -MOST)


def _print(match, values, index):
    (position, flags, width, width_at, dot, precision, precision_at, modifier,
     letter) = match.groups()
    flags = bytes(dict.fromkeys(flags))
    width = _number(width, width_at, values, index)
    if width is not None and width < 0:
        flags, width = flags + b"-", -width
    if dot:
        precision = _number(precision or b"0", precision_at, values, index)
        if precision < 0:
            precision = None
    kind, value = values[-1] if letter == b"m" else values[index(position)]
    if letter == b"m":
        return _pad(_strerror(value), flags, width, precision)
    if kind == TEXT:
        return _pad(value, flags, width, precision)
    if kind == WIDE:
        return _pad(_utf8(value, precision), flags, width,
                    None if value is not None else precision)
    if letter == b"C" or letter == b"c" and modifier == b"l":
        return _pad(_utf8(value.to_bytes(4, "little", signed=True), None), flags, width, None)
    form = b"%" + flags + (b"%d" % width if width else b"")
    form += (b".%d" % precision if precision is not None else b"") + (modifier or b"") + letter
    return _snprintf(form, kind, value)


def _strerror(number):
    LIBC.strerror.restype = ctypes.c_char_p
    return LIBC.strerror(number)


def _utf8(units, precision):
    if units is None:
        return None
    out = b""
    for at in range(0, len(units), 4):
        code = int.from_bytes(units[at:at + 4], "little")
        valid = code < 0x110000 and not 0xD800 <= code < 0xE000
        piece = chr(code if valid else 0xFFFD).encode()
        if precision is not None and len(out) + len(piece) > precision:
            break
        out += piece
    return out


def _pad(text, flags, width, precision):
    if text is None:
        text = b"(null)" if precision is None or precision >= 6 else b""
    if precision is not None:
        text = text[:precision]
    pad = b" " * ((width or 0) - len(text))
    return text + pad if b"-" in flags else pad + text


def _snprintf(form, kind, value):
    if kind == 3:
        value = ctypes.c_double(value)
    elif kind == 4:
        value = ctypes.c_longdouble.from_buffer_copy(value)
    elif kind == 5:
        value = ctypes.c_void_p(value)
    else:
        value = ctypes.c_int(value) if kind == 1 else ctypes.c_longlong(value)
    needed = LIBC.snprintf(None, 0, form, value)
    buffer = ctypes.create_string_buffer(needed + 1)
    LIBC.snprintf(buffer, needed + 1, form, value)
    return buffer.raw[:needed]


def site(payload):
    """§5, type 2."""
    source = Bytes(payload)
    line, _level, count, style = source.u32(), source.u8(), source.u8(), source.u8()
    source.take(1)
    file, function, form = source.str(), source.str(), source.str()
    return line, file, function, style, form, source.take(count)


def fill(record, found, source):
    """Sets place and message of a record of that site, whose arguments come next."""
    line, file, function, style, form, types = found
    record.line, record.file, record.function = line, file, function
    try:
        values, cut = arguments(types, source)
        record.message = text_of(style, form, values)
    except (Damage, IndexError):
        record.message, cut = form, False
    return cut
