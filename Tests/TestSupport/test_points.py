"""Which points of death a run of Tests/Crash/points.py takes: for each mode alone and for all of
them, for samples of every size, by seed. Nothing is run; the surveys are made up."""

import itertools
import os
import sys
import unittest
from argparse import Namespace
from collections import Counter
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Oracle"), str(HERE.parent / "Crash")]

import duels  # noqa: E402
import points  # noqa: E402

# What a run without a kill calls: some calls once, one very often.
LABELS = ["openat lane", "fallocate segment", *["pwrite segment"] * 60, "renameat archive"]
SURVEYS = {mode: LABELS for mode in points.MODES}
SAMPLES = (0, 1, 3, 80, 5_000)
SEEDS = (1, 77)


def arguments(**set_):
    return Namespace(**{"mode": None, "sample": 0, "seed": 1, "point": None, "cases": [], "k": [],
                        "list": False, **set_})


class PointsTest(unittest.TestCase):
    def test_every_combination(self):
        some = [*((mode,) for mode in points.MODES), ("steps", "roll"), points.MODES]
        for modes, sample, seed in itertools.product(some, SAMPLES, SEEDS):
            with self.subTest(modes=modes, sample=sample, seed=seed):
                surveys = {mode: SURVEYS[mode] for mode in modes}
                asked = arguments(sample=sample, seed=seed)
                found = points.chosen(asked, surveys)
                self.assertEqual([str(point) for point in found],
                                 [str(point) for point in points.chosen(asked, surveys)])
                self.assertEqual({point.mode for point in found}, set(modes))
                everything = points.all_points(surveys)
                random_ones = 0 if modes == ("steps",) else \
                    sample // 4 if sample else len(everything) // 10
                numbered = Counter(point.mode for point in found[:len(found) - random_ones])
                for mode, count in Counter(point.mode for point in everything).items():
                    most = max(1, sample // len(modes)) if sample else count
                    self.assertEqual(numbered[mode], min(count, most))

    def test_seeds_differ(self):
        one, other = ([str(point) for point in points.chosen(arguments(sample=80, seed=seed),
                                                             SURVEYS)] for seed in (1, 2))
        self.assertNotEqual(one, other)

    def test_a_failure_names_its_point(self):
        for point in points.chosen(arguments(sample=80), SURVEYS):
            again = points.chosen(arguments(point=str(point)), {point.mode: LABELS})
            self.assertEqual([str(one) for one in again], [str(point)])

    def test_duels(self):
        found = [f"{0x1000 + at:x}" for at in range(duels.MOMENTS)]
        for sample, seed in itertools.product(SAMPLES, SEEDS):
            with self.subTest(sample=sample, seed=seed):
                pairs = duels.chosen(arguments(sample=sample, seed=seed), 5, found)
                self.assertEqual(len(set(pairs)), len(pairs))
                everything = duels.APPEND_STEPS * (2 if sample else duels.MOMENTS)
                least = max(sample // 8, duels.SAMPLE_LEAST) if sample else everything
                self.assertEqual(len(pairs), min(everything, least))

    @mock.patch.dict(os.environ)  # the selection passes its seed on
    def test_modes(self):
        self.assertEqual(points.chosen_modes(arguments()), ["duels", *points.MODES])
        self.assertEqual(points.chosen_modes(arguments(mode="steps,duels")), ["steps", "duels"])
        self.assertEqual(points.chosen_modes(arguments(point="roll|after|1|0|mark")), ["roll"])
        for wrong in ("stepz", "roll,", "roll,stepz"):
            with self.assertRaisesRegex(SystemExit, "no such mode: .*; there are duels, roll"):
                points.chosen_modes(arguments(mode=wrong))


if __name__ == "__main__":
    unittest.main()
