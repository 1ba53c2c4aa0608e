#!/usr/bin/env python3
"""Compares the oracle with `cordwood cat --json`, record for record.

    compare.py STORE_OR_FILE [--cordwood build/bin/cordwood]

Every member of a line must agree. Members that only the tool prints are ignored. Records of one
thread must be in the same order. Among threads the tool may deviate by 200 microseconds (FORMAT,
section 4). Exits with 0 if all agree."""

import argparse
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from decode import Store, in_order  # noqa: E402
from record import JSONText, as_pairs  # noqa: E402
from wire import Damage, NewerVersion  # noqa: E402

# Twice the tolerance of ChainSource, because three files may meet.
SLACK_NS = 200_000

ALWAYS = {"time", "level", "logger", "message", "pid", "tid", "kind", "process", "service", "host",
          "resource", "record_id"}
KNOWN = ALWAYS | {"message_base64", "file", "line", "function", "fields", "trace_id", "span_id"}


def tool_lines(cordwood, path):
    run = subprocess.run([cordwood, "cat", "--json", path], stdout=subprocess.PIPE, check=False)
    if run.returncode not in (0, 3):
        raise SystemExit(f"compare.py: cordwood cat ended {run.returncode}")
    return parsed_lines(run.stdout)


def parsed_lines(output):
    lines = []
    for number, line in enumerate(output.split(b"\n")[:-1], 1):
        pairs = json.loads(line, object_pairs_hook=lambda found: found)
        names = [name for name, _ in pairs]
        missing = ALWAYS - set(names)
        if missing or len(names) != len(set(names)):
            raise SystemExit(f"compare.py: line {number}: missing {missing} or repeated: {line!r}")
        lines.append({name: value for name, value in pairs if name in KNOWN})
    return lines


def plain(record):
    """The oracle's line in the form that json.loads returns."""
    line = dict(as_pairs(record))
    for name in ("fields", "resource"):
        if name in line:
            line[name] = [(key, as_loaded(value)) for key, value in line[name]]
    return line


def as_loaded(value):
    if isinstance(value, JSONText):
        return json.loads(value, object_pairs_hook=lambda found: found)
    return value


def canonical(line):
    return json.dumps(line, sort_keys=True, ensure_ascii=True)


def per_thread(group):
    """The lines of each thread, in order."""
    found = {}
    for line in group:
        found.setdefault((line["pid"], line["tid"]), []).append(canonical(line))
    return found


def differences(expected, lines):
    """`expected`: (key, line) of the oracle, key[0] the ordering time in ns. Within a thread
    nothing may differ. Among threads the tool may deviate by SLACK_NS where a lane's files meet."""
    if len(expected) != len(lines):
        yield f"the oracle has {len(expected)} records, the tool {len(lines)}"
    ours = per_thread(line for _, line in expected)
    theirs = per_thread(lines)
    for thread in sorted(ours.keys() | theirs.keys()):
        for at, pair in enumerate(zip(ours.get(thread, []), theirs.get(thread, []))):
            if pair[0] != pair[1]:
                yield f"thread {thread}, record {at + 1}:\n  oracle {pair[0]}\n  tool {pair[1]}"
                return
    times = {}
    for key, line in expected:
        times.setdefault((line["pid"], line["tid"]), []).append(key[0])
    left = {thread: iter(found) for thread, found in times.items()}
    latest = 0
    for number, line in enumerate(lines, 1):
        time = next(left.get((line["pid"], line["tid"]), iter(())), latest)
        if time < latest - SLACK_NS:
            yield f"record {number} comes {latest - time} ns too late: {canonical(line)}"
            return
        latest = max(latest, time)


def compare(path, cordwood):
    """The number of records that agree, and the differences."""
    return compared(path, tool_lines(cordwood, path))


def compared(path, lines):
    store = Store(path)
    expected = [(key, plain(record)) for key, record in in_order(store.records)]
    return len(expected), list(differences(expected, lines))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Compare the oracle with `cordwood cat --json`.")
    parser.add_argument("path")
    parser.add_argument("--cordwood", default=os.path.join(here, "../../build/bin/cordwood"))
    arguments = parser.parse_args()
    try:
        count, found = compare(arguments.path, arguments.cordwood)
    except (Damage, NewerVersion, OSError) as problem:
        print(f"compare.py: {problem}", file=sys.stderr)
        return 4
    for difference in found:
        print(f"compare.py: {difference}", file=sys.stderr)
    print(f"{count} records, {'all agree' if not found else 'DIFFERENT'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
