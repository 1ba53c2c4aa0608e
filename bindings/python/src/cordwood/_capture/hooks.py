"""Hooks that record what Python's HTTP clients send and receive, without any change for the host.

`install` patches each client at one level, at once or when the host imports it; exchanges go to
the newest hooks installed. Process-wide state: `_stack`, guarded by the lock. A failure in here is
reported once, under `Cordwood.HTTP`, and the host's request goes on. Each module here that is named
after a client patches that client, and records through `record`.
"""
import ctypes
import importlib
import logging
import os
import sys
import threading
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional,
                    Sequence, Tuple, Type, Union)

from .._context import context
from .._text import safe_str

if TYPE_CHECKING:
    from .._engine import Engine

# Names that hosts use, and the modules whose import triggers the patch.
CLIENTS: Dict[str, Tuple[str, ...]] = {
    "http.client": ("http.client", "urllib3"),
    "httpx": ("httpx",),
    "aiohttp": ("aiohttp",),
}
_PATCHERS = {"http.client": "http_client", "urllib3": "urllib3", "httpx": "httpx",
             "aiohttp": "aiohttp"}
CONVERSATION = "http.conversation"  # the field of a context that holds the id
_lock = threading.RLock()
_stack: "List[HTTPHooks]" = []
_patched: "Dict[str, Patches]" = {}
_silent = threading.local()


@contextmanager
def conversation(id: Optional[str] = None) -> Iterator[str]:
    """Inside, records carry the field `http.conversation`, and requests carry the header if the
    hooks propagate. Without an id, a new one is made."""
    value = os.urandom(16).hex() if id is None else id
    with context(**{CONVERSATION: value}):
        yield value


class suppressed:
    """Inside, this thread's requests are not captured: they belong to the engine itself."""

    def __enter__(self) -> None:
        _silent.depth = getattr(_silent, "depth", 0) + 1

    def __exit__(self, *_: Any) -> None:
        _silent.depth -= 1


def _switch(engine: "Optional[Engine]", hooks: "HTTPHooks") -> Callable[[], bool]:
    """A function that tells whether the engine captures; costs one load."""
    if engine is not None:
        try:
            from . import calls
            return partial(calls.enabled, ctypes.c_void_p(engine._handle))
        except Exception as error:
            hooks.diagnose(error)
    return bool  # which is False


class HTTPHooks:
    """Installed hooks. `remove()`, or leaving it as a context manager, uninstalls them."""

    def __init__(self, engine: "Optional[Engine]", clients: Sequence[str], propagate: bool) -> None:
        self.engine = engine
        self.clients = frozenset(clients)
        self.propagate = propagate
        self._told = engine is None
        self.is_on = _switch(engine, self)

    def remove(self) -> None:
        """Requests under way are still recorded; the clients return to their former state."""
        with _lock:
            if self in _stack:
                _stack.remove(self)
            if not _stack:
                for patches in _patched.values():
                    patches.undo()
                _patched.clear()
                _watch(False)

    def __enter__(self) -> "HTTPHooks":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.remove()

    def diagnose(self, error: BaseException) -> None:
        """Reports one diagnostic, then stays silent: a host makes many requests."""
        if self._told:
            return
        self._told = True
        text = f"HTTP capture failed: {type(error).__name__}: {safe_str(error)}"
        try:
            if self.engine is not None and self.engine.logger("Cordwood.HTTP").warning(text):
                return
        except Exception:  # a closed engine: only Python's own log remains
            pass
        try:
            logging.getLogger("Cordwood.HTTP").warning(text)
        except Exception:  # a filter of the host's
            pass


def is_capturing(hooks: HTTPHooks) -> bool:
    """Whether an exchange that begins on this thread now may be captured. Never raises."""
    return hooks.is_on() and not getattr(_silent, "depth", 0)


def active(client: str) -> Optional[HTTPHooks]:
    """The hooks for a request of this client that begins now; None: it is not captured. Never
    raises."""
    for hooks in reversed(_stack):
        if client in hooks.clients and (
                (hooks.is_on() and not getattr(_silent, "depth", 0))
                or (hooks.propagate and hooks.engine is not None)):
            return hooks
    return None


class Patches:
    """Attributes that were replaced, and their former values."""

    def __init__(self) -> None:
        self._done: List[Tuple[Any, str, Any, Any, bool]] = []

    def put(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replaces owner.name by make(former value)."""
        before = getattr(owner, name)
        after = make(before)
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            try:
                setattr(after, attribute, getattr(before, attribute))
            except AttributeError:
                pass
        try:
            after.__wrapped__ = before
        except AttributeError:
            pass
        self._done.append((owner, name, before, after, name in vars(owner)))
        setattr(owner, name, after)

    def undo(self) -> None:
        """Another wrapper around ours stays: without hooks ours only passes calls on."""
        for owner, name, before, after, own in reversed(self._done):
            if vars(owner).get(name) is after:
                if own:
                    setattr(owner, name, before)
                else:
                    delattr(owner, name)


def _patch(module: str) -> None:
    """Never raises: the host is importing."""
    with _lock:
        if module in _patched or not _stack:
            return
        patches = Patches()
        try:
            patcher: Any = importlib.import_module(f".{_PATCHERS[module]}", __package__)
            patcher.patch(patches, sys.modules[module])
        except Exception as error:  # a version of the client with another structure
            patches.undo()
            _stack[-1].diagnose(error)
            return
        _patched[module] = patches


class _Watcher:
    """Patches a client right after the host has imported it, on sys.meta_path."""

    def find_spec(self, name: str, path: Any = None, target: Optional[ModuleType] = None
                  ) -> Optional[ModuleSpec]:
        if name not in _PATCHERS or name in _patched:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: Optional[ModuleSpec] = find(name, path, target)
            if spec is not None:
                self._follow(spec, name)
                return spec
        return None

    @staticmethod
    def _follow(spec: ModuleSpec, name: str) -> None:
        loader: Any = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _patch(name)
        try:
            loader.exec_module = exec_module
        except AttributeError:  # a frozen module's: its class has no room
            pass


_watcher = _Watcher()


def _watch(on: bool) -> None:
    present: List[Any] = sys.meta_path
    if on and _watcher not in present:
        present.insert(0, _watcher)
    elif not on and _watcher in present:
        present.remove(_watcher)


def _engine(given: Any) -> "Optional[Engine]":
    """Returns an engine unchanged. Opens the engine of a directory, or returns None with a
    diagnostic."""
    if given is None or not isinstance(given, (str, bytes, os.PathLike)):
        engine: "Optional[Engine]" = given
        return engine
    from .._engine import open as open_engine
    try:
        return open_engine(given)
    except Exception as error:
        logging.getLogger("Cordwood.HTTP").warning("HTTP capture is off: %s", error)
        return None


def install_http_hooks(engine: "Union[Engine, str, bytes, os.PathLike[str], None]",
                       clients: Optional[Iterable[str]] = None, *,
                       propagate: bool = False) -> HTTPHooks:
    """Records the exchanges of this process's HTTP clients while capture is on (`capture_http`, or
    `cordwood http enable`): "http.client" (urllib.request, urllib3, requests), "httpx", "aiohttp".
    Imports no client that the host does not import. engine may be a directory: if its store cannot
    be opened, one warning is logged and the host's requests go on.

    propagate: adds the headers traceparent, X-Transaction-Id and X-Conversation-Id to requests made
    inside a transaction, `trace` or `conversation`, unless the host set them.

    The hooks last until `remove()` of the returned object; the newest hooks are in force."""
    names = tuple(CLIENTS if clients is None else clients)
    for name in names:
        if name not in CLIENTS:
            raise ValueError(f"clients are {', '.join(CLIENTS)}: {name!r}")
    hooks = HTTPHooks(_engine(engine), names, propagate)
    with _lock:
        _stack.append(hooks)
        for name in names:
            for module in CLIENTS[name]:
                if module in sys.modules:
                    _patch(module)
        _watch(True)
    return hooks
