"""The inbound side: WSGI and ASGI applications whose exchanges are recorded from the server's view.

Wraps an application; one object serves all its threads and tasks. The ids that a client sends
(`traceparent`, X-Transaction-Id, the conversation header) are in force inside, so the application's
records and outgoing requests carry them. Whatever goes wrong in here, the application is called and
its answer goes out.
"""
import re
from contextvars import Token
from typing import (TYPE_CHECKING, Any, Awaitable, Callable, Dict, Iterable, Iterator, List,
                    Mapping, NamedTuple, Optional, Tuple)
from urllib.parse import quote

from .._context import STATE, Layer, State, TraceIds, current, state_with
from .hooks import CONVERSATION, HTTPHooks, is_capturing
from .calls import _bytes
from .record import Recording, begin, conversation_header
from .._text import encode

if TYPE_CHECKING:
    from .._engine import Engine

_SERVER = 1  # CW_HTTP_SERVER
# Matches no secret: a token has other characters or is longer, and a JWT starts with "eyJ".
_CONVERSATION = re.compile(r"(?!eyJ)[A-Za-z0-9._:-]{1,128}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_TRANSACTION = re.compile(
    r"TXN-?[0-9]{1,10}-([0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12})")
_PROTOCOLS = {"1.0": "http/1.0", "1.1": "http/1.1", "2": "h2", "2.0": "h2", "3": "h3"}
_NO_TRACE, _NO_SPAN = b"\0" * 16, b"\0" * 8


def _ids(told: Mapping[str, str]) -> Optional[TraceIds]:
    """The ids of `traceparent`, otherwise of the transaction, whose UUID is its trace."""
    found = _TRACEPARENT.fullmatch(told.get("traceparent", ""))
    if found is not None:
        ids = TraceIds(bytes.fromhex(found[1]), bytes.fromhex(found[2]), int(found[3], 16))
        if ids.trace_id != _NO_TRACE and ids.span_id != _NO_SPAN:
            return ids
    found = _TRANSACTION.fullmatch(told.get("x-transaction-id", ""))
    return None if found is None else TraceIds(bytes.fromhex(found[1].replace("-", "")), None, 1)


def _state(told: Mapping[str, str], engine: Any) -> Optional[State]:
    """The state that the client's headers put in force; None: they add nothing. Their values go
    unchanged into every record written inside, so nothing that may be a secret is accepted."""
    fields: Dict[str, Any] = {}
    transaction = told.get("x-transaction-id", "")
    if _TRANSACTION.fullmatch(transaction):
        fields["txn.id"] = transaction
    name = conversation_header(engine).lower()
    said = told.get(name, "") if name else ""
    if _CONVERSATION.fullmatch(said) and not getattr(engine, "_conversation_is_secret", False):
        fields[CONVERSATION] = said
    ids = _ids(told)
    if not fields and ids is None:
        return None
    return state_with(current(), Layer(fields, ids))


class _Inside:
    """Puts a state in force for a step of an application, and removes it again."""

    __slots__ = ("_state", "_token")

    def __init__(self, state: Optional[State]) -> None:
        self._state = state
        self._token: "Optional[Token[Optional[State]]]" = None

    def __enter__(self) -> None:
        if self._state is not None:
            self._token = STATE.set(self._state)

    def __exit__(self, *_: Any) -> None:
        token, self._token = self._token, None
        if token is not None:
            try:
                STATE.reset(token)
            except ValueError:  # a generator that ends in another context
                pass


Pairs = List[Tuple[Any, Any]]


class _Request(NamedTuple):
    """What a server knows about a request, besides its headers."""
    method: str
    url: str
    protocol: Optional[str]
    peer: str


def _string(value: Any) -> str:
    """The text of a value that may be bytes in one interface and text in another."""
    if isinstance(value, str):
        return value
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _quoted(raw: bytes) -> str:
    return quote(raw, safe="/;=,")


class _Middleware:
    def __init__(self, app: Any, engine: "Engine") -> None:
        self.app = app
        self._hooks = HTTPHooks(engine, (), False)

    def _begin(self, headers: Callable[[], Pairs], request: Callable[[Mapping[str, str]], _Request]
               ) -> Tuple[Optional[Recording], Optional[State]]:
        """Puts the ids in force even if nothing is captured. The server's and client's values may
        be anything: only this method looks at them, and it never raises."""
        state = None
        try:
            pairs = headers()
            told = {_string(name).lower(): _string(value) for name, value in pairs}
            engine: Any = self._hooks.engine
            state = _state(told, engine)
            if not is_capturing(self._hooks):
                return None, state
            method, url, protocol, peer = request(told)
            with _Inside(state):
                recording = begin(self._hooks, method, url, pairs, protocol=protocol, side=_SERVER)
            if recording is not None and peer:
                recording.phases["remote_address"] = peer
            return recording, state
        except Exception as error:
            self._hooks.diagnose(error)
            return None, state


class WSGIMiddleware(_Middleware):
    """Wraps the WSGI application `app` and records each exchange in the engine's store while
    capture is on. Exceptions of `app` are recorded and raised again."""

    def __call__(self, environ: Dict[str, Any], start_response: Callable[..., Any]) -> Any:
        recording, state = self._begin(lambda: _wsgi_headers(environ),
                                       lambda _: _wsgi_request(environ))
        if recording is None:
            return self._plain(environ, start_response, state)
        if "wsgi.input" in environ:
            environ["wsgi.input"] = _Input(environ["wsgi.input"], recording)
        answering = _Answering(start_response, recording)
        inside = _Inside(state)
        try:
            with inside:
                result = self.app(environ, answering)
        except BaseException as error:
            recording.end(error)
            raise
        if type(result) in (list, tuple):  # complete; servers look at its length
            for part in result:
                recording.received(part)
            recording.end()
            return result
        return _Result(result, recording, inside)

    def _plain(self, environ: Dict[str, Any], start_response: Any, state: Optional[State]) -> Any:
        if state is None:
            return self.app(environ, start_response)
        inside = _Inside(state)
        with inside:
            result = self.app(environ, start_response)
        return result if type(result) in (list, tuple) else _Result(result, None, inside)


def _wsgi_headers(environ: Mapping[Any, Any]) -> Pairs:
    return [(_name(key), value) for key, value in environ.items()
            if isinstance(key, str) and value is not None
            and (key.startswith("HTTP_") or value and key in ("CONTENT_TYPE", "CONTENT_LENGTH"))]


def _name(key: str) -> str:
    return key[key.startswith("HTTP_") and 5:].replace("_", "-").title()


def _wsgi_request(environ: Mapping[str, Any]) -> _Request:
    peer, port = environ.get("REMOTE_ADDR"), environ.get("REMOTE_PORT")
    address = f"{_string(peer)}:{_string(port)}" if port else _string(peer)
    return _Request(_string(environ.get("REQUEST_METHOD") or "GET"), _wsgi_url(environ),
                    _string(environ.get("SERVER_PROTOCOL") or "").lower() or None,
                    address if peer else "")


def _wsgi_url(environ: Mapping[str, Any]) -> str:
    """The URL as PEP 3333 builds it; a path that is not Latin-1 is taken as text."""
    scheme = _string(environ.get("wsgi.url_scheme") or "http")
    host = _string(environ.get("HTTP_HOST") or "")
    if not host:
        host = _string(environ.get("SERVER_NAME") or "localhost")
        port = _string(environ.get("SERVER_PORT") or "")
        if port and port != ("443" if scheme == "https" else "80"):
            host += f":{port}"
    path = (quote(_bytes(environ.get("SCRIPT_NAME") or ""))
            + _quoted(_bytes(environ.get("PATH_INFO") or "")))
    query = _string(environ.get("QUERY_STRING") or "")
    return f"{scheme}://{host}{path or '/'}" + (f"?{query}" if query else "")


class _Answering:
    """start_response, and the write() that it returns."""

    __slots__ = ("_start", "_recording")

    def __init__(self, start: Callable[..., Any], recording: Recording) -> None:
        self._start, self._recording = start, recording

    def __call__(self, status: str, headers: List[Tuple[str, str]], *exc_info: Any,
                 **named: Any) -> Any:
        write = self._start(status, headers, *exc_info, **named)
        try:
            self._recording.answered(int(status[:3]), list(headers))
        except Exception:  # the server takes it or not
            pass

        def written(data: bytes) -> Any:
            self._recording.received(data)
            return write(data)
        return written


class _Input:
    """A wsgi.input that reports what is read."""

    def __init__(self, stream: Any, recording: Recording) -> None:
        self._stream, self._recording = stream, recording

    def _told(self, data: bytes) -> bytes:
        if data:
            self._recording.sending(data)
        return data

    def read(self, *size: Any) -> bytes:
        """Like the server's."""
        return self._told(self._stream.read(*size))

    def readline(self, *size: Any) -> bytes:
        """Like the server's."""
        return self._told(self._stream.readline(*size))

    def readlines(self, *hint: Any) -> List[bytes]:
        """Like the server's."""
        return [self._told(line) for line in self._stream.readlines(*hint)]

    def __iter__(self) -> Iterator[bytes]:
        for line in self._stream:
            yield self._told(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Result:
    """An application's answer, piece by piece, in its context."""

    def __init__(self, result: Iterable[bytes], recording: Optional[Recording],
                 inside: _Inside) -> None:
        self._result, self._recording, self._inside = result, recording, inside
        self._parts: Optional[Iterator[bytes]] = None

    def __iter__(self) -> "_Result":
        return self

    def __next__(self) -> bytes:
        try:
            with self._inside:
                if self._parts is None:
                    self._parts = iter(self._result)
                part = next(self._parts)
        except StopIteration:
            if self._recording is not None:
                self._recording.end()
            raise
        except BaseException as error:
            if self._recording is not None:
                self._recording.end(error)
            raise
        if self._recording is not None:
            self._recording.received(part)
        return part

    def close(self) -> None:
        """The server has finished, at the end or because the client is gone."""
        try:
            close = getattr(self._result, "close", None)
            if close is not None:
                with self._inside:
                    close()
        finally:
            if self._recording is not None:
                self._recording.end(None, "closed before the answer's end", "closed")


Message = Dict[str, Any]


class ASGIMiddleware(_Middleware):
    """Wraps the ASGI application `app` and records each exchange of scope "http"; other scopes
    (lifespan, websocket) pass through. Exceptions of `app` are recorded and raised again."""

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]],
                       send: Callable[[Message], Awaitable[None]]) -> None:
        if scope.get("type") != "http":
            await self.app(scope, receive, send)
            return
        scope = _kept(scope)
        recording, state = self._begin(lambda: list(scope.get("headers") or ()),
                                       lambda told: _asgi_request(scope, told))
        if recording is None:
            with _Inside(state):
                await self.app(scope, receive, send)
            return
        channel = _Channel(receive, send, recording)
        try:
            with _Inside(state):
                await self.app(scope, channel.receive, channel.send)
        except BaseException as error:
            recording.end(error)
            raise
        channel.over()


def _kept(message: Message) -> Message:
    """A message whose headers can be read more than once."""
    headers: Any = message.get("headers")
    return {**message, "headers": list(headers)} if hasattr(headers, "__next__") else message


def _asgi_request(scope: Message, told: Mapping[str, str]) -> _Request:
    return _Request(_string(scope.get("method") or "GET"), _asgi_url(scope, told),
                    _PROTOCOLS.get(_string(scope.get("http_version"))),
                    _place(scope.get("client")))


def _place(address: Any) -> str:
    """Host and port, or as much of them as exists."""
    if not isinstance(address, (tuple, list)) or not address:
        return ""
    host = _string(address[0])
    if len(address) < 2 or address[1] is None:
        return host
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


def _asgi_url(scope: Message, told: Mapping[str, str]) -> str:
    scheme = _string(scope.get("scheme") or "http")
    usual = 443 if scheme == "https" else 80
    host = told.get("host")
    if not host:
        server: Any = scope.get("server")
        if isinstance(server, (tuple, list)) and server:
            host = _place([server[0], *(port for port in server[1:2] if port != usual)])
    path, query = scope.get("path") or "/", _string(scope.get("query_string") or "")
    raw = _string(scope.get("raw_path") or "").partition("?")[0]
    if not raw:
        raw = _quoted(path if isinstance(path, bytes) else encode(_string(path)))
    return f"{scheme}://{host or 'localhost'}{raw}" + (f"?{query}" if query else "")


class _Channel:
    """The two directions between server and application."""

    __slots__ = ("_receive", "_send", "_recording", "_is_left", "_length")

    def __init__(self, receive: Callable[[], Awaitable[Message]],
                 send: Callable[[Message], Awaitable[None]], recording: Recording) -> None:
        self._receive, self._send, self._recording = receive, send, recording
        self._is_left = False
        self._length = 0  # according to the answer's headers

    async def receive(self) -> Message:
        """Passes the server's messages of the request."""
        message = await self._receive()
        try:
            if message.get("type") == "http.request":
                body = message.get("body")
                if body:
                    self._recording.sending(body)
            elif message.get("type") == "http.disconnect":
                self._is_left = True
        except Exception as error:
            self._recording.diagnose(error)
        return message

    async def send(self, message: Message) -> None:
        """Passes the application's messages of the answer."""
        is_last = False
        try:
            message = _kept(message)
            is_last = self._told(message)
        except Exception as error:
            self._recording.diagnose(error)
        await self._send(message)
        if is_last:
            self._recording.end()

    def _told(self, message: Message) -> bool:
        """Whether the message ends the answer."""
        kind = message.get("type")
        if kind == "http.response.start":
            headers = list(message.get("headers") or ())
            self._recording.answered(message.get("status", 0), headers)
            for name, value in headers:
                if _string(name).lower() == "content-length":
                    self._length = int(value)
        elif kind == "http.response.body":
            body = message.get("body")
            if body:
                self._recording.received(body)
            return not message.get("more_body", False)
        elif kind == "http.response.zerocopysend":
            self._recording.received_unseen(message.get("count") or 0)
            return not message.get("more_body", False)
        elif kind == "http.response.pathsend":
            self._recording.received_unseen(self._length)
            return True
        return False

    def over(self) -> None:
        """The application has returned."""
        if self._is_left:
            self._recording.end(None, "the client left", "disconnected")
        else:
            self._recording.end(None, "the application gave no whole answer", "incomplete")
