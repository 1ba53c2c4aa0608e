"""Transactions: handles and scopes, contextvars and asyncio, enums, threads, invalid input."""

import asyncio
import enum
import gc
import logging
import os
import threading
import unittest
from typing import Any, AsyncIterator, Callable, Dict, List, Tuple

import cordwood
from cordwood import _context
from support import StoreCase


class Usecase(enum.IntEnum):
    CHECKOUT = 17


class Event(enum.IntEnum):
    PAID = 1


class TransactionTest(StoreCase):
    def setUp(self) -> None:
        super().setUp()
        self.engine = self.open()
        self.log = self.engine.logger("app")

    def logged(self) -> Dict[str, cordwood.Record]:
        return {record.message: record for record in cordwood.read(self.store)}

    def written(self) -> List[cordwood.Record]:
        return list(cordwood.read(self.store, kinds="transaction"))

    def test_with(self) -> None:
        with cordwood.context(user="anna"), cordwood.trace("ab" * 16, "cd" * 8):
            with self.engine.transaction(17) as one:
                self.log.info("inside", own=1)
                with self.engine.join_transaction(one.id) as two:
                    self.log.info("deeper")
                self.log.info("inside again")
            self.log.info("behind")
        found = self.logged()
        self.assertEqual(found["inside"].fields, {"own": 1, "user": "anna", "txn.id": one.id})
        for message, span in (("inside", one), ("deeper", two), ("inside again", one)):
            self.assertEqual((found[message].trace_id, found[message].span_id),
                             (one.traceparent[3:35], span.traceparent[36:52]))
        self.assertEqual((found["behind"].fields, found["behind"].trace_id),
                         ({"user": "anna"}, "ab" * 16))
        self.assertTrue(self.engine.transactions()[0].ended)

    def test_tasks_keep_their_own(self) -> None:
        async def one(number: int) -> str:
            with self.engine.transaction(number) as transaction:
                for turn in range(3):
                    await asyncio.sleep(0)
                    self.log.info("%d %d", number, turn)

                async def child() -> None:
                    self.log.info("child of %d", number)
                await asyncio.gather(child(), asyncio.to_thread(
                    self.log.info, "thread of %d", number))
                return transaction.id

        async def all_of_them() -> List[str]:
            return await asyncio.gather(*(one(number) for number in range(20)))
        ids = asyncio.run(all_of_them())
        found = self.logged()
        for number, identity in enumerate(ids):
            for message in [f"{number} {turn}" for turn in range(3)] + [
                    f"child of {number}", f"thread of {number}"]:
                self.assertEqual(found[message].fields["txn.id"], identity)

    def test_left_by_an_exception(self) -> None:
        with self.assertRaises(KeyError):
            with self.engine.transaction(17) as one:
                raise KeyError("x")
        self.assertTrue(self.engine.transactions()[0].ended)
        with self.assertRaises(cordwood.ClosedError):
            one.event(1)
        self.log.info("behind")
        self.assertEqual(self.logged()["behind"].fields, {})

    def ids(self) -> Dict[str, Tuple[Any, bool]]:
        """txn.id and whether there is a trace id, by message."""
        return {message: (record.fields.get("txn.id"), bool(record.trace_id))
                for message, record in self.logged().items()}

    def logs(self, message: str) -> None:
        """Logs the message in each way that there is."""
        self.log.info(message)
        self.log.write("info", (message + ", bytes").encode())
        logger = logging.Logger("std")
        logger.addHandler(cordwood.Handler(self.engine))
        logger.info(message + ", std")

    def each(self, message: str, wanted: Tuple[Any, bool]) -> None:
        found = self.ids()
        for way in ("", ", bytes", ", std"):
            self.assertEqual(found[message + way], wanted, message + way)

    def test_a_generator_that_is_not_read_to_its_end(self) -> None:
        async def stream() -> AsyncIterator[int]:
            with self.engine.transaction(17) as one:
                made.append(one.id)
                with cordwood.context(step=1):
                    yield 1
                    yield 2

        async def main() -> None:
            async for _ in stream():
                self.logs("reading")
                break
            gc.collect()
            for _ in range(3_000):  # asyncio closes the generator in a separate task
                if self.engine.transactions()[0].ended:
                    break
                await asyncio.sleep(0.01)
            self.logs("behind")
            with cordwood.context(user="anna"):
                self.logs("later")
        made: List[str] = []
        asyncio.run(main())
        self.assertTrue(self.engine.transactions()[0].ended)
        self.each("reading", (made[0], True))
        self.each("behind", (None, False))
        self.each("later", (None, False))

    def test_generators_leave_no_more_and_more(self) -> None:
        async def stream() -> AsyncIterator[int]:
            with cordwood.context(step=1), self.engine.transaction(17):
                yield 1

        async def main() -> int:
            for _ in range(50):
                async for _ in stream():
                    break
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            with cordwood.context(user="anna"):
                state = _context.STATE.get()
                assert state is not None
                return len(state.layers)
        self.assertLess(asyncio.run(main()), 12)

    def test_entered_by_two_tasks(self) -> None:
        async def main() -> str:
            one = self.engine.transaction(17)
            first, second = asyncio.Event(), asyncio.Event()

            async def early() -> None:
                with cordwood.context(task="early"), one:
                    first.set()
                    await second.wait()
                self.logs("early is out")

            async def late() -> None:
                with cordwood.context(task="late"):
                    await first.wait()
                    with one:
                        second.set()
                        await tasks[0]
                        self.logs("late is inside")
                        one.event(1)
                    self.logs("late is out")
            tasks = [asyncio.ensure_future(early()), asyncio.ensure_future(late())]
            await asyncio.gather(*tasks)
            return one.id
        identity = asyncio.run(main())
        self.each("early is out", (None, False))
        self.each("late is inside", (identity, True))
        self.each("late is out", (None, False))
        found = self.logged()
        self.assertEqual([found[message].fields["task"] for message in
                          ("late is inside", "late is out")], ["late", "late"])
        self.assertTrue(self.engine.transactions()[0].ended)

    def test_left_in_another_order(self) -> None:
        one, two = self.engine.transaction(1), self.engine.transaction(2)
        fields, ids = cordwood.context(user="anna"), cordwood.trace("ab" * 16)
        for entered in (one, fields, two, ids):
            entered.__enter__()
        one.__exit__(None, None, None)
        self.logs("two")
        two.__exit__(None, None, None)
        self.logs("neither")
        ids.__exit__(None, None, None)
        self.logs("fields")
        fields.__exit__(None, None, None)
        self.logs("nothing")
        self.each("two", (two.id, True))
        self.each("neither", (None, True))
        self.each("fields", (None, False))
        self.assertEqual(self.logged()["fields"].fields, {"user": "anna"})
        self.each("nothing", (None, False))
        self.assertEqual(self.logged()["nothing"].fields, {})

    def test_ended_where_others_are_inside(self) -> None:
        async def main() -> Tuple[str, str]:
            with self.engine.transaction(1) as outer:
                with self.engine.transaction(2) as one:
                    async def task() -> None:
                        await asyncio.sleep(0)
                        self.logs("task inside")
                        await behind.wait()
                        self.logs("task behind")
                    behind = asyncio.Event()
                    running = asyncio.ensure_future(task())
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                behind.set()
                await running
                return outer.id, one.id
        outer, one = asyncio.run(main())
        self.each("task inside", (one, True))
        self.each("task behind", (outer, True))

    def test_enums_give_names(self) -> None:
        with self.engine.transaction(Usecase.CHECKOUT) as one:
            one.event(Event.PAID)
            one.event(2)
        names = [(record.fields["txn.usecase.name"], record.fields.get("txn.event.name"))
                 for record in self.written()]
        self.assertEqual(names, [("CHECKOUT", None), ("CHECKOUT", "PAID"), ("CHECKOUT", None),
                                 ("CHECKOUT", None)])
        self.engine.name_transaction(17, None)
        self.engine.name_transaction(17, "done", event=2)
        with self.engine.transaction(17) as one:
            one.event(2)
        self.assertEqual([record.message.split(" ", 1)[1] for record in self.written()[-3:]],
                         ["begin", "done", "end"])
        self.assertNotIn("txn.usecase.name", self.written()[-1].fields)

    def test_ended_by_another_thread(self) -> None:
        """Threads that use a handle while it ends get an error, never a crash."""
        for _ in range(30):
            one = self.engine.transaction(1)
            begin = threading.Barrier(4)

            def use(one: cordwood.Transaction = one,
                    begin: threading.Barrier = begin) -> None:
                begin.wait()
                try:
                    for number in range(2000):
                        one.event(number)
                except cordwood.ClosedError:
                    pass
            threads = [threading.Thread(target=use) for _ in range(3)]
            for thread in threads:
                thread.start()
            begin.wait()
            one.end()
            for thread in threads:
                thread.join()
        self.assertEqual(len(self.engine.transactions()), 30)

    def test_collected(self) -> None:
        self.engine.transaction(1)
        gc.collect()
        self.assertEqual([info.ended for info in self.engine.transactions()], [True])

    def test_names_that_do_not_fit_keep_nothing_back(self) -> None:
        long: Any = enum.IntEnum("long", [("n" * 256, 5)])  # type: ignore[misc]
        with self.engine.transaction(long(5)) as one:
            one.event(long(5))
        for number in range(4096):
            try:
                self.engine.name_transaction(18, "x", event=number)
            except cordwood.ArgumentError:
                break
        with self.assertRaises(cordwood.ArgumentError):  # the table is full
            self.engine.name_transaction(19, "x")
        with self.engine.transaction(Usecase.CHECKOUT) as two:
            two.event(Event.PAID)
        self.assertEqual([info.events for info in self.engine.transactions()], [1, 1])

    def test_lone_surrogates(self) -> None:
        with self.engine.transaction(1) as one:
            for text in ("bad \ud83d", "bad \udcff", "bad \ud83d\udcff"):
                one.event(1, "X", text)
                self.log.info(text)
        logged = [record.message for record in cordwood.read(self.store, logger="app")]
        told = [record.fields.get("txn.error.description") for record in self.written()[1:-1]]
        self.assertEqual(told, logged)
        with self.assertRaises(cordwood.ArgumentError):
            self.engine.join_transaction("bad \ud83d")

    def in_child(self, work: Callable[[], object]) -> None:
        """Runs it in a forked child, which must succeed."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_forked_child_does_not_end_it(self) -> None:
        held = [self.engine.transaction(1)]

        def collect() -> None:
            held.clear()
            gc.collect()

        self.in_child(collect)
        self.in_child(held[0].end)
        with self.engine.transaction(2) as one:
            self.in_child(lambda: one.__exit__(None, None, None))
            one.event(1)
        self.assertEqual([info.ended for info in self.engine.transactions()], [False, True])
        self.assertEqual(sum(record.message.endswith(" end") for record in self.written()), 1)

    def test_bad_input(self) -> None:
        for usecase in (1 << 31, -(1 << 31) - 1):
            with self.assertRaises(cordwood.ArgumentError):
                self.engine.transaction(usecase)

        class Words(enum.Enum):
            CHECKOUT = "checkout"
        wrong: List[Any] = ["checkout", "17", 1.5, None, Words.CHECKOUT]
        for bad in wrong:
            with self.assertRaises(cordwood.ArgumentError) as caught:
                self.engine.transaction(bad)
            self.assertIn(f"transaction: usecase takes a whole number or a member of an IntEnum, "
                          f"not {bad!r}", str(caught.exception))
        word: Any = "paid"
        with self.engine.transaction(17) as one:
            with self.assertRaises(cordwood.ArgumentError) as caught:
                one.event(word)
            self.assertIn("Transaction.event: event takes a whole number", str(caught.exception))
            with self.assertRaises(cordwood.ArgumentError):
                self.engine.name_transaction(17, "pay", event=word)
        with self.assertRaises(cordwood.ArgumentError):
            self.engine.name_transaction(1, "n" * 256)
        with self.assertRaises(cordwood.ArgumentError):
            self.engine.name_transaction(1, "a\0b")
        with self.assertRaises(cordwood.ArgumentError):
            self.engine.delete_transactions("")
        self.assertEqual(cordwood.parse_challenge(None), ("", ""))
        self.assertEqual(cordwood.parse_challenge("B\0earer \udcff, realm=\"\udcff\"").scheme,
                         "Bearer")


if __name__ == "__main__":
    unittest.main()
