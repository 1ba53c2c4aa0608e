#!/usr/bin/env python3
"""An independent reader of blocks, written from docs/BLOCK.md and docs/FORMAT.md alone.

    block.py FILE…          prints the records as JSON lines, in the form of decode.py
    block.py --letters …    also checks what a block's flag promises to a search

A FILE is `block RECORDCOUNT SIZE LEAVESCRC CODEC` and a newline (the CRC in hex; the codec zstd,
lz4 or none), then the directory and the frames. Damage is a line on stderr, and exit 1."""

import os
import re
import sys
from dataclasses import dataclass, field

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import block_letters  # noqa: E402
import deferred  # noqa: E402
import dense  # noqa: E402
from block_tree import LIMITS, BlockTree  # noqa: E402
from dense import varint  # noqa: E402
from dense_codecs import MASK, ints, sized_strings, strings  # noqa: E402
from dense_tree import within  # noqa: E402
from record import Record, apply_sections, as_json, fields  # noqa: E402
from wire import Bytes, Damage  # noqa: E402

WORD = 2**32 - 1


@dataclass
class Process:
    """Replaces a Lane of live.py."""

    id: bytes
    boot: bytes
    pid: int
    created_realtime: int
    created_monotonic: int
    process_name: bytes
    resource: dict
    name: str = ""


@dataclass
class Format:
    """An entry of formats, in the order of FORMAT §11.4."""

    line: int
    file: bytes
    function: bytes
    style: int
    text: bytes
    types: bytes


@dataclass
class Columns:
    """What a block holds, before there are records."""

    processes: list
    threads: list
    loggers: list
    sites: list
    formats: list
    numbers: dict = field(default_factory=dict)
    contexts: list = field(default_factory=list)
    arguments: bytes = b""
    sections: list = field(default_factory=list)
    messages: list = field(default_factory=list)
    size: int = 0  # by the formula


class Size:
    """The formula of BLOCK, Size, with the shortest varints."""

    def __init__(self, records):
        self.bytes = 64 * records

    def entry(self, *parts):
        """An entry with these numbers, strings and, as lists of one, other bytes."""
        self.bytes += 64
        self.add(*parts)

    def add(self, *parts):
        for part in parts:
            if isinstance(part, int):
                self.bytes += len(varint(part))
            elif isinstance(part, list):
                self.bytes += len(part[0])
            else:
                self.bytes += len(varint(len(part))) + len(part)


def read(path, limits=LIMITS):
    """The tree of one file."""
    with open(path, "rb") as file:
        head, stored = file.readline(), file.read()
    match = re.fullmatch(rb"block (\d+) (\d+) ([0-9a-f]+) (zstd|lz4|none)\n", head)
    if not match:
        raise Damage("no block's first line")
    return BlockTree(int(match[1]), int(match[2]), int(match[3], 16), match[4].decode(), stored,
                     limits)


def decode(tree, found=None):
    """The records. `found`: the tree's columns, where they were read."""
    found = found or columns(tree)
    tree.end()
    if found.size != tree.raw_bytes:
        raise Damage(f"size {tree.raw_bytes}, but the block holds {found.size}")
    return list(_records(tree.records, found))


def _unsigned(tree, count):
    return [value & MASK for value in ints(tree, count)]


def _below(what, values, most):
    if not all(0 <= value < most for value in values):
        raise Damage(f"{what} that cannot be")
    return values


def _count(what, tree, most):
    count = tree.meta.varint()
    within(what, count, most)
    return count


def columns(tree):
    """BLOCK, Columns."""
    size, most = Size(tree.records), tree.limits.entries
    processes = _processes(tree, size)
    threads = _threads(tree, size, processes)
    loggers = strings(tree, _count("loggers", tree, most))
    for name in loggers:
        size.entry(name)
    count = _count("sites", tree, most)
    sites = list(zip(_unsigned(tree, count), strings(tree, count), strings(tree, count)))
    for site in sites:
        size.entry(*site)
    found = Columns(processes, threads, loggers, sites, _formats(tree, size))
    found.numbers = _numbers(tree, found)
    found.contexts = _contexts(tree, size)
    _below("a context", found.numbers["context"], len(found.contexts) + 1)
    found.arguments = dense.arguments(tree, [form.types for form in found.formats],
                                      found.numbers["format"])
    found.sections = dense.sections(tree, [
        (time + offset) & MASK for kind, time, offset in zip(
            found.numbers["kind"], found.numbers["time"], found.numbers["offset"]) if kind & 32])
    found.messages = strings(tree, tree.records - len(found.numbers["format"]))
    size.add([found.arguments], *([run] for run in found.sections))
    size.bytes += sum(len(message) + 1 for message in found.messages)
    found.size = size.bytes
    return found


def _processes(tree, size):
    count = _count("processes", tree, tree.limits.processes)
    lanes, boots = sized_strings(tree, count, 16), sized_strings(tree, count, 16)
    pids, realtimes, monotonics = (_unsigned(tree, count) for _ in range(3))
    names, owned = strings(tree, count), ints(tree, count)
    most = tree.limits.attributes
    _below("a number of attributes", owned, most + 1)
    within("attributes", sum(owned), most)
    keys, values = strings(tree, sum(owned)), strings(tree, sum(owned))
    pairs, found = iter(zip(keys, values)), []
    for row in zip(lanes, boots, pids, realtimes, monotonics, names, owned):
        *words, attributes = row
        own = [next(pairs) for _ in range(attributes)]
        size.entry([words[0]], [words[1]], *words[2:], attributes,
                   *(part for pair in own for part in pair))
        found.append(Process(*words, dict(own)))
    return found


def _threads(tree, size, processes):
    count = _count("threads", tree, tree.limits.entries)
    owners = _below("a thread's process", ints(tree, count), len(processes))
    serials, identifiers = _unsigned(tree, count), _unsigned(tree, count)
    # A record's id has 4 bytes for the serial (FORMAT §7.1).
    _below("a thread's serial", serials, WORD + 1)
    found = list(zip(owners, serials, identifiers, strings(tree, count)))
    for thread in found:
        size.entry(*thread)
    return found


def _formats(tree, size):
    count = _count("formats", tree, tree.limits.entries)
    lines, files, functions = _unsigned(tree, count), strings(tree, count), strings(tree, count)
    # One byte in FORMAT §11.4; the others are ignored (§11.7).
    styles = [style & 255 for style in ints(tree, count)]
    texts, types = strings(tree, count), strings(tree, count)
    within("argument types", sum(map(len, types)), tree.limits.parts)
    found = []
    for line, file, function, style, text, of_arguments in zip(
            lines, files, functions, styles, texts, types):
        size.entry(line, file, function, [bytes([style])], text, of_arguments)
        found.append(Format(line, file, function, style, text, of_arguments))
    return found


def _numbers(tree, found):
    count, numbers = tree.records, {}
    numbers["kind"] = _below("a kind", ints(tree, count), 128)
    numbers["level"] = _below("a level", ints(tree, count), 256)
    numbers["thread"] = _below("a thread", ints(tree, count), len(found.threads))
    for name in ("time", "offset", "sequence"):
        numbers[name] = _unsigned(tree, count)
    numbers["logger"] = _below("a logger", ints(tree, count), len(found.loggers))
    numbers["context"] = ints(tree, count)
    late = sum(kind >> 6 & 1 for kind in numbers["kind"])
    numbers["format"] = _below("a format", ints(tree, late), len(found.formats))
    return numbers


def _contexts(tree, size):
    count = _count("contexts", tree, tree.limits.entries)
    found = []
    for run, trace in zip(dense.field_lists(tree, count), dense.traces(tree, count)):
        size.entry(run, [trace])
        parsed, used = fields(run) if run else ([], 0)
        if used != len(run):
            raise Damage("a context longer than its fields")
        found.append((parsed, trace))
    return found


def _records(count, found):
    numbers, sites = found.numbers, dict(enumerate(found.sites))
    sections, messages = iter(found.sections), iter(found.messages)
    formats, arguments, expected = iter(numbers["format"]), Bytes(found.arguments), {}
    for at in range(count):
        record, kind = Record(), numbers["kind"][at]
        number = numbers["thread"][at]
        owner, record.thread_serial, record.thread_id, _name = found.threads[number]
        record.lane = found.processes[owner]
        record.resource = record.lane.resource
        record.monotonic = numbers["time"][at]
        record.utc = (record.monotonic + numbers["offset"][at]) & MASK
        record.sequence = (expected.get(number, 0) + numbers["sequence"][at]) & MASK
        expected[number] = record.sequence + 1
        record.level, record.kind = numbers["level"][at], kind & 7
        record.unverified = bool(kind & 16)
        record.logger = found.loggers[numbers["logger"][at]]
        context = numbers["context"][at]
        if context:
            record.context, record.trace = found.contexts[context - 1]
        if kind & 32:
            apply_sections(record, next(sections), sites)
            record.kind = kind & 7
        if kind & 64:
            form = found.formats[next(formats)]
            cut = deferred.fill(record, (form.line, form.file, form.function, form.style,
                                         form.text, form.types), arguments)
            if cut or kind & 8:
                record.original_length = len(record.message)
        else:
            record.message = next(messages)
        yield record


def main(arguments):
    promised, damaged = "--letters" in arguments, False
    for path in arguments:
        if path == "--letters":
            continue
        try:
            tree = read(path)
            found = columns(tree)
            records = decode(tree, found)
            if promised:
                block_letters.check(tree, found, records)
            for record in records:
                print(as_json(record))
        except Damage as damage:
            print(f"block.py: {path}: {damage}", file=sys.stderr)
            damaged = True
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
