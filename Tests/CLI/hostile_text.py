"""Text that line-parsing methods may get wrong, by seed: digits that are not numbers, impossible
dates, torn JSON, quotes and backslashes, common prefixes, invalid UTF-8, binary, long lines. Lines
of one kind come in runs, so that a block has columns of them. Any size. Starts no thread."""

import random
import time

CONTROL = bytes(range(9)) + bytes(range(11, 32)) + b"\x7f\x80\xff"
MONTHS = ("Jan", "feb", "MAR", "Avr", "May", "Jun", "Jly", "Sept", "Oct", "Nov", "Dec", "Foo")
NAMES = ("order", "user_id", "x", "dur.ms", "été", "", "a b", "\x01", "id", "null")


def digits(c, most=24):
    return "".join(c.choices("0123456789", k=c.randint(1, most)))


def number(c):
    """Few of these are what they look like."""
    n = c.choice((0, 1, 9, 10, 99, 127, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63,
                  2**64 - 1, 2**64, 10**19, c.getrandbits(70), c.getrandbits(16)))
    return c.choice((
        str(n), f"-{n}", f"+{n}", f"0{n}", f"-0{n}", f"{n:020d}", f"{n:x}", f"{n:X}", f"0x{n:x}",
        f"0x{n:016X}", f"{n:,}", f"{n}.", f".{n}", f"{n}.0", f"{n}.00", f"{n / 1000}",
        f"{n / 1e9:.9f}", f"-{n % 1000}.{n % 97:03d}", f"{n}e5", f"{n / 7:e}", "-0", "-0.0", "00",
        "1e400", "NaN", "inf", "-", "--1", "1.2.3", "1_000", digits(c), f"{digits(c)}.{digits(c)}",
        f"{n % 256}.{n % 300}.0{n % 9}.{n % 7}", f"{n % 100}%", f"{n}ms", "٣٤", "１２"))


def date(c):
    year, month, day = c.choice((0, 1900, 1969, 1970, 2024, 2026, 9999, 10000)), c.randint(
        0, 14), c.randint(0, 33)
    clock = f"{c.randint(0, 25):02d}:{c.randint(0, 61):02d}:{c.randint(0, 62):02d}"
    part = c.choice(("", "." + digits(c, 11), "," + digits(c, 4), ".", ":" + digits(c, 3)))
    zone = c.choice(("", "Z", "z", "+00:00", "-0000", "+99:99", " UTC", "+1"))
    return c.choice((
        f"{year:04d}-{month:02d}-{day:02d}T{clock}{part}{zone}",
        f"{year}-{month}-{day} {clock}{part}",
        f"{day:02d}/{c.choice(MONTHS)}/{year}:{clock} {zone}",
        f"{c.choice(MONTHS)} {day:2d} {clock}", f"{c.choice(MONTHS)}  {day} {clock}{part}",
        f"{year:04d}{month:02d}{day:02d}{clock.replace(':', '')}", clock + part,
        f"[{c.choice(('Mon', 'Tue', 'Xyz'))} {c.choice(MONTHS)} {day:02d} {clock} {year}]",
        "1970-01-01T00:00:00Z", "2026-02-29T23:59:60.999999999Z", f"{c.getrandbits(33)}{part}"))


def word(c):
    return c.choice((number, date, quoted, lambda c: c.choice(NAMES), lambda c: digits(c, 3),
                     lambda c: f"{c.getrandbits(128):032x}"[:c.choice((7, 8, 31, 32))],
                     lambda c: "-".join(f"{c.getrandbits(32):08x}"[:n] for n in (8, 4, 4, 4, 12)),
                     lambda c: c.choice("|,;=: \t()[]{}<>") * c.randint(1, 9)))(c)


def quoted(c):
    pieces = ('"', "'", "\\", '\\"', "\\\\", "\\u00e9", "\\uD800", "\\u00", "\\x", "\\n", "`", "a",
              "zz", " ", "7", "{", "}", "%s", "%", "\0", "\x1f", "ü")
    return c.choice(('"', "'", "", '"')) + "".join(
        c.choices(pieces, k=c.randint(0, 12))) + c.choice(('"', "'", ""))


def json_part(c, depth=0):
    """JSON, usually with an error in it."""
    kind = c.randint(0, 9 if depth < 4 else 4)
    if kind < 5:
        return c.choice((number(c), quoted(c), "true", "false", "null", "nul", "True", date(c)))
    space = c.choice(("", "", " ", "  ", "\t"))
    if kind < 7:
        text = "[" + f",{space}".join(json_part(c, depth + 1) for _ in range(c.randint(0, 4))) + "]"
    else:
        text = "{" + f",{space}".join(
            f'"{c.choice(NAMES)}"{space}:{space}{json_part(c, depth + 1)}'
            for _ in range(c.randint(0, 5))) + "}"
    if c.random() < 0.05:
        at = c.randrange(len(text))
        text = c.choice((text[:at], text[at:], text[:at] + c.choice('"{}[],:\\') + text[at:]))
    return text


# ── Runs of lines: each makes a function that makes lines ──

def of_template(c):
    """Places for words in a fixed text. Their number and kind sometimes change."""
    makers = [c.choice((number, date, word, quoted)) for _ in range(c.randint(1, 7))]
    fixed = ["".join(c.choices("abc =:/[]\"\\-_.0 %<>\t", k=c.randint(0, 9))) for _ in makers]

    def line():
        parts = [text + make(c) for text, make in zip(fixed, makers)]
        if c.random() < 0.02:
            parts.insert(c.randrange(len(parts)), word(c))
        return " ".join(parts).encode()
    return line


def of_service(c):
    """Text that services write, for which dense blocks are made, with an occasional wrong word."""
    state = [c.randint(1_000_000_000, 2_000_000_000)]
    paths = [f"/api/v{c.randint(1, 3)}/{''.join(c.choices('abcdefgh', k=6))}" for _ in range(20)]
    json_like = c.random() < 0.4

    def line():
        state[0] += c.randint(0, 3)
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(state[0]))
        part, milliseconds = c.randint(0, 999), c.randint(1, 999999) / 1000
        code, path, size = c.choice((200, 200, 404, 500)), c.choice(paths), c.randint(0, 70_000)
        address = f"10.{c.randint(0, 3)}.0.{c.randint(1, 254)}"
        if c.random() < 0.01:
            address = word(c)
        if c.random() < 0.01:
            milliseconds = word(c)
        if json_like:
            return (f'{{"ts":"{clock}.{part:03d}Z","peer":"{address}","path":"{path}",'
                    f'"code":{code},"ms":{milliseconds},"bytes":{size}}}').encode()
        return (f"{clock},{part:03d} INFO [{address}] GET {path}?id={size} -> {code} "
                f"in {milliseconds} ms").encode()
    return line


def of_counter(c):
    """Counts up or down across the limits of words and widths, and starts again."""
    n = c.choice((0, 95, 2**31 - 9, 2**32 - 9, 2**63 - 9, 2**64 - 9, 10**19 - 9, 10**30))
    step = c.choice((1, 1, -1, 7, 10**6, 2**33))
    form = c.choice(("{}", "{:03d}", "{:x}", "{:020d}"))
    state = [n]

    def line():
        state[0] = n if c.random() < 0.01 else state[0] + step
        return f"tick {form.format(state[0])} of {number(c) if c.random() < 0.03 else '7'}".encode()
    return line


def of_json(c):
    return lambda: json_part(c, c.choice((-1, 0, 0, 2))).encode()


def of_pairs(c):
    names = c.choices(NAMES, k=c.randint(1, 6))
    sign, gap = c.choice(("=", ":", "=\"", "->")), c.choice((" ", ", ", ";", "&", "\t"))
    return lambda: gap.join(name + sign + word(c) for name in names).encode()


def of_beginnings(c):
    """Long common prefixes. The difference is anywhere."""
    base = bytearray("".join(c.choices("/abcdef0123456789.-", k=c.randint(20, 400))).encode())

    def line():
        if c.random() < 0.3:
            base[c.randrange(len(base))] = c.choice(b"abc019/ \xff\"\\")
        return bytes(base[:c.randint(0, len(base))] if c.random() < 0.5 else base)
    return line


def of_bytes(c):
    chosen = c.choice((bytes(range(256)), CONTROL, b"\xc3\xa9\xe4\xb8\x96\xed\xa0\x80\xf4\x90",
                       b"\0", b"\xff\xfe", b"\r\t \x0b\x0c", b"01", b"=,;| "))
    most = c.choice((1, 9, 80, 400))
    return lambda: bytes(c.choices(chosen, k=c.randint(0, most)))


def of_mutations(c):
    """Each line is the previous one with an error in it."""
    state = [" ".join(word(c) for _ in range(9)).encode()]

    def line():
        text = bytearray(state[0])
        at = c.randrange(len(text) + 1)
        kind = c.randint(0, 5)
        if kind == 0:
            text[at:at] = bytes(c.choices(CONTROL + b'"\\ 09aZ', k=c.randint(1, 4)))
        elif kind == 1:
            del text[at:at + c.randint(1, 9)]
        elif kind == 2 and at < len(text):
            text[at] ^= 1 << c.randrange(8)
        elif kind == 3:
            text += text[:40]
        if not 0 < len(text) < 600:
            text = bytearray(" ".join(word(c) for _ in range(9)).encode())
        state[0] = bytes(text)
        return state[0]
    return line


def of_long(c):
    def line():
        size = int(10 ** c.uniform(3.5, 5 if c.random() < 0.95 else 6.3))
        kind = c.randint(0, 4)
        if kind == 0:
            return c.choice((b"a", b"7", b'"', b"\\", b" ", b"\xff", b"{", b"0.")) * size
        if kind == 1:
            return b" ".join(word(c).encode() for _ in range(min(size // 9, 40_000)))
        if kind == 2:
            return c.randbytes(size)
        text = json_part(c, -1).encode() + b","
        return b"[" + text * (size // len(text))
    return line


PIECE_BYTES = 400_000
RUNS = (*[(of_service, 9_000)] * 6, (of_template, 2_000), (of_template, 8_000),
        (of_counter, 3_000), (of_json, 2_000), (of_pairs, 2_500), (of_beginnings, 1_000),
        (of_bytes, 1_500), (of_mutations, 3_000), (of_long, 2))


def pieces(seed, total):
    """Lines with their ends, in pieces: `total` bytes in all, plus the rest of the last line."""
    c = random.Random(seed)
    made = 0
    while made < total:
        # In turn: lines of several kinds, which then share columns, or of one kind.
        runs = [c.choice(RUNS) for _ in range(c.choice((1, 1, 2, 5)))]
        makers = [make(c) for make, _ in runs]
        lines, size = [], 0
        for _ in range(c.randint(1, max(most for _, most in runs))):
            lines.append(c.choice(makers)().replace(b"\n", b""))
            size += len(lines[-1]) + 1
            if size > PIECE_BYTES:
                break
        made += size
        yield b"\n".join(lines) + b"\n"
