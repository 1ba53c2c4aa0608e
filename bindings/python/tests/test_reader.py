"""Reading: filters, kinds, following, errors."""
import contextlib
import os
import threading
import unittest
from datetime import datetime, timezone
from pathlib import Path

from support import StoreCase, cordwood


class ReaderTest(StoreCase):
    """cordwood.read."""

    def test_filters(self) -> None:
        engine = self.open(level="trace")
        for name, level in (("app", "debug"), ("app.db", "warn"), ("appx", "error")):
            engine.logger(name).log(level, "%s %s", name, level)
        self.assertEqual([record.logger for record in self.records(level="warn")],
                         ["app.db", "appx"])
        self.assertEqual([record.logger for record in self.records(logger="app")],
                         ["app", "app.db"])
        self.assertEqual(self.only(level=13, logger="app").message, "app.db warn")

    def test_times(self) -> None:
        log = self.open().logger("a")
        log.info("first")
        log.info("second")
        first, second = self.records()
        cut = second.time_ns / 1e9 if second.time_ns - first.time_ns > 10_000 else None
        day = 86_400
        now = datetime.now(timezone.utc)
        self.assertEqual(len(self.records(since=now.timestamp() - day)), 2)
        self.assertEqual(self.records(since=now.timestamp() + day), [])
        self.assertEqual(self.records(until="2020-01-01T00:00:00Z"), [])
        self.assertEqual(len(self.records(since=datetime(2020, 1, 1), until=now)), 2)
        if cut is not None:
            self.assertEqual(self.records(until=cut)[0].message, "first")

    def test_order_and_sequence(self) -> None:
        log = self.open().logger("a")
        for index in range(1000):
            log.info("%d", index)
        found = self.records()
        self.assertEqual([record.message for record in found], [str(i) for i in range(1000)])
        sequences = [record.sequence for record in found]
        self.assertEqual(sequences, sorted(set(sequences)))

    def test_only_logs_unless_asked(self) -> None:
        self.open().logger("a").info("x")
        self.assertEqual({record.kind for record in cordwood.read(self.store)}, {"log"})
        self.assertIn("log", {record.kind for record in cordwood.read(self.store, kinds="all")})
        for kinds in ("gap", ["gap", "lifecycle"]):
            found = {record.kind for record in cordwood.read(self.store, kinds=kinds)}
            self.assertLessEqual(found, {"gap", "lifecycle"})
        with self.assertRaises(ValueError):
            cordwood.read(self.store, kinds="loud")

    def test_what_was_refused_is_a_gap(self) -> None:
        engine = self.open(segment_bytes=65536, quota_bytes=262144, overflow="drop")
        log = engine.logger("a")
        for _ in range(500):
            log.write("info", b"x" * 16_000)
        with contextlib.suppress(cordwood.CordwoodError):  # there may be no room for it
            engine.roll()
        dropped = engine.stats().records_dropped
        self.assertGreater(dropped, 0)
        engine.close()
        kinds = {record.kind for record in cordwood.read(self.store, kinds="all")}
        self.assertIn("gap", kinds)

    def test_large_record_is_whole(self) -> None:
        self.open().logger("a").info("x" * 1_000_000)
        record = self.only()
        self.assertEqual((len(record.message), record.truncated), (1_000_000, False))
        self.assertEqual(record.original_length, 1_000_000)

    def test_too_large_a_record_is_cut_and_marked(self) -> None:
        self.open(segment_bytes=65536).logger("a").write("info", b"x" * 1_000_000)
        record = self.only()
        self.assertTrue(record.truncated)
        self.assertEqual(record.original_length, 1_000_000)
        self.assertEqual(set(record.message), {"x"})

    def test_follow(self) -> None:
        log = self.open().logger("a")
        log.info("before")
        with cordwood.read(self.store, follow=True, logger="a") as reader:
            self.assertEqual(next(reader).message, "before")
            thread = threading.Thread(target=log.info, args=("after",))
            thread.start()
            self.assertEqual(next(reader).message, "after")
            thread.join()

    def test_follow_from_end(self) -> None:
        log = self.open().logger("a")
        log.info("before")
        with cordwood.read(self.store, follow=True, from_end=True, logger="a",
                           idle_timeout=30) as reader:
            log.info("after")
            self.assertEqual(next(reader).message, "after")

    def test_follow_ends_when_idle(self) -> None:
        self.open().logger("a").info("x")
        found = list(cordwood.read(self.store, follow=True, logger="a", idle_timeout=1))
        self.assertEqual([record.message for record in found], ["x"])

    def test_a_cut_archive_is_told(self) -> None:
        engine = self.open()
        for number in range(100):
            engine.logger("a").info("%d", number)
        engine.roll()
        engine.archive_wait(60)
        path, = Path(self.store).glob("archives/*.cwa")
        engine.logger("a").info("whole")
        engine.close()
        # No sooner than where it stops to be an archive at all, of which it is told, too.
        for size in (0, 100, 200, 300, path.stat().st_size // 2):
            os.truncate(path, size)
            with self.subTest(size), self.assertWarns(cordwood.DamageWarning) as told:
                reader = cordwood.read(self.store, logger="a")
                self.assertEqual([record.message for record in reader], ["whole"])
            self.assertIn(path.name, str(told.warning))
            self.assertEqual(os.path.basename(told.filename), "test_reader.py")
            self.assertGreater(reader.damaged, 0)

    def test_a_hostile_file_name_forges_no_line(self) -> None:
        with self.open() as engine:
            engine.logger("a").info("x")
        junk = Path(self.store) / "archives" / "x\x1b[2J\u202e\nTraceback: forged.cwa"
        junk.write_bytes(b"junk")
        with self.assertWarns(cordwood.DamageWarning) as told:
            list(cordwood.read(self.store))
        self.assertIn("x\\x1b[2J\\u202e\\nTraceback: forged.cwa", str(told.warning))
        self.assertNotIn("\n", str(told.warning))

    def test_missing_store(self) -> None:
        with self.assertRaises(cordwood.NotFoundError) as caught:
            cordwood.read(self.store + "/nowhere")
        self.assertIn("nowhere", str(caught.exception))

    def test_records_outlive_the_reader(self) -> None:
        self.open().logger("a").info("x", key="value")
        with cordwood.read(self.store, logger="a") as reader:
            record = next(reader)
        self.assertEqual(list(reader), [])
        self.assertEqual((record.message, record.fields), ("x", {"key": "value"}))


if __name__ == "__main__":
    unittest.main()
