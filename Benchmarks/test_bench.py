#!/usr/bin/env python3
"""Tests what the benchmarks rely on: quantiles, the check of records read back, shared lines, lost
records, rounds joined into one row, and the documents made from a run."""

import contextlib
import io
import json
import math
import random
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent),
                str(Path(__file__).resolve().parent.parent / "Tests/TestSupport")]

import guests  # noqa: E402
import house as shared  # noqa: E402
import hot  # noqa: E402
import lines  # noqa: E402
import lttng  # noqa: E402
import peers  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
import table  # noqa: E402
import whole  # noqa: E402
from cases import full  # noqa: E402

SEED = 20260611
PARTS = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1.0}


class WithHouse(unittest.TestCase):
    def setUp(self):
        self.house = shared.House(quick=True)
        self.addCleanup(self.house.close)
        self.said = io.StringIO()
        quiet = contextlib.redirect_stdout(self.said)
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def failed_gates(self):
        return [gate["name"] for gate in self.house.gates if not gate["good"]]


class Quantiles(WithHouse):
    def ask(self, values):
        program = self.house.program("histogram", "fixture_histogram.c")
        return shared.last_json(shared.output(program, input="\n".join(map(str, values))))

    def compare(self, values):
        said, ordered = self.ask(values), sorted(values)
        for name, part in PARTS.items():
            rank = max(1, math.ceil(part * len(ordered) - 1e-9))
            exact = ordered[rank - 1] / 10
            self.assertLessEqual(abs(said[name] - exact), 0.051 + exact / 2048, (name, exact))
        self.assertAlmostEqual(said["mean"], sum(values) / len(values) / 10, delta=0.01)

    def test_small_values_are_exact(self):
        said = self.ask(range(1, 1001))
        self.assertEqual((said["p50"], said["p99"], said["p99.9"], said["max"]),
                         (50.0, 99.0, 99.9, 100.0))

    def test_against_sorting(self):
        values = random.Random(SEED)
        self.compare([int(values.lognormvariate(5, 2)) for _ in range(20_000)])
        self.compare([values.randrange(1 << values.randrange(1, 50)) for _ in range(20_000)])

    def test_borders_of_buckets(self):
        edges = [(1 << bit) + more for bit in range(1, 60) for more in (-1, 0, 1)]
        for edge in edges:
            said = self.ask([edge] * 3)
            self.assertEqual(said["p50"], said["max"])
            self.assertLessEqual(abs(said["max"] - edge / 10), 0.051 + edge / 10 / 2048)

    def test_one_value(self):
        said = self.ask([777])
        self.assertEqual({said[name] for name in PARTS}, {77.7})


class Check(WithHouse):
    def store(self, workload, count=2000):
        where = self.house.where()
        shared.output(self.house.hot(), where, "sustained", count, workload)
        return where

    def test_same_workload(self):
        for workload in shared.WORKLOADS:
            seen = self.house.check(self.store(workload), workload)
            self.assertEqual(seen, {"records": 2000, "threads": 1, "wrong": 0, "damaged": 0})

    @full
    def test_cpp_writes_the_same_text(self):
        for program in (self.house.hot_cpp(), self.house.hot_macros()):
            for workload in shared.WORKLOADS:
                where = self.house.where()
                shared.output(program, where, "sustained", 500, workload)
                self.assertEqual(self.house.check(where, workload)["wrong"], 0, workload)

    def test_other_records_are_wrong(self):
        done = subprocess.run([self.house.program("check", "check.c", *shared.OURS),
                               str(self.store("w3", 100)), "w2"], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(shared.last_json(done.stdout)["wrong"], 100)

    def test_missing_records_fail_the_gate(self):
        self.house.check = lambda store, load: {"records": 999, "wrong": 0, "damaged": 0}
        self.house.run(self.house.hot(), "sustained", 1000, "w1")
        self.assertEqual(len(self.failed_gates()), 1)

    @full
    def test_options_keep_all(self):
        for switch in ("LOAD_TMPFS", "LOAD_COARSE"):
            row = self.house.run(self.house.hot(), "sustained", 1000, "w2",
                                 environment={switch: "1"})
            self.assertEqual(row["on_file"], 1000, switch)
        self.assertEqual(self.failed_gates(), [])


@full
class BesideCopy(WithHouse):
    def test_ratios_of_rounds_in_turn(self):
        hot.beside_copy(self.house)
        rows = self.house.more["beside_copy"]
        self.assertEqual(len(rows), 3 * len(shared.WORKLOADS))
        for row in rows:
            self.assertLessEqual(row["from"], row["p50"])
            self.assertLessEqual(row["p50"], row["to"])
            self.assertGreater(row["of_copy"], 0)
            if row["engine"] == hot.COPY:
                self.assertEqual(row["of_copy"], 1)

    def test_the_copy_reads_the_counter_once(self):
        plain = hot.instructions(self.house, self.house.program("copy", "copy.c"), "w2")
        counted = hot.instructions(self.house, hot.copy_program(self.house), "w2")
        self.assertTrue(2 <= counted - plain <= 6, (plain, counted))


class Lines(WithHouse):
    @full
    def test_our_producers_share_none(self):
        seen = lines.measure(self.house, self.house.hot(), "w2")
        self.assertEqual(seen["shared"], [])
        for stored_to in seen["lines_stored_to"]:  # the thread's block, its chunk, its stack
            self.assertGreater(stored_to, 3)

    @full
    def test_a_shared_line_is_found(self):
        program = self.house.program("shared", "hot.c", "-DSHARED", *shared.OURS)
        self.assertEqual(len(lines.measure(self.house, program, "w2")["shared"]), 1)

    def test_sections_of_a_trace(self):
        trace = [b"I  0400,3\n", b" S 9000,8\n", b" S 1000,8\n", b"I  0403,3\n", b" S 207c,8\n",
                 b" L 3000,8\n", b" M 4000,4\n", b" S 1000,8\n", b" S 5000,8\n", b" S 1100,8\n",
                 b"I  0403,3\n", b" S 2100,8\n", b" S 1100,8\n"]
        found = list(lines.sections(trace, {0x1000: 0, 0x1100: 1}))
        self.assertEqual(found, [(0, 1, [(0x207c, 8), (0x4000, 4)]), (1, 1, [(0x2100, 8)])])
        # Shared only if the first store of thread 0 reaches into the line of thread 1.
        self.assertEqual(lines.shared(found)["shared"], [])
        found[0][2][0] = (0x20fc, 8)
        self.assertEqual(lines.shared(found)["shared"], ["0x2100"])

    def test_a_claim_does_not_count(self):
        quiet = [(0, 100, [(0x1000, 8)]), (1, 100, [(0x2000, 8)])] * 4
        claim = [(0, 900, [(0x3000, 8)]), (1, 900, [(0x3000, 8)])]
        self.assertEqual(lines.shared(quiet + claim)["shared"], [])

    def test_no_proof(self):
        with self.assertRaises(lines.NoProof):
            lines.shared([(0, 100, [])])
        with self.assertRaises(lines.NoProof):
            lines.shared([(0, 100, []), (1, 1, []), (1, 500, []), (1, 900, [])])


# The archiver's profile, as callgrind writes it: a name stands where its number occurs first.
PROFILE = """thread: 3
fl=(1) ???
fn=(7) $s13CordwoodStore13ArchiveWriterV11appendBlock
0 5
cfn=(8) $s13CordwoodStore5BlockV4fill4from
calls=2 0
+3 900
fn=(8)
0 100
cfn=(9) $s13CordwoodStore12PrimedSourceC4nextySb
calls=20 0
0 700
cfn=(9)
calls=2 0
0 50
totals: 955
"""


class Whole(WithHouse):
    def records(self, program, count):
        """(message, ns since the one before) of each record."""
        where = self.house.where()
        shared.output(program, where, count, whole.SERVICE_THREADS)
        found = [json.loads(line) for line in
                 shared.output(shared.CORDWOOD, "cat", "--json", where).splitlines()]
        times = [int(record["time"][-10:-1]) for record in found]
        return [(record["message"], (now - last) % 10**9)
                for record, now, last in zip(found, times, [times[0], *times])]

    def test_records_and_times_are_the_same_in_each_run(self):
        program = whole.ours(self.house, "service")
        once, again = (set(self.records(program, 400)) for _ in range(2))
        # Where the engine looked at UTC's clock meanwhile, a gap differs by what two looks differ.
        self.assertLess(len(once ^ again), 8)
        self.assertGreater(len(once), 390)

    def test_text_is_that_of_the_typed_records(self):
        typed, text = (self.records(whole.ours(self.house, load), 400)
                       for load in ("service", "text"))
        self.assertEqual(sorted(message for message, _ in typed),
                         sorted(message for message, _ in text))

    @full
    def test_spdlog_writes_the_same_text(self):
        wanted = self.records(whole.ours(self.house, "text"), 400)
        for load in ("service", "text"):
            try:
                program = whole.spdlogs(self.house, load)
            except shared.Unsupported as why:
                self.skipTest(str(why))
            where = self.house.where()
            shared.output(program, where, 400, whole.SERVICE_THREADS)
            lines = (where / "spdlog.log").read_text(encoding="utf-8").splitlines()
            self.assertEqual([line.split("] ", 3)[3] for line in lines],
                             [message for message, _ in wanted], load)

    def test_parts_by_thread(self):
        self.assertEqual(whole.part_of(PROFILE), ("archiving", 955))
        for thread, function, part in ((1, "main", "call"), (2, "supply", "helper"),
                                       (5, "work", "call"), (5, "sealLoop", "helper")):
            text = f"thread: {thread}\ncfn=(4) {function}\nfn=(4)\n0 9\ntotals: 9\n"
            self.assertEqual(whole.part_of(text), (part, 9), function)

    def test_steps_leave_out_what_others_count(self):
        steps = whole.steps_of(PROFILE)
        self.assertEqual(steps.pop("reading the lane"), 750)
        self.assertEqual(steps.pop("gathering a block"), 150)
        self.assertEqual(set(steps.values()), {0})


class Kills(WithHouse):
    @full
    def test_ours_loses_none(self):
        engine = peers.Ours(self.house, "ours", self.house.hot())
        run = engine.kill("w2")
        self.assertGreater(run["returned"], 0)
        self.assertGreaterEqual(run["on_file"], run["returned"])

    @full
    def test_loss_is_counted(self):
        engine = peers.Ours(self.house, "ours", self.house.hot())
        engine.kill = lambda workload: {"returned": 1000, "on_file": 990}
        peers.kills(self.house, [engine], 3)
        row = self.house.find(part="kill")
        self.assertEqual((row["lost"], row["lost_most"], row["kills_with_loss"]), (30, 10, 3))
        self.assertEqual(len(self.failed_gates()), 1)

    def test_lines_of_text_are_counted(self):
        where = self.house.where()
        (where / "x.log").write_bytes(b"[a] one\n[a] two\nnot one\n[a] cut")
        count, size = peers.Engine(self.house, "x", "x").on_file(where, "w2")
        self.assertEqual((count, size), (2, 31))


@unittest.skipUnless(shutil.which("lttng-sessiond"), "no LTTng here")
class Daemons(WithHouse):
    @full
    def test_they_end_whatever_happens(self):
        if lttng.others_run():
            self.skipTest("a session daemon of somebody else runs")
        with self.assertRaises(KeyboardInterrupt):
            with lttng.Session(self.house.where()):
                self.assertTrue(lttng.others_run())
                raise KeyboardInterrupt
        self.assertFalse(lttng.others_run())


class Guests(WithHouse):
    def take(self, program):
        guests.take(self.house, "python", [sys.executable, "-c", program], {})

    def test_rows(self):
        self.take("print('x'); print('{\"logging\": {\"mean\": 5.0, \"p50\": 4.0, \"records\": 9,"
                  " \"kept\": 8}, \"instructions\": {\"w2\": 7}}')")
        row = self.house.find(part="python", engine="logging")
        self.assertEqual((row["mean"], row["records"], row["on_file"]), (5.0, 9, 8))
        self.assertEqual(self.house.more["python"]["instructions"], {"w2": 7})
        self.assertEqual(self.failed_gates(), [])

    def test_a_program_that_fails_fails(self):
        self.take("print('{}'); raise SystemExit(1)")
        self.take("print('no JSON')")
        self.assertEqual(len(self.failed_gates()), 2)


class Documents(unittest.TestCase):
    def rows(self):
        base = {"part": "peers", "threads": 1, "records": 1000, "on_file": 1000, "kept": "yes",
                "workload": "w2", "dropped": 0, "samples": 300}
        times = {"mean": 20.5, "p50": 11.0, "p99": 50.0, "p99.9": 100.0, "max": 5e6}
        return [dict(base, engine="a<b", mode="paced", **times),
                dict(base, engine="slow", mode="paced", on_file=990, **times)]

    def data(self):
        return {"machine": {"cpu": "A & B", "cores": 2, "memory_gib": 4, "kernel": "6", "when": "t",
                            "file_system": "ext4 rw", "architecture": "x86_64", "command": "c"},
                "versions": {"gcc": "12"}, "notes": [], "gates": [], "figures": self.rows(),
                "archive": None, "idle": None, "quick": False, "more": {},
                "targets": json.loads((shared.HERE / "thresholds.json").read_text())["targets"]}

    def test_joined_rounds(self):
        row = shared.joined([{"mean": 10.0, "max": 5.0, "records": 7, "name": "x"},
                             {"mean": 30.0, "max": 90.0, "records": 7, "name": "x"},
                             {"mean": 11.0, "max": 6.0, "records": 7, "name": "x"}])
        self.assertEqual(row, {"mean": 11.0, "max": 90.0, "records": 21, "name": "x", "rounds": 3})

    def test_tables_say_what_is_missing(self):
        text = table.text(self.data())
        self.assertIn("990 (10 missing)", text)
        line = next(line for line in text.splitlines() if line.startswith("slow"))
        self.assertIn("–", line)  # 300 samples have no p99.9
        self.assertNotIn("100.0", line)

    def test_plot_is_xml(self):
        tree = xml.etree.ElementTree.fromstring(plot.svg(self.data()))
        marks = [node for node in tree.iter("{http://www.w3.org/2000/svg}circle")]
        self.assertEqual(len(marks), 4 + 2 * 4)
        empty = dict(self.data(), figures=[])
        self.assertIsNone(plot.svg(empty))

    def test_report_replaces_only_its_own(self):
        page = "head\n<!-- figures: begin -->\nold\n<!-- figures: end -->\ntail\n"
        once = report.replaced(page, "new")
        self.assertEqual(once, "head\n<!-- figures: begin -->\nnew\n<!-- figures: end -->\ntail\n")
        self.assertEqual(report.replaced(once, "new"), once)
        with self.assertRaises(ValueError):
            report.replaced("no marks\n", "new")

    def test_documents_are_those_of_the_last_run(self):
        for path, wanted in report.documents():
            self.assertEqual(path.read_text(encoding="utf-8"), wanted,
                             f"{path.name}: run Benchmarks/report.py")


if __name__ == "__main__":
    unittest.main()
