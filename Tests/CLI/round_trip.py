#!/usr/bin/env python3
"""Takes whole files in with `cordwood log`, archives them and exports them again: byte for byte the
same. Real logs where the folder beside the repository has them, the bundled sample, and a file with
everything that text may not contain.

    round_trip.py [--all]

The oracle reads each store twice, live and archived; large files only with --all."""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "Tests/Oracle"))

from compare import compare  # noqa: E402

CORDWOOD = str(ROOT / "build/bin/cordwood")
LOGS = ROOT.parent / "shared/data/logs"
ORACLE_BYTES = 1 << 20


class Failed(Exception):
    pass


def nasty():
    """Invalid UTF-8, NUL, empty lines, lone CR, a line of 1 MB, bytes of all kinds."""
    chance = random.Random(2)
    lines = [b"plain", b"", b"\xff\xfe\x80", b"a\0b", b"\r", b"cr\rin the middle", b"crlf\r", b"",
             b"\xed\xa0\x80 a surrogate", b"\xf4\x90\x80\x80", b"\x1b[31mred\x1b[0m", b" " * 70,
             "grüße, 世界, 🪵".encode(), bytes(chance.choices(range(256), k=1 << 20)).replace(
                 b"\n", b" ")]
    for _ in range(500):
        lines.append(chance.randbytes(chance.randrange(200)).replace(b"\n", b""))
    return b"\n".join(lines) + b"\n"


def run(*arguments, data=None):
    done = subprocess.run([CORDWOOD, *arguments], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed(f"cordwood {arguments[0]} ended {done.returncode}: "
                     f"{done.stderr.decode(errors='replace')[:300]}")
    return done.stdout


def first_difference(left, right):
    for index, (a, b) in enumerate(zip(left, right)):
        if a != b:
            return f"byte {index}: {left[index:index + 40]!r}, not {right[index:index + 40]!r}"
    return f"{len(left)} bytes, not {len(right)}"


def round_trip(content, by_stdin, everything):
    with tempfile.TemporaryDirectory() as folder:
        store, source = f"{folder}/store", f"{folder}/source.log"
        Path(source).write_bytes(content)
        taken = ["log", "--store", store, "--logger", "round.trip"]
        run(*taken, data=content) if by_stdin else run(*taken, source)
        oracle = everything or len(content) <= ORACLE_BYTES
        for state in ("live", "archived"):
            if state == "archived":
                run("archive", store)
                left = [path.name for path in Path(store).rglob("*")
                        if path.suffix in (".seg", ".sealed")]
                if left:
                    raise Failed(f"left after archive: {left[:3]}")
            out = run("export", store, "--format", "raw")
            if out != content:
                raise Failed(f"{state}: {first_difference(out, content)}")
            if oracle:
                _, differences = compare(store, CORDWOOD)
                if differences:
                    raise Failed(f"{state}: the oracle disagrees: {differences[0][:1500]}")
        for line in run("cat", "--json", store).splitlines():
            json.loads(line)
        run("verify", store)


def main():
    parser = argparse.ArgumentParser(description="files in, archived, out: byte-exact")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    cases = [("generated", nasty(), False), ("generated, by stdin", nasty(), True),
             ("empty", b"", False), ("one line", b"one\n", True)]
    for sample in sorted((ROOT / "examples").glob("*.log")):
        cases.append((sample.name, sample.read_bytes(), True))
    if LOGS.is_dir():
        cases += [(path.name, path.read_bytes(), False) for path in sorted(LOGS.glob("*.*"))
                  if path.suffix in (".log", ".json")]
    else:
        print("skipped: no folder of real logs beside the repository")
    failed = 0
    for name, content, by_stdin in cases:
        try:
            round_trip(content, by_stdin, arguments.all)
        except Failed as reason:
            failed += 1
            print(f"FAIL {name}: {reason}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
