"""Text of deferred records (FORMAT §8.7): arguments by the site's types, printed one directive at a
time by the local C library."""

import ctypes
import math
import re
import struct
import unicodedata

from wire import Bytes, Damage

LIBC = ctypes.CDLL(None)
DIRECTIVE = re.compile(rb"%(?:(\d+)\$)?([#0\- +'I]*)(\*(?:(\d+)\$)?|\d+)?"
                       rb"(?:(\.)(\*(?:(\d+)\$)?|\d+)?)?(hh|h|ll|l|q|j|z|Z|t|L)?([A-Za-z%])")
WIDE, TEXT, NULL, CUT = 7, 6, 0xFFFFFFFF, 1 << 31
MOST = 1 << 20


class Real(float):
    """A number and its bytes, which alone keep a NaN's sign and payload."""

    def __new__(cls, value, raw):
        made = super().__new__(cls, value)
        made.raw = raw
        return made


def arguments(types, source):
    """[(type, value)], strings as bytes, NULL as None; and whether one was cut."""
    values, cut = [], False
    for kind in types:
        if kind in (1, 8):
            values.append((kind, int.from_bytes(source.take(4), "little", signed=True)))
        elif kind in (2, 5):
            values.append((kind, int.from_bytes(source.take(8), "little", signed=True)))
        elif kind == 3:
            raw = source.take(8)
            values.append((kind, Real(ctypes.c_double.from_buffer_copy(raw).value, raw)))
        elif kind == 4:
            values.append((kind, source.take(16)))
        elif kind in (9, 10):
            values.append((kind, source.u8()))
        elif kind == 11:
            values.append((kind, source.u32()))
        elif kind == 12:
            values.append((kind, int.from_bytes(source.take(8), "little")))
        elif kind == 13:
            raw = source.take(4)
            values.append((kind, Real(struct.unpack("<f", raw)[0], raw)))
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
    """The format itself if it does not parse, or the arguments do not fit it."""
    try:
        return _text(style, form, values)
    except (Damage, ArithmeticError, LookupError, TypeError, ValueError):
        return form


def _text(style, form, values):
    if style in (2, 3):
        return _braces(form, values, style == 3)
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
    if letter in b"nsS":
        raise Damage("an argument that does not fit")  # the C library would follow a number
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


FIELD = re.compile(r"\{(\d*)(?::(?:(.)?([<>^]))?([+\- ])?(#)?(0)?(\d+|\{\d*\})?"
                   r"(?:\.(\d+|\{\d*\}))?L?([a-zA-Z?])?)?\}")


def _braces(form, values, swift):
    """Style 2: like std::format. Style 3: the same, but numbers as Swift shows them."""
    text, out, at, following = form.decode(errors="surrogateescape"), [], 0, [0]

    def index(spelled):
        if spelled:
            return int(spelled)
        following[0] += 1
        return following[0] - 1

    def number(spelled):
        if spelled and spelled[0] == "{":
            return int(values[index(spelled[1:-1])][1])
        return int(spelled) if spelled else None

    while at < len(text):
        if text[at:at + 2] in ("{{", "}}"):
            out.append(text[at])
            at += 2
        elif text[at] in "{}":
            match = FIELD.match(text, at)
            if not match:
                return form
            at = match.end()
            place, fill, align, sign, alternate, zero, width, precision, letter = match.groups()
            value = values[index(place)]
            width, precision = number(width), number(precision)
            if swift and value[0] in (3, 13) and not letter and precision is None:
                value = (TEXT, _swift(*value).encode())
            out.append(_field(value, fill or " ", align, sign or "-", alternate or "", zero,
                              width or 0, precision, letter or ""))
        else:
            out.append(text[at])
            at += 1
    return "".join(out).encode(errors="surrogateescape")


def _field(value, fill, align, sign, alternate, zero, width, precision, letter):
    kind, value = value
    head = ""
    if kind == TEXT:
        body = (value or b"").decode(errors="surrogateescape")
        while precision is not None and _columns(body) > precision:
            body = body[:-1]
        align = align or "<"
    elif kind == 9 and letter in ("", "s"):
        body, align = ("false", "true")[value], align or "<"
    elif kind == 10 and letter in ("", "c") or letter == "c":
        body, align = chr(value), align or "<"
    elif kind == 5:
        body, head = f"{value & (1 << 64) - 1:x}", "0x"
    elif kind in (3, 4, 13):
        body = _float(kind, value, alternate, precision, letter)
        if body[0] == "-":
            head, body = "-", body[1:]
        elif sign != "-":
            head = sign
    else:
        head = "-" if value < 0 else "" if sign == "-" else sign
        body = format(abs(value), letter if letter in "xXobB" and letter != "B" else
                      "b" if letter == "B" else "d")
        if alternate and letter in "xXbB":
            head += "0" + letter
        elif alternate and letter == "o" and value:
            head += "0"
    pad = width - _columns(head) - _columns(body)
    if pad <= 0:
        return head + body
    if not align and zero and body[:3].lower() not in ("inf", "nan"):
        return head + "0" * pad + body
    before = {"<": 0, ">": pad, "^": pad // 2, None: pad}[align]
    return fill * before + head + body + fill * (pad - before)


def _float(kind, value, alternate, precision, letter):
    if kind == 4:
        letter = letter or "g"
        form = "%" + alternate + ("" if precision is None else f".{precision}") + "L" + letter
        return _snprintf(form.encode(), 4, value).decode().replace("0x", "").replace("0X", "")
    if not letter and precision is None:
        if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        return _shortest(kind, value)
    form = "%" + alternate + ("" if precision is None else f".{precision}") + (letter or "g")
    return _snprintf(form.encode(), 3, value).decode().replace("0x", "").replace("0X", "")


def _digits(kind, value):
    """The fewest digits that read back as the same number, and the power of ten of the first."""
    for digits in range(1, 18):
        spelled = f"{value:.{digits - 1}e}"
        back = float(spelled)
        if kind == 13:
            back = struct.unpack("<f", struct.pack("<f", back))[0]
        if back == value:
            break
    mantissa, exponent = spelled.split("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def _shortest(kind, value):
    if value == 0:
        return "-0" if str(value)[0] == "-" else "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    plain, exponent = _digits(kind, value)
    scientific = plain[0] + ("." + plain[1:] if plain[1:] else "")
    scientific += f"e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        fixed = "0." + "0" * (-exponent - 1) + plain
    elif exponent + 1 >= len(plain):
        fixed = f"{value:.0f}" if value >= 2**53 else plain + "0" * (exponent + 1 - len(plain))
    else:
        fixed = plain[:exponent + 1] + "." + plain[exponent + 1:]
    return sign + (fixed if len(fixed) <= len(scientific) else scientific)


def _swift(kind, value):
    """The fewest digits that read back, with a point or an exponent (§8.7, style 3)."""
    if value != value:
        bits, quiet = int.from_bytes(value.raw, "little"), 51 if kind == 3 else 22
        payload = bits & (1 << quiet - 1) - 1
        sign = "-" if bits >> (63 if kind == 3 else 31) else ""
        name = "nan" if bits >> quiet & 1 else "snan"
        return sign + name + (f"(0x{payload:x})" if payload else "")
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    sign, value = ("-" if math.copysign(1, value) < 0 else ""), abs(value)
    if value == 0:
        return sign + "0.0"
    plain, power = _digits(kind, value)
    exponent = power + 1  # as 0.ddd
    if exponent < -3 or value > 2.0 ** (53 if kind == 3 else 24):
        tail = "." + plain[1:] if plain[1:] else ""
        return f"{sign}{plain[0]}{tail}e{'-' if exponent < 1 else '+'}{abs(exponent - 1):02d}"
    if exponent <= 0:
        return sign + "0." + "0" * -exponent + plain
    if exponent >= len(plain):
        return sign + plain + "0" * (exponent - len(plain)) + ".0"
    return sign + plain[:exponent] + "." + plain[exponent:]


def _columns(text):
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def site(payload):
    """§5, type 2."""
    source = Bytes(payload)
    line, _level, count, style = source.u32(), source.u8(), source.u8(), source.u8()
    source.take(1)
    file, function, form = source.str(), source.str(), source.str()
    return line, file, function, style, form, source.take(count)


def fill(record, found, source):
    """Sets place and message of a record of that site. Its arguments come next."""
    line, file, function, style, form, types = found
    record.line, record.file, record.function = line, file, function
    try:
        values, cut = arguments(types, source)
        record.message = text_of(style, form, values)
    except (Damage, IndexError, TypeError, ValueError,
            ctypes.ArgumentError):  # arguments that do not fit the format
        record.message, cut = form, False
    return cut
