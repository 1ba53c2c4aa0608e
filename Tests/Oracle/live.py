"""Lanes as a process leaves them: lane file, catalog, segments, chunks, records, drop slots (FORMAT
§3–§9). Reads files whole. journal.py overlays them with the journal (§10)."""

import os
import re

import deferred
from record import Record, apply_sections, fields, make_gap
from wire import Bytes, Damage, NewerVersion, check_words, crc32c, u16, u32, u64

NAME = re.compile(r"^(?P<lane>.+)\.(?P<number>\d{8,})-(?P<generation>\d{4,})\.(seg|sealed)$")
MASK = 2**64 - 1


class Lane:
    """The lane file: identity, catalog and segment 0 (§3)."""

    def __init__(self, name, directory, report):
        self.name = name
        self.directory = directory
        self.report = report
        with open(os.path.join(directory, name + ".lane"), "rb") as file:
            self.data = bytearray(file.read())
        if bytes(self.data[:8]) != b"CWLANE01":
            raise Damage(f"{name}.lane: not a lane file")
        check_words(f"{name}.lane", u32(self.data, 8), u64(self.data, 24))
        self.read_header()
        self.growth = {}
        for index in range(1, 64):
            self.read_growth(index)

    def read_header(self):
        data = self.data
        self.id = bytes(data[32:48])
        self.boot = bytes(data[48:64])
        self.salt = u64(data, 80)
        self.pid = u32(data, 88)
        self.created_realtime = u64(data, 112)
        self.created_monotonic = u64(data, 120)
        self.catalog_at = (u32(data, 128), u32(data, 132))
        self.drops_at = (u32(data, 136), u32(data, 140))
        self.segment_at = (u32(data, 144), u32(data, 148))
        self.process_name = bytes(data[160:160 + min(128, u16(data, 152))])
        self.archived_below = u64(data, 512)
        self.closed = u32(data, 576) == 1

    def read_growth(self, index):
        try:
            with open(os.path.join(self.directory, f"{self.name}.catalog-{index}"), "rb") as file:
                data = bytearray(file.read())
        except FileNotFoundError:
            return
        if bytes(data[:8]) != b"CWCATA01" or bytes(data[16:32]) != self.id:
            self.report(f"{self.name}.catalog-{index}: not this lane's catalog")
            return
        self.growth[index] = data

    def read_catalog(self):
        """§5. Called after the journal is applied."""
        self.loggers, self.sites, self.changes = {0: b""}, {}, {}
        start, size = self.catalog_at
        self._read_region(self.data[start:start + size])
        for index in sorted(self.growth):
            self._read_region(self.growth[index][64:])

    def _read_region(self, region):
        at = 0
        while at + 24 <= len(region):
            length = u32(region, at + 8)
            if (u64(region, at) != self.salt or length < 24 or length > 16 << 20
                    or at + length > len(region)
                    or crc32c(region[at + 16:at + length]) != u32(region, at + 12)):
                at += 16
                continue
            self._take_entry(region[at + 16], u32(region, at + 20),
                             bytes(region[at + 24:at + length]))
            at += (length + 15) // 16 * 16

    def _take_entry(self, kind, identifier, payload):
        source = Bytes(payload)
        if kind == 1:
            self.loggers[identifier] = payload
        elif kind == 2:
            self.sites.setdefault(identifier, deferred.site(payload))
        elif kind == 3:
            self.changes[identifier] = source.str(), source.str()

    def resource(self, version):
        """The attributes of that version; None: a change is missing."""
        found = {}
        for number in range(1, version + 1):
            if number not in self.changes:
                return None
            key, value = self.changes[number]
            if value:
                found[key] = value
            else:
                found.pop(key, None)
        return found

    def segments(self):
        """All live or sealed ones that are not in archives, by number."""
        found = {}
        start, size = self.segment_at
        self._add(found, Segment(self, self.data[start:start + size], "segment 0", 0, 0))
        for name in sorted(os.listdir(self.directory)):
            match = NAME.match(name)
            if not match or match["lane"] != self.name:
                continue
            with open(os.path.join(self.directory, name), "rb") as file:
                data = bytearray(file.read())
            self._add(found, Segment(self, data, name, int(match["number"]),
                                     int(match["generation"])))
        return found

    def _add(self, found, segment):
        if segment.number < self.archived_below:
            return
        problem = segment.problem()
        if problem:
            self.report(f"{self.name}: {segment.name}: {problem}")
            return
        found[segment.number] = segment

    def left_over(self, gaps, pairs, newest):
        """§3.2: the gap record that was never written, or None."""
        start, count = self.drops_at
        runs, first, last, causes = [], None, None, 0
        dropped, reported = 0, 0
        for slot in range(count):
            at = start + slot * 64
            told = max(gaps.get(slot, 0), u64(self.data, at + 8))
            dropped += u64(self.data, at)
            reported += told
            if u64(self.data, at) > told:
                runs.append((slot, told, u64(self.data, at)))
                causes |= u64(self.data, at + 32)
                first = min(x for x in (first, u64(self.data, at + 16)) if x is not None)
                last = max(x for x in (last, u64(self.data, at + 24)) if x is not None)
        if not runs:
            return None
        record = Record()
        record.lane = self
        record.resource = self.resource(max(self.changes, default=0)) or {}
        record.thread_id = self.pid
        record.sequence = reported % 2**32 << 32 | dropped % 2**32
        record.monotonic = max(last, newest)
        record.utc = utc_of_monotonic(pairs, record.monotonic)
        make_gap(record, runs, utc_of_monotonic(pairs, first), utc_of_monotonic(pairs, last),
                 causes)
        return record


class Segment:
    """§6. `data` begins at the segment's start."""

    def __init__(self, lane, data, name, number, generation):
        self.lane, self.data, self.name = lane, data, name
        self.number, self.generation = number, generation

    def problem(self):
        """Why it cannot be read, or None."""
        data = self.data
        if len(data) < 4096:
            return None if self.name.endswith(".seg") else "shorter than its header"
        if bytes(data[:8]) != b"CWSEGM01":
            return "not a segment" if any(data[:8]) else None  # zero: a spare
        try:
            check_words(self.name, u32(data, 8), u64(data, 24))
        except NewerVersion as newer:
            return str(newer)
        if bytes(data[32:48]) != self.lane.id:
            return "of another lane"
        if (u64(data, 64), u32(data, 72)) != (self.number, self.generation):
            return "number or generation differ from its name"
        return None

    def changed(self):
        """§6.1: why a sealed segment is not as it was sealed, or None."""
        data = self.data
        if crc32c(data[:112] + data[384:404] + data[512:4096]) != u32(data, 404):
            return "checksum of the header"
        heads = b"".join(bytes(data[at + 12:at + 72]) for at, _ in self.chunks()
                         if u32(data, at + 64))
        return None if crc32c(heads) == u32(data, 400) else "chunks are missing"

    def clock_pairs(self):
        count = min(u32(self.data, 516), 108) if len(self.data) >= 4096 else 0
        return [tuple(u64(self.data, 576 + 32 * index + 8 * word) for word in range(4))
                for index in range(count)]

    def chunks(self):
        """§6.2: (offset, readable end) of every valid chunk."""
        data = self.data
        if len(data) < 4096:
            return
        salt, size = u64(data, 80), u64(data, 88)
        if bytes(data[:8]) != b"CWSEGM01" or u32(data, 112) == 4 or salt == 0:
            return
        at = u32(data, 12)
        end = min(u64(data, 128), u64(data, 256), len(data))
        while at + 128 <= end:
            committed, length = u32(data, at + 8), u32(data, at + 12)
            if (u64(data, at) != salt or u64(data, at + 16) != at or length == 0
                    or length % 1024 or at + length > size or u32(data, at + 32) == 0
                    or not 128 <= committed <= length):
                at += 1024
                continue
            final = u32(data, at + 64)
            readable = final if final else committed
            if readable > length:
                self.lane.report(f"{self.name}: chunk {at}: final past the chunk")
                readable = committed
            if at + readable > len(data):
                self.lane.report(f"{self.name}: chunk {at}: the file ends before it")
                readable = len(data) - at
            yield at, readable
            at += length

    def sealed(self):
        return u32(self.data, 112) == 3

    def crc_holds(self, at):
        final = u32(self.data, at + 64)
        content = self.data[at + 12:at + 64] + self.data[at + 128:at + final]
        return final >= 128 and crc32c(content) == u32(self.data, at + 68)


def decode_chunk(segment, at, readable):
    """§7, §8: the records of one chunk in order, and the payloads of gap records."""
    data, lane = segment.data, segment.lane
    pairs, rate = segment.clock_pairs(), u64(data, 96)
    sequence = u32(data, at + 36) << 32
    base = u64(data, at + 24)
    context, trace = [], bytes(25)
    resource = lane.resource(u16(data, at + 46))
    records, gaps = [], []
    position = at + 128
    while position + 16 <= at + readable:
        length = u32(data, position)
        if length < 16 or position + length > at + readable:
            lane.report(f"{segment.name}: chunk {at}: damaged record at {position}")
            break
        payload = bytes(data[position + 16:position + length])
        kind = data[position + 13]
        if kind == 4:
            base = u64(payload, 0)
        elif kind == 5:
            context = fields(payload)[0]
        elif kind == 6:
            trace = Bytes(payload).take(25)
        elif kind in (1, 2, 3, 7, 9):
            record = Record()
            record.lane = lane
            record.resource = resource or {}
            record.unverified = resource is None
            record.thread_serial = u32(data, at + 32)
            record.thread_id = u32(data, at + 40)
            record.stream = data[at + 44]
            record.sequence = sequence
            sequence += 1
            ticks = (base + u32(data, position + 4)) & MASK
            record.monotonic = monotonic(pairs, rate, ticks)
            record.utc = (record.monotonic + _offset(pairs, ticks)) & MASK
            record.level = data[position + 12]
            record.context, record.trace = context, trace
            record.chunk_end = position + length - at
            identifier = u32(data, position + 8)
            if kind != 7:
                record.logger = lane.loggers.get(identifier, b"?")
                record.unverified |= identifier != 0 and identifier not in lane.loggers
            try:
                _fill(record, kind, u16(data, position + 14), payload, segment, gaps)
            except Damage as damage:
                lane.report(f"{segment.name}: record at {position}: {damage}")
            records.append(record)
        elif kind != 8:
            lane.report(f"{segment.name}: unknown record type {kind}")
        position += (length + 7) // 8 * 8
    return records, gaps


def _fill(record, kind, flags, payload, segment, gaps):
    if kind == 1:
        if flags & 1:
            record.original_length = u64(payload, 0)
            payload = payload[8:]
        record.message = payload
    elif kind == 2:
        parts = apply_sections(record, payload, segment.lane.sites)
        if 3 in parts and parts[3] not in segment.lane.sites:
            record.unverified = True
        if 10 in parts:
            found = (deferred.site(parts[11]) if 11 in parts
                     else segment.lane.sites.get(parts.get(3)))
            _fill_deferred(record, parts.get(3, 0xFFFFFFFF), found, flags, Bytes(parts[10]))
    elif kind in (3, 9):
        source = Bytes(payload)
        if kind == 9:
            _fill_deferred(record, 0, deferred.site(source.take(source.u32())), flags, source)
        else:
            identifier = source.u32()
            _fill_deferred(record, identifier, segment.lane.sites.get(identifier), flags, source)
    elif kind == 7:
        slot, first, last = u32(payload, 0), u64(payload, 24), u64(payload, 32)
        covered, total = u64(payload, 8), u64(payload, 16)
        pairs = segment.clock_pairs()
        make_gap(record, [(slot, covered, max(covered, total))], utc_of_monotonic(pairs, first),
                 utc_of_monotonic(pairs, last), u64(payload, 40))
        gaps.append((slot, total))


def _fill_deferred(record, identifier, site, flags, source):
    """§8.7."""
    if site is None:
        record.message = f"? site {identifier}:".encode() + b"".join(
            b" %02x" % byte for byte in source.take(min(source.left, 4096)))
        record.unverified = True
    elif deferred.fill(record, site, source) or flags & 1:
        record.original_length = len(record.message)


def monotonic(pairs, rate, ticks):
    """§4."""
    if not pairs:
        return ticks
    if len(pairs) > 1:
        index = 0
        while index + 2 < len(pairs) and ticks >= pairs[index + 1][0]:
            index += 1
        (a_ticks, a_mono, _, _), (b_ticks, b_mono, _, _) = pairs[index], pairs[index + 1]
        if a_ticks != b_ticks:
            return (a_mono + (ticks - a_ticks) * (b_mono - a_mono) // (b_ticks - a_ticks)) & MASK
    else:
        a_ticks, a_mono = pairs[0][:2]
    return (a_mono + (ticks - a_ticks) * 10**9 // max(rate, 1)) & MASK


def _offset(pairs, ticks):
    """§4: UTC − monotonic."""
    chosen = None
    for pair in pairs:
        if chosen is None or pair[0] <= ticks:
            chosen = pair
    return chosen[3] - chosen[1] if chosen else 0


def utc_of_monotonic(pairs, nanoseconds):
    """Like §4, with the pairs selected by their monotonic time."""
    chosen = None
    for pair in pairs:
        if chosen is None or pair[1] <= nanoseconds:
            chosen = pair
    return (nanoseconds + (chosen[3] - chosen[1] if chosen else 0)) & MASK
