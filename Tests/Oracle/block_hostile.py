"""Blocks that each break one rule of what their header says of them, of the directory, the frames
and the tables, and odd but whole ones (block_cases.py)."""

import os
import struct
import subprocess
import tempfile

from block_broken import numbers
from block_cases import MIB, UTC, block, made, mine, small, whole
from block_table import LANE_ID
from block_writer import PLAIN, Layout, plain_frame, plain_lz4_frame, skippable, xxh32
from tree import CODECS
from wire import crc32c


# What the header says.

def _size(text):
    return small([text]).size


made("size-one-more", changed=lambda text: {"raw": _size(text) + 1})
made("size-one-less", changed=lambda text: {"raw": _size(text) - 1})
made("size-over-64-mib", changed={"raw": 64 * MIB + 1})
made("size-0", changed={"raw": 0})
made("records-over-2^19", changed={"count": (1 << 19) + 1, "raw": 64 * MIB})
made("records-over-size", changed={"raw": 64 * 8 - 1}, make=lambda text: small([text] * 8),
     lift={"record_bytes": 0, "size_more": MIB})
made("records-one-more", changed={"count": 2})
for _codec in CODECS:
    for _other in CODECS:
        if _codec != _other:
            made(f"codec-{_other}-of-{_codec}-frames", layout=Layout(codec=_codec),
                 changed={"codec": _other})


# The directory.

def directory(name, change, group="block", **layout):
    made(name, group=group, layout=Layout(
        change={"directory": lambda words: {**words, **change(words)}}, **layout))


def _entry(index, stored=0, raw=0, crc=0):
    def change(words):
        entries = [list(entry) for entry in words["entries"]]
        for place, more in enumerate((stored, raw, crc)):
            entries[index][place] += more
        return {"entries": entries}
    return change


for _codec in CODECS:
    directory(f"frame-content-one-more-{_codec}", _entry(1, raw=1), codec=_codec)
    directory(f"frame-content-one-less-{_codec}", _entry(1, raw=-1), codec=_codec)
    directory(f"frame-stored-one-less-{_codec}", _entry(1, stored=-1), codec=_codec)
directory("frame-over-ratio", _entry(0, raw=1 << 24))
directory("frame-crc", _entry(0, crc=-1))
directory("frame-count-0", lambda words: {"count": 0})
directory("frame-count-1", lambda words: {"count": 1})
directory("frame-count-over-entries", lambda words: {"count": 3})
directory("frame-count-over-1024", lambda words: {"count": 1025, "more": bytes(12 * 1023)})
directory("meta-over-frame", lambda words: {"meta": words["entries"][0][1] + 1})
directory("meta-one-less", lambda words: {"meta": words["meta"] - 1})
# Each leaf has a frame, the empty ones, too, as if the number were a number like any other.
made("plane-bytes-0", layout=Layout(plane_bytes=0, duplicates=0))
made("text-bytes-0", layout=Layout(text_bytes=0))
for _bit in range(1, 8):
    directory(f"flag-{_bit}", lambda words, _bit=_bit: {"flags": 1 << _bit}, "whole")
directory("flags-1-to-7", lambda words: {"flags": 0xFE}, "whole")
directory("reserved-byte", lambda words: {"reserved": 255}, "whole")
whole("directory-with-more", layout=Layout(more=b"of a later version"))


def rewritten(name, change):
    """`change` is applied to the bytes after the first line."""
    def make(text):
        words, stored = block(small([text]))
        return words, change(stored)
    mine("block", name, make)


def _frames(stored):
    return 8 + struct.unpack_from("<I", stored, 4)[0]


def _directory(length):
    """One of that length whose CRC matches."""
    def change(stored):
        content = stored[8:8 + length - 4]
        return skippable(content + struct.pack("<I", crc32c(content))) + stored[_frames(stored):]
    return change


rewritten("empty", lambda stored: b"")
rewritten("directory-crc", lambda stored: stored[:17] + b"\1" + stored[18:])
rewritten("directory-magic", lambda stored: skippable(b"CWDIRB01" + stored[16:_frames(stored) - 4]
          + struct.pack("<I", crc32c(b"CWDIRB01" + stored[16:_frames(stored) - 4])))
          + stored[_frames(stored):])
rewritten("directory-missing", lambda stored: stored[_frames(stored):])
rewritten("directory-in-another-frame", lambda stored: b"\x51" + stored[1:])
rewritten("directory-of-4-gib", lambda stored: stored[:4] + b"\xff" * 4 + stored[8:])
rewritten("directory-too-long", lambda stored: stored[:5] + b"\xff" + stored[6:])
rewritten("directory-of-27-bytes", _directory(27))
rewritten("directory-without-an-entry", _directory(40))
rewritten("directory-of-4-bytes", _directory(4))
rewritten("bytes-behind-frames", lambda stored: stored + b"\0")
rewritten("frame-behind-frames", lambda stored: stored + plain_frame(b""))
rewritten("frame-missing", lambda stored: stored[:stored.rindex(struct.pack("<I", 0xFD2FB528))])
rewritten("gap-before-frames", lambda stored: stored[:_frames(stored)] + bytes(8)
          + stored[_frames(stored):])


# Frames.

def framed(name, codec, frame):
    made(f"frame-{name}-{codec}", layout=Layout(codec=codec, frame=frame))


def _unsized(content):
    """With a window instead of the content size."""
    return (struct.pack("<IBB", 0xFD2FB528, 0, 0x38)
            + (len(content) << 3 | 1).to_bytes(3, "little") + content)


def _of_a_dictionary(content):
    return (struct.pack("<IBBQ", 0xFD2FB528, 0xE1, 7, len(content))
            + (len(content) << 3 | 1).to_bytes(3, "little") + content)


framed("without-content-size", "zstd", _unsized)
framed("without-content-size", "lz4", lambda content: plain_lz4_frame(content, 0x60))
framed("of-a-dictionary", "zstd", _of_a_dictionary)
framed("of-a-dictionary", "lz4",
       lambda content: plain_lz4_frame(content, 0x69, struct.pack("<I", 7)))
framed("of-the-legacy-format", "lz4", lambda content: struct.pack(
    "<III", 0x184C2102, len(content) + 2, 0) + content)
framed("without-its-end", "lz4", lambda content: plain_lz4_frame(content)[:-4])
framed("of-another-magic", "none", lambda content: b"\x51" + skippable(content)[1:])
for _codec in CODECS:
    framed("and-an-empty-one", _codec,
           lambda content, _codec=_codec: PLAIN[_codec](content) + PLAIN[_codec](b""))
framed("behind-a-skippable-one", "zstd",
       lambda content: skippable(b"") + plain_frame(content))
framed("behind-a-skippable-one", "lz4",
       lambda content: skippable(b"") + plain_lz4_frame(content))


def contents(name, change, **layout):
    made(name, layout=Layout(change={"contents": change}, **layout))


def _longer(content):
    """A zstd frame whose content is one byte longer than its header and the directory say."""
    frame = plain_frame(content + b"x")
    return frame[:5] + struct.pack("<Q", len(content)) + frame[13:]


def _shorter(content):
    frame = plain_lz4_frame(content[:-1])
    head = frame[4:6] + struct.pack("<Q", len(content))
    return frame[:4] + head + bytes([xxh32(head) >> 8 & 255]) + frame[15:]


framed("of-a-reserved-block", "zstd", lambda content: struct.pack(
    "<IBQ", 0xFD2FB528, 0xE0, len(content)) + (len(content) << 3 | 7).to_bytes(3, "little")
    + content)
framed("longer-than-it-says", "zstd", _longer)
framed("shorter-than-it-says", "lz4", _shorter)
framed("whose-head-does-not-match", "lz4", lambda content: plain_lz4_frame(content)[:14]
       + bytes([plain_lz4_frame(content)[14] ^ 1]) + plain_lz4_frame(content)[15:])
framed("of-no-sequences", "lz4", lambda content: plain_lz4_frame(content)[:15] + struct.pack(
    "<I", len(content)) + b"\xff" * len(content) + bytes(4))

def _tool(*words):
    """A frame of the tool, with the checksums that it adds by itself."""
    def frame(content):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "content")
            with open(path, "wb") as file:
                file.write(content)
            return subprocess.run([*words, "-q", "-c", path], check=True,
                                  stdout=subprocess.PIPE).stdout
    return frame


def _flipped(frame, at):
    return lambda content: frame(content)[:at] + bytes([frame(content)[at] ^ 1]) + (
        frame(content)[at + 1:] if at != -1 else b"")


_CHECKED = _tool("zstd", "--check"), _tool("lz4", "--content-size"), _tool(
    "lz4", "--content-size", "-BX", "--no-frame-crc")
for _codec, _name, _frame in zip(("zstd", "lz4", "lz4"), ("", "", "-of-blocks"), _CHECKED):
    whole(f"frame-with-checksums{_name}-{_codec}", layout=Layout(codec=_codec, frame=_frame))
framed("of-another-checksum", "zstd", _flipped(_CHECKED[0], -1))
framed("of-another-checksum", "lz4", _flipped(_CHECKED[1], -1))
framed("of-another-checksum-of-its-block", "lz4", _flipped(_CHECKED[2], -5))

contents("frame-of-no-leaf", lambda frames: frames + [b"leaf"])
contents("frame-of-no-leaf-empty", lambda frames: frames + [b""])
contents("pool-left", lambda frames: [frames[0] + b"\0", frames[1]])
contents("pool-short", lambda frames: [frames[0][:-1], frames[1]])
contents("text-left", lambda frames: [frames[0], frames[1] + b"\0"])
contents("text-short", lambda frames: [frames[0], frames[1][:-1]])


# Text leaves with frames of their own: the message is the longest leaf.

def _long(text):
    return small([_message(text)])


def texts(name, change, group="block", text_bytes=300, **more):
    made(name, _long, group=group, layout=Layout(
        text_bytes=text_bytes, change={change[0]: change[1]} if change else {}, **more))


def _words(**words):
    return "directory", lambda known: {**known, **words}


texts("text-frame", None, "whole")
texts("text-frame-for-each", None, "whole", text_bytes=1)
texts("text-in-the-text-that-has-a-frame", _words(text=300), text_bytes=1 << 20)
texts("text-in-a-frame-that-has-none", _words(text=1 << 20))
texts("text-frame-missing", ("contents", lambda found: found[:2]))


def _another_length(name, more):
    """The length in the meta stream is not that of the frame; all else is of the frame."""
    def write(writer, text):
        writer.byte(0)
        writer.varint(len(_message(text)) + more)
        writer.leaves.append((True, _message(text)))
    made(name, lambda text: small([_message(text)]), layout=Layout(text_bytes=300),
         instead=lambda writer, text: {"messages": lambda: write(writer, text)})


def _message(text):
    return text + b"x" * 300


_another_length("text-frame-too-long", -1)
_another_length("text-frame-too-short", 1)


def _planes(writer, text):
    """A sized text of 40 bytes between planes of 3 bytes, all with frames."""
    writer.byte(2, 5)
    writer.zigzag(0)
    writer.plane(b"\1\2\3")
    writer.sized_plane(b"")
    writer.text(b"abcabc")


def _both(text):
    return small([b"a", b"bc", b"abc"], logger=text)


def both(name, change, group="block"):
    made(name, _both, group=group, instead=lambda writer, text: {
        "messages": lambda: _planes(writer, text)}, layout=Layout(
            3, 6, duplicates=0, change={"contents": change} if change else {}))


both("frames-of-both-kinds", None, "whole")
both("frames-in-another-order", lambda frames: [*frames[:-2], frames[-1], frames[-2]])


# Columns.

def column(name, at, write, make=None, group="columns"):
    made(name, make, group=group, instead=lambda writer, text: {at: lambda: write(writer, text)})


def number(name, at, value, **words):
    column(name, at, lambda writer, text: numbers(value)(writer),
           lambda text: small([text], **words))


column("meta-left", "messages", lambda writer, text: (writer.strings([text]), writer.byte(0)))
column("varint-of-70-bits", "level", lambda writer, text: (
    writer.byte(0, 18 | 128, *[128] * 8, 126)), group="whole")
number("kind-128", "kind", 128)
number("kind-negative", "kind", -128)
number("kind-above-a-byte", "kind", 7 << 8)
number("level-256", "level", 256)
number("level-negative", "level", -1)
number("logger-beyond", "logger", 1)
number("logger-negative", "logger", -1)
number("context-beyond", "context", 1)
number("context-negative", "context", -1)
number("thread-beyond-32-bits", "thread", 1 << 32)


def processes(name, lane=LANE_ID, boot=bytes(16), owned=(0,)):
    """`owned`: the number of attributes of each. None has any."""
    count = len(owned)

    def write(writer, _):
        writer.varint(count)
        writer.strings([lane] * count)
        writer.strings([boot] * count)
        for value in (812, UTC, 1000):
            writer.ints([value] * count)
        writer.strings([b"p"] * count)
        writer.ints(owned)
    column(name, "processes", write)


processes("lane-of-15-bytes", lane=bytes(15))
processes("lane-of-17-bytes", lane=bytes(17))
processes("boot-of-15-bytes", boot=bytes(15))
processes("boot-of-0-bytes", boot=b"")
processes("attributes-negative", owned=(-1,))
processes("attributes-that-cancel-out", owned=(1, -1))
processes("attributes-that-wrap", owned=(2**63 - 1, 2**63 - 1, 2))
processes("attributes-of-2^62", owned=(1 << 62,))


def threads(name, owner):
    def write(writer, _):
        writer.varint(1)
        for value in (owner, 1, 813):
            writer.ints([value])
        writer.strings([b""])
    column(name, "threads", write)


threads("process-beyond", 1)
threads("process-negative", -1)


def _counts(name, at, most):
    """A table that claims one entry more than it has, and far more than a block may have."""
    for what, count in (("over", most + 1), ("of-2^62", 1 << 62), ("of-2^64-1", 2**64 - 1)):
        column(f"{name}-{what}-claimed", at,
               lambda writer, _, count=count: writer.varint(count), group="limits")


for _name, _at, _most in (("processes", "processes", 4096), ("threads", "threads", 65536),
                          ("loggers", "loggers", 65536), ("sites", "sites", 65536),
                          ("formats", "formats", 65536), ("contexts", "contexts", 65536)):
    _counts(_name, _at, _most)


def lines(name, values, lengths, leaf, group="strings"):
    def write(writer, _):
        writer.byte(10)
        writer.ints(lengths)
        writer.text(leaf)
    column("sized-lines-" + name, "messages", write,
           lambda text: small(values, logger=text), group)


lines("too-few", [b"a", b"bc"], [1, 2], b"a\nbc\nx")
lines("without-the-last-newline", [b"a", b"bc"], [1, 2], b"a\nbc")
lines("without-a-newline", [b"a", b"bc"], [1, 2], b"a.bc\n")
lines("with-a-space-at-the-end", [b"a", b"bc"], [1, 2], b"a\nbc ")
lines("with-two-newlines", [b"a", b"bc"], [1, 2], b"a\nbc\n\n")
lines("that-count-newlines", [b"a", b"bc"], [2, 3], b"a\nbc\n")
lines("negative", [b"abc", b""], [4, -1], b"abcd\n")
lines("of-minus-1-and-no-newline", [b"abc", b""], [3, -1], b"abc\n")
lines("too-short", [b"a", b"b"], [1, 0], b"a\nb\n")
lines("too-long", [b"a", b"b"], [1, 3], b"a\nb\n")
lines("that-wrap", [b"a", b"b", b""], [2**63 - 1, 2**63 - 1, 4], b"a\nb\n\n")
lines("of-newlines", [b"a\nb", b"\n", b"", b"\n\n"], [3, 1, 0, 2], b"a\nb\n\n\n\n\n\n\n", "whole")
lines("empty", [b"", b""], [0, 0], b"\n\n", "whole")
for _number in (11, 255):
    column(f"strings-codec-{_number}", "messages",
           lambda writer, text, _number=_number: (writer.byte(_number), writer.text(text)))
