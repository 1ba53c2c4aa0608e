"""The calls of http.h as hooks make them: one exchange from begin to end, at the price of a few
ctypes calls. An exchange is used by one thread at a time. The ids are those of the context that it
begins in, the fields, too."""
import ctypes
from ctypes import (POINTER, Structure, byref, c_char_p, c_int32, c_size_t, c_uint32, c_uint64,
                    c_void_p)
from typing import Any, Dict, Optional, Tuple

from . import _abi, _context
from ._abi import Field, Text, quick


class Header(Structure):
    """cw_http_header."""
    _fields_ = [("name", Text), ("value", Text)]


class Request(Structure):
    """cw_http_request."""
    _fields_ = [
        ("struct_size", c_uint32), ("side", c_uint32), ("method", Text), ("url", Text),
        ("headers", POINTER(Header)), ("header_count", c_size_t), ("body", Text),
        ("start_ns", c_uint64), ("redirected_from", c_char_p), ("protocol", c_char_p),
        ("attempt", c_uint32), ("trace_flags", c_uint32), ("trace_id", c_char_p),
        ("span_id", c_char_p), ("fields", POINTER(Field)), ("field_count", c_size_t),
    ]


class Response(Structure):
    """cw_http_response."""
    _fields_ = [
        ("struct_size", c_uint32), ("status", c_int32), ("headers", POINTER(Header)),
        ("header_count", c_size_t), ("body", Text), ("protocol", c_char_p),
    ]


class Outcome(Structure):
    """cw_http_outcome."""
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("error", Text), ("error_type", Text),
        ("dns_ns", c_uint64), ("connect_ns", c_uint64), ("tls_ns", c_uint64),
        ("send_ns", c_uint64), ("wait_ns", c_uint64), ("receive_ns", c_uint64),
        ("duration_ns", c_uint64), ("request_body_bytes", c_uint64),
        ("response_body_bytes", c_uint64), ("remote_address", c_char_p),
    ]


_CANCELLED = 1  # CW_HTTP_CANCELLED
_OWN_FIELDS_MAX = 64
_SIZES = {kind: ctypes.sizeof(kind) for kind in (Request, Response, Outcome)}
_TIMES = ("dns_ns", "connect_ns", "tls_ns", "send_ns", "wait_ns", "receive_ns", "duration_ns",
          "request_body_bytes", "response_body_bytes")


def _declare() -> None:
    exchange = c_void_p
    for loaded in (_abi.library, quick):
        loaded.cw_http_enabled.restype = ctypes.c_bool
        for name, arguments in (
                ("cw_http_enabled", [c_void_p]),
                ("cw_http_begin", [c_void_p, c_void_p, c_void_p]),
                ("cw_http_request_body", [exchange, c_void_p, c_size_t]),
                ("cw_http_response", [exchange, c_void_p]),
                ("cw_http_response_body", [exchange, c_void_p, c_size_t]),
                ("cw_http_end", [c_void_p, c_void_p])):
            getattr(loaded, name).argtypes = arguments
        loaded.cw_http_id.restype, loaded.cw_http_id.argtypes = c_char_p, [exchange]


_declare()
_begin, _end = _abi.library.cw_http_begin, _abi.library.cw_http_end
_response = quick.cw_http_response
_request_body, _response_body = quick.cw_http_request_body, quick.cw_http_response_body
_id = quick.cw_http_id
enabled = quick.cw_http_enabled


def _bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    if isinstance(value, str):
        # As http.client and WSGI mean it; what is beyond is still text.
        try:
            return value.encode("latin-1")
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogateescape")
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else str(value).encode()


def _text(value: Any) -> Text:
    raw = _bytes(value)
    return Text(raw, len(raw))


def _headers(pairs: Any) -> Tuple[Any, int]:
    found = list(pairs)
    array = (Header * len(found))()
    for header, (name, value) in zip(array, found):
        header.name, header.value = _text(name), _text(value)
    return array, len(found)


def _fields(values: Dict[str, Any]) -> Any:
    from ._record import _slot, put_field
    names = list(values)[:_OWN_FIELDS_MAX]
    array = (Field * len(names))()
    for field, name in zip(array, names):
        put_field(_slot(field), name, values[name])
    return array


class Exchange:
    """One request and its answer in the store. `id` is what `cordwood http show` takes."""

    __slots__ = ("_handle", "id")

    def __init__(self, handle: c_void_p) -> None:
        self._handle: Optional[c_void_p] = handle
        self.id: str = (_id(handle) or b"").decode()

    def request_body(self, data: Any) -> None:
        """More of what goes out."""
        if type(data) is not bytes:
            data = bytes(data)
        _request_body(self._handle, data, len(data))

    def response_body(self, data: Any) -> None:
        """More of what comes in."""
        if type(data) is not bytes:
            data = bytes(data)
        _response_body(self._handle, data, len(data))

    def response(self, status: int, headers: Any, protocol: Optional[str] = None) -> None:
        """The answer's status and headers."""
        raw = Response(_SIZES[Response], status)
        raw.headers, raw.header_count = _headers(headers)
        raw.protocol = None if protocol is None else protocol.encode()
        _response(self._handle, byref(raw))

    def end(self, error: str = "", error_type: str = "", cancelled: bool = False,
            remote_address: str = "", **times: int) -> None:
        """Writes the record; all further calls are the caller's mistake."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        raw = Outcome(_SIZES[Outcome], _CANCELLED if cancelled else 0)
        if error or error_type:
            raw.error = _utf8(error or error_type)
            raw.error_type = _utf8(error_type)
        if remote_address:
            raw.remote_address = remote_address.encode()
        for name in _TIMES:
            value = times.get(name)
            if value:
                setattr(raw, name, value)
        status = _end(byref(handle), byref(raw))
        if status < 0:
            from ._errors import check
            check(status)


def _utf8(value: str) -> Text:
    raw = value.encode("utf-8", "replace")
    return Text(raw, len(raw))


def begin(handle: int, method: str, url: str, headers: Any, *, body: Any = b"", side: int = 0,
          start_ns: int = 0, redirected_from: Optional[str] = None, protocol: Optional[str] = None,
          attempt: int = 0) -> Optional[Exchange]:
    """An exchange of that engine; None: it is not captured. Raises CordwoodError."""
    raw = Request(_SIZES[Request], side)
    raw.method, raw.url = _utf8(method), _utf8(url)
    raw.headers, raw.header_count = _headers(headers)
    if body:
        raw.body = _text(body)
    raw.start_ns, raw.attempt = start_ns, attempt
    if redirected_from is not None:
        raw.redirected_from = redirected_from.encode()
    if protocol is not None:
        raw.protocol = protocol.encode()
    state = _context.STATE.get()
    if state is not None:
        if state.ids is not None:
            raw.trace_id, raw.span_id, raw.trace_flags = state.ids
        if state.fields:
            raw.fields = array = _fields(state.fields)
            raw.field_count = len(array)
    out = c_void_p()
    status = _begin(handle, byref(raw), byref(out))
    if status == _abi.OK and out.value:
        return Exchange(out)
    if status < 0:
        from ._errors import check
        check(status)
    return None
