"""A `cordwood serve` for a test: started, its link opened, queried by HTTP or by raw bytes."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

from cases import Failed, equal, holds  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("CORDWOOD_BUILD", ROOT / "build"))
CORDWOOD = str(BUILD / "bin/cordwood")
LINK = re.compile(r"^http://(127\.0\.0\.1|\[::1\]|localhost):(\d+)(/open/[0-9a-f]{32})\n$")


def environment(**more):
    found = {name: value for name, value in os.environ.items()
             if not name.startswith("CORDWOOD_")}
    return {**found, "TZ": "UTC", **more}


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def lines(self):
        holds(self.body.endswith(b"\n"), f"an answer that ends within a line: {self.body[-80:]!r}")
        return [json.loads(line) for line in self.body.split(b"\n")[:-1]]


class Server:
    def __init__(self, *arguments, stdin=subprocess.DEVNULL, env=None, enters=True, under=()):
        self.process = subprocess.Popen(
            [*under, CORDWOOD, "serve", *map(str, arguments)], stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(**(env or {})))
        line = self.process.stdout.readline().decode()
        found = LINK.match(line)
        if not found:
            raise Failed(f"serve printed {line!r}: {self.process.stderr.read()!r}")
        self.host, self.port, self.link = found[1].strip("[]"), int(found[2]), found[3]
        self.how = self.process.stdout.readline().decode()
        self.cookie = None
        if enters:
            self.enter()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    @property
    def authority(self):
        return f"127.0.0.1:{self.port}"

    def connect(self):
        made = http.client.HTTPConnection(self.host, self.port, timeout=60)
        return made

    def socket(self):
        return socket.create_connection((self.host, self.port), timeout=60)

    def request(self, path, headers=None, method="GET", body=None, connection=None):
        own = connection or self.connect()
        own.request(method, path, body=body, headers=headers or {})
        got = own.getresponse()
        answer = Answer(got.status, got.headers, got.read())
        if connection is None:
            own.close()
        return answer

    def enter(self, link=None):
        """Opens a link and keeps the cookie."""
        answer = self.request(link or self.link)
        equal("the link's status", answer.status, 303)
        equal("where it leads", answer.headers["Location"], "/")
        self.cookie = answer.headers["Set-Cookie"].split(";")[0]
        return answer

    def headers(self, **more):
        """The headers that the page sends."""
        return {"Cookie": self.cookie, "X-Cordwood": "1", "Sec-Fetch-Site": "same-origin", **more}

    def api(self, path, connection=None, **parameters):
        query = urllib.parse.urlencode({name.rstrip("_"): value
                                        for name, value in parameters.items()})
        return self.request(f"/api/{path}?{query}", self.headers(), connection=connection)

    def get(self, path, **parameters):
        answer = self.api(path, **parameters)
        if answer.status != 200:
            raise Failed(f"/api/{path} {parameters}: {answer.status} {answer.body!r}")
        return answer

    def lines(self, path, **parameters):
        return self.get(path, **parameters).lines

    def rows(self, **parameters):
        """The rows of a query, and its last line."""
        lines = self.lines("query", **parameters)
        holds("done" in lines[-1], f"{parameters}: the last line is {lines[-1]}")
        return [line["row"] for line in lines if "row" in line], lines[-1]["done"]

    @contextlib.contextmanager
    def stream(self, path, **parameters):
        """An answer that is read line by line, and may be left early."""
        connection = self.connect()
        query = urllib.parse.urlencode(parameters)
        connection.request("GET", f"/api/{path}?{query}", headers=self.headers())
        answer = connection.getresponse()
        equal(f"/api/{path}", answer.status, 200)
        try:
            yield answer
        finally:
            answer.close()
            connection.close()

    def raw(self, data, sock=None, end=b"\r\n\r\n"):
        """The status and the head that answer these bytes."""
        own = sock or self.socket()
        own.sendall(data)
        head = b""
        while end not in head:
            piece = own.recv(65536)
            if not piece:
                break
            head += piece
        if sock is None:
            own.close()
        holds(head.startswith(b"HTTP/1.1 "), f"{data[:80]!r} got {head[:80]!r}")
        return int(head.split()[1]), head

    def memory(self):
        """Its peak memory, in bytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024

    def processor(self):
        """The processor seconds that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            _, errors = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Failed("serve does not end") from None
        equal("serve ended", self.process.returncode, 0)
        return errors.decode()
