"""Golden blocks (FORMAT §11.4) hold what they did when they were written: block.py finds the same
records in the whole ones, and the same rule broken in the others."""

import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from block import decode  # noqa: E402
from block_golden import FOLDER, LARGEST, lists, reason, rows  # noqa: E402
from block_samples import cases, made  # noqa: E402
from cases import full  # noqa: E402
from column_encoder import NUMBERED  # noqa: E402
from record import as_json  # noqa: E402
from tree import Tree  # noqa: E402


def tree_of(words, stored):
    return Tree(words["count"], words["raw"], words["codec"], stored)


class Golden(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = json.loads((FOLDER / "expected.json").read_text())
        cls.lists = lists()

    def test_all_are_expected(self):
        self.assertEqual({of: set(blocks) for of, blocks in self.lists.items()},
                         {of: set(blocks) for of, blocks in self.expected.items()})

    def test_blocks(self):
        met = set()
        for of, blocks in self.lists.items():
            for name, block in blocks.items():
                with self.subTest(f"{of}: {name}"):
                    met |= self.read(block, self.expected[of][name], name)
        self.assertEqual(met, NUMBERED)

    def read(self, block, wanted, name):
        """The codecs met in a block. One named after a codec has it."""
        if "broken" in wanted:
            self.assertEqual(reason(block), wanted["broken"])
            return set()
        tree = tree_of(*block)
        text = "".join(as_json(record) + "\n" for record in decode(tree))
        self.assertEqual(rows(text), wanted)
        kind, number = (name.split("-") + [""])[:2]
        if number.isdigit() and kind in {kind.lower() for kind, _ in NUMBERED}:
            self.assertIn((kind, int(number)), {(of.lower(), at) for of, at in tree.met})
        return tree.met

    def test_efforts(self):
        """Effort 0 uses no codec that needs more than one look (ARCHITECTURE, One block's
        effort)."""
        few = {("Ints", 0), ("Ints", 1), ("Ints", 2), ("Doubles", 0), ("Strings", 0),
               ("Strings", 9), ("Strings", 10)}
        others = set()
        for name, block in self.lists["efforts.list"].items():
            tree = tree_of(*block)
            decode(tree)
            numbers = {pair for pair in tree.met if pair[0] in ("Ints", "Doubles", "Strings")}
            if "-swift-" in name:
                self.assertLessEqual(numbers, few, name)
            else:
                others |= numbers - few
        self.assertGreater(len(others), 5)

    @full
    def test_cases(self):
        """All cases that are small enough are golden."""
        known = {name for blocks in self.lists.values() for name in blocks}
        for case, codec in cases():
            with self.subTest(case.name):
                self.assertTrue(case.name.replace("^", "_") in known
                                or len(made(case, codec)[1]) > LARGEST)


if __name__ == "__main__":
    unittest.main()
