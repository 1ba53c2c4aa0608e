"""Servers that echo secrets or reset HTTP/2 streams; `cordwood target test`; ten uploads at once;
an archive that cannot be opened."""

import collections
import ctypes
import json
import os
import ssl
import subprocess
import sys
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sending import CORDWOOD
from support import ROOT, Front, StoreCase, certificate, cordwood, free_port

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24


def tool(*words, **options):
    return subprocess.run([CORDWOOD, *map(str, words)], capture_output=True, text=True,
                          check=False, **options)


class Server:
    """Applies answer(handler, body) -> (status, headers, body) to all requests of any method."""

    def __init__(self, case, answer):
        self.seen = seen = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                seen.append((self.command, self.path, dict(self.headers), body))
                status, headers, content = answer(self, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_PUT = do_POST

            def log_message(self, *_):
                """Logs nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        case.addCleanup(self.close)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Words(StoreCase):
    """What a refusal says, without our secrets."""

    def test_the_servers_words_without_our_secrets(self):
        def echo(handler, _):
            text = f"cannot take \x07 {handler.path}\n with {dict(handler.headers)} " + "x" * 300
            return 422, {"Content-Type": "text/plain"}, text.encode()
        server = Server(self, echo)
        secrets = ["t0ken-of-ours", "p4th-of-ours", "qu3ry of ours", "h3ader-of-ours"]
        self.add(server.url + "/in/p4th-of-ours?key=qu3ry%20of%20ours", auth_token=secrets[0],
                 headers={"X-Api-Key": secrets[3]})
        for number in range(4):
            self.log.info("%d", number)
        self.fails()
        queue = tool("queue", self.store).stdout
        said = self.causes[-1]
        for text in (said, queue):
            self.assertIn("HTTP 422: cannot take", text)
            self.assertNotIn("\x07", text)
        words = said.partition("HTTP 422: ")[2]
        self.assertLessEqual(len(words.encode()), 200)
        self.assertIn("***", words)
        everything = said + queue + tool("cat", self.store, "--json").stdout
        for secret in [*secrets, "qu3ry%20of%20ours"]:
            self.assertNotIn(secret, everything)

    def test_braces_are_no_words(self):
        server = Server(self, lambda *_: (503, {}, b"{}\n"))
        self.add(server.url)
        self.log.info("x")
        self.fails()
        self.assertEqual(self.causes[-1], "HTTP 503")


class Breaking(Front):
    """TLS. Over HTTP/2 it resets every stream, over HTTP/1.1 it accepts everything."""

    def __init__(self, case):
        self.resets, self.bodies = 0, []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate("server.pem"))
        self.context.set_alpn_protocols(["h2", "http/1.1"])
        super().__init__(case, self.talk)
        self.url = f"https://localhost:{self.port}"

    def talk(self, plain):
        with self.context.wrap_socket(plain, server_side=True) as connection:
            with connection.makefile("rwb") as stream:
                speaks2 = connection.selected_alpn_protocol() == "h2"
                (self.two if speaks2 else self.one)(stream)

    def two(self, stream):
        stream.read(24)  # the preface
        self.frame(stream, 4, 0, 0, b"")
        while head := stream.read(9):
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream.read(length)
            if kind == 4 and not flags & 1:
                self.frame(stream, 4, 1, 0, b"")
            if kind == 1:
                self.resets += 1
                number = int.from_bytes(head[5:], "big")
                self.frame(stream, 3, 0, number, (2).to_bytes(4, "big"))

    @staticmethod
    def frame(stream, kind, flags, number, content):
        stream.write(len(content).to_bytes(3, "big") + bytes([kind, flags])
                     + number.to_bytes(4, "big") + content)
        stream.flush()

    def one(self, stream):
        while stream.readline():
            headers = {}
            while line := stream.readline().strip():
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            self.bodies.append(stream.read(int(headers["content-length"])))
            stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            stream.flush()


class Streams(StoreCase):
    """HTTP/2 whose streams are reset."""

    def test_smaller_then_in_http1(self):
        server = Breaking(self)
        self.add(server.url, ca_file=certificate("ca.pem"), requests_max=1)
        for number in range(100):
            self.log.info("%d", number)
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(server.resets, 2)
        lines = [line for body in server.bodies for line in self.sent_lines(body)]
        self.assertEqual([line["message"] for line in lines], list(map(str, range(100))))
        self.assertGreater(len(server.bodies), 1, "half of it first")
        self.log.info("again")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(server.resets, 2, "HTTP/1.1 stays")

    def test_an_archive_as_it_is(self):
        server = Breaking(self)
        self.add(server.url, format="archive", ca_file=certificate("ca.pem"))
        self.log.info("x")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual((server.resets, len(server.bodies)), (1, 1))


class AtOnce(StoreCase):
    """Several processes that send one store."""

    def test_ten_uploads_end_well(self):
        for number in range(12):
            self.log.info("%d", number)
            self.archive()
        self.engine.close()

        def slowly(*_):
            time.sleep(0.05)  # longer than it takes to meet another process's lock
            return 200, {}, b""
        server = Server(self, slowly)
        command = [CORDWOOD, "upload", self.store, "--to", server.url, "--kind", "http",
                   "--format", "ndjson", "--name", "all", "--timeout", "60"]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True) for _ in range(10)]
        ended = [(process.communicate(timeout=90)[0], process.returncode) for process in running]
        self.assertEqual([code for _, code in ended], [0] * 10, ended)
        ids = collections.Counter(headers["Idempotency-Key"] for _, _, headers, _ in server.seen)
        self.assertEqual(set(ids.values()), {1}, "each body once")
        self.assertEqual(list(self.store.glob("archives/*.cwa")), [])


HOST = r'''
import sys
import cordwood
store, url = sys.argv[1:]
with cordwood.open(store, upload_interval_s=3600) as engine:
    engine.add_target(url, name="t", kind="http", format="ndjson")
    for _ in range(3):
        engine.logger("app").info("after")
        try:
            result = engine.upload(timeout=30)
        except cordwood.UploadError as error:
            result = error.result
        print(result.uploaded, result.failed, result.waiting, flush=True)
    print(engine.retry_quarantined(), flush=True)
'''


def without_override():
    """Root can open every file unless it drops these capabilities. To be followed by exec."""
    libc = ctypes.CDLL(None)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


class Unopened(StoreCase):
    """One archive of four cannot be opened for lack of permission."""

    def test_the_others_go_and_it_is_told_once(self):
        for number in range(4):
            self.log.info("before %d", number)
            self.archive()
        self.engine.close()
        shut = sorted(self.store.glob("archives/*.cwa"))[1]
        content = shut.read_bytes()
        shut.chmod(0)
        server = Server(self, lambda *_: (200, {}, b""))
        ran = subprocess.run([sys.executable, "-c", HOST, self.store, server.url],
                             capture_output=True, text=True, check=False, timeout=120,
                             env={**os.environ, "PYTHONPATH": ROOT / "bindings/python/src"},
                             preexec_fn=without_override)
        self.assertEqual(ran.stderr, "")
        *results, retried = ran.stdout.splitlines()
        # The background may send the first archives as soon as the target is added.
        for line in results:
            self.assertEqual(line.split()[1:], ["1", "1"], ran.stdout)
            self.assertGreaterEqual(int(line.split()[0]), 1, "what came since goes")
        self.assertEqual(retried, "False")
        shut.chmod(0o600)
        # Reported in a record, which is sent like any other.
        sent = [json.loads(line) for *_, body in server.seen for line in body.splitlines()]
        self.assertEqual(sorted(line["message"] for line in sent if line["logger"] == "app"),
                         ["after"] * 3 + ["before 0", "before 2", "before 3"])
        told = [line["message"] for line in sent
                if line.get("fields", {}).get("archive") == shut.name]
        told += [record.message for record in cordwood.read(self.store)
                 if record.fields.get("archive") == shut.name]
        self.assertEqual(told, ["an archive could not be handled; the others go"])
        self.assertEqual(shut.read_bytes(), content)
        # Every verb names the archive and continues with the others.
        shut.chmod(0)
        for words, code in ((("queue", self.store), 0), (("verify", self.store), 3),
                            (("archive", self.store), 0)):
            done = tool(*words, preexec_fn=without_override)
            self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        self.assertIn("records", tool("verify", self.store, preexec_fn=without_override).stdout)
        shut.chmod(0o600)
        self.engine = self.open()
        self.add(server.url, name="t")
        self.assertGreaterEqual(self.upload().uploaded, 1)
        self.assertFalse(shut.exists())


class TargetTest(StoreCase):
    """`cordwood target test`."""

    FINE = {
        "collector": (200, {}, b'{"status":"ok"}\n'),
        "elasticsearch": (200, {}, b'{"version":{"number":"8.9.0"},"tagline":"x"}'),
        "loki": (204, {}, b""),
        "otlp": (200, {"Content-Type": "application/x-protobuf"}, b""),
        "clickhouse": (200, {}, b"Ok.\n"),
        "splunk": (200, {}, b'{"text":"HEC is healthy","code":17}'),
        "s3": (200, {}, b""),
        "http": (405, {}, b""),
        "datadog": (404, {}, b""),
    }

    def words(self, kind, url):
        more = {"clickhouse": ["--parameter", "table=logs"],
                "http": ["--format", "ndjson"]}.get(kind, [])
        path = "/bucket" if kind == "s3" else ""
        return ["target", "test", url + path, "--kind", kind, *more]

    def test_each_kind(self):
        for kind, answer in self.FINE.items():
            with self.subTest(kind=kind):
                server = Server(self, lambda *_, answer=answer: answer)
                done = tool(*self.words(kind, server.url),
                            env={**os.environ, "CORDWOOD_TOKEN": "t0ken-of-ours"})
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"(?m)^fine: ")
                self.assertRegex(done.stdout, r"(?m)^not looked at: ")
                self.assertEqual(len(server.seen), 1)
                self.assertLessEqual(len(server.seen[0][3]), 20, "nothing is stored")
                # A page of another server, a refusal with our token in it, and no server.
                page = Server(self, lambda *_: (502, {"Content-Type": "text/html"}, b"<p>bad</p>"))
                self.assertEqual(tool(*self.words(kind, page.url)).returncode, 5)
                refusing = Server(self, lambda handler, _: (
                    401, {}, f"no: {handler.headers}".encode()))
                done = tool(*self.words(kind, refusing.url), "--json",
                            env={**os.environ, "CORDWOOD_TOKEN": "t0ken-of-ours"})
                self.assertEqual(done.returncode, 5)
                said = json.loads(done.stdout)
                self.assertEqual((said["fine"], said["http_status"]), (False, 401))
                self.assertIn("refuses the credentials", said["answer"])
                self.assertNotIn("t0ken-of-ours", done.stdout)
                done = tool(*self.words(kind, f"http://127.0.0.1:{free_port()}"))
                self.assertEqual(done.returncode, 5)
                self.assertIn("no answer", done.stdout)

    def test_usage(self):
        for words in (["target", "test"], ["target", "test", "nowhere"],
                      ["target", "test", "http://h", "--kind", "odd"],
                      ["target", "test", "ftp://h"]):
            self.assertEqual(tool(*words).returncode, 2, words)
        store = self.store.parent / "test"
        cordwood.open(store).close()
        self.addCleanup(subprocess.run, ["rm", "-r", store], check=True)
        self.assertEqual(tool("target", "test", "list", cwd=store.parent).returncode, 0)


if __name__ == "__main__":
    unittest.main()
