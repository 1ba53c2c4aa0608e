"""Open, flush, roll, stats, close, levels, errors, callbacks."""
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

from support import StoreCase, cordwood


class EngineTest(StoreCase):
    """cordwood.open and Engine."""

    def test_context_manager_closes(self) -> None:
        with cordwood.open(self.store) as engine:
            self.assertTrue(engine.logger("a").info("x"))
            self.assertFalse(engine.closed)
        self.assertTrue(engine.closed)
        self.assertEqual(self.only().message, "x")

    def test_close_twice_then_everything_says_so(self) -> None:
        engine = self.open()
        engine.close()
        engine.close()
        calls = (engine.flush, engine.roll, engine.archive_wait, engine.stats, engine.upload,
                 engine.upload_async, lambda: engine.logger("new"),
                 lambda: engine.set_level("", "info"), lambda: engine.set_resource("a", "b"),
                 lambda: engine.set_consent("granted"),
                 lambda: engine.add_target("http://127.0.0.1:9"))
        for call in calls:
            with self.assertRaises(cordwood.CordwoodError) as caught:
                call()
            self.assertEqual(caught.exception.status_name, "CW_E_CLOSED")

    def test_flush_roll_and_stats(self) -> None:
        engine = self.open()
        log = engine.logger("a")
        for _ in range(100):
            log.info("x")
        engine.flush(durable="machine", timeout=30)
        engine.flush(durable="process")
        engine.roll()
        engine.archive_wait(timeout=30)
        stats = engine.stats()
        self.assertGreaterEqual(stats.records_written, 100)
        self.assertEqual(stats.records_dropped, 0)
        self.assertEqual(len(self.records()), 100)

    def test_archives(self) -> None:
        for method in ("dense", "plain"):
            store = f"{self.store}-{method}"
            with cordwood.open(store, archive_method=method, archive_time_step_ns=100) as engine:
                log = engine.logger("a")
                for number in range(2_000):
                    log.info("order %d of %s", number, "anna" if number % 3 else "bert")
                engine.roll()
                engine.archive_wait(timeout=30)
            archives = list(Path(store).rglob("*.cwa"))
            records = list(cordwood.read(store, logger="a"))
            self.assertEqual([one.message for one in records],
                             [f"order {number} of {'anna' if number % 3 else 'bert'}"
                              for number in range(2_000)])
            # Plain blocks are those of effort 0 (FORMAT §11.2).
            efforts = {found[1] == b"\0" for archive in archives for found in re.finditer(
                rb"CWBLCK01.{16}(.)", archive.read_bytes(), re.DOTALL)}
            self.assertEqual(efforts, {method == "plain"})

    def test_an_archive_alone(self) -> None:
        engine = self.open(codec="zstd")
        engine.logger("a").info("x" * 1000)
        engine.roll()
        engine.archive_wait(timeout=30)
        self.assertGreaterEqual(engine.stats().archives_written, 1)
        archives = list(Path(self.store).rglob("*.cwa"))
        self.assertTrue(archives)
        self.assertEqual([record.message for record in cordwood.read(archives[0], logger="a")],
                         ["x" * 1000])

    def test_options_are_checked(self) -> None:
        for options in ({"codec": "rar"}, {"level": 0}, {"level": "loud"}, {"console": "loud"},
                        {"segment_bytes": -1}, {"roll_age_s": 1 << 40}, {"codec_level": 99},
                        {"level": 200}, {"archive_method": "tight"},
                        {"archive_time_step_ns": 10_001}):
            with self.assertRaises(ValueError, msg=str(options)):
                cordwood.open(self.store, **options)

    def test_not_a_directory(self) -> None:
        path = Path(self.store)
        path.write_text("a file")
        with self.assertRaises(cordwood.StoreError) as caught:
            cordwood.open(path)
        self.assertEqual(caught.exception.status_name, "CW_E_NOT_DIRECTORY")
        self.assertIn(str(path), str(caught.exception))

    def test_directory_of_the_environment(self) -> None:
        with mock.patch.dict(os.environ, {"CORDWOOD_DIR": self.store}):
            with cordwood.open() as engine:
                engine.logger("a").info("x")
        self.assertEqual(self.only().message, "x")
        with mock.patch.dict(os.environ):
            os.environ.pop("CORDWOOD_DIR", None)
            with self.assertRaises(cordwood.StoreError):
                cordwood.open()

    def test_two_engines_on_one_store(self) -> None:
        first, second = self.open(), self.open()
        first.logger("a").info("1")
        second.logger("a").info("2")
        self.assertEqual([record.message for record in self.records()], ["1", "2"])

    def test_coarse_clock_and_segments_in_memory(self) -> None:
        with cordwood.open(self.store, coarse_clock=True, tmpfs=True) as engine:
            log = engine.logger("a")
            for number in range(2000):
                log.info("record %d", number)
            self.assertEqual(len(list(cordwood.read(self.store))), 2000)
        # After closing, everything lies in the store.
        links = [path for path in Path(self.store).rglob("*") if path.is_symlink()]
        self.assertEqual(links, [])
        self.assertEqual(len(list(cordwood.read(self.store))), 2000)

    def test_the_group_reads(self) -> None:
        with cordwood.open(self.store, group_read=True) as engine:
            engine.logger("a").info("1")
        store = Path(self.store)
        self.assertEqual({stat.S_IMODE(path.stat().st_mode) for path in store.rglob("*")},
                         {0o2750, 0o640})
        self.assertEqual(stat.S_IMODE(store.stat().st_mode), 0o2750)

    def test_in_memory(self) -> None:
        with cordwood.open(":memory:") as engine:
            self.assertTrue(engine.logger("a").info("x"))
        self.assertFalse(os.path.exists(":memory:"))
        self.assertFalse(os.path.exists(self.store))

    def test_resource_and_consent(self) -> None:
        engine = self.open(consent="pending")
        engine.set_resource("service.name", "shop")
        engine.set_consent("granted")
        with self.assertRaises(cordwood.ArgumentError):
            engine.set_resource("", "x")
        with self.assertRaises(ValueError):
            engine.set_consent("perhaps")

    def test_a_store_made_again_keeps_its_consent(self) -> None:
        engine = self.open()
        engine.set_consent("denied")
        file = Path(self.store) / "store"
        made = file.stat().st_ino
        deadline = time.monotonic() + 30
        while not file.exists() or file.stat().st_ino == made:
            self.assertLess(time.monotonic(), deadline, "the store was not made again")
            shutil.rmtree(self.store, ignore_errors=True)
            engine.logger("a").info("x")
            time.sleep(0.2)
        self.assertIn("consent denied\n", file.read_text())

    def test_names_are_checked(self) -> None:
        engine = self.open()
        with self.assertRaises(cordwood.ArgumentError) as caught:
            engine.logger("n" * 256)
        self.assertEqual(caught.exception.status_name, "CW_E_LIMIT")
        with self.assertRaises(ValueError):
            engine.logger("a\0b")

    def test_small_quota_refuses_and_counts(self) -> None:
        engine = self.open(segment_bytes=65536, quota_bytes=262144, overflow="drop")
        log = engine.logger("a")
        kept = sum(log.write("info", os.urandom(16000)) for _ in range(500))
        self.assertEqual(kept + engine.stats().records_dropped, 500)
        self.assertGreater(kept, 0)

    def test_grow_keeps_all_that_the_disk_holds(self) -> None:
        log = self.open(segment_bytes=65536, overflow="grow").logger("a")
        sizes = [16_000 + index % 7 for index in range(1000)]
        refused = sum(not log.write("info", b"x" * size) for size in sizes)
        self.assertEqual(refused, 0)
        self.assertEqual([len(record.message) for record in self.records()], sizes)

    def test_words_of_the_environment(self) -> None:
        program = ("import cordwood, sys\n"
                   "for _ in range(2):\n"
                   "    with cordwood.open(sys.argv[1]) as engine:\n"
                   "        levels = range(1, 25)\n"
                   "        for name in 'a', 'b':\n"
                   "            print(next(n for n in levels if engine.logger(name).enabled(n)))")
        for variable, value, levels, told in (
                ("CORDWOOD_LEVEL", "WARNING", "13 13", ""),
                ("CORDWOOD_LEVEL", "critical, b = Err", "21 17", ""),
                ("CORDWOOD_LEVEL", "30,b=50", "13 21", ""),
                ("CORDWOOD_LEVEL", "20,b=emerg", "20 21", "20 is ERROR+3 here"),
                ("CORDWOOD_LEVEL", "loud,b=debug", "9 5", "'loud' is no level: trace debug"),
                ("CORDWOOD_LEVEL", "b=", "9 9", "'' is no level"),
                ("CORDWOOD_LEVEL", "b=99\x1b[2J", "9 9", r"'99\x1b[2J' is no level"),
                ("CORDWOOD_CONSOLE", "yes", "9 9", "'yes' is not known; use off, text"),
                ("CORDWOOD_CONSOLE", "OFF", "9 9", ""), ("CORDWOOD_CONSOLE", "", "9 9", "")):
            with self.subTest(variable=variable, value=value):
                done = subprocess.run(
                    [sys.executable, "-c", program, self.store], check=True, capture_output=True,
                    text=True, env=dict(os.environ, **{variable: value}))
                self.assertEqual(done.stdout.split(), 2 * levels.split())
                lines = done.stderr.splitlines()
                self.assertEqual(len(lines), 1 if told else 0, lines)
                self.assertIn(f"cordwood: {variable}: {told}" if told else "", done.stderr)

    def test_a_wrong_target_of_the_environment_is_named(self) -> None:
        program = "import cordwood, sys; cordwood.open(sys.argv[1])"
        for value in "gopher://h/s3cret", "logs.example", "http://":
            with self.subTest(value=value):
                done = subprocess.run(
                    [sys.executable, "-c", program, self.store], check=False, capture_output=True,
                    text=True, env=dict(os.environ, CORDWOOD_TARGET=value))
                last = done.stderr.splitlines()[-1]
                self.assertEqual(done.returncode, 1)
                self.assertIn("ArgumentError: CW_E_ARGUMENT: ", last)
                self.assertIn("(CORDWOOD_TARGET: ", last)
                self.assertNotIn("s3cret", last)

    def test_version(self) -> None:
        self.assertRegex(cordwood.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
