"""B-NET for a host's own requests with odd answers: hops and heads before the last, files,
compressed bodies that cannot be decompressed; and endless bodies, of which no more is read than an
error may hold."""

import gzip
import json
import subprocess
import sys
import zlib

from cases import full
from http_hosts import HERE, Hosts, environment
from loopback import Listener, free_port
from sending import BUILD, ROOT, WORK

OK, END, REQUEST_FAILED, REDIRECTION = 0, 2, 2, 3
COULD_NOT_CONNECT, WRITE_ERROR, TOO_MANY_REDIRECTS = 7, 23, 47
ODATA = json.dumps({"error": {"code": "SY/530", "message": "No such team"}}).encode()
LONG = ODATA + b" " * (300_000 - len(ODATA))
HEAD = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
PIECE = b" " * 65_536


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def bomb():
    """A compressed body without an end: its beginning, and a piece that repeats for ever and
    decompresses to a thousand times its size."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    begin = pack.compress(ODATA) + pack.flush(zlib.Z_FULL_FLUSH)
    return begin, pack.compress(bytes(1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)


def serve(connection):
    """Sends one answer."""
    with connection.makefile("rb") as stream:
        path = stream.readline().split()[1].decode()
        while stream.readline() not in (b"\r\n", b""):
            pass
        send = connection.sendall
        if path == "/small":
            send(CHUNKED + b"\r\n" + chunk(ODATA) + b"0\r\n\r\n")
        elif path == "/packed":
            send(CHUNKED + b"Content-Encoding: gzip\r\n\r\n" + chunk(gzip.compress(ODATA))
                 + b"0\r\n\r\n")
        elif path == "/long":
            send(CHUNKED + b"\r\n" + chunk(LONG) + b"0\r\n\r\n")
        elif path == "/bomb":
            begin, more = map(chunk, bomb())
            send(CHUNKED + b"Content-Encoding: gzip\r\n\r\n" + begin)
            while True:
                send(more)
        elif path in ("/endless", "/moved"):
            # Without a Location: requests itself reads redirect bodies to the end if there is one.
            moved = CHUNKED.replace(b"400 Bad Request", b"302 Found")
            send((moved if path == "/moved" else CHUNKED) + b"\r\n")
            while True:
                send(chunk(PIECE))
        elif path == "/said":
            send(HEAD + b"Content-Length: 1073741824\r\n\r\n")
            stream.read()
        elif path == "/continue":
            send(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif path == "/loop" or path.startswith("/to"):
            target = path[3:] if path != "/loop" else path
            send(b"HTTP/1.1 302 Found\r\nConnection: close\r\nRetry-After: 7\r\n"
                 b"Location: %s\r\nContent-Length: 0\r\n\r\n" % target.encode())
        elif path == "/broken-packed":
            send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
                 b"Content-Length: 9\r\n\r\nno gzip..")
        else:
            send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")


class Odd(Hosts):
    """With libcurl, and with each Python client."""

    def setUp(self):
        super().setUp()
        listener = Listener(serve)
        self.addCleanup(listener.close)
        self.base = f"http://127.0.0.1:{listener.port}"

    def curl(self, *words):
        """The line printed for each."""
        program, source = WORK / "net-curl", HERE / "net_curl.c"
        flags = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-I",
                 ROOT / "include", "-L", BUILD / "lib", "-o", program]
        for compiler in (["c++", "-std=c++17", "-x", "c++"], ["cc", "-std=gnu99"]):
            subprocess.run([*compiler, *flags, source, "-lcordwood", "-lcurl"], check=True)
        done = subprocess.run([program, *words], env=environment(), check=True, timeout=120,
                              stdout=subprocess.PIPE)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_B_NET_1_curl_the_hop_that_got_no_answer(self):
        nobody = f"http://127.0.0.1:{free_port()}/"
        refused, dropped, loop, here = self.curl(
            "get", f"{self.base}/to{nobody}", "get", self.base + "/continue",
            "get", self.base + "/loop", "get", f"{self.base}/to/fine")
        self.assertEqual(refused[:5], [COULD_NOT_CONNECT, OK, REQUEST_FAILED, 0, ""])
        self.assertIn("connect", refused[5])
        self.assertNotEqual(dropped[0], 0)
        self.assertEqual(dropped[1:5], [OK, REQUEST_FAILED, 0, ""])
        self.assertEqual(loop[:4], [TOO_MANY_REDIRECTS, OK, REDIRECTION, 302])
        self.assertEqual(here, [0, END])

    def test_B_NET_1_curl_what_has_no_status_went_well(self):
        self.assertEqual(self.curl("get", (HERE / "net_curl.c").as_uri()), [[0, END]])
        missing, = self.curl("get", (HERE / "no-such-file").as_uri())
        self.assertEqual(missing[1:4], [OK, REQUEST_FAILED, 0])

    def test_B_NET_1_curl_who_did_not_write(self):
        host, packed, broken = self.curl(
            "refuses", self.base + "/fine", "refuses", self.base + "/broken-packed",
            "unpacks", self.base + "/broken-packed")
        self.assertEqual(host[0], WRITE_ERROR)
        self.assertRegex(host[5], "^cancelled: ")
        self.assertEqual(packed[0], WRITE_ERROR)
        for one in (packed, broken):
            self.assertEqual(one[1:4], [OK, REQUEST_FAILED, 200])
            self.assertNotIn("cancelled", one[5], "it may have been libcurl itself")

    def check(self, client, python=None):
        done = subprocess.run([python or self.python, HERE / "net_bodies.py", client, self.base],
                              env=environment(), check=True, stdout=subprocess.PIPE, timeout=120)
        seen = {path: rest for path, *rest in map(json.loads, done.stdout.splitlines())}
        packed = ["", len(gzip.compress(ODATA))] if client == "urllib" else ["SY/530", len(ODATA)]
        self.assertEqual(seen, {
            "/small": ["SY/530", len(ODATA)], "/packed": packed, "/long": ["", len(LONG)],
            "/endless": ["", -1], "/bomb": ["", -1], "/said": ["", -1], "/moved": ["", -1]})

    def test_B_NET_2_bodies_urllib(self):
        self.check("urllib", sys.executable)

    @full
    def test_B_NET_2_bodies_requests(self):
        self.check("requests")

    @full
    def test_B_NET_2_bodies_httpx(self):
        self.check("httpx")

    @full
    def test_B_NET_2_bodies_httpx_awaited(self):
        self.check("httpx-async")

    def test_B_NET_2_bodies_aiohttp(self):
        self.check("aiohttp")
