"""B-HTTP 6 with thousands of bodies: whatever the content type says, however a body is compressed
and wherever it breaks off, no planted secret is in the store, its archives and the exports."""

import base64
import collections
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import capturing
import cases
import swift_hosts
from cases import full
from http_hosts import HERE, Hosts, environment
from planted import DIGITS, MARK, Planted
from sending import CORDWOOD

COUNT = cases.sized(20, 120, 5_000)
FORMS = [MARK.encode(), DIGITS.encode(), *(
    base64.b64encode(b"x" * at + MARK.encode())[at + 2:-4] for at in range(3))]


class Peer(BaseHTTPRequestHandler):
    """Answers with the body of the number in the path. Accepts uploads."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Logs nothing."""

    def do_GET(self):
        planted = Planted(int(self.path.rpartition("/")[2]))
        self.send_response(planted.random.choice([200, 200, 200, 400, 500]))
        if planted.content_type:
            self.send_header("Content-Type", planted.content_type)
        if planted.coding:
            self.send_header("Content-Encoding", planted.coding)
        is_chunked = planted.random.random() < 0.3
        self.send_header(*(("Transfer-Encoding", "chunked") if is_chunked
                           else ("Content-Length", str(len(planted.body)))))
        self.end_headers()
        sent = planted.body[:planted.end]
        while sent and is_chunked:
            size = planted.random.randrange(1, len(sent) + 1)
            self.wfile.write(b"%x\r\n%b\r\n" % (size, sent[:size]))
            sent = sent[size:]
        self.wfile.write(b"0\r\n\r\n" if is_chunked and planted.end is None else sent)
        if planted.end is not None:
            self.close_connection = True

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(204)
        self.end_headers()


class Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """Clients here leave at any time."""


class PlantedTest(Hosts):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.peer = Quiet(("127.0.0.1", 0), Peer)
        threading.Thread(target=cls.peer.serve_forever, args=(0.05,), daemon=True).start()
        cls.addClassCleanup(cls.peer.server_close)
        cls.addClassCleanup(cls.peer.shutdown)
        cls.base = f"http://127.0.0.1:{cls.peer.server_address[1]}"
        cls.first = cases.seed() % 10**6 * 10

    def nowhere(self, least):
        """No secret is anywhere, and enough of the rest was kept."""
        kept = collections.Counter()
        for one in capturing.ended(self.store):
            kept[any(f"http.{side}.body" in one for side in ("request", "response"))] += 1
        self.assertGreaterEqual(sum(kept.values()), least)
        self.assertGreater(kept[True], least // 4, "most have a form")
        # Raw bytes of dense blocks cannot be searched.
        subprocess.run([CORDWOOD, "archive", "--method", "plain", self.store], check=True,
                       stdout=subprocess.DEVNULL)
        places = {place for place, _ in capturing.leaks(self.store, FORMS)}
        self.assertEqual(places, set(), f"from {self.first} on")

    def client(self, name):
        self.run_client(self.python, HERE / "http_planted.py", name)

    def run_client(self, *program):
        done = subprocess.run([*program, self.store, self.base, str(self.first), str(COUNT)],
                              env=environment(), stdout=subprocess.PIPE, check=True)
        self.assertGreater(int(done.stdout), COUNT // 3)
        self.nowhere(COUNT)

    def test_B_HTTP_6_planted_urllib(self):
        self.client("urllib")

    @full
    def test_B_HTTP_6_planted_requests(self):
        self.client("requests")

    @full
    def test_B_HTTP_6_planted_httpx(self):
        self.client("httpx")

    @full
    def test_B_HTTP_6_planted_aiohttp(self):
        self.client("aiohttp")

    @full
    def test_B_HTTP_6_planted_urlsession(self):
        self.run_client(swift_hosts.program("HTTPPlanted"))

    @full
    def test_B_HTTP_6_planted_curl(self):
        program = self.built_curl("http_curl_planted")
        subprocess.run([program, self.store, self.base, str(self.first), str(COUNT)],
                       env=environment(), check=True)
        self.nowhere(COUNT)

    def test_B_HTTP_6_planted_c(self):
        """With the C calls, in pieces."""
        engine = self.open()
        engine.capture_http()
        for number in range(self.first, self.first + COUNT * 8):
            asked, answer = Planted(number), Planted(number + 10**7)
            exchange = capturing.Exchange(engine, headers=self.headers(asked))
            exchange.sends(*self.pieces(asked)).answers(
                200, self.headers(answer), *self.pieces(answer)).ends()
        engine.roll()
        engine.archive_wait(60)
        engine.close()
        self.nowhere(COUNT * 8)

    @staticmethod
    def headers(planted):
        made = [("Content-Type", planted.content_type), ("Content-Encoding", planted.coding)]
        return [(name, value) for name, value in made if value]

    @staticmethod
    def pieces(planted):
        sent, made = planted.body[:planted.end], []
        while sent:
            size = planted.random.randrange(1, len(sent) + 1)
            made.append(sent[:size])
            sent = sent[size:]
        return made
