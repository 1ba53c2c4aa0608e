"""An OTLP receiver in this process: decodes requests strictly with the official schema, and answers
as configured."""

import base64
import gzip
import json
import re
import subprocess
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest


def inflated(body, encoding):
    """The content: one gzip member or one zstd frame, nothing after it."""
    if encoding is None:
        return body
    if encoding == "gzip":
        member = zlib.decompressobj(31)
        data = member.decompress(body) + member.flush()
        assert member.eof and not member.unused_data, "the body is not one gzip member"
        assert gzip.decompress(body) == data
        return data
    assert encoding == "zstd", encoding
    return subprocess.run(["zstd", "-dc"], input=body, capture_output=True, check=True).stdout


def as_proto3(value):
    """Converts OTLP's JSON to proto3's: ids in base64 instead of hex. Checks OTLP's other rules."""
    if isinstance(value, list):
        return [as_proto3(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, item in value.items():
        assert "_" not in key, f"{key} is not lowerCamelCase"
        if key in ("traceId", "spanId"):
            digits = 32 if key == "traceId" else 16
            assert re.fullmatch(r"[0-9a-f]{%d}" % digits, item), item
            made[key] = base64.b64encode(bytes.fromhex(item)).decode()
        elif key in ("timeUnixNano", "observedTimeUnixNano", "intValue"):
            assert isinstance(item, str), f"{key} is a 64-bit number: a string"
            made[key] = item
        elif key == "severityNumber":
            assert isinstance(item, int), "enums are integers"
            made[key] = item
        else:
            made[key] = as_proto3(item)
    return made


def no_twice(pairs):
    made = dict(pairs)
    assert len(made) == len(pairs), "a key stands there twice"
    return made


def from_json(data):
    """An ExportLogsServiceRequest. Fails on anything unknown to the schema."""
    value = json.loads(data, object_pairs_hook=no_twice, parse_constant=lambda word: 1 / 0)
    return json_format.ParseDict(as_proto3(value), ExportLogsServiceRequest())


def from_protobuf(data):
    request = ExportLogsServiceRequest.FromString(data)
    # Nothing unknown, split or in an odd order.
    again = request.SerializeToString(deterministic=True)
    if again != data:
        at = next((n for n, (a, b) in enumerate(zip(again, data)) if a != b), min(
            len(again), len(data)))
        raise AssertionError(f"another way of writing it, at {at}: {data[at - 60:at + 40]!r}, "
                             f"the library's is {again[at - 60:at + 40]!r}")
    return request


class Receiver:
    """`answers`: the answers to the next requests, (status, headers, body); afterwards 200.
    `judge`: computes the answer instead, from headers and content: a status or all three."""

    def __init__(self):
        self.answers, self.seen = [], []
        self.judge = None
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.take(self)

            def log_message(self, *_):
                """Logs nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def take(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        data = inflated(body, handler.headers["Content-Encoding"])
        with self.lock:
            status, headers, answer = self.answers.pop(0) if self.answers else (200, {}, b"")
            if self.judge:
                said = self.judge(handler.headers, data)
                status, headers, answer = (said, headers, answer) if isinstance(said, int) else said
            self.seen.append((handler.path, dict(handler.headers), data, status))
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def requests(self):
        """The decoded requests that were answered 2xx."""
        found = []
        for path, headers, data, status in self.seen:
            assert path == "/v1/logs", path
            kind = headers["Content-Type"]
            assert kind in ("application/json", "application/x-protobuf"), kind
            decode = from_json if kind == "application/json" else from_protobuf
            request = decode(data)
            if 200 <= status < 300:
                found.append(request)
        return found
