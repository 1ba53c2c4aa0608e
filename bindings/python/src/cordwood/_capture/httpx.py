"""The hook of httpx, sync and async. It wraps the transport that a client picks for a URL, so it
sees mounted and custom transports, and each hop of a redirection. It wraps the answer's stream as
the transport gave it: bytes as on the wire. httpcore's trace extension reports the phases."""
import time
from typing import Any, AsyncIterator, Callable, Dict, Iterator, Optional

from .hooks import HTTPHooks, Patches, active
from .record import Recording, begin, decoded, propagated, remember

CLIENT = "httpx"
_PROTOCOLS = {b"HTTP/1.0": "http/1.0", b"HTTP/1.1": "http/1.1", b"HTTP/2": "h2", b"HTTP/3": "h3"}


class _Phases:
    """Turns httpcore's events into times."""

    __slots__ = ("_at", "_phases", "_before")

    def __init__(self, recording: Recording, before: Any) -> None:
        self._at: Dict[str, int] = {}
        self._phases = recording.phases
        self._before = before

    def _note(self, name: str) -> None:
        what, _, state = name.rpartition(".")
        what = what.rpartition(".")[2]
        now = time.perf_counter_ns()
        if state == "started":
            self._at[what] = now
            return
        if state != "complete":
            return
        took = now - self._at.get(what, now)
        if what == "connect_tcp":
            self._phases["connect_ns"] = took
        elif what == "start_tls":
            self._phases["tls_ns"] = took
        elif what == "send_request_body":
            self._phases["send_ns"] = now - self._at.get("send_request_headers", now)
        elif what == "receive_response_headers":
            self._phases["wait_ns"] = took

    def sync(self, name: str, info: Any) -> Any:
        """httpcore's callback."""
        self._note(name)
        return None if self._before is None else self._before(name, info)

    async def async_(self, name: str, info: Any) -> Any:
        """Like `sync`, awaited."""
        self._note(name)
        return None if self._before is None else await self._before(name, info)


def _begin(hooks: HTTPHooks, request: Any) -> Optional[Recording]:
    try:
        for name, value in propagated(hooks, request.headers):
            request.headers[name] = value
        recording = begin(hooks, request.method, str(request.url), request.headers.raw,
                          body=getattr(request, "_content", b""))
        if recording is not None:
            recording.flags = decoded("")
        return recording
    except Exception as error:
        hooks.diagnose(error)
        return None


def _answered(recording: Recording, response: Any) -> bool:
    """Reports the answer; returns whether a body is still to come."""
    try:
        extensions = response.extensions
        remember(response, recording.id)
        recording.flags = decoded(response.headers.get("Transfer-Encoding", ""))
        recording.answered(response.status_code, response.headers.raw,
                           _PROTOCOLS.get(extensions.get("http_version", b"HTTP/1.1")),
                           response.headers.get("location"))
        stream = extensions.get("network_stream")
        peer = None if stream is None else stream.get_extra_info("server_addr")
        if peer:
            host = f"[{peer[0]}]" if ":" in str(peer[0]) else peer[0]
            recording.phases["remote_address"] = f"{host}:{peer[1]}"
        content = getattr(response, "_content", None)
        if content is not None:  # a transport that answers from memory
            recording.received(content)
            recording.end()
            return False
    except Exception as error:
        recording._hooks.diagnose(error)
    return True


def _classes(httpx: Any) -> Any:
    """The wrappers, which have to subclass httpx's own types."""

    class SentSync(httpx.SyncByteStream):  # type: ignore[misc]
        """A request's body that reports the bytes going out."""

        def __init__(self, stream: Any, recording: Recording) -> None:
            self._stream, self._recording = stream, recording

        def __iter__(self) -> Iterator[bytes]:
            for chunk in self._stream:
                self._recording.sending(chunk)
                yield chunk

        def close(self) -> None:
            """Closes the host's stream."""
            self._stream.close()

    class SentAsync(httpx.AsyncByteStream):  # type: ignore[misc]
        """Like SentSync, awaited."""

        def __init__(self, stream: Any, recording: Recording) -> None:
            self._stream, self._recording = stream, recording

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                self._recording.sending(chunk)
                yield chunk

        async def aclose(self) -> None:
            """Closes the host's stream."""
            await self._stream.aclose()

    class ReceivedSync(httpx.SyncByteStream):  # type: ignore[misc]
        """An answer's body that reports the bytes arriving, and its end."""

        def __init__(self, stream: Any, recording: Recording) -> None:
            self._stream, self._recording = stream, recording

        def __iter__(self) -> Iterator[bytes]:
            try:
                for chunk in self._stream:
                    self._recording.received(chunk)
                    yield chunk
            except GeneratorExit:  # the host stops reading
                raise
            except BaseException as error:
                self._recording.end(error)
                raise
            self._recording.end()

        def close(self) -> None:
            """Closes the transport's stream."""
            self._recording.closed()
            self._stream.close()

    class ReceivedAsync(httpx.AsyncByteStream):  # type: ignore[misc]
        """Like ReceivedSync, awaited."""

        def __init__(self, stream: Any, recording: Recording) -> None:
            self._stream, self._recording = stream, recording

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._stream:
                    self._recording.received(chunk)
                    yield chunk
            except GeneratorExit:
                raise
            except BaseException as error:
                self._recording.end(error)
                raise
            self._recording.end()

        async def aclose(self) -> None:
            """Closes the transport's stream."""
            self._recording.closed()
            await self._stream.aclose()

    class Sync(httpx.BaseTransport):  # type: ignore[misc]
        """The picked transport, for one request."""

        def __init__(self, transport: Any, hooks: HTTPHooks) -> None:
            self._transport, self._hooks = transport, hooks

        def handle_request(self, request: Any) -> Any:
            """Sends the request and records it."""
            recording = _begin(self._hooks, request)
            if recording is None:
                return self._transport.handle_request(request)
            stream, extensions = request.stream, request.extensions
            if not hasattr(request, "_content"):
                request.stream = SentSync(stream, recording)
            phases = _Phases(recording, extensions.get("trace"))
            request.extensions = {**extensions, "trace": phases.sync}
            try:
                response = self._transport.handle_request(request)
            except BaseException as error:
                recording.end(error)
                raise
            finally:
                request.stream, request.extensions = stream, extensions
            if _answered(recording, response):
                response.stream = ReceivedSync(response.stream, recording)
            return response

    class Async(httpx.AsyncBaseTransport):  # type: ignore[misc]
        """Like Sync, awaited."""

        def __init__(self, transport: Any, hooks: HTTPHooks) -> None:
            self._transport, self._hooks = transport, hooks

        async def handle_async_request(self, request: Any) -> Any:
            """Sends the request and records it."""
            recording = _begin(self._hooks, request)
            if recording is None:
                return await self._transport.handle_async_request(request)
            stream, extensions = request.stream, request.extensions
            if not hasattr(request, "_content"):
                request.stream = SentAsync(stream, recording)
            phases = _Phases(recording, extensions.get("trace"))
            request.extensions = {**extensions, "trace": phases.async_}
            try:
                response = await self._transport.handle_async_request(request)
            except BaseException as error:
                recording.end(error)
                raise
            finally:
                request.stream, request.extensions = stream, extensions
            if _answered(recording, response):
                response.stream = ReceivedAsync(response.stream, recording)
            return response

    return Sync, Async


def _picks(wrapper: Any) -> Callable[..., Any]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def _transport_for_url(self: Any, url: Any) -> Any:
            transport = original(self, url)
            hooks = active(CLIENT)
            return transport if hooks is None else wrapper(transport, hooks)
        return _transport_for_url
    return make


def patch(patches: Patches, module: Any) -> None:
    """Patches httpx."""
    sync, async_ = _classes(module)
    patches.put(module.Client, "_transport_for_url", _picks(sync))
    patches.put(module.AsyncClient, "_transport_for_url", _picks(async_))
