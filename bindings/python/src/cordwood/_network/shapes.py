"""Reads the result of a finished request from responses and exceptions of requests, httpx, aiohttp,
urllib and http.client. They are recognised by their attributes, so no client is imported. The only
exception raised here is TypeError, for an object of another kind.

Texts of exceptions name addresses with their queries; the innermost cause says the same without
them.
"""
import re
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from .._capture.record import EXCHANGE, causes, error_type, is_cancelled
from .bodies import begun, begun_async, get, had, is_long, look
from .._text import safe_str

_STATUS = ("status_code", "status", "code")
_METHOD = ("method", "_method")
_QUERY = re.compile(r"[?#][^\s'\"<>()]+")
# Text in place of a port that is not a number belongs to a password with a '/', '?' or '#'.
_USER = re.compile(r"//(?:[^\s/?#'\"]*|[^\s/?#@'\"\[:]*:(?!\d*(?:[/?#\s'\"]|$))\S*)@")
_PORT = re.compile(
    r"(?i)(\bport(?:: | could not be cast to integer value as ))(['\"])(?!\d*\2).*\2")
_WORDS_MAX = 8_192


class Shape(NamedTuple):
    """cw_network_result, and one thing that it cannot express."""
    status: int = 0
    headers: Tuple[Tuple[str, str], ...] = ()
    body: bytes = b""
    error: str = ""
    error_type: str = ""
    method: str = ""
    url: str = ""
    exchange_id: str = ""
    is_misread: bool = False
    """The answer arrived, but could not be understood."""


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if value is None else safe_str(value)


def _status(thing: Any) -> int:
    value = get(thing, *_STATUS)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else 0


def _is_answer(thing: Any) -> bool:
    return bool(_status(thing)) and look(thing, "headers", look) is not look


def _headers(thing: Any) -> Tuple[Tuple[str, str], ...]:
    try:
        return tuple((_text(name), _text(value)) for name, value in thing.headers.items())
    except Exception:
        return ()


def _request(*things: Any) -> Tuple[str, str]:
    """Method and address, from the first object that knows them."""
    method = url = ""
    for thing in things:
        for one in (thing, get(thing, "request"), get(thing, "request_info")):
            method = method or _text(get(one, *_METHOD))
            url = url or _text(get(one, "url"))
    return method.upper(), url


def _inside(thing: Any) -> Iterator[Any]:
    """Objects that may carry the hooks' exchange id: requests wraps urllib3's answer, which wraps
    http.client's; urllib's error wraps http.client's."""
    yield thing
    raw = get(thing, "raw")
    yield raw
    yield get(raw, "_original_response")
    yield get(thing, "_original_response")
    yield get(thing, "file")


def _exchange(*things: Any) -> str:
    for thing in things:
        for one in _inside(thing):
            found = get(one, EXCHANGE)
            if isinstance(found, str):
                return found
    return ""


def _has_body(answer: Any) -> bool:
    """Whether the answer may contain an error."""
    return 400 <= _status(answer) <= 599


def _body(answer: Any) -> bytes:
    """The body available at once: already read, or returned by a client without a loop."""
    body = had(answer)
    return begun(answer) if body is None and not is_long(_headers(answer)) else body or b""


async def awaited(ended: Any) -> Optional[bytes]:
    """The body of a failed answer, awaited if needed; None: no await is needed."""
    answer = get(ended, "response") if isinstance(ended, BaseException) else ended
    if not _is_answer(answer) or not _has_body(answer) or had(answer) is not None:
        return None
    return None if is_long(_headers(answer)) else await begun_async(answer)


def _words(chain: List[BaseException]) -> str:
    """The text of the innermost cause, without queries and users of addresses."""
    inner = chain[-1]
    words = look(inner, "strerror") if isinstance(inner, OSError) else None
    text = words if isinstance(words, str) and words else safe_str(inner)
    text = _QUERY.sub("", _USER.sub("//", text[:_WORDS_MAX]))
    return _PORT.sub(r"\1…", text) or type(inner).__name__


def _is_misread(ended: BaseException) -> bool:
    """True if the answer came, but does not hold what the host expected."""
    return type(ended).__name__ == "ContentTypeError" or (
        isinstance(ended, ValueError) and get(ended, "doc") is not None
        and get(ended, "pos") is not None)


def _answered(answer: Any, body: Optional[bytes], *more: Any) -> Shape:
    status = _status(answer)
    method, url = _request(answer, *more)
    exchange = _exchange(answer, *more)  # before the body, which may be put back in another object
    if body is None:
        body = _body(answer) if _has_body(answer) else b""
    return Shape(status, _headers(answer), body, "", "", method, url, exchange)


def shape_of(ended: Any, body: Optional[bytes] = None) -> Shape:
    """The known parts; body: the body, if the host has read it."""
    if not isinstance(ended, BaseException):
        if not _is_answer(ended):
            raise TypeError("NetworkError.of takes an answer or an exception of an HTTP client, "
                            f"not {type(ended).__name__}")
        return _answered(ended, body)
    inner = get(ended, "response")
    answer = inner if _is_answer(inner) else ended
    shape = _answered(answer, body, ended) if _is_answer(answer) else Shape()
    if shape.status and not 200 <= shape.status < 300:
        return shape  # its text has the status, and the address with its query
    chain = list(causes(ended))
    kind = "cancelled" if is_cancelled(ended) else error_type(ended)
    method, url = _request(answer, ended)
    return shape._replace(error=_words(chain), error_type=kind, method=method, url=url,
                          exchange_id=_exchange(*chain) or shape.exchange_id,
                          is_misread=_is_misread(ended))
