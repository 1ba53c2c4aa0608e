"""The inbound side: WSGI and ASGI applications whose exchanges are recorded as a server's.

Around an application; one object for all its threads and tasks. The ids that a client sends
(`traceparent`, X-Transaction-Id, the conversation header) are in force inside, so that what the
application logs or asks of other servers carries them. Whatever goes wrong in here, the application
is called and its answer goes out.
"""
import re
from contextvars import Token
from typing import (TYPE_CHECKING, Any, Awaitable, Callable, Dict, Iterable, Iterator, List,
                    Mapping, Optional, Tuple)
from urllib.parse import quote

from ._context import STATE, Layer, State, TraceIds, current, state_with
from ._hooks import CONVERSATION, HTTPHooks, is_capturing
from ._hooks_record import Recording, begin, conversation_header

if TYPE_CHECKING:
    from ._engine import Engine

_SERVER = 1  # CW_HTTP_SERVER
_VALUE_MAX = 256
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_TRANSACTION = re.compile(
    r"TXN-?[0-9]{1,10}-([0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12})")
_PROTOCOLS = {"1.0": "http/1.0", "1.1": "http/1.1", "2": "h2", "2.0": "h2", "3": "h3"}
_NO_TRACE, _NO_SPAN = b"\0" * 16, b"\0" * 8


def _ids(told: Mapping[str, str]) -> Optional[TraceIds]:
    """Of `traceparent`, else of the transaction, whose trace its UUID is."""
    found = _TRACEPARENT.fullmatch(told.get("traceparent", ""))
    if found is not None:
        ids = TraceIds(bytes.fromhex(found[1]), bytes.fromhex(found[2]), int(found[3], 16))
        if ids.trace_id != _NO_TRACE and ids.span_id != _NO_SPAN:
            return ids
    found = _TRANSACTION.fullmatch(told.get("x-transaction-id", ""))
    return None if found is None else TraceIds(bytes.fromhex(found[1].replace("-", "")), None, 1)


def _state(told: Mapping[str, str], conversation_header: str) -> Optional[State]:
    """What the client's headers put in force; None: nothing beside what is."""
    fields: Dict[str, Any] = {}
    transaction = told.get("x-transaction-id", "")
    if _TRANSACTION.fullmatch(transaction):
        fields["txn.id"] = transaction
    said = told.get(conversation_header.lower(), "") if conversation_header else ""
    if said and len(said) <= _VALUE_MAX and said.isprintable():
        fields[CONVERSATION] = said
    ids = _ids(told)
    if not fields and ids is None:
        return None
    return state_with(current(), Layer(fields, ids))


class _Inside:
    """Puts a state in force for a step of an application, and takes it back."""

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
            except ValueError:  # a generator that ends in a context of its own
                pass


class _Middleware:
    def __init__(self, app: Any, engine: "Engine") -> None:
        self.app = app
        self._hooks = HTTPHooks(engine, (), False)

    def _begin(self, method: str, url: str, headers: List[Tuple[Any, Any]], told: Mapping[str, str],
               protocol: Optional[str]) -> Tuple[Optional[Recording], Optional[State]]:
        """Also where nothing is captured the ids are in force."""
        try:
            engine: Any = self._hooks.engine
            state = _state(told, conversation_header(engine))
            if not is_capturing(self._hooks):
                return None, state
            with _Inside(state):
                recording = begin(self._hooks, method, url, headers, protocol=protocol,
                                  side=_SERVER)
            return recording, state
        except Exception as error:
            self._hooks.diagnose(error)
            return None, None


class WSGIMiddleware(_Middleware):
    """A WSGI application around `app` that records each exchange in the engine's store where
    capture is on. What `app` raises is recorded and raised."""

    def __call__(self, environ: Dict[str, Any], start_response: Callable[..., Any]) -> Any:
        headers = [(_name(key), value) for key, value in environ.items()
                   if key.startswith("HTTP_")
                   or value and key in ("CONTENT_TYPE", "CONTENT_LENGTH")]
        told = {name.lower(): value for name, value in headers}
        recording, state = self._begin(
            environ.get("REQUEST_METHOD", "GET"), _wsgi_url(environ), headers, told,
            environ.get("SERVER_PROTOCOL", "").lower() or None)
        if recording is None:
            return self._plain(environ, start_response, state)
        peer = environ.get("REMOTE_ADDR")
        if peer:
            port = environ.get("REMOTE_PORT")
            recording.phases["remote_address"] = f"{peer}:{port}" if port else str(peer)
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
        if type(result) in (list, tuple):  # all of it is there; servers look at its length
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


def _name(key: str) -> str:
    return key[key.startswith("HTTP_") and 5:].replace("_", "-").title()


def _wsgi_url(environ: Mapping[str, Any]) -> str:
    """As PEP 3333 has it."""
    scheme = environ.get("wsgi.url_scheme", "http")
    host = environ.get("HTTP_HOST")
    if not host:
        host = environ.get("SERVER_NAME", "localhost")
        port = str(environ.get("SERVER_PORT", ""))
        if port and port != ("443" if scheme == "https" else "80"):
            host += f":{port}"
    path = (quote(environ.get("SCRIPT_NAME", ""), encoding="latin-1")
            + quote(environ.get("PATH_INFO", ""), safe="/;=,", encoding="latin-1"))
    query = environ.get("QUERY_STRING")
    return f"{scheme}://{host}{path or '/'}" + (f"?{query}" if query else "")


class _Answering:
    """start_response, and the write() that it gives."""

    __slots__ = ("_start", "_recording")

    def __init__(self, start: Callable[..., Any], recording: Recording) -> None:
        self._start, self._recording = start, recording

    def __call__(self, status: str, headers: List[Tuple[str, str]], *exc_info: Any) -> Any:
        write = self._start(status, headers, *exc_info)
        try:
            self._recording.answered(int(status[:3]), list(headers))
        except ValueError:  # the server takes it or not
            pass

        def written(data: bytes) -> Any:
            self._recording.received(data)
            return write(data)
        return written


class _Input:
    """wsgi.input that tells what is read."""

    def __init__(self, stream: Any, recording: Recording) -> None:
        self._stream, self._recording = stream, recording

    def _told(self, data: bytes) -> bytes:
        if data:
            self._recording.sending(data)
        return data

    def read(self, *size: Any) -> bytes:
        """As the server's."""
        return self._told(self._stream.read(*size))

    def readline(self, *size: Any) -> bytes:
        """As the server's."""
        return self._told(self._stream.readline(*size))

    def readlines(self, *hint: Any) -> List[bytes]:
        """As the server's."""
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
        """The server is done: at the end, or because the client is gone."""
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
    """An ASGI application around `app` that records each exchange of scope "http"; others
    (lifespan, websocket) go by. What `app` raises is recorded and raised."""

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]],
                       send: Callable[[Message], Awaitable[None]]) -> None:
        if scope.get("type") != "http":
            await self.app(scope, receive, send)
            return
        headers = list(scope.get("headers") or ())
        told = {bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1")
                for name, value in headers}
        recording, state = self._begin(
            scope.get("method", "GET"), _asgi_url(scope, told), headers, told,
            _PROTOCOLS.get(str(scope.get("http_version"))))
        if recording is None:
            with _Inside(state):
                await self.app(scope, receive, send)
            return
        client = scope.get("client")
        if client:
            host = f"[{client[0]}]" if ":" in str(client[0]) else client[0]
            recording.phases["remote_address"] = f"{host}:{client[1]}"
        channel = _Channel(receive, send, recording)
        try:
            with _Inside(state):
                await self.app(scope, channel.receive, channel.send)
        except BaseException as error:
            recording.end(error)
            raise
        channel.over()


def _asgi_url(scope: Message, told: Mapping[str, str]) -> str:
    scheme = scope.get("scheme", "http")
    host = told.get("host")
    if not host:
        server = scope.get("server") or ("localhost", None)
        host = str(server[0])
        if server[1] and server[1] != (443 if scheme == "https" else 80):
            host += f":{server[1]}"
    raw = scope.get("raw_path")
    path = (raw.decode("latin-1").partition("?")[0] if raw
            else quote(scope.get("path", "/"), safe="/;=,"))
    query = scope.get("query_string") or b""
    return f"{scheme}://{host}{path or '/'}" + (f"?{query.decode('latin-1')}" if query else "")


class _Channel:
    """The two ways between server and application."""

    __slots__ = ("_receive", "_send", "_recording", "_is_left")

    def __init__(self, receive: Callable[[], Awaitable[Message]],
                 send: Callable[[Message], Awaitable[None]], recording: Recording) -> None:
        self._receive, self._send, self._recording = receive, send, recording
        self._is_left = False

    async def receive(self) -> Message:
        """What the server has of the request."""
        message = await self._receive()
        if message.get("type") == "http.request":
            body = message.get("body")
            if body:
                self._recording.sending(body)
        elif message.get("type") == "http.disconnect":
            self._is_left = True
        return message

    async def send(self, message: Message) -> None:
        """What the application answers."""
        kind = message.get("type")
        if kind == "http.response.start":
            self._recording.answered(message.get("status", 0), list(message.get("headers") or ()))
        elif kind == "http.response.body":
            body = message.get("body")
            if body:
                self._recording.received(body)
        await self._send(message)
        if kind == "http.response.body" and not message.get("more_body", False):
            self._recording.end()

    def over(self) -> None:
        """The application has returned."""
        if self._is_left:
            self._recording.end(None, "the client left", "disconnected")
        else:
            self._recording.end(None, "the application gave no whole answer", "incomplete")
