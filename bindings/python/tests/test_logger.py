"""What a log call keeps: text, arguments, fields, exceptions, place, level."""
import math
import os
import threading
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Mapping

from support import StoreCase, cordwood


class Unprintable:
    """Its str() raises."""

    def __str__(self) -> str:
        raise RuntimeError("no")


class Unrepresentable(Unprintable):
    """Its repr() raises, too."""

    __repr__ = Unprintable.__str__


class LoggerTest(StoreCase):
    """Engine.logger and what it offers."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = self.open(level="trace")
        self.log = self.engine.logger("app.db")

    def test_formats_and_keeps_who_and_where(self) -> None:
        before = datetime.now(timezone.utc) - timedelta(seconds=1)
        self.assertTrue(self.log.info("order %d at %s", 7, "noon"))
        record = self.only()
        self.assertEqual((record.message, record.logger, record.level, record.level_number),
                         ("order 7 at noon", "app.db", "INFO", 9))
        self.assertEqual((record.pid, record.tid), (os.getpid(), threading.get_native_id()))
        self.assertEqual(record.kind, "log")
        self.assertTrue(before <= record.time <= datetime.now(timezone.utc))
        self.assertEqual(record.time_ns // 1000 % 1_000_000, record.time.microsecond)

    def test_mapping_argument(self) -> None:
        self.log.info("%(a)s and %(b)d", {"a": "x", "b": 2})
        self.assertEqual(self.only().message, "x and 2")

    def test_percent_without_arguments_stays(self) -> None:
        self.log.info("100%")
        self.assertEqual(self.only().message, "100%")

    def test_wrong_arguments_are_kept_not_raised(self) -> None:
        self.assertTrue(self.log.info("order %d", "seven"))
        record = self.only()
        self.assertEqual(record.message, "order %d ('seven',)")
        self.assertIn("cordwood.format_error", record.fields)

    def test_typed_fields(self) -> None:
        fields: Dict[str, Any] = {
            "int": -7, "big": (1 << 64) - 1, "price": 1.5, "yes": True, "name": "Änna", "empty": "",
            "message": "not the message", "level": "not the level",
        }
        self.log.info("typed", **fields)
        record = self.only()
        self.assertEqual(record.fields, fields)
        self.assertIs(record.fields["yes"], True)
        self.assertIsInstance(record.fields["price"], float)

    def test_fields_of_every_number_and_length(self) -> None:
        values = [7, -1, 2 ** 63, 1.5, True, False, "", "ä" * 9]
        fields = [{f"key{i}": values[i % len(values)] for i in range(count)}
                  for count in (1, 2, 8, 15, 16, 17, 40)]
        lengths = [*range(70), 99, 255, 256, 65_534, 65_535, 65_536, 70_000]
        fields += [{"k" * (1 + length % 300): "x" * length, "z": length} for length in lengths]
        for each in fields:
            self.assertTrue(self.log.info("m" * (len(each) - 1), **each))
        found = self.records()
        self.assertEqual([dict(record.fields) for record in found], fields)
        self.assertEqual([record.message for record in found], ["m" * (len(f) - 1) for f in fields])
        self.assertEqual({(record.function.rpartition(".")[2], record.line > 0)
                          for record in found}, {("test_fields_of_every_number_and_length", True)})

    def test_fields_of_other_types_become_text(self) -> None:
        self.log.info("others", none=None, list=[1, "a"], huge=1 << 70, bad=Unprintable(),
                      **{"http.status": 200})
        self.assertEqual(self.only().fields, {
            "none": None, "list": [1, "a"], "huge": str(1 << 70), "http.status": 200,
            "bad": "<unprintable Unprintable object>"})

    def test_values_with_parts(self) -> None:
        order: Dict[str, Any] = {
            "id": 7, "items": [{"sku": "x", "n": 1.5}, ("y", None)], "ok": True, "empty": {},
            "\u00fc\"\n": "gr\u00fcn\0", "huge": 1 << 70}
        self.log.info("order", order=order, none=None, list=[], tuple=(1, "a"))
        with cordwood.context(inner={"a": [1]}):
            self.log.info("context")
        first, second = self.records()
        self.assertEqual(first.fields, {
            "order": {**order, "items": [{"sku": "x", "n": 1.5}, ["y", None]]},
            "none": None, "list": [], "tuple": [1, "a"]})
        kept: Any = first.fields["order"]
        self.assertEqual(list(kept), list(order))
        self.assertEqual(second.fields, {"inner": {"a": [1]}})
        for query in ("order.items.0.sku==x", "order.items.n>1", "order.id=7", "none=*",
                      "-order.items.5=*", "order.ok=true inner.a=1 OR order.huge>1e18"):
            with self.subTest(query):
                self.assertEqual([record.message for record in self.records(query=query)],
                                 ["order", "context"] if query[0] == "-" else ["order"])

    def test_parts_of_other_types(self) -> None:
        self.log.info("parts", value={
            2: "key", None: b"caf\xe9", "bad": Unprintable(), "nan": math.nan,
            "many": [math.inf, -math.inf, 1 << 63, "\udce9", 1e300], Unprintable(): 1,
            "True": "first", True: "second", "huge": 10 ** 5000, "exact": 1 << 70})
        self.log.info("alone", value=10 ** 5000)
        parts, alone = self.records()
        self.assertEqual(alone.fields["value"], hex(10 ** 5000))
        self.assertEqual(parts.fields["value"], {
            "huge": hex(10 ** 5000), "exact": 1 << 70, "2": "key",
            "None": "caf\ufffd", "bad": "<unprintable Unprintable object>",
            "nan": "NaN", "many": ["Infinity", "-Infinity", 1 << 63, "\ufffd", 1e300],
            "<unprintable Unprintable object>": 1, "True": "first"})

    def test_parts_without_bounds_become_text(self) -> None:
        deep: Any = 7
        for _ in range(20):
            deep = [deep]
        itself: Dict[str, Any] = {}
        itself["itself"] = itself
        large = ["x" * 1000] * 300
        self.log.info("bounds", deep=deep, deeper=[deep], itself=itself, large=large)
        fields = self.only().fields
        self.assertEqual(fields["deep"], deep)
        self.assertEqual(fields["deeper"], str([deep]))
        self.assertEqual(fields["itself"], str(itself))
        self.assertEqual(fields["large"], str(large))

    def test_not_a_number(self) -> None:
        self.log.info("nan", value=math.nan, more=math.inf)
        fields: Mapping[str, Any] = self.only().fields
        self.assertTrue(math.isnan(fields["value"]))
        self.assertEqual(fields["more"], math.inf)

    def test_every_level(self) -> None:
        for name in ("trace", "debug", "info", "notice", "warning", "error", "critical"):
            getattr(self.log, name)(name)
        self.log.log("INFO+2", "between")
        self.log.log(24, "last")
        self.assertEqual(
            [(record.level, record.level_number) for record in self.records()],
            [("TRACE", 1), ("DEBUG", 5), ("INFO", 9), ("NOTICE", 10), ("WARN", 13), ("ERROR", 17),
             ("FATAL", 21), ("NOTICE+1", 11), ("FATAL+3", 24)])

    def test_a_level_that_is_none_is_a_warning_and_told(self) -> None:
        levels: List[Any] = [0, 25, -1, 255, "off", "loud", "info+x", "fatal+9", None, 1.5, 1 << 70]
        for level in levels:
            self.assertTrue(self.log.log(level, "order %d", 7, price=1.5), level)
            self.assertTrue(self.log.write(level, b"raw"), level)
        found = self.records()
        self.assertEqual([(record.level, record.message) for record in found],
                         [("WARN", "order 7"), ("WARN", "raw")] * len(levels))
        for record in found:
            self.assertIn("level", str(record.fields["cordwood.level_error"]))
        self.assertIn("'loud'", str(found[10].fields["cordwood.level_error"]))
        self.assertEqual(found[10].fields["price"], 1.5)
        self.assertTrue(str(found[0].file).endswith("test_logger.py"))

    def test_a_level_that_is_none_below_the_threshold(self) -> None:
        self.engine.set_level("", "error")
        calls: List[Any] = [lambda: self.log.log("loud", "x"), lambda: self.log.write(0, b"x")]
        for call in calls:
            self.assertFalse(call())
        self.assertEqual(self.records(), [])

    def test_wrong_arguments_and_level_in_one_call(self) -> None:
        fields: Dict[str, Any] = {"cordwood.level_error": "mine", "cordwood.format_error": "mine"}
        with cordwood.context(**fields):
            self.assertTrue(self.log.log("loud", "%d", "seven", **fields))
        record = self.only()
        self.assertEqual((record.level, record.message), ("WARN", "%d ('seven',)"))
        self.assertEqual(len(record.fields), 2)
        self.assertNotIn("mine", record.fields.values())

    def test_arguments_that_cannot_be_shown_do_not_hide_the_others(self) -> None:
        self.assertTrue(self.log.info("%d %s", "seven", Unrepresentable()))
        self.assertEqual(self.only().message,
                         "%d %s ('seven', <unprintable Unrepresentable object>)")

    def test_too_many_fields_are_cut_with_a_mark(self) -> None:
        with cordwood.context(user="anna"):
            self.assertTrue(self.log.info("%d", "x", **{f"k{i}": i for i in range(10_000)}))
            self.assertTrue(self.log.info("fits", **{f"k{i}": i for i in range(4095)}))
            self.assertTrue(self.log.info("one more", **{f"k{i}": i for i in range(4096)}))
        many, fits, more = self.records()
        self.assertEqual(many.message, "%d ('x',)")
        self.assertIn("cordwood.format_error", many.fields)
        self.assertEqual((len(many.fields), many.fields["k4093"]), (4096, 4093))
        self.assertEqual(many.fields["cordwood.fields_cut"], 10_002 - 4095)
        self.assertEqual((len(fits.fields), fits.fields["user"]), (4096, "anna"))
        self.assertNotIn("cordwood.fields_cut", fits.fields)
        self.assertEqual((len(more.fields), more.fields["cordwood.fields_cut"]), (4096, 2))

    def test_fields_that_no_segment_holds_are_cut(self) -> None:
        self.engine.close()
        log = self.open(segment_bytes=65_536).logger("small")
        texts: Dict[str, Any] = {f"k{i}": "v" * 100 for i in range(10_000)}
        self.assertTrue(log.info("m" * 100, **texts))
        self.assertTrue(log.info("m" * 100, before=1, body="b" * 1_000_000, after=2))
        self.assertTrue(log.info("m" * 1_000_000, body="b" * 1_000_000))
        many, one, both = self.records()
        self.assertTrue(many.truncated and one.truncated and both.truncated)
        self.assertEqual((many.message, one.message), ("m" * 100, "m" * 100))
        self.assertGreater(len(many.fields), 400)
        self.assertEqual(many.fields["k400"], "v" * 100)
        self.assertEqual((one.fields["before"], list(one.fields)), (1, ["before", "body"]))
        self.assertGreater(len(str(one.fields["body"])), 50_000)
        self.assertGreater(min(len(both.message), len(str(both.fields["body"]))), 25_000)
        self.assertEqual(both.original_length, 1_000_000)

    def test_a_key_that_is_too_long_is_cut_with_a_mark(self) -> None:
        for key in ("k" * 70_000, "ü" * 40_000):
            self.assertTrue(self.log.info("x", **{key: 1}))
            key = list(self.records()[-1].fields)[0]
            self.assertTrue(key.endswith(key[0] * 10 + "…"))
            self.assertIn(len(key.encode()), (65_534, 65_535))

    def test_exception_keeps_type_message_and_traceback(self) -> None:
        try:
            os.environ["missing"]
        except KeyError:
            self.log.exception("lookup failed", key="missing")
        record = self.only()
        self.assertEqual((record.message, record.level), ("lookup failed", "ERROR"))
        self.assertEqual(record.fields["exception.type"], "KeyError")
        self.assertEqual(record.fields["exception.message"], "'missing'")
        self.assertIn("test_logger.py", str(record.fields["exception.stacktrace"]))
        self.assertEqual(record.fields["key"], "missing")

    def test_exc_info_in_all_its_forms(self) -> None:
        error = ValueError("boom")
        self.log.warning("given", exc_info=error)
        self.log.warning("tuple", exc_info=(ValueError, error, None))
        self.log.warning("nothing is being handled", exc_info=True)
        found = [record.fields.get("exception.message") for record in self.records()]
        self.assertEqual(found, ["boom", "boom", None])

    def test_place_is_the_caller(self) -> None:
        self.log.info("here")
        record = self.only()
        self.assertEqual(record.file, __file__)
        self.assertTrue(str(record.function).endswith("test_place_is_the_caller"))
        start = LoggerTest.test_place_is_the_caller.__code__.co_firstlineno
        self.assertEqual(record.line, start + 1)

    def test_stacklevel_is_the_callers_caller(self) -> None:
        def helper() -> None:
            self.log.info("from a helper", stacklevel=2)
        helper()
        self.assertTrue(str(self.only().function).endswith("test_stacklevel_is_the_callers_caller"))
        self.assertTrue(self.log.info("too deep", stacklevel=10_000))

    def test_any_bytes(self) -> None:
        content = bytes(range(256))
        self.assertTrue(self.log.write("info", content))
        self.assertTrue(self.log.write("info", bytearray(content)))
        self.assertTrue(self.log.info(memoryview(content), size=len(content)))
        self.assertTrue(self.log.info(""))
        found = [record.message_bytes for record in self.records()]
        self.assertEqual(found, [content, content, content, b""])
        self.assertIn("\ufffd", self.records()[0].message)

    def test_surrogates(self) -> None:
        self.log.info("caf\udce9")
        self.log.info("\ud800")
        self.assertEqual(self.records()[0].message_bytes, b"caf\xe9")
        self.assertEqual(len(self.records()), 2)

    def test_disabled_formats_nothing(self) -> None:
        self.engine.set_level("app", "warn")
        self.assertFalse(self.log.info("%s", Unprintable()))
        self.assertFalse(self.log.enabled("info"))
        self.assertTrue(self.log.enabled("warn"))
        self.assertFalse(self.log.write("info", b"x"))
        self.assertEqual(self.records(), [])

    def test_levels_follow_dotted_names(self) -> None:
        self.engine.set_level("app", "error")
        self.engine.set_level("app.db.pool", "debug")
        for name, wanted in (("app", False), ("app.db", False), ("appx", True),
                             ("app.db.pool", True), ("app.db.pool.x", True), ("", True)):
            self.assertEqual(self.engine.logger(name).enabled("debug"), wanted, name)
        self.engine.set_level("app", "off")
        self.assertFalse(self.log.enabled(24))

    def test_the_same_name_gives_the_same_logger(self) -> None:
        self.assertIs(self.engine.logger("app.db"), self.log)

    def test_many_threads(self) -> None:
        def work(thread: int) -> None:
            for index in range(500):
                self.log.info("%d", index, thread=thread)
        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = self.records()
        for number in range(4):
            self.assertEqual([record.message for record in found
                              if record.fields["thread"] == number],
                             [str(index) for index in range(500)])

    def test_no_call_raises_after_close(self) -> None:
        self.engine.close()
        self.assertFalse(self.log.info("late"))
        self.assertFalse(self.log.write("fatal", b"late"))
        self.assertFalse(self.log.enabled("fatal"))


if __name__ == "__main__":
    unittest.main()
