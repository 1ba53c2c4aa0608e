#!/usr/bin/env python3
"""Golden archives of method 2 for every reader, and their expected content (FORMAT §11.6).

    golden.py        writes those that are missing into golden/, and adds them to expected.json

Files are added, never changed: the page defines their meaning, and a later encoder may make others.
In `hostile-*` a whole block ("after NAME") follows each block that breaks the rule NAME."""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent / "golden"
sys.path.insert(0, str(FOLDER.parent))

import dense_bounds  # noqa: E402, F401 (adds to CASES)
import dense_broken  # noqa: E402, F401 (adds to CASES)
from dense import decode  # noqa: E402
from dense_encoder import DOUBLES, INTS, STRINGS, Choice  # noqa: E402
from dense_hostile import CASES, Clock, block, small  # noqa: E402
from dense_samples import TEXTS, Sample, stamp_text  # noqa: E402
from dense_tree import LIMITS  # noqa: E402
from dense_writer import Layout, archive, encode, extract, plain, zstd_frame  # noqa: E402

NAMES = {
    "ints": "const offset delta dictionary slope log-offset log-delta runs",
    "doubles": "planes decimal words",
    "strings": "const lines sized dictionary templates int digits decimal hex fixed",
}


def one(seed, prefer, layout=None, **words):
    sample = Sample(seed, 24, **words)
    made = encode(sample.payload, sample.count, Choice(seed, prefer),
                  layout or Layout(frame=zstd_frame))
    return [(*made, sample.count, sample.payload)]


def samples():
    """(name, function that returns the blocks, each with its count of records and payload)."""
    for kind, numbers in (("Ints", INTS), ("Doubles", DOUBLES), ("Strings", STRINGS)):
        for number, name in zip(numbers, NAMES[kind.lower()].split()):
            words = {"texts": TEXTS[number]} if kind == "Strings" else {}
            if (kind, number) == ("Doubles", 1):
                words["decimals"] = True
            yield (f"{kind.lower()}-{number}-{name}", lambda number=number, kind=kind, words=words:
                   one(number, {kind: (number,)}, **words))
    for kind in ("FieldLists", "Traces", "Sections", "mode"):
        for form in (0, 1):
            prefer = {"Strings": (3,), "Sections": (1,), kind: (form,)}
            traces = (kind, form) != ("Traces", 0)
            yield (f"{kind.lower()}-{form}", lambda form=form, prefer=prefer, traces=traces:
                   one(20 + form, prefer, traces=traces))
    yield "frames-many", lambda: one(30, {}, Layout(plane_bytes=1, duplicates=0.5))
    yield "frames-few", lambda: one(31, {}, Layout(plane_bytes=20, frame=zstd_frame))
    yield "methods-mixed", mixed
    yield "stamps", lambda: one(60, {"Strings": (4,)}, texts=stamp_text)
    yield "json-fields", lambda: one(50, {"FieldLists": (0,)}, json=True)


def mixed():
    found = []
    for seed in range(40, 44):
        sample = Sample(seed, 8, hour=seed - 40)
        made = (plain(sample.payload, 8) if seed % 2 else
                encode(sample.payload, 8, Choice(seed), Layout(frame=zstd_frame)))
        found.append((*made, 8, sample.payload))
    return found


def with_extract():
    """Blocks of both methods, and copies of their severe records (FORMAT §11.11)."""
    rows = [(1000 + number, number, 17 + number % 7 if number % 64 == 40 else 9)
            for number in range(512)]

    def made(rows):
        return small([b"order %d" % number for _, number, _ in rows], rows=rows)
    found = []
    for at in range(0, 512, 128):
        payload, count = made(rows[at:at + 128])
        stored = plain(payload, count) if at % 256 else block((payload, count))
        found.append((*stored, count, payload))
    return found, extract(1000, *made([row for row in rows if row[2] > 9]))


def missing():
    """(name, archive, its content) of the missing files."""
    for name, make in samples():
        if not (FOLDER / f"{name}.cwa").exists():
            blocks = make()
            yield name, archive([made[:2] for made in blocks]), expectation(blocks)
    if not (FOLDER / "extract.cwa").exists():
        blocks, copies = with_extract()
        yield "extract", archive([made[:2] for made in blocks], copies), expectation(blocks)
    for group in dict.fromkeys(case.group for case in CASES):
        name = group if group.startswith("whole") else f"hostile-{group}"
        if (FOLDER / f"{name}.cwa").exists():
            continue
        blocks, told = [], []
        for case in (case for case in CASES if case.group == group):
            Clock.now += 10**6
            made = case.block()
            if case.lift or case.is_whole:
                payload = decode(*made, replace(LIMITS, **case.lift))
            count = int.from_bytes(made[0][28:32], "little")
            if case.is_whole:
                blocks.append((*made, count, payload))
                continue
            told.append(case.name)
            blocks.append((*made, 0, None))
            Clock.now += 10**6
            after = small([b"after " + case.name.encode()])
            blocks.append((*block(after), 1, after[0]))
        told = {"newer" if group == "newer" else "damaged": told} if told else {}
        yield name, archive([made[:2] for made in blocks]), expectation(blocks, told)


def expectation(blocks, told=None):
    """Readable records, the names of unreadable blocks, SHA-256 of the payloads."""
    return {"records": sum(count for *_, count, _ in blocks), **(told or {}), "payloads": [
        hashlib.sha256(payload).hexdigest() for *_, payload in blocks if payload is not None]}


def main():
    FOLDER.mkdir(exist_ok=True)
    place = FOLDER / "expected.json"
    known = json.loads(place.read_text()) if place.exists() else {}
    for name, data, expected in missing():
        (FOLDER / f"{name}.cwa").write_bytes(data)
        known[f"{name}.cwa"] = expected
        place.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
        print(f"{name}.cwa: {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
