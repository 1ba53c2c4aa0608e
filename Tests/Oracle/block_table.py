"""What the tests put into a block: its columns as plain lists, and the records that a reader must
find in it, made of these lists without a reader of blocks. Nothing that ships uses it."""

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import deferred
from column_parts import CUT, NULL, NUMBERS
from record import Record, apply_sections, fields
from wire import Bytes

MASK = 2**64 - 1
LANE_ID = bytes(range(16))

# `lane` and `boot` have 16 bytes, attributes are (key, value).
Process = namedtuple("Process", "lane boot pid realtime monotonic name attributes")
Thread = namedtuple("Thread", "process serial id name")
Site = namedtuple("Site", "line file function")
Format = namedtuple("Format", "line file function style text types")


@dataclass
class Table:
    """The columns of FORMAT §11.4. A context is a list of fields, as bytes, and a trace. The
    arguments are those of all deferred records, one after another, as §8.7 lays them out."""

    processes: list
    threads: list
    loggers: list
    sites: list
    formats: list
    contexts: list
    kind: list
    level: list
    thread: list
    time: list
    offset: list
    sequence: list
    logger: list
    context: list
    format: list
    arguments: bytes
    sections: list
    messages: list

    @property
    def count(self):
        return len(self.kind)

    @property
    def size(self):
        """FORMAT §11.10."""
        attributes = [pair for row in self.processes for pair in row.attributes]
        rows = [*self.processes, *self.threads, *self.sites, *self.formats, *attributes,
                *((name,) for name in self.loggers), *((run,) for run, _ in self.contexts)]
        strings = [part for row in rows for part in row if isinstance(part, bytes)]
        strings += [self.arguments, *self.sections, *self.messages]
        return 64 * (self.count + len(rows)) + sum(map(len, strings)) + len(self.messages)

    def argument_columns(self):
        """(type, values) for each argument of each format."""
        source = Bytes(self.arguments)
        found = [[(kind, []) for kind in form.types] for form in self.formats]
        for number in self.format:
            for kind, values in found[number]:
                values.append(_argument(source, kind))
        assert not source.left
        return [column for of_format in found for column in of_format]

    def utc(self):
        return [(time + offset) & MASK for time, offset in zip(self.time, self.offset)]


def _argument(source, kind):
    if kind in NUMBERS:
        return int.from_bytes(source.take(NUMBERS[kind]), "little", signed=kind in (1, 8))
    if kind in (3, 13):
        return source.take(8 if kind == 3 else 4)
    if kind == 4:
        return source.take(16)
    word = source.u32()
    if word == NULL:
        return 2, b""
    return word >> 31, source.take((word & ~CUT) * (4 if kind == 7 else 1))


def records(table):
    """Each record of the table."""
    lanes = [SimpleNamespace(
        id=row.lane, boot=row.boot, pid=row.pid, created_realtime=row.realtime,
        created_monotonic=row.monotonic, process_name=row.name, resource=dict(row.attributes),
        name="") for row in table.processes]
    contexts = [(fields(run)[0] if run else [], trace) for run, trace in table.contexts]
    sites, expected = dict(enumerate(table.sites)), {}
    formats, arguments = iter(table.format), Bytes(table.arguments)
    sections, messages = iter(table.sections), iter(table.messages)
    for at, utc in enumerate(table.utc()):
        record, kind, thread = Record(), table.kind[at], table.threads[table.thread[at]]
        record.lane = lanes[thread.process]
        record.resource = record.lane.resource
        record.thread_serial, record.thread_id = thread.serial, thread.id
        record.monotonic, record.utc = table.time[at] & MASK, utc
        record.sequence = (expected.get(table.thread[at], 0) + table.sequence[at]) & MASK
        expected[table.thread[at]] = record.sequence + 1
        record.level, record.kind, record.unverified = table.level[at], kind & 7, bool(kind & 16)
        record.logger = table.loggers[table.logger[at]]
        if table.context[at]:
            record.context, record.trace = contexts[table.context[at] - 1]
        if kind & 32:
            apply_sections(record, next(sections), sites)
        if kind & 64:
            if deferred.fill(record, table.formats[next(formats)], arguments) or kind & 8:
                record.original_length = len(record.message)
        else:
            record.message = next(messages)
        yield record
