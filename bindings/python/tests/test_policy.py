"""B-SAP-8 and B-SAP-9: policies from the host and from a URL, what they change in a running engine,
and what the next start begins with."""
import contextlib
import fcntl
import functools
import importlib
import json
import os
import struct
import time
import unittest
from pathlib import Path
from typing import Any, Callable, List, Tuple

from answering import Answer, Answering
from support import StoreCase, cordwood
from test_upload_errors import eventually

LOOKS: Any = importlib.import_module("looks")


def policy(**keys: Any) -> Answer:
    """A policy as a server sends it."""
    return Answer(200, json.dumps(keys).encode())


class PolicyTest(StoreCase):
    """Engine.apply_policy and policy_url."""

    def serve(self, *script: Answer, then: Answer = Answer(304)) -> Answering:
        """A server with those answers, then 304."""
        server = Answering(*script, then=then)
        self.addCleanup(server.close)
        return server

    def said(self, **which: Any) -> List[cordwood.Record]:
        """The engine's own records about policies."""
        return [record for record in cordwood.read(self.store, **which)
                if record.logger == "Cordwood.Uploader" and "polic" in record.message]

    def test_b_sap_9_levels(self) -> None:
        engine = self.open(level="info")
        log, other, new = (engine.logger(name) for name in ("app.db.pool", "app.dbx", "app.q"))
        engine.set_level("app.q", "error")
        engine.apply_policy({"levels": {"app.db": "debug", "": "warn", "app.q": 5}})
        self.assertEqual([log.enabled("debug"), other.enabled("info"), other.enabled("warn")],
                         [True, False, True])
        self.assertTrue(new.enabled("debug"))
        self.assertTrue(engine.logger("app.db.late").enabled("debug"))
        # The host sets the prefix again, and that holds.
        engine.set_level("app.q", "error")
        self.assertFalse(new.enabled("warn"))
        # The next policy replaces this one; the host's levels hold for what it does not name.
        engine.apply_policy({"levels": {"app.dbx": "trace"}})
        self.assertEqual([log.enabled("debug"), log.enabled("info"), other.enabled("trace")],
                         [False, True, True])
        self.assertFalse(new.enabled("warn"))
        engine.apply_policy("{}")
        self.assertFalse(other.enabled("debug"))

    def refused(self) -> Tuple[Answering, Callable[[cordwood.Engine], object], cordwood.Engine]:
        """A server that refused the second of three records and will accept it the next time; a
        function that adds it as a target; an engine that has uploaded to it."""
        # The record is refused once more after the third was accepted.
        server = self.serve(Answer(200), Answer(400), Answer(200), Answer(400), then=Answer(200))
        add = functools.partial(cordwood.Engine.add_target, url=server.url, name="t", kind="http",
                                format="text", loggers="app", body_records_max=1, requests_max=1)
        engine = self.open()
        add(engine)
        for text in ("first", "second", "third"):
            engine.logger("app").info(text)
        with self.assertRaises(cordwood.UploadError) as refused:
            engine.upload(timeout=30)
        result = refused.exception.result
        self.assertEqual(result and result.quarantined, 1)
        return server, add, engine

    def test_what_was_refused_is_tried_again_when_a_policy_says_so(self) -> None:
        server, _, engine = self.refused()
        engine.upload(timeout=30)
        self.assertEqual(len(server.requests), 4, "what is kept is kept")

        def tried() -> int:
            return len([record for record in self.said(level="info")
                        if "tried again" in record.message])
        for word, times in ((1, 1), (1, 1), ("two", 2), ("two", 2), (1, 3), (None, 3), (1, 4)):
            engine.apply_policy({"retry_quarantined": word} if word else {})
            self.assertEqual(tried(), times)
            self.assertEqual(engine.upload(timeout=30).quarantined, 0)
        self.assertEqual(len(server.requests), 5)
        values: Tuple[Any, ...] = (True, "", [], 1.5)
        for wrong in values:
            with self.assertRaises(cordwood.CordwoodError):
                engine.apply_policy({"retry_quarantined": wrong})

    def test_what_cannot_be_tried_again_now_is_at_the_next_look(self) -> None:
        server, add, engine = self.refused()
        engine.close()

        def count(message: str) -> int:
            return sum(record.message == message for record in cordwood.read(self.store))
        looks = self.serve(then=policy(retry_quarantined=1))
        kept = Path(self.store) / "policy"
        with contextlib.ExitStack() as locks:
            # Locked as by a process that deletes archives.
            for path in Path(self.store).glob("archives/*.cwa"):
                file = locks.enter_context(open(path, "r+b"))
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(
                    "hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            engine = self.open(policy_url=looks.url, policy_interval_s=1)
            eventually("it is applied again", lambda: count(
                "not all that was refused can be tried again") >= 2)
            self.assertFalse(kept.exists())
        eventually("it is kept", kept.exists)
        self.assertEqual(count("a policy lets what was refused be tried again"), 1)
        add(engine)
        self.assertEqual(engine.upload(timeout=30).uploaded, 1)
        self.assertEqual(len(server.requests), 5)

    def test_b_sap_9_invalid_changes_nothing(self) -> None:
        engine = self.open(level="info")
        engine.apply_policy(b'{"levels": {"a": "debug"}}')
        wrong = [
            (b'{"levels": {"a": "off", "b": "loud"}, "max_files": 3}', "levels.b"),
            (b'{"levels": {"a": "off"}, "quota_bytes": -1}', "quota_bytes"),
            (b'{"enabled": false, "enabled": true}', "duplicate"),
            (b'{"enabled": false', "no JSON"), (b"", "no JSON"), (b"\xff", "no JSON"),
            (b"[" * 60_000, "nested"),
        ]
        for text, part in wrong:
            with self.assertRaises(cordwood.ArgumentError) as caught:
                engine.apply_policy(text)
            self.assertIn(part, str(caught.exception))
            self.assertEqual(caught.exception.status_name, "CW_E_ARGUMENT")
            self.assertTrue(engine.logger("a").enabled("debug"))
        with self.assertRaises(cordwood.ArgumentError) as caught:
            engine.apply_policy(b" " * 65_537)
        self.assertEqual(caught.exception.status_name, "CW_E_LIMIT")
        engine.close()
        told = [record.fields["cause"] for record in self.said(level="warn")]
        self.assertEqual(len(told), len(wrong))
        for (_, part), cause in zip(wrong, told):
            self.assertIn(part, str(cause))
        with self.assertRaises(cordwood.ClosedError):
            engine.apply_policy("{}")

    def test_b_sap_9_unknown_keys_are_named_once_at_warn(self) -> None:
        engine = self.open(level="warn")
        for policy in ({"enable": True, "max_files": 7}, {"enable": True, "max_files": 8},
                       {"enable": 1, "max_file": 1, "max_files": 7}, {"max_files": 7}):
            engine.apply_policy(policy)
        engine.close()
        told = [record.fields["keys"] for record in self.said(level="warn")
                if "keys" in record.fields]
        self.assertEqual(told, ["enable", "enable, max_file"])

    def test_b_sap_9_a_document_of_other_keys_alone_is_refused(self) -> None:
        engine = self.open()
        engine.apply_policy({"levels": {"a": "debug"}})
        with self.assertRaisesRegex(cordwood.ArgumentError, "'enable', 'max_file'"):
            engine.apply_policy({"enable": True, "max_file": 7})
        self.assertTrue(engine.logger("a").enabled("debug"), "nothing was changed")

    def test_b_sap_9_keys_of_sap(self) -> None:
        engine = self.open(policy_allow=["erase"])
        engine.apply_policy({"logUploadEnabled": True, "entryExpiry": 7, "logLevel": "WARN",
                             "maxFileNum": 10, "maxFileSize": 5})
        log = engine.logger("a")
        self.assertEqual([log.enabled("info"), log.enabled("warn")], [False, True])
        self.assertEqual(self.said(level="warn"), [])

    def test_b_sap_8_not_enabled(self) -> None:
        server = self.serve(then=Answer(200))
        engine = self.open(upload_interval_s=1)
        engine.add_target(server.url, kind="http", format="ndjson")
        engine.apply_policy({"enabled": False})
        engine.logger("a").info("x")
        with self.assertRaises(cordwood.UploadError) as caught:
            engine.upload(timeout=30)
        self.assertEqual(caught.exception.status_name, "CW_E_NOT_ENABLED")
        self.assertTrue(engine.logger("a").info("y"), "logging goes on")
        engine.roll()
        engine.archive_wait(30)
        LOOKS.looks(self.store, 2)  # the first may be the archive's, the second is the timer's
        self.assertEqual(server.requests, [])
        self.assertEqual(len(os.listdir(Path(self.store) / "archives")), 2)
        engine.apply_policy({"enabled": True})
        eventually("both are sent", lambda: engine.stats().uploads_succeeded == 2)
        self.assertEqual(len(server.requests), 2, "nor was anything sent before")

    def test_b_sap_9_limits_hold_at_once(self) -> None:
        engine = self.open(segment_bytes=4 << 20, codec="none", policy_allow=["erase"])
        archives = self.archive_many(engine, 12, 2000)
        engine.apply_policy({"max_files": 10})
        eventually("the oldest are gone", lambda: len(list(archives.glob("*.cwa"))) == 10)
        engine.apply_policy({"quota_bytes": 16 << 20})

        def size() -> int:
            try:
                return sum(path.stat().st_size for path in archives.glob("*.cwa"))
            except FileNotFoundError:  # deleted since it was listed
                return 1 << 30

        eventually("the quota holds", lambda: size() <= 16 << 20)

    def archive_many(self, engine: cordwood.Engine, count: int, records: int) -> Path:
        """Makes so many archives, with so many records of 1,000 bytes. Returns their folder."""
        for number in range(count):
            for _ in range(records):
                engine.logger("a").info(f"{number % 10}" * 1000)
            engine.roll()
            engine.archive_wait(30)
        archives = Path(self.store) / "archives"
        self.assertGreaterEqual(len(list(archives.glob("*.cwa"))), count)
        return archives

    def test_by_default_a_policy_removes_nothing(self) -> None:
        engine = self.open(segment_bytes=65_536, codec="none")
        archives = self.archive_many(engine, 12, 30)
        kept = {path.name for path in archives.glob("*.cwa")}
        for keys in ({"quota_bytes": 1}, {"max_files": 1}, {"expiration_days": 1},
                     {"levels": {"": "off", "a": 22, "b": "fatal"}}):
            engine.apply_policy(keys)
            told = self.said()[-1]
            self.assertEqual((told.message, told.level), ("a policy was applied", "WARN"))
            self.assertEqual(told.fields["withheld"], next(iter(keys)))
        self.assertEqual((told.fields["levels"]), "b=FATAL")
        self.assertTrue(engine.logger("a").enabled("info"))
        self.assertFalse(engine.logger("b").enabled("error"))
        for _ in range(3):  # looks at the limits
            self.assertTrue(engine.logger("a").info("x"))
            engine.roll()
            engine.archive_wait(30)
        self.assertLessEqual(kept, {path.name for path in archives.glob("*.cwa")})

    def test_a_policy_that_may_erase_leaves_some(self) -> None:
        engine = self.open(segment_bytes=65_536, codec="none", policy_allow=["erase", "off"])
        archives = self.archive_many(engine, 15, 30)
        engine.apply_policy({"quota_bytes": 1, "expiration_days": 1, "max_files": 1})
        eventually("ten are left", lambda: len(list(archives.glob("*.cwa"))) == 10)
        told = self.said()[-1].fields
        self.assertEqual(told["withheld"], "quota_bytes, max_files")
        self.assertEqual((told["quota_bytes"], told["max_files"]), (16 << 20, 10))
        # A policy cannot hide its own record; the host's threshold can.
        engine.apply_policy({"levels": {"": "off"}})
        self.assertFalse(engine.logger("a").enabled("fatal"))
        self.assertEqual(self.said()[-1].fields["levels"], "=off")
        engine.apply_policy({"levels": {"": "off", "a": "warn"}})
        self.assertEqual(self.said()[-1].fields["levels"], "=off, a=WARN")
        before = len(self.said())
        engine.set_level("Cordwood", "off")
        engine.apply_policy({})
        self.assertEqual(len(self.said()), before)

    def test_where_a_policy_may_come_from(self) -> None:
        for url in ("http://config.example.com/p", "http://127.0.0.1.example.com", "http://[::2]/",
                    "http://10.0.0.1:8080/p"):
            with self.subTest(url), self.assertRaises(cordwood.ArgumentError) as caught:
                self.open(policy_url=url)
            self.assertIn("policy_allow", str(caught.exception))
        for url in ("http://localhost:9", "http://127.8.9.1:9/p", "http://[::1]:9/"):
            self.open(policy_url=url).close()
        with self.assertRaises(ValueError):
            self.open(policy_allow=["everything"])

    def test_b_sap_9_a_quota_below_the_segment_in_use(self) -> None:
        engine = self.open(segment_bytes=64 << 20, codec="none", policy_allow=["erase"])
        log = engine.logger("a")

        def fill() -> None:
            for _ in range(300):
                self.assertTrue(log.info("x" * 1000))
            engine.roll()
            engine.archive_wait(30)

        for _ in range(3):
            fill()
        engine.apply_policy({"quota_bytes": 16 << 20})
        for _ in range(80):
            fill()
        self.assertGreater(len(list((Path(self.store) / "archives").glob("*.cwa"))), 10)

    def test_b_sap_9_segments(self) -> None:
        engine = self.open(segment_bytes=16 << 20, policy_allow=["erase"])
        log = engine.logger("a")
        text = "x" * 1000
        for _ in range(200):
            log.info(text)
        before = engine.stats().segments_sealed
        engine.apply_policy({"max_file_size_bytes": 65_536})
        engine.roll()
        written = 200

        def small_ones() -> bool:
            # Another thread takes back the spare segments of the old size.
            nonlocal written
            for _ in range(500):
                self.assertTrue(log.info(text))
            written += 500
            return engine.stats().segments_sealed - before >= 15
        eventually("small segments", small_ones)
        # A record of two megabytes is cut to what a segment holds.
        self.assertTrue(log.info("y" * (2 << 20)))
        engine.roll()
        engine.archive_wait(30)
        engine.apply_policy({"max_file_size_bytes": 8 << 20})
        self.assertTrue(log.info("z" * (4 << 20)))
        engine.close()
        found = self.records()
        self.assertEqual(sum(record.message == text for record in found), written)
        longest = {record.message[0]: len(record.message) for record in found}
        self.assertLess(longest["y"], 1 << 20)
        self.assertEqual(longest["z"], 4 << 20)

    def test_b_sap_9_from_a_url(self) -> None:
        etag = (("ETag", '"v1"'), ("Last-Modified", "Fri, 04 Nov 2014 23:59:59 GMT"))
        server = self.serve(
            policy(levels={"a": "debug"})._replace(headers=etag), Answer(304), Answer(500),
            Answer(200, b'{"levels": 7}'), policy(levels={"a": "error"}))
        engine = self.open(policy_url=server.url + "/p?key=secret-query", policy_interval_s=1,
                           policy_headers={"Authorization": "Bearer secret-token"})
        log = engine.logger("a")
        eventually("the first holds", lambda: log.enabled("debug"))
        eventually("it was asked four times", lambda: len(server.requests) >= 4)
        self.assertTrue(log.enabled("debug"), "304, 500 and an invalid one change nothing")
        eventually("the second holds", lambda: not log.enabled("warn"))
        first, second = server.requests[0], server.requests[1]
        self.assertEqual(first[:2], ("GET", "/p?key=secret-query"))
        self.assertEqual(first[2]["Authorization"], "Bearer secret-token")
        self.assertNotIn("If-None-Match", first[2])
        self.assertEqual((second[2]["If-None-Match"], second[2]["If-Modified-Since"]),
                         ('"v1"', "Fri, 04 Nov 2014 23:59:59 GMT"))
        engine.close()
        messages = [(record.message, record.fields.get("http.status")) for record in self.said()]
        for said in ("a policy is not valid; nothing was changed",
                     "no policy came; the last one holds", "a policy was applied"):
            self.assertIn(said, [message for message, _ in messages])
        for path in Path(self.store).rglob("*"):
            if path.is_file():
                self.assertNotIn(b"secret-", path.read_bytes(), path)

    def test_b_sap_9_the_next_start_begins_with_it(self) -> None:
        server = self.serve(policy(levels={"a": "trace"}, enabled=False))
        url = server.url + "/p"
        engine = self.open(policy_url=url)
        eventually("it holds", lambda: engine.logger("a").enabled("trace"))
        eventually("it is kept", (Path(self.store) / "policy").exists)
        engine.close()
        server.close()
        engine = self.open(policy_url=url)
        self.assertTrue(engine.logger("a").enabled("trace"), "at once, with no server")
        engine.add_target("http://127.0.0.1:9", kind="http", format="ndjson")
        engine.logger("a").info("x")
        with self.assertRaises(cordwood.UploadError) as caught:
            engine.upload(timeout=30)
        self.assertEqual(caught.exception.status_name, "CW_E_NOT_ENABLED")
        engine.close()
        engine = self.open(policy_url=url + "2")
        self.assertFalse(engine.logger("a").enabled("trace"), "another URL's is not ours")
        engine.close()
        engine = self.open()
        self.assertFalse(engine.logger("a").enabled("trace"))

    def test_b_sap_9_a_slow_server_holds_up_nothing(self) -> None:
        slow = self.serve(then=Answer(delay=60))
        fast = self.serve(then=Answer(200))
        began = time.monotonic()
        engine = self.open(policy_url=slow.url)
        eventually("it is asked", lambda: slow.requests)
        engine.add_target(fast.url, kind="http", format="ndjson")
        engine.logger("a").info("x")
        self.assertEqual(engine.upload(timeout=30).uploaded, 1)
        engine.apply_policy({"levels": {"a": "debug"}})
        self.assertTrue(engine.logger("a").enabled("debug"))
        engine.close()
        self.assertLess(time.monotonic() - began, 15)

    def test_b_sap_9_options_are_checked(self) -> None:
        for options in ({"policy_url": "file:///etc/passwd"},
                        {"policy_url": "http://127.0.0.1:9", "policy_headers": {"a b": "c"}},
                        {"policy_url": "http://127.0.0.1:9",
                         "policy_headers": {"If-None-Match": "x"}}):
            with self.assertRaises(cordwood.ArgumentError) as caught:
                self.open(**options)
            self.assertIn("policy", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
