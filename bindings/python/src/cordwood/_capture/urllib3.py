"""The parts of urllib3 that bypass `http.client`, through which it sends: it connects TLS before
the request begins, reads chunks by itself, and retries. A request that failed before it began is
recorded here. `_now` holds the thread's request while its pool works on it."""
import threading
from typing import Any, Callable, Optional

from .hooks import Patches, active
from .http_client import CLIENT, target, timed
from .record import begin

_now = threading.local()


def _url(pool: Any, connection: Any, path: str) -> str:
    """For a connection that is not set up, the pool knows the target."""
    if path.startswith("/") and getattr(connection, "_tunnel_host", None) is None:
        host = pool.host if ":" not in pool.host else f"[{pool.host.strip('[]')}]"
        usual = {"http": 80, "https": 443}.get(pool.scheme)
        place = host if pool.port in (None, usual) else f"{host}:{pool.port}"
        return f"{pool.scheme}://{place}{path}"
    return target(connection, path)


def _attempt(retries: Any) -> int:
    """Counts from 1; a redirection starts anew."""
    count = 1
    for past in reversed(getattr(retries, "history", None) or ()):
        if getattr(past, "redirect_location", None):
            break
        count += 1
    return count


def _failed(pool: Any, connection: Any, request: Any, error: BaseException) -> None:
    """Records a request that ended before http.client saw it."""
    hooks = active(CLIENT)
    if hooks is None:
        return
    try:
        method, path, headers, attempt = request
        took = connection.__dict__.pop("_cordwood_connect", None) or {}
        pairs = list((pool.headers if headers is None else headers or {}).items())
        recording = begin(hooks, method, _url(pool, connection, path), pairs,
                          before_ns=sum(took.values()), attempt=attempt)
        if recording is not None:
            recording.phases.update(took)
            recording.end(error)
    except Exception as trouble:
        hooks.diagnose(trouble)


def _make_request(original: Callable[..., Any]) -> Callable[..., Any]:
    def _make_request(self: Any, conn: Any, method: str, url: str, *arguments: Any,
                      **named: Any) -> Any:
        if active(CLIENT) is None:
            return original(self, conn, method, url, *arguments, **named)
        values = conn.__dict__
        now = getattr(_now, "request", None)
        attempt = 1 if now is None else now[3]
        values["_cordwood_attempt"] = attempt
        before = values.get("_cordwood_begun", 0)
        try:
            return original(self, conn, method, url, *arguments, **named)
        except BaseException as error:
            if values.get("_cordwood_begun", 0) == before:
                headers = arguments[1] if len(arguments) > 1 else named.get("headers")
                _failed(self, conn, (method, url, headers, attempt), error)
            raise
    return _make_request


def _urlopen(original: Callable[..., Any]) -> Callable[..., Any]:
    def urlopen(self: Any, method: str, url: str, body: Any = None, headers: Any = None,
                retries: Any = None, *arguments: Any, **named: Any) -> Any:
        if active(CLIENT) is None:
            return original(self, method, url, body, headers, retries, *arguments, **named)
        before = getattr(_now, "request", None)  # of a request that this one retries
        _now.request = (method, url, headers, _attempt(retries))
        try:
            return original(self, method, url, body, headers, retries, *arguments, **named)
        finally:
            _now.request = before
    return urlopen


def _prepare_proxy(original: Callable[..., Any]) -> Callable[..., Any]:
    def _prepare_proxy(self: Any, conn: Any) -> Any:
        try:
            return original(self, conn)
        except BaseException as error:
            request: Optional[Any] = getattr(_now, "request", None)
            if request is not None:
                _failed(self, conn, request, error)
            raise
    return _prepare_proxy


def _handle_chunk(original: Callable[..., Any]) -> Callable[..., Any]:
    def _handle_chunk(self: Any, amt: Any) -> Any:
        body = getattr(self._fp, "_cordwood_body", None)
        if body is None or body.is_inside:
            return original(self, amt)
        body.is_inside = True
        try:
            chunk = original(self, amt)
        except BaseException as error:
            self._fp._cordwood_body = None
            body.recording.end(error)
            raise
        finally:
            body.is_inside = False
        if chunk:
            body.recording.received(chunk)
        return chunk
    return _handle_chunk


def patch(patches: Patches, module: Any) -> None:
    """Patches urllib3."""
    pools: Any = module.connectionpool
    patches.put(pools.HTTPConnectionPool, "urlopen", _urlopen)
    patches.put(pools.HTTPConnectionPool, "_make_request", _make_request)
    patches.put(pools.HTTPConnectionPool, "_prepare_proxy", _prepare_proxy)
    patches.put(pools.HTTPSConnectionPool, "_prepare_proxy", _prepare_proxy)
    patches.put(module.response.HTTPResponse, "_handle_chunk", _handle_chunk)
    connections: Any = module.connection
    patches.put(connections.HTTPConnection, "_new_conn", timed("connect_ns"))
    patches.put(connections.HTTPSConnection, "connect", timed("tls_ns", "connect_ns"))
