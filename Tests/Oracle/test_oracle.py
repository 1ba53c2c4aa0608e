#!/usr/bin/env python3
"""Tests of the oracle itself on bytes laid out by hand from docs/FORMAT.md: it must not be tested
on the engine's output alone."""

import itertools
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from archive import Archive  # noqa: E402
from decode import Store, in_order, running_boot  # noqa: E402
from live import monotonic  # noqa: E402
from record import as_json, level_name, time_text  # noqa: E402
from wire import Bytes, crc32c  # noqa: E402

LANE_ID, SALT, SEGMENT_SALT = bytes(range(16)), 0xABCD, 0x1234
LANE = "20261121T081530Z-812-9f3c5a0de1b27788"
UTC = 1_790_000_000 * 10**9


def put(data, at, form, *values):
    struct.pack_into("<" + form, data, at, *values)


def entry(kind, identifier, payload):
    data = bytearray(24) + payload
    put(data, 0, "QI", SALT, len(data))
    put(data, 16, "B3xI", kind, identifier)
    put(data, 12, "I", crc32c(data[16:]))
    return data + bytes(-len(data) % 16)


def record(kind, payload, delta=0, identifier=0, level=9, flags=0):
    data = struct.pack("<IIIBBH", 16 + len(payload), delta, identifier, level, kind, flags)
    data += payload
    return data + bytes(-len(data) % 8)


def section(kind, payload):
    return struct.pack("<BBHI", kind, 0, 0, len(payload)) + payload


def field(kind, key, value):
    return struct.pack("<BBH", kind, 0, len(key)) + key + value


SITE = (struct.pack("<IBBBB", 12, 0, 4, 0, 0) + b"\x03a.c\x04main\x0f%d|%5.1f|%.*s%%"
        + b"\1\3\1\6")


def lane(records, boot=None, dropped=0, causes=0):
    """A lane file with one chunk of `records` in segment 0."""
    data = bytearray(65536)
    data[0:8] = b"CWLANE01"
    put(data, 8, "II", 1, 65536)
    data[32:48] = LANE_ID
    data[48:64] = running_boot() if boot is None else boot
    put(data, 80, "QI", SALT, 812)
    put(data, 112, "QQ", UTC, 1000)
    put(data, 128, "IIIIII", 8192, 8192, 4096, 64, 16384, 49152)
    put(data, 4096, "QQQQQ", dropped, 0, 5000, 6000, causes)
    catalog = entry(1, 7, b"net.http") + bytes(32) + entry(2, 3, SITE)
    data[8192:8192 + len(catalog)] = catalog
    body = b"".join(records)
    segment = 16384
    data[segment:segment + 8] = b"CWSEGM01"
    put(data, segment + 8, "II", 1, 4096)
    data[segment + 32:segment + 48] = LANE_ID
    put(data, segment + 72, "IIQQQ", 0, 1, SEGMENT_SALT, 49152, 10**9)
    put(data, segment + 112, "I", 1)
    put(data, segment + 128, "Q", 49152)
    put(data, segment + 256, "Q", 49152)
    put(data, segment + 516, "I", 2)
    put(data, segment + 576, "QQQQ", 0, 1000, 0, UTC)
    put(data, segment + 608, "QQQQ", 1000, 3000, 0, UTC + 2000)
    # The chunk is not first: a reader skips granules without a header.
    chunk = segment + 4096 + 2048
    put(data, chunk, "QIIQQIII", SEGMENT_SALT, 128 + len(body), 4096, 6144, 100, 1, 5, 813)
    data[chunk + 128:chunk + 128 + len(body)] = body
    return data


class Live(unittest.TestCase):
    def lines(self, data):
        with tempfile.TemporaryDirectory() as store:
            os.mkdir(os.path.join(store, "lanes"))
            with open(os.path.join(store, "lanes", LANE + ".lane"), "wb") as file:
                file.write(data)
            read = Store(store)
            self.problems = read.problems
            self.records = [found for _, found in in_order(read.records)]
            return [json.loads(as_json(found)) for found in self.records]

    def test_text_and_time(self):
        first, second = self.lines(lane([record(1, b"hello", 50, 7),
                                         record(4, struct.pack("<Q", 2000)),
                                         record(1, b"a\xff", 1, 0, 11)]))
        self.assertEqual(first, {
            "time": time_text(UTC + 300), "level": "INFO", "logger": "net.http",
            "message": "hello", "pid": 812, "tid": 813, "kind": "log", "process": None,
            "service": None, "host": None, "resource": {},
            "record_id": LANE_ID[:12].hex() + "00000001" + "0000000500000000"})
        self.assertEqual(second["time"], time_text(UTC + 4002))
        self.assertEqual(second["message_base64"], "Yf8=")
        self.assertEqual(second["level"], "NOTICE+1")
        self.assertEqual([found.sequence for found in self.records], [5 << 32, (5 << 32) + 1])

    def test_rich_with_context_site_and_trace(self):
        context = struct.pack("<H", 1) + field(5, b"user", struct.pack("<I", 2) + b"me")
        own = struct.pack("<H", 2) + field(1, b"n", struct.pack("<q", -5)) + field(4, b"b", b"\1")
        trace = bytes(range(1, 17)) + bytes(8) + b"\1"
        failure = struct.pack("<III", 1, 1, 0) + b"EM"
        line, = self.lines(lane([
            record(5, context), record(6, trace),
            record(2, section(1, b"m") + section(2, own) + section(3, struct.pack("<I", 3))
                   + section(7, failure) + section(6, struct.pack("<Q", UTC)), 0, 7, 17)]))
        self.assertEqual(list(line["fields"].items()), [
            ("n", -5), ("b", True), ("user", "me"), ("exception.type", "E"),
            ("exception.message", "M")])
        self.assertEqual((line["file"], line["line"], line["function"]), ("a.c", 12, "main"))
        self.assertEqual(line["trace_id"], bytes(range(1, 17)).hex())
        self.assertNotIn("span_id", line)
        self.assertEqual(line["time"], time_text(UTC))

    def test_numbers_that_json_has_not(self):
        values = [float("nan"), float("inf"), float("-inf"), 1.5]
        own = struct.pack("<H", 4) + b"".join(
            field(3, b"%d" % at, struct.pack("<d", value)) for at, value in enumerate(values))
        line, = self.lines(lane([record(2, section(1, b"m") + section(2, own))]))
        self.assertEqual(list(line["fields"].values()), ["NaN", "Infinity", "-Infinity", 1.5])

    def test_deferred(self):
        arguments = struct.pack("<idi", -7, 2.25, 2) + struct.pack("<I", 2) + b"ab"
        short = struct.pack("<I", 3) + arguments[:-1]
        lines = self.lines(lane([
            record(3, struct.pack("<I", 3) + arguments, 0, 7),
            record(9, struct.pack("<I", len(SITE)) + SITE + arguments, 0, 7),
            record(3, short, 0, 7), record(3, struct.pack("<IH", 99, 0xABCD), 0, 7)]))
        self.assertEqual([line["message"] for line in lines], [
            "-7|  2.2|ab%", "-7|  2.2|ab%", "%d|%5.1f|%.*s%%", "? site 99: cd ab"])
        self.assertEqual((lines[1]["file"], lines[1]["line"], lines[1]["function"]),
                         ("a.c", 12, "main"))
        self.assertEqual({line["logger"] for line in lines}, {"net.http"})

    def test_deferred_of_swift(self):
        """Style 3, and messages of rich records from sections 3 and 10, or 11 and 10."""
        form = b"{} {} {:.2f} {{}} {}"
        site = (struct.pack("<IBBBB", 12, 0, 4, 3, 0) + b"\x03a.c\x04main"
                + varint(len(form)) + form + b"\3\x0d\3\x09")
        cases = [
            (1e16, 0.1, 2.675, 1, "1e+16 0.1 2.67 {} true"),
            (9007199254740992.0, 16777216.0, 0.0, 0, "9007199254740992.0 16777216.0 0.00 {} false"),
            (9007199254740994.0, 16777218.0, 0.5, 1,
             "9.007199254740994e+15 1.6777218e+07 0.50 {} true"),
            (-0.0, -0.0001, 5.0, 1, "-0.0 -0.0001 5.00 {} true"),
            (5e-324, 1e-05, 1e22, 0, "5e-324 1e-05 10000000000000000000000.00 {} false"),
            (float("inf"), float("-inf"), 1.0, 0, "inf -inf 1.00 {} false"),
            (123456.789, 1.5, 1.0, 0, "123456.789 1.5 1.00 {} false"),
        ]
        records = []
        for double, single, fixed, flag, _ in cases:
            packed = struct.pack("<dfdB", double, single, fixed, flag)
            records.append(record(9, struct.pack("<I", len(site)) + site + packed, 0, 7))
            records.append(record(2, section(11, site) + section(10, packed)
                                  + section(2, struct.pack("<H", 1) + field(4, b"b", b"\1")), 0, 7))
        nan = struct.pack("<QIdB", 0xFFF800000000004D, 0x7FA00000, 1.0, 1)
        records.append(record(9, struct.pack("<I", len(site)) + site + nan, 0, 7))
        arguments = struct.pack("<idi", -7, 2.25, 2) + struct.pack("<I", 2) + b"ab"
        records.append(record(2, section(3, struct.pack("<I", 3)) + section(10, arguments), 0, 7))
        lines = self.lines(lane(records))
        self.assertEqual([line["message"] for line in lines[:-2:2]], [case[4] for case in cases])
        self.assertEqual([line["message"] for line in lines[1:-2:2]], [case[4] for case in cases])
        self.assertEqual([line["fields"] for line in lines[1:-2:2]], [{"b": True}] * len(cases))
        self.assertEqual(lines[-2]["message"], "-nan(0x4d) snan 1.00 {} true")
        self.assertEqual((lines[-1]["message"], lines[-1]["line"]), ("-7|  2.2|ab%", 12))

    def test_gap_and_what_is_left(self):
        payload = struct.pack("<IIQQQQQ", 0, 0, 2, 5, 1500, 1600, 0)
        lines = self.lines(lane([record(7, payload, 0, 0, 0)], dropped=9))
        self.assertEqual([line["message"] for line in lines],
                         ["3 records were not kept", "4 records were not kept"])
        self.assertEqual(lines[0]["fields"],
                         {"gap.records": 3, "gap.first": UTC + 500, "gap.last": UTC + 600,
                          "gap.runs": "0:2-5"})
        self.assertEqual((lines[0]["kind"], lines[0]["level"]), ("gap", "WARN"))

    def test_a_gap_of_one(self):
        self.assertEqual(self.lines(lane([], dropped=1))[0]["message"], "1 record was not kept")

    def test_causes_of_gaps(self):
        payload = struct.pack("<IIQQQQQ", 0, 0, 2, 5, 1500, 1600, 1 << 4)
        lines = self.lines(lane([record(7, payload, 0, 0, 0)], dropped=9, causes=1 | 1 << 3))
        self.assertEqual([line["message"] for line in lines], [
            "3 records were not kept: no file descriptor is free",
            "4 records were not kept: the disk is full, the limit of file sizes is reached"])
        self.assertEqual([line["fields"]["gap.causes"] for line in lines],
                         ["descriptors", "disk_full file_limit"])

    def test_damage_ends_the_chunk_only(self):
        lines = self.lines(lane([record(1, b"kept"), struct.pack("<I", 3) + bytes(12)]))
        self.assertEqual([line["message"] for line in lines], ["kept"])
        self.assertEqual(len(self.problems), 1)

    def test_another_boot_is_unverified(self):
        self.lines(lane([record(1, b"x")], boot=bytes([9]) * 16))
        self.assertTrue(self.records[0].unverified)

    def test_clock_goes_back_within_a_thread(self):
        lines = self.lines(lane([record(1, b"a", 500), record(1, b"b", 100)]))
        self.assertEqual([line["message"] for line in lines], ["a", "b"])


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def zigzag(value):
    return varint((value << 1) ^ (value >> 63))


def skippable(content):
    return struct.pack("<II", 0x184D2A50, len(content)) + content


class HandMade:
    """The meta stream and the leaves of a block, byte by byte (FORMAT §11.6)."""

    def __init__(self):
        self.meta, self.planes, self.text = b"", b"", b""
        self.both = b""  # in their order

    def put(self, *values):
        self.meta += b"".join(map(varint, values))

    def const(self, *values):
        """Ints that are all equal."""
        for value in values:
            self.meta += b"\0" + zigzag(value)

    def planes_of(self, values, width=1):
        self.put(width)
        for byte in range(width):
            leaf = bytes(value >> 8 * byte & 255 for value in values)
            self.planes, self.both = self.planes + leaf, self.both + leaf

    def offset(self, values, width=1):
        self.meta += b"\1" + zigzag(0)
        self.planes_of(values, width)

    def leaf(self, content):
        self.put(len(content))
        self.text, self.both = self.text + content, self.both + content

    def same(self, *texts):
        """Strings that are all equal."""
        for text in texts:
            self.meta += b"\0"
            self.leaf(text)

    def lines(self, texts):
        self.meta += b"\x0a"
        self.offset([len(text) for text in texts])
        self.leaf(b"".join(text + b"\n" for text in texts))


def columns(messages):
    """The last message is that of a deferred record."""
    count, made = len(messages), HandMade()
    made.put(1)  # processes
    made.same(LANE_ID, bytes(16))
    made.const(812, UTC, 1000)
    made.same(b"p")
    made.const(0)
    made.put(1)  # threads
    made.const(0, 1, 813)
    made.same(b"")
    made.put(1)  # loggers
    made.same(b"root")
    made.put(0, 1)  # sites, formats
    made.const(7)
    made.same(b"a.c", b"main")
    made.const(0)
    made.same(b"%s", b"\6")
    made.offset([0] * (count - 1) + [64])  # kind
    made.const(9, 0)  # level, thread
    made.meta += b"\2" + zigzag(1000)  # time: deltas
    made.planes_of([0] + [10] * (count - 1))
    made.const(UTC - 1000)
    made.offset([5 << 32] + [0] * (count - 1), 5)  # sequence
    made.const(0, 1, 0)  # logger, context, format
    made.put(1, 0)  # contexts: form 0
    made.same(bytes(2))
    made.put(1)  # traces: form 1
    made.same(bytes([1]) * 16, bytes([1]) * 8)
    made.const(1)
    made.const(0)  # arguments
    made.same(messages[-1])
    if count > 1:
        made.lines(messages[:-1])
    # One entry each of processes, threads, loggers, formats and contexts; the length of a text.
    texts = LANE_ID + bytes(16) + b"p" + b"root" + b"a.cmain%s\6" + bytes(2)
    size = 64 * (count + 5) + len(texts) + 4
    return made, size + sum(map(len, messages)) + count - 1


def archive(messages, codec, is_one=False):
    """One block, whose texts have a frame of their own, or not."""
    import hashlib
    name = LANE.encode()
    covers = LANE_ID + struct.pack("<QQ", 0, 0) + varint(len(name)) + name + bytes(12)
    identifier = hashlib.sha256(b"cordwood archive 1" + bytes(4) + LANE_ID + bytes(12)
                                + struct.pack("<QQ", 0, 0)).digest()[:16]
    head = bytearray(72) + covers
    head[0:8] = b"CWARCH01"
    put(head, 8, "II", 1, len(head))
    head[32:48] = identifier
    put(head, 56, "I", 1)
    put(head, 60, "I", crc32c(head))
    count, (made, size) = len(messages), columns(messages)
    head_of_pool = made.meta + b"\0"  # no duplicates
    contents = [head_of_pool + made.both] if is_one else [head_of_pool + made.planes, made.text]
    frames = [framed(content, codec) for content in contents]
    directory = b"CWCOLS01" + struct.pack("<BBHIII", 0, 0, len(frames), len(made.meta), 9999, 9999)
    for frame, content in zip(frames, contents):
        directory += struct.pack("<III", len(frame), len(content), crc32c(frame))
    directory += struct.pack("<I", crc32c(directory))
    stored = skippable(directory) + b"".join(frames)
    block = bytearray(128)
    block[0:8] = b"CWBLCK01"
    put(block, 24, "BBHIQQ", 0, codec, 0, count, size, len(stored))
    put(block, 72, "I", crc32c(stored))
    put(block, 80, "I", crc32c(block))
    foot = bytearray(80 + 72)
    foot[0:8] = b"CWFOOT01"
    foot[8:24] = identifier
    put(foot, 24, "Q", count)
    put(foot, 56, "I", 1)
    place = 8 + len(head)
    put(foot, 80, "QQ", place, 136 + len(stored))
    put(foot, 80 + 40, "I", count)
    foot += struct.pack("<I", 8 + len(foot) + 16)
    foot += struct.pack("<I", crc32c(foot)) + b"CWAREND1"
    return skippable(bytes(head)) + skippable(bytes(block)) + stored + skippable(bytes(foot))


def framed(content, codec):
    if codec == 2:
        return skippable(content)
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        tool = (["zstd", "-qc", file.name], ["lz4", "-qc", "--content-size", file.name])[codec]
        return subprocess.run(tool, stdout=subprocess.PIPE, check=True).stdout


class Archived(unittest.TestCase):
    def read(self, data):
        with tempfile.NamedTemporaryFile(suffix=".cwa") as file:
            file.write(data)
            file.flush()
            read = Store(file.name)
            self.problems = read.problems
            return [found for _, found in in_order(read.records)]

    def test_every_codec(self):
        for codec, is_one in itertools.product((0, 1, 2), (False, True)):
            records = self.read(archive([b"one", b"two\n\xff", b""], codec, is_one))
            self.assertEqual(self.problems, [])
            self.assertEqual([found.message for found in records], [b"one", b"two\n\xff", b""])
            self.assertEqual([found.utc for found in records], [UTC, UTC + 5, UTC + 10])
            self.assertEqual(records[2].sequence, (5 << 32) + 2)
            self.assertEqual(records[0].lane.name, LANE)
            self.assertEqual(records[0].trace, bytes([1]) * 25)

    def test_what_tools_see(self):
        for tool, codec, is_one in itertools.product(("zstd", "lz4"), (0, 1), (False, True)):
            if (tool, codec) in (("zstd", 0), ("lz4", 1)):
                run = subprocess.run([tool, "-dc"], input=archive(
                    [b"one", b"two", b"-"], codec, is_one), stdout=subprocess.PIPE, check=True)
                self.assertTrue(run.stdout.endswith(b"one\ntwo\n"))

    def test_damage_is_found(self):
        whole = archive([b"one"], 2)
        place = whole.index(b"one")
        self.assertEqual(self.read(whole[:place] + b"0" + whole[place + 1:]), [])
        self.assertIn("damaged block", self.problems[0])
        self.read(whole[:-3])
        self.assertTrue(self.problems)


class Numbers(unittest.TestCase):
    def test_crc(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)

    def test_varints(self):
        for value in (0, 1, 127, 128, 2**32, 2**63 - 1):
            self.assertEqual(Bytes(varint(value)).varint(), value)
            self.assertEqual(Bytes(zigzag(-value)).zigzag(), -value)

    def test_levels(self):
        names = [level_name(level) for level in (0, 1, 8, 9, 10, 12, 13, 24)]
        self.assertEqual(names, ["", "TRACE", "DEBUG+3", "INFO", "NOTICE", "NOTICE+2", "WARN",
                                 "FATAL+3"])

    def test_floor_before_the_first_pair(self):
        pairs = [(100, 1000, 0, 0), (103, 1010, 0, 0)]
        self.assertEqual(monotonic(pairs, 1, 99), 996)
        self.assertEqual(monotonic(pairs, 1, 104), 1013)
        self.assertEqual(monotonic(pairs[:1], 3 * 10**9, 99), 999)


if __name__ == "__main__":
    assert Archive
    unittest.main()
