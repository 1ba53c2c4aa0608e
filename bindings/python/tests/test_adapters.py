"""loguru and structlog through cordwood.LoguruSink and cordwood.StructlogProcessor. If they are not
installed, the packages come from PyPI into a virtual environment (requirements.txt beside this
file), except under pytest. If that fails, these tests are skipped."""
import asyncio
import contextlib
import decimal
import importlib
import io
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List

from support import StoreCase, cordwood


def package(name: str) -> Any:
    """Imports the package; skips the test if it is unavailable."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        pass
    environments: Any = importlib.import_module("environments")
    made = environments.interpreter("python")
    place = Path(made).parents[1] if made else environments.folder("python")
    for folder in place.glob("lib/python*/site-packages"):
        sys.path.append(str(folder))
    try:
        return importlib.import_module(name)
    except (ImportError, SyntaxError) as error:
        raise unittest.SkipTest(f"{name} is not installed; run.py takes it from PyPI: "
                                f"{error}") from None


BOUND: Dict[str, Any] = {"order": 7, "price": 2.5, "paid": True, "none": None, "tags": ["a", "b"],
                         "parts": {"items": [{"sku": "x"}]}, "text": "anna"}


class LoguruTest(StoreCase):
    """A loguru logger whose only sink is ours."""

    def setUp(self) -> None:
        super().setUp()
        loguru = package("loguru")
        self.engine = self.open(level="trace")
        self.log = loguru.logger
        self.log.remove()
        number = self.log.add(cordwood.LoguruSink(self.engine), level=0, catch=False)
        self.addCleanup(self.log.remove, number)

    def test_bound_values_are_fields(self) -> None:
        self.log.bind(**BOUND).info("paid")
        with self.log.contextualize(user="anna"):
            self.log.info("order {number} of {}", "today", number=8)
        first, second = self.records()
        self.assertEqual((first.message, first.fields), ("paid", BOUND))
        self.assertEqual((second.message, second.fields),
                         ("order 8 of today", {"number": 8, "user": "anna"}))
        self.assertEqual(self.only(query="parts.items.0.sku==x").message, "paid")

    def test_names_of_records_are_fields_too(self) -> None:
        names = {"name": "n", "message": "m", "level": "l", "time": 1, "args": [1], "module": "x",
                 "exc_info": "e", "msg": "g"}
        self.log.bind(**names).info("x")
        self.assertEqual(self.only().fields, names)

    def test_place_time_level_and_logger(self) -> None:
        seen: List[Any] = []
        number = self.log.add(lambda message: seen.append(message.record), level=0)
        self.log.success("x")
        self.log.remove(number)
        record, source = self.only(), seen[0]
        self.assertEqual((record.file, record.line, record.function, record.logger, record.level),
                         (source["file"].path, source["line"],
                          "test_place_time_level_and_logger", __name__, "NOTICE"))
        # A float, with a resolution of a quarter of a microsecond.
        self.assertLess(abs(record.time_ns - source["time"].timestamp() * 1e9), 2_000)

    def test_levels(self) -> None:
        for name in ("TRACE", "DEBUG", "INFO", "SUCCESS", "WARNING", "ERROR", "CRITICAL"):
            self.log.log(name, name)
        self.assertEqual([record.level for record in self.records()],
                         ["TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "FATAL"])
        self.engine.set_level("", "error")
        self.log.warning("no")
        self.assertEqual(len(self.records()), 7)

    def test_exception(self) -> None:
        try:
            raise ValueError("boom")
        except ValueError:
            self.log.bind(order=7).exception("failed")
        record = self.only()
        self.assertEqual((record.message, record.level, record.fields["order"],
                          record.fields["exception.type"], record.fields["exception.message"]),
                         ("failed", "ERROR", 7, "ValueError", "boom"))
        self.assertIn("test_adapters.py", str(record.fields["exception.stacktrace"]))

    def test_trouble_reaches_nobody(self) -> None:
        self.log.bind(**{"odd": object, "d": decimal.Decimal("1.5")}).info("x")
        self.assertEqual(self.only().fields, {"odd": str(object), "d": "1.5"})
        self.engine.close()
        with contextlib.redirect_stderr(io.StringIO()):
            self.log.info("closed")
            self.log.patch(lambda record: record.update(name="a name that is new")).info("closed")
        self.assertEqual(len(self.records()), 1)


class StructlogTest(StoreCase):
    """structlog with our processor at the end."""

    def setUp(self) -> None:
        super().setUp()
        self.structlog = package("structlog")
        self.engine = self.open(level="trace")
        self.addCleanup(self.structlog.reset_defaults)
        self.addCleanup(self.structlog.contextvars.clear_contextvars)

    def log(self, *before: Any, **options: Any) -> Any:
        """A logger with these processors before ours."""
        ours = cordwood.StructlogProcessor(self.engine, "app", **options)
        return self.structlog.wrap_logger(
            self.structlog.PrintLogger(io.StringIO()), [*before, ours],
            wrapper_class=self.structlog.make_filtering_bound_logger(0))

    def test_bound_values_are_fields(self) -> None:
        self.structlog.contextvars.bind_contextvars(user="anna")
        log = self.log(self.structlog.contextvars.merge_contextvars).bind(**BOUND)
        self.assertIsNone(log.info("paid", count=3))
        record = self.only()
        self.assertEqual((record.message, record.logger, record.level), ("paid", "app", "INFO"))
        self.assertEqual(record.fields, {**BOUND, "count": 3, "user": "anna"})
        self.assertEqual(self.only(query="parts.items.0.sku==x").message, "paid")

    def test_names_of_records_are_fields_too(self) -> None:
        names = {"name": "n", "message": "m", "level": 3, "time": 1, "args": [1], "module": "x",
                 "msg": "g", "lineno": 1}
        self.log().info("x", **names)
        record = self.only()
        self.assertEqual((record.fields, record.level), (names, "INFO"))

    def test_place(self) -> None:
        processors = self.structlog.processors
        which = [processors.CallsiteParameter(name)
                 for name in ("pathname", "func_name", "lineno")]
        log, told = self.log(), self.log(processors.CallsiteParameterAdder(which))
        line = sys._getframe().f_lineno
        log.info("x")
        told.info("x", lineno_of_mine=1)
        first, second = self.records()
        for record, number in ((first, line + 1), (second, line + 2)):
            self.assertEqual(Path(record.file or ""), Path(__file__))
            self.assertEqual(record.line, number)
            self.assertTrue(str(record.function).endswith("test_place"))
        self.assertEqual((first.fields, second.fields), ({}, {"lineno_of_mine": 1}))

    def test_levels_and_names(self) -> None:
        known = self.structlog.stdlib
        log = self.log(known.add_log_level)
        for name in ("debug", "info", "warning", "warn", "error", "critical", "fatal"):
            getattr(log, name)("x")
        log.info("x", logger="app.db")
        self.assertEqual([record.level for record in self.records()],
                         ["DEBUG", "INFO", "WARN", "WARN", "ERROR", "FATAL", "FATAL", "INFO"])
        self.assertEqual(self.records()[-1].logger, "app.db")
        self.assertEqual({name for record in self.records() for name in record.fields}, set())

    def test_exception(self) -> None:
        try:
            raise ValueError("boom")
        except ValueError as error:
            self.log().exception("failed", order=7)
            self.log().warning("failed", exc_info=error)
            self.log().info("not failed", exc_info=False)
        first, second, third = self.records()
        for record in (first, second):
            self.assertEqual((record.fields["exception.type"], record.fields["exception.message"]),
                             ("ValueError", "boom"))
            self.assertIn("test_adapters.py", str(record.fields["exception.stacktrace"]))
        self.assertEqual((first.level, first.fields["order"], second.level, third.fields),
                         ("ERROR", 7, "WARN", {}))

    def test_passes_on(self) -> None:
        seen: List[Any] = []

        def take(_logger: Any, _method: str, event: Dict[str, Any]) -> str:
            seen.append(dict(event))
            return "shown"
        ours = cordwood.StructlogProcessor(self.engine, passes=True)
        out = io.StringIO()
        self.structlog.wrap_logger(self.structlog.PrintLogger(out), [ours, take]).info("x", a=1)
        self.assertEqual((seen, out.getvalue()), ([{"event": "x", "a": 1}], "shown\n"))
        self.assertEqual((self.only().message, self.only().fields), ("x", {"a": 1}))

    def test_tasks(self) -> None:
        """A thread of structlog's runs it: no place is better than a wrong one."""
        asyncio.run(self.log().ainfo("x", a=1))
        record = self.only()
        self.assertEqual((record.message, record.fields), ("x", {"a": 1}))
        self.assertIn(record.file, ("", None))

    def test_trouble_reaches_nobody(self) -> None:
        log = self.log()
        log.info(7, odd=object)
        self.assertEqual((self.only().message, self.only().fields), ("7", {"odd": str(object)}))
        self.engine.close()
        with contextlib.redirect_stderr(io.StringIO()):
            log.info("closed")
            log.info("closed", logger="a name that is new")
        self.assertEqual(len(self.records()), 1)


if __name__ == "__main__":
    unittest.main()
