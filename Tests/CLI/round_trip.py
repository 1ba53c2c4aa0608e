#!/usr/bin/env python3
"""Takes whole files in with `cordwood log`, archives them and exports them again, byte for byte the
same: real logs if the folder beside the repository has them, the bundled sample, and a file with
everything that text may not contain. Generated hostile text (hostile_text.py) goes through dense
blocks: 20 MB, or 1 GB with --size all.

    round_trip.py [--size S] [-k PATTERN …] [CASE …]

Each store is archived twice, in plain and in dense blocks. The oracle reads it live and with plain
blocks; large files only with --size all."""

import filecmp
import json
import mmap
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "Tests/Oracle"), str(ROOT / "Tests/TestSupport")]

import cases  # noqa: E402
import hostile_text  # noqa: E402
from cases import Failed, Skipped, full, sized  # noqa: E402
from compare import compare  # noqa: E402

CORDWOOD = str(ROOT / "build/bin/cordwood")
LOGS = ROOT.parent / "shared/data/logs"
ORACLE_BYTES = 1 << 20
HOSTILE_BYTES = (5 << 20, 20 << 20, 1 << 30)
# The dense blocks of this text are clearly the smaller ones. If both methods take about the same
# space, times and samples decide.
FLIPS, FLIPS_BYTES, FLIPS_SEED = (20, 100, 10_000), 5 << 20, 16
FLIP_CPU_S, FLIP_MEMORY = 10, 512 << 20


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


def round_trip(content, by_stdin):
    with tempfile.TemporaryDirectory() as folder:
        store, source = f"{folder}/store", f"{folder}/source.log"
        Path(source).write_bytes(content)
        taken = ["log", "--store", store, "--logger", "round.trip"]
        run(*taken, data=content) if by_stdin else run(*taken, source)
        oracle = sized(False, False, True) or len(content) <= ORACLE_BYTES
        dense = f"{folder}/dense"
        shutil.copytree(store, dense, symlinks=True)
        for state in ("live", "plain", "dense"):
            if state == "dense":
                store = dense
            if state != "live":
                run("archive", store, "--method", state)
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


# The start of a block's header (FORMAT §11.2), its effort and its number of records.
BLOCK = re.compile(rb"\x80\0\0\0CWBLCK01.{16}([\0-\x02]).{3}(.{4})", re.DOTALL)
DENSE_PERCENT_MIN = 50


def efforts(store):
    """The number of plain blocks (effort 0), and of dense ones."""
    count = [0, 0]
    for path in Path(store).glob("archives/*.cwa"):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            for block in BLOCK.finditer(data):
                count[block[1] != b"\0"] += 1
    return count


def hostile():
    """In pieces: neither this program nor the tool may hold everything."""
    with tempfile.TemporaryDirectory() as folder:
        source, store, out = Path(folder, "source"), f"{folder}/store", Path(folder, "out")
        with source.open("wb") as file:
            for piece in hostile_text.pieces(4, sized(*HOSTILE_BYTES)):
                file.write(piece)
        run("log", "--store", store, "--logger", "hostile", str(source))
        run("archive", store)
        with out.open("wb") as file:
            subprocess.run([CORDWOOD, "export", store, "--format", "raw"], stdout=file, check=True)
        if not filecmp.cmp(source, out, shallow=False):
            raise Failed("what is exported is not what was logged")
        run("verify", store)
        plain, dense = efforts(store)
        if dense * 100 < (plain + dense) * DENSE_PERCENT_MIN:
            raise Failed(f"{dense} of {plain + dense} blocks are dense")


def flips():
    """Bits of dense blocks flip, one at a time. The tool reports it within its limits, and returns
    the other blocks whole and, of the damaged one, only lines that were in it, in order."""
    chance = random.Random(8)
    with tempfile.TemporaryDirectory() as folder:
        source, store = Path(folder, "source"), f"{folder}/store"
        whole = b"".join(hostile_text.pieces(FLIPS_SEED, FLIPS_BYTES))
        source.write_bytes(whole)
        run("log", "--store", store, "--logger", "hostile", str(source))
        run("archive", store)
        path, = Path(store).glob("archives/*.cwa")
        data = bytearray(path.read_bytes())
        lines, blocks, first = whole.split(b"\n")[:-1], [], 0
        for found in BLOCK.finditer(data):
            count = int.from_bytes(found[2], "little")
            blocks.append((found.start() - 4, found[1] != b"\0", first, first + count))
            first += count
        ends = [block[0] for block in blocks[1:]] + [data.rindex(b"CWFOOT01") - 8]
        dense = [(*block, end) for block, end in zip(blocks, ends) if block[1]]
        if first != len(lines) or len(dense) < 3:
            raise Failed(f"{first} of {len(lines)} lines, {len(dense)} dense blocks")
        for number in range(sized(*FLIPS)):
            start, _, begin, end, stop = chance.choice(dense)
            at, bit = chance.randrange(start, stop), 1 << chance.randrange(8)
            data[at] ^= bit
            path.write_bytes(data)
            data[at] ^= bit
            try:
                check_flip(path, lines, begin, end)
            except Failed as reason:
                raise Failed(f"flip {number}: bit {bit} of byte {at}: {reason}") from None


def bounded():
    """In a child: the limits for reading one archive."""
    resource.setrlimit(resource.RLIMIT_CPU, (FLIP_CPU_S, FLIP_CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (FLIP_MEMORY, FLIP_MEMORY))


def check_flip(path, lines, begin, end):
    with subprocess.Popen([CORDWOOD, "export", path, "--format", "raw"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, preexec_fn=bounded) as child:
        out, error = child.communicate()
    if child.returncode not in (0, 3):
        raise Failed(f"ended {child.returncode}: {error.decode(errors='replace')[:300]}")
    found = out.split(b"\n")[:-1]
    after = len(lines) - end
    if found[:begin] != lines[:begin] or after and found[-after:] != lines[end:]:
        raise Failed("another block is not whole")
    rest = iter(lines[begin:end])
    own = found[begin:len(found) - after]
    if not all(line in rest for line in own):
        raise Failed("a line that was not written, or not there")
    if (child.returncode == 0) != (len(own) == end - begin):
        raise Failed(f"ended {child.returncode} after {len(own)} of {end - begin} lines")


def no_real_logs():
    raise Skipped("no folder of real logs beside the repository")


def main():
    arguments = cases.parser().parse_args()
    # The content, and whether it comes from standard input.
    table = {"generated": partial(round_trip, nasty(), False),
             "generated, by stdin": partial(round_trip, nasty(), True),
             "empty": partial(round_trip, b"", False),
             "one line": partial(round_trip, b"one\n", True)}
    for sample in sorted((ROOT / "examples").glob("*.log")):
        table[sample.name] = partial(round_trip, sample.read_bytes(), True)
    for path in sorted(LOGS.glob("*.*")):
        if path.suffix in (".log", ".json"):
            table[path.name] = full(partial(round_trip, path.read_bytes(), False))
    if not LOGS.is_dir():
        table["real logs"] = full(no_real_logs)
    run = cases.Run()
    table.update({"hostile text": hostile, "flipped bits": flips})
    run.all(cases.chosen(table, arguments), lambda _, case: case())
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
