#!/usr/bin/env python3
"""Tests of the oracle on blocks of method 2 (FORMAT §11.6): the output of the encoder here must
come back byte for byte, and damage must be reported."""

import datetime
import os
import random
import struct
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from dense import decode, decode_tree  # noqa: E402
from dense_codecs import civil, time_text  # noqa: E402
from dense_encoder import NUMBERED, Choice  # noqa: E402
from dense_samples import Sample  # noqa: E402
from dense_tree import Tree  # noqa: E402
from dense_writer import Layout, encode  # noqa: E402
from wire import Damage, NewerVersion, crc32c  # noqa: E402

SEEDS = 80


def sample_block(seed):
    """A payload by seed and its block."""
    chance = random.Random(seed)
    sample = Sample(seed, chance.choice((0, 1, 2, 7, 40)), odd=seed % 2 == 1)
    layout = Layout(plane_bytes=chance.choice((1, 5, 40, 1 << 20)),
                    duplicates=chance.choice((0, 0.5, 1)))
    return sample.payload, encode(sample.payload, sample.count, Choice(seed), layout)


class RoundTrips(unittest.TestCase):
    def test_payloads_come_back(self):
        met = set()
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                payload, block = sample_block(seed)
                tree = Tree(*block)
                self.assertEqual(decode_tree(tree), payload)
                met |= tree.met
        self.assertEqual(met, NUMBERED)

    def test_any_byte_is_damage_or_the_payload(self):
        """A byte of a leaf, the meta stream or the list of duplicates changes. All checksums except
        the payload's match."""
        damaged = 0
        for seed in range(0, 3 * SEEDS, 3):
            chance = random.Random(seed)
            sample = Sample(seed, 12, odd=seed % 2 == 1)

            def change(contents):
                number = chance.randrange(len(contents))
                content = bytearray(contents[number])
                if content:
                    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                return [*contents[:number], bytes(content), *contents[number + 1:]]

            block = encode(sample.payload, sample.count, Choice(seed), Layout(
                plane_bytes=64, change={"contents": change}))
            with self.subTest(seed=seed):
                try:
                    tree = Tree(*block)
                    tree.end = lambda: None  # rawCRC would detect each
                    self.assertEqual(decode_tree(tree), sample.payload)
                except Damage:
                    damaged += 1
        self.assertGreater(damaged, SEEDS * 3 // 4)

    def test_checksums_of_whole_blocks(self):
        """A flipped bit anywhere in a block is detected."""
        _, (header, stored) = sample_block(4)
        for bit in range(0, 8 * len(stored), 97):
            changed = bytearray(stored)
            changed[bit // 8] ^= 1 << bit % 8
            self.assertNotEqual(crc32c(changed), struct.unpack_from("<I", header, 72)[0])
            self.assertRaises((Damage, NewerVersion), decode, header, bytes(changed))


class Times(unittest.TestCase):
    def test_dates(self):
        day = datetime.date(1, 1, 1)
        while day.year < 9999:
            since = (day - datetime.date(1970, 1, 1)).days
            self.assertEqual(civil(since), (day.year, day.month, day.day))
            day += datetime.timedelta(days=59)
        for days, expected in ((-719528, (0, 1, 1)), (-719469, (0, 2, 29)), (-719468, (0, 3, 1)),
                               (-719529, (-1, 12, 31)), (2932896, (9999, 12, 31))):
            self.assertEqual(civil(days), expected)

    def test_forms(self):
        for form, number, expected in (
                (0, 86399, b"23:59:59"), (1 << 4 | 3 << 6, 45296007, b"12:34:56.007"),
                (2 << 4 | 1 << 6, 5, b"00:00:00,5"), (1, -1, b"1969-12-31 23:59:59"),
                (1 | 8 | 2 << 4 | 3 << 6, -1, b"1969-12-31T23:59:59,999"),
                (1 | 4 | 3 << 4 | 9 << 6, 1, b"1970/01/01 00:00:00:000000001"),
                (2, 951782400, b"29/Feb/2000:00:00:00"), (1, 253402300799, b"9999-12-31 23:59:59")):
            self.assertEqual(time_text(form, number), expected)


if __name__ == "__main__":
    unittest.main()
