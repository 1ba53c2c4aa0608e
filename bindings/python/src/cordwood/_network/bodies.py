"""The body of a failed answer: the part its client read, or else its beginning, up to the size that
an error may have. Bytes read here are put back for the host, except in an answer of http.client. No
call raises."""
import inspect
import io
from itertools import chain
from typing import Any, AsyncIterator, Iterable, Iterator, Optional, Tuple

BYTES_MAX = (256 << 10) + 4  # longer bodies are not decoded
_PIECE_BYTES = 4096  # a client may unpack a thousand times that


def get(thing: Any, *names: str) -> Any:
    """The first of these attributes that exists, is not None and is not a method."""
    for name in names:
        value = look(thing, name)
        if value is not None and not callable(value):
            return value
    return None


def look(thing: Any, name: str, otherwise: Any = None) -> Any:
    """The attribute, or `otherwise` if it is missing or its property raises."""
    try:
        return getattr(thing, name, otherwise)
    except Exception:
        return otherwise


def had(answer: Any) -> Optional[bytes]:
    """The body if it was read; None: it was not."""
    if get(answer, "_content") is False:  # requests, whose `content` reads all
        return None
    for name in ("content", "_body"):
        value = get(answer, name)
        if isinstance(value, bytes):
            return value
    return None


def is_long(headers: Iterable[Tuple[str, str]]) -> bool:
    """Whether the headers announce a body too long to be decoded."""
    return any(name.lower() == "content-length" and value.isdecimal()
               and (len(value) > 18 or int(value) > BYTES_MAX) for name, value in headers)


def begun(answer: Any) -> bytes:
    """The beginning of a body that was not read yet, without a loop."""
    try:
        return _begun(answer)
    except Exception:  # closed, or broken off: the status is enough
        return b""


def _begun(answer: Any) -> bytes:
    pieces = look(answer, "iter_bytes")
    if pieces is not None:  # httpx
        body = _taken(answer, "iter_bytes", pieces())
        _keep(answer, "_content", body)
        return body
    for holder in (get(answer, "raw"), answer):  # requests, urllib3
        pieces = look(holder, "stream")
        if pieces is not None:
            return _taken(holder, "stream", pieces(_PIECE_BYTES, decode_content=True))
    read = look(answer, "read")
    if read is None or inspect.iscoroutinefunction(read):
        return b""
    body = _limited(iter(lambda: read(_PIECE_BYTES), b""))
    rest = get(answer, "file", "fp")
    if isinstance(answer, Exception) and rest is not None:  # urllib
        vars(answer).pop("read", None)
        again = io.BufferedReader(_Again(body, rest))
        vars(answer).update(fp=again, file=again)
    return body


def _limited(pieces: Iterator[bytes]) -> bytes:
    body = b""
    for piece in pieces:
        body += piece
        if len(body) >= BYTES_MAX:
            break
    return body


def _taken(holder: Any, name: str, pieces: Iterator[bytes]) -> bytes:
    """Takes the beginning; the method then returns it again, followed by the rest."""
    body = _limited(pieces)
    vars(holder)[name] = lambda *_, **__: chain([body], pieces)
    return body


def _keep(answer: Any, name: str, body: bytes) -> None:
    """Stores a complete body where its client stores a body that it has read."""
    if len(body) < BYTES_MAX:
        setattr(answer, name, body)


class _Again(io.RawIOBase):
    """The bytes read, followed by the rest."""

    def __init__(self, begin: bytes, rest: Any) -> None:
        super().__init__()
        self._begin, self._rest = io.BytesIO(begin), rest

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads the next bytes."""
        data = self._begin.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[:len(data)] = data
        return len(data)

    def close(self) -> None:
        """Closes the rest as well."""
        self._rest.close()
        super().close()


async def begun_async(answer: Any) -> Optional[bytes]:
    """Like `begun`, awaited; None: the client needs no await."""
    try:
        pieces = look(answer, "aiter_bytes")
        if pieces is not None:  # httpx
            return await _taken_async(answer, pieces())
        if inspect.iscoroutinefunction(look(answer, "read")):  # aiohttp
            content = answer.content
            body = await _limited_async(_read(content))
            _keep(answer, "_body", body)
            if len(body) >= BYTES_MAX:
                content.unread_data(body)
            return body
    except Exception:  # closed, or broken off: the status is enough
        pass
    return None


async def _read(content: Any) -> AsyncIterator[bytes]:
    while piece := await content.read(_PIECE_BYTES):
        yield piece


async def _limited_async(pieces: AsyncIterator[bytes]) -> bytes:
    body = b""
    async for piece in pieces:
        body += piece
        if len(body) >= BYTES_MAX:
            break
    return body


async def _taken_async(answer: Any, pieces: AsyncIterator[bytes]) -> bytes:
    body = await _limited_async(pieces)

    async def again(*_: Any, **__: Any) -> AsyncIterator[bytes]:
        yield body
        async for piece in pieces:
            yield piece
    vars(answer)["aiter_bytes"] = again
    _keep(answer, "_content", body)
    return body
