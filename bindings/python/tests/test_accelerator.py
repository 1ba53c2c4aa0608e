"""Which Logger is in use, that both write the same, and that the C one leaks nothing and holds up
no other thread. CORDWOOD_TEST_ACCELERATED says which one this run of the tests is for."""
import gc
import inspect
import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple
from unittest import mock

from support import StoreCase, cordwood, full

from cordwood import _abi, _accelerator, _logger, _place

# Logs records of every kind, one after the other; the same program for both Loggers.
PROGRAM = r'''
import collections, decimal, enum, fractions, json, logging, os, sys
import cordwood
assert cordwood.accelerated is (sys.argv[2] == "1"), cordwood.accelerated
class Shown:
    def __str__(self): return "shown"
class Silent:
    def __str__(self): raise RuntimeError("silent")
    def __repr__(self): return "Silent()"
class Word(str):
    def __mod__(self, other): return "mine"
class Number(int):
    pass
class Color(enum.IntEnum):
    RED = 3
TRACE = "0af7651916cd43dd8448eb211c80319c"
with cordwood.open(sys.argv[1], level="trace") as engine:
    log = engine.logger("app.db")
    for message in ("plain", "", "grün", "caf\udce9", "\ud800", "nul\0inside", b"bytes\xff",
                    Word("w"), bytearray(b"array"), 7, None, Silent(), "x" * 70_000,
                    "x" * 1_100_000, "ü" * 5000, "100%"):
        log.info(message)
        log.info(message, user="anna")
        log.info(message, 1)
    log.info(memoryview(b"view"))
    for args in ((7,), ("a", 2.5), ({"a": 1},), ({},), (Silent(),), (None,), ((1, 2),), ([1],),
                 ("\udce9",), (collections.UserDict(a=1),)):
        for message in ("%s", "%s and %s", "%(a)s", "%d", "no place"):
            log.warning(message, *args)
    for message in ("%d", "%s", "%s%d", "%d-%s|%%", "%", "100%", "%%", "%5d", "%-3s|", "%x", "%r",
                    "%i", "%c", "%.3s", "%(a)s", "%s grün", "a" * 511 + "%s", "a" * 512 + "%d",
                    "%s" * 30):
        for args in ((), (7,), (-7, 8), (0, "x"), ("x" * 500, 12), ("x" * 510, 123), ("x" * 512,),
                     ((1 << 63) - 1, -(1 << 63)), (1 << 63, 1), (True, False), (1.5, 2), ("ü", 1),
                     ("nul\0", 1), tuple(range(30)), (Word("w"), Number(1))):
            log.debug(message, *args)
    values = [0, -1, 1 << 62, -(1 << 63), 1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63) - 1, True,
              1.5, float("nan"), float("-inf"), "", "ü", "\udce9", b"", b"\0\xff", bytearray(b"x"),
              None, [], {}, (1, [None, {"a": 1.5}]), {"ü": "\udce9", 1: float("nan")}, [[]] * 3,
              Shown(), Silent(), Number(5), Color.RED, decimal.Decimal("1.5"),
              fractions.Fraction(1, 3), 10 ** 5000, "y" * 70_000]
    for round in range(2):
        for value in values:
            log.error("value", value=value)
            log.error("two", one=value, two=values[round])
        log.notice("many", **{f"k{i}": value for i, value in enumerate(values)})
        log.notice("keys", **{"": 1, "ü": 2, "\udce9": 3, "http.status": 200})
    for _ in range(3):
        with cordwood.context(user="anna", order=7):
            log.trace("inside")
            log.trace("own", user="own", more=1)
            log.trace("%d", "wrong", **{"cordwood.format_error": "mine"})
            log.write("info", b"raw")
            with cordwood.trace(TRACE, "b7ad6b7169203331", 1):
                log.debug("both")
            with cordwood.trace(TRACE):
                log.debug("field", a=1)
        with cordwood.trace(TRACE):
            log.debug("ids alone")
    log.write("warn", b"")
    log.write(11, bytearray(b"\0"))
    error = ValueError("boom")
    for given in (None, False, True, error, (ValueError, error, None), (None, None, None), 7, "",
                  (1, 2, 3)):
        log.info("given", exc_info=given)
        try:
            {}["missing"]
        except KeyError:
            log.info("handled", exc_info=given, key=1)
            log.exception("exception")
    try:
        raise Silent() if False else type("Odd", (Exception,), {"__str__": Silent.__str__})()
    except Exception:
        log.exception("odd")
    def helper(**more):
        return log.info("from a helper", **more)
    for level in (1, 2, 0, -1, 10_000, True, None, "2", 1 << 80):
        helper(stacklevel=level)
    for level in (0, 25, -1, 255, "loud", None, 1.5, 1 << 70, []):
        log.log(level, "level"); log.log(level, "%d", "wrong", a=1); log.write(level, b"raw")
        with cordwood.context(user="anna"):
            log.log(level, "level", **{"cordwood.level_error": "mine"}); log.write(level, b"raw")
    many = {f"k{i}": i for i in range(5000)}
    for key in ("k" * 70_000, "ü" * 40_000, "\udce9" * 70_000):
        log.info("key", **{key: 1})
    for keys in (many, dict(list(many.items())[:4096]), dict(list(many.items())[:4095])):
        with cordwood.context(user="anna"):
            log.info("many", **keys); log.log("loud", "%d", "wrong", **keys)
        log.info("many", **keys)
    log.log("INFO+2", "%s", "between"); log.log(24, "last", a=1); log.log(9, "here")
    list(map(log.info, ["mapped"]))
    (lambda: log.info("lambda"))()
    eval(compile("log.info('compiled')", "a file", "eval"))
    std = logging.getLogger("std"); std.setLevel(1); std.propagate = False
    std.addHandler(cordwood.Handler(engine))
    std.info("order %d", 7)
    std.warning("grün %s", "\udce9", extra={"price": 1.5, "ids": [1], "big": 1 << 63})
    with cordwood.context(user="anna"), cordwood.trace(TRACE):
        std.error("with context", extra={"user": "own"})
        std.error("with context")
        std.error("many", extra=many)
    logging.raiseExceptions = False
    std.error("%d", "wrong", extra={"cordwood.format_error": "mine"})
    std.handle(logging.makeLogRecord({"msg": "odd", "levelno": 30, "created": 1.0, "lineno": -5}))
    try:
        {}["missing"]
    except KeyError:
        std.exception("failed", stack_info=True)
out = []
for record in cordwood.read(sys.argv[1]):
    if record.logger.startswith("Cordwood"):
        continue
    fields = {key: repr(value) for key, value in record.fields.items()}
    out.append([record.logger, record.level_number, record.message_bytes.hex(), record.file,
                record.line, record.function, record.trace_id, record.span_id, record.trace_flags,
                list(fields.items())])
json.dump(out, sys.stdout)
'''

# Every record of a store, with everything that can be asked of it.
SHOW = r'''
import json, sys
import cordwood
assert cordwood.accelerated is (sys.argv[2] == "1"), cordwood.accelerated
out = []
for record in cordwood.read(sys.argv[1], kinds="all"):
    out.append([repr(value) for value in (
        record.level, record.time, record.message, record.fields, record.host, record.service,
        record.process, record.truncated, record.unverified, record.late, record, record[:],
        list(record.fields), record.resource)])
json.dump(out, sys.stdout)
'''

# A cursor over a library of sem_wait alone: its reader is a semaphore. Of two threads, one waits in
# it and the other is refused; meanwhile the main thread runs and closes it.
WAIT = r'''
import ctypes, threading, time
from cordwood import _accelerator
libc = ctypes.CDLL(None)
_accelerator._abi.reader_calls = libc.sem_wait, libc.getpid, libc.getpid
_accelerator._load()
semaphore = ctypes.create_string_buffer(64)
cursor, told = _accelerator.module.Cursor(), []
cursor._begin(ctypes.addressof(semaphore))
libc.sem_post(semaphore)
record = next(cursor)
told.append((record.message, record.time_ns, record.resource, record.file, record.fields))
def take():
    try:
        told.append(next(cursor, "closed"))
    except ValueError as error:
        told.append(str(error))
threads = [threading.Thread(target=take) for _ in range(2)]
for thread in threads:
    thread.start()
while len(told) < 2:
    time.sleep(0.001)
cursor.close()
for _ in range(2):
    libc.sem_post(semaphore)
for thread in threads:
    thread.join()
print(told)
'''


class WhichTest(StoreCase):
    """Which Logger is chosen, and what does not depend on it."""

    def python(self, program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Runs a program that imports this package."""
        package = str(Path(cordwood.__file__).resolve().parents[1])
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
            check=False, env={**os.environ, "PYTHONPATH": package, **environment})

    def test_this_run_is_for(self) -> None:
        wanted = os.environ.get("CORDWOOD_TEST_ACCELERATED")
        if wanted is not None:
            self.assertIs(cordwood.accelerated, wanted == "1")
        log = self.open().logger("a")
        self.assertIsInstance(log, cordwood.Logger)
        self.assertIs(isinstance(log, _logger.Logger), not cordwood.accelerated)

    def test_environment_turns_it_off(self) -> None:
        ended = self.python("import cordwood; print(cordwood.accelerated)",
                            CORDWOOD_PYTHON_ACCELERATOR="0")
        self.assertEqual((ended.stdout, ended.stderr), ("False\n", ""))

    def test_a_module_that_cannot_be_loaded_is_passed_over(self) -> None:
        ended = self.python("import sys; sys.modules['cordwood._speed'] = None\n"
                            "import cordwood; print(cordwood.accelerated)\n"
                            f"print(cordwood.open({self.store!r}).logger('a').info('x'))")
        self.assertEqual((ended.stdout, ended.stderr), ("False\nTrue\n", ""))

    def test_signature_and_names(self) -> None:
        shown = str(inspect.signature(cordwood.Logger.info))
        for part in ("message", "*args", "exc_info", "stacklevel", "**fields"):
            self.assertIn(part, shown)
        log = self.open().logger("a.b")
        self.assertEqual((log.name, repr(log)), ("a.b", "<cordwood.Logger 'a.b'>"))
        self.assertEqual(cordwood.Logger.info.__doc__, "A record of level INFO.")

    @unittest.skipUnless(cordwood.accelerated, "the accelerator is not built")
    def test_both_write_the_same(self) -> None:
        told: List[List[Any]] = []
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "program.py"
            program.write_text(PROGRAM, encoding="utf-8")
            package = str(Path(cordwood.__file__).resolve().parents[1])
            for way in ("0", "1"):
                environment: Dict[str, str] = {**os.environ, "PYTHONPATH": package,
                                               "CORDWOOD_PYTHON_ACCELERATOR": way}
                ended = subprocess.run(
                    [sys.executable, str(program), f"{directory}/{way}", way], timeout=120,
                    capture_output=True, text=True, env=environment, check=False)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                told.append(json.loads(ended.stdout))
        self.assertGreater(len(told[0]), 250)
        for first, second in zip(*told):
            self.assertEqual(first, second)
        self.assertEqual(len(told[0]), len(told[1]))

    @unittest.skipUnless(cordwood.accelerated, "the accelerator is not built")
    def test_both_read_the_same(self) -> None:
        package = str(Path(cordwood.__file__).resolve().parents[1])
        with self.open(process_name="other") as engine:
            engine.set_resource("service.name", "gr\u00fc\u00dfe")
            engine.logger("a").info("before")
        told = []
        for program, way in ((PROGRAM, "1"), (SHOW, "0"), (SHOW, "1")):
            ended = subprocess.run(
                [sys.executable, "-c", program, self.store, way], timeout=120, check=False,
                capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": package, "CORDWOOD_PYTHON_ACCELERATOR": way})
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            told.append(json.loads(ended.stdout))
        self.assertGreater(len(told[1]), 250)
        for first, second in zip(told[1], told[2]):
            self.assertEqual(first, second)
        self.assertEqual(len(told[1]), len(told[2]))

    @unittest.skipUnless(cordwood.accelerated, "the accelerator is not built")
    def test_a_reader_lets_others_run_and_is_one_threads(self) -> None:
        ended = self.python(WAIT)
        self.assertEqual(ended.stderr, "")
        self.assertEqual(ended.stdout, "[('', 0, {}, None, {}), "
                         "'another thread is in this reader', 'closed']\n")

    @unittest.skipUnless(cordwood.accelerated, "the accelerator is not built")
    def test_another_version_is_not_taken(self) -> None:
        import cordwood._speed as speed
        with mock.patch.object(_abi, "library") as library:
            library.cw_version.return_value = 0x7F0000
            self.assertIsNone(_accelerator._load())
        with self.assertRaises(TypeError):
            speed.bind(1, 2)  # type: ignore[call-arg, arg-type]
        with self.assertRaises(TypeError):
            speed.Logger("a", 1, False)
        with self.assertRaises(TypeError):
            object.__new__(speed.Logger)
        self.assertIs(_accelerator._load(), speed)


class LeakTest(StoreCase):
    """Calls leave nothing behind except their records."""

    @full
    def test_nothing_is_left_behind(self) -> None:
        log = self.open(segment_bytes=65536).logger("a")

        class Silent:
            """Its str() raises."""

            def __str__(self) -> str:
                raise RuntimeError("silent")

        too_many: Dict[str, Any] = dict.fromkeys(map(str, range(5000)))

        def work() -> None:
            with cordwood.context(user="ü" * 10, number=1 << 70), cordwood.trace("ab" * 16):
                log.info("order %d %s", 7, "ü" * 100)
            log.info("order %d", 7, price=1.5, name="ü" * 3, other=[1], huge=1 << 80)
            many: Dict[str, Any] = {f"k{index}": object() for index in range(40)}
            log.info("%s", Silent(), **many)
            log.info("%d", "seven")
            log.info("\udce9", key="\udce9")
            log.debug("off %s", [1])
            log.write("info", bytearray(b"x"))
            log.log("loud", "x")
            log.write("loud", b"x")
            log.info("x", **{"k" * 70_000: 1}, **(too_many if cordwood.accelerated else {}))
            try:
                log.enabled("loud")
            except ValueError:
                log.exception("failed %s", {"a": 1})

        for _ in range(50):
            work()
        # A leak grows in every round; a table grows only once.
        grown: List[Tuple[int, int]] = []
        tracemalloc.start()
        try:
            work()
            for _ in range(3):
                gc.collect()
                before = sys.getallocatedblocks()
                size = tracemalloc.get_traced_memory()[0]
                for _ in range(200):
                    work()
                gc.collect()
                grown.append((sys.getallocatedblocks() - before,
                              tracemalloc.get_traced_memory()[0] - size))
        finally:
            tracemalloc.stop()
        self.assertLess(min(blocks for blocks, _ in grown), 100, f"in 200 rounds each: {grown}")
        self.assertLess(min(size for _, size in grown), 24_000, f"{grown}")

    def test_reading_leaves_nothing_behind(self) -> None:
        with self.open() as engine:
            for number in range(200):
                engine.logger(f"a{number % 7}").info("gr\u00fc %d", number, key="x" * number)

        def work() -> None:
            for record in cordwood.read(self.store, kinds="all"):
                fields: Any = record.fields
                fields["record"] = record.resource
                repr(record)
                record == record._replace(pid=7)
                record.time, record.level, record.host
            with cordwood.read(self.store) as reader:
                next(reader)

        for _ in range(3):
            work()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(20):
            work()
        gc.collect()
        self.assertLess(sys.getallocatedblocks() - before, 60)

    def test_code_that_is_compiled_for_ever(self) -> None:
        log = self.open().logger("a")
        wanted = []
        for index in range(10_000):
            line = index % 7 + 1
            code = compile("\n" * (line - 1) + "log.info('x')", f"file {index % 5}", "exec")
            exec(code, {"log": log})
            wanted.append((f"file {index % 5}", line))
        self.assertEqual([(record.file, record.line) for record in self.records()], wanted)
        self.assertLessEqual(len(_place.codes), 4096)

    def test_more_places_than_the_library_is_given(self) -> None:
        log = self.open().logger("a")
        self.addCleanup(_accelerator._load)
        with mock.patch.object(_place, "SITES_MAX", 3):
            _accelerator._load()
            for index in range(100):
                for _ in range(2):
                    exec(compile("log.info('%d', 7)", f"place {index}", "exec"), {"log": log})
                    exec(compile("log.info('x', a=1)", f"field {index}", "exec"), {"log": log})
        found = self.records()
        self.assertEqual(len(found), 400)
        self.assertEqual({record.file for record in found},
                         {f"{kind} {index}" for kind in ("place", "field") for index in range(100)})
        self.assertEqual({(record.line, record.function) for record in found}, {(1, "<module>")})


if __name__ == "__main__":
    unittest.main()
