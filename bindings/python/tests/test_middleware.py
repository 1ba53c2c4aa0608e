"""Server middlewares with servers and applications that stretch their protocols: whatever comes,
the request is answered as without them."""
import asyncio
import io
import logging
import re
import unicodedata
import unittest
import unittest.mock
from pathlib import Path
from typing import Any, Dict, List

from support import StoreCase, cordwood

from cordwood._capture import middleware
from cordwood._secret_names import _FRONTS, is_secret

Fields = Dict[str, Any]
START = {"type": "http.response.start", "status": 200, "headers": []}


class Unprintable(Exception):
    """An error whose str() raises."""

    def __str__(self) -> str:
        raise Unprintable


class MiddlewareCase(StoreCase):
    """A case with an engine that captures."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = self.open()
        self.engine.capture_http(keep_text="* */*")

    def ended(self) -> List[Fields]:
        """The exchanges that have ended."""
        return [dict(record.fields) for record in cordwood.read(self.store, kinds="http")
                if record.fields["http.op"] == "end"]

    def told(self) -> List[str]:
        """Our own diagnostics."""
        return [record.message for record in cordwood.read(self.store)
                if record.logger == "Cordwood.HTTP"]

    def wsgi(self, app: Any, **changed: Any) -> bytes:
        """One request, without validators."""
        environ: Dict[str, Any] = {
            "REQUEST_METHOD": "GET", "PATH_INFO": "/x", "QUERY_STRING": "", "SERVER_NAME": "h",
            "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(), **changed}
        self.started: List[Any] = []
        result = cordwood.WSGIMiddleware(app, self.engine)(
            environ, lambda *given, **named: self.started.append((given, named)))
        return b"".join(result)

    def asgi(self, app: Any, scope: Fields) -> List[Fields]:
        """Calls an application; what it sent."""
        sent: List[Fields] = []

        async def receive() -> Fields:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Fields) -> None:
            headers = message.get("headers")
            sent.append(message if headers is None else {**message, "headers": list(headers)})
        asked = {"type": "http", "method": "GET", "path": "/x", "scheme": "http",
                 "headers": [(b"host", b"shop.example")], "query_string": b"",
                 "http_version": "1.1", "client": ("192.0.2.1", 5), **scope}
        asyncio.run(cordwood.ASGIMiddleware(app, self.engine)(asked, receive, send))
        return sent


def greet(environ: Any, start_response: Any) -> Any:
    """Answers."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hi"]


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Answers."""
    await send(START)
    await send({"type": "http.response.body", "body": b"hi"})


ENVIRONS: List[Fields] = [
    {"PATH_INFO": "/中"}, {"SCRIPT_NAME": "/中"}, {"PATH_INFO": None}, {"SERVER_PROTOCOL": None},
    {"SERVER_PORT": None, "SERVER_NAME": None}, {"REQUEST_METHOD": None}, {"QUERY_STRING": 5},
    {"REMOTE_ADDR": 7, "REMOTE_PORT": b"5"}, {"HTTP_TRACEPARENT": None}, {"HTTP_X": 5},
    {"wsgi.url_scheme": None}]
SCOPES: List[Fields] = [
    {"client": ("1.2.3.4",)}, {"client": 5}, {"server": ("h",), "headers": []},
    {"query_string": "a"}, {"raw_path": "/x"}, {"path": None}, {"path": b"/x"},
    {"headers": [("host", "shop.example")]}, {"headers": [(b"host",)]}, {"headers": 5},
    {"method": None}, {"http_version": None}, {"http_version": []}]


class WSGI(MiddlewareCase):
    def test_odd_environments(self) -> None:
        for on in (True, False):
            self.engine.capture_http(enabled=on)
            for changed in ENVIRONS:
                with self.subTest(changed=changed, on=on):
                    self.assertEqual(self.wsgi(greet, **changed), b"hi")

    def test_a_key_that_is_no_text(self) -> None:
        environ: Dict[Any, Any] = {"REQUEST_METHOD": "GET", 5: 6}
        self.assertEqual(cordwood.WSGIMiddleware(greet, self.engine)(
            environ, lambda status, headers: None), [b"hi"])

    def test_a_path_beyond_latin_1(self) -> None:
        self.wsgi(greet, PATH_INFO="/中")
        self.wsgi(greet, PATH_INFO="/Ã©")
        self.assertEqual([one["url.full"] for one in self.ended()],
                         ["http://h/%E4%B8%AD", "http://h/%C3%A9"])

    def test_start_response_by_name_and_with_an_odd_status(self) -> None:
        def named(environ: Any, start_response: Any) -> Any:
            start_response("200 OK", [], exc_info=None)
            return [b"hi"]

        def odd(environ: Any, start_response: Any) -> Any:
            start_response(200, None)
            return [b"hi"]
        self.assertEqual(self.wsgi(named), b"hi")
        self.assertEqual(self.started, [(("200 OK", []), {"exc_info": None})])
        self.assertEqual(self.wsgi(odd), b"hi")
        self.assertEqual(self.started, [((200, None), {})])

    def test_errors_that_cannot_be_shown(self) -> None:
        def app(environ: Any, start_response: Any) -> Any:
            raise Unprintable
        with self.assertRaises(Unprintable):
            self.wsgi(app)
        one, = self.ended()
        self.assertEqual((one["error.type"], one["error.message"]),
                         ("Unprintable", "<unprintable Unprintable object>"))

    def test_a_log_that_raises(self) -> None:
        """If the engine is closed, the diagnostic of a mistake goes to Python's log."""
        def refuse(record: logging.LogRecord) -> bool:
            heard.append(record.getMessage())
            raise LookupError("a host's filter")
        heard: List[str] = []
        log = logging.getLogger("Cordwood.HTTP")
        log.addFilter(refuse)
        self.addCleanup(log.removeFilter, refuse)
        app = cordwood.WSGIMiddleware(greet, self.engine)
        self.engine.close()
        broken = unittest.mock.patch.object(middleware, "_state", side_effect=Unprintable)
        with broken:
            self.assertEqual(app({"REQUEST_METHOD": "GET"}, lambda status, headers: None), [b"hi"])
        self.assertEqual(heard, ["HTTP capture failed: Unprintable: "
                                 "<unprintable Unprintable object>"])


class ASGI(MiddlewareCase):
    def test_odd_scopes(self) -> None:
        for on in (True, False):
            self.engine.capture_http(enabled=on)
            for scope in SCOPES:
                with self.subTest(scope=scope, on=on):
                    self.assertEqual(len(self.asgi(hello, scope)), 2)

    def test_what_is_text_in_a_scope(self) -> None:
        self.asgi(hello, {"query_string": "a=b", "raw_path": "/x%20y",
                          "headers": [("host", "shop.example")]})
        one, = self.ended()
        self.assertEqual(one["url.full"], "http://shop.example/x%20y?a=b")
        self.assertEqual(self.told(), [])

    def test_half_an_address(self) -> None:
        self.asgi(hello, {"client": ("192.0.2.7",), "server": ("h",), "headers": []})
        one, = self.ended()
        self.assertEqual(one["url.full"], "http://h/x")
        self.assertEqual(self.told(), [])

    def test_headers_that_can_be_read_once(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.extend(scope["headers"])
            await send({**START, "headers": iter([(b"x-a", b"1")])})
            await send({"type": "http.response.body", "body": b"hi"})
        seen: List[Any] = []
        sent = self.asgi(app, {"headers": iter([(b"host", b"shop.example")])})
        self.assertEqual(seen, [(b"host", b"shop.example")])
        self.assertEqual(sent[0]["headers"], [(b"x-a", b"1")])
        one, = self.ended()
        self.assertIn("x-a: 1", one["http.response.headers"])

    def test_files_that_the_server_sends(self) -> None:
        async def by_path(scope: Any, receive: Any, send: Any) -> None:
            await send({**START, "headers": [(b"Content-Length", b"7")]})
            await send({"type": "http.response.pathsend", "path": "/x"})

        async def by_file(scope: Any, receive: Any, send: Any) -> None:
            await send(START)
            await send({"type": "http.response.zerocopysend", "file": 0, "count": 3,
                        "more_body": True})
            await send({"type": "http.response.zerocopysend", "file": 0, "count": 4})
        for app in by_path, by_file:
            self.asgi(app, {})
        found = self.ended()
        self.assertEqual(len(found), 2)
        for one in found:
            self.assertNotIn("error.type", one)
            self.assertEqual((one["http.response.status_code"], one["http.response.body.note"]),
                             (200, "not shown"))
            self.assertEqual(one["http.response.body.size"], 7)

    def test_a_file_of_which_more_should_come(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send(START)
            await send({"type": "http.response.zerocopysend", "file": 0, "more_body": True})
        self.asgi(app, {})
        one, = self.ended()
        self.assertEqual(one["error.type"], "incomplete")


class Conversations(MiddlewareCase):
    """The conversation that a client names, in the records of the application."""

    def inside(self, header: str, value: str) -> List[Any]:
        """The field of a record written within a request with that header."""
        log = self.engine.logger("app")

        def app(environ: Any, start_response: Any) -> Any:
            log.info("%s", header)
            return greet(environ, start_response)
        self.wsgi(app, **{f"HTTP_{header.upper().replace('-', '_')}": value})
        return [record.fields.get("http.conversation") for record in self.records()][-1:]

    def test_ids_are_taken(self) -> None:
        for value in ("7d1f", "A-b_c.d:9", "x" * 128):
            self.assertEqual(self.inside("X-Conversation-Id", value), [value])

    def test_what_may_be_a_secret_is_not(self) -> None:
        for value in ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "password=HUNTER2", "a b",
                      "Bearer HUNTER2", "x" * 129, "é", "7d1f\n"):
            self.assertEqual(self.inside("X-Conversation-Id", value), [None])

    def test_headers_that_are_secrets(self) -> None:
        for header, more in (("X-Session-Id", {}), ("X-Auth-Token", {}), ("Authorization", {}),
                             ("X-Shop-Visit", {"redact_headers": iter(["x-shop-visit"])}),
                             ("X-Customer-No", {"redact_keys": "customerNo"})):
            options: Fields = dict(more)
            self.engine.capture_http(conversation_header=header, **options)
            self.assertEqual(self.inside(header, "7d1f"), [None], header)
        self.engine.capture_http(conversation_header="X-Shop-Visit", redact_keys=["customer_no"])
        self.assertEqual(self.inside("X-Shop-Visit", "7d1f"), ["7d1f"])

    def test_patterns(self) -> None:
        """A pattern may match what a client says, so neither the application's records nor the
        exchange's contain it; they do contain what the host itself says."""
        card = "4111111111111111"
        self.engine.capture_http(redact_patterns=iter(["[0-9]{16}"]))
        self.assertEqual(self.inside("X-Conversation-Id", card), [None])
        self.assertFalse([record for record in self.records() if card in str(record)])
        for value in ("7d1f", card):
            self.assertEqual(self.inside("X-Conversation-Id", value), [None])
        with cordwood.conversation("of the host"):
            self.assertEqual(self.inside("X-Other", "x"), ["of the host"])
        self.engine.capture_http(keep_text="* */*")
        self.assertEqual(self.inside("X-Conversation-Id", "7d1f"), ["7d1f"])

    def test_names_are_those_of_the_engine(self) -> None:
        source = (Path(__file__).resolve().parents[3] / "Sources" / "CordwoodTrace" / "HTTP"
                  / "Redaction" / "SecretDefaults.swift").read_text()
        # The others occur only in URLs and forms, not in headers.
        listed = re.findall(r'"([^"]+)"', "".join(re.findall(
            r"static let (?:headers|endings|keys|wholes) = \[.*?\]", source, re.S)))
        self.assertGreater(len(listed), 50)
        self.assertEqual([name for name in listed if not is_secret(name)], [])
        for name in ("userPin", "X-Auth-Token", "password2", "accesstoken", "token_1", "dbPWD",
                     "userpin", "MYSQLROOTPIN", "Пароль", "ŞİFRE", "CONTRASEÑA",
                     "contrasen\u0303a", "ハ\u309aスワート\u3099", "xyzpwd", "atmpin",
                     unicodedata.normalize("NFD", "비밀번호")):
            self.assertTrue(is_secret(name), name)
        self.assertTrue(is_secret("GROẞE", ["große"]))
        for name in ("X-Conversation-Id", "X-Request-Id", "shopping", "X-Pinned", "", "design",
                     "shipping", "compass", "inside", "username", "ssid"):
            self.assertFalse(is_secret(name), name)
        fronts = source.partition("static let fronts")[2].partition("]")[0]
        self.assertEqual(_FRONTS, re.findall(r'"([^"]+)"', fronts))


if __name__ == "__main__":
    unittest.main()
