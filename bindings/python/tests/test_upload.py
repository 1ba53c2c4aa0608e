"""Uploads to a server in this process: what it receives, and what the host is told."""
import gzip
import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from support import StoreCase, cordwood


# The keywords of add_target in 0.1.
KEYWORDS = """url name kind format encoding headers parameters method auth_token auth_user
auth_password ca_file client_certificate_file client_key_file client_key_password proxy proxy_auth
http_version level loggers connect_timeout request_timeout bytes_per_s body_bytes_max
body_records_max requests_max attempting completed condition drained credentials transport busy
expect"""


class Receiver:
    """An HTTP server that keeps bodies and answers with `self.answer`."""

    def __init__(self) -> None:
        self.answer = 200
        self.next: List[int] = []
        self.got: List[Tuple[Dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            """Answers every POST."""

            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                outer.got.append((dict(self.headers), self.rfile.read(size)))
                self.send_response(outer.next.pop(0) if outer.next else outer.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/logs"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Stops serving."""
        self.server.shutdown()
        self.server.server_close()


class UploadTest(StoreCase):
    """Engine.add_target and upload."""

    def setUp(self) -> None:
        super().setUp()
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)
        self.engine = self.open()

    def add_target(self, **options: Any) -> int:
        """A plain HTTP target on the receiver."""
        return self.engine.add_target(self.receiver.url, kind="http", format="ndjson", **options)

    def test_a_target_is_a_value(self) -> None:
        target = cordwood.Target(self.receiver.url + "/in?key=s3cret", kind="http",
                                 format="ndjson", auth_token="t0ken", headers={"X-Key": "s3cret"})
        for secret in ("s3cret", "t0ken"):
            self.assertNotIn(secret, repr(target))
        self.assertGreater(self.engine.add_target(target, name="first"), 0)
        self.assertGreater(self.engine.add_target(url=self.receiver.url, kind="http"), 0)
        with self.assertRaises(cordwood.ArgumentError):
            self.engine.add_target(target, name="first")
        for wrong in ({"nam": "x"}, {"url": self.receiver.url}):
            with self.subTest(wrong=wrong), self.assertRaises(TypeError):
                self.engine.add_target(self.receiver.url, **wrong)
        self.engine.logger("app").info("hello")
        self.assertEqual(self.engine.upload(20).failed, 0)
        self.assertEqual({headers.get("X-Key") for headers, _ in self.receiver.got},
                         {"s3cret", None})

    def test_keywords_of_0_1(self) -> None:
        """A URL with options by keyword equals a Target with the same options."""
        files = {}
        for name in ("ca", "certificate", "key"):
            files[name] = Path(self.store).parent / name
            files[name].write_text("")
        calls: List[Tuple[Any, ...]] = []
        tls: Dict[str, Any] = {
            "url": "https://127.0.0.1:9/in", "kind": "http", "format": "ndjson",
            "auth_user": "me", "auth_password": "hush", "ca_file": files["ca"],
            "client_certificate_file": str(files["certificate"]),
            "client_key_file": files["key"], "client_key_password": "hush",
            "proxy": "http://127.0.0.1:9", "proxy_auth": "me:hush", "http_version": 1}
        own: Dict[str, Any] = {
            "url": "http://logs.example", "kind": "loki", "parameters": {"tenant": "a"},
            "credentials": lambda *_: None, "transport": lambda _: (204, {}, b"")}
        sent: Dict[str, Any] = {
            "url": self.receiver.url, "kind": "http", "format": "ndjson", "encoding": "gzip",
            "headers": {"X-Key": "1"}, "method": "POST", "auth_token": "token", "level": "warn",
            "loggers": ["app"], "connect_timeout": 5, "request_timeout": 7.5,
            "bytes_per_s": 1 << 30, "body_bytes_max": 1 << 16, "body_records_max": 100,
            "requests_max": 1, "expect": "status:200", "condition": lambda: True,
            "attempting": lambda *told: calls.append(("attempting", *told[1:])),
            "completed": lambda *told: calls.append(("completed", *told[1:])),
            "drained": lambda: calls.append(("drained",)),
            "busy": lambda *told: calls.append(("busy", *told))}
        self.assertEqual({"name", *tls, *own, *sent}, set(KEYWORDS.split()))
        log = self.engine.logger("app")
        log.info("not this")
        log.warning("this")
        refused = []
        for number, options in enumerate((sent, own, tls)):
            rest = {key: value for key, value in options.items() if key != "url"}
            forms: Dict[str, Callable[[str], int]] = {
                "old": lambda name: self.engine.add_target(options["url"], name=name, **rest),
                "older": lambda name: self.engine.add_target(name=name, **options),
                "new": lambda name: self.engine.add_target(cordwood.Target(name=name, **options))}
            for form, add in forms.items():
                try:
                    self.assertGreater(add(f"{form} {number}"), 0)
                except cordwood.ArgumentError as error:
                    refused.append(str(error))
        self.assertEqual(len(refused), 3, refused)
        self.assertEqual({why.rpartition("(")[2] for why in refused},
                         {f"ca_file '{files['ca']}' holds no PEM of a certificate)"})
        self.assertEqual(self.engine.upload(timeout=30).failed, 0)
        found = [({key: headers.get(key) for key in ("X-Key", "Authorization")},
                  [json.loads(line)["message"] for line in gzip.decompress(body).splitlines()])
                 for headers, body in self.receiver.got]
        self.assertEqual(
            found, 3 * [({"X-Key": "1", "Authorization": "Bearer token"}, ["this"])])
        for call in (("attempting", 1), ("completed", 0, 200), ("drained",)):
            self.assertEqual(calls.count(call), 3, calls)

    def test_success(self) -> None:
        seen: List[Tuple[Any, ...]] = []
        self.add_target(encoding="gzip", headers={"X-One": "1", "X-Two": "2"}, auth_token="secret",
                        attempting=lambda archive, count: seen.append(("try", count)),
                        completed=lambda archive, status, http: seen.append((status, http)))
        self.engine.logger("a").info("order %d", 7, price=1.5)
        result = self.engine.upload(timeout=30)
        self.assertEqual((result.uploaded, result.failed, result.waiting), (1, 0, 0))
        self.assertEqual((result.last_outcome, result.last_http_status), ("success", 200))
        headers, body = self.receiver.got[0]
        self.assertEqual((headers["X-One"], headers["X-Two"], headers["Authorization"]),
                         ("1", "2", "Bearer secret"))
        lines = [json.loads(line) for line in gzip.decompress(body).splitlines()]
        mine = [line for line in lines if line["logger"] == "a"]
        self.assertEqual((mine[0]["message"], mine[0]["fields"]), ("order 7", {"price": 1.5}))
        self.assertEqual(seen, [("try", 1), (0, 200)])

    def test_nothing_waiting_is_no_error(self) -> None:
        self.add_target()
        self.engine.logger("a").info("x")
        self.engine.upload(timeout=30)
        self.assertEqual(self.engine.upload(timeout=30).uploaded, 0)

    def test_server_error(self) -> None:
        self.add_target()
        self.engine.logger("a").info("x")
        self.receiver.answer = 500
        with self.assertRaises(cordwood.UploadError) as caught:
            self.engine.upload(timeout=30)
        error = caught.exception
        self.assertEqual((error.status_name, error.outcome), ("CW_E_UPLOAD", "server"))
        assert error.result is not None
        self.assertEqual((error.result.last_http_status, error.result.waiting), (500, 1))
        self.receiver.answer = 200
        self.assertEqual(self.engine.upload(timeout=30).uploaded, 1)

    def test_no_target_and_no_consent(self) -> None:
        with self.assertRaises(cordwood.UploadError) as caught:
            self.engine.upload(timeout=30)
        self.assertEqual(caught.exception.status_name, "CW_E_NO_TARGET")
        self.add_target()
        self.engine.set_consent("pending")
        self.engine.logger("a").info("x")
        with self.assertRaises(cordwood.UploadError) as caught:
            self.engine.upload(timeout=30)
        self.assertEqual(caught.exception.status_name, "CW_E_CONSENT")
        self.assertEqual(self.receiver.got, [])

    def test_in_the_background(self) -> None:
        self.add_target()
        self.engine.logger("a").info("x")
        done = threading.Event()
        seen: List[Any] = []

        def ended(status: int, result: cordwood.UploadResult) -> None:
            seen.append((status, result.uploaded))
            done.set()
        self.engine.upload_async(ended)
        self.assertTrue(done.wait(30))
        self.assertEqual(seen, [(0, 1)])

    def test_same_name_twice(self) -> None:
        self.add_target(name="mine")
        with self.assertRaises(cordwood.ArgumentError) as caught:
            self.add_target(name="mine")
        self.assertEqual(caught.exception.status_name, "CW_E_EXISTS")
        self.engine.remove_target("mine")
        with self.assertRaises(cordwood.NotFoundError):
            self.engine.remove_target("mine")

    def test_preview_is_what_goes(self) -> None:
        target = self.add_target(encoding="gzip", body_records_max=2)
        with self.assertRaises(cordwood.NotFoundError):
            self.engine.upload_preview(target + 1)
        self.engine.set_consent("pending")
        for number in range(5):
            self.engine.logger("a").info("record %d", number)
        shown = self.engine.upload_preview(target)
        self.assertGreaterEqual(len(shown), 3)
        self.assertEqual(self.receiver.got, [])
        self.engine.set_consent("granted")
        self.engine.upload(timeout=30)
        self.assertEqual([body for _, body in self.receiver.got][:len(shown)], shown)

    def test_filter_condition_and_drained(self) -> None:
        asked: List[bool] = []
        drained = threading.Event()

        def condition() -> bool:
            asked.append(True)
            raise ValueError("what a condition raises means no")
        self.add_target(level="warn", loggers=["app.db", "app.net"], condition=condition,
                        drained=drained.set)
        for name in ("app.db", "app.db.pool", "app.dbx", "app.net"):
            self.engine.logger(name).info("low")
            self.engine.logger(name).warning("high")
        self.engine.roll()
        for _ in range(3000):
            if asked:
                break
            threading.Event().wait(0.01)
        self.assertTrue(asked)
        self.assertEqual(self.receiver.got, [])
        # An explicit call overrides the condition.
        self.assertEqual(self.engine.upload(timeout=30).uploaded, 1)
        self.assertTrue(drained.wait(30))
        lines = [json.loads(line) for line in self.receiver.got[0][1].splitlines()]
        self.assertEqual([line["logger"] for line in lines if line["kind"] == "log"],
                         ["app.db", "app.db.pool", "app.net"])
        self.assertEqual({line["message"] for line in lines if line["kind"] == "log"}, {"high"})

    def test_too_large_is_halved(self) -> None:
        self.add_target(body_records_max=100)
        for number in range(8):
            self.engine.logger("a").info("record %d", number)
        answers = [413, 413]
        self.receiver.next = answers
        self.assertEqual(self.engine.upload(timeout=30).uploaded, 1)
        ids = [headers["Idempotency-Key"] for headers, _ in self.receiver.got]
        self.assertEqual(len(ids), len(set(ids)))
        messages = [json.loads(line)["message"] for _, body in self.receiver.got[2:]
                    for line in body.splitlines()]
        self.assertEqual([text for text in messages if text.startswith("record")],
                         [f"record {number}" for number in range(8)])


if __name__ == "__main__":
    unittest.main()
