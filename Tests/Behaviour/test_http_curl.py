"""B-HTTP 3 and 7 for libcurl: correct facts, no secret on the disk whatever the framing, bounded
memory. http_curl_cases.c is the host, a raw socket or an HTTP/2 server the other side."""

import base64
import gzip
import json
import subprocess
import sys
import time
import unittest

import cordwood
from cases import full
from loopback import Listener
from sending import BUILD, CORDWOOD, ROOT, WORK
from test_http_hooks import CAPTURED, HERE, Hooks, ended, environment, text

SECRET = b"ZQSECRET"
PARTS = [b'{"user":"joe","passw', b'ord":"ZQSECRET-1","z":1,"tok', b'en":"ZQSECRET-2"}']
WHOLE = b"".join(PARTS)
KEPT = '{"user":"joe","password":"[redacted]","z":1,"token":"[redacted]"}'
FILL = b"".join(b"X-R-%d: v%d\r\n" % (i, i) for i in range(300))
OK = b"HTTP/1.1 200 OK\r\n"
GIB = 1 << 30
PAUSE_S = 1.0  # of a server; a loaded machine adds far less to a request


def chunks(parts, extension=b""):
    return b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts)


PACKED = gzip.compress(WHOLE, mtime=0)
FRAMED = chunks(PARTS) + b"0\r\n\r\n"
# What a server sends for each path.
ANSWERS = {
    "/chunked": OK + b"Transfer-Encoding: chunked\r\n\r\n" + FRAMED,
    "/capital": OK + b"Transfer-Encoding: Chunked\r\n\r\n" + FRAMED,
    "/blank": OK + b"Transfer-Encoding: chunked \r\n\r\n" + chunks(PARTS, b";a=b") + b"0\r\n\r\n",
    "/list": OK + b"Transfer-Encoding: chunked, identity\r\n\r\n" + FRAMED,
    "/junk": OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(PARTS, b" x") + b"0\r\n\r\n",
    "/behind": OK + FILL + b"Transfer-Encoding: chunked\r\n\r\n" + FRAMED,
    "/far": OK + b"X-Big: " + b"v" * 70_000 + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + FRAMED,
    "/gzip": OK + FILL + b"Content-Encoding: GZip \r\nContent-Length: %d\r\n\r\n" % len(PACKED)
    + PACKED,
    "/both": OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: CHUNKED\r\n\r\n"
    + chunks([PACKED[:30], PACKED[30:]]) + b"0\r\n\r\n",
    # Framing that begins and breaks.
    "/broken-size": OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(PARTS[:1]) + b"zz\r\n"
    + chunks(PARTS[1:]),
    "/broken-end": OK + b"Transfer-Encoding: chunked\r\n\r\n1a\r\n" + FRAMED[4:],
    "/broken-first": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + FRAMED,
    "/half": OK + b"X-A: b\r\n",
    "/many": OK + b"X-Head: " + b"v" * 60_000 + b"\r\n" + (b"X: " + b"v" * 60_000 + b"\r\n") * 17,
    "/old": b"of HTTP/0.9",
    "/digest": OK + b"Content-Length: 2\r\n\r\nok",
    "/json": OK + b"Content-Length: 2\r\n\r\n{}",
    "/loop": b"HTTP/1.1 302 Found\r\nLocation: /json\r\nContent-Length: 0\r\n\r\n",
    "/utf": OK + b"X-Bad: \xff\xc3(\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
    b'{"a":"\xff\xfe\xc3("}',
    "/numbers": OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks([b"1\n2\n", b"3\n4\n"])
    + b"0\r\n\r\n",
}
DENIED = (b"HTTP/1.1 401 Unauthorized\r\n"
          b'WWW-Authenticate: Digest realm="r", nonce="abc", qop="auth"\r\n'
          b"Content-Length: 2\r\n\r\nno")


def serve(connection):
    """One request after another. The path selects the answer."""
    with connection.makefile("rb") as stream:
        while line := stream.readline(1 << 16):
            # Each line is read whole: some are large.
            head = {}
            while (header := stream.readline()) not in (b"\r\n", b""):
                name, _, value = header.partition(b":")
                head[name.lower()] = value.strip().lower()
            path = line.split()[1].decode()
            if head.get(b"expect"):
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            if head.get(b"transfer-encoding"):
                while size := int(stream.readline() or b"0", 16):
                    stream.read(size)
                    stream.readline()
                stream.readline()
            if path == "/echo":
                body = json.dumps({name.decode(): value.decode("latin-1")[:200]
                                   for name, value in head.items()}).encode()
                connection.sendall(OK + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                continue
            if path == "/digest" and b"authorization" not in head:
                connection.sendall(DENIED)
                continue
            if path == "/slow":  # takes a body of a megabyte, after 100, and answers
                time.sleep(PAUSE_S)
                stream.read(1_000_007)
            if path.startswith("/hints"):
                connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
                time.sleep(PAUSE_S)
            connection.sendall(ANSWERS.get(path, ANSWERS["/json"]))
            if path.startswith(("/broken", "/half", "/many", "/old")):
                return
            if head.get(b"connection") == b"close":
                return


class Curl(Hooks):
    """With the C host. Tests of other clients are not run again."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = WORK / "http-curl-cases"
        flags = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-I",
                 ROOT / "include", "-L", BUILD / "lib", "-o", cls.program]
        source = HERE / "http_curl_cases.c"
        for compiler in (["c++", "-std=c++17", "-x", "c++"], ["c++", "-std=c++20", "-x", "c++"],
                         ["cc", "-std=gnu99"], ["cc", "-std=gnu11"]):
            subprocess.run([*compiler, *flags, source, "-lcordwood", "-lcurl"], check=True)

    def setUp(self):
        super().setUp()
        self.raw = Listener(serve)
        self.addCleanup(self.raw.close)
        self.base = f"http://127.0.0.1:{self.raw.port}"

    def ask(self, *words, store=None, stderr=None):
        """What the host saw of each, in order; and the exchanges by path."""
        done = subprocess.run(
            [self.program, store or self.store, self.pems / "ca.pem",
             *(self.base + word if word.startswith("/") else word for word in words)],
            env=environment(), check=True, stdout=subprocess.PIPE, stderr=stderr, timeout=120)
        self.stderr = done.stderr
        found = {}
        for one in ended(self.store):
            found.setdefault(one["url.full"].split("/", 3)[3], []).append(one)
        return [json.loads(line) for line in done.stdout.splitlines()], found

    def clean(self):
        """The secret is nowhere in the store."""
        for path in self.store.rglob("*"):
            if path.is_file():
                self.assertNotIn(SECRET, path.read_bytes(), path)

    def test_B_HTTP_3_curl_answers_in_chunks(self):
        paths = ("chunked", "capital", "blank", "list", "junk", "behind", "far", "gzip", "both")
        seen, found = self.ask(*(word for path in paths for word in ("get", "/" + path)))
        for path, (code, status, size, *_) in zip(paths, seen):
            with self.subTest(path=path):
                one, = found[path]
                self.assertEqual((code, status), (0, 200))
                self.assertEqual(one["http.response.status_code"], 200)
                self.assertEqual(one["http.response.body"], KEPT)
                if "gzip" not in path and path != "both":
                    self.assertEqual((size, one["http.response.body.size"]), (len(WHOLE),) * 2)
        self.clean()

    def test_B_HTTP_3_curl_broken_chunks_are_not_kept(self):
        paths = ("broken-size", "broken-end", "broken-first")
        seen, found = self.ask(*(word for path in paths for word in ("get", "/" + path)))
        for path, (code, *_) in zip(paths, seen):
            with self.subTest(path=path):
                one, = found[path]
                self.assertNotEqual(code, 0)
                self.assertEqual(one["http.response.status_code"], 200)
                self.assertNotIn("http.response.body", one)
                self.assertEqual(one["http.response.body.note"], "not shown")
        self.clean()

    def test_B_HTTP_3_curl_uploads_in_chunks(self):
        names = ("Transfer-Encoding: chunked", "Transfer-Encoding: Chunked",
                 "transfer-encoding:CHUNKED")
        seen, found = self.ask(*(word for name in names for word in (f"up {name}", "/json")))
        self.assertEqual([one[:3] for one in seen], [[0, 200, 2]] * 3)
        for one in found["json"]:
            self.assertEqual(one["http.request.body"],
                             '{"user":"joe","password":"[redacted]","z":1}')
        self.assertEqual(len(found["json"]), 3)
        self.clean()

    @full
    def test_B_HTTP_3_python_answers_in_chunks(self):
        """Both if the client recognizes the chunks and if it hands out the framing."""
        paths = ("chunked", "capital", "blank", "list", "numbers")
        program = (
            "import cordwood, json, sys, urllib.request\n"
            "engine = cordwood.open(sys.argv[1])\n"
            "engine.capture_http(keep_text='* */*')\n"
            "cordwood.install_http_hooks(engine)\n"
            "got = [urllib.request.urlopen(url).read().decode() for url in sys.argv[2:]]\n"
            "print(json.dumps(got))\n")
        done = subprocess.run([sys.executable, "-c", program, self.store,
                               *(f"{self.base}/{path}" for path in paths)],
                              env=environment(), check=True, stdout=subprocess.PIPE)
        seen = json.loads(done.stdout)
        self.assertIn("passw\r\n", seen[2], "urllib has the framing")
        kept = [one["http.response.body"] for one in ended(self.store)]
        self.assertEqual(kept, [KEPT] * 4 + ["1\n2\n3\n4\n"])
        self.clean()

    def test_B_HTTP_7_curl_facts(self):
        """The record says what the host saw, also of an answer that breaks off."""
        seen, found = self.ask("get", "/half", "get", "/many", "late", "/json", "refuses",
                               "/digest", "aborts", "/echo")
        self.assertEqual([one[1] for one in seen[:2]], [200, 200])
        half, = found["half"]
        self.assertEqual(half["http.response.status_code"], 200)
        self.assertEqual(half["http.response.headers"], "X-A: b")
        many, = found["many"]
        self.assertEqual(many["http.response.status_code"], 200)
        self.assertTrue(many["http.response.headers"].startswith("X-Head: v"))
        self.assertIn("error.type", many)
        late, = found["json"]
        self.assertLessEqual(late["http.duration"], seen[2][4])
        for path, code in (("digest", 23), ("echo", 42)):
            with self.subTest(path=path):
                one, = found[path]
                self.assertEqual(one["error.type"], "cancelled")
                self.assertIs(one["http.cancelled"], True)
                self.assertIn(code, [said[0] for said in seen])

    def test_B_HTTP_7_curl_copies_are_not_captured(self):
        seen, found = self.ask("copy", "/json")
        self.assertEqual((seen[0][0], seen[0][2]), (0, 2))
        self.assertEqual(found, {})

    def test_B_HTTP_7_curl_not_in_the_sample(self):
        """A request that ends with an error and is not captured does not count as never sent."""
        seen, found = self.ask("sampled", "/broken-end", *["get", "/broken-end"] * 31)
        self.assertTrue(all(one[0] for one in seen))
        for one in found["broken-end"]:
            self.assertIn("http.request.headers", one)
        self.assertLess(len(found["broken-end"]), 32)

    def test_B_HTTP_7_curl_phases_end_with_the_last_head(self):
        seen, found = self.ask("post", "/slow", "never", "/hints")
        self.assertEqual([one[:2] for one in seen], [[0, 200]] * 2)
        posted, = found["slow"]
        pause = PAUSE_S * 1e9 * 0.9
        self.assertGreater(posted["http.wait"], pause)
        self.assertLess(posted["http.receive"], posted["http.wait"])
        hinted, never = found["hints"]
        self.assertGreater(hinted["http.wait"], pause)
        self.assertLess(hinted["http.receive"], hinted["http.wait"])
        self.assertEqual(hinted["http.response.status_code"], 200)
        self.assertEqual(never["error.type"], "cancelled")
        self.assertLess(never["http.duration"], hinted["http.duration"])

    def test_B_HTTP_7_curl_http_0_9_is_no_error(self):
        seen, found = self.ask("old", "/old")
        self.assertEqual((seen[0][0], seen[0][2]), (0, 11))
        self.assertNotIn("error.type", found["old"][0])

    def test_B_HTTP_7_curl_debug_functions_of_quiet_hosts(self):
        seen, found = self.ask("quiet", "/json")
        self.assertEqual((seen[0][:2], len(found["json"])), ([0, 200], 1))

    def test_B_HTTP_7_curl_what_is_no_utf_8(self):
        self.ask("get", "/utf")
        done = subprocess.run([CORDWOOD, "http", self.store, "--json"], check=True,
                              stdout=subprocess.PIPE)
        answer = json.loads(done.stdout)["response"]
        self.assertEqual(base64.b64decode(answer["body_base64"]), b'{"a":"\xff\xfe\xc3("}')
        self.assertEqual([one["value"] for one in answer["headers"] if one["name"] == "X-Bad"],
                         ["\ufffd\ufffd("])

    def test_B_HTTP_7_curl_requests_that_libcurl_repeats(self):
        _, found = self.ask("auth", "/digest", "get", "/loop")
        denied, answered = found["digest"]
        self.assertEqual([one["http.response.status_code"] for one in (denied, answered)],
                         [401, 200])
        self.assertNotIn("http.attempt", denied)
        self.assertEqual(answered["http.attempt"], 2)
        moved, = found["loop"]
        there, = found["json"]
        self.assertEqual(there["http.redirected_from"], moved["http.id"])
        self.assertNotIn("http.attempt", there)
        self.clean()

    @full
    def test_B_HTTP_7_curl_headers_of_a_megabyte(self):
        seen, found = self.ask("headers", "/echo")
        self.assertEqual(seen[0][:2], [0, 200])
        one, = found["echo"]
        self.assertEqual(len(one["http.request.headers"]), 65_536)
        self.assertEqual(one["http.response.status_code"], 200)
        self.clean()

    def test_B_HTTP_7_curl_two_streams(self):
        """HTTP/2 uploads that share a connection."""
        seen, _ = self.ask("both", self.two() + "/upload")
        self.assertEqual([one[0] for one in seen], [0, 0])
        found = sorted(ended(self.store), key=lambda one: one["url.full"])
        self.assertEqual([one["network.protocol"] for one in found], ["h2", "h2"])
        self.assertEqual([one["http.request.body.size"] for one in found], [1_000_000, 2_000_000])
        for one in found:
            self.assertEqual(text(one["http.request.body"]), b"u" * CAPTURED)
            self.assertEqual(one["http.response.status_code"], 200)

    @full
    def test_B_HTTP_7_curl_one_gibibyte(self):
        """Both ways, in bounded memory."""
        down = f"{self.plain.url}/download?bytes={GIB}"
        seen, found = self.ask("get", down, "streams", f"{self.plain.url}/upload")
        self.assertEqual([one[:2] for one in seen], [[0, 200]] * 2)
        self.assertEqual(seen[0][2], GIB)
        for one in seen:
            self.assertLess(one[3], 16 << 10, "KiB")
        one, = found[f"download?bytes={GIB}"]
        self.assertEqual(one["http.response.body.size"], GIB)
        self.assertEqual(len(text(one["http.response.body"])), CAPTURED)
        one, = found["upload"]
        self.assertEqual(one["http.request.body.size"], GIB)
        self.assertEqual(text(one["http.request.body"]), b"u" * CAPTURED)

    def test_B_HTTP_7_curl_store_that_cannot_be_opened(self):
        taken = WORK / "no-directory"
        taken.write_text("a file")
        seen, found = self.ask("get", "/json", "get", "/json", store=taken,
                               stderr=subprocess.PIPE)
        self.assertEqual([one[:3] for one in seen], [[0, 200, 2]] * 2)
        self.assertEqual(found, {})
        self.assertEqual(len(self.stderr.decode().splitlines()), 1, self.stderr)

    def test_B_HTTP_7_curl_conversation(self):
        """The transaction's values are sent. A header of the host's own stays."""
        self.ask("inside", "/echo")
        one, = ended(self.store)
        echoed = json.loads(text(one["http.response.body"]))
        begun, = [record for record in cordwood.read(self.store, kinds="transaction")
                  if record.fields["txn.op"] == "begin"]
        self.assertRegex(echoed["traceparent"], f"^00-{begun.trace_id}-[0-9a-f]{{16}}-0[01]$")
        self.assertEqual((echoed["x-transaction-id"], echoed["x-conversation-id"]),
                         ("mine", "7d1f"))
        self.assertEqual(one["http.conversation"], "7d1f")


# The tests of the other clients run in their own file.
for name in [name for name in dir(Hooks) if name.startswith("test_")]:
    setattr(Curl, name, None)
del Hooks

if __name__ == "__main__":
    unittest.main()
