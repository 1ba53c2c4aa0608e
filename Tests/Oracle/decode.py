#!/usr/bin/env python3
"""An independent reader of stores, segments and archives, written from docs/FORMAT.md alone.

    decode.py STORE_OR_FILE [--json]

Prints the records as JSON lines in the order of FORMAT §4. Reports damage on stderr. Slow and plain
on purpose: if it and the engine differ, one of them misreads the page."""

import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from archive import Archive  # noqa: E402
from journal import Journal  # noqa: E402
from live import Lane, decode_chunk  # noqa: E402
from record import as_json  # noqa: E402
from wire import Damage, NewerVersion  # noqa: E402


def running_boot():
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except OSError:
        return bytes(16)


class Store:
    """The content of a path: a store, or one file of it."""

    def __init__(self, path):
        self.problems, self.records, self.covered = [], [], []
        if os.path.isdir(path):
            archives, lanes = os.path.join(path, "archives"), os.path.join(path, "lanes")
            opened = []
            for name in self._names(archives, ".cwa"):
                self._guard(lambda path: opened.append(Archive(path, self.problems.append)),
                            os.path.join(archives, name))
            replaced = {one for archive in opened for one in archive.replaced}
            for archive in opened:
                if archive.id not in replaced:
                    self._guard(self._read_archive, archive)
            for name in self._names(lanes, ".lane"):
                self._guard(self._read_lane, lanes, name[:-5], None)
        elif path.endswith(".lane"):
            self._read_lane(os.path.dirname(path), os.path.basename(path)[:-5], {"segment 0"})
        elif path.endswith((".seg", ".sealed")):
            name = os.path.basename(path)
            self._read_lane(os.path.dirname(path), name.rsplit(".", 2)[0], {name})
        else:
            self._read_archive(Archive(path, self.problems.append))

    @staticmethod
    def _names(directory, suffix):
        if not os.path.isdir(directory):
            return []
        return [name for name in sorted(os.listdir(directory))
                if name.endswith(suffix) and not name.startswith(".")]

    def _guard(self, read, *arguments):
        try:
            read(*arguments)
        except (Damage, NewerVersion) as problem:
            self.problems.append(str(problem))

    def _read_archive(self, archive):
        self.covered += archive.covers
        for record in archive.records():
            record.archive = archive.path
            self.records.append(record)

    def _read_lane(self, directory, name, only):
        lane = Lane(name, directory, self.problems.append)
        other_boot = any(lane.boot) and lane.boot != running_boot()
        journal = Journal(lane) if other_boot else None
        lane.read_catalog()
        gaps, pairs = {}, []
        for number, segment in sorted(lane.segments().items()):
            if only is not None and segment.name not in only:
                continue
            if any(cover[0] == lane.id and cover[1] <= number <= cover[2]
                   for cover in self.covered):
                continue
            if journal:
                journal.lay_over(segment)
            pairs = segment.clock_pairs() or pairs
            self._read_segment(segment, journal, gaps)
        if only is None and pairs:
            newest = max((record.monotonic for record in self.records if record.lane is lane),
                         default=0)
            left = lane.left_over(gaps, pairs, newest)
            if left:
                self.records.append(left)

    def _read_segment(self, segment, journal, gaps):
        changed = segment.changed() if segment.sealed() and not journal else None
        if changed:
            self.problems.append(f"{segment.name}: {changed}")
        for at, readable in segment.chunks():
            holds = not segment.sealed() or segment.crc_holds(at)
            if not holds:
                self.problems.append(f"{segment.name}: chunk {at}: crc does not match")
            records, found = decode_chunk(segment, at, readable)
            for slot, total in found:
                gaps[slot] = max(gaps.get(slot, 0), total)
            if journal and not (segment.sealed() and holds):
                believed = journal.covered.get((segment.number, at), 0)
                for record in records:
                    record.unverified |= record.chunk_end > believed
            self.records += records


def boot_key(lane):
    """A lane of an unknown boot shares its clock with no other lane."""
    return lane.boot if any(lane.boot) else lane.id


def in_order(records):
    """FORMAT §4. Returns (key, record). Records of other threads with equal keys are in any
    order."""
    first = {}
    for record in records:
        lane = record.lane
        mark = (lane.created_realtime, lane.name, lane.created_realtime - lane.created_monotonic)
        boot = boot_key(lane)
        first[boot] = min(first.get(boot, mark), mark)

    runs = {}
    for record in records:
        runs.setdefault((record.lane.name, record.thread_serial, record.stream, record.archive),
                        []).append(record)
    keyed = []
    for (name, serial, _, archive), run in runs.items():
        # An archive is already in order. Segments may be used out of the order of their numbers.
        if not archive:
            run.sort(key=lambda record: record.sequence)
        latest = None
        for record in run:
            time = record.monotonic + first[boot_key(record.lane)][2]
            # Within a thread the order is exact: a clock that went back counts as stopped.
            latest = time if latest is None else max(latest, time)
            keyed.append(((latest, name), (serial, record.sequence), record))
    keyed.sort(key=lambda entry: (entry[0], entry[1]))
    return [(key, record) for key, _, record in keyed]


def main():
    parser = argparse.ArgumentParser(description="Decode a Cordwood store by its format page.")
    parser.add_argument("path")
    parser.add_argument("--json", action="store_true", help="the only form there is")
    arguments = parser.parse_args()
    if not os.path.exists(arguments.path):
        print(f"decode.py: no such file: {arguments.path}", file=sys.stderr)
        return 4
    try:
        store = Store(arguments.path)
    except (Damage, NewerVersion) as problem:
        print(f"decode.py: {problem}", file=sys.stderr)
        return 3
    out = sys.stdout
    for _, record in in_order(store.records):
        out.write(as_json(record) + "\n")
    for problem in store.problems:
        print(f"decode.py: {problem}", file=sys.stderr)
    return 3 if store.problems else 0


if __name__ == "__main__":
    sys.exit(main())
