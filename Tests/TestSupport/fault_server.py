#!/usr/bin/env python3
"""A small HTTP server that answers as it is told, for upload tests.

    fault_server.py DIRECTORY ANSWERS [PEM]

ANSWERS is JSON: '[{"status": 503, "headers": {"Retry-After": "1"}}, {"action": "drop"}]'. With PEM
(key and certificate) it speaks TLS. Prints its port on the first line of stdout. The n-th request
gets the n-th answer, all later ones 200.
An answer: status (200), headers, body, action:
    drop   close the connection before reading the body
    lose   store the body, then close without an answer (a lost acknowledgement)
    half   announce a longer answer than is sent
    hang   read the request, never answer (until the client leaves)
DIRECTORY/requests.jsonl gets one line a request (method, path, headers, bytes, number);
DIRECTORY/body-N the body as received; DIRECTORY/stored.json how often each Idempotency-Key was
stored with a 2xx or `lose`: a body is kept once per key. A request whose body ends early is noted
with the bytes that came, and neither stored nor answered.
"""
import http.server
import json
import os
import ssl
import sys
import threading

directory, answers = sys.argv[1], json.loads(sys.argv[2])
lock = threading.Lock()
served = 0
stored = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer_number(self):
        global served
        with lock:
            served += 1
            number = served
        return number, (answers[number - 1] if number <= len(answers) else {})

    def take(self):
        number, answer = self.answer_number()
        action = answer.get("action", "")
        if action == "drop":
            self.note(number, 0)
            return self.cut()
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            # The client left: this is no body, and a server that kept it would keep half.
            self.note(number, len(body))
            return self.cut()
        with open(os.path.join(directory, f"body-{number}"), "wb") as file:
            file.write(body)
        status = answer.get("status", 200)
        if 200 <= status < 300 and action != "hang":
            self.store(body)
        self.note(number, len(body))
        if action == "lose":
            return self.cut()
        if action == "hang":
            self.connection.recv(1)
            return self.cut()
        reply = answer.get("body", "{}").encode()
        self.send_response(status)
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply) + (1000 if action == "half" else 0)))
        self.end_headers()
        self.wfile.write(reply)
        if action == "half":
            self.cut()

    def store(self, body):
        key = self.headers.get("Idempotency-Key", "")
        with lock:
            entry = stored.setdefault(key, {"times": 0, "same": True, "bytes": len(body)})
            entry["same"] = entry["same"] and entry.get("body", body) == body
            entry["times"] += 1
            entry["body"] = body
            plain = {k: {"times": v["times"], "same": v["same"]} for k, v in stored.items()}
            temporary = os.path.join(directory, "stored.new")
            with open(temporary, "w") as file:
                json.dump(plain, file)
            os.rename(temporary, os.path.join(directory, "stored.json"))

    def note(self, number, length):
        line = {"number": number, "method": self.command, "path": self.path, "bytes": length,
                "headers": {k.lower(): v for k, v in self.headers.items()}}
        with lock, open(os.path.join(directory, "requests.jsonl"), "a") as file:
            file.write(json.dumps(line) + "\n")

    def cut(self):
        self.close_connection = True
        try:
            self.connection.shutdown(2)
        except OSError:
            pass

    do_POST = do_PUT = do_GET = take


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


server = Server(("127.0.0.1", 0), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
# The test holds the other end of stdin: when it goes, so does the server.
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
