"""The standard library's logging, through cordwood.Handler."""
import contextlib
import io
import logging
import time
import unittest
from typing import Any, Dict, List
from unittest import mock

from support import StoreCase, cordwood


class Unprintable:
    """Has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class HandlerTest(StoreCase):
    """A logger of `logging` with the handler alone."""

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
            for number, created in enumerate((float("inf"), float("nan"), -1.0, 1e30)):
                self.handler.handle(logging.makeLogRecord({
                    "msg": str(number), "name": "app", "levelno": 30, "created": created,
                    "lineno": -5}))
        self.assertEqual(shown.getvalue(), "")
        found = self.records()
        self.assertEqual({record.message for record in found}, {*odd, *"0123"})
        self.assertEqual({record.level for record in found}, {"WARN"})
        self.assertLess(max(record.time_ns for record in found) - time.time_ns(), 10 ** 10)
        told = [record.message for record in found if "cordwood.level_error" in record.fields]
        self.assertEqual(told, ["levelno"])

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
