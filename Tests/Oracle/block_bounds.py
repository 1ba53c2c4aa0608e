"""Blocks at and beyond the limits of tables, frames and the meta stream, whole ones whose parts a
reader ignores, and sums of columns that exceed the size of their block (block_cases.py)."""

import struct
from dataclasses import replace
from functools import partial

from block_broken import FIELDS
from block_cases import MIB, UTC, Clock, block, by_hand, made, mine, small, whole
from block_hostile import column, rewritten
from block_limits import SITE
from block_table import LANE_ID, Format, Process, Site, Thread
from block_writer import Layout, plain_lz4_frame, skippable
from wire import crc32c

MOST = 2**32 - 1


def _process(attributes=0, pid=812, created=UTC, name=b"p", pair=(b"", b"")):
    return Process(LANE_ID, bytes(16), pid, created, created, name, [pair] * attributes)


def _thread(serial=1, identifier=813, name=b""):
    return Thread(0, serial, identifier, name)


def _site(line=9, file=b"b.c", function=b"f"):
    return Site(line, file, function)


def _format(line=7, file=b"a.c", function=b"main", text=b"late", types=b""):
    return Format(line, file, function, 1, text, types)


def limit(name, make, most, lift, **words):
    mine("whole", name, lambda text: block(make(text, most)), **words)
    mine("limits", name + "-over", lambda text: block(make(text, most + 1)), lift=lift, **words)


limit("processes-4096", lambda text, count: replace(
    small([text]), processes=[_process()] * count), 4096, {"processes": 4097})
limit("attributes-65536", lambda text, count: replace(
    small([text]), processes=[_process(1), _process(count - 1)]), 65536,
    {"attributes": 65537})
limit("threads-65536", lambda text, count: replace(
    small([text]), threads=[_thread()] * count), 65536, {"entries": 65537})
limit("loggers-65536", lambda text, count: replace(
    small([text]), loggers=[b"h"] * count), 65536, {"entries": 65537})
limit("sites-65536", lambda text, count: replace(
    small([text]), sites=[_site(1, b"", b"")] * count), 65536, {"entries": 65537})


def _frames_of_columns(text, more):
    """As many frames as are allowed, plus `more`: columns of a template, each of 20 bytes."""
    def found(count):
        def write(writer):
            writer.byte(4)
            writer.varint(1, count)
            writer.text(b"\1" * count + b"\0")
            writer.sized_plane(bytes(count))
            writer.byte(0)
            for _ in range(count):
                writer.byte(0)
                writer.text(b"x" * 20)
        return block(small([b"x" * 20 * count], logger=text), Layout(text_bytes=20),
                     lambda writer, table: {"messages": lambda: write(writer)})

    others = struct.unpack_from("<H", found(100)[1], 18)[0] - 100
    return found(1024 - others + more)


mine("whole", "frames-1024", lambda text: _frames_of_columns(text, 0))
mine("limits", "frames-1024-over", lambda text: _frames_of_columns(text, 1),
     lift={"frame_count": 1025})


def _arguments(text, count, length, more=0):
    """Records with that long an argument, which their text does not show: all of one value."""
    argument = struct.pack("<I", length) + b"m" * length
    return small([text + b"x" * more], argument * count, b"\6", count)


def _size_64_mib(text, size):
    left = size - _arguments(text, 1030, 65000).size
    return _arguments(text, 1030, 65000, left)


limit("size-64-mib", _size_64_mib, 64 * MIB, {"size": 65 * MIB}, heavy=True)


# Few bytes may stand for many: no ratio of the size to what is stored.

whole("size-of-32768-a-stored-byte", lambda text: _arguments(text, 400, 65000))
whole("records-2^19", lambda text: small(
    [text] * (1 << 19), rows=[(Clock.now, number, 9) for number in range(1 << 19)]), heavy=True)


# Limits of FORMAT §11.10, exactly.

def _content_of(stored):
    """Of all frames together."""
    count, = struct.unpack_from("<H", stored, 18)
    return sum(struct.unpack_from("<I", stored, 36 + 12 * at)[0] for at in range(count))


def _frames_of(text, total):
    """An unused entry fills the text."""
    def found(length):
        def write(writer):
            writer.byte(3, 0, 2, 0)
            writer.strings([text, b"x" * length])
        return by_hand(small([text] * 2), write)
    return found(90 * MIB + total - _content_of(found(90 * MIB)[1]))


def exact(name, make, most, lift):
    """Like limit(), where `make` makes the whole block."""
    mine("whole", name, lambda text: make(text, most), heavy=True)
    mine("limits", name + "-over", lambda text: make(text, most + 1), lift=lift, heavy=True)


exact("frames-96-mib", _frames_of, 96 * MIB, {"frames": 1 << 30})


def _meta_of(text, total):
    """Columns of one number each: in the meta stream 6 bytes, or fewer for small ones."""
    small_ones = {2: 0, 3: 100, 4: 10_000, 5: 1 << 21}

    def found(sizes):
        numbers = [small_ones.get(size, 2**31 - 1) for size in sizes]
        return block(small([text], struct.pack(f"<{len(numbers)}i", *numbers),
                           b"\1" * len(numbers), 1))
    some = [6] * 690_000
    more, rest = divmod(total - struct.unpack_from("<I", found(some)[1], 20)[0], 6)
    return found(some + [6] * (more - (rest == 1)) + ([3, 4] if rest == 1 else [rest][:rest]))


exact("meta-4-mib", _meta_of, 4 * MIB, {"meta": 1 << 30})


# Numbers.

def bounded(name, make, most=MOST):
    whole(f"{name}-{most}", lambda text: make(text, most))
    for what, value in (("over", most + 1), ("negative", 2**64 - 1), ("of-2^63", 1 << 63)):
        made(f"{name}-{what}", lambda text, value=value: make(text, value), group="columns")


bounded("process-id", lambda text, value: replace(
    small([text]), processes=[_process(pid=value)]))
bounded("thread-serial", lambda text, value: replace(
    small([text]), threads=[_thread(serial=value)]))
bounded("thread-id", lambda text, value: replace(
    small([text]), threads=[_thread(identifier=value)]))
bounded("site-line", lambda text, value: replace(
    small([text], sections=[SITE]), sites=[_site(line=value)]))
bounded("format-line", lambda text, value: small(
    [text], types=b"\1", deferred=bytes(4), count=1,
    formats=[_format(line=value, text=text, types=b"\1")]))
whole("process-created-2^64-1", lambda text: replace(
    small([text]), processes=[_process(created=2**64 - 1)]))


def style(name, value, group="columns"):
    """A format that no record has."""
    def write(writer, _):
        writer.varint(1)
        writer.ints([7])
        writer.strings([b"a.c"])
        writer.strings([b"main"])
        writer.ints([value])
        writer.strings([b"late"])
        writer.strings([b""])
    column(name, "formats", write, group=group)


style("style-255", 255, "whole")
style("style-256", 256)
style("style-negative", -1)
style("style-negative-of-a-byte", -255)


# Sections and lists of fields.

def _sections(number):
    return [struct.pack("<BBHII", 3, 0, 0, 4, number)]


def _in_form_0(run):
    return lambda writer, _: (writer.byte(0), writer.strings([run]))


for _what, _number in (("beyond", 1), ("of-2^32-1", MOST)):
    made(f"site-{_what}", partial(lambda text, number: small(
        [text], sections=_sections(number)), number=_number), group="columns")
    column(f"site-{_what}-in-form-0", "sections", _in_form_0(_sections(_number)[0]),
           partial(lambda text, number: small([text], sections=_sections(number)), number=_number))
made("site-of-no-sites", lambda text: replace(
    small([text], sections=_sections(0)), sites=[]), group="columns")


def shown_as(name, make, shown):
    """A whole block of whose parts a reader ignores some. `shown` makes what it shows."""
    whole(name, make, changed=lambda text: {"shown": shown(text)})


def _cut_fields(run):
    return lambda text: small([text], contexts=[(run, bytes(25))]), lambda text: small(
        [text], contexts=[(FIELDS, bytes(25))])


shown_as("fields-that-end-in-a-key", *_cut_fields(b"\2" + FIELDS[1:] + b"\1\0\2\0k"))
shown_as("fields-that-end-in-a-value", *_cut_fields(b"\2" + FIELDS[1:] + b"\1\0\1\0k" + bytes(7)))
shown_as("fields-that-end-before-their-count", *_cut_fields(b"\3" + FIELDS[1:]))
shown_as("fields-before-other-bytes", *_cut_fields(FIELDS + b"more"))


def _section(kind, body):
    return struct.pack("<BBHI", kind, 0, 0, len(body)) + body


def ignored(name, more):
    shown_as(name, lambda text: small([text], sections=[_section(2, FIELDS) + more]),
             lambda text: small([text], sections=[_section(2, FIELDS)]))


ignored("sections-that-end-in-a-head", _section(9, bytes(8))[:7])
ignored("sections-that-end-in-a-body", _section(9, bytes(8))[:-1])
ignored("section-message", _section(1, b"another"))
ignored("section-kind", _section(8, b"\3"))
ignored("section-arguments", _section(10, b"\1\2\3\4"))
ignored("section-definition", _section(11, b"definition"))
ignored("section-of-an-unknown-kind", _section(200, b"unknown"))
ignored("section-of-an-unknown-kind-before", _section(0, b""))


# Frames and the directory.

def _no_text_left(text):
    """All texts have frames, so frame 1 is empty."""
    return replace(small([text]), threads=[_thread(name=b"t")])


for _what, _flags in (("with", 0x68), ("without", 0x60)):
    whole(f"empty-lz4-frame-{_what}-its-size", _no_text_left, Layout(
        text_bytes=1, codec="lz4", frame=lambda content, flags=_flags: plain_lz4_frame(
            content, 0x68 if content else flags)))
made("empty-lz4-frame-of-a-byte", _no_text_left, Layout(
    text_bytes=1, codec="lz4", frame=lambda content: plain_lz4_frame(
        content or b"x", 0x68 if content else 0x60)))


def _all_planes(writer, _):
    """No text leaf at all."""
    def strings(values):
        if values:
            writer.byte(9, len(values[0]))
            writer.plane(b"".join(values))
    writer.strings = strings
    return {}


for _count in (0, 1):
    made(f"frame-count-{_count}-and-no-others", lambda text: replace(
        small([text], types=b"\1"), threads=[_thread(name=b"t")]), instead=_all_planes,
        layout=Layout(change={"contents": lambda found, count=_count: found[:count]}),
        group="whole" if _count else "block")
for _what, _change in (
        ("whole", None), ("left", lambda found: [found[0] + b"\0"]),
        ("short", lambda found: [found[0][:-1]]),
        ("and-a-text", lambda found: [*found, b""]),
        ("and-a-leaf", lambda found: [*found, b"", b"x"])):
    made(f"one-frame-{_what}", lambda text: small([text]), group="block" if _change else "whole",
         layout=Layout(joined=True, change={"contents": _change} if _change else {}))
for _what in ("text", "plane"):
    made(f"one-frame-and-a-leaf-of-{_what}-bytes", lambda text: replace(
        small([text], types=b"\1"), threads=[_thread(name=b"t")]),
        instead=_all_planes if _what == "plane" else None, layout=Layout(
            joined=True, change={"directory": lambda words, what=_what: {**words, what: 1}}))


def _last_crc_twice(stored):
    """The CRC of the last frame is also that of the directory: the latter is 4 bytes too short. The
    bootID, 4 bytes behind the laneID in the text, makes them equal."""
    length, = struct.unpack_from("<I", stored, 4)
    content, frames = stored[8:8 + length - 8], stored[8 + length:]
    first, second = (struct.unpack_from("<I", content, 24 + 12 * at)[0] for at in range(2))
    frame, at = frames[first:], frames[first:].index(LANE_ID) + 16
    assert len(frame) == second and len(content) == 44 and frame[at:at + 4] == bytes(4)

    def with_word(word):
        return frame[:at] + struct.pack("<I", word) + frame[at + 4:]

    # A CRC is linear: each bit of the word flips some of its bits.
    empty, rows, word = crc32c(frame), {}, 0
    left = crc32c(content) ^ empty
    for bit in range(32):
        flips, bits = crc32c(with_word(1 << bit)) ^ empty, 1 << bit
        while flips.bit_length() in rows:
            other, of = rows[flips.bit_length()]
            flips, bits = flips ^ other, bits ^ of
        rows[flips.bit_length()] = flips, bits
    while left:
        flips, bits = rows[left.bit_length()]
        left, word = left ^ flips, word ^ bits
    frame = with_word(word)
    assert crc32c(frame) == crc32c(content)
    return skippable(content + struct.pack("<I", crc32c(content))) + frames[:first] + frame


rewritten("directory-without-its-crc", _last_crc_twice)


# Columns that hold more than the size says.

MANY = b"many"


def _const(writer, _, length):
    writer.byte(0)
    writer.text(b"m" * length)


def _dictionary(writer, values, length):
    writer.byte(3, 0, 1)
    writer.planes([0] * len(values))
    _const(writer, values, length)


def many(name, make, put=_const):
    """`make` makes a block of `count` equal strings in some column. `put` writes longer ones for
    them: 64 of 1,000 bytes, and 4,096 of 1 MiB, for which there may be no memory."""
    def found(count, length, text):
        def instead(writer, _):
            write = writer.strings

            def strings(values):
                if MANY in values[:1]:
                    put(writer, values, length)
                else:
                    write(values)
            writer.strings = strings
            return {}
        return block(make(text, count), None, instead)

    mine("limits", f"size-over-by-{name}", partial(found, 64, 1000), lift={"size_more": MIB})
    mine("limits", f"size-far-over-by-{name}", partial(found, 4096, MIB))


def _of_tables(name, entry):
    return lambda text, count: replace(small([text]), **{name: [entry] * count})


def _text_fields(count):
    run = struct.pack("<HBBH", 1, 5, 0, 1) + b"k" + struct.pack("<I", len(MANY)) + MANY
    return [(run, bytes(25))] * count


for _put in (_const, _dictionary):
    many(f"messages-{_put.__name__[1:]}", lambda text, count: small(
        [MANY] * count, logger=text), _put)
many("process-names", _of_tables("processes", _process(name=MANY)))
for _what, _pair in (("keys", (MANY, b"")), ("values", (b"", MANY))):
    many(f"attribute-{_what}", partial(lambda text, count, pair: replace(
        small([text]), processes=[_process(count, pair=pair)]), pair=_pair))
many("thread-names", _of_tables("threads", _thread(name=MANY)))
many("loggers", _of_tables("loggers", MANY))
many("site-files", _of_tables("sites", _site(file=MANY)))
many("site-functions", _of_tables("sites", _site(function=MANY)))
many("format-files", _of_tables("formats", _format(file=MANY)))
many("format-functions", _of_tables("formats", _format(function=MANY)))
many("formats", _of_tables("formats", _format(text=MANY)))
many("contexts", lambda text, count: small([text], contexts=[(MANY, bytes(25))] * count))
many("fields", lambda text, count: small([text], contexts=_text_fields(count)))
many("arguments", lambda text, count: small(
    [text], (struct.pack("<I", len(MANY)) + MANY) * count, b"\6", count))
many("sections", lambda text, count: small([text] * count, sections=[MANY] * count))
many("section-bodies", lambda text, count: small(
    [text] * count, sections=[_section(7, MANY)] * count))
