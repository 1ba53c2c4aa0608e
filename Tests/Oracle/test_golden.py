"""Golden archives (FORMAT §11) contain what they did when they were written. Each hostile block
breaks one rule, is reported, and does not stop the reader."""

import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import block_letters  # noqa: E402
from archive import Archive  # noqa: E402
from block import columns, decode  # noqa: E402
from block_golden import rows  # noqa: E402
from block_samples import CASES  # noqa: E402
from column_encoder import NUMBERED  # noqa: E402
from golden import FOLDER  # noqa: E402
from record import as_json  # noqa: E402
from tree import CODECS, Tree  # noqa: E402
from wire import u32, u64  # noqa: E402


class Golden(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = json.loads((FOLDER / "expected.json").read_text())

    def read(self, name):
        """The records of one file, and the reported problems."""
        problems = []
        return list(Archive(str(FOLDER / name), problems.append).records()), problems

    def test_all_are_expected(self):
        self.assertEqual({path.name for path in FOLDER.glob("*.cwa")}, set(self.expected))

    def test_whole_archives(self):
        for name, expected in self.expected.items():
            if "damaged" in expected or "newer" in expected:
                continue
            with self.subTest(name):
                records, problems = self.read(name)
                self.assertEqual(problems, [])
                self.assertEqual(rows("".join(as_json(one) + "\n" for one in records)), expected)

    def test_codecs_and_efforts(self):
        """Together they have every codec of columns and of frames, and every effort. What flags
        promise holds."""
        met, codecs, efforts, flags = set(), set(), set(), set()
        for name, expected in self.expected.items():
            if "damaged" in expected or "newer" in expected:
                continue
            for _, head, stored in Archive(str(FOLDER / name), self.fail).blocks():
                tree = Tree(u32(head, 28), u64(head, 32), CODECS[head[25]], stored)
                found = columns(tree)
                block_letters.check(tree, found, decode(tree, found))
                met |= tree.met
                flags.add(tree.flags)
                codecs.add(head[25])
                efforts.add(head[24])
        self.assertEqual(met, NUMBERED)
        self.assertEqual(codecs, {0, 1, 2})
        self.assertLessEqual({0, 1}, flags)
        self.assertLessEqual({0, 1, 2, 255}, efforts)

    def test_hostile_archives(self):
        """The reader reports each block that breaks a rule, and reads the next one."""
        for name, expected in self.expected.items():
            told = expected.get("damaged", expected.get("newer"))
            if told is None:
                continue
            with self.subTest(name):
                records, problems = self.read(name)
                self.assertEqual([record.message for record in records],
                                 [b"after " + case.encode() for case in told])
                self.assertEqual([problem for problem in problems if ": damaged block at" not in
                                  problem and ": a newer block at" not in problem], [])
                self.assertEqual(len(problems), len(told))
                self.assertEqual(sum("newer" in problem for problem in problems),
                                 len(expected.get("newer", ())))
                lines = "".join(as_json(one) + "\n" for one in records)
                self.assertEqual(rows(lines), {name: expected[name] for name in (
                    "records", "rows")})

    def test_damaged_extract(self):
        """Its header, the directory of its block, and a frame; the blocks are whole."""
        data = (FOLDER / "extract.cwa").read_bytes()
        at = data.index(b"CWEXTR01")
        for place in (at + 24 + 33, data.index(b"CWCOLS01", at) + 12, data.index(b"order", at)):
            problems = []
            with tempfile.NamedTemporaryFile(suffix=".cwa") as file, self.subTest(place - at):
                file.write(data[:place] + bytes([data[place] ^ 1]) + data[place + 1:])
                file.flush()
                found = list(Archive(file.name, problems.append).records())
                self.assertEqual(len(found), self.expected["extract.cwa"]["records"])
                self.assertTrue(any("the extract is damaged" in one for one in problems))

    def test_hostile_of_each_kind(self):
        """Archives have broken blocks of most groups."""
        groups = {case.name: case.group for case in CASES if not case.is_whole}
        found = {groups[name] for name in self.expected["hostile.cwa"]["damaged"] if name in groups}
        self.assertLessEqual({"block", "columns", "ints", "limits", "strings", "templates"}, found)


if __name__ == "__main__":
    unittest.main()
