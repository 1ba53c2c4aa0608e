"""Reading: filters, kinds, following, errors."""
import contextlib
import copy
import gc
import os
import pickle
import threading
import unittest
import warnings
import weakref
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Dict

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

    def test_queries(self) -> None:
        log = self.open().logger("app")
        for order in (7, "7", 8):
            log.info("order %s", order, order=order)
        for query, count in (("order=7", 2), ("-order=8", 2), ('"order 8" level:info', 1),
                             ("order~/[78]/ -i:ORDER", 0)):
            with self.subTest(query=query):
                self.assertEqual(len(self.records(query=query, logger="app")), count)
        with self.assertRaisesRegex(cordwood.ArgumentError, "column 7"):
            cordwood.read(self.store, query="level:loud")

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

    def test_origin_and_id(self) -> None:
        with self.open(process_name="worker") as engine:
            engine.set_resource("service.name", "shop")
            engine.set_resource("user.id", "gr\u00fc\u00dfe")
            log = engine.logger("a")
            log.info("one")
            log.info("two")
            first, second = self.records()
            engine.roll()
            engine.archive_wait(60)
            archived = self.records()
        self.assertEqual([(found.record_id, found.resource) for found in archived],
                         [(found.record_id, found.resource) for found in (first, second)])
        self.assertEqual((first.process, first.process_name), ("worker", "worker"))
        self.assertEqual(first.service, "shop")
        self.assertEqual(first.resource["user.id"], "gr\u00fc\u00dfe")
        self.assertEqual(first.host, os.uname().nodename)
        self.assertEqual(first.resource["host.name"], first.host)
        self.assertRegex(first.record_id, "^[0-9a-f]{48}$")
        self.assertEqual(first.record_id[32:], f"{first.sequence:016x}")
        self.assertEqual(first.record_id[:32], second.record_id[:32])
        self.assertLess(first.record_id, second.record_id)
        # Each record has its own dict.
        first.resource.clear()
        self.assertEqual(second.service, "shop")

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
        # What is too short to be an archive at all is reported, too.
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

    def damage(self) -> None:
        """Makes an archive without its end, and a record."""
        with self.open() as engine:
            engine.logger("a").info("first")
            engine.roll()
            engine.archive_wait(60)
            path, = Path(self.store).glob("archives/*.cwa")
            engine.logger("a").info("second")
        os.truncate(path, path.stat().st_size // 2)

    def test_errors_come_where_they_belong(self) -> None:
        """Records that were read ahead come before the warning; closing twice does nothing."""
        self.damage()
        with cordwood.read(self.store, kinds="all") as reader:
            with self.assertWarns(cordwood.DamageWarning):
                found = [record.message for record in reader if record.logger == "a"]
            self.assertEqual(found, ["second"])
            self.assertEqual((reader.damaged, reader.encrypted), (2, 0))
            reader.close()
        reader.close()
        self.assertEqual(list(reader), [])

    def test_a_warning_that_is_an_error_loses_nothing(self) -> None:
        self.damage()
        reader, found, raised = cordwood.read(self.store), [], []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            while True:
                try:
                    found.append(next(reader).message)
                except cordwood.DamageWarning as warning:
                    raised.append(str(warning))
                except StopIteration:
                    break
                with self.assertRaises(cordwood.NotFoundError):  # replaces the last error
                    cordwood.read(self.store + "/nowhere")
        self.assertEqual([text for text in found if text == "second"], ["second"])
        self.assertEqual([text.count(".cwa") for text in raised], [1, 1])


class RecordTest(StoreCase):
    """A record is a named tuple, however it was made."""

    def made(self) -> cordwood.Record:
        """A record with many kinds of values."""
        log = self.open(process_name="p").logger("app.db")
        with cordwood.trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 1):
            log.write("warn", b"caf\xe9 \0")
            with cordwood.context(name="gr\u00fc\u00dfe", order=8):
                log.warning("order %d", 7, order=7, price=1.5, ok=True, big=1 << 63)
        return self.records()[1]

    def test_members(self) -> None:
        record = self.made()
        self.assertEqual(record.fields, {"order": 7, "price": 1.5, "ok": True, "big": 1 << 63,
                                         "name": "gr\u00fc\u00dfe"})
        self.assertEqual((record.logger, record.level, record.level_number, record.kind),
                         ("app.db", "WARN", 13, "log"))
        self.assertEqual((record.trace_id, record.span_id, record.trace_flags),
                         ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 1))
        self.assertEqual(os.path.basename(record.file or ""), "test_reader.py")
        self.assertIn("made", record.function or "")
        self.assertEqual(record.pid, os.getpid())
        self.assertEqual(record.time, datetime.fromtimestamp(0, timezone.utc)
                         + timedelta(microseconds=record.time_ns // 1000))
        self.assertIs(record.time.tzinfo, timezone.utc)
        bare = self.records()[0]
        self.assertEqual((bare.message, bare.message_bytes), ("caf\ufffd \0", b"caf\xe9 \0"))
        self.assertEqual((bare.file, bare.line, bare.function), (None, None, None))
        self.assertEqual(bare.original_length, 6)

    def test_the_first_of_equal_keys_counts(self) -> None:
        mine: Dict[str, Any] = {"exception.type": "mine"}
        try:
            raise ValueError("boom")
        except ValueError:
            self.open().logger("a").exception("x", **mine)
        fields = self.only().fields
        self.assertEqual((fields["exception.type"], fields["exception.message"]), ("mine", "boom"))

    def test_a_tuple_with_names(self) -> None:
        record = self.made()
        again = self.records()[1]
        time_ns, level, logger, *rest = record
        self.assertEqual((time_ns, level, logger, len(rest)),
                         (record.time_ns, 13, "app.db", len(record) - 3))
        self.assertEqual((record[2], record[-1], record[1:3]),
                         ("app.db", record.record_id, (13, "app.db")))
        outside = len(record)
        with self.assertRaises(IndexError):
            record[outside]
        self.assertIn("app.db", record)
        self.assertEqual((record.index("app.db"), record.count("app.db")), (2, 1))
        self.assertEqual(record, again)
        self.assertEqual(record, tuple(again))
        self.assertEqual(tuple(record), again)
        self.assertNotEqual(record, self.records()[0])
        self.assertLess(self.records()[0], record)
        self.assertNotEqual(record, 7)
        self.assertEqual((record + (1,))[-1], 1)
        self.assertRegex(repr(record), r"^Record\(time_ns=\d+, level_number=13, logger='app.db', ")
        self.assertEqual(record._fields[:2], ("time_ns", "level_number"))
        self.assertEqual(record._asdict()["fields"], record.fields)
        self.assertEqual(list(record._asdict()), list(cordwood.Record._fields))
        with self.assertRaises(TypeError):
            hash(record)
        with self.assertRaises(AttributeError):
            record.message = "other"  # type: ignore[misc]

    def test_copies(self) -> None:
        record = self.made()
        for made in (pickle.loads(pickle.dumps(record)), copy.deepcopy(record), copy.copy(record),
                     cordwood.Record(*record), cordwood.Record(**record._asdict()),
                     cordwood.Record._make(record)):
            self.assertIs(type(made), cordwood.Record)
            self.assertEqual((made, made.time, made.level, made.host),
                             (record, record.time, record.level, record.host))
        other = record._replace(time_ns=1_500, level_number=11)
        self.assertIs(type(other), cordwood.Record)
        self.assertEqual((other.time.microsecond, other.level, other.logger),
                         (1, "NOTICE+1", "app.db"))
        wrong: Any
        for wrong in ((), tuple(range(20)), tuple(range(22))):
            with self.assertRaises(TypeError):
                cordwood.Record(*wrong)
        with self.assertRaises(TypeError):
            cordwood.Record(unknown=1)  # type: ignore[call-arg]

    def test_a_member_that_was_made_stays(self) -> None:
        record = self.made()
        record.fields["mine"] = "yes"
        self.assertEqual((record.fields["mine"], record[9]["mine"]), ("yes", "yes"))
        self.assertIs(record.fields, record[9])
        self.assertIs(record.resource, record[19])

    def test_a_record_in_its_own_fields_is_collected(self) -> None:
        class Mark:
            """Tells when it is gone."""

        record, mark = self.made(), Mark()
        gone = weakref.ref(mark)
        fields: Any = record.fields
        fields["record"], fields["mark"] = record, mark
        del record, mark, fields
        gc.collect()
        self.assertIsNone(gone())

    def test_times(self) -> None:
        some = self.made()
        for seconds in (0, 1, 68_169_599, 951_782_400, 951_868_799, 1_709_164_800, 4_107_542_399,
                        4_107_542_400, 18_000_000_000):
            record = some._replace(time_ns=seconds * 1_000_000_000 + 999_999_999)
            self.assertEqual(record.time, datetime(1970, 1, 1, tzinfo=timezone.utc)
                             + timedelta(seconds=seconds, microseconds=999_999))


if __name__ == "__main__":
    unittest.main()
