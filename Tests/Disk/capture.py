"""Captured exchanges on a full disk. The host's requests succeed as usual, each call returns what
http.h says, and one diagnostic reports it. Once there is room, later exchanges are kept."""

import http.client
import logging
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import E_FULL, OK, ballast, equal, holds, until

BODY = b"answer" * 1_000


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


class Told(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def post(server, path):
    connection = http.client.HTTPConnection(*server.server_address, timeout=30)
    connection.request("POST", path, b"question" * 100)
    answer = connection.getresponse()
    equal("answer", (answer.status, answer.read()), (200, BODY))
    connection.close()


def fill(log):
    """Writes until nothing is kept, not even the smallest record."""
    for size in (1_000, 100, 0):
        for _ in range(100_000):
            if not log.info("x" * size):
                break
        else:
            holds(False, "the disk is never full")


def beside(engine, log, server, held):
    """Runs while the disk is full, and after. Returns the ids of exchanges that must be kept."""
    from capturing import Exchange
    early = Exchange(engine, url="http://early/")
    equal("begin, with room", early.status, OK)
    fill(log)
    told = Told()
    logging.getLogger("Cordwood.HTTP").addHandler(told)
    try:
        for number in range(20):
            post(server, f"/full/{number}")
    finally:
        logging.getLogger("Cordwood.HTTP").removeHandler(told)
    equal("diagnostics", len(told.texts), 1)
    holds("HTTP capture failed" in told.texts[0], told.texts[0])
    early.sends(b"a").answers(200, [("A", "b")], b"c")
    equal("end, full", early.ends(), E_FULL)
    holds(not early.handle.value, "the handle is freed")
    late = Exchange(engine, url="http://late/")
    equal("begin, full", late.status, OK)
    late.answers(200, [], BODY)
    held.unlink()
    until(lambda: log.info("room"), "logging goes on")
    equal("end, with room again", late.ends(), OK)
    for number in range(5):
        post(server, f"/room/{number}")
    return late


def full_while_captured(place):
    disk = place.tmpfs(8)
    from sending import WORK  # the binding, with the library that was built
    import cordwood
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    engine = cordwood.open(disk / "store")
    engine.capture_http(keep_text="* */*")
    hooks = cordwood.install_http_hooks(engine, clients=["http.client"])
    try:
        post(server, "/before")
        late = beside(engine, engine.logger("app"), server, ballast(disk, 0))
        refused = engine.stats().records_dropped
    finally:
        hooks.remove()
        engine.close()
        server.shutdown()
        server.server_close()
        shutil.rmtree(WORK, ignore_errors=True)
    ended = [record.fields for record in cordwood.read(disk / "store", kinds="http")
             if record.fields["http.op"] == "end"]
    paths = [fields["url.full"].partition(str(server.server_address[1]))[2] for fields in ended]
    equal("kept", [path for path in paths if path],
          ["/before", *(f"/room/{number}" for number in range(5))])
    holds(late.id in {fields["http.id"] for fields in ended}, "the one that ended with room")
    missing = sum(record.fields["gap.records"]
                  for record in cordwood.read(disk / "store", kinds="gap"))
    equal("missing by gap records", missing, refused)
    holds(missing >= 20 * 2, f"{missing} refused")
    place.note(f"{refused} records refused, 20 requests beside a full disk")


CASES = {"full_while_captured": full_while_captured}
