"""Hooks of HTTP clients and server middlewares, tested with the standard library alone."""
import asyncio
import http.client
import socket
import ssl
import threading
import unittest
import unittest.mock
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

from support import StoreCase, cordwood

from cordwood._capture import calls, hooks, http_client, record

Fields = Dict[str, Any]


class Echo(BaseHTTPRequestHandler):
    """Answers with the body it got; /chunks in chunks."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Nothing on stderr."""

    def do_POST(self) -> None:
        """Sends the body back."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            # Answering before the body has come would break the pipe of the client that sends it.
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        self.send_response(200)
        if self.path == "/chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3\r\none\r\n4\r\n two\r\n0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST


class Server(ThreadingHTTPServer):
    """A server whose clients may leave at any time."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports none."""


class HookCase(StoreCase):
    """A case with an engine that captures, and a server."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = self.open()
        self.engine.capture_http(keep_text="* */*")
        self.server = Server(("127.0.0.1", 0), Echo)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def install(self, **options: Any) -> cordwood.HTTPHooks:
        """Installs hooks, removed when the test ends."""
        hooks = cordwood.install_http_hooks(self.engine, **options)
        self.addCleanup(hooks.remove)
        return hooks

    def ended(self) -> List[Fields]:
        """The exchanges that have ended."""
        return [dict(record.fields) for record in cordwood.read(self.store, kinds="http")
                if record.fields["http.op"] == "end"]

    def told(self) -> List[str]:
        """Our own diagnostics."""
        return [record.message for record in cordwood.read(self.store)
                if record.logger == "Cordwood.HTTP"]


class Client(HookCase):
    def post(self, body: Any, path: str = "/") -> bytes:
        """A request by http.client itself."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            connection.request("POST", path, body)
            return connection.getresponse().read()
        finally:
            connection.close()

    def test_removed_hooks_leave_nothing(self) -> None:
        before = {name: vars(http.client.HTTPConnection)[name] for name in
                  ("endheaders", "send", "getresponse", "close", "connect")}
        hooks = self.install()
        self.assertIsNot(http.client.HTTPConnection.send, before["send"])
        inner = self.install(clients=["httpx"])
        inner.remove()
        self.assertIsNot(http.client.HTTPConnection.send, before["send"])
        hooks.remove()
        for name, method in before.items():
            self.assertIs(vars(http.client.HTTPConnection)[name], method)
        self.post(b"x")
        self.assertEqual(self.ended(), [])

    def test_every_way_to_read(self) -> None:
        self.install()
        body = b"one\ntwo\nthree\n" * 10
        ways: Dict[str, Any] = {
            "read": lambda answer: answer.read(),
            "pieces": lambda answer: b"".join(iter(lambda: answer.read(7), b"")),
            "read1": lambda answer: b"".join(iter(lambda: answer.read1(9), b"")),
            "lines": lambda answer: b"".join(answer),
            "into": self._into,
        }
        for name, way in ways.items():
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            connection.request("POST", f"/{name}", body)
            self.assertEqual(way(connection.getresponse()), body)
            connection.close()
        found = self.ended()
        self.assertEqual([one["url.full"].rpartition("/")[2] for one in found], list(ways))
        for one in found:
            self.assertEqual(one["http.response.body"], body.decode())
            self.assertEqual(one["http.request.body"], body.decode())

    @staticmethod
    def _into(answer: Any) -> bytes:
        found, room = b"", bytearray(11)
        while count := answer.readinto(room):
            found += room[:count]
        return found

    def test_chunks_and_a_body_that_nobody_reads(self) -> None:
        self.install()
        self.assertEqual(self.post(iter([b"a", b"bc"]), "/chunks"), b"one two")
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/unread", b"abc")
        connection.getresponse()
        connection.close()
        first, second = self.ended()
        self.assertEqual(first["http.response.body"], "one two")
        self.assertEqual(first["http.request.body"], "abc")
        self.assertEqual(second["http.response.status_code"], 200)

    def test_a_connection_that_is_given_up(self) -> None:
        self.install()
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/", b"abc")
        connection.close()
        one, = self.ended()
        self.assertEqual(one["error.type"], "closed")

    def test_urls_of_targets_behind_proxies(self) -> None:
        connection = http.client.HTTPSConnection("proxy.example", 3128)
        connection.set_tunnel("shop.example", 8443)
        self.assertEqual(http_client.target(connection, "/x?y"),
                         "https://shop.example:8443/x?y")
        plain = http.client.HTTPConnection("proxy.example", 3128)
        self.assertEqual(http_client.target(plain, "http://shop.example/x"),
                         "http://shop.example/x")
        six = http.client.HTTPConnection("::1", 80)
        self.assertEqual(http_client.target(six, "*"), "http://[::1]/*")

    def test_what_goes_wrong_inside_is_told_once(self) -> None:
        self.install()
        broken = unittest.mock.patch.object(calls, "begin",
                                            side_effect=RuntimeError("a mistake of ours"))
        with broken:
            for _ in range(3):
                self.assertEqual(self.post(b"x"), b"x")
        self.assertEqual(self.told(), ["HTTP capture failed: RuntimeError: a mistake of ours"])

    def test_a_closed_engine_is_told_once(self) -> None:
        self.install()
        self.engine.close()
        for _ in range(3):
            self.assertEqual(self.post(b"x"), b"x")

    def test_own_uploads_are_not_captured(self) -> None:
        self.install()
        with hooks.suppressed():
            self.post(b"x")
        self.assertEqual(self.ended(), [])

    def test_names_of_clients(self) -> None:
        with self.assertRaisesRegex(ValueError, "clients are"):
            cordwood.install_http_hooks(self.engine, ["curl"])


class Words(unittest.TestCase):
    def test_types_of_errors(self) -> None:
        refused = urllib.error.URLError(ConnectionRefusedError(111, "refused"))
        late = OSError("wrapped")
        late.__cause__ = TimeoutError("late")
        for error, kind in ((refused, "connect"), (late, "timeout"),
                            (urllib.error.URLError(socket.gaierror(-2, "no name")), "dns"),
                            (ssl.SSLCertVerificationError("untrusted"), "tls"),
                            (KeyError("x"), "KeyError")):
            self.assertEqual(record.error_type(error), kind)
        self.assertTrue(record.is_cancelled(asyncio.CancelledError()))
        self.assertFalse(record.is_cancelled(TimeoutError()))
        self.assertFalse(record.is_cancelled(None))

    def test_what_the_host_was_handling_is_no_cause(self) -> None:
        try:
            try:
                raise socket.gaierror(-2, "the host's own")
            except OSError:
                raise ValueError("ours")
        except ValueError as error:
            self.assertEqual(record.error_type(error), "ValueError")


TRACE = "0af7651916cd43dd8448eb211c80319c"


class Inbound(HookCase):
    def wsgi(self, app: Any, path: str = "/", body: bytes = b"", **more: Any) -> bytes:
        """One request to an application between two of the standard library's validators."""
        import io
        environ: Dict[str, Any] = {}
        setup_testing_defaults(environ)
        environ.update({"PATH_INFO": path, "REQUEST_METHOD": "POST", "QUERY_STRING": "",
                        "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body), **more})
        result: Any = validator(cordwood.WSGIMiddleware(validator(app), self.engine))(
            environ, lambda status, headers, exc_info=None: lambda data: None)
        try:
            return b"".join(result)
        finally:
            result.close()

    def test_wsgi(self) -> None:
        log = self.engine.logger("app")

        def app(environ: Any, start_response: Any) -> Any:
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            start_response("201 Created", [("Content-Type", "text/plain")])

            def parts() -> Any:
                log.info("inside")
                yield body
                yield b"!"
            return parts()
        answer = self.wsgi(app, "/a b", b"hello", HTTP_X_CONVERSATION_ID="7d1f",
                           HTTP_TRACEPARENT=f"00-{TRACE}-b7ad6b7169203331-01",
                           REMOTE_ADDR="192.0.2.1")
        self.assertEqual(answer, b"hello!")
        one, = self.ended()
        self.assertEqual(one["url.full"], "http://127.0.0.1/a%20b")
        self.assertEqual((one["http.side"], one["http.response.status_code"]), ("server", 201))
        self.assertEqual((one["http.request.body"], one["http.response.body"]),
                         ("hello", "hello!"))
        self.assertEqual(one["http.conversation"], "7d1f")
        inside, = [record for record in self.records() if record.message == "inside"]
        self.assertEqual((inside.trace_id, inside.fields["http.conversation"]), (TRACE, "7d1f"))

    def test_wsgi_that_raises(self) -> None:
        def app(environ: Any, start_response: Any) -> Any:
            raise LookupError("no such order")
        with self.assertRaisesRegex(LookupError, "no such order"):
            self.wsgi(app)
        one, = self.ended()
        self.assertEqual((one["error.type"], one["error.message"]),
                         ("LookupError", "no such order"))

    def test_wsgi_ids_without_capture(self) -> None:
        self.engine.capture_http(enabled=False)
        log = self.engine.logger("app")

        def app(environ: Any, start_response: Any) -> Any:
            log.info("inside")
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"x"]
        self.wsgi(app, HTTP_TRACEPARENT=f"00-{TRACE}-b7ad6b7169203331-01")
        self.assertEqual(self.only().trace_id, TRACE)

    def asgi(self, app: Any, messages: Any, **scope: Any) -> List[Dict[str, Any]]:
        """Calls an application; what it sent."""
        sent: List[Dict[str, Any]] = []
        waiting = list(messages)

        async def receive() -> Dict[str, Any]:
            message: Dict[str, Any] = waiting.pop(0)
            return message

        async def send(message: Dict[str, Any]) -> None:
            sent.append(message)
        asked = {"type": "http", "method": "GET", "path": "/x", "scheme": "https",
                 "headers": [(b"host", b"shop.example")], "query_string": b"a=b",
                 "http_version": "2", "client": ("192.0.2.1", 5), **scope}
        asyncio.run(cordwood.ASGIMiddleware(app, self.engine)(asked, receive, send))
        return sent

    def test_asgi(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            body = b""
            while True:
                message = await receive()
                body += message["body"]
                if not message["more_body"]:
                    break
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"!"})
        sent = self.asgi(app, [{"type": "http.request", "body": b"ab", "more_body": True},
                               {"type": "http.request", "body": b"c", "more_body": False}])
        self.assertEqual(len(sent), 3)
        one, = self.ended()
        self.assertEqual(one["url.full"], "https://shop.example/x?a=b")
        self.assertEqual(one["network.protocol"], "h2")
        self.assertEqual((one["http.request.body"], one["http.response.body"]), ("abc", "abc!"))

    def test_asgi_when_the_client_leaves(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await receive()
        self.asgi(app, [{"type": "http.disconnect"}])
        one, = self.ended()
        self.assertEqual(one["error.type"], "disconnected")

    def test_asgi_that_raises(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            raise LookupError("no such order")
        with self.assertRaises(LookupError):
            self.asgi(app, [])
        one, = self.ended()
        self.assertEqual(one["error.type"], "LookupError")

    def test_other_scopes_go_by(self) -> None:
        seen: List[Any] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append((scope["type"], receive, send))
        self.asgi(app, [], type="lifespan")
        self.assertEqual([kind for kind, _, _ in seen], ["lifespan"])
        self.assertEqual(self.ended(), [])


if __name__ == "__main__":
    unittest.main()
