#!/usr/bin/env python3
"""The server that captured clients talk to: HTTP/1.1, one thread per connection, TLS if a PEM file
is named. `Peer` lists what each path answers.

    http_peer.py [CERTIFICATE_AND_KEY.pem]

prints its port and serves until its standard input ends. In a test: `Server(pem=None)`.
"""
import collections
import gzip
import hashlib
import json
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

# The secret that must appear only at the two ends. /split-secrets answers it, in two chunks and a
# cookie.
SECRET = "ZQSECRET"
DRIP_BYTES = 100_000  # announced by /drip
SECRETS = (
    '{"a":{"pass\\u0077ord":"%s-1"},"n":"{\\"token\\":\\"%s-2\\"}","password":"%s'
    % (SECRET, SECRET, SECRET)).encode(), b'-3","ok":1}'
# Not UTF-8. /no-text answers it, also in a header. /large?count=N: N headers of 60,000 bytes.
NO_TEXT = b'{"a":"\xff\xfe\xc3("}'

JSON = json.dumps({"name": "order", "lines": list(range(40)), "note": "grün"}).encode()
ODATA = json.dumps({"error": {"code": "SY/530", "message": {"lang": "en", "value": "No right"},
                              "innererror": {"transactionid": "T0123456789"}}}).encode()
# /fails?status=S&form=F&id=I: answers of SAP Gateway and OData services. I is the transaction.
FORMS = {
    "v2": '{"error": {"code": "SY/530", "message": {"lang": "en", "value": "No such team"},'
          ' "innererror": {"transactionid": "%s", "errordetails": [{"code": "A/1", "message":'
          ' "wrong", "propertyref": "Team/Id", "severity": "error"}]}}}',
    "v4": '{"error": {"code": "SY/530", "message": "No such team", "details": [{"code": "A/1",'
          ' "message": "wrong", "target": "Team/Id", "@Common.numericSeverity": 4}],'
          ' "innererror": {"transactionid": "%s"}}}',
    "xml": '<?xml version="1.0" encoding="utf-8"?><error xmlns="http://schemas.microsoft.com/ado/'
           '2007/08/dataservices/metadata"><code>SY/530</code><message xml:lang="en">No such team'
           '</message><innererror><transactionid>%s</transactionid><errordetails><errordetail>'
           '<code>A/1</code><message>wrong</message><propertyref>Team/Id</propertyref>'
           '<severity>error</severity></errordetail></errordetails></innererror></error>',
    "": "%.0s<html>"}
BLOCK = bytes(range(32, 96)) * 1024  # 64 KiB that are text
CHUNK_LINES = b"4\r\nwiki\r\n0\r\n\r\n"  # /chunk-lines: a body that looks framed, in one chunk
BAD_UTF8 = b"caf\xe9 \xff\xfe {} \x80 end"
HANG_S = 30


class Peer(BaseHTTPRequestHandler):
    """/json 200 · /odata 403 · /hang no answer · /close closes without one · /short less than it
    says · /fails?status=S&form=F&id=I: FORMS · /redirect?to=URL&cookie=C 302
    · /download?bytes=N · /gzip · /chunked · /empty 204
    · /upload and anything with a body: its size and SHA-256 · /chunk-lines · /basic 401, 200
    · /drip?seconds=S: headers, then slowly, never all · /trickle?seconds=S: all of it, slowly
    · /secrets?token=T: in its answer · /badutf · /bigheader?bytes=N
    · /begun?of=PATH: how often a PATH of /hang was asked for, how many drops one of /drip sent."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        """Logs nothing."""

    def _answer(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _any(self):
        parts = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
        size, digest = read_body(self)
        path = parts.path
        if path == "/json":
            self._answer(200, JSON)
        elif path == "/odata":
            self._answer(403, ODATA)
        elif path == "/fails":
            form = asked.get("form", "")
            self._answer(int(asked["status"]), (FORMS[form] % asked.get("id", "")).encode(),
                         "application/xml" if form == "xml" else "application/json",
                         Retry_After="7", Location="https://other.example/a?token=hush")
        elif path == "/hang":
            self.server.begun[self.path] += 1
            self.server.gone.wait(HANG_S)
            self.close_connection = True
        elif path == "/close":
            self.close_connection = True
        elif path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 100)
            self.close_connection = True
        elif path == "/redirect":
            self._answer(int(asked.get("status", 302)), b"moved", "text/plain",
                         Location=asked.get("to", "/json"),
                         **({"Set_Cookie": asked["cookie"]} if "cookie" in asked else {}))
        elif path == "/download":
            self._download(int(asked["bytes"]))
        elif path == "/gzip":
            self._answer(200, gzip.compress(JSON * 20, mtime=0), Content_Encoding="gzip")
        elif path == "/split-secrets":
            self._chunked(SECRETS, {"Set-Cookie": f"sid={SECRET}-4; Path=/"}, pause=0.05)
        elif path == "/no-text":
            self._answer(200, NO_TEXT, X_Odd=NO_TEXT.decode("latin-1"))
        elif path == "/large":
            self._answer(200, JSON, **{f"X_{n}": "v" * 60_000 for n in range(int(asked["count"]))})
        elif path == "/chunked":
            self._chunked(JSON[at:at + 7] for at in range(0, len(JSON), 7))
        elif path == "/basic":
            known = "Authorization" in self.headers
            self._answer(200 if known else 401, JSON if known else b"{}",
                         WWW_Authenticate='Basic realm="peer"')
        elif path == "/chunk-lines":
            self._chunked([CHUNK_LINES])
        elif path == "/empty":
            self.send_response(204)
            self.end_headers()
        elif path == "/drip":
            self._drip(float(asked.get("seconds", 5)))
        elif path == "/trickle":
            self._trickle(float(asked["seconds"]))
        elif path == "/secrets":
            word = asked.get("token", "hush")
            body = json.dumps({"name": "order", "access_token": word, "in": {"pin": word}})
            self._answer(200, body.encode(), Set_Cookie=f"sid={word}", X_Auth_Token=word)
        elif path == "/badutf":
            self._answer(200, BAD_UTF8, "text/plain; charset=utf-8")
        elif path == "/bigheader":
            self._answer(200, JSON, X_Big="h" * int(asked["bytes"]))
        elif path == "/begun":
            self._answer(200, str(self.server.begun[asked["of"]]).encode())
        elif path == "/headers":
            self._answer(200, json.dumps(dict(self.headers.items())).encode())
        else:
            self._answer(200, json.dumps({"bytes": size, "sha256": digest}).encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = _any

    def _download(self, size):
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        while size:
            part = BLOCK[:size]
            self.wfile.write(part)
            size -= len(part)

    def _chunked(self, parts, headers=(), pause=0):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        for part in parts:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.server.gone.wait(pause)
        self.wfile.write(b"0\r\n\r\n")

    def _trickle(self, seconds):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        for _ in range(10):
            self.wfile.write(b"0123456789")
            self.wfile.flush()
            self.server.gone.wait(seconds / 10)

    def _drip(self, seconds):
        self.send_response(200)
        self.send_header("Content-Length", str(DRIP_BYTES))
        self.end_headers()
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.server.gone.is_set():
            self.wfile.write(b"drop ")
            self.wfile.flush()
            self.server.begun[self.path] += 1
            self.server.gone.wait(0.05)
        self.close_connection = True


def read_body(handler):
    """(bytes, SHA-256) of a request's body, chunked or not, a piece at a time."""
    digest, size = hashlib.sha256(), 0

    def take(left):
        nonlocal size
        while left:
            data = handler.rfile.read(min(left, 1 << 16))
            if not data:
                return
            digest.update(data)
            size, left = size + len(data), left - len(data)
    if "chunked" in handler.headers.get("Transfer-Encoding", ""):
        while True:
            left = int(handler.rfile.readline().split(b";")[0], 16)
            take(left)
            handler.rfile.readline()
            if not left:
                break
    else:
        take(int(handler.headers.get("Content-Length", 0)))
    return size, digest.hexdigest()


class Server(ThreadingHTTPServer):
    """Serves on a loopback port, in threads, until `close`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, pem=None):
        super().__init__(("127.0.0.1", 0), Peer)
        self.gone = threading.Event()
        self.begun = collections.Counter()
        self.port = self.server_address[1]
        self.url = f"{'https' if pem else 'http'}://127.0.0.1:{self.port}"
        self._tls = None
        if pem:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(pem)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def finish_request(self, request, client_address):
        """In the connection's thread: a client that refuses our certificate delays none."""
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            request = self._tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)
        if self._tls is not None:
            request.close()

    def handle_error(self, request, client_address):
        """Clients here leave at any time."""

    def close(self):
        """Ends hanging requests, and frees the port."""
        self.gone.set()
        self.shutdown()
        self.server_close()


if __name__ == "__main__":
    server = Server(*sys.argv[1:2])
    print(server.port, flush=True)
    sys.stdin.buffer.read()
    server.close()
