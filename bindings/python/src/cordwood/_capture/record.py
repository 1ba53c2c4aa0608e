"""The recorder that all hooks share: a request and its answer, from begin to end. It never raises.

A `Recording` belongs to one request; one thread at a time. It takes the times itself, so that the
hooks only report events. It recognises redirections by the target of the last answer in the same
context.
"""
import os
import socket
import sys
import time
from contextvars import ContextVar
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple
from urllib.parse import urldefrag, urljoin

from . import calls
from .._context import State, current
from .hooks import CONVERSATION, HTTPHooks
from .._text import safe_str

Pairs = Iterable[Tuple[Any, Any]]
REDIRECTIONS = (301, 302, 303, 307, 308)
_CAUSES_MAX = 8
EXCHANGE = "_cordwood_exchange"
"""Attribute of an answer or an exception that holds the id of its exchange."""


class Redirection(NamedTuple):
    """Where an answer sent the client: the next request of this context to that target is its
    hop."""
    target: str
    id: str


_redirection: "ContextVar[Optional[Redirection]]" = ContextVar("cordwood-redirection",
                                                              default=None)


def remember(thing: Any, id: str) -> None:
    """Attaches the exchange's id to an answer or an exception, for NetworkError."""
    try:
        setattr(thing, EXCHANGE, id)
    except Exception:  # it has no room
        pass


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its chain of causes, without __context__, which may be unrelated."""
    now: Optional[BaseException] = error
    for _ in range(_CAUSES_MAX):
        if now is None:
            return
        yield now
        inside = [now.__cause__, getattr(now, "reason", None), *getattr(now, "args", ())[-1:]]
        now = next((one for one in inside if isinstance(one, BaseException)), None)


def decoded(transfer_encoding: str) -> int:
    """The flags of an answer whose client has certainly decoded chunks."""
    is_sure = transfer_encoding.strip().lower() == "chunked"
    return calls.REQUEST_BARE | (calls.RESPONSE_BARE if is_sure else 0)


def is_cancelled(error: Optional[BaseException]) -> bool:
    """Whether the host cancelled it: a cancelled task, a generator that is closed, Ctrl-C."""
    asyncio = sys.modules.get("asyncio")  # cancelling requires its import
    return error is not None and (
        not isinstance(error, Exception)
        or asyncio is not None and isinstance(error, asyncio.CancelledError))


def error_type(error: BaseException) -> str:
    """"dns", "tls", "timeout", "connect", or the name of the class."""
    chain = list(causes(error))
    if any(isinstance(one, socket.gaierror) for one in chain):
        return "dns"
    if any(isinstance(one, TimeoutError) or "Timeout" in type(one).__name__ for one in chain):
        return "timeout"
    ssl = sys.modules.get("ssl")
    if ssl is not None and any(isinstance(one, ssl.SSLError) for one in chain):
        return "tls"
    if any(isinstance(one, ConnectionRefusedError)
           or type(one).__name__ in ("ConnectError", "NewConnectionError", "ClientConnectorError")
           for one in chain):
        return "connect"
    return type(error).__name__


def traceparent(state: State) -> Optional[str]:
    """The W3C header of the context in force; None if it has no trace."""
    ids = state.ids
    if ids is None:
        return None
    span = ids.span_id or os.urandom(8)
    return f"00-{ids.trace_id.hex()}-{span.hex()}-{ids.flags:02x}"


def propagated(hooks: HTTPHooks, present: Iterable[Any]) -> List[Tuple[str, str]]:
    """Headers to add to a request that already has headers of the names `present`."""
    if not hooks.propagate:
        return []
    try:
        state = current()
        if state is None:
            return []
        engine: Any = hooks.engine
        wanted = ((conversation_header(engine), state.fields.get(CONVERSATION)),
                  ("traceparent", traceparent(state)),
                  ("X-Transaction-Id", state.fields.get("txn.id")))
        there = {name.lower() if isinstance(name, str) else bytes(name).decode("latin-1").lower()
                 for name in present}
        return [(name, str(value)) for name, value in wanted
                if name and value and name.lower() not in there and _is_line(str(value))]
    except Exception as error:
        hooks.diagnose(error)
        return []


def conversation_header(engine: Any) -> str:
    """The header's name as the host set it; "": none."""
    name: str = getattr(engine, "_conversation_header", "X-Conversation-Id")
    return name


def _is_line(value: str) -> bool:
    """Whether the value can be a header line: a context's field may be anything."""
    return value.isascii() and value.isprintable()


class Recording:
    """One request under way, begun by `begin`. Calls after `end` do nothing."""

    __slots__ = ("_hooks", "_exchange", "_url", "_began", "sent_ns", "_answered",
                 "phases", "id", "flags")

    def __init__(self, hooks: HTTPHooks, exchange: Any, url: str, began: int) -> None:
        self._hooks = hooks
        self._exchange = exchange
        self._url = url
        self._began = began
        self.sent_ns = 0
        self._answered = 0
        self.phases: Dict[str, Any] = {}
        self.id: str = exchange.id
        self.flags = 0  # of `calls`: the known framing of the bodies

    @property
    def is_open(self) -> bool:
        """Whether the exchange has not ended."""
        return self._exchange is not None

    def sending(self, data: Any) -> None:
        """Reports bytes of the request's body that go out."""
        exchange = self._exchange
        if exchange is not None:
            try:
                exchange.request_body(data)
            except Exception as error:
                self._hooks.diagnose(error)

    def sent(self) -> None:
        """Marks the time at which the last bytes go out."""
        self.sent_ns = time.perf_counter_ns()

    def answered(self, status: int, headers: Pairs, protocol: Optional[str] = None,
                 location: Optional[str] = None) -> None:
        """Reports the answer's status and headers; location: where it redirects to."""
        exchange = self._exchange
        if exchange is None:
            return
        self._answered = time.perf_counter_ns()
        try:
            exchange.response(status, headers, protocol=protocol)
            if location is not None and status in REDIRECTIONS:
                target = urldefrag(urljoin(self._url, location)).url
                _redirection.set(Redirection(target, self.id))
        except Exception as error:
            self._hooks.diagnose(error)

    def received(self, data: Any) -> None:
        """Reports bytes of the answer's body."""
        exchange = self._exchange
        if exchange is not None:
            try:
                exchange.response_body(data)
            except Exception as error:
                self._hooks.diagnose(error)

    def received_unseen(self, count: int) -> None:
        """Reports the number of body bytes that went by unseen: the server sends a file."""
        exchange = self._exchange
        if exchange is not None and count > 0:
            try:
                exchange.response_body_unseen(count)
            except Exception as error:
                self._hooks.diagnose(error)

    def diagnose(self, error: BaseException) -> None:
        """Reports a failure of the recording itself."""
        self._hooks.diagnose(error)

    def end(self, error: Optional[BaseException] = None, text: str = "", kind: str = "") -> None:
        """Ends the exchange: successfully, by an error, or for the reason in the text."""
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        try:
            now = time.perf_counter_ns()
            outcome = self.phases
            outcome["duration_ns"] = now - self._began
            if self._answered:
                outcome["receive_ns"] = now - self._answered
                if self.sent_ns:
                    outcome.setdefault("wait_ns", self._answered - self.sent_ns)
            if error is not None:
                remember(error, self.id)
                text = safe_str(error) or type(error).__name__
                kind = "cancelled" if is_cancelled(error) else error_type(error)
                outcome["cancelled"] = is_cancelled(error)
            exchange.end(error=text, error_type=kind, flags=self.flags, **outcome)
        except Exception as trouble:
            self._hooks.diagnose(trouble)

    def closed(self) -> None:
        """The host has finished with it, whether or not it read the whole body."""
        now = sys.exc_info()[1]
        self.end(now if is_cancelled(now) else None)

    def __del__(self) -> None:
        try:
            self.end()
        except Exception:  # the interpreter is exiting
            pass


def begin(hooks: HTTPHooks, method: str, url: str, headers: Pairs, *, body: Any = b"",
          protocol: Optional[str] = None, attempt: int = 0, before_ns: int = 0,
          side: int = 0) -> Optional[Recording]:
    """Begins an exchange; None: it is not captured. before_ns: the time the request has already
    been under way. Never raises."""
    try:
        url = urldefrag(url).url
        came = _redirection.get()
        redirected_from = None
        if came is not None:
            if came.target == url:
                redirected_from = came.id
            _redirection.set(None)
        engine: Any = hooks.engine
        exchange = calls.begin(
            engine._handle, method, url, headers, body=body, protocol=protocol, attempt=attempt,
            side=side,
            start_ns=time.time_ns() - before_ns if before_ns else 0,
            redirected_from=redirected_from)
        if exchange is None:
            return None
        return Recording(hooks, exchange, url, time.perf_counter_ns() - before_ns)
    except Exception as error:
        hooks.diagnose(error)
        return None
