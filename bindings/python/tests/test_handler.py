"""The standard library's logging, through cordwood.Handler."""
import contextlib
import io
import logging
import time
import unittest
from typing import Any, Dict, List
from unittest import mock

from support import StoreCase, cordwood

from cordwood import _handler


class Unprintable:
    """Its repr() raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class HandlerTest(StoreCase):
    """A logger of `logging` with no other handler."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = self.open(level="trace")
        self.handler = cordwood.Handler(self.engine)
        self.log = logging.getLogger("app.orders")
        self.log.setLevel(1)
        self.log.propagate = False
        self.log.addHandler(self.handler)
        self.addCleanup(self.log.removeHandler, self.handler)

    def test_message_place_and_time(self) -> None:
        seen = []
        self.handler.addFilter(lambda record: seen.append(record) or True)  # type: ignore
        self.log.info("order %d", 7)
        record, source = self.only(), seen[0]
        self.assertEqual((record.message, record.logger, record.level),
                         ("order 7", "app.orders", "INFO"))
        self.assertEqual((record.file, record.line, record.function),
                         (source.pathname, source.lineno, "test_message_place_and_time"))
        self.assertEqual(record.time_ns, int(source.created * 1e9))

    def test_extra_is_typed(self) -> None:
        self.log.info("paid", extra={"price": 1.5, "count": 3, "ok": True, "user": "anna"})
        self.assertEqual(self.only().fields,
                         {"price": 1.5, "count": 3, "ok": True, "user": "anna"})

    def test_exception(self) -> None:
        try:
            raise ValueError("boom")
        except ValueError:
            self.log.exception("failed")
        fields = self.only().fields
        self.assertEqual((fields["exception.type"], fields["exception.message"]),
                         ("ValueError", "boom"))
        self.assertIn("test_handler.py", str(fields["exception.stacktrace"]))

    def test_levels(self) -> None:
        for number in (5, 10, 20, 25, 30, 40, 50, 60):
            self.log.log(number, "x")
        self.assertEqual([record.level for record in self.records()],
                         ["TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "FATAL", "FATAL"])

    def test_engine_threshold_counts(self) -> None:
        self.engine.set_level("app", "error")
        self.log.info("no")
        self.log.error("yes")
        self.assertEqual(self.only().message, "yes")

    def test_context_and_formatter(self) -> None:
        self.handler.setFormatter(logging.Formatter("<%(message)s>"))
        with cordwood.context(user="anna"):
            self.log.info("x")
        record = self.only()
        self.assertEqual((record.message, record.fields), ("<x>", {"user": "anna"}))

    def test_stack_info(self) -> None:
        self.log.info("x", stack_info=True)
        self.assertIn("test_stack_info", str(self.only().fields["stack_info"]))

    def test_extra_with_keys_that_are_no_strings(self) -> None:
        keys: Dict[Any, int] = {b"user": 1, 5: 2, None: 3, "plain": 4}
        with cordwood.context(user="anna"):
            self.log.handle(logging.makeLogRecord(
                {**keys, "msg": "x", "name": "app", "levelno": 30, "levelname": "WARNING"}))
        self.assertEqual(self.only().fields, {
            "b'user'": 1, "5": 2, "None": 3, "plain": 4, "user": "anna"})

    def test_wrong_arguments_are_kept_and_told(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            self.log.info("order %d", "seven")
            self.log.info("two %s %s", 1, extra={"user": "anna"})
            self.log.info("none", 1)
            self.log.info("%(a)s", {"b": 1})
            self.log.info("%d %s", "x", Unprintable())
            self.log.info(Unprintable())
        self.assertEqual([record.message for record in self.records()], [
            "order %d ('seven',)", "two %s %s (1,)", "none (1,)", "%(a)s {'b': 1}",
            "%d %s ('x', <unprintable Unprintable object>)",
            "<unprintable Unprintable object> ()"])
        for record in self.records():
            self.assertIn("cordwood.format_error", record.fields)
        self.assertEqual(self.records()[1].fields["user"], "anna")
        self.assertEqual(shown.getvalue().count("--- Logging error ---"), 6)
        with contextlib.redirect_stderr(io.StringIO()) as shown, \
                mock.patch.object(logging, "raiseExceptions", False):
            self.log.info("order %d", "eight")
        self.assertEqual((shown.getvalue(), len(self.records())), ("", 7))

    def test_wrong_arguments_with_a_formatter(self) -> None:
        self.handler.setFormatter(logging.Formatter("<%(message)s>"))
        with contextlib.redirect_stderr(io.StringIO()):
            self.log.info("order %d", "seven")
            self.handler.setFormatter(logging.Formatter("%(request_id)s %(message)s"))
            self.log.info("order %d", 7)
            self.log.info("order %d", "eight")
        first, second, third = self.records()
        self.assertEqual(first.message, "<order %d ('seven',)>")
        self.assertEqual(second.message, "order 7")
        self.assertIn("request_id", str(second.fields["cordwood.format_error"]))
        self.assertEqual(third.message, "order %d ('eight',)")

    def test_too_many_extra_are_cut_with_a_mark(self) -> None:
        many = {f"k{index}": index for index in range(10_000)}
        self.log.info("many", extra=many, stack_info=True)
        with contextlib.redirect_stderr(io.StringIO()), cordwood.context(user="anna"):
            self.log.info("%d", "x", extra=many)
        first, second = self.records()
        self.assertEqual((first.message, len(first.fields)), ("many", 4096))
        self.assertEqual(first.fields["cordwood.fields_cut"], 10_001 - 4095)
        self.assertIn("test_too_many", str(first.fields["stack_info"]))
        self.assertEqual(second.fields["cordwood.fields_cut"], 10_002 - 4095)
        self.assertIn("cordwood.format_error", second.fields)

    def test_records_with_odd_attributes_are_kept(self) -> None:
        odd: Dict[str, Any] = {
            "levelno": "loud", "pathname": 5, "funcName": [], "lineno": "7", "created": None}
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            for name, value in odd.items():
                self.handler.handle(logging.makeLogRecord(
                    {"msg": name, "name": "app", "levelno": 30, name: value}))
            self.handler.handle(logging.makeLogRecord(
                {"msg": "line", "name": "app", "levelno": 30, "lineno": -5}))
        self.assertEqual(shown.getvalue(), "")
        found = self.records()
        self.assertEqual({record.message for record in found}, {*odd, "line"})
        self.assertEqual({record.level for record in found}, {"WARN"})
        self.assertLess(max(record.time_ns for record in found) - time.time_ns(), 10 ** 10)
        told = [record.message for record in found if "cordwood.level_error" in record.fields]
        self.assertEqual(told, ["levelno"])

    def test_times_that_no_record_has(self) -> None:
        """A field says when it was; the record has the time at which it was written."""
        outside = [0.0, -0.0, -1.0, -315_619_200.0, 1e-10, 18_446_744_074.0, 1e12, 1e30,
                   float("inf"), float("nan"), 0, -5, "yesterday"]
        inside = [1e-9, 1, 0.5, 18_446_744_073.0, 18_446_744_072]
        begun = time.time_ns()
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            for created in (*outside, *inside):
                for usual in (False, True):
                    record = logging.LogRecord("app", 30, "a.py", 1, repr(created), None, None)
                    record.created = created  # type: ignore[assignment]
                    if not usual:
                        record.extra = 1
                    self.handler.handle(record)
        self.assertEqual(shown.getvalue(), "")
        found = self.records()
        self.assertEqual(len(found), 2 * len(outside + inside))
        for record in found:
            told = record.fields.get("event.time")
            if record.message in map(repr, outside):
                self.assertEqual(repr(told).strip("'"), record.message.strip("'"))
                self.assertGreaterEqual(record.time_ns, begun)
            else:
                self.assertIsNone(told)
                self.assertEqual(record.time_ns, int(float(record.message) * 1e9))

    def test_names_that_no_logger_has(self) -> None:
        names: List[Any] = ["n" * 300, "a\0b", "\udce9", None, [], 5]
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            for name in names:
                self.handler.handle(logging.makeLogRecord(
                    {"msg": "x", "name": name, "levelno": 30}))
        self.assertEqual(shown.getvalue(), "")
        self.assertEqual([(record.logger, record.fields["logger.name"])
                          for record in self.records() if record.message == "x"][:2],
                         [("", "n" * 300), ("", "a\0b")])
        self.assertEqual(len(self.records()), len(names))

    def both_ways(self, call: Any) -> List[Any]:
        """The records of a call by the shortest path, if there is one, and by emit's own.
        `self.put` holds the results of the shortest path."""
        put = _handler._put_usual
        self.put: List[bool] = []

        def noted(*arguments: Any) -> bool:
            done = put(*arguments) if put is not None else False
            self.put.append(done)
            return done
        found = []
        for way in (noted, None):
            before = len(self.records())
            with mock.patch.object(_handler, "_put_usual", way), \
                    contextlib.redirect_stderr(io.StringIO()):
                call()
            found.append([(record.level, record.logger, record.message, record.fields, record.file,
                           record.function, record.trace_id)
                          for record in self.records()[before:]])
        return found

    def test_usual_records_are_written_in_one_call(self) -> None:
        self.log.info("the name is known")
        bad = Unprintable()
        numbers, text = {"a": 1}, "\u00e4\udce9" * 3000
        usual: List[Any] = [
            lambda: self.log.info("order %d", 7), lambda: self.log.error("100 %"),
            lambda: self.log.debug("%s of %s%%", "x" * 600, 2.5), lambda: self.log.warning(""),
            lambda: self.log.critical("%r %s", text, None), lambda: self.log.info(text),
            lambda: self.log.log(25, "%5.1f", 2), lambda: self.log.info("%s", ()),
        ]
        others: List[Any] = [
            lambda: self.log.info("%(a)d", numbers), lambda: self.log.info(5),
            lambda: self.log.info("%d", "seven"), lambda: self.log.info("%s", bad),
            lambda: self.log.info("x", extra=numbers), lambda: self.log.info("x", stack_info=True),
            lambda: self.log.log(15, "a level of its own"),
            lambda: self.log.info("x", exc_info=ValueError("no")),
        ]
        for call in usual + others:
            first, second = self.both_ways(call)
            self.assertEqual(len(first), 1)
            if "stack_info" not in first[0][3] and "exception.stacktrace" not in first[0][3]:
                self.assertEqual(first, second)
            self.assertEqual(self.put, [cordwood.accelerated and call in usual])
        with cordwood.context(order=7), cordwood.trace("ab" * 16):
            first, second = self.both_ways(usual[0])
        self.assertEqual(first, second)
        self.assertEqual(first[0][3], {"order": 7})
        self.assertEqual(self.put, [cordwood.accelerated])

    def test_what_else_is_no_usual_record(self) -> None:
        class Own(logging.LogRecord):
            def getMessage(self) -> str:
                return "own"
        self.log.info("the name is known")
        for record, message in (
                (Own("app.orders", 20, "f", 1, "x", (), None), "own"),
                (logging.makeLogRecord({"name": "app.orders", "levelno": 20, "msg": "m",
                                        "pathname": None}), "m")):
            first, second = self.both_ways(lambda: self.handler.handle(record))
            self.assertEqual(first, second)
            self.assertEqual(first[0][2], message)
            self.assertEqual(self.put, [False])
        with mock.patch.object(logging.LogRecord, "getMessage", lambda record: "patched"):
            first, second = self.both_ways(lambda: self.log.info("x"))
            self.assertEqual((first, self.put), (second, []))
            self.assertEqual(first[0][2], "patched")
        self.handler.setFormatter(logging.Formatter("[%(message)s]"))
        first, second = self.both_ways(lambda: self.log.info("x"))
        self.assertEqual((first, self.put), (second, []))
        self.assertEqual(first[0][2], "[x]")

    def test_other_handlers_come_first(self) -> None:
        self.log.removeHandler(self.handler)
        stream = logging.StreamHandler(io.StringIO())
        stream.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        for handler in (stream, self.handler):
            self.log.addHandler(handler)
            self.addCleanup(self.log.removeHandler, handler)
        self.log.info("the name is known")
        first, second = self.both_ways(lambda: self.log.info("order %d", 7))
        self.assertEqual(first, second)
        self.assertEqual(self.put, [cordwood.accelerated])

    def test_a_level_that_is_off(self) -> None:
        self.log.info("the name is known")
        self.engine.set_level("app.orders", "error")
        self.assertEqual(self.both_ways(lambda: self.log.info("x")), [[], []])
        self.assertEqual(self.put, [cordwood.accelerated])

    def test_nothing_reaches_the_host(self) -> None:
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            self.log.info("order %d", "seven")  # kept, and shown as the stdlib does
            self.log.info("x" * 10, extra={"n" * 70_000: 1})
            self.engine.close()
            self.log.info("closed")
            logging.getLogger("app.never.seen").addHandler(self.handler)
            logging.getLogger("app.never.seen").error("closed, and a new name")
        self.assertIn("seven", shown.getvalue())


if __name__ == "__main__":
    unittest.main()
