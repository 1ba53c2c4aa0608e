"""Exchanges captured by the C calls themselves, for tests of readers: any bytes as method, URL,
header and body."""

import ctypes
from ctypes import Structure, byref, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

from cordwood._abi import Text
from capturing import Header, Outcome, Request, Response, library as LIBRARY

HAR_SCHEMA = Path(__file__).with_name("har_schema.json")


class Options(Structure):
    """cw_http_options."""
    _fields_ = [
        ("struct_size", c_uint32), ("enabled", c_uint32), ("body_bytes_max", c_uint64),
        ("sample_per_million", c_uint32), ("hosts", c_char_p), ("hosts_excluded", c_char_p),
        ("conversation_header", c_char_p), ("redact_headers", c_char_p),
        ("redact_keys", c_char_p), ("redact_patterns", c_char_p), ("keep_text", c_char_p),
        ("keep_keys", c_char_p),
    ]


def raw(value):
    return value if isinstance(value, bytes) else value.encode()


def text(value):
    value = raw(value)
    return Text(value, len(value))


def header_array(headers):
    made = (Header * max(len(headers), 1))()
    for index, (name, value) in enumerate(headers):
        made[index] = Header(text(name), text(value))
    return made


def check(status):
    assert status == 0, f"status {status}"


def enable(engine, **options):
    """Captures the requests of the engine's host from now on, whatever form bodies have."""
    made = Options()
    LIBRARY.cw_http_options_init(byref(made), c_size_t(ctypes.sizeof(made)))
    made.enabled = 1
    made.keep_text = b"* */*"
    for name, value in options.items():
        setattr(made, name, value)
    check(LIBRARY.cw_http_options_set(c_void_p(engine._handle), byref(made)))


class Exchange:
    """One exchange from begin to end."""

    def __init__(self, engine, method, url, headers=(), body=None, **more):
        request = Request(struct_size=ctypes.sizeof(Request), method=text(method), url=text(url))
        kept = header_array(headers)
        request.headers, request.header_count = kept, len(headers)
        if body is not None:
            request.body = text(body)
        for name, value in more.items():
            setattr(request, name, value)
        self.handle = c_void_p()
        check(LIBRARY.cw_http_begin(c_void_p(engine._handle), byref(request), byref(self.handle)))
        self.id = LIBRARY.cw_http_id(self.handle).decode()

    def respond(self, status, headers=(), body=None, protocol=None):
        kept = header_array(headers)
        response = Response(ctypes.sizeof(Response), status, kept, len(headers), Text(), protocol)
        if body is not None:
            response.body = text(body)
        check(LIBRARY.cw_http_response(self.handle, byref(response)))
        return self

    def end(self, error="", error_type="", **outcome):
        made = Outcome(ctypes.sizeof(Outcome), 0, text(error), text(error_type))
        for name, value in outcome.items():
            setattr(made, name, value)
        check(LIBRARY.cw_http_end(byref(self.handle), byref(made)))
        return self.id


def answered(engine, method, url, status=200, headers=(), body=None, answer=(), content=None,
             **outcome):
    """Makes a whole one. Returns its id."""
    return Exchange(engine, method, url, headers, body).respond(
        status, answer, content).end(**outcome)
