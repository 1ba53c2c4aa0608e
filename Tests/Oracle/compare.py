#!/usr/bin/env python3
"""Compares the oracle with `cordwood cat --json`, record for record.

    compare.py STORE_OR_FILE [--cordwood build/bin/cordwood]

Every member of a line must agree; members that only the tool prints are ignored. Records of other
threads with one time may change places, nothing else may. Ends 0 where all agree."""

import argparse
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from decode import Store, in_order  # noqa: E402
from record import as_pairs  # noqa: E402
from wire import Damage, NewerVersion  # noqa: E402

ALWAYS = {"time", "level", "logger", "message", "pid", "tid", "kind"}
KNOWN = ALWAYS | {"message_base64", "file", "line", "function", "fields", "trace_id", "span_id"}


def tool_lines(cordwood, path):
    run = subprocess.run([cordwood, "cat", "--json", path], stdout=subprocess.PIPE, check=False)
    if run.returncode not in (0, 3):
        raise SystemExit(f"compare.py: cordwood cat ended {run.returncode}")
    lines = []
    for number, line in enumerate(run.stdout.split(b"\n")[:-1], 1):
        pairs = json.loads(line, object_pairs_hook=lambda found: found)
        names = [name for name, _ in pairs]
        missing = ALWAYS - set(names)
        if missing or len(names) != len(set(names)):
            raise SystemExit(f"compare.py: line {number}: missing {missing} or repeated: {line!r}")
        lines.append({name: value for name, value in pairs if name in KNOWN})
    return lines


def plain(record):
    """The oracle's line in the shape json.loads gives."""
    line = dict(as_pairs(record))
    if "fields" in line:
        line["fields"] = [tuple(pair) for pair in line["fields"]]
    return line


def canonical(line):
    return json.dumps(line, sort_keys=True, ensure_ascii=True)


def per_thread(group):
    """The lines of each thread, in order."""
    found = {}
    for line in group:
        found.setdefault((line["pid"], line["tid"]), []).append(canonical(line))
    return found


def differences(expected, lines):
    """`expected`: (key, line) of the oracle. Groups of one key are compared thread by thread."""
    if len(expected) != len(lines):
        yield f"the oracle has {len(expected)} records, the tool {len(lines)}"
    at = 0
    while at < min(len(expected), len(lines)):
        end = at
        while end < len(expected) and expected[end][0][0] == expected[at][0][0]:
            end += 1
        ours = per_thread(line for _, line in expected[at:end])
        theirs = per_thread(lines[at:end])
        if ours != theirs:
            yield (f"records {at + 1} to {end}:\n  oracle {ours}\n  tool   {theirs}")
            return
        at = end


def compare(path, cordwood):
    """The number of records that agree, and what does not."""
    store = Store(path)
    expected = [(key, plain(record)) for key, record in in_order(store.records)]
    return len(expected), list(differences(expected, tool_lines(cordwood, path)))


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
