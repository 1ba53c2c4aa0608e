"""How the host's own requests failed: `NetworkError.of` makes an error from an answer or an
exception of requests, httpx, aiohttp, urllib or http.client, with the decoder and the text of our
uploads.

Imports none of these clients: the attributes of an object show what it is (_network_shapes). An
error is plain data. It can be pickled, and needs no engine until it is logged.
"""
import ctypes
import sys
import time
from typing import Any, Dict, List, Optional, Set, Type, TypeVar

from .. import _abi, _context, _levels, _place, _record, _text
from .._errors import check as check_status
from .bodies import BYTES_MAX
from .shapes import Shape, awaited, shape_of
from .._upload_errors import ErrorDetail, Failure, said

_T = TypeVar("_T")
_UNKNOWN = 6  # CW_OUTCOME_UNKNOWN
_OWN_FIELDS_MAX = 32  # what the library adds to an error's record, without its details


class NetworkError(Failure, Exception):
    """A failed request of the host; always one of the five classes below."""

    method = url = exchange_id = ""
    """url: without user, query and fragment. exchange_id: the captured exchange that it belongs
    to, for `cordwood http show`; empty: it was not captured."""

    @staticmethod
    def of(ended: Any, *, body: Optional[bytes] = None) -> "Optional[NetworkError]":
        """The error of an answer, or of an exception that a client raised; None: the request
        succeeded. Raises only TypeError, for an object of another kind. Reads the body of a failed
        answer as far as possible without waiting in a loop of asyncio; `of_async` waits. body: the
        body, if the host has read it."""
        if isinstance(ended, NetworkError):
            return ended
        return _made(shape_of(ended, body))

    @staticmethod
    async def of_async(ended: Any) -> "Optional[NetworkError]":
        """Like `of`, but awaits the body of an aiohttp answer or of an httpx stream."""
        return NetworkError.of(ended, body=await awaited(ended))

    @staticmethod
    def check(answer: _T, logger: Any = None) -> _T:
        """Returns a successful answer; otherwise logs and raises its error."""
        return _checked(answer, NetworkError.of(answer), logger, sys._getframe(1))

    @staticmethod
    async def check_async(answer: _T, logger: Any = None) -> _T:
        """Like `check`, but awaits the body."""
        return _checked(answer, await NetworkError.of_async(answer), logger, sys._getframe(1))

    def log(self, logger: Any, message: str = "", *, level: Optional[_levels.Level] = None,
            **fields: Any) -> bool:
        """Writes its record under the logger; True: the record was kept. The engine's rules for
        captured exchanges replace secrets in the text of server and transport. message: put in
        front of our text. level: by default warning for redirections and 4xx, error for the rest.
        The record reports an unknown level. Further keywords are fields of the record."""
        number = 0
        if level is not None:
            number, problem = _levels.of_call(level)
            if problem:
                number, fields = 0, {_levels.LEVEL_ERROR: problem, **fields}
        return _written(self, logger, _text.encode(message), number, fields, sys._getframe(1))


class NetworkRequestFailed(NetworkError):
    """No HTTP answer, or not all of one: DNS, connect, TLS, timeout. `.cause` says which."""
    _word = "request_failed"


class NetworkRedirection(NetworkError):
    """3xx, with `.location`."""
    _word = "redirection"


class NetworkClientError(NetworkError):
    """4xx."""
    _word = "client"


class NetworkServerError(NetworkError):
    """5xx."""
    _word = "server"


class NetworkUnknownOutcome(NetworkError):
    """Anything else; `.cause` is kept."""


_CLASSES: Dict[int, Type[NetworkError]] = {
    2: NetworkRequestFailed, 3: NetworkRedirection, 4: NetworkClientError, 5: NetworkServerError}


def _checked(answer: _T, error: Optional[NetworkError], logger: Any, frame: Any) -> _T:
    if error is None:
        return answer
    if logger is not None:
        _written(error, logger, b"", 0, {}, frame)
    raise error


def _made(shape: Shape) -> Optional[NetworkError]:
    """cw_network_error_from."""
    kept: List[bytes] = []

    def text(value: str) -> _abi.Text:
        kept.append(_text.encode(value))
        return _abi.text(kept[-1])

    lines = (_abi.HttpHeader * len(shape.headers))()
    for line, (name, value) in zip(lines, shape.headers):
        line.name, line.value = text(name), text(value)
    result = _abi.NetworkResult(ctypes.sizeof(_abi.NetworkResult))
    result.http_status = min(max(shape.status, 0), 0x7FFFFFFF)
    result.headers, result.header_count = lines, len(shape.headers)
    result.body = _abi.text(shape.body[:BYTES_MAX])
    result.error, result.error_type = text(shape.error), text(shape.error_type)
    result.method, result.url = text(shape.method), text(shape.url)
    result.exchange_id = shape.exchange_id.encode("ascii", "replace")
    result.time_ns = time.time_ns()
    pointer = ctypes.POINTER(_abi.UploadErrorView)()
    if check_status(_abi.library.cw_network_error_from(result, pointer)) != _abi.OK:
        return None
    try:
        raw = pointer[0]
        if shape.is_misread:  # by its status it succeeded, or never came
            raw.outcome = _UNKNOWN
        texts = said(pointer)
        error = _CLASSES.get(raw.outcome, NetworkUnknownOutcome)(texts["en"])
        error._take(raw, texts, "method", "url", "exchange_id")
        return error
    finally:
        _abi.library.cw_upload_error_free(pointer)


def _view(error: NetworkError, kept: List[Any]) -> _abi.UploadErrorView:
    """Converts back to cw_network_error; `kept` holds its texts."""
    def text(value: str) -> _abi.Str:
        raw = _text.encode(value)
        kept.append(raw)
        return _abi.Str(ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p), len(raw))

    view = _abi.UploadErrorView(ctypes.sizeof(_abi.UploadErrorView))
    view.outcome = next((number for number, kind in _CLASSES.items() if isinstance(error, kind)),
                        _UNKNOWN)
    view.http_status = error.http_status
    view.time_ns = int(error.time.timestamp() * 1_000_000) * 1000
    wait = error.retry_after
    view.retry_after_ms = (1 << 64) - 1 if wait is None else int(wait * 1000)
    for key in ("target", "cause", "location", "code", "message", "language", "transaction_id",
                "method", "url", "exchange_id"):
        setattr(view, key, text(getattr(error, key)))
    details = (_abi.UploadErrorDetail * len(error.details))()
    for one, detail in zip(details, error.details):
        for key in ErrorDetail._fields:
            setattr(one, key, text(getattr(detail, key)))
    view.details, view.detail_count = details, len(details)
    return view


def _names(error: NetworkError) -> Set[str]:
    """Names of the fields that the record takes from the error itself (network.h)."""
    known = {
        "http.request.method": error.method, "url.full": error.url,
        "http.status": error.http_status, "cause": error.cause, "outcome": error.outcome,
        "location": error.location, "retry_after_s": error.retry_after is not None,
        "transaction.id": error.transaction_id, "error.code": error.code,
        "error.message": error.message, "http.id": error.exchange_id}
    names = {name for name, value in known.items() if value}
    for index in range(len(error.details)):
        names.add(f"error.detail_{index + 1}" if index else "error.detail")
    return names


def _written(error: NetworkError, logger: Any, message: bytes, level: int, fields: Dict[str, Any],
             frame: Any) -> bool:
    """cw_network_error_log, with the context in force."""
    draft = _record.Draft(_place.find(frame))
    state = _context.current()
    if state is not None:
        own = _names(error)
        fields = _record.merged(fields, {key: value for key, value in state.fields.items()
                                         if key not in own})
        draft.put_trace(state.ids)
    draft.data.value, draft.length.value = message, len(message)
    draft.put_level(level)
    room = _text.FIELDS_MAX - _OWN_FIELDS_MAX - len(error.details)
    if len(fields) > room:
        fields = _record.cut(fields, room)
    for slot, key in zip(draft.put_count(len(fields)), fields):
        _record.put_field(slot, key, fields[key])
    kept: List[Any] = []
    view = _view(error, kept)
    status: int = _abi.library.cw_network_error_log(
        logger._handle, ctypes.byref(view), draft.pointer)
    return status == _abi.OK
