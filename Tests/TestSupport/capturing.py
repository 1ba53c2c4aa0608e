"""Exchanges by the C calls themselves, as made by a host without hooks, and a search for secrets in
every output of a store."""

import ctypes
import subprocess
from ctypes import (POINTER, Structure, byref, c_char_p, c_int32, c_size_t, c_uint32, c_uint64,
                    c_void_p, sizeof)

import cordwood
from cordwood import _abi
from cordwood._abi import Field, Text
from sending import CORDWOOD

# A separate handle of the same library: the binding's hooks set other structs for theirs.
library = ctypes.CDLL(_abi.library._name)
CLIENT, SERVER = 0, 1
CANCELLED = 1
FORMATS = ("raw", "text", "ndjson", "sap", "csv", "otlp", "har", "transactions", "otlp-spans")


class Header(Structure):
    _fields_ = [("name", Text), ("value", Text)]


class Request(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("side", c_uint32), ("method", Text), ("url", Text),
        ("headers", POINTER(Header)), ("header_count", c_size_t), ("body", Text),
        ("start_ns", c_uint64), ("redirected_from", c_char_p), ("protocol", c_char_p),
        ("attempt", c_uint32), ("trace_flags", c_uint32), ("trace_id", c_char_p),
        ("span_id", c_char_p), ("fields", POINTER(Field)), ("field_count", c_size_t),
    ]


class Response(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("status", c_int32), ("headers", POINTER(Header)),
        ("header_count", c_size_t), ("body", Text), ("protocol", c_char_p),
    ]


class Outcome(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("error", Text), ("error_type", Text),
        ("dns_ns", c_uint64), ("connect_ns", c_uint64), ("tls_ns", c_uint64),
        ("send_ns", c_uint64), ("wait_ns", c_uint64), ("receive_ns", c_uint64),
        ("duration_ns", c_uint64), ("request_body_bytes", c_uint64),
        ("response_body_bytes", c_uint64), ("remote_address", c_char_p),
    ]


for _name in ("cw_http_request_body", "cw_http_response_body"):
    getattr(library, _name).argtypes = [c_void_p, c_char_p, c_size_t]
library.cw_http_begin.argtypes = [c_void_p, POINTER(Request), POINTER(c_void_p)]
library.cw_http_response.argtypes = [c_void_p, POINTER(Response)]
library.cw_http_end.argtypes = [POINTER(c_void_p), POINTER(Outcome)]
library.cw_http_id.argtypes, library.cw_http_id.restype = [c_void_p], c_char_p


def _text(value):
    raw = value.encode() if isinstance(value, str) else value
    return Text(raw, len(raw))


def _headers(pairs):
    array = (Header * max(1, len(pairs)))()
    for header, (name, value) in zip(array, pairs):
        header.name, header.value = _text(name), _text(value)
    return array


class Exchange:
    """One exchange. `status` is what begin returned."""

    def __init__(self, engine, method="GET", url="http://127.0.0.1/", headers=(), body=b"",
                 **more):
        request = Request(sizeof(Request), more.pop("side", CLIENT), _text(method), _text(url))
        request.headers, request.header_count = _headers(headers), len(headers)
        request.body = _text(body)
        for name, value in more.items():
            setattr(request, name, value)
        self.handle = c_void_p()
        self.status = library.cw_http_begin(engine._handle, byref(request), byref(self.handle))
        self.id = (library.cw_http_id(self.handle) or b"").decode()

    def sends(self, *pieces):
        for piece in pieces:
            library.cw_http_request_body(self.handle, piece, len(piece))
        return self

    def answers(self, status=200, headers=(), *pieces, protocol=None):
        response = Response(sizeof(Response), status)
        response.headers, response.header_count = _headers(headers), len(headers)
        response.protocol = protocol
        result = library.cw_http_response(self.handle, byref(response))
        assert result == (0 if self.handle else 1), result
        return self.receives(*pieces)

    def receives(self, *pieces):
        for piece in pieces:
            library.cw_http_response_body(self.handle, piece, len(piece))
        return self

    def ends(self, error="", error_type="", **more):
        outcome = Outcome(sizeof(Outcome), more.pop("flags", 0), _text(error), _text(error_type))
        for name, value in more.items():
            setattr(outcome, name, value)
        return library.cw_http_end(byref(self.handle), byref(outcome))


def ended(store):
    """Fields of the ended exchanges, with level and message; oldest first."""
    return [{**record.fields, "level": record.level, "message": record.message,
             "time_ns": record.time_ns, "trace_id": record.trace_id}
            for record in cordwood.read(store, kinds=("http",))
            if record.fields["http.op"] == "end"]


def begun(store):
    return [{**record.fields, "level": record.level, "message": record.message}
            for record in cordwood.read(store, kinds=("http",))
            if record.fields["http.op"] == "begin"]


def everything(store):
    """All bytes of the store's files and of the tool's outputs for them, by place."""
    shown = {str(path): path.read_bytes() for path in sorted(store.rglob("*"))
             if path.is_file()}
    for arguments in (["cat", "--json", store], ["cat", store], ["http", "list", "--json", store],
                      ["http", "list", "--har", store],
                      *(["export", store, "--all-kinds", "--format", name] for name in FORMATS)):
        done = subprocess.run([CORDWOOD, *arguments], stdout=subprocess.PIPE, check=True)
        shown[" ".join(map(str, arguments))] = done.stdout
    for path in store.rglob("*.cwa"):
        unpacked = subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True)
        shown[f"zstd -dc {path.name}"] = unpacked.stdout
    return shown


def leaks(store, secrets):
    """The places of secrets."""
    return [(place, secret) for place, content in everything(store).items()
            for secret in secrets if secret in content]
