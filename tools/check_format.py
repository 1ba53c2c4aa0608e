#!/usr/bin/env python3
"""Compares the tables of docs/FORMAT.md with the constants of the same names in the layout files,
both ways: neither page nor code may drift alone."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYOUTS = ("Sources/CordwoodCore/Format", "Sources/CordwoodStore/Archive",
           "Sources/CordwoodStore/Codecs")
PAGE = "docs/FORMAT.md"
# Tables of numbers: section, first column → enum, prefix of the constant's name.
NUMBERED = {
    ("5", "type"): ("CatalogEntry", "type"),
    ("8", "type"): ("RecordType", ""), ("8.7", "type"): ("ArgumentType", ""),
    ("8.1", "kind"): ("SectionKind", ""),
    ("8.2", "type"): ("FieldType", ""),
    ("11.8", "Ints"): ("IntsCodec", ""), ("11.8", "Doubles"): ("DoublesCodec", ""),
    ("11.9", "Strings"): ("StringsCodec", ""),
}
# Constants that are not offsets: sizes and limits, which the text around the tables states.
NOT_OFFSETS = re.compile(r"(Value|Max|Bytes|^bytes|^alignment|^granule)$")


def constants():
    """enum → name → (value, typed)."""
    found = {}
    for folder in LAYOUTS:
        for path in sorted((ROOT / folder).glob("*.swift")):
            name = None
            for line in path.read_text().splitlines():
                start = re.match(r"(?:public |package )?enum (\w+)", line)
                if start:
                    name = start[1]
                value = re.match(
                    r"\s+(?:public |package )?static let (\w+)(: \w+)? = ([0-9A-Fa-fx_]+)"
                    r"(?: << (\d+))?\s*(?://.*)?$", line)
                if name and value:
                    number = int(value[3].replace("_", ""), 0) << int(value[4] or 0)
                    found.setdefault(name, {})[value[1]] = (number, bool(value[2]))
    return found


def tables():
    """(section, enum named above or None, header cells, rows)."""
    section, name, header, rows = "", None, None, []
    for line in (ROOT / PAGE).read_text().splitlines() + [""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if header is None:
                header = cells
            elif not set(line) <= set("|- "):
                rows.append(cells)
            continue
        if header is not None:
            yield section, name, header, rows
            header, rows, name = None, [], None
        heading = re.match(r"#+ §([\d.]+)", line)
        if heading:
            section, name = heading[1], None
        words = re.findall(r"`([A-Z][a-z]\w+)`", line)
        if words:
            name = words[-1]


def number(text):
    return int(text.replace(",", ""))


def check_offsets(where, enum, rows, known, problems):
    end, seen = 0, set()
    for offset, size, name, meaning in (row[:4] for row in rows):
        if number(offset) < end:
            problems.append(f"{where}: {name} at {offset} overlaps what stands before it")
        end = number(offset) + (number(size) if size else 0)
        if name == "reserved":
            continue
        seen.add(name)
        value = known.get(name)
        if value is None:
            problems.append(f"{where}: {enum}.{name} is not in the code")
        elif value[0] != number(offset):
            problems.append(f"{where}: {enum}.{name} is {value[0]} in the code, {offset} here")
        magic = re.match(r"`(\w{8})`", meaning)
        if magic and name == "magic":
            expected = int.from_bytes(magic[1].encode(), "little")
            if known.get("magicValue", (None,))[0] != expected:
                problems.append(f"{where}: {enum}.magicValue is not {magic[1]}")
    for name, (value, typed) in known.items():
        if name not in seen and not typed and not NOT_OFFSETS.search(name):
            problems.append(f"{where}: no row for {enum}.{name} = {value}")
    return len(seen)


def check_numbers(where, enum, prefix, rows, known, problems):
    seen = set()
    for row in rows:
        name = prefix + (row[1][0].upper() + row[1][1:] if prefix else row[1])
        seen.add(name)
        value = known.get(name)
        if value is None:
            problems.append(f"{where}: {enum}.{name} is not in the code")
        elif value[0] != number(row[0]):
            problems.append(f"{where}: {enum}.{name} is {value[0]} in the code, {row[0]} here")
    for name, (value, typed) in known.items():
        if typed and name.startswith(prefix) and name not in seen and name != "magicValue":
            problems.append(f"{where}: no row for {enum}.{name} = {value}")
    return len(seen)


def main():
    known, problems, compared, met = constants(), [], 0, set()
    for section, name, header, rows in tables():
        where = f"FORMAT §{section}"
        if header[:3] == ["offset", "size", "name"]:
            if name not in known:
                problems.append(f"{where}: no enum {name} in {' or '.join(LAYOUTS)}")
                continue
            met.add(name)
            compared += check_offsets(where, name, rows, known[name], problems)
        elif (section, header[0]) in NUMBERED:
            enum, prefix = NUMBERED[(section, header[0])]
            met.add((section, header[0]))
            compared += check_numbers(where, enum, prefix, rows, known.get(enum, {}), problems)
    for place in NUMBERED:
        if place not in met:
            problems.append(f"FORMAT §{place[0]}: no table of {place[1]}s")
    if len(met) < 14:
        problems.append(f"only {len(met)} tables found: does this script still read the page?")
    print("\n".join(problems) or f"{compared} rows in {len(met)} tables")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
