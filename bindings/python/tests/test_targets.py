"""A target's options, and what is kept of them: values that are refused, callbacks that go."""
import gc
import math
import sys
import threading
import time
import unittest
import weakref
from pathlib import Path
from typing import Any, Callable, Dict, List
from unittest import mock

from support import StoreCase, cordwood

from cordwood import _abi, _callbacks, _transport


class Called:
    """A host's callable, which shows when it is released."""

    def __init__(self) -> None:
        self.seen: List[Any] = []
        self.event = threading.Event()

    def __call__(self, *arguments: Any) -> Any:
        self.seen.append(arguments)
        self.event.set()
        return 200


class TargetTest(StoreCase):
    """Engine.add_target, remove_target and upload_async."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = self.open(upload_interval_s=3600)

    def add(self, **options: Any) -> int:
        """Adds a target that sends nowhere unless the options say how."""
        return self.engine.add_target(
            **{"url": "http://127.0.0.1:9", "name": "t", "kind": "http", "format": "ndjson",
               **options})

    def refused(self, call: Callable[[], Any]) -> str:
        """The message of an ArgumentError or a ValueError."""
        with self.assertRaises(ValueError) as caught:
            call()
        self.assertNotIn("s3cret", str(caught.exception))
        return str(caught.exception)

    def until_gone(self, reference: "weakref.ref[Any]") -> None:
        """Waits, since the library's thread may still be returning from the callable."""
        for _ in range(2000):
            gc.collect()
            if reference() is None:
                return
            time.sleep(0.01)
        self.fail("it is kept")

    # ── Texts ──

    def test_no_second_line(self) -> None:
        for end in "\n", "\r", "\0", "\r\n":
            for pairs in {"X": f"s3cret{end}Y: z"}, {f"X{end}Y": "s3cret"}:
                self.assertIn("headers", self.refused(lambda: self.add(headers=pairs)))
                self.assertIn("parameters", self.refused(
                    lambda: self.add(kind="loki", format=None, parameters=pairs)))
                self.assertIn("policy_headers", self.refused(lambda: cordwood.open(
                    self.store, policy_url="http://127.0.0.1:9/", policy_headers=pairs)))

    def test_no_nul(self) -> None:
        for option in ("url", "name", "kind", "format", "encoding", "method", "auth_token",
                       "auth_user", "auth_password", "ca_file", "client_certificate_file",
                       "client_key_file", "client_key_password", "proxy", "proxy_auth"):
            self.assertEqual(self.refused(lambda: self.add(**{option: "s3cret\0more"})),
                             f"{option} holds a NUL")
        self.assertIn("loggers", self.refused(lambda: self.add(loggers=["a", "b\0c"])))
        for option in ("directory", "process_name", "policy_url", "policy_ca_file", "encrypt_to",
                       "identity_file"):
            given: Dict[str, Any] = {"directory": self.store, option: "s3cret\0more"}
            self.assertEqual(self.refused(lambda: cordwood.open(**given)),
                             f"{option} holds a NUL")
        self.refused(lambda: self.engine.remove_target("t\0more"))
        self.refused(lambda: self.engine.set_resource("a\0", "b"))
        self.refused(lambda: self.engine.set_level("a\0", "info"))
        with self.assertRaises(cordwood.NotFoundError):
            self.engine.remove_target("t")

    # ── Numbers ──

    def test_numbers_are_not_cut(self) -> None:
        for option in ("bytes_per_s", "body_bytes_max", "body_records_max", "requests_max",
                       "http_version"):
            for number in -1, 1 << 64, (1 << 64) + 1:
                self.assertIn(option, self.refused(lambda: self.add(**{option: number})))
        self.assertIn("requests_max", self.refused(lambda: self.add(requests_max=(1 << 32) + 1)))

    def test_timeouts(self) -> None:
        for seconds, expected in ((None, _abi.FOREVER), (math.inf, _abi.FOREVER), (-math.inf, 0),
                                  (1e300, _abi.FOREVER), (-5, 0), (1.5, 1500), (0, 0)):
            self.assertEqual(_abi.timeout_ms(seconds), expected)
        self.refused(lambda: _abi.timeout_ms(math.nan))
        self.engine.archive_wait(math.inf)
        self.refused(lambda: self.engine.upload(math.nan))
        self.refused(lambda: self.add(connect_timeout=math.nan))

    # ── Callbacks ──

    def test_done_is_forgotten_after_it_came(self) -> None:
        self.add(transport=lambda request: 200)
        for _ in range(3):
            self.engine.logger("a").info("x")
            done: Any = Called()
            self.engine.upload_async(done)
            self.assertTrue(done.event.wait(30))
            self.assertEqual(done.seen[0][0], 0)
            self.assertEqual(done.seen[0][1].uploaded, 1)
            reference = weakref.ref(done)
            del done
            self.until_gone(reference)
            # The engine says "busy" until its thread has finished.
            self.engine.upload()
        self.assertEqual(_callbacks._dones, {})

    def test_done_is_forgotten_where_nothing_begins(self) -> None:
        self.engine.close()
        done: Any = Called()
        with self.assertRaises(cordwood.ClosedError):
            self.engine.upload_async(done)
        reference = weakref.ref(done)
        del done
        self.until_gone(reference)

    def test_callbacks_go_with_their_target(self) -> None:
        calls = {name: Called() for name in ("attempting", "completed", "condition", "drained",
                                             "credentials", "transport")}
        self.add(**calls)
        with self.assertRaises(cordwood.CordwoodError):
            self.add(**{name: Called() for name in calls})  # the name is taken
        self.engine.logger("a").info("x")
        self.assertEqual(self.engine.upload(timeout=30).uploaded, 1)
        for name in "attempting", "completed", "drained", "transport":
            self.assertTrue(calls[name].event.wait(30), name)
        self.engine.remove_target("t")
        references = [weakref.ref(call) for call in calls.values()]
        calls.clear()
        for reference in references:
            self.until_gone(reference)

    def test_a_target_removed_from_outside_can_be_added_again(self) -> None:
        first, second = Called(), Called()
        self.add(transport=first)
        (Path(self.store) / "targets" / "t").unlink()
        self.engine.logger("a").info("x")
        with self.assertRaises(cordwood.UploadError) as caught:
            self.engine.upload(timeout=30)
        self.assertEqual(caught.exception.status, _abi.E_NO_TARGET)
        self.add(transport=second)
        self.assertEqual(self.engine.upload(timeout=30).uploaded, 1)
        self.assertEqual((len(first.seen), len(second.seen)), (0, 1))
        reference = weakref.ref(first)
        del first
        self.until_gone(reference)

    def test_a_call_reports_the_background_attempt_that_it_joins(self) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def send(_: Any) -> int:
            begun.set()
            go_on.wait(30)
            return 202

        self.add(transport=send)
        for _ in range(3):
            self.engine.logger("a").info("x")
        self.engine.roll()
        self.assertTrue(begun.wait(30))
        threading.Timer(1, go_on.set).start()  # by then the call waits
        result = self.engine.upload(timeout=30)
        self.assertEqual((result.uploaded, result.records), (1, 3))
        self.assertEqual((result.last_http_status, result.last_outcome), (202, "success"))

    def test_refused_target_keeps_nothing(self) -> None:
        call = Called()
        with self.assertRaises(cordwood.ArgumentError):
            self.add(url="gopher://h", attempting=call)
        reference = weakref.ref(call)
        del call
        self.until_gone(reference)

    def test_transport_that_raises_after_its_status(self) -> None:
        put = _transport._put

        def interrupted(response: Any, given: Any) -> None:
            put(response, given)
            raise KeyboardInterrupt
        self.add(transport=lambda request: 200)
        self.engine.logger("a").info("x")
        shown: List[str] = []
        with mock.patch.object(_transport, "_put", interrupted), mock.patch.object(
                sys, "unraisablehook", lambda given: shown.append(given.exc_type.__name__)):
            with self.assertRaises(cordwood.UploadError) as caught:
                self.engine.upload(timeout=30)
        assert caught.exception.result is not None
        self.assertEqual(caught.exception.result.waiting, 1)
        self.assertEqual(shown, ["KeyboardInterrupt"])


if __name__ == "__main__":
    unittest.main()
