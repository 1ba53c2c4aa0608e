"""What tests of captured clients share: the interpreter with the clients, servers, a running host
and what it saw, and its exchanges as other processes read them."""

import json
import os
import subprocess
from pathlib import Path

import certificates
import cordwood
import environments
import http_peer
from sending import BUILD, ROOT, WORK, StoreCase

HERE = Path(__file__).resolve().parent
BIG = 20 << 20
LIBRARY = BUILD / "lib/libcordwood.so"
CAPTURED = 65_536


def environment():
    """The environment of test programs."""
    return {**os.environ, "CORDWOOD_LIBRARY": os.environ.get("CORDWOOD_LIBRARY", str(LIBRARY)),
            "PYTHONPATH": f"{ROOT / 'bindings/python/src'}:{HERE}:{ROOT / 'Tests/TestSupport'}",
            "LD_LIBRARY_PATH": str(BUILD / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}


def ended(store):
    """The fields of ended exchanges, as another process reads them."""
    return [record.fields for record in cordwood.read(store, kinds="http")
            if record.fields["http.op"] == "end"]


# Per case: (path that the URL ends with, status, error types, bytes received).
LIST = len(http_peer.JSON)
WANTED = {
    "json": ("/json?case=json", 200, None, LIST),
    "odata": ("/odata", 403, None, len(http_peer.ODATA)),
    "hang": ("/hang", None, {"timeout"}, None),
    "download": ("/download?bytes=20000000", 200, None, 20_000_000),
    "gzip": ("/gzip", 200, None, None),
    "chunked": ("/chunked", 200, None, LIST),
    "empty": ("/empty", 204, None, None),
    "short": ("/short", 200, {"incomplete", "IncompleteRead", "RemoteProtocolError",
                              "ClientPayloadError", "curl"}, 100),
    "dns": ("invalid/x", None, {"dns"}, None),
    "refused": ("127.0.0.1:1/x", None, {"connect"}, None),
    "upload": ("/upload?as=bytes", 200, None, None),
    "upload-pieces": ("/upload?as=pieces", 200, None, None),
    "upload-file": ("/upload?as=file", 200, None, None),
    "early": ("/drip", 200, None, None),
    "cancelled": ("/hang?cancelled", None, {"cancelled"}, None),
    "cancelled-body": ("/drip?seconds=60&cancelled", 200, {"cancelled"}, None),
}


class Hosts(StoreCase):
    """A test with servers, and programs whose requests are captured."""

    @classmethod
    def setUpClass(cls):
        cls.python = environments.interpreter("http")  # None: PyPI did not provide the clients
        cls.pems = WORK / "pems"
        if not cls.pems.exists():
            certificates.make(cls.pems)
        cls.plain = http_peer.Server()
        cls.tls = http_peer.Server(str(cls.pems / "server.pem"))
        cls.addClassCleanup(cls.plain.close)
        cls.addClassCleanup(cls.tls.close)
        cls.urls = {"plain": cls.plain.url, "tls": cls.tls.url}

    def setUp(self):
        if self.python is None and "CI" not in os.environ:
            self.skipTest("PyPI did not give the clients")
        super().setUp()
        self.engine.close()

    def start(self, *words, heard=lambda line: None):
        """Starts a host. Returns the lines that it prints until "done"."""
        host = subprocess.Popen([str(word) for word in words], env=environment(), text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.host = host
        self.addCleanup(host.wait)
        self.addCleanup(host.stdout.close)
        self.addCleanup(host.stdin.close)
        lines = []
        for line in host.stdout:
            if line.strip() == "done":
                return dict(map(json.loads, lines))
            heard(line)
            lines.append(line)
        self.fail(f"{words[0]} ended {host.wait()} after {lines}")

    def two(self):
        """Starts an HTTP/2 server whose application is captured, too. Returns its URL."""
        inbound = self.store / "inbound"
        server = subprocess.Popen(
            [self.python, HERE / "http_inbound.py", inbound, self.pems / "server.pem"],
            env=environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(server.wait)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.stdin.close)
        return f"https://localhost:{int(server.stdout.readline())}"

    def built_curl(self, name="http_curl"):
        """A libcurl host."""
        program = WORK / name
        subprocess.run(["cc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I",
                        ROOT / "include", HERE / f"{name}.c", "-o", program, "-L",
                        BUILD / "lib", "-lcordwood", "-lcurl"], check=True)
        return program


def text(value):
    """The bytes of a field."""
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
