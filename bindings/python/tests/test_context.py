"""Context and trace ids: contextvars, so that threads and asyncio tasks keep their own."""
import asyncio
import threading
import unittest
from typing import List

from support import StoreCase, cordwood

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


class ContextTest(StoreCase):
    """cordwood.context and cordwood.trace."""

    def setUp(self) -> None:
        super().setUp()
        self.log = self.open().logger("app")

    def test_nested_and_typed(self) -> None:
        with cordwood.context(user="anna", order=7):
            with cordwood.context(order=8, fast=True):
                self.log.info("inner", user="own")
            self.log.info("outer")
        self.log.info("none")
        self.assertEqual([record.fields for record in self.records()],
                         [{"user": "own", "order": 8, "fast": True},
                          {"user": "anna", "order": 7}, {}])

    def test_plain_bytes_carry_it_too(self) -> None:
        with cordwood.context(user="anna"), cordwood.trace(TRACE):
            self.log.write("info", b"raw")
        record = self.only()
        self.assertEqual((record.message_bytes, record.fields, record.trace_id),
                         (b"raw", {"user": "anna"}, TRACE))

    def test_trace_ids(self) -> None:
        with cordwood.trace(TRACE, SPAN, flags=1):
            self.log.info("hex")
        with cordwood.trace(bytes.fromhex(TRACE)):
            self.log.info("bytes, no span")
        self.log.info("none")
        self.assertEqual(
            [(record.trace_id, record.span_id, record.trace_flags) for record in self.records()],
            [(TRACE, SPAN, 1), (TRACE, None, 0), (None, None, 0)])

    def test_wrong_ids_are_refused(self) -> None:
        for trace_id, span_id in (("00", None), (TRACE, "00"), ("x" * 32, None), (b"", None)):
            with self.assertRaises(ValueError):
                with cordwood.trace(trace_id, span_id):
                    pass

    def test_tasks_keep_their_own(self) -> None:
        async def task(name: str, turn: asyncio.Event, other: asyncio.Event) -> None:
            with cordwood.context(task=name), cordwood.trace(name * 16):
                other.set()
                await turn.wait()  # the other task has set its own by now
                self.log.info(name)

        async def main() -> None:
            first, second = asyncio.Event(), asyncio.Event()
            with cordwood.context(outer=1):
                await asyncio.gather(task("aa", first, second), task("bb", second, first))
        asyncio.run(main())
        for record in self.records():
            self.assertEqual(record.fields, {"task": record.message, "outer": 1})
            self.assertEqual(record.trace_id, record.message * 16)
        self.assertEqual(len(self.records()), 2)

    def test_ten_thousand_tasks_keep_their_own(self) -> None:
        tasks, inside = 10_000, []  # type: int, List[int]

        async def task(number: int, all_are_in: asyncio.Event) -> None:
            with cordwood.context(task=number), cordwood.trace(f"{number + 1:032x}"):
                inside.append(number)
                if len(inside) == tasks:
                    all_are_in.set()
                await all_are_in.wait()  # every task has set its own by now
                self.log.info("task %d", number)
                await asyncio.sleep(0)
                with cordwood.context(step=2):
                    self.log.info("task %d", number, own=number)

        async def main() -> None:
            all_are_in = asyncio.Event()
            await asyncio.gather(*(task(number, all_are_in) for number in range(tasks)))

        asyncio.run(main(), debug=False)
        found = self.records()
        self.assertEqual(len(found), 2 * tasks)
        steps = {number: 0 for number in range(tasks)}
        for record in found:
            number = int(record.message.split()[1])
            steps[number] += 1
            wanted = {"task": number}
            if steps[number] == 2:
                wanted = {"own": number, "task": number, "step": 2}
            self.assertEqual(record.fields, wanted)
            self.assertEqual(record.trace_id, f"{number + 1:032x}")
        self.assertEqual(set(steps.values()), {2})

    def test_contexts_that_end_in_another_order(self) -> None:
        fields, ids = cordwood.context(user="anna"), cordwood.trace(TRACE, SPAN)
        fields.__enter__()
        ids.__enter__()
        fields.__exit__(None, None, None)
        self.log.info("ids alone")
        with cordwood.context(order=7):
            ids.__exit__(None, None, None)
            self.log.info("fields alone")
        self.log.info("none")
        self.assertEqual([(record.fields, record.trace_id, record.span_id)
                          for record in self.records()],
                         [({}, TRACE, SPAN), ({"order": 7}, None, None), ({}, None, None)])

    def test_ends_in_a_copy_of_its_context(self) -> None:
        """Like a generator that is not read to its end, which asyncio closes in another task."""
        async def main() -> None:
            inside = cordwood.context(request=1)
            inside.__enter__()

            async def leave() -> None:
                inside.__exit__(None, None, None)
                self.log.info("left")
            await asyncio.create_task(leave())
            self.log.info("still inside here")
        asyncio.run(main())
        self.assertEqual([record.fields for record in self.records()], [{}, {"request": 1}])

    def test_threads_keep_their_own(self) -> None:
        with cordwood.context(user="anna"):
            thread = threading.Thread(target=self.log.info, args=("other",))
            thread.start()
            thread.join()
        self.assertEqual(self.only().fields, {})

    def test_an_exception_ends_it(self) -> None:
        seen: List[str] = []
        try:
            with cordwood.context(user="anna"):
                raise KeyError("x")
        except KeyError:
            seen.append("raised")
        self.log.info("after")
        self.assertEqual((seen, self.only().fields), (["raised"], {}))


if __name__ == "__main__":
    unittest.main()
