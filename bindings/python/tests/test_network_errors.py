"""B-NET for a host's own requests: NetworkError from urllib, http.client and objects that look like
the answers of other clients; its words, its record, and the exchange it belongs to. The real
clients are in Tests/Behaviour."""
import asyncio
import http.client
import io
import itertools
import json
import os
import pickle
import socket
import subprocess
import threading
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from answering import Answer, Answering
from support import StoreCase, cordwood
from test_upload_errors import ODATA, TOOL, XML

ID = "4FDF3748112322F4E10000000A420C41"
V4 = json.dumps({"error": {"code": "SY/530", "message": "No such team", "details": [
    {"code": "A", "message": "wrong", "target": "Team/Id"}]}}).encode()


class Unanswered(urllib.request.HTTPRedirectHandler):
    """Leaves redirections as they are."""

    def redirect_request(self, *_: Any) -> None:
        """None is followed."""


def asked(url: str) -> Any:
    """The answer, or the exception."""
    try:
        return urllib.request.build_opener(Unanswered).open(url, timeout=30)
    except (OSError, http.client.HTTPException) as error:
        return error


class Plain:
    """An answer like those of requests and httpx."""

    def __init__(self, status: int, body: bytes = b"", headers: Optional[Dict[str, str]] = None,
                 url: str = "https://api.example.com/teams?token=hush") -> None:
        self.status_code, self.content, self.headers = status, body, headers or {}
        self.request = self
        self.method, self.url = "post", url


class Rest:
    """What has not come yet of an aiohttp answer or a connection."""

    def __init__(self, body: bytes) -> None:
        self.file, self.most = io.BytesIO(body), 0

    async def read(self, count: int) -> bytes:
        """The next bytes."""
        await asyncio.sleep(0)
        self.most = max(self.most, self.file.tell() + count)
        return self.file.read(count)

    def unread_data(self, body: bytes) -> None:
        """Makes these bytes the next ones again."""
        self.file = io.BytesIO(body + self.file.read())


class Awaited:
    """An answer like aiohttp's."""
    method, url = "GET", "https://api.example.com/teams"

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.content, self.headers = status, Rest(body), {"Retry-After": "7"}
        self._body: Optional[bytes] = None

    async def read(self) -> bytes:
        """Its body."""
        if self._body is None:
            self._body = await self.content.read(1 << 30)
        return self._body


class Streamed:
    """An answer like httpx's, whose body has not been read."""
    method, url = "GET", "https://api.example.com/teams"

    def __init__(self, status: int, pieces: Iterator[bytes], **headers: str) -> None:
        self.status_code, self.headers = status, headers
        self._pieces, self.seen = pieces, 0

    @property
    def content(self) -> bytes:
        """What was read."""
        return self._content

    def iter_bytes(self, _: Optional[int] = None) -> Iterator[bytes]:
        """Piece by piece."""
        for piece in self._pieces:
            self.seen += len(piece)
            yield piece

    def read(self) -> bytes:
        """All of it."""
        if not hasattr(self, "_content"):
            self._content = b"".join(self.iter_bytes())
        return self._content


class Lazy:
    """An answer like that of requests with stream=True."""
    method, url = "GET", "https://api.example.com/teams"

    def __init__(self, status: int, pieces: Iterator[bytes]) -> None:
        self.status_code, self.headers = status, {"Transfer-Encoding": "chunked"}
        self._content: Any = False
        self.raw = Streamed(status, pieces)
        self.raw.stream = lambda _, decode_content: self.raw.iter_bytes()  # type: ignore

    @property
    def content(self) -> bytes:
        """All of it."""
        if self._content is False:
            self._content = b"".join(self.raw.stream(10240, decode_content=True))  # type: ignore
        return self._content  # type: ignore[no-any-return]


class NetworkErrorTest(StoreCase):
    """What a NetworkError says about a failed request."""

    def server(self, answer: Answer) -> Answering:
        """A server that always answers so."""
        server = Answering(then=answer)
        self.addCleanup(server.close)
        return server

    def error(self, ended: Any) -> cordwood.NetworkError:
        """The error of what failed."""
        found = cordwood.NetworkError.of(ended)
        assert found is not None
        return found

    def test_b_net_1_each_outcome_has_its_class(self) -> None:
        cases = [(302, cordwood.NetworkRedirection, "redirection"),
                 (404, cordwood.NetworkClientError, "client"),
                 (500, cordwood.NetworkServerError, "server"),
                 (700, cordwood.NetworkUnknownOutcome, "unknown")]
        for status, kind, word in cases:
            with self.subTest(status=status):
                server = self.server(Answer(status, headers=(
                    ("Location", "https://other.example/a?token=hush"), ("Retry-After", "7"))))
                error = self.error(asked(server.url + "/a/b?token=hush#top"))
                self.assertIs(type(error), kind)
                self.assertEqual((error.http_status, error.outcome, error.cause),
                                 (status, word, f"HTTP {status}"))
                self.assertEqual((error.method, error.url, error.target),
                                 ("GET", server.url + "/a/b", server.url))
                self.assertEqual(error.location,
                                 "https://other.example" if status == 302 else "")
                self.assertEqual(error.retry_after, 7.0)
                self.assertNotIn("hush", repr(vars(error)))

    def test_b_net_1_no_answer(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # but nothing listens
            error = self.error(asked(f"http://127.0.0.1:{taken.getsockname()[1]}/?token=hush"))
        self.assertIs(type(error), cordwood.NetworkRequestFailed)
        self.assertEqual((error.http_status, error.cause), (0, "Connection refused"))
        cases = [(urllib.error.URLError(socket.gaierror(-2, "Name or service not known")),
                  "dns: Name or service not known"),
                 (http.client.RemoteDisconnected("closed"), "RemoteDisconnected: closed"),
                 (socket.timeout("timed out"), "timeout: timed out"),
                 (asyncio.CancelledError(), "CancelledError"),
                 (ValueError("no for https://me:pw@a.example/b?token=hush#x (y)"),
                  "ValueError: no for https://a.example/b (y)"),
                 (ValueError("no for https://me:p@w@a.example:80/b?m=a@b"),
                  "ValueError: no for https://a.example:80/b"),
                 (ValueError("no for http://[::1]:80/b:c/d@e and //a.example:8/@x:y"),
                  "ValueError: no for http://[::1]:80/b:c/d@e and //a.example:8/@x:y")]
        # Unescaped characters in a password, and other messages that quote it.
        for mark in "/?#":
            cases += [(ValueError(f"Failed to parse: https://svc:ab{mark}c@d@host/odata"),
                       "ValueError: Failed to parse: https://host/odata"),
                      (asked(f"https://svc:ab{mark}cd@host/odata"),
                       "InvalidURL: nonnumeric port: …")]
        cases += [(ValueError("Invalid port: 'ab'"), "ValueError: Invalid port: …"),
                  (ValueError("Invalid port: '123456'"), "ValueError: Invalid port: '123456'"),
                  (ValueError("Port could not be cast to integer value as 'a\"b'"),
                   "ValueError: Port could not be cast to integer value as …")]
        for raised, cause in cases:
            with self.subTest(cause):
                self.assertEqual((self.error(raised).cause, self.error(raised).outcome),
                                 (cause, "request_failed"))

    def test_b_net_1_half_an_answer(self) -> None:
        broken = http.client.IncompleteRead(b"x", 99)
        broken.response = Plain(200)  # type: ignore[attr-defined]
        error = self.error(broken)
        self.assertEqual((error.outcome, error.http_status, error.url),
                         ("request_failed", 200, "https://api.example.com/teams"))
        self.assertIn("IncompleteRead", error.describe())

    def test_b_net_1_an_answer_that_is_not_understood(self) -> None:
        class ContentTypeError(OSError):
            """Like aiohttp's."""
            status, headers = 200, {"Content-Type": "text/html"}

        for raised, status, cause in (
                (json.JSONDecodeError("Expecting value", "<html>", 0), 0,
                 "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
                (ContentTypeError("unexpected mimetype"), 200,
                 "ContentTypeError: unexpected mimetype")):
            with self.subTest(cause):
                error = self.error(raised)
                self.assertEqual((type(error), error.outcome, error.http_status, error.cause),
                                 (cordwood.NetworkUnknownOutcome, "unknown", status, cause))
                self.assertIn("an answer that is not understood", error.describe())
                self.assertIn("nicht zu verstehen", error.describe("de"))
        error.log(self.open().logger("net"))
        self.assertEqual(self.only().fields["outcome"], "unknown")

    def test_b_net_1_no_error(self) -> None:
        for answer in (Plain(200, b"x"), Plain(204), asked(self.server(Answer(201)).url)):
            self.assertIsNone(cordwood.NetworkError.of(answer))
            self.assertIs(cordwood.NetworkError.check(answer), answer)
        for thing in (None, 7, "x", object(), cordwood.NetworkError, subprocess.run):
            with self.assertRaises(TypeError):
                cordwood.NetworkError.of(thing)

    def test_b_net_2_odata(self) -> None:
        error = self.error(asked(self.server(Answer(403, ODATA)).url))
        self.assertEqual((error.code, error.message, error.language, error.transaction_id),
                         ("SY/530", "No such team", "en", ID))
        self.assertEqual([tuple(detail) for detail in error.details],
                         [("ZX/001", "not valid", "Team/Id", "error")])
        error = self.error(Plain(400, V4, {"content-language": "en"}))
        self.assertEqual((error.message, error.language, error.details[0].property, error.method),
                         ("No such team", "en", "Team/Id", "POST"))
        error = self.error(Plain(500, XML))
        self.assertEqual((error.code, error.message, error.language, error.transaction_id),
                         ("C/1", "Nein", "de", "TX9"))
        for body in (b"", b"{", b"<html>", b"{}" * 200_000, ODATA + b" " * 300_000):
            self.assertEqual((self.error(Plain(400, body)).code,
                              self.error(Plain(400, body)).outcome), ("", "client"))

    def test_b_net_2_the_body_can_still_be_read(self) -> None:
        raised = asked(self.server(Answer(403, ODATA)).url)
        self.assertEqual(self.error(raised).code, "SY/530")
        self.assertEqual(raised.read(), ODATA)
        self.assertEqual(cordwood.NetworkError.of(Plain(403), body=ODATA).code,  # type: ignore
                         "SY/530")

    def test_b_net_2_no_more_of_a_body_than_an_error_may_have(self) -> None:
        endless = itertools.repeat(b" " * 10_000)
        answers: Tuple[Any, ...] = (Streamed(404, endless), Lazy(404, endless))
        for answer in answers:
            self.assertEqual(self.error(answer).code, "")
            self.assertLess(getattr(answer, "raw", answer).seen, 300_000)
        for status in (302, 304, 101, 600, 700):
            unread = Streamed(status, endless)
            self.error(unread)
            self.assertEqual(unread.seen, 0, status)
        for length, seen in (("262149", 0), ("9" * 99, 0), ("262148", len(ODATA)),
                             ("?", len(ODATA))):
            said = Streamed(404, iter([ODATA]), **{"content-LENGTH": length})
            self.error(said)
            self.assertEqual(said.seen, seen, length)

        async def main() -> None:
            answer = Awaited(404, b" " * 1_000_000)
            await cordwood.NetworkError.of_async(answer)
            self.assertLess(answer.content.most, 300_000)
            self.assertEqual(await answer.read(), b" " * 1_000_000)
            moved = Awaited(302, ODATA)
            await cordwood.NetworkError.of_async(moved)
            self.assertEqual(moved.content.most, 0)
        asyncio.run(main())

    def test_b_net_2_bodies_are_put_back(self) -> None:
        for body in (ODATA, ODATA + b" " * 400_000):
            def pieces(body: bytes = body) -> Iterator[bytes]:
                return iter([body[at:at + 9_999] for at in range(0, len(body), 9_999)])

            raised = asked(self.server(Answer(403, body)).url)
            unsaid = urllib.error.HTTPError(
                "http://a", 403, "no", http.client.HTTPMessage(), io.BytesIO(body))
            code = "SY/530" if body == ODATA else ""
            answers: Tuple[Tuple[Any, Any], ...] = (
                (Streamed(403, pieces()), Streamed.read), (raised, None),
                (Lazy(403, pieces()), lambda one: one.content), (unsaid, None))
            for answer, read in answers:
                with self.subTest(type(answer).__name__, length=len(body)):
                    self.assertEqual([self.error(answer).code, self.error(answer).code], [code] * 2)
                    self.assertEqual(read(answer) if read else answer.read(), body)

    def test_b_net_3_thrown_from_where_it_was_checked(self) -> None:
        log = self.open().logger("net")

        async def main() -> None:
            await cordwood.NetworkError.check_async(Awaited(403, ODATA), log)

        def function() -> None:
            cordwood.NetworkError.check(Plain(403, ODATA), log)

        for call in (function, lambda: asyncio.run(main())):
            with self.assertRaises(cordwood.NetworkClientError):
                call()
        for record, name in zip(self.records(), ("function", "main")):
            self.assertEqual(os.path.basename(record.file or ""), os.path.basename(__file__))
            self.assertTrue((record.function or "").endswith(name), record.function)

    def test_b_net_3_thrown(self) -> None:
        log = self.open().logger("net")
        with self.assertRaises(cordwood.NetworkClientError) as caught:
            cordwood.NetworkError.check(Plain(403, ODATA), log)
        self.assertEqual(self.only().fields["transaction.id"], caught.exception.transaction_id)
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(copy), vars(copy), str(copy)),
                         (type(caught.exception), vars(caught.exception), str(caught.exception)))
        self.assertTrue(copy.log(log))

    def test_b_net_3_awaited(self) -> None:
        log = self.open().logger("net")

        async def main() -> None:
            answer = Awaited(429, ODATA)
            self.assertEqual(self.error(answer).code, "", "it is not there yet")
            with self.assertRaises(cordwood.NetworkClientError) as caught:
                await cordwood.NetworkError.check_async(answer, log)
            self.assertEqual((caught.exception.code, caught.exception.retry_after),
                             ("SY/530", 7.0))
            self.assertEqual(self.error(answer).code, "SY/530", "now it is")
            self.assertIsNone(await cordwood.NetworkError.of_async(Awaited(200, b"x")))
        asyncio.run(main())
        self.assertEqual(self.only().fields["error.code"], "SY/530")

    def test_b_net_4_its_record(self) -> None:
        log = self.open().logger("net.teams")
        error = self.error(asked(self.server(Answer(403, ODATA)).url + "/teams?token=hush"))
        with cordwood.context(user="ann"), cordwood.trace("ab" * 16, "cd" * 8):
            self.assertTrue(error.log(log, "teams", page=2))
        record = self.only(level="warn")
        self.assertEqual((record.logger, record.level, record.trace_id),
                         ("net.teams", "WARN", "ab" * 16))
        self.assertEqual(os.path.basename(record.file or ""), os.path.basename(__file__))
        self.assertEqual(record.fields, {
            "http.request.method": "GET", "url.full": error.url, "http.status": 403,
            "cause": "HTTP 403", "outcome": "client", "transaction.id": ID,
            "error.code": "SY/530", "error.message": "No such team",
            "error.detail": "error ZX/001: not valid (Team/Id)", "page": 2, "user": "ann"})
        self.assertEqual(record.message, f"teams: GET {error.url}: {error.describe()}")
        self.assertTrue(error.log(log, level="fatal"))
        self.assertEqual(self.records()[1].level, "FATAL")

    def test_b_net_4_its_own_fields_before_those_of_the_context(self) -> None:
        log = self.open().logger("net")
        names = {"cause": "x", "error.detail": "x", "error.detail_2": "mine", "location": "Berlin",
                 "http.id": "mine", "user": "ann"}
        with cordwood.context(**names):
            self.assertTrue(self.error(Plain(403, ODATA)).log(log))
        lines = subprocess.run([str(TOOL), "cat", self.store, "--json"], stdout=subprocess.PIPE,
                               check=True).stdout.splitlines()
        line, = (line for line in lines if b"SY/530" in line)
        found: List[Any] = []

        def take(pairs: List[Any]) -> Dict[str, Any]:
            found.extend(pairs)
            return dict(pairs)
        json.loads(line, object_pairs_hook=take)
        keys = [key for key, _ in found]
        self.assertEqual(len(keys), len(set(keys)), keys)
        fields = self.only().fields
        self.assertEqual((fields["cause"], fields["error.detail"]),
                         ("HTTP 403", "error ZX/001: not valid (Team/Id)"))
        self.assertEqual({name: fields[name] for name in names if fields[name] == names[name]},
                         {"error.detail_2": "mine", "location": "Berlin", "http.id": "mine",
                          "user": "ann"})

    def test_b_net_4_levels(self) -> None:
        engine = self.open()
        log = engine.logger("net")
        for status, level in ((302, "WARN"), (404, "WARN"), (500, "ERROR"), (700, "ERROR")):
            self.assertTrue(self.error(Plain(status)).log(log))
            self.assertEqual(self.records()[-1].level, level)
        self.assertTrue(self.error(OSError(7, "no")).log(log))
        self.assertEqual(self.records()[-1].level, "ERROR")
        engine.set_level("net", "fatal")
        self.assertFalse(self.error(Plain(404)).log(log))
        engine.set_level("net", "info")
        self.assertTrue(self.error(Plain(404)).log(log, level="loud"))
        self.assertEqual(self.records()[-1].level, "WARN")
        self.assertIn("'loud'", str(self.records()[-1].fields["cordwood.level_error"]))
        many: Dict[str, Any] = {f"k{index}": index for index in range(10_000)}
        self.assertTrue(self.error(Plain(404)).log(log, **many))
        missing: Any = self.records()[-1].fields["cordwood.fields_cut"]
        self.assertGreater(missing, 5_000)
        engine.close()
        self.assertFalse(self.error(Plain(404)).log(log, level="fatal"))

    def test_b_net_4_secrets(self) -> None:
        engine = self.open()
        engine.capture_http(redact_patterns=["ACME-[0-9]+"])
        body = ODATA.replace(b"No such team", b"password=hush of ACME-77").replace(
            b"not valid", b"ACME-78")
        error = self.error(Plain(400, body, url="https://me:hush@a.example/ACME-79?token=hush"))
        self.assertTrue(error.log(engine.logger("net")))
        record = self.only()
        self.assertNotRegex(record.message + repr(record.fields), "hush|ACME-7")
        self.assertEqual(record.fields["url.full"], "https://a.example/[redacted]")
        self.assertEqual(record.fields["transaction.id"], ID)

    def test_b_net_4_found_by_the_transaction(self) -> None:
        self.error(Plain(403, ODATA)).log(self.open().logger("net"))
        for words in (("grep", ID, self.store),
                      ("cat", self.store, "--where", f"transaction.id={ID}")):
            done = subprocess.run([str(TOOL), *words], stdout=subprocess.PIPE, check=True)
            self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
            self.assertIn(b"No such team", done.stdout)

    def test_b_net_4_the_exchange_that_it_belongs_to(self) -> None:
        engine = self.open()
        engine.capture_http()
        server = self.server(Answer(403, ODATA))
        with cordwood.install_http_hooks(engine):
            refused = self.error(asked(server.url + "/teams"))
            connection = http.client.HTTPConnection(server.url[7:])
            connection.request("POST", "/teams", b"{}")
            post = self.error(connection.getresponse())
            connection.close()
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                lost = self.error(asked(f"http://127.0.0.1:{taken.getsockname()[1]}/"))
        self.assertEqual((post.method, post.code), ("POST", "SY/530"))
        for error in (refused, post, lost):
            self.assertTrue(error.log(engine.logger("net")))
        exchanges = {record.fields["http.id"]: record.fields
                     for record in cordwood.read(self.store, kinds="http")
                     if record.fields["http.op"] == "end"}
        found = [exchanges[record.fields["http.id"]] for record in self.records()
                 if record.logger == "net"]
        self.assertEqual([one.get("http.response.status_code") for one in found], [403, 403, None])
        self.assertEqual(found[0]["odata.transaction_id"], ID)
        self.assertEqual([one["http.request.method"] for one in found], ["GET", "POST", "GET"])

    def test_b_net_5_words(self) -> None:
        said = set()
        for ended in (Plain(302), Plain(404), Plain(500), Plain(700), OSError(7, "no")):
            error = self.error(ended)
            self.assertEqual(str(error), error.describe())
            said |= {error.describe("en"), error.describe("de_AT"), error.describe("fr")}
        self.assertEqual(len(said), 10)

    def test_odd_answers(self) -> None:
        class Raising:
            """Every attribute raises."""

            def __getattr__(self, name: str) -> Any:
                raise RuntimeError(name)

        class Odd(Plain):
            """Nothing is what it should be."""

            def __init__(self, status: Any, headers: Any, url: Any) -> None:
                super().__init__(404)
                self.status_code, self.headers, self.url = status, headers, url
                self.method = self.content = Raising()  # type: ignore[assignment]

            def read(self) -> Any:
                """Breaks off."""
                raise OSError("broken off")

        with self.assertRaises(TypeError):
            cordwood.NetworkError.of(Raising())
        log = self.open().logger("net")
        for status in (404, -7, 10 ** 30, 1):
            for headers in (None, 7, {"Retry-After": 7, b"location": None}, Raising()):
                for url in (None, 7, Raising(), "\udcff\0?", b"x"):
                    error = self.error(Odd(status, headers, url))
                    self.assertTrue(error.describe("de"))
                    self.assertTrue(error.log(log, "\udcff", odd=Raising()))
        for raised in (Exception(Raising()), OSError(), OSError(7, None), KeyboardInterrupt()):
            self.assertEqual(self.error(raised).outcome, "request_failed")

    def test_many_threads(self) -> None:
        log = self.open().logger("net")
        kept: List[bool] = []

        def work() -> None:
            kept.extend(self.error(Plain(403, ODATA)).log(log) for _ in range(50))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(kept), all(kept), len(self.records())), (200, True, 200))


if __name__ == "__main__":
    unittest.main()
