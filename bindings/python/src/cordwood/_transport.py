"""The host's callables that send requests and answer challenges, behind the C callbacks.

A transport gets a `TransportRequest` and returns status, headers and body. A credentials callable
gets the target's name and the server's challenge. Both run on the library's threads, called by
_callbacks.py. Whatever they raise or return, the upload fails and is retried. Of an exception, only
the type's name is logged, since the text of HTTP libraries contains URLs. A request is dead once
its callable has returned.
"""
import ctypes
import http.client
import io
import socket
from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple, Optional, Tuple, Union

from . import _abi
from ._capture.hooks import suppressed

Headers = Union[Mapping[str, str], Iterable[Tuple[str, str]], None]
Response = Union[int, Tuple[int, Headers], Tuple[int, Headers, Union[bytes, bytearray, None]]]
Transport = Callable[["TransportRequest"], Response]
# None: no credentials. Otherwise a token, or a user with a password.
Answer = Union[None, str, Tuple[str, str]]
Credentials = Callable[[str, Optional[str]], Answer]


class Challenge(NamedTuple):
    """A server's demand with a 401: the scheme of the first challenge, and its realm."""
    scheme: str
    realm: str


def parse_challenge(challenge: Optional[str]) -> Challenge:
    """Parses a credentials callable's challenge: 'Bearer realm="shop"'; missing parts are empty."""
    raw = (challenge or "").encode("utf-8", "surrogateescape").replace(b"\0", b"")

    def part(call: Any) -> str:
        room = ctypes.create_string_buffer(len(raw) * 3 + 1)
        call(raw, room, len(room))
        return room.value.decode("utf-8", "replace")

    return Challenge(part(_abi.library.cw_challenge_scheme), part(_abi.library.cw_challenge_realm))


_HEADERS_MAX = 64
_BODY_BYTES_MAX = 4 << 20


class RequestBody(io.RawIOBase):
    """The request's body, read from the file on demand; every pass reads the same bytes. `len()` is
    its size. Reading raises OSError if the engine aborts the transfer."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw: Any = raw
        self._offset = 0
        self._bytes = int(raw.contents.body_bytes)

    def __len__(self) -> int:
        return self._bytes

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True: a request may have to be sent again."""
        return True

    def tell(self) -> int:
        """The position of the next byte to be read."""
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Like any file's."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._bytes}[whence]
        self._offset = max(0, base + offset)
        return self._offset

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer as far as the body goes."""
        if self._raw is None:
            raise ValueError("the request is over")
        view = memoryview(buffer).cast("B")
        if not len(view):
            return 0
        target = (ctypes.c_char * len(view)).from_buffer(view)
        count = ctypes.c_size_t()
        status = _abi.library.cw_transport_request_read(self._raw, self._offset, target, len(view),
                                                        count)
        if status == _abi.END:
            return 0
        if status != _abi.OK:
            raise OSError("the engine broke the transfer off" if status == _abi.E_CLOSED
                          else "the body cannot be read")
        self._offset += count.value
        return count.value

    def _end(self) -> None:
        self._raw = None


class TransportRequest:
    """A request to send: `method`, `url`, `headers` (a dict, with Content-Length), `body` (a file),
    and its time limits in seconds: `connect_timeout`, and `timeout` for the whole. URL and headers
    may be secrets."""

    def __init__(self, raw: Any) -> None:
        content = raw.contents
        self._raw: Any = raw
        self.method: str = content.method.decode()
        self.url: str = content.url.decode()
        self.headers: Dict[str, str] = {}
        for index in range(content.header_count):
            name, _, value = content.headers[index].decode(errors="replace").partition(": ")
            self.headers[name] = value
        self.headers["Content-Length"] = str(content.body_bytes)
        self.body = RequestBody(raw)
        self.connect_timeout: float = content.connect_timeout_ms / 1000
        self.timeout: float = content.timeout_ms / 1000

    @property
    def stopped(self) -> bool:
        """Whether to give up: the engine closes, the target is removed, the time is over. Call it
        only in the thread of the call."""
        return self._raw is None or bool(_abi.library.cw_transport_request_stopped(self._raw))

    def _end(self) -> None:
        self._raw = None
        self.body._end()


def _cause(error: BaseException) -> Tuple[str, bool]:
    """The loggable part of the error, and whether nothing answered there."""
    inner = getattr(error, "reason", None)  # urllib's wrapper
    real = inner if isinstance(inner, BaseException) else error
    unreachable = isinstance(real, (ConnectionRefusedError, socket.gaierror))
    return type(real).__name__, unreachable


def _put_headers(response: Any, headers: Headers) -> None:
    # Not every mapping of an HTTP library passes isinstance.
    given: Any = headers
    pairs = given.items() if hasattr(given, "items") else (given or ())
    for index, (name, value) in enumerate(pairs):
        if index >= _HEADERS_MAX:
            break
        _abi.library.cw_transport_response_header(
            response, str(name).encode(errors="replace").replace(b"\0", b""),
            str(value).encode(errors="replace").replace(b"\0", b""))


def _put(response: Any, given: Any) -> None:
    parts = given if isinstance(given, tuple) else (given,)
    if not 1 <= len(parts) <= 3:
        raise TypeError("a transport answers (status, headers, body)")
    status, headers, body = (*parts, None, None)[:3]
    if isinstance(status, bool) or not isinstance(status, int):
        raise TypeError("a transport answers a status that is an int")
    if headers is not None:
        _put_headers(response, headers)
    if body:
        content = bytes(memoryview(body)[:_BODY_BYTES_MAX + 1])
        _abi.library.cw_transport_response_body(response, content, len(content))
    _abi.library.cw_transport_response_status(response, max(-1, min(status, 1 << 30)))


def send_by(send: Transport, raw: Any, response: Any) -> int:
    """A cw_transport_fn that uses a callable."""
    request = TransportRequest(raw)
    try:
        with suppressed():
            _put(response, send(request))
        return _abi.OK
    except BaseException as error:
        cause, unreachable = _cause(error)
        # Takes back a status that is already set: for an exception ctypes returns CW_OK.
        _abi.library.cw_transport_response_failed(response, cause.encode(), unreachable)
        if isinstance(error, (OSError, http.client.HTTPException)):
            return _abi.E_IO
        raise  # a mistake in the host's code: sys.unraisablehook shows it
    finally:
        request._end()


def answer_challenge(ask: Credentials, target: bytes, challenge: Optional[bytes],
                     out: Any) -> int:
    """A cw_credentials_fn that uses a callable. If it raises, ctypes returns CW_OK, and no
    credentials are set."""
    told = None if challenge is None else challenge.decode(errors="replace")
    with suppressed():
        answer = ask(target.decode(errors="replace"), told)
    if answer is None:
        return _abi.E_NOT_FOUND
    token, name, password = (answer, None, None) if isinstance(answer, str) else (None, *answer)
    if any(word is not None and "\0" in word for word in (token, name, password)):
        return _abi.E_ARGUMENT  # C would see only the part before it
    return int(_abi.library.cw_credentials_set(
        out, *(None if word is None else word.encode() for word in (token, name, password))))
