"""Golden archives of method 2 (FORMAT §11.6) contain what they did when they were written. Each
hostile block breaks one rule, is reported, and does not stop the reader."""

import hashlib
import json
import os
import struct
import sys
import unittest
from dataclasses import replace

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import dense_bounds  # noqa: E402, F401 (adds to CASES)
import dense_broken  # noqa: E402, F401 (adds to CASES)
from archive import Archive, decode_payload  # noqa: E402
from cases import full  # noqa: E402
from dense import decode, decode_tree  # noqa: E402
from dense_encoder import NUMBERED  # noqa: E402
from dense_hostile import CASES  # noqa: E402
from dense_tree import LIMITS, Tree  # noqa: E402
from golden import FOLDER  # noqa: E402
from wire import Damage, NewerVersion  # noqa: E402


class Golden(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = json.loads((FOLDER / "expected.json").read_text())

    def read(self, name):
        """The messages of one file, SHA-256 of its payloads, and the reported problems."""
        problems = []
        archive = Archive(str(FOLDER / name), problems.append)
        blocks = archive.blocks()
        messages = [record.message for _, header, payload in blocks for record in decode_payload(
            payload, struct.unpack_from("<I", header, 28)[0], archive.names)]
        return messages, [hashlib.sha256(payload).hexdigest() for *_, payload in blocks], problems

    def test_all_are_expected(self):
        self.assertEqual({path.name for path in FOLDER.glob("*.cwa")}, set(self.expected))

    def test_whole_archives(self):
        for name, expected in self.expected.items():
            if "damaged" in expected or "newer" in expected:
                continue
            with self.subTest(name):
                messages, payloads, problems = self.read(name)
                self.assertEqual(problems, [])
                self.assertEqual(len(messages), expected["records"])
                self.assertEqual(payloads, expected["payloads"])

    def test_every_codec(self):
        """A file named after a codec contains it, and together they contain all."""
        names = {kind.lower(): kind for kind, _ in NUMBERED}
        found = set()
        for name in self.expected:
            kind, number = (name.removesuffix(".cwa").split("-") + [""])[:2]
            if kind in names:
                self.assertIn((names[kind], int(number)), self.met(name))
                found.add((names[kind], int(number)))
        self.assertEqual(found, NUMBERED)

    def met(self, name):
        return set().union(*(tree.met for tree in self.trees(name)))

    @staticmethod
    def trees(name):
        data, at = (FOLDER / name).read_bytes(), 0
        while at < len(data):
            size = struct.unpack_from("<I", data, at + 4)[0]
            content, at = data[at + 8:at + 8 + size], at + 8 + size
            if content[:8] == b"CWBLCK01":
                stored = data[at:at + struct.unpack_from("<Q", content, 40)[0]]
                at += len(stored)
                if content[24] == 2:
                    tree = Tree(content, stored)
                    decode_tree(tree)
                    yield tree

    def test_hostile_archives(self):
        """The reader reports each block that breaks a rule, and reads the next one."""
        for name, expected in self.expected.items():
            told = expected.get("damaged", expected.get("newer"))
            if told is None:
                continue
            with self.subTest(name):
                messages, payloads, problems = self.read(name)
                self.assertEqual(messages, [b"after " + case.encode() for case in told])
                self.assertEqual([problem for problem in problems if ": damaged block at" not in
                                  problem and ": a newer block at" not in problem], [])
                self.assertEqual(len(problems), len(told))
                self.assertEqual(sum("newer" in problem for problem in problems),
                                 len(expected.get("newer", ())))
                self.assertEqual(payloads, expected["payloads"])


class Hostile(unittest.TestCase):
    @full
    def test_each_breaks_one_rule(self):
        """Without its limit a block is whole. The files contain every case."""
        expected = json.loads((FOLDER / "expected.json").read_text())
        for case in CASES:
            if not case.is_whole:
                told = expected[f"hostile-{case.group}.cwa"]
                self.assertIn(case.name, told.get("damaged", told.get("newer")))
            if not case.lift or case.heavy:
                continue
            with self.subTest(case.name):
                block = case.block()
                self.assertRaises(Damage, decode, *block)
                decode(*block, replace(LIMITS, **case.lift))

    def test_newer_and_damaged(self):
        for case in CASES:
            if case.group == "newer" and case.name.startswith("flag"):
                self.assertRaises(NewerVersion, decode, *case.block())
