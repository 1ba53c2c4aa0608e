"""B-HTTP-4 and B-HTTP-8: captured exchanges as another process sees them: live, in detail, as HAR
and as curl commands. The C calls themselves capture them."""

import base64
import http.server
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

import exchanges
from cases import full
from exchanges import HAR_SCHEMA, Exchange, answered
from json_schema import problems
from replaying import Followed, replay, run_line
from sending import CORDWOOD, StoreCase

ODATA = json.dumps({"error": {"code": "SY/530", "message": {"lang": "en", "value": "No such team"},
                              "innererror": {"transactionid": "4FDF3748112322F4E1"}}})
JSON = [("Content-Type", "application/json")]


class Reading(StoreCase):
    def setUp(self):
        super().setUp()
        exchanges.enable(self.engine)

    def cordwood(self, *arguments, code=0, **options):
        done = subprocess.run([CORDWOOD, *arguments, self.store], capture_output=True,
                              check=False, **options)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout.decode()

    def objects(self, *arguments, **options):
        return [json.loads(line) for line in
                self.cordwood("http", *arguments, "--json", **options).splitlines()]


class B_HTTP_4(Reading):
    def test_B_HTTP_4_live_from_another_process(self):
        followed = Followed(self, "--json")
        marker = answered(self.engine, "GET", "http://first.test/")
        followed.wait(lambda line: marker in line)  # it is following
        late = []
        for number in range(20):
            began = time.monotonic()
            exchange = Exchange(self.engine, "GET", f"http://a.test/{number}")
            line = followed.wait(lambda line, one=exchange.id: one in line)
            self.assertEqual(json.loads(line[1])["state"], "open")
            ended = time.monotonic()
            exchange.respond(500 if number % 2 else 200).end()
            done = followed.wait(lambda line, one=exchange.id:
                                 one in line and '"state":"done"' in line)
            self.assertEqual(json.loads(done[1])["failed"], number % 2 == 1)
            late += [line[0] - began, done[0] - ended]
        # Each is shown within a second. A busy machine may delay one or the other.
        self.assertLess(statistics.median(late), 1.0, "begun and ended")

    def test_B_HTTP_4_list_marks_errors_and_shows_open_ones(self):
        hangs = Exchange(self.engine, "POST", "https://slow.test/upload")
        answered(self.engine, "GET", "http://a.test/fine", duration_ns=12_300_000)
        answered(self.engine, "GET", "http://a.test/no", 403, answer=JSON, content=ODATA)
        Exchange(self.engine, "GET", "http://a.test/never").end(
            error="no answer within 10 s", error_type="timeout", duration_ns=10_003_100_000)
        lines = self.cordwood("http").splitlines()
        self.assertEqual(len(lines), 4, "a line an exchange")
        fine, refused, never, opened = lines
        self.assertRegex(fine, r" > GET    200 +12\.3 ms .* http://a\.test/fine$")
        self.assertIn("http://a.test/no  ! SY/530 No such team", refused)
        self.assertRegex(never, r" - +10003\.1 ms ")
        self.assertTrue(never.endswith("http://a.test/never  ! timeout: no answer within 10 s"))
        self.assertIn(" POST   open ", opened)
        self.assertEqual(self.cordwood("http", "--failed").splitlines(), [refused, never])
        hangs.respond(200).end()
        self.assertEqual([one["state"] for one in self.objects()], ["done"] * 4)

    def test_B_HTTP_4_search_and_detail(self):
        answered(self.engine, "GET", "http://a.test/x")
        refused = answered(
            self.engine, "POST", "http://a.test/teams?x=1", 403, [*JSON, ("X-Team", "blue")],
            '{"team": "blue", "size": 11}', JSON, ODATA, dns_ns=1_000_000, wait_ns=9_000_000)
        for pattern in ("X-Team: blue", "SY/530", "No such", "4FDF37", '"size": 11', "teams[?]x"):
            found = self.objects("--grep", pattern)
            self.assertEqual([one["id"] for one in found], [refused], pattern)
        self.cordwood("http", "--grep", "nowhere", code=1)
        text = self.cordwood("http", "show", refused[:8])
        for line in ("> POST http://a.test/teams?x=1\n", "> X-Team: blue\n", "< 403 Forbidden\n",
                     '    "size": 11\n', "odata code     SY/530\n", "odata message  No such team\n",
                     "odata id       4FDF3748112322F4E1\n", "         9.0 ms\n"):
            self.assertIn(line, text)
        lines = self.cordwood("cat", "--where", f"http.id={refused}").splitlines()
        self.assertEqual(len(lines), 2, "the beginning and the end")
        self.assertRegex(lines[1], f"HTTP: POST http://a.test/teams 403 .* http.id={refused}$")

    def test_B_HTTP_4_lost_with_its_process(self):
        """A killed process's exchanges are lost, a living one's are open, archived or not."""
        program = (
            "import sys, cordwood, exchanges\n"
            "engine = cordwood.open(sys.argv[1])\n"
            "exchanges.enable(engine)\n"
            "one = exchanges.Exchange(engine, 'GET', 'http://a.test/killed')\n"
            "print(one.id, flush=True)\n"
            "sys.stdin.read()\n")
        room = str(exchanges.HAR_SCHEMA.parent)
        host = subprocess.Popen(
            [sys.executable, "-c", program, self.store], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([room, *sys.path])})
        self.addCleanup(host.stdin.close)
        self.addCleanup(host.stdout.close)
        killed = host.stdout.readline().strip()
        hangs = Exchange(self.engine, "GET", "http://a.test/hangs").id

        def states(*options):
            return {one["id"]: one["state"] for one in self.objects(*options)}
        self.assertEqual(states(), {killed: "open", hangs: "open"})
        host.kill()
        host.wait()
        self.engine.roll()
        self.engine.archive_wait(30)
        wanted = {killed: "lost", hangs: "open"}
        self.assertEqual(states(), wanted)
        self.assertEqual(states("--slow", "0"), wanted)
        self.assertEqual(states("--failed"), {killed: "lost"})
        time.sleep(0.01)
        self.assertEqual(states("--slow", "1"), {hangs: "open"})
        self.assertIn(" lost ", self.cordwood("http", "--failed"))
        self.assertIn("state          lost: ", self.cordwood("http", "show", killed))
        har = json.loads(self.cordwood("export", "--format", "har"))["log"]["entries"]
        self.assertEqual({entry["_id"]: entry["_state"] for entry in har}, wanted)
        self.cordwood("archive")
        self.assertEqual(states(), wanted, "its lane was adopted")
        self.engine.close()
        self.assertEqual(states(), {killed: "lost", hangs: "lost"})

    def test_B_HTTP_4_redirects(self):
        first = answered(self.engine, "GET", "http://a.test/1", 302, answer=[("Location", "/2")])
        second = Exchange(self.engine, "GET", "http://a.test/2",
                          redirected_from=first.encode()).respond(200).end()
        for one in (first, second):
            text = self.cordwood("http", "show", one)
            self.assertIn(f"redirects      {first} 302 GET http://a.test/1", text)
            self.assertIn(f"            -> {second} 200 GET http://a.test/2", text)

    @full
    def test_B_HTTP_4_memory_is_bounded(self):
        """Listing a store takes memory that does not grow with it."""
        limit = 48 << 20

        def bound():
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        count = 60_000
        for number in range(count):
            answered(self.engine, "GET", f"http://a.test/{number}", 200, JSON, "x" * 500, JSON,
                     "y" * 500)
        self.assertGreater(count * 1_000, limit, "holding the bodies would not fit")
        for options in ((), ("--har",), ("--json",), ("--grep", "test/59999")):
            done = subprocess.run([CORDWOOD, "http", *options, self.store], check=False,
                                  stdout=subprocess.PIPE, preexec_fn=bound)
            self.assertEqual(done.returncode, 0, options)
            wanted = 1 if "--grep" in options else count
            self.assertEqual(done.stdout.count(b"http://a.test/"), wanted, options)


class Target:
    """Answers /status/N with N, and keeps the requests."""

    def __init__(self, case):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __getattr__(self, name):
                if name.startswith("do_"):
                    return self.answer
                raise AttributeError(name)

            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                line = self.raw_requestline.decode("latin-1").split(" ")
                asked.append({"method": self.command, "target": line[1], "headers": self.headers,
                              "body": self.rfile.read(size)})
                part = urllib.parse.urlsplit(self.path).path.split("/")
                status = int(part[2]) if part[1:2] == ["status"] else 200
                body = b"" if status == 204 else b"done"
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        case.addCleanup(thread.join)
        case.addCleanup(self.server.server_close)
        case.addCleanup(self.server.shutdown)


HOSTILE = [b"plain", b"it's", b"$(touch x) `touch x` $HOME %s %% \\n \\", b"@/etc/passwd", b"-v",
           b"two\nlines\n\n", b"\"double\" !! ;&|<>(){}[]*?~#", "grüße 🪵".encode(),
           b"\0nul\0\xff\x30'\\%\n", b"--", b"\xfe\xfd", bytes(range(256)), b"x" * 60_000,
           b"\x1b]0;title\x07", b"\r\n\r\nGET / HTTP/1.1\r\n"]


class B_HTTP_8(Reading):
    def fill(self, url):
        """Makes exchanges of all sorts with that server. Returns (id, status) of answered ones."""
        made = []
        for number, (method, status, body) in enumerate([
                ("GET", 200, None), ("POST", 201, '{"a": [1, 2]}'), ("PUT", 404, b"\xff\0bytes"),
                ("DELETE", 204, None), ("GET", 302, None), ("POST", 503, "a=1&b=%20two")]):
            form = body and isinstance(body, str) and body.startswith("a=")
            kind = "application/x-www-form-urlencoded" if form else "application/json"
            headers = [("Host", url[7:]), ("X-Number", str(number)), ("Cookie", "a=b; c=d")]
            if body is not None:
                headers.append(("Content-Type", kind))
            exchange = Exchange(self.engine, method, f"{url}/status/{status}?q={number}&e=",
                                headers, body)
            exchange.respond(status, [("Content-Type", "text/plain"), ("Location", "/x"),
                                      ("Set-Cookie", "s=1; Path=/; HttpOnly")],
                             b"\xfe\xfd" if number % 2 else "text", b"http/1.1")
            made.append((exchange.end(dns_ns=1_000_000, connect_ns=2_000_000, tls_ns=3_000_000,
                                      send_ns=1_000_000, wait_ns=4_000_000, receive_ns=5_000_000,
                                      duration_ns=20_000_000, remote_address=b"127.0.0.1:80"),
                         status))
        Exchange(self.engine, "GET", f"{url}/never").end(error="timed out", error_type="timeout")
        self.hanging = Exchange(self.engine, "GET", f"{url}/open")
        return made

    def test_B_HTTP_8_har_is_har_and_replays(self):
        target = Target(self)
        made = self.fill(target.url)
        schema = json.loads(HAR_SCHEMA.read_text())
        exported = self.cordwood("export", "--format", "har")
        text = self.cordwood("http", "--har")
        self.assertEqual(exported, text)
        har = json.loads(text)
        self.assertEqual(problems(har, schema), [])
        self.assertTrue(problems({"log": {"version": "1.1"}}, schema), "the schema refuses")
        for broken in ("request", "timings", "startedDateTime"):
            worse = json.loads(text)
            del worse["log"]["entries"][0][broken]
            self.assertTrue(problems(worse, schema), broken)
        entries = {entry["_id"]: entry for entry in har["log"]["entries"]}
        self.assertEqual(len(entries), 8)
        self.assertEqual(entries[self.hanging.id]["_state"], "open")
        first = entries[made[0][0]]
        self.assertEqual(first["timings"], {"blocked": 4, "dns": 1, "connect": 5, "ssl": 3,
                                            "send": 1, "wait": 4, "receive": 5})
        self.assertEqual(first["time"], 20)
        self.assertEqual(first["serverIPAddress"], "127.0.0.1")
        self.assertEqual(first["request"]["queryString"],
                         [{"name": "q", "value": "0"}, {"name": "e", "value": ""}])
        self.assertEqual(entries[made[1][0]]["response"]["content"],
                         {"size": 2, "mimeType": "text/plain", "text": "/v0=",
                          "encoding": "base64"})
        self.assertEqual(entries[made[5][0]]["request"]["postData"]["params"],
                         [{"name": "a", "value": "1"}, {"name": "b", "value": " two"}])
        never = [entry for entry in entries.values() if entry.get("_error")]
        self.assertEqual([entry["response"]["status"] for entry in never], [0])
        for one, status in made:
            self.assertEqual(replay(entries[one]["request"])[0], status)
        bodies = [asked["body"] for asked in target.asked]
        self.assertEqual(bodies, [b"", b'{"a": [1, 2]}', b"\xff\0bytes", b"", b"", b"a=1&b=%20two"])
        self.assertEqual(problems(json.loads(self.cordwood("http", "show", made[0][0], "--har")),
                                  schema), [])

    def test_B_HTTP_8_curl_runs_as_printed(self):
        target = Target(self)
        empty = self.store.with_name(self.store.name + "-cwd")
        empty.mkdir()
        for number, body in enumerate(HOSTILE):
            kind = [("Content-Type", "application/octet-stream")] if number % 2 else []
            one = answered(self.engine, "POST", target.url + "/body", 200, kind, body)
            captured = self.objects("--grep", "/body")[-1]["request"]
            kept = (base64.b64decode(captured["body_base64"]) if "body_base64" in captured
                    else captured["body"].encode())
            self.assertEqual(kept, body, "captured as it was sent")
            run_line(self, one, empty)
            asked = target.asked[-1]
            self.assertEqual(asked["body"], body)
            self.assertEqual(asked["headers"].get("Content-Type"),
                             "application/octet-stream" if kind else None)
        self.assertEqual(list(empty.iterdir()), [], "no shell ran what was captured")

    def test_B_HTTP_8_what_is_cut_is_said_and_nothing_else(self):
        """Redaction changes the length of a whole body. Headers may be cut, too."""
        body = '{"password":"x","pin":1}'
        one = answered(self.engine, "POST", "http://a.test/", 200, JSON, body, JSON, body)
        kept = self.objects()[0]["request"]
        self.assertGreater(len(kept["body"]), kept["body_bytes"])
        self.assertNotIn("bytes", self.cordwood("http", "show", one))
        entry = json.loads(self.cordwood("http", "show", one, "--har"))["log"]["entries"][0]
        self.assertEqual([entry["request"]["bodySize"], entry["response"]["bodySize"],
                          entry["response"]["content"]["size"]], [len(body)] * 3)
        self.assertNotIn("comment", json.dumps(entry))
        large = [("X-A", "h" * 200_000), ("X-B", "b")]
        cut = answered(self.engine, "GET", "http://a.test/", 200, large, None, large)
        text = self.cordwood("http", "show", cut)
        self.assertEqual(text.count("  [headers cut]\n"), 2)
        entry = json.loads(self.cordwood("http", "show", cut, "--har"))["log"]["entries"][0]
        self.assertEqual([entry[side]["comment"] for side in ("request", "response")],
                         ["headers cut"] * 2)
        for id_, told in ((one, b""), (cut, b"cordwood: the headers are not whole (cut)\n")):
            done = subprocess.run([CORDWOOD, "http", "show", id_, self.store, "--curl"],
                                  capture_output=True, check=True)
            self.assertEqual(done.stderr, told)

    def test_B_HTTP_8_curl_headers_urls_and_methods(self):
        target = Target(self)
        empty = self.store.with_name(self.store.name + "-cwd")
        empty.mkdir()
        for number, text in enumerate(HOSTILE):
            value = bytes(byte for byte in text if byte >= 0x20 and byte != 0x7f)[:8_000].strip()
            path = "/" + urllib.parse.quote_from_bytes(
                text[:2_000], safe="'$()*;!@&=+,~-_.[]{}|`\"")
            method = ("GET", "PUT", "HEAD", "DELETE", "O'PT$IONS")[number % 5]
            one = answered(
                self.engine, method, target.url + path, 200,
                [("X-Hostile", value), ("X-Empty", ""), ("Host", "other.test"),
                 ("Accept-Encoding", "gzip"), ("Connection", "close, X-Hop"), ("X-Hop", "1"),
                 ("Content-Length", "7"), ("Authorization", "Bearer secret")])
            run_line(self, one, empty)
            asked = target.asked[-1]
            self.assertEqual(asked["method"], method)
            self.assertEqual(asked["target"], path)
            got = asked["headers"]
            self.assertEqual((got["X-Hostile"] or "").encode("latin-1"), value)
            self.assertEqual(got["X-Empty"], "")
            self.assertEqual(got["Authorization"], "[redacted]")
            self.assertIn("gzip", got["Accept-Encoding"])
            self.assertEqual(got["Host"], target.url[7:])
            self.assertIsNone(got["X-Hop"])
        self.assertEqual(list(empty.iterdir()), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
