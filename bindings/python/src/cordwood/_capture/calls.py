"""The calls of http.h as hooks make them: one exchange from begin to end. One thread at a time uses
an exchange. It takes its ids and fields from the context in which it begins.

A request has some twenty strings. A ctypes struct of them costs more than the call. They are joined
in one bytes object instead, and the structs are packed from each string's offset in it.
"""
import ctypes
import os
from ctypes import byref, c_char_p, c_size_t, c_void_p
from itertools import accumulate, chain
from struct import Struct
from typing import Any, Dict, List, Optional, Tuple

from .. import _abi, _context
from .._abi import Field, quick
from .._text import encode


_CANCELLED = 1  # CW_HTTP_CANCELLED
# Whether a body that the headers call chunked arrives here with that framing: CW_HTTP_…
RESPONSE_CHUNKS, REQUEST_BARE, RESPONSE_BARE = 4, 8, 16
_OWN_FIELDS_MAX = 64
_UINT64_MAX = (1 << 64) - 1
# cw_http_request, cw_http_response, cw_http_outcome.
_REQUEST = Struct("@II PN PN PN PN Q PP II PP PN")
_RESPONSE = Struct("@Ii PN PN P")
_OUTCOME = Struct("@II PN PN 9Q P")
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
        # As in http.client and WSGI; a value beyond Latin-1 is still text.
        try:
            return value.encode("latin-1")
        except UnicodeEncodeError:
            return encode(value)
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else str(value).encode()


def _address(raw: bytes) -> int:
    """The address of a bytes object's bytes; the object must outlive the use."""
    return c_size_t.from_buffer(c_char_p(raw)).value


def _utf8(value: str) -> bytes:
    return value.encode("utf-8", "replace")


def _terminated(value: Optional[str]) -> bytes:
    """The text as C wants it, or nothing."""
    return b"" if value is None else _utf8(value).replace(b"\0", b"") + b"\0"


def _joined(parts: List[bytes]) -> Tuple[bytes, List[int], List[int]]:
    """Joins the parts; returns all of them, the offset of each, and their lengths."""
    blob = b"".join(parts)
    lengths = list(map(len, parts))
    return blob, list(accumulate(lengths, initial=_address(blob))), lengths


def _parts(headers: Any) -> List[bytes]:
    """Names and values, alternating."""
    return [value if type(value) is bytes else _bytes(value)
            for value in chain.from_iterable(headers)]


_packers: Dict[int, Struct] = {}


def _lines(places: List[int], lengths: List[int]) -> bytes:
    """An array of cw_http_header."""
    count = len(lengths)
    packer = _packers.get(count)
    if packer is None:
        packer = _packers[count] = Struct("@" + "PN" * count)
    return packer.pack(*chain.from_iterable(zip(places, lengths)))


def _fields(values: Dict[str, Any]) -> Tuple[Any, List[Any]]:
    """An array of cw_field, and the bytes of its strings, which the array does not keep alive."""
    from .._record import _slot, put_field
    names = list(values)[:_OWN_FIELDS_MAX]
    array = (Field * len(names))()
    slots = [_slot(field) for field in array]
    for slot, name in zip(slots, names):
        put_field(slot, name, values[name])
    return array, slots


class Exchange:
    """One request and its answer in the store. `id` is the argument of `cordwood http show`. In a
    forked child it ends silently: the process that began it reports how it ended.

    `_handle` is emptied before the exchange is freed, because freeing lets other threads run: a
    call that another thread has begun then finds NULL, which is no exchange. `_open` is emptied
    once."""

    __slots__ = ("_handle", "_open", "_process", "id")

    def __init__(self, handle: c_void_p) -> None:
        self._handle = handle
        self._open = [True]
        self._process = os.getpid()
        self.id: str = (_id(handle) or b"").decode()

    def request_body(self, data: Any) -> None:
        """Reports more bytes that go out."""
        if type(data) is not bytes:
            data = bytes(data)
        _request_body(self._handle, data, len(data))

    def response_body(self, data: Any) -> None:
        """Reports more bytes that come in."""
        if type(data) is not bytes:
            data = bytes(data)
        _response_body(self._handle, data, len(data))

    def response_body_unseen(self, count: int) -> None:
        """Reports the number of bytes that came in but cannot be shown."""
        _response_body(self._handle, None, count)

    def response(self, status: int, headers: Any, protocol: Optional[str] = None) -> None:
        """Reports the answer's status and headers."""
        parts = _parts(headers)
        count = len(parts)
        parts.append(_terminated(protocol))
        blob, places, lengths = _joined(parts)
        lines = _lines(places[:count], lengths[:count])
        _response(self._handle, _RESPONSE.pack(
            _RESPONSE.size, status, _address(lines), count // 2, 0, 0,
            places[count] if protocol is not None else 0))
        del blob, lines  # must live until here

    def end(self, error: str = "", error_type: str = "", cancelled: bool = False,
            remote_address: str = "", flags: int = 0, **times: int) -> None:
        """Writes the record; any later call is the caller's mistake."""
        try:
            self._open.pop()
        except IndexError:
            return
        handle = c_void_p(self._handle.value)
        self._handle.value = None
        if self._process != os.getpid():
            return
        blob, places, lengths = _joined([_utf8(error or error_type), _utf8(error_type),
                                         _terminated(remote_address or None)])
        status = _end(byref(handle), _OUTCOME.pack(
            _OUTCOME.size, flags | (_CANCELLED if cancelled else 0), places[0], lengths[0],
            places[1], lengths[1],
            *[max(0, min(times.get(name, 0), _UINT64_MAX)) for name in _TIMES],
            places[2] if remote_address else 0))
        del blob
        if status < 0:
            from .._errors import check
            check(status)


def begin(handle: int, method: str, url: str, headers: Any, *, body: Any = b"", side: int = 0,
          start_ns: int = 0, redirected_from: Optional[str] = None, protocol: Optional[str] = None,
          attempt: int = 0) -> Optional[Exchange]:
    """Begins an exchange of the engine; None: it is not captured. Raises CordwoodError."""
    parts = _parts(headers)
    count = len(parts)
    state = _context.current()
    trace = span = b""
    flags, fields, slots, field_count = 0, None, None, 0
    if state is not None:
        if state.ids is not None:
            trace, flags = state.ids.trace_id, state.ids.flags
            span = state.ids.span_id or b""
        if state.fields:
            fields, slots = _fields(state.fields)
            field_count = len(fields)
    parts += (_utf8(method), _utf8(url), _bytes(body), _terminated(redirected_from),
              _terminated(protocol), trace, span)
    blob, places, lengths = _joined(parts)
    lines = _lines(places[:count], lengths[:count])
    at, size = places[count:], lengths[count:]
    raw = _REQUEST.pack(
        _REQUEST.size, side, at[0], size[0], at[1], size[1], _address(lines), count // 2, at[2],
        size[2], start_ns, at[3] if size[3] else 0, at[4] if size[4] else 0, attempt, flags,
        at[5] if trace else 0, at[6] if span else 0,
        0 if fields is None else ctypes.addressof(fields), field_count)
    out = c_void_p()
    status = _begin(handle, raw, byref(out))
    del blob, lines, fields, slots  # must live until here
    if status == _abi.OK and out.value:
        return Exchange(out)
    if status < 0:
        from .._errors import check
        check(status)
    return None
