"""The standard library's logging, through cordwood.Handler."""
import contextlib
import io
import logging
import unittest
from typing import Any, Dict

from support import StoreCase, cordwood


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

    def test_nothing_reaches_the_host(self) -> None:
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            self.log.info("order %d", "seven")  # the stdlib shows this one itself, too
            self.log.info("x" * 10, extra={"n" * 70_000: 1})
            self.engine.close()
            self.log.info("closed")
            logging.getLogger("app.never.seen").addHandler(self.handler)
            logging.getLogger("app.never.seen").error("closed, and a new name")
        self.assertIn("seven", shown.getvalue())


if __name__ == "__main__":
    unittest.main()
