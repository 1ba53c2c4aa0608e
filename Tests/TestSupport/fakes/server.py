#!/usr/bin/env python3
"""One of the fakes as a server on loopback, for tests of uploads.

    server.py DIRECTORY KIND [SETTINGS]       serves; its port is the first line of stdout
    server.py --check KIND SETTINGS PATH HEADERS FILE…
                                              what the server would say to these bodies

SETTINGS is JSON; each fake's file documents its own. `faults` is for all: the n-th request meets
the n-th of them: {"status": 503, "headers": {}, "body": ""} answers so without reading the request;
{"action": "lose"} accepts it and closes without an answer; {"action": "drop"} closes first;
{"action": "hold"} answers once there is a file DIRECTORY/go; {} lets it pass.
DIRECTORY/requests.jsonl gets a line for each request (number, method, path, headers, bytes, status,
said). DIRECTORY/stored.jsonl is what the server has, rewritten after each. It lives as long as its
stdin.
"""
import http.server
import importlib
import json
import os
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from serving import Serving, cut, serve_caller  # noqa: E402
from strict import Answer, Refused  # noqa: E402

KINDS = ("sap", "loggly", "loki", "elasticsearch", "splunk", "datadog",
         "transactions")


def make(kind, settings):
    """The fake of that kind."""
    if kind not in KINDS:
        sys.exit(f"no fake of {kind}; there are {', '.join(KINDS)}")
    return importlib.import_module(kind).Fake(settings)


def ask(fake, method, path, headers, body):
    """The fake's answer, also if it refuses."""
    try:
        return fake.answer(method, path, headers, body)
    except Refused as error:
        return Answer(error.status, error.text.encode(), error.headers)


def check(kind, settings, path, headers, files):
    """Prints the rows as JSON lines. Prints refusals on stderr and fails."""
    fake = make(kind, json.loads(settings))
    for file in files:
        answer = ask(fake, "POST", path, json.loads(headers), Path(file).read_bytes())
        if not 200 <= answer.status < 300:
            sys.exit(f"{file}: {answer.status} {answer.body.decode(errors='replace')[:500]}")
        if kind == "elasticsearch" and b'"errors": true' in answer.body:
            sys.exit(f"{file}: {answer.body.decode()[:500]}")
    for row in fake.stored:
        print(json.dumps(row, ensure_ascii=True))


def serve(directory, kind, settings):
    """Serves until stdin ends."""
    fake, lock, count = make(kind, settings), threading.Lock(), [0]
    faults = settings.get("faults", [])

    class Handler(http.server.BaseHTTPRequestHandler):
        """Passes each request to the fake, one at a time."""

        protocol_version = "HTTP/1.1"
        # Head and body are two writes: the second would wait 40 ms for an acknowledgement.
        disable_nagle_algorithm = True

        def log_message(self, format, *arguments):
            """Logs nothing."""

        def take(self):
            """One request."""
            with lock:
                count[0] += 1
                number = count[0]
            fault = faults[number - 1] if number <= len(faults) else {}
            if fault.get("action") == "drop":
                return cut(self)
            length = int(self.headers.get("Content-Length", "0"))
            body = self.rfile.read(length)
            if len(body) < length:
                return cut(self)
            headers = {key.lower(): value for key, value in self.headers.items()}
            while fault.get("action") == "hold" and not os.path.exists(
                    os.path.join(directory, "go")):
                time.sleep(0.01)
            with lock:
                if "status" in fault:
                    answer = Answer(fault["status"], fault.get("body", "").encode(),
                                    fault.get("headers"))
                else:
                    answer = ask(fake, self.command, self.path, headers, body)
                self.note(number, headers, length, answer)
            if fault.get("action") == "lose":
                return cut(self)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status != 204:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if answer.status != 204:
                self.wfile.write(answer.body)

        def note(self, number, headers, length, answer):
            """Records the request, the answer and what is stored."""
            line = {"number": number, "method": self.command, "path": self.path, "bytes": length,
                    "headers": headers, "status": answer.status,
                    "said": answer.body.decode(errors="replace")[:2000]}
            with open(os.path.join(directory, "requests.jsonl"), "a") as file:
                file.write(json.dumps(line) + "\n")
            new = os.path.join(directory, "stored.new")
            with open(new, "w") as file:
                file.writelines(json.dumps(row) + "\n" for row in fake.stored)
            os.rename(new, os.path.join(directory, "stored.jsonl"))

        do_POST = do_PUT = do_GET = take

    serve_caller(Serving(("127.0.0.1", 0), Handler))


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(*sys.argv[2:6], sys.argv[6:])
    else:
        serve(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
