"""Reads the result of a finished request from responses and exceptions of requests, httpx, aiohttp,
urllib and http.client. They are recognised by their attributes, so no client is imported. The only
exception raised here is TypeError, for an object of another kind.

Texts of exceptions name addresses with their queries; the innermost cause says the same without.
"""
import inspect
import io
import re
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from ._hooks_record import EXCHANGE, causes, error_type, is_cancelled
from ._text import safe_str

_STATUS = ("status_code", "status", "code")
_METHOD = ("method", "_method")
_QUERY = re.compile(r"[?#][^\s'\"<>()]+")
_USER = re.compile(r"//[^\s/@'\"]*@")
_BODY_BYTES_MAX = (256 << 10) + 4


class Shape(NamedTuple):
    """cw_network_result."""
    status: int = 0
    headers: Tuple[Tuple[str, str], ...] = ()
    body: bytes = b""
    error: str = ""
    error_type: str = ""
    method: str = ""
    url: str = ""
    exchange_id: str = ""


def _get(thing: Any, *names: str) -> Any:
    """The first of these that it has, is not None and is no method."""
    for name in names:
        value = _look(thing, name)
        if value is not None and not callable(value):
            return value
    return None


def _look(thing: Any, name: str, otherwise: Any = None) -> Any:
    """The attribute, or `otherwise` if it is missing or its property raises."""
    try:
        return getattr(thing, name, otherwise)
    except Exception:
        return otherwise


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if value is None else safe_str(value)


def _status(thing: Any) -> int:
    value = _get(thing, *_STATUS)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else 0


def _is_answer(thing: Any) -> bool:
    return bool(_status(thing)) and _look(thing, "headers", _look) is not _look


def _headers(thing: Any) -> Tuple[Tuple[str, str], ...]:
    try:
        return tuple((_text(name), _text(value)) for name, value in thing.headers.items())
    except Exception:
        return ()


def _request(*things: Any) -> Tuple[str, str]:
    """Method and address, of the first that knows them."""
    method = url = ""
    for thing in things:
        for one in (thing, _get(thing, "request"), _get(thing, "request_info")):
            method = method or _text(_get(one, *_METHOD))
            url = url or _text(_get(one, "url"))
    return method.upper(), url


def _inside(thing: Any) -> Iterator[Any]:
    """Where the hooks may have left the exchange's id: requests wraps urllib3's answer, and that
    http.client's; urllib's error wraps http.client's."""
    yield thing
    raw = _get(thing, "raw")
    yield raw
    yield _get(raw, "_original_response")
    yield _get(thing, "_original_response")
    yield _get(thing, "file")


def _exchange(*things: Any) -> str:
    for thing in things:
        for one in _inside(thing):
            found = _get(one, EXCHANGE)
            if isinstance(found, str):
                return found
    return ""


def _body(answer: Any) -> bytes:
    """What can be had at once: what was read, or what a client gives without a loop."""
    for name in ("content", "_body"):
        value = _get(answer, name)
        if isinstance(value, bytes):
            return value
    read = _look(answer, "read")
    if read is None or inspect.iscoroutinefunction(read):
        return b""
    try:
        value = read()
    except Exception:  # closed, or broken off: what the status says is enough
        return b""
    if not isinstance(value, bytes):
        return b""
    _put_back(answer, value)
    return value[:_BODY_BYTES_MAX]


def _put_back(answer: Any, body: bytes) -> None:
    """urllib's HTTPError can be read again: its host may still want to."""
    if isinstance(answer, Exception) and _get(answer, "file", "fp") is not None:
        try:
            vars(answer).pop("read", None)
            again = io.BytesIO(body)
            vars(answer).update(fp=again, file=again)
        except Exception:
            pass


async def awaited(ended: Any) -> Optional[bytes]:
    """The body of an answer that failed, awaited where it must be; None: it need not."""
    answer = _get(ended, "response") if isinstance(ended, BaseException) else ended
    if not _is_answer(answer) or 200 <= _status(answer) < 300:
        return None
    for name in ("aread", "read"):
        read = _look(answer, name)
        if read is not None and inspect.iscoroutinefunction(read):
            try:
                body = await read()
            except Exception:  # closed, or broken off: what the status says is enough
                return None
            return body if isinstance(body, bytes) else None
    return None


def _words(chain: List[BaseException]) -> str:
    """Of the innermost cause; without queries and users of addresses."""
    inner = chain[-1]
    words = _look(inner, "strerror") if isinstance(inner, OSError) else None
    text = words if isinstance(words, str) and words else safe_str(inner)
    return _USER.sub("//", _QUERY.sub("", text)) or type(inner).__name__


def _answered(answer: Any, body: Optional[bytes], *more: Any) -> Shape:
    status = _status(answer)
    method, url = _request(answer, *more)
    exchange = _exchange(answer, *more)  # before the body: it may be put back in another object
    if body is None:
        body = b"" if 200 <= status < 300 else _body(answer)
    return Shape(status, _headers(answer), body, "", "", method, url, exchange)


def shape_of(ended: Any, body: Optional[bytes] = None) -> Shape:
    """What is known; body: where the host has read it."""
    if not isinstance(ended, BaseException):
        if not _is_answer(ended):
            raise TypeError("NetworkError.of takes an answer or an exception of an HTTP client, "
                            f"not {type(ended).__name__}")
        return _answered(ended, body)
    inner = _get(ended, "response")
    answer = inner if _is_answer(inner) else ended
    shape = _answered(answer, body, ended) if _is_answer(answer) else Shape()
    if shape.status and not 200 <= shape.status < 300:
        return shape  # its text says the status, and the address with its query
    chain = list(causes(ended))
    kind = "cancelled" if is_cancelled(ended) else error_type(ended)
    method, url = _request(answer, ended)
    return shape._replace(error=_words(chain), error_type=kind, method=method, url=url,
                          exchange_id=_exchange(*chain) or shape.exchange_id)
