#!/usr/bin/env python3
"""Tests of the reader of blocks (FORMAT §11.4): the blocks of block_samples.py come back as the
records that they were made of, or are damage for the reason that their name says. The core reads
those of them that are golden (test_block_golden.py)."""

import datetime
import os
import random
import subprocess
import sys
import tempfile
import tracemalloc
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import block_letters  # noqa: E402
from block import columns, decode  # noqa: E402
from block_cases import read  # noqa: E402
from block_samples import Sample, cases, expected, good, good_blocks, made  # noqa: E402
from block_writer import Layout, encode, file_of  # noqa: E402
from cases import full  # noqa: E402
from column_codecs import MASK, civil, time_text  # noqa: E402
from column_encoder import NUMBERED, Choice  # noqa: E402
from record import as_json  # noqa: E402
from tree import Tree  # noqa: E402
from wire import Damage  # noqa: E402

SEEDS = 80


def tree_of(block):
    words, stored = block
    return Tree(words["count"], words["raw"], words["codec"], stored)


def lines(tree):
    return "".join(as_json(record) + "\n" for record in decode(tree))


class Whole(unittest.TestCase):
    @full
    def test_records_come_back(self):
        """Each block named after a codec has it, and together they have all."""
        names = {f"{kind.lower()}-{number}": (kind, number) for kind, number in NUMBERED}
        for name, make in good_blocks():
            with self.subTest(name):
                block = make()
                tree = tree_of(block)
                self.assertEqual(lines(tree), expected(block))
                self.assertLessEqual(tree.met, NUMBERED)
                if name in names:
                    self.assertIn(names.pop(name), tree.met)
        self.assertEqual(names, {})

    @full
    def test_by_hand(self):
        for case, codec in cases():
            if case.is_whole:
                with self.subTest(case.name):
                    block = made(case, codec)
                    self.assertEqual(lines(tree_of(block)), expected(block))

    def test_columns_come_back(self):
        """Also those that mean nothing as records."""
        met = set()
        for seed in range(SEEDS):
            chance = random.Random(seed)
            table = Sample(seed, chance.choice((0, 1, 2, 7, 40)), odd=seed % 2 == 1,
                           traces=seed % 7 > 0).table
            layout = Layout(chance.choice((1, 5, 40, 1 << 20)), chance.choice((1, 5, 40, 1 << 20)),
                            chance.choice((0, 0.5, 1)), "none")
            if seed % 5 == 0:
                layout = Layout(codec="none", joined=True)
            tree = tree_of(encode(table, Choice(seed), layout))
            with self.subTest(seed=seed):
                found = columns(tree)
                tree.end()
                for name, values in found.numbers.items():
                    self.assertEqual([value & MASK for value in values],
                                     [value & MASK for value in getattr(table, name)], name)
                for name in ("contexts", "arguments", "sections", "messages"):
                    self.assertEqual(getattr(found, name), getattr(table, name), name)
                met |= tree.met
        self.assertEqual(met, NUMBERED)

    def test_letters(self):
        """A writer's promise holds where texts are in text leaves, and not where they are planes
        (codec 9)."""
        for prefer, broken in (({"Strings": (10,)}, False), ({"Strings": (9, 10)}, True)):
            block = good(30, {"FieldLists": (1,), "Sections": (1,), **prefer},
                         layout=Layout(flags=1), tidy=True, texts=_word)
            tree = tree_of(block)
            found = columns(tree)
            with self.subTest(broken=broken):
                try:
                    block_letters.check(tree, found, decode(tree, found))
                    self.assertFalse(broken)
                except Damage:
                    self.assertTrue(broken)


def _word(chance):
    return chance.choice((b"north", b"south"))


class Broken(unittest.TestCase):
    @full
    def test_by_hand(self):
        """A block beyond a limit is whole without it."""
        for case, codec in cases():
            if case.is_whole:
                continue
            with self.subTest(case.name):
                block = made(case, codec)
                self.assertRaises(Damage, read, block)
                if case.lift:
                    read(block, case.lift)

    def test_reasons(self):
        """Some are damage before the rule of their name is asked, if another check is stricter than
        the page."""
        reasons = {
            "records-over-size": "records × 64: 512, at most 511",
            "frame-count-0-and-no-others": "0 frames",
            "directory-without-its-crc": "a directory shorter than its entries",
            "site-beyond-in-form-0": "a site that cannot be",
        }
        for case, codec in cases():
            if case.name in reasons:
                with self.subTest(case.name):
                    with self.assertRaises(Damage) as caught:
                        read(made(case, codec))
                    self.assertEqual(str(caught.exception), reasons.pop(case.name))
        self.assertEqual(reasons, {})

    def test_far_over(self):
        """The sum is compared before the values of a column are made."""
        found = 0
        for case, codec in cases():
            if case.name.startswith("size-far-over-by-"):
                block, found = made(case, codec), found + 1
                with self.subTest(case.name):
                    tracemalloc.start()
                    with self.assertRaisesRegex(Damage, "^size: "):
                        read(block)
                    self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)
                    tracemalloc.stop()
        self.assertGreater(found, 10)

    def test_any_bit(self):
        """A flipped bit anywhere behind the first line is found."""
        for seed in (60, 61, 62):
            words, stored = good(seed)
            for bit in range(0, 8 * len(stored), 89):
                changed = bytearray(stored)
                changed[bit // 8] ^= 1 << bit % 8
                with self.subTest(seed=seed, bit=bit):
                    self.assertRaises(Damage, read, (words, bytes(changed)))

    def test_any_bit_of_a_leaf(self):
        """A changed bit of a leaf, the meta stream or the list of duplicates, with checksums that
        match, is damage, or changes what records say."""
        damaged = 0
        for seed in range(120):
            chance = random.Random(seed)

            def change(contents):
                number = chance.randrange(len(contents))
                content = bytearray(contents[number])
                if content:
                    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                return [*contents[:number], bytes(content), *contents[number + 1:]]

            block = good(seed, count=12, layout=Layout(
                64, 64, codec="none", change={"contents": change}))
            with self.subTest(seed=seed):
                try:
                    lines(tree_of(block))
                except Damage:
                    damaged += 1
        self.assertGreater(damaged, 30)


class Times(unittest.TestCase):
    def test_dates(self):
        day = datetime.date(1, 1, 1)
        while day.year < 9999:
            since = (day - datetime.date(1970, 1, 1)).days
            self.assertEqual(civil(since), (day.year, day.month, day.day))
            day += datetime.timedelta(days=59)
        for days, wanted in ((-719528, (0, 1, 1)), (-719469, (0, 2, 29)), (-719468, (0, 3, 1)),
                             (-719529, (-1, 12, 31)), (2932896, (9999, 12, 31))):
            self.assertEqual(civil(days), wanted)

    def test_forms(self):
        for form, number, wanted in (
                (0, 86399, b"23:59:59"), (1 << 4 | 3 << 6, 45296007, b"12:34:56.007"),
                (2 << 4 | 1 << 6, 5, b"00:00:00,5"), (1, -1, b"1969-12-31 23:59:59"),
                (1 | 8 | 2 << 4 | 3 << 6, -1, b"1969-12-31T23:59:59,999"),
                (1 | 4 | 3 << 4 | 9 << 6, 1, b"1970/01/01 00:00:00:000000001"),
                (2, 951782400, b"29/Feb/2000:00:00:00"), (1, 253402300799, b"9999-12-31 23:59:59"),
                (3, 0, b"Jan  1 00:00:00"), (3, 59 * 86400 + 1, b"Feb 29 00:00:01")):
            self.assertEqual(time_text(form, number), wanted)


class Command(unittest.TestCase):
    def run_on(self, *paths):
        return subprocess.run([sys.executable, os.path.join(HERE, "block.py"), *paths],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              encoding="utf-8", check=False)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            block = good(60)
            whole, broken = Path(folder, "whole.block"), Path(folder, "broken.block")
            whole.write_bytes(file_of(*block))
            broken.write_bytes(file_of(block[0], block[1][:-1]))
            run = self.run_on(whole)
            self.assertEqual((run.returncode, run.stdout, run.stderr), (0, expected(block), ""))
            run = self.run_on(broken, whole)
            self.assertEqual((run.returncode, run.stdout), (1, expected(block)))
            self.assertIn("broken.block: a length past the end", run.stderr)
            for head in (b"block 1 2 3\n", b"block 1 2 00000000 zstd\n", b"block 1 2 zstd"):
                broken.write_bytes(head)
                run = self.run_on(broken)
                self.assertEqual(run.returncode, 1)
                self.assertIn("no block's first line", run.stderr)


if __name__ == "__main__":
    unittest.main()
