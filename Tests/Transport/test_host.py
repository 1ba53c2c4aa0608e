"""Hosts that answer challenges and send for themselves, in Python and C: what they receive, and
that nothing they do leads to more than an outcome."""

import http.client
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
from pathlib import Path

from support import BUILD, ROOT, Scripted, StoreCase, WORK, cordwood, until


class Credentials(StoreCase):
    """The host is asked for new ones on 401 and 403."""

    def asker(self, *answers):
        """A callable that returns one answer after another, and the list of its calls."""
        asked = []

        def ask(target, challenge):
            asked.append((target, challenge))
            answer = answers[min(len(asked), len(answers)) - 1]
            if isinstance(answer, Exception):
                raise answer
            return answer
        return ask, asked

    def heads(self, server, name):
        return [request["headers"].get(name) for request in server.requests]

    def test_new_token(self):
        server = Scripted(self, [{"status": 401, "headers": {
            "WWW-Authenticate": "Bearer realm=\"logs\""}}])
        ask, asked = self.asker("new-token")
        self.add(server.url, auth_token="old-token", credentials=ask)
        self.log.info("x")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(asked, [("target", "Bearer realm=\"logs\"")])
        self.assertEqual(self.heads(server, "authorization"),
                         ["Bearer old-token", "Bearer new-token"])
        self.assertEqual(len(set(self.heads(server, "idempotency-key"))), 1)
        self.assertEqual(server.body(1), server.body(2))
        self.log.info("y")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(self.heads(server, "authorization")[2], "Bearer new-token")
        self.assertEqual(len(asked), 1)

    def test_user_and_password(self):
        server = Scripted(self, [{"status": 403}])
        ask, asked = self.asker(("Jörg", "pass:wört"))
        self.add(server.url, credentials=ask)
        self.log.info("x")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(asked, [("target", None)])
        self.assertEqual(self.heads(server, "authorization")[0], None)
        self.assertTrue(self.heads(server, "authorization")[1].startswith("Basic "))

    def test_refused_twice(self):
        server = Scripted(self, [{"status": 401}, {"status": 401}])
        ask, asked = self.asker("second", "third")
        self.add(server.url, auth_token="first", credentials=ask)
        self.log.info("x")
        error = self.fails()
        self.assertEqual((error.outcome, error.result.waiting, error.result.last_http_status),
                         ("client", 1, 401))
        self.assertEqual((len(asked), len(server.requests)), (1, 2))
        # The target rests. An explicit call tries, and asks, again.
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(self.heads(server, "authorization"),
                         ["Bearer first", "Bearer second", "Bearer second"])

    def test_none_the_same_and_nonsense(self):
        answers = (None, "first", "", "a\nb", "zwölf", ("a:b", "c"), ("only",), 7, b"bytes")
        server = Scripted(self, [{"status": 401}] * 4 * len(answers))
        self.log.info("x")
        with Unraisable() as shown:
            for answer in answers:
                before = len(server.requests)
                ask, asked = self.asker(answer)
                self.add(server.url, auth_token="first", credentials=ask)
                error = self.fails()
                self.assertEqual((error.result.waiting, error.result.last_http_status), (1, 401))
                # The background may send as soon as the target is added, before upload().
                self.assertEqual(len(asked), len(server.requests) - before, answer)
                self.assertLessEqual(len(asked), 2, answer)
                self.engine.remove_target("target")
        self.assertLessEqual(len(shown), 8)

    def test_raised(self):
        server = Scripted(self, [{"status": 401}])
        ask, asked = self.asker(RuntimeError("ask-secret"))
        self.add(server.url, auth_token="first", credentials=ask)
        self.log.info("x")
        with Unraisable() as shown:
            self.assertEqual(self.fails().result.waiting, 1)
        self.assertEqual((len(asked), shown), (1, ["RuntimeError"]))
        self.assertNotIn("ask-secret", str(self.causes))
        self.assertEqual(self.upload().uploaded, 1)

    def test_without_a_callable(self):
        server = Scripted(self, [{"status": 401}])
        self.add(server.url, auth_token="first")
        self.log.info("x")
        self.assertEqual(self.fails().result.waiting, 1)
        self.assertEqual(len(server.requests), 1)


class Unraisable:
    """Collects type names of what sys.unraisablehook receives meanwhile."""

    def __enter__(self):
        import sys
        self.names, self.before = [], sys.unraisablehook
        sys.unraisablehook = lambda shown: self.names.append(shown.exc_type.__name__)
        return self.names

    def __exit__(self, *_):
        import sys
        sys.unraisablehook = self.before


def send_by_http(request):
    """Typical code of a host."""
    parts = urllib.parse.urlsplit(request.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port,
                                            timeout=request.connect_timeout)
    try:
        path = parts.path or "/"
        connection.request(request.method, f"{path}?{parts.query}" if parts.query else path,
                           body=request.body, headers=request.headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


class PythonTransport(StoreCase):
    """A callable in place of libcurl."""

    def is_sent(self):
        """Whether an upload that a Retry-After delayed is now sent."""
        try:
            return self.upload().uploaded
        except cordwood.UploadError:
            return 0

    def test_sends(self):
        server = Scripted(self, [{"status": 503, "headers": {"Retry-After": "1"}}])
        self.add(f"{server.url}/a?b=c", auth_token="the-token", headers={"X-A": "b"},
                 method="PUT", transport=send_by_http)
        self.log.info("by hand")
        error = self.fails()
        self.assertEqual((error.outcome, error.result.last_http_status), ("server", 503))
        until(self.is_sent, "the second request")
        first, second = server.requests
        self.assertEqual((first["method"], first["path"]), ("PUT", "/a?b=c"))
        self.assertEqual(first["headers"]["authorization"], "Bearer the-token")
        self.assertEqual(first["headers"]["idempotency-key"], second["headers"]["idempotency-key"])
        self.assertNotIn("transfer-encoding", first["headers"])
        self.assertEqual(self.sent_lines(server.body(2))[0]["message"], "by hand")

    def test_credentials_and_redirection(self):
        server = Scripted(self, [{"status": 401}, {"status": 307, "headers": {"Location": "/n"}}])
        self.add(server.url + "/m", auth_token="old", credentials=lambda target, challenge: "new",
                 transport=send_by_http)
        self.log.info("x")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual([(request["path"], request["headers"]["authorization"])
                          for request in server.requests],
                         [("/m", "Bearer old"), ("/m", "Bearer new"), ("/n", "Bearer new")])

    def test_body_is_a_file(self):
        seen = []

        def send(request):
            body, kept = request.body, {"request": request}
            kept["whole"] = body.read()
            kept["size"], kept["length"] = len(body), int(request.headers["Content-Length"])
            body.seek(2)
            kept["part"], kept["tell"] = body.read(3), body.tell()
            body.seek(-4, 2)
            kept["end"], kept["over"] = body.read(100), body.read(1)
            kept["seconds"] = (request.connect_timeout, request.timeout)
            seen.append(kept)
            return 200
        self.add("http://nowhere.example/", transport=send, connect_timeout=3, request_timeout=7)
        for number in range(3000):
            self.log.info("line %d", number)
        self.assertEqual(self.upload().failed, 0)
        for kept in seen:
            whole = kept["whole"]
            self.assertEqual((kept["size"], kept["length"]), (len(whole), len(whole)))
            self.assertEqual((kept["part"], kept["tell"]), (whole[2:5], 5))
            self.assertEqual((kept["end"], kept["over"]), (whole[-4:], b""))
            self.assertEqual(kept["seconds"][0], 3)
            # After the end the request is unusable.
            self.assertTrue(kept["request"].stopped)
            with self.assertRaises(ValueError):
                kept["request"].body.read(1)
        lines = self.sent_lines(b"".join(kept["whole"] for kept in seen))
        self.assertEqual([line["message"] for line in lines], [f"line {n}" for n in range(3000)])

    def test_nonsense(self):
        """Each is retried, none is believed, nothing ends the process."""
        class Odd:
            """Neither a status nor a tuple."""
        bad = [0, -1, 99, 100, 199, 600, 1000, 1 << 80, True, None, "200", Odd(), (), (200, {}, b"",
               1), (200, {}, "text"), ("200", {}, b""), (200, 7, b"")]
        given = iter(bad)
        self.add("http://nowhere.example/", transport=lambda request: next(given))
        self.log.info("x")
        with Unraisable():
            for answer in bad:
                error = self.fails()
                self.assertEqual(error.result.waiting, 1, answer)
                self.assertEqual(error.result.last_http_status, 0, answer)
                self.assertIn(error.outcome, ("request_failed", "unknown"), answer)

    def test_large_answers_and_odd_headers(self):
        odd = [("a" * 9000, "b"), ("X", "c\r\nInjected: d"), ("\udcff", "\0")] + [("h", "v")] * 500
        answers = iter([(200, odd, b"x" * (64 << 20)), (200, {"ETag": 7}, bytearray(b"y")),
                        (204, None, None), (200,)])
        self.add("http://nowhere.example/", transport=lambda request: next(answers))
        for _ in range(4):
            self.log.info("x")
            self.assertEqual(self.upload().uploaded, 1)

    def test_raised(self):
        raised = [ValueError("mistake-secret"), ConnectionRefusedError(111, "x"),
                  TimeoutError("t"), http.client.BadStatusLine("line-secret"), KeyboardInterrupt()]
        given = iter(raised)

        def send(request):
            raise next(given)
        self.add("http://nowhere.example/", transport=send)
        self.log.info("x")
        with Unraisable() as shown:
            for error in raised:
                self.assertEqual(self.fails().outcome, "request_failed", error)
        self.assertEqual(shown, ["ValueError", "KeyboardInterrupt"])
        self.assertEqual(set(self.causes), {type(error).__name__ for error in raised})

    def test_close_stops_it(self):
        begun, ended = threading.Event(), threading.Event()

        def send(request):
            begun.set()
            while not request.stopped:
                time.sleep(0.01)
            with self.assertRaises(OSError):
                request.body.read(1)
            ended.set()
            raise OSError("stopped")
        self.add("http://nowhere.example/", transport=send)
        self.log.info("x")
        self.engine.upload_async()
        self.assertTrue(begun.wait(20))
        self.engine.close(10)
        self.assertTrue(ended.is_set())

    def test_options_of_libcurl_are_refused(self):
        for options in ({"proxy": "http://p"}, {"http_version": 2}, {"proxy": ""}):
            with self.assertRaises(cordwood.ArgumentError):
                self.add("http://nowhere.example/", transport=lambda request: 200, **options)


class CTransport(unittest.TestCase):
    """host.c, in its own process."""

    program = None

    @classmethod
    def setUpClass(cls):
        cls.program = WORK / "host"
        subprocess.run(
            ["gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-I",
             ROOT / "include", Path(__file__).with_name("host.c"), "-o", cls.program, "-L",
             BUILD / "lib", "-lcordwood", f"-Wl,-rpath,{BUILD / 'lib'}"], check=True)

    def run_host(self, mode, port=1):
        store = tempfile.mkdtemp(dir=WORK)
        done = subprocess.run([self.program, store, str(port), mode], capture_output=True,
                              text=True, timeout=90, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.causes = [record.fields["cause"] for record in cordwood.read(store, level="warn")
                       if "cause" in record.fields]
        return said

    def test_socket(self):
        server = Scripted(self, [])
        said = self.run_host("socket", server.port)
        self.assertEqual((said["status"], said["uploaded"]), ("CW_OK", "1"))
        request = server.requests[0]
        self.assertEqual(request["path"], "/in?key=url-secret")
        self.assertEqual(request["headers"]["authorization"], "Bearer old-secret")
        self.assertIn(b'"message":"from C"', server.body(1))

    def test_nobody_there(self):
        said = self.run_host("socket", 1)
        self.assertEqual((said["status"], said["outcome"]), ("CW_E_UPLOAD", "2"))
        self.assertEqual(set(self.causes), {"nobody there"})

    def test_new_token(self):
        server = Scripted(self, [{"status": 401, "headers": {"WWW-Authenticate": "Bearer x"}}])
        said = self.run_host("token", server.port)
        self.assertEqual((said["status"], said["asks"], said["calls"]), ("CW_OK", "1", "2"))
        self.assertEqual(said["challenge"], "Bearer x")
        self.assertEqual([request["headers"]["authorization"] for request in server.requests],
                         ["Bearer old-secret", "Bearer new-secret"])

    def test_bad_arguments(self):
        self.assertEqual(self.run_host("nulls")["status"], "CW_OK")

    def test_of_status_and_failure_the_later_holds(self):
        for mode in ("second-way", "anew"):
            said = self.run_host(mode)
            self.assertEqual((said["status"], said["http"], said["uploaded"], said["calls"]),
                             ("CW_OK", "200", "1", "1"), mode)
        said = self.run_host("taken-back")
        self.assertEqual((said["status"], said["waiting"]), ("CW_E_UPLOAD", "1"))
        self.assertEqual(self.causes[0], "half an answer")

    def test_huge_answer(self):
        self.assertEqual(self.run_host("huge")["status"], "CW_OK")

    def test_nonsense(self):
        causes = {"silent": "set no status", "odd": "returned", "failed": "CW_E_IO",
                  "cause": "line of the host's", "null-cause": "no cause", "0": "answered 0",
                  "99": "answered 99", "1000": "answered 1000", "-1": "answered -1",
                  "2147483647": "answered 2147483647"}
        for mode, cause in causes.items():
            said = self.run_host(mode)
            self.assertEqual((said["status"], said["http"], said["waiting"]),
                             ("CW_E_UPLOAD", "0", "1"), mode)
            self.assertIn(cause, self.causes[0], mode)


if __name__ == "__main__":
    unittest.main()
