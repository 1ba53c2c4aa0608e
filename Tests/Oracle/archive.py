"""Archives (FORMAT §11), read by walking their frames. The `zstd` and `lz4` command-line tools
inflate the payloads, to the same bytes that any other program would get."""

import hashlib
import struct
import subprocess

import deferred
import dense
from record import NO_TRACE, Record, apply_sections, fields
from wire import Bytes, Damage, NewerVersion, check_words, crc32c, u32, u64

SKIPPABLE = 0x184D2A50
MASK = 2**64 - 1
# Methods and codecs: columns as zstd, lz4 or none, and dense columns.
KNOWN = ((1, 0), (1, 1), (1, 2), (2, 0))


class Process:
    """A lane as described by an archive; replaces a Lane of live.py."""

    def __init__(self, source, names):
        self.id = source.take(16)
        self.boot = source.take(16)
        self.pid = source.varint()
        self.created_realtime = source.varint()
        self.created_monotonic = source.varint()
        self.process_name = source.str()
        self.resource = {}
        for _ in range(source.varint()):
            key = source.str()
            self.resource[key] = source.str()
        self.name = names.get(self.id, self.id.hex())


class Archive:
    """One `.cwa` file: its covers at once, its records on demand."""

    def __init__(self, path, report):
        self.path, self.report = path, report
        with open(path, "rb") as file:
            self.data = file.read()
        content = self._skippable(0)
        if content is None or content[:8] != b"CWARCH01":
            raise Damage(f"{path}: not an archive")
        check_words(path, u32(content, 8), u64(content, 24))
        if crc32c(content[:60] + bytes(4) + content[64:]) != u32(content, 60):
            raise Damage(f"{path}: the header's crc does not match")
        self.id = bytes(content[32:48])
        source, words = Bytes(content[72:]), b""
        self.covers = []
        for _ in range(u32(content, 56)):
            lane, first, last, name = source.take(16), source.u64(), source.u64(), source.str()
            self.covers.append((lane, first, last, name))
            gap, seals = source.u64(), [(source.u64(), source.take(16))
                                        for _ in range(source.u32())]
            if first > last or not all(first <= number <= last for number, _ in seals):
                raise Damage(f"{path}: a cover, or its seals")
            words += struct.pack("<16sQI", lane, gap, len(seals)) + b"".join(
                digest for _, digest in seals)
            if not seals:
                words += struct.pack("<QQ", first, last)
        replaced = [(source.take(16), source.u64()) for _ in range(u32(content, 68))]
        self.replaced = [identifier for identifier, _ in replaced]
        self.names = {cover[0]: cover[3].decode() for cover in self.covers}
        words = b"".join(self.replaced) + words
        lost = content[64:68]
        if hashlib.sha256(b"cordwood archive 1" + lost + words).digest()[:16] != self.id:
            report(f"{path}: the archive id is not that of its records")
        self.body = 8 + len(content)

    def _skippable(self, at):
        """The content of the skippable frame at `at`, or None."""
        if at + 8 > len(self.data) or u32(self.data, at) != SKIPPABLE:
            return None
        end = at + 8 + u32(self.data, at + 4)
        return self.data[at + 8:end] if end <= len(self.data) else None

    def blocks(self):
        """(offset, header content, payload) of every block whose checksums hold."""
        at, found, walked, footer, sides = self.body, [], [], None, []
        while at < len(self.data):
            content = self._skippable(at)
            if content is None:
                self.report(f"{self.path}: no frame at {at}")
                at = self._next_block(at + 1)
                continue
            magic = content[:8]
            if magic == b"CWFOOT01":
                footer = (at, content)
                break
            if magic != b"CWBLCK01" and (walked or magic == b"CWEXTR01"):
                if magic == b"CWEXTR01":
                    self._check_extract(content)
                sides.append((at, self.data[at:at + 8 + len(content)]))
                at += 8 + len(content)
                continue
            if magic != b"CWBLCK01" or len(content) < 128 or crc32c(
                    content[:80] + bytes(4) + content[84:]) != u32(content, 80):
                self.report(f"{self.path}: damaged block header at {at}")
                at = self._next_block(at + 1)
                continue
            payload_at = at + 8 + len(content)
            stored = self.data[payload_at:payload_at + u64(content, 40)]
            walked.append((at, 8 + len(content) + u64(content, 40), u32(content, 28)))
            if u64(content, 16) != 0 or (content[24], content[25]) not in KNOWN:
                self.report(f"{self.path}: a newer block at {at}")
            elif len(stored) != u64(content, 40) or crc32c(stored) != u32(content, 72):
                self.report(f"{self.path}: damaged block at {at}")
            else:
                found.append((at, content, stored))
            at = payload_at + u64(content, 40)
        self._check_footer(walked, footer, sides)
        return [(at, content, payload) for (at, content, _), payload
                in zip(found, self._inflate(found)) if payload is not None]

    def _next_block(self, at):
        """§11.3: after the walk is lost, the next frame with a magic of ours."""
        places = [self.data.find(magic, at + 8) for magic in (b"CWBLCK01", b"CWFOOT01")]
        places = [place - 8 for place in places if place >= 0]
        return min(places) if places else len(self.data)

    def _check_extract(self, content):
        """Checks the header of its block (FORMAT §11.11)."""
        block = content[24:152]
        if (len(content) < 152 or crc32c(block[:80] + bytes(4) + block[84:]) != u32(block, 80)
                or block[:8] != b"CWBLCK01" or u64(block, 40) != len(content) - 152
                or crc32c(content[152:]) != u32(block, 72)):
            self.report(f"{self.path}: the extract is damaged")

    def _check_footer(self, walked, footer, sides):
        if footer is None:
            self.report(f"{self.path}: no footer")
            return
        at, content = footer
        crc_at = len(content) - 12
        entries = [(u64(content, entry), u64(content, entry + 8), u32(content, entry + 40))
                   for entry in range(80, 80 + 72 * u32(content, 56), 72)]
        first = 80 + 72 * len(entries)
        said = [(u32(content, entry + 4), u64(content, entry + 8), u64(content, entry + 16))
                for entry in range(first, first + 24 * u32(content, 60), 24)]
        if (content[-8:] != b"CWAREND1" or content[8:24] != self.id
                or u32(content, len(content) - 16) != 8 + len(content)
                or crc32c(content[:crc_at]) != u32(content, crc_at)
                or at + 8 + len(content) != len(self.data) or entries != walked
                or said != [(crc32c(frame), place, len(frame)) for place, frame in sides]
                or first + 24 * len(said) + 16 != len(content)
                or u64(content, 24) != sum(entry[2] for entry in entries)):
            self.report(f"{self.path}: the footer does not say what the blocks are")

    def _inflate(self, found):
        """For method 1, inflates all frames of a codec in one run of its tool, or one by one if
        that fails."""
        payloads = [None] * len(found)
        for codec in {content[25] for _, content, _ in found if content[24] == 1}:
            mine = [index for index, (_, content, _) in enumerate(found)
                    if content[24:26] == bytes([1, codec])]
            sizes = [u64(found[index][1], 32) for index in mine]
            whole = inflate(codec, b"".join(found[index][2] for index in mine))
            if whole is not None and len(whole) == sum(sizes):
                at = 0
                for index, size in zip(mine, sizes):
                    payloads[index] = whole[at:at + size]
                    at += size
            else:
                for index in mine:
                    payloads[index] = inflate(codec, found[index][2])
        for index, (at, content, stored) in enumerate(found):
            payload = payloads[index]
            if content[24] == 2:
                payloads[index] = self._dense(at, content, stored)
                continue
            if payload is None or len(payload) != u64(content, 32) or crc32c(
                    payload) != u32(content, 76):
                self.report(f"{self.path}: block at {at}: the payload is not what was stored")
                payloads[index] = None
        return payloads

    def _dense(self, at, content, stored):
        try:
            return dense.decode(content, stored)
        except NewerVersion as newer:
            self.report(f"{self.path}: a newer block at {at}: {newer}")
        except Damage as damage:
            self.report(f"{self.path}: damaged block at {at}: {damage}")
        return None

    def records(self):
        for at, content, payload in self.blocks():
            try:
                yield from decode_payload(payload, u32(content, 28), self.names)
            except Damage as damage:
                self.report(f"{self.path}: block at {at}: {damage}")


def inflate(codec, frames):
    if codec == 2:
        source, out = Bytes(frames), []
        while source.left:
            if source.u32() != SKIPPABLE:
                return None
            out.append(source.take(source.u32()))
        return b"".join(out)
    command = {0: ["zstd", "-dc"], 1: ["lz4", "-dc"]}.get(codec)
    if command is None:
        raise NewerVersion(f"codec {codec}")
    run = subprocess.run(command, input=frames, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=False)
    return run.stdout if run.returncode == 0 else None


def _streams(payload):
    source = Bytes(payload)
    lengths = [source.u32() for _ in range(source.u32())]
    if len(lengths) < 20:
        raise Damage("fewer than 20 streams")
    return [Bytes(source.take(length)) for length in lengths]


def decode_payload(payload, count, names):
    """§11.4."""
    streams = _streams(payload)
    (processes, threads, loggers, sites, contexts, thread, time, offset, sequence, level, kind,
     logger, context, length, section_length, sections, formats, format_index, arguments,
     messages) = streams[:20]
    processes = [Process(processes, names) for _ in range(processes.varint())]
    threads = [(processes[threads.varint()], threads.varint(), threads.varint(), threads.str())
               for _ in range(threads.varint())]
    loggers = [loggers.str() for _ in range(loggers.varint())]
    sites = {index: (sites.varint(), sites.str(), sites.str())
             for index in range(sites.varint())}
    formats = [(formats.varint(), formats.str(), formats.str(), formats.u8(), formats.str(),
                formats.str()) for _ in range(formats.varint())]
    contexts = [_context(contexts) for _ in range(contexts.varint())]
    now, shift, expected = 0, 0, {}
    for _ in range(count):
        record = Record()
        index = thread.varint()
        record.lane, record.thread_serial, record.thread_id, _name = threads[index]
        record.resource = record.lane.resource
        now = (now + time.zigzag()) & MASK
        shift = (shift + offset.zigzag()) & MASK
        record.monotonic, record.utc = now, (now + shift) & MASK
        record.sequence = (expected.get(index, 0) + sequence.zigzag()) & MASK
        expected[index] = record.sequence + 1
        record.level = level.u8()
        bits = kind.u8()
        record.kind, record.unverified = bits & 7, bool(bits & 16)
        record.logger = loggers[logger.varint()]
        number = context.varint()
        if number:
            record.context, record.trace = contexts[number - 1]
        if bits & 32:
            apply_sections(record, sections.take(section_length.varint()), sites)
        if bits & 64:
            if deferred.fill(record, formats[format_index.varint()], arguments) or bits & 8:
                record.original_length = len(record.message)
            yield record
            continue
        record.message = messages.take(length.varint())
        if messages.take(1) != b"\n":
            raise Damage("a message without its newline")
        yield record


def _context(source):
    size = source.varint()
    content = source.take(size)
    found, used = fields(content) if content else ([], 0)
    trace = source.take(25)
    if used != size:
        raise Damage("a context longer than its fields")
    return found, trace or NO_TRACE
