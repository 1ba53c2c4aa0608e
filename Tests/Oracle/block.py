#!/usr/bin/env python3
"""An independent reader of blocks (FORMAT §11.4), written from docs/FORMAT.md alone.

    block.py FILE…          prints the records as JSON lines, in the form of decode.py
    block.py --letters …    also checks what a block's flag promises to a search

A FILE is `block RECORDCOUNT SIZE CODEC` and a newline (the codec zstd, lz4 or none), then the
directory and the frames. Damage is a line on stderr, and exit 1."""

import os
import re
import struct
import sys
from dataclasses import dataclass, field

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import block_letters  # noqa: E402
import column_parts  # noqa: E402
import deferred  # noqa: E402
from column_codecs import MASK, ints, sized_strings, strings  # noqa: E402
from record import Record, apply_sections, as_json, fields_that_fit  # noqa: E402
from tree import LIMITS, Tree, within  # noqa: E402
from wire import Bytes, Damage, u32  # noqa: E402

WORD = 2**32
# FORMAT §11.4 leaves these kinds of sections out.
LEFT_OUT = (1, 8, 10, 11)


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
    """An entry of formats."""

    line: int
    file: bytes
    function: bytes
    style: int
    text: bytes
    types: bytes


@dataclass
class Columns:
    """What a block holds, before there are records. A context is its list of fields, as bytes, and
    its trace; sections are the bytes of each record that has some."""

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


def read(path, limits=LIMITS):
    """The tree of one file."""
    with open(path, "rb") as file:
        head, stored = file.readline(), file.read()
    match = re.fullmatch(rb"block (\d+) (\d+) (zstd|lz4|none)\n", head)
    if not match:
        raise Damage("no block's first line")
    return Tree(int(match[1]), int(match[2]), match[3].decode(), stored, limits)


def decode(tree, found=None):
    """The records. `found`: the tree's columns, where they were read."""
    found = found or columns(tree)
    tree.end()
    return list(_records(tree.records, found))


def _unsigned(tree, count):
    return [value & MASK for value in ints(tree, count)]


def _below(what, values, most):
    if not all(0 <= value < most for value in values):
        raise Damage(f"{what} that cannot be")
    return values


def _entries(what, tree, most):
    """The number of a table's entries."""
    count = tree.meta.varint()
    within(what, count, most)
    tree.add(64 * count)
    return count


def _texts(tree, count):
    found = strings(tree, count)
    tree.add(sum(map(len, found)))
    return found


def columns(tree):
    """FORMAT §11.4."""
    tree.add(64 * tree.records)
    most = tree.limits.entries
    processes = _processes(tree)
    threads = _threads(tree, processes)
    loggers = _texts(tree, _entries("loggers", tree, most))
    count = _entries("sites", tree, most)
    sites = list(zip(_lines(tree, count), _texts(tree, count), _texts(tree, count)))
    found = Columns(processes, threads, loggers, sites, _formats(tree))
    found.numbers = _numbers(tree, found)
    found.contexts = _contexts(tree)
    _below("a context", found.numbers["context"], len(found.contexts) + 1)
    found.arguments = column_parts.arguments(tree, [form.types for form in found.formats],
                                             found.numbers["format"])
    tree.add(len(found.arguments))
    found.sections = _sections(tree, found.numbers, len(sites))
    tree.add(tree.records - len(found.numbers["format"]))
    found.messages = _texts(tree, tree.records - len(found.numbers["format"]))
    return found


def _processes(tree):
    count = _entries("processes", tree, tree.limits.processes)
    tree.add(32 * count)
    lanes, boots = sized_strings(tree, count, 16), sized_strings(tree, count, 16)
    pids = _below("a process id", ints(tree, count), WORD)
    realtimes, monotonics = _unsigned(tree, count), _unsigned(tree, count)
    names, owned = _texts(tree, count), ints(tree, count)
    most = tree.limits.attributes
    _below("a number of attributes", owned, most + 1)
    within("attributes", sum(owned), most)
    tree.add(64 * sum(owned))
    keys, values = _texts(tree, sum(owned)), _texts(tree, sum(owned))
    pairs, found = iter(zip(keys, values)), []
    for row in zip(lanes, boots, pids, realtimes, monotonics, names, owned):
        *words, attributes = row
        found.append(Process(*words, dict(next(pairs) for _ in range(attributes))))
    return found


def _threads(tree, processes):
    count = _entries("threads", tree, tree.limits.entries)
    owners = _below("a thread's process", ints(tree, count), len(processes))
    serials = _below("a thread's serial", ints(tree, count), WORD)
    identifiers = _below("a thread's id", ints(tree, count), WORD)
    return list(zip(owners, serials, identifiers, _texts(tree, count)))


def _lines(tree, count):
    return _below("a line", ints(tree, count), WORD)


def _formats(tree):
    count = _entries("formats", tree, tree.limits.entries)
    lines, files, functions = _lines(tree, count), _texts(tree, count), _texts(tree, count)
    styles = _below("a style", ints(tree, count), 256)
    texts, types = _texts(tree, count), _texts(tree, count)
    within("argument types", sum(map(len, types)), tree.limits.parts)
    return [Format(*row) for row in zip(lines, files, functions, styles, texts, types)]


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


def _contexts(tree):
    count = _entries("contexts", tree, tree.limits.entries)
    lists = column_parts.field_lists(tree, count)
    tree.add(sum(map(len, lists)))
    return list(zip(lists, column_parts.traces(tree, count)))


def _sections(tree, numbers, sites):
    utc = [(time + offset) & MASK for kind, time, offset in zip(
        numbers["kind"], numbers["time"], numbers["offset"]) if kind & 32]
    runs = column_parts.sections(tree, utc)
    tree.add(sum(map(len, runs)))
    for kind, body in (part for run in runs for part in _parts(run)):
        if kind == 3:
            _below("a site", [u32(body, 0)], sites)
    return runs


def _parts(run):
    """(kind, body) of each section that fits."""
    source, found = Bytes(run), []
    while source.left >= 8:
        kind, _reserved, length = source.u8(), source.take(3), source.u32()
        if length > source.left or kind == 3 and length < 4:
            break
        found.append((kind, source.take(length)))
    return found


def _apply(record, run, sites):
    for kind, body in _parts(run):
        if kind == 2:
            record.fields = fields_that_fit(body)
        elif kind not in LEFT_OUT:
            try:
                apply_sections(record, struct.pack("<BBHI", kind, 0, 0, len(body)) + body, sites)
            except Damage:
                break


def _records(count, found):
    numbers, sites = found.numbers, dict(enumerate(found.sites))
    contexts = [(fields_that_fit(run), trace) for run, trace in found.contexts]
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
            record.context, record.trace = contexts[context - 1]
        if kind & 32:
            _apply(record, next(sections), sites)
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
