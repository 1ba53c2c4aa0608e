"""Rubbish, nesting, interruption: a log call does no harm, whatever its arguments and wherever it
is made."""
import copy
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from typing import Any, List, Optional, Tuple
from unittest import mock

from support import StoreCase, cordwood


class Loud:
    """Its str() logs."""

    def __init__(self, log: Any, depth: int = 3) -> None:
        self.log, self.depth = log, depth

    def __str__(self) -> str:
        if self.depth > 0:
            self.log.info("inner %s", Loud(self.log, self.depth - 1), depth=self.depth)
        return f"loud {self.depth}"


class RubbishTest(StoreCase):
    """Arguments that no host should pass."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = self.open(level="trace")
        self.log: Any = self.engine.logger("app")

    def test_messages_and_arguments(self) -> None:
        class Liar:
            """Claims to be a str."""

            __class__ = str  # type: ignore[assignment]

            def __mod__(self, other: Any) -> "Liar":
                return self

            def encode(self) -> int:
                """An address, for a caller that trusts it."""
                return 8

            def __len__(self) -> int:
                return 1 << 40

        messages: List[Any] = [mock.MagicMock(), Liar(), object, 1.5, [], {}, ..., NotImplemented]
        for message in messages:
            self.assertTrue(self.log.info(message))
            self.assertTrue(self.log.info(message, 7))
            self.assertTrue(self.log.info(message, a=message))
            self.assertTrue(self.log.info("%s", message))
        self.assertEqual(len(self.records()), 32)

    def test_calls_that_do_not_fit(self) -> None:
        for call in (self.log.info, self.log.log, self.log.write, self.log.enabled,
                     lambda: self.log.log(9), lambda: self.log.write("info"),
                     lambda: self.log.write("info", "text"), lambda: self.log.write("info", None)):
            with self.assertRaises(TypeError):
                call()
        self.assertEqual(self.records(), [])

    def test_levels_that_are_none(self) -> None:
        class Odd(str):
            """Its strip() raises."""

            def strip(self, chars: Optional[str] = None, /) -> str:
                raise RuntimeError("no")

        class Index:
            """A number like those of numpy."""

            def __index__(self) -> int:
                return 17

        levels: Tuple[Any, ...] = (None, 1.5, "loud", 0, 25, 1 << 70, -(1 << 70), 10 ** 5000,
                                   "x" * 100_000, [], "info+" + "9" * 5000)
        for level in levels:
            with self.assertRaises(ValueError):
                self.log.enabled(level)
        for level in (*levels, Odd("info")):
            self.assertTrue(self.log.log(level, "x"))
            self.assertTrue(self.log.write(level, b"x"))
        found = self.records()
        self.assertEqual(len(found), 2 * len(levels) + 2)
        for record in found:
            self.assertEqual(record.level, "WARN")
            self.assertLess(len(str(record.fields["cordwood.level_error"])), 250)
        self.assertTrue(self.log.log(Index(), "x"))
        self.assertEqual((self.records()[-1].level, self.records()[-1].fields), ("ERROR", {}))

    def test_numbers_that_are_none(self) -> None:
        class Odd(int):
            """Cannot be converted to a number."""

            def __int__(self) -> int:
                raise RuntimeError("no")

            def __index__(self) -> int:
                raise RuntimeError("no")

        self.assertTrue(self.log.info("odd", odd=Odd(3), liar=mock.MagicMock(spec=int)))
        self.assertEqual(len(self.only().fields), 2)

    def test_exc_info_and_stacklevel(self) -> None:
        class Undecided:
            """Neither true nor false."""

            def __bool__(self) -> bool:
                raise RuntimeError("no")

        for given in (Undecided(), 1, "x", (1, 2), (1, 2, 3), (None, 1, 2), ValueError, object()):
            self.assertTrue(self.log.info("x", exc_info=given))
        for given in (None, "1", 1.5, -5, 1 << 70, -(1 << 70), Undecided()):
            self.assertTrue(self.log.info("x", stacklevel=given))
        self.assertEqual(len(self.records()), 15)

    def test_many_fields(self) -> None:
        self.assertTrue(self.log.info("x", **{f"k{index}": index for index in range(4000)}))
        self.assertEqual(self.only().fields, {f"k{index}": index for index in range(4000)})

    def test_what_is_no_exception_goes_through(self) -> None:
        class Exit:
            """Its str() ends the host."""

            def __str__(self) -> str:
                raise SystemExit(3)

        for args, fields in ((("%s", Exit()), {}), ((Exit(),), {}), (("x",), {"field": Exit()})):
            with self.assertRaises(SystemExit):
                self.log.info(*args, **fields)
        self.assertTrue(self.log.info("after", a=1))
        self.assertEqual(self.only().fields, {"a": 1})

    def test_copies_are_the_same_logger(self) -> None:
        self.assertIs(copy.copy(self.log), self.log)
        self.assertIs(copy.deepcopy([self.log])[0], self.log)


class NestingTest(StoreCase):
    """Calls inside calls."""

    def setUp(self) -> None:
        super().setUp()
        self.log: Any = self.open().logger("app")

    def test_a_str_that_logs(self) -> None:
        self.assertTrue(self.log.info("outer %s", Loud(self.log), field=Loud(self.log)))
        found = self.records()
        self.assertEqual(found[-1].message, "outer loud 3")
        self.assertEqual(found[-1].fields, {"field": "loud 3"})
        self.assertEqual([record.message for record in found[:3]],
                         ["inner loud 0", "inner loud 1", "inner loud 2"])
        self.assertEqual([record.fields for record in found[:3]],
                         [{"depth": 1}, {"depth": 2}, {"depth": 3}])
        self.assertEqual(len(found), 7)

    def test_recursion_without_end(self) -> None:
        class Endless:
            """Logs itself."""

            def __str__(_) -> str:
                self.log.info("%s", _)
                return "endless"

        self.log.info("%s", Endless())
        self.assertTrue(self.log.info("after"))
        self.assertEqual(self.records()[-1].message, "after")

    def test_signal_handlers_log(self) -> None:
        seen: List[int] = []
        numbers = itertools.count()  # atomic: the next signal may come between any two steps

        def handler(number: int, frame: Any) -> None:
            index = next(numbers)
            seen.append(index)
            self.log.info("signal %d", index, count=index)  # perhaps interrupted by the next one

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        count = 0
        while len(seen) < 200:
            self.log.info("%d", count)
            self.log.info("field %d", count, count=count)
            count += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        found = self.records()
        self.assertEqual([record.message for record in found if record.message.isdigit()],
                         [str(index) for index in range(count)])
        for start, total in (("field", count), ("signal", len(seen))):
            mine = [(record.message, record.fields) for record in found
                    if record.message.startswith(start)]
            self.assertEqual(sorted(mine, key=lambda pair: int(str(pair[1]["count"]))),
                             [(f"{start} {index}", {"count": index}) for index in range(total)])

    def test_threads_at_one_place(self) -> None:
        before = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, before)
        sys.setswitchinterval(1e-6)

        def work(thread: int) -> None:
            for index in range(2000):
                text = f"{thread} {index}"
                self.log.info(text, text=text, index=index, share=index / 2)
                self.log.info("plain %s", text)

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = self.records()
        self.assertEqual(len(found), 16_000)
        for record in found:
            if not record.message.startswith("plain"):
                index = int(record.message.split()[1])
                self.assertEqual(record.fields,
                                 {"text": record.message, "index": index, "share": index / 2})
        self.assertEqual(len({record.message for record in found}), 16_000)


class WaitingTest(StoreCase):
    """overflow="block": a call that waits lets other Python threads run."""

    PROGRAM = """
import resource, signal, sys, threading, cordwood
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
engine = cordwood.open(sys.argv[1], overflow="block", segment_bytes=65536)
log = engine.logger("a")
count, answers = 0, []
def work():
    global count
    for index in range(400):
        answers.append(log.info("%d " + "x" * 2000, index, **({"n": index} if index % 2 else {})))
        count = index + 1
thread = threading.Thread(target=work)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))   # no file can grow: the disk is full
thread.start()
still, last = 0, -1
while still < 20:                                      # the writer waits, and this thread runs
    thread.join(0.05)
    still, last = (still + 1 if count == last else 0), count
waited = count < 400
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
thread.join(60)
print(waited, thread.is_alive(), all(answers), len(answers))
"""

    def test_the_interpreter_goes_on(self) -> None:
        package = str(Path(cordwood.__file__).resolve().parents[1])
        ended = subprocess.run(
            [sys.executable, "-c", self.PROGRAM, self.store], capture_output=True, text=True,
            timeout=100, check=False, env={**os.environ, "PYTHONPATH": package})
        self.assertEqual((ended.stdout, ended.stderr), ("True False True 400\n", ""))
        self.assertEqual([record.message.split()[0] for record in self.records()],
                         [str(index) for index in range(400)])


class OtherProcessTest(StoreCase):
    """A process pool sends what a worker raises to the process that waits for it."""

    def test_errors_are_made_again(self) -> None:
        engine = self.open()
        raised: List[cordwood.CordwoodError] = []
        for call in (lambda: engine.upload(timeout=1), lambda: engine.add_target("x://"),
                     lambda: cordwood.open("/proc/none")):
            with self.assertRaises(cordwood.CordwoodError) as caught:
                call()
            raised.append(caught.exception)
        kinds = [cordwood.CordwoodError]
        for kind in kinds:
            kinds += kind.__subclasses__()
            error = kind.__new__(kind, "words")
            error.status, error.status_name, error.__dict__["more"] = -1, "CW_E_X", ("a", 1)
            raised.append(error)
        self.assertGreater(len(kinds), 12)
        for error in raised:
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                again = pickle.loads(pickle.dumps(error, protocol))
                self.assertEqual((type(again), again.args, vars(again), str(again)),
                                 (type(error), error.args, vars(error), str(error)))


if __name__ == "__main__":
    unittest.main()
