"""`cordwood cat --json` reads the golden archives as the oracle does: every member of every record,
each damaged or newer block reported once, and the block after it."""

import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from cases import full  # noqa: E402
from compare import compared, parsed_lines  # noqa: E402
from golden import FOLDER  # noqa: E402

CORDWOOD = os.path.join(HERE, "../../build/bin/cordwood")
MORE = re.compile(r"cordwood: (\d+) more damaged places?")


LEVELS = {"TRACE": 1, "DEBUG": 5, "INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}


def cat(name, *options):
    return subprocess.run([CORDWOOD, "cat", "--json", *options, str(FOLDER / name)],
                          capture_output=True, check=False)


def level_of(line):
    base, _, more = line["level"].partition("+")
    return LEVELS.get(base, 0) + int(more or 0)


class Tool(unittest.TestCase):
    def setUp(self):
        self.expected = json.loads((FOLDER / "expected.json").read_text())
        self.assertEqual({path.name for path in FOLDER.glob("*.cwa")}, set(self.expected))

    @full
    def test_whole_archives(self):
        """Record for record what the oracle reads, with no problem reported."""
        for name, expected in self.expected.items():
            if expected.keys() & {"damaged", "newer"}:
                continue
            with self.subTest(name):
                run = cat(name)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertNotIn(b"block", run.stderr)
                count, differences = compared(str(FOLDER / name), parsed_lines(run.stdout))
                self.assertEqual(differences, [])
                self.assertEqual(count, expected["records"])

    def test_few_records(self):
        """Queries on columns return what a filter over all records leaves, whatever codec the other
        columns use."""
        asked = 0
        for name, expected in self.expected.items():
            if expected.keys() & {"damaged", "newer"} or expected["records"] > 1_000:
                continue
            lines = parsed_lines(cat(name).stdout)
            questions = [(["--level", str(level)],
                          lambda line, level=level: level_of(line) >= level)
                         for level in {level_of(line) for line in lines} - {0}]
            questions += [(["--since", time], lambda line, time=time: line["time"] >= time)
                          for time in sorted({line["time"] for line in lines})[-2:]]
            questions += [(["-q", f"kind:{kind}"], lambda line, kind=kind: line["kind"] == kind)
                          for kind in {line["kind"] for line in lines}]
            for options, is_wanted in questions:
                with self.subTest(name, options=options):
                    run = cat(name, *options)
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assertEqual(parsed_lines(run.stdout), list(filter(is_wanted, lines)))
                    asked += 1
        self.assertGreater(asked, 100)

    def told(self, run, name, kind):
        """The number of different blocks of that kind that the tool names or only counts."""
        self.assertEqual(run.returncode, 3)
        words = "newer format" if kind == "newer" else "damaged"
        line = re.compile(rf"cordwood: {words}: {re.escape(str(FOLDER / name))}: .*block at (\d+)")
        places, more = [], 0
        for told in run.stderr.decode().splitlines():
            counted = MORE.fullmatch(told)
            more += int(counted[1]) if counted else 0
            if not counted:
                self.assertRegex(told, line)
                places.append(line.match(told)[1])
        self.assertEqual(len(places), len(set(places)))
        return len(places) + more

    def test_hostile_archives(self):
        """The tool reports each block that breaks a rule, and reads the next one."""
        for name, expected in self.expected.items():
            for kind in expected.keys() & {"damaged", "newer"}:
                with self.subTest(name):
                    run = cat(name)
                    lines = parsed_lines(run.stdout)
                    self.assertEqual([line["message"] for line in lines],
                                     [f"after {case}" for case in expected[kind]])
                    self.assertEqual(self.told(run, name, kind), len(expected[kind]))
