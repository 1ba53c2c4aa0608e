#!/usr/bin/env python3
"""A small HTTP server with scripted answers, for upload tests.

    fault_server.py DIRECTORY ANSWERS [PEM [AUTHORITY]] [NAME=VALUE…]

ANSWERS is JSON: '[{"status": 503, "headers": {"Retry-After": "1"}}, {"action": "drop"}]'. With PEM
(key and certificate) it speaks TLS, with AUTHORITY only to clients with a certificate from that
one. Prints its port on the first line of stdout. The n-th request gets the n-th answer, all later
ones the default: 200, or that of `respond`.
An answer: status (200), headers, body, body_bytes (the size, instead of body), action:
    drop   close the connection before reading the body
    lose   store the body, then close without an answer (a lost acknowledgement)
    half   announce a longer answer than is sent, of any status
    hang   read the request, never answer (until the client leaves)
    huge   an answer of `bytes` bytes, as far as the client reads it
    stall  read no body, never answer (until the client leaves)
    raw    store nothing, answer with the bytes of `text` and close
Rules, for every request: `limit` (a body over this size is answered 413), `refuse` (encodings,
separated by commas, that are answered 415), `poison` (a body with that text is answered 400),
`respond` (a kind: elasticsearch, splunk, loggly, …: what its server answers on success); `port`:
the one to listen on. PUT /_script with JSON {"directory", "answers", "rules"} starts afresh. So
does a line on stdin with these arguments as a JSON list, at another port, which follows on stdout:
a client that comes late finds none at the old one.
DIRECTORY/connections gets a byte for each; DIRECTORY/requests.jsonl gets one line a request
(method, path, headers, bytes, number, status, sha256); DIRECTORY/body-N is the body as received;
DIRECTORY/stored.json counts how often each Idempotency-Key was stored with a 2xx or `lose`: a body
is kept once per key. A request whose body ends early is recorded with the bytes that came, but
neither stored nor answered.
"""
import base64
import gzip
import hashlib
import http.server
import json
import os
import select
import ssl
import sys
import threading

sys.dont_write_bytecode = True

from serving import Serving, cut  # noqa: E402

lock = threading.Lock()
LOOK_S = 0.02  # how often a server looks whether it is to end


class Script:
    """The planned answers, and the requests so far."""

    def __init__(self, directory, answers, rules):
        self.directory, self.answers = directory, answers
        self.port, self.limit = int(rules.get("port", 0)), int(rules.get("limit", 0))
        self.refused = [word for word in rules.get("refuse", "").split(",") if word]
        self.respond = rules.get("respond", "")
        self.poison = rules.get("poison", "").encode()
        self.served = 0
        self.stored = {}
        self.documents = {}

    def next(self):
        with lock:
            self.served += 1
            number = self.served
            answer = self.answers[number - 1] if number <= len(self.answers) else None
        return number, answer

    def rule(self, body, encoding):
        if self.limit and len(body) > self.limit:
            return {"status": 413}
        if self.poison and self.poison in body:
            return {"status": 400}
        if encoding in self.refused or (encoding == "" and "none" in self.refused):
            return {"status": 415}
        return None

    def success(self, body, encoding):
        """(status, body) of a server of that kind that has accepted everything; None: as a
        collector, or any other."""
        if self.respond == "elasticsearch":
            return 200, self.bulk(gzip.decompress(body) if encoding == "gzip" else body)
        return {
            "splunk": (200, '{"text":"Success","code":0}'), "loggly": (200, '{"response":"ok"}'),
            "sap": (204, ""), "loki": (204, ""), "datadog": (202, "{}"), "otlp": (200, ""),
            "clickhouse": (200, ""), "s3": (200, ""),
        }.get(self.respond)

    def bulk(self, content):
        """Like Elasticsearch's bulk interface: a document is created once."""
        items, lines = [], content.split(b"\n")
        with lock:
            for action, document in zip(lines[0::2], lines[1::2]):
                name = json.loads(action)["create"]["_id"]
                is_new = name not in self.documents
                self.documents.setdefault(name, json.loads(document))
                items.append({"create": {"_id": name, "status": 201 if is_new else 409}})
            self.write("documents.json", self.documents)
        errors = any(item["create"]["status"] != 201 for item in items)
        return json.dumps({"took": 1, "errors": errors, "items": items})

    def write(self, name, value):
        temporary = os.path.join(self.directory, name + ".new")
        with open(temporary, "w") as file:
            json.dump(value, file)
        os.rename(temporary, os.path.join(self.directory, name))

    def store(self, key, body):
        with lock:
            entry = self.stored.setdefault(key, {"times": 0, "same": True, "bytes": len(body)})
            entry["same"] = entry["same"] and entry.get("body", body) == body
            entry["times"] += 1
            entry["body"] = body
            self.write("stored.json", {k: {"times": v["times"], "same": v["same"]}
                                       for k, v in self.stored.items()})

    def note(self, line):
        with lock, open(os.path.join(self.directory, "requests.jsonl"), "a") as file:
            file.write(json.dumps(line) + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second would wait 40 ms for the client's acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def take(self):
        if self.path == "/_script":
            return self.replace()
        script = self.server.script
        number, answer = script.next()
        action = (answer or {}).get("action", "")
        if action == "drop":
            self.note(script, number, b"", 0)
            return cut(self)
        if action == "stall":
            self.note(script, number, b"", 0)
            return self.wait_for_end()
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            # The client left: this is not a body, and a server that kept it would keep half.
            self.note(script, number, body, 0)
            return cut(self)
        with open(os.path.join(script.directory, f"body-{number}"), "wb") as file:
            file.write(body)
        if action == "raw":
            self.note(script, number, body, 0)
            self.wfile.write(answer["text"].encode("latin-1"))
            return cut(self)
        encoding = self.headers.get("Content-Encoding", "")
        if answer is None:
            answer = script.rule(body, encoding) or {}
        status, text = answer.get("status", 200), answer.get("body", self.receipt(body))
        if 200 <= status < 300 and action != "hang":
            if "body" not in answer and "status" not in answer:
                status, text = script.success(body, encoding) or (200, text)
                # A 204 has no half.
                status = 200 if action == "half" else status
            script.store(self.headers.get("Idempotency-Key", ""), body)
        self.note(script, number, body, 0 if action in ("lose", "hang", "half") else status)
        if action == "lose":
            return cut(self)
        if action == "hang":
            self.connection.recv(1)
            return cut(self)
        if action == "huge":
            return self.answer_huge(status, answer)
        reply = text.encode()
        if "body_bytes" in (answer or {}):
            reply = b"x" * answer["body_bytes"]
        self.send_response(status)
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        if script.respond == "s3" and 200 <= status < 300:
            self.send_header("ETag", f'"{hashlib.md5(body).hexdigest()}"')
        if status != 204:
            self.send_header("Content-Length", str(len(reply) + (1000 if action == "half" else 0)))
        self.end_headers()
        try:
            self.wfile.write(reply)
        except OSError:
            return cut(self)
        if action == "half":
            cut(self)

    def receipt(self, body):
        """A collector's answer: the archive's id, which is also the request's, and its records."""
        if self.headers.get("Content-Type") != "application/vnd.cordwood.archive":
            return "{}"
        return json.dumps({"id": self.headers.get("Idempotency-Key", "").strip('"'),
                           "stored": True, "records": records_of(body)})

    def answer_huge(self, status, answer):
        self.send_response(status)
        self.send_header("Content-Length", str(answer["bytes"]))
        self.end_headers()
        left, piece = answer["bytes"], bytes(1 << 20)
        try:
            while left > 0:
                self.wfile.write(piece[:left])
                left -= len(piece)
        except OSError:
            pass
        cut(self)

    def wait_for_end(self):
        """Waits until the client has closed. What it sends meanwhile is not read."""
        poll = select.poll()
        poll.register(self.connection, select.POLLRDHUP)
        poll.poll()
        cut(self)

    def replace(self):
        words = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        os.makedirs(words["directory"], exist_ok=True)
        self.server.script = Script(words["directory"], words["answers"], words.get("rules", {}))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def note(self, script, number, body, status):
        script.note({"number": number, "method": self.command, "path": self.path,
                     "bytes": len(body), "status": status,
                     "sha256": hashlib.sha256(body).hexdigest(),
                     "headers": {k.lower(): v for k, v in self.headers.items()}})

    do_POST = do_PUT = do_GET = take


def records_of(archive):
    """FORMAT §11.3; of an encrypted one §11.5. What is no archive has none."""
    if archive.startswith(b"age-encryption.org/"):
        stanza = archive.partition(b"-> cordwood.eu/archive-v1\n")[2].partition(b"\n--- ")[0]
        text = stanza.replace(b"\n", b"")
        summary = base64.b64decode(text + b"=" * (-len(text) % 4))
        return int.from_bytes(summary[56:64], "little")
    span = int.from_bytes(archive[-16:-12], "little")
    if archive[-8:] != b"CWAREND1" or span > len(archive):
        return 0
    footer = archive[len(archive) - span + 8:]
    return int.from_bytes(footer[24:32], "little")


class Server(Serving):
    def process_request(self, request, client_address):
        with lock, open(os.path.join(self.script.directory, "connections"), "a") as file:
            file.write("+")
        super().process_request(request, client_address)


def serve(words):
    """A server for these arguments, which prints its port."""
    rules = dict(word.split("=", 1) for word in words[2:] if "=" in word)
    pems = [word for word in words[2:] if "=" not in word]
    script = Script(words[0], json.loads(words[1]), rules)
    server = Server(("127.0.0.1", script.port), Handler)
    server.script = script
    if pems:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pems[0])
        if len(pems) > 1:
            context.load_verify_locations(pems[1])
            context.verify_mode = ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(LOOK_S,), daemon=True).start()
    print(server.server_address[1], flush=True)
    return server


def main():
    server = serve(sys.argv[1:])
    for line in sys.stdin:
        server.shutdown()
        server.server_close()
        server = serve(json.loads(line))


main()
