"""The hook of aiohttp's client. A TraceConfig in every session that makes a request reports hops,
phases and errors. The answer's StreamReader reports the body: each of its reads goes through one
method. Readers have no room for an attribute, so `_bodies` finds them by id while their body is
open. Everything runs in the loop's thread."""
import time
import weakref
from typing import Any, Callable, Dict, Optional

from .hooks import HTTPHooks, Patches, active
from .record import EXCHANGE, Recording, begin, decoded, propagated, remember

CLIENT = "aiohttp"


class _Body:
    """An open body of an answer. The reader lives as long, so its id stays unique."""

    __slots__ = ("recording", "reader", "response")

    def __init__(self, recording: Recording, reader: Any, response: Any) -> None:
        self.recording = recording
        self.reader = reader
        number = id(reader)
        self.response = weakref.ref(response, lambda _: _forgotten(number))

    def end(self, error: Optional[BaseException] = None) -> None:
        """No more bytes come, or the host wants no more."""
        _bodies.pop(id(self.reader), None)
        self.recording.end(error)

    def at_eof(self) -> None:
        """The reader's callback: the host has yet to read the bytes in its buffer."""
        if self.reader.at_eof():
            self.end()


_bodies: Dict[int, _Body] = {}


def _forgotten(number: int) -> None:
    body = _bodies.pop(number, None)
    if body is not None:
        body.recording.end()


class _Context:
    """One request of the host, hop after hop."""

    __slots__ = ("hooks", "recording", "request", "phases", "at", "chunks", "attempt")

    def __init__(self, **_: Any) -> None:
        self.hooks: Optional[HTTPHooks] = None
        self.recording: Optional[Recording] = None
        self.request: Any = None
        self.phases: Dict[str, Any] = {}
        self.at = 0
        self.chunks: Any = []
        self.attempt = 0

    def begin(self, method: str, url: Any, headers: Any) -> Optional[Recording]:
        """Begins a hop whose headers are complete."""
        hooks = self.hooks
        if hooks is None:
            return None
        if self.recording is not None:  # the first try met a connection that was just closed
            self.recording.end(None, "the connection was closed before an answer", "closed")
            self.attempt = 2
        recording = begin(hooks, method, str(url), list(headers.items()), attempt=self.attempt,
                          before_ns=time.perf_counter_ns() - self.at)
        self.recording, self.request = recording, None
        self.at = time.perf_counter_ns()
        if recording is not None:
            self.phases.pop("_at", None)
            recording.phases.update(self.phases)
            recording.flags = decoded("")
        self.phases = {}
        return recording

    def hop(self, method: str, url: Any, headers: Any) -> None:
        """Begins a hop of which nothing else is known yet."""
        self.recording, self.phases, self.attempt = None, {}, 0
        self.request = (method, url, headers)
        self.at = time.perf_counter_ns()


def _answer(recording: Recording, response: Any) -> None:
    remember(response, recording.id)
    headers = [(name, value) for name, value in response.raw_headers]
    version = response.version
    protocol = None if version is None else f"http/{version.major}.{version.minor}"
    recording.answered(response.status, headers, protocol, response.headers.get("Location"))
    recording.flags = decoded(response.headers.get("Transfer-Encoding", ""))
    connection = response.connection
    transport = None if connection is None else connection.transport
    peer = None if transport is None else transport.get_extra_info("peername")
    if isinstance(peer, tuple) and len(peer) >= 2:
        host = f"[{peer[0]}]" if ":" in str(peer[0]) else peer[0]
        recording.phases["remote_address"] = f"{host}:{peer[1]}"
    length = response.headers.get("Content-Length", "")
    # The reader has the body unpacked: only the header says how much came.
    if response.headers.get("Content-Encoding") and length.isdecimal():
        recording.phases["response_body_bytes"] = int(length)


def _follow(recording: Recording, response: Any) -> None:
    """Follows the body until the host has read it."""
    reader = response.content
    if reader is None or reader.at_eof():
        recording.end()
        return
    body = _Body(recording, reader, response)
    _bodies[id(reader)] = body
    reader.on_eof(body.at_eof)


def _safe(call: Callable[..., None]) -> Callable[..., Any]:
    """Keeps an event's failure away from the host."""
    async def event(_: Any, context: Any, parameters: Any) -> None:
        try:
            if context.hooks is not None or call is _started:
                call(context, parameters)
        except Exception as error:
            if context.hooks is not None:
                context.hooks.diagnose(error)
    return event


def _started(context: Any, parameters: Any) -> None:
    context.hooks = hooks = active(CLIENT)
    if hooks is not None:
        for name, value in propagated(hooks, parameters.headers):
            parameters.headers[name] = value
        context.hop(parameters.method, parameters.url, parameters.headers)


def _headers_sent(context: Any, parameters: Any) -> None:
    recording = context.begin(parameters.method, parameters.url, parameters.headers)
    if recording is not None:
        recording.sent()


def _chunk_sent(context: Any, parameters: Any) -> None:
    recording = context.recording
    if recording is not None:
        recording.sending(parameters.chunk)
        recording.sent()
        recording.phases["send_ns"] = max(1, time.perf_counter_ns() - context.at)


def _redirected(context: Any, parameters: Any) -> None:
    recording, response = context.recording, parameters.response
    if recording is not None:
        _answer(recording, response)
        recording.end()
    here = parameters.url
    there = here.join(type(here)(response.headers.get("Location", "")))
    context.hop(parameters.method, there, parameters.headers)


def _ended(context: Any, parameters: Any) -> None:
    recording, context.recording = context.recording, None
    if recording is not None:
        _answer(recording, parameters.response)
        _follow(recording, parameters.response)


def _failed(context: Any, parameters: Any) -> None:
    recording, context.recording = context.recording, None
    if recording is None and context.request is not None:
        context.begin(*context.request)
        recording, context.recording = context.recording, None
    if recording is not None:
        recording.end(parameters.exception)


def _begins(context: Any, _: Any) -> None:
    context.phases["_at"] = time.perf_counter_ns()


def _took(name: str) -> Callable[..., None]:
    def done(context: Any, _: Any) -> None:
        began = context.phases.pop("_at", None)
        if began is not None:
            context.phases[name] = max(1, time.perf_counter_ns() - began)
    return done


def _resolved(context: Any, _: Any) -> None:
    began = context.phases.get("_at")
    if began is not None:
        now = time.perf_counter_ns()
        context.phases["dns_ns"] = max(1, now - began)
        context.phases["_at"] = now


def _traces(aiohttp: Any) -> Any:
    traces = aiohttp.TraceConfig(trace_config_ctx_factory=_Context)
    for signal, call in (
            ("on_request_start", _started), ("on_request_headers_sent", _headers_sent),
            ("on_request_chunk_sent", _chunk_sent), ("on_request_redirect", _redirected),
            ("on_request_end", _ended), ("on_request_exception", _failed),
            ("on_connection_create_start", _begins), ("on_dns_resolvehost_end", _resolved),
            ("on_connection_create_end", _took("connect_ns"))):
        getattr(traces, signal).append(_safe(call))
    traces.freeze()
    return traces


def _request(traces: Any) -> Callable[..., Any]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        async def _request(self: Any, *arguments: Any, **named: Any) -> Any:
            if active(CLIENT) is not None:
                try:
                    # Not append: the list belongs to the host.
                    if traces not in self._trace_configs:
                        self._trace_configs = [*self._trace_configs, traces]
                except AttributeError:
                    pass
            return await original(self, *arguments, **named)
        return _request
    return make


def _read(original: Callable[..., Any]) -> Callable[..., Any]:
    def _read_nowait_chunk(self: Any, n: int) -> Any:
        if not _bodies or id(self) not in _bodies:
            return original(self, n)
        data = original(self, n)
        body = _bodies[id(self)]
        body.recording.received(data)
        if self.at_eof():
            body.end()
        return data
    return _read_nowait_chunk


def _set_exception(original: Callable[..., Any]) -> Callable[..., Any]:
    def set_exception(self: Any, exc: BaseException, *arguments: Any) -> Any:
        body = _bodies.get(id(self))
        if body is not None:
            body.end(exc)
        return original(self, exc, *arguments)
    return set_exception


def _notify_content(original: Callable[..., Any]) -> Callable[..., Any]:
    def _notify_content(self: Any) -> Any:
        body = _bodies.pop(id(getattr(self, "content", None)), None)
        if body is not None:
            body.recording.closed()
        return original(self)
    return _notify_content


def _raise_for_status(original: Callable[..., Any]) -> Callable[..., Any]:
    def raise_for_status(self: Any) -> Any:
        try:
            return original(self)
        except BaseException as error:
            remember(error, getattr(self, EXCHANGE, ""))
            raise
    return raise_for_status


def patch(patches: Patches, module: Any) -> None:
    """Patches aiohttp."""
    patches.put(module.ClientSession, "_request", _request(_traces(module)))
    patches.put(module.StreamReader, "_read_nowait_chunk", _read)
    patches.put(module.StreamReader, "set_exception", _set_exception)
    patches.put(module.ClientResponse, "_notify_content", _notify_content)
    patches.put(module.ClientResponse, "raise_for_status", _raise_for_status)
