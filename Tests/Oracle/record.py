"""A record as passed between all parts of the decoder, its sections (§8), and its JSON line."""

import base64
import datetime
import json
import math
import re
import struct

from wire import Bytes, Damage, u32, u64

LEVELS = ((21, "FATAL"), (17, "ERROR"), (13, "WARN"), (10, "NOTICE"), (9, "INFO"), (5, "DEBUG"),
          (1, "TRACE"))
KINDS = ("log", "gap", "lifecycle", "transaction", "http")
NO_TRACE = bytes(25)


JSON_BYTES_MAX, JSON_DEPTH_MAX = 262_144, 20


class JSONText(bytes):
    """The text of a field that is JSON (FORMAT §8.2)."""


def is_json(data):
    """FORMAT §8.2: what a reader accepts as JSON."""
    def refuse(word):
        raise ValueError(word)

    if len(data) > JSON_BYTES_MAX:
        return False
    try:
        text = data.decode("utf-8")
        depth, deepest = 0, 0
        for bracket in re.findall(r'"(?:[^"\\]|\\.)*"|[][{}]', text, re.DOTALL):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket, 0)
            deepest = max(deepest, depth)
        if deepest > JSON_DEPTH_MAX:
            return False
        value = json.loads(text, parse_int=lambda digits: 0, parse_float=lambda digits: 0,
                           parse_constant=refuse, object_pairs_hook=lambda pairs: pairs)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # refuses a lone surrogate
    except (ValueError, RecursionError):
        return False
    return True


class Record:
    def __init__(self):
        self.lane = None  # Lane of live.py, or Process of archive.py
        self.resource = {}
        self.thread_serial = 0
        self.thread_id = 0
        self.stream = 0
        self.sequence = 0
        self.monotonic = 0
        self.utc = 0
        self.event_utc = None  # the event's own time (§8.1, kind 6)
        self.level = 0
        self.kind = 0
        self.logger = b""
        self.message = b""
        self.file = b""
        self.function = b""
        self.line = 0
        self.fields = []
        self.context = []
        self.exception = None
        self.trace = NO_TRACE
        self.original_length = None
        self.unverified = False
        self.archive = ""  # the file it was read from; empty: live
        self.chunk_end = 0  # of a live record: its end in the chunk


def fields(data):
    """FORMAT §8.2: a list of (key bytes, value)."""
    source = Bytes(data)
    found = [one_field(source) for _ in range(source.u16())]
    return found, source.at


def fields_that_fit(data):
    """Likewise; a list that does not fit its bytes ends there (FORMAT §11.4)."""
    source, found = Bytes(data), []
    try:
        for _ in range(source.u16()):
            found.append(one_field(source))
    except Damage:
        pass
    return found


def one_field(source):
    kind, form = source.u8(), source.u8()
    key = source.take(source.u16())
    if kind == 1:
        return key, struct.unpack("<q", source.take(8))[0]
    if kind == 2:
        return key, source.u64()
    if kind == 3:
        return key, struct.unpack("<d", source.take(8))[0]
    if kind == 4:
        return key, source.u8() != 0
    if kind == 5:
        text = source.take(source.u32())
        return key, JSONText(text) if form == 1 and is_json(text) else text
    raise Damage(f"a field of type {kind}")


def apply_sections(record, data, sites):
    """FORMAT §8.1. `sites` returns (line, file, function, …) of a site id. Returns the parts of a
    deferred message by kind of section: site id, arguments, definition."""
    source, parts = Bytes(data), {}
    while source.left:
        kind = source.u8()
        source.take(3)
        content = source.take(source.u32())
        if kind == 1:
            record.message = content
        elif kind == 2:
            record.fields = fields(content)[0]
        elif kind in (10, 11):
            parts[kind] = content
        elif kind == 3:
            parts[kind] = u32(content, 0)
            site = sites.get(u32(content, 0))
            if site is not None:
                record.line, record.file, record.function = site[:3]
        elif kind == 4:
            place = Bytes(content)
            record.line, file_bytes, function_bytes = place.u32(), place.u16(), place.u16()
            record.file, record.function = place.take(file_bytes), place.take(function_bytes)
        elif kind == 5:
            record.trace = Bytes(content).take(25)
        elif kind == 6:
            record.event_utc = u64(content, 0)
        elif kind == 7:
            lengths = Bytes(content)
            sizes = [lengths.u32() for _ in range(3)]
            record.exception = [lengths.take(size) for size in sizes]
        elif kind == 8:
            record.kind = Bytes(content).u8()
        elif kind == 9:
            record.original_length = u64(content, 0)
    return parts


CAUSES = (
    ("disk_full", "the disk is full"),
    ("disk_quota", "the user's disk quota is used up"),
    ("store_quota", "the store's quota is reached"),
    ("file_limit", "the limit of file sizes is reached"),
    ("descriptors", "no file descriptor is free"),
    ("memory", "memory ran out"),
    ("not_ready", "no segment was ready"),
    ("permission", "permission is denied"),
    ("other", "the file system refuses"),
)


def make_gap(record, runs, first_utc, last_utc, causes):
    """FORMAT §8.6. `runs`: (slot, from, to)."""
    count = sum(to - before for _, before, to in runs)
    record.kind = 1
    record.level = 13
    record.logger = b"Cordwood"
    record.message = (b"1 record was not kept" if count == 1
                      else b"%d records were not kept" % count)
    record.fields = [(b"gap.records", count), (b"gap.first", first_utc), (b"gap.last", last_utc),
                     (b"gap.runs", " ".join("%d:%d-%d" % run for run in runs).encode())]
    known = [cause for bit, cause in enumerate(CAUSES) if causes >> bit & 1]
    if known:
        record.message += f": {', '.join(words for _, words in known)}".encode()
        record.fields.append((b"gap.causes", " ".join(name for name, _ in known).encode()))


def level_name(level):
    """Numbers above 24 are no levels."""
    if level > 24:
        return ""
    for number, name in LEVELS:
        if level >= number:
            return name if level == number else f"{name}+{level - number}"
    return ""


def time_text(nanoseconds):
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:09d}Z"


def _text(data):
    return data.decode("utf-8", "replace")


def _is_utf8(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def as_pairs(record):
    """The JSON line as a list of pairs; fields and resource, too, because keys may repeat."""
    shown = record.event_utc if record.event_utc is not None else record.utc
    line = [
        ("time", time_text(shown)), ("level", level_name(record.level)),
        ("logger", _text(record.logger)), ("message", _text(record.message)),
    ]
    if not _is_utf8(record.message):
        line.append(("message_base64", base64.b64encode(record.message).decode()))
    line += [("pid", record.lane.pid), ("tid", record.thread_id)]
    if record.file:
        line.append(("file", _text(record.file)))
    if record.line:
        line.append(("line", record.line))
    if record.function:
        line.append(("function", _text(record.function)))
    others = list(record.context)
    if record.exception:
        names = (b"exception.type", b"exception.message", b"exception.stacktrace")
        others += [(name, part) for name, part in zip(names, record.exception) if part]
    # A JSON parser keeps the last of equal keys: the record's own must win.
    own = {key for key, _ in record.fields}
    pairs = [(_text(key), _shown(value))
             for key, value in record.fields + [pair for pair in others if pair[0] not in own]]
    if pairs:
        line.append(("fields", pairs))
    if any(record.trace[:16]):
        line.append(("trace_id", record.trace[:16].hex()))
    if any(record.trace[16:24]):
        line.append(("span_id", record.trace[16:24].hex()))
    kind = KINDS[record.kind] if record.kind < len(KINDS) else str(record.kind)
    line.append(("kind", kind))
    resource = {_text(key): _text(value) for key, value in record.resource.items() if value}
    line.append(("process", _text(record.lane.process_name) or None))
    line.append(("service", resource.pop("service.name", None)))
    line.append(("host", resource.pop("host.name", None)))
    line.append(("resource", list(resource.items())))
    line.append(("record_id", record_id(record)))
    return line


def record_id(record):
    """FORMAT §7.1."""
    return (record.lane.id[:12] + record.thread_serial.to_bytes(4, "big")
            + record.sequence.to_bytes(8, "big")).hex()


def _shown(value):
    """JSON has no non-finite numbers: text, as printed by the tool."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, JSONText):
        return value
    return _text(value) if isinstance(value, bytes) else value


def as_json(record):
    def written(value):
        if isinstance(value, JSONText):
            return json.dumps(json.loads(value), ensure_ascii=False, separators=(",", ":"))
        return json.dumps(value, ensure_ascii=False)

    parts = []
    for key, value in as_pairs(record):
        if key in ("fields", "resource"):
            inner = ",".join(f"{written(k)}:{written(v)}" for k, v in value)
            parts.append(f'"{key}":{{{inner}}}')
        else:
            parts.append(f"{written(key)}:{written(value)}")
    return "{" + ",".join(parts) + "}"
