"""The hook of `http.client`, through which urllib.request, urllib3 and requests send.

An attribute of the connection holds the exchange under way: a `_Sending` until the answer is there.
The answer holds a `_Body` until its body is read, closed or garbage. Only the thread that uses the
connection uses both. All bytes that pass `send` after the headers belong to the request's body.
"""
import io
import socket
import time
from typing import Any, Callable, List, Optional, Tuple

from .hooks import HTTPHooks, Patches, _stack, active
from .calls import RESPONSE_BARE, RESPONSE_CHUNKS
from .record import Recording, begin, propagated, remember

CLIENT = "http.client"
_VERSIONS = {10: "http/1.0", 11: "http/1.1"}
# The server may have answered before it closed: its answer is still read.
_ANSWERED_EARLY = (BrokenPipeError, ConnectionResetError)


def target(connection: Any, path: str) -> str:
    """The absolute URL of a request on a connection, whatever proxy it goes through."""
    if path.startswith(("http://", "https://")):
        return path
    import http.client
    tunnel = getattr(connection, "_tunnel_host", None)
    host = tunnel or connection.host
    port = getattr(connection, "_tunnel_port", None) if tunnel else connection.port
    is_secure = isinstance(connection, http.client.HTTPSConnection) or (
        getattr(connection, "default_port", 80) == 443)
    scheme = "https" if is_secure else "http"
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    place = host if port in (None, 443 if is_secure else 80) else f"{host}:{port}"
    return f"{scheme}://{place}{path if path.startswith('/') else '/' + path}"


def parse(lines: List[bytes]) -> Tuple[str, str, List[Tuple[bytes, bytes]]]:
    """Method, target and headers that a connection is about to send."""
    method, _, rest = lines[0].partition(b" ")
    headers = []
    for line in lines[1:]:
        name, separator, value = line.partition(b":")
        if separator:
            headers.append((name, value.strip().replace(b"\r\n\t", b" ")))
    path = rest.rpartition(b" ")[0].decode("latin-1")
    return method.decode("latin-1"), path, headers


class _Sending:
    """A request until its answer's headers arrive."""

    __slots__ = ("recording", "error", "is_inside", "has_headers", "_started")

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.error: Optional[BaseException] = None
        self.is_inside = False
        self.has_headers = False
        self._started = time.perf_counter_ns()

    def put(self, data: Any) -> None:
        """Reports bytes that went out; they come in chunks if the headers say so."""
        if self.has_headers:
            self.recording.sending(data)
        self.has_headers = True
        self.recording.sent()

    def phases(self, connection: Any) -> None:
        """Reports how long connecting took, if this request needed it."""
        took = connection.__dict__.pop("_cordwood_connect", None)
        if took is not None:
            self.recording.phases.update(took)
        sent = self.recording.sent_ns
        if sent:
            self.recording.phases["send_ns"] = max(1, sent - self._started)

    def connected(self, spent: int) -> None:
        """Subtracts time that went into connecting, not sending."""
        self._started += spent

    def end(self, connection: Any, error: Optional[BaseException]) -> None:
        """Ends the exchange: no answer will come."""
        connection._cordwood_sending = None
        self.phases(connection)
        if error is None and self.error is None:
            self.recording.end(None, "closed before an answer", "closed")
        else:
            self.recording.end(error or self.error)


class _Body:
    """An answer whose body the host reads."""

    __slots__ = ("recording", "is_inside", "is_over")

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.is_inside = False
        self.is_over = False


def _shown(data: Any, sending: _Sending) -> Any:
    """Wraps data for `send` so that each read is reported; None: bytes, which are reported
    later."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return None
    if hasattr(data, "read"):
        return _File(data, sending)
    try:
        memoryview(data)
        return None
    except TypeError:
        return _told(iter(data), sending) if hasattr(data, "__iter__") else None


def _told(parts: Any, sending: _Sending) -> Any:
    for part in parts:
        yield part
        sending.put(part)


class _File:
    """A file that a host gives to `send`; reports the bytes http.client reads from it."""

    def __init__(self, file: Any, sending: _Sending) -> None:
        self._file = file
        self._sending = sending
        self._is_text = isinstance(file, io.TextIOBase)

    def read(self, size: int = -1) -> bytes:
        """Reads from the file; encodes text as http.client does."""
        data = self._file.read(size)
        if self._is_text:
            data = data.encode("iso-8859-1")
        if data:
            self._sending.put(data)
        return data  # type: ignore[no-any-return]


def _endheaders(original: Callable[..., Any]) -> Callable[..., Any]:
    def endheaders(self: Any, *arguments: Any, **named: Any) -> Any:
        hooks = active(CLIENT)
        if hooks is None:
            return original(self, *arguments, **named)
        old = self._cordwood_sending
        if old is not None:
            old.end(self, None)
        sending = _begin(self, hooks)
        if sending is None:
            return original(self, *arguments, **named)
        self._cordwood_sending = sending
        try:
            return original(self, *arguments, **named)
        except BaseException as error:
            if self._cordwood_sending is sending:
                sending.error = error
                if not isinstance(error, _ANSWERED_EARLY) or self.sock is None:
                    sending.end(self, error)
            raise
    return endheaders


def _begin(connection: Any, hooks: HTTPHooks) -> Optional[_Sending]:
    try:
        lines = connection._buffer
        method, path, headers = parse(lines)
        for name, value in propagated(hooks, (name for name, _ in headers)):
            connection.putheader(name, value)
            headers.append((name.encode(), value.encode()))
        if method == "CONNECT":
            return None
        took = connection.__dict__.get("_cordwood_connect")
        before = sum(took.values()) if took else 0
        values = connection.__dict__
        values["_cordwood_begun"] = values.get("_cordwood_begun", 0) + 1
        recording = begin(hooks, method, target(connection, path), headers, before_ns=before,
                          attempt=values.get("_cordwood_attempt", 0),
                          protocol=_VERSIONS.get(connection._http_vsn))
        return None if recording is None else _Sending(recording)
    except Exception as error:
        hooks.diagnose(error)
        return None


def _send(original: Callable[..., Any]) -> Callable[..., Any]:
    def send(self: Any, data: Any) -> Any:
        sending = self._cordwood_sending
        if sending is None or sending.is_inside:  # inside: a proxy's CONNECT
            return original(self, data)
        sending.is_inside = True
        try:
            shown = _shown(data, sending)
            result = original(self, data if shown is None else shown)
        except BaseException as error:
            if isinstance(error, _ANSWERED_EARLY) and self.sock is not None:
                sending.error = error
            elif self._cordwood_sending is sending:
                sending.end(self, error)
            raise
        finally:
            sending.is_inside = False
        if shown is None:
            sending.put(data)
        return result
    return send


def _getresponse(original: Callable[..., Any]) -> Callable[..., Any]:
    def getresponse(self: Any, *arguments: Any, **named: Any) -> Any:
        sending = self._cordwood_sending
        if sending is None:
            return original(self, *arguments, **named)
        self._cordwood_sending = None  # closing the connection here does not end this exchange
        try:
            response = original(self, *arguments, **named)
        except BaseException as error:
            sending.end(self, error)
            raise
        sending.phases(self)
        _answered(sending.recording, response, self)
        return response
    return getresponse


def _answered(recording: Recording, response: Any, connection: Any) -> None:
    try:
        # Headers as the message holds them: its mapping methods cost ten times as much.
        pairs = response.headers._headers
        status = response.status
        location = None
        if 300 < status < 309:
            location = next((value for name, value in pairs if name.lower() == "location"), None)
        remember(response, recording.id)
        recording.answered(status, pairs, _VERSIONS.get(response.version), location)
        # If http.client does not recognise "chunked" in the header, the host gets the chunks.
        recording.flags = RESPONSE_BARE if response.chunked else RESPONSE_CHUNKS
        address = _peer(connection)
        if address:
            recording.phases["remote_address"] = address
        if response.length == 0 or response.fp is None:
            recording.end()
        else:
            response._cordwood_body = _Body(recording)
    except Exception:  # not of the expected class; the known parts are recorded
        recording.end()


def _peer(connection: Any) -> str:
    sock = connection.sock
    if sock is None or connection.__dict__.get("_cordwood_peer", (None,))[0] is not sock:
        if sock is None:
            return ""
        try:
            peer = sock.getpeername()
            text = f"[{peer[0]}]:{peer[1]}" if ":" in str(peer[0]) else f"{peer[0]}:{peer[1]}"
        except (OSError, IndexError, TypeError):
            text = ""
        if not isinstance(sock, socket.socket):
            return text
        connection.__dict__["_cordwood_peer"] = (sock, text)
    return connection.__dict__["_cordwood_peer"][1]  # type: ignore[no-any-return]


def _close(original: Callable[..., Any]) -> Callable[..., Any]:
    def close(self: Any) -> Any:
        sending = self._cordwood_sending
        # A refused tunnel closes inside `send`, which reports its error.
        if sending is not None and not sending.is_inside:
            sending.end(self, None)
        return original(self)
    return close


def timed(name: str, inner: Optional[str] = None) -> Callable[..., Any]:
    """Measures a method of a connection into its phases, without the time that `inner` measured
    meanwhile."""
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            if not _stack:
                return original(self, *arguments, **named)
            values = self.__dict__
            if inner is not None:
                values.pop("_cordwood_connect", None)
            started = time.perf_counter_ns()
            try:
                return original(self, *arguments, **named)
            finally:
                took = values.setdefault("_cordwood_connect", {})
                spent = time.perf_counter_ns() - started - (took.get(inner, 0) if inner else 0)
                took[name] = max(1, spent)
                sending = self._cordwood_sending
                if sending is not None:
                    sending.connected(spent)
        return method
    return make


def _reads(what: Callable[[Any, Tuple[Any, ...]], Any]) -> Callable[..., Any]:
    """Reports what a reading method of an answer returned; `what` finds the bytes."""
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            body = self._cordwood_body
            if body is None or body.is_inside:
                return original(self, *arguments, **named)
            body.is_inside = True
            try:
                result = original(self, *arguments, **named)
            except BaseException as error:
                partial = getattr(error, "partial", None)
                if isinstance(partial, bytes):
                    body.recording.received(partial)
                body.recording.end(error)
                self._cordwood_body = None
                raise
            finally:
                body.is_inside = False
            got = what(result, arguments)
            if got:
                body.recording.received(got)
            if body.is_over:
                over(self, body)
            return result
        return method
    return make


def over(response: Any, body: _Body) -> None:
    """The body was read to its end, or to where the server broke it off."""
    response._cordwood_body = None
    missing = response.length
    if missing:
        body.recording.end(None, f"the body ends {missing} bytes early", "incomplete")
    else:
        body.recording.end()


def _close_conn(original: Callable[..., Any]) -> Callable[..., Any]:
    def _close_conn(self: Any) -> Any:
        body = self._cordwood_body
        if body is not None:
            if body.is_inside:
                body.is_over = True
            else:
                self._cordwood_body = None
                body.recording.closed()
        return original(self)
    return _close_conn


def _buffer(count: Any, arguments: Tuple[Any, ...]) -> Any:
    return memoryview(arguments[0]).cast("B")[:count] if count and arguments else None


def patch(patches: Patches, module: Any) -> None:
    """Patches http.client."""
    connection, response = module.HTTPConnection, module.HTTPResponse
    # Stays after the hooks are removed: objects made meanwhile look it up.
    connection._cordwood_sending = None
    response._cordwood_body = None
    patches.put(connection, "endheaders", _endheaders)
    patches.put(connection, "send", _send)
    patches.put(connection, "getresponse", _getresponse)
    patches.put(connection, "close", _close)
    patches.put(connection, "connect", timed("connect_ns"))
    if hasattr(module, "HTTPSConnection"):
        patches.put(module.HTTPSConnection, "connect", timed("tls_ns", "connect_ns"))
    for name in ("read", "read1", "readline"):
        patches.put(response, name, _reads(lambda result, _: result))
    patches.put(response, "readinto", _reads(_buffer))
    patches.put(response, "_close_conn", _close_conn)
