"""Reads a store, even while another process writes it: `for record in cordwood.read(path)`.

A Reader owns a C cursor; one thread at a time. It copies each record, so records may be kept.
`PlainCursor` takes the records through ctypes; the accelerator has another (speed/cursor.h).
Records come merged by time; within a thread the order is exact. The reader skips damaged places,
counts them, and reports each as a DamageWarning.
"""
import ctypes
import os
import time
import warnings
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterable, Optional, Type, Union

from . import _abi, _accelerator, _levels
from ._accelerator import Record
from ._errors import DamageWarning, check, describe, last_error
from ._record_view import EPOCH, KINDS, record_of, resource_of
from ._values import PathLike

Time = Union[datetime, str, int, float]

_POLL_S = 0.02


def _nanoseconds(value: Optional[Time]) -> int:
    """A datetime (naive: local time), ISO 8601 text, or seconds since 1970; None: 0."""
    if value is None:
        return 0
    if isinstance(value, str):
        value = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
    if isinstance(value, datetime):
        since = value.astimezone(timezone.utc) - EPOCH
        return max(0, since // timedelta(microseconds=1) * 1000)
    return max(0, int(value * 1_000_000_000))


def _kind_set(kinds: Union[str, Iterable[str]]) -> int:
    if kinds == "all":
        return 0
    bits = 0
    for kind in (kinds,) if isinstance(kinds, str) else kinds:
        if kind not in KINDS:
            raise ValueError(f"a kind is one of {', '.join(KINDS)}, or all: {kind!r}")
        bits |= 1 << KINDS.index(kind)
    return bits


class PlainCursor:
    """Takes records from the library by ctypes."""

    _frames = 2  # from a host's call to _met

    def _begin(self, address: int) -> None:
        self._pointer = ctypes.c_void_p(address)
        self._view = _abi.RecordView(ctypes.sizeof(_abi.RecordView))
        # The address of the previous record's resource, and its attributes: at the same address,
        # they are the same.
        self._resource_at: Optional[int] = None
        self._resource: Dict[str, str] = {}

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        tries = 0
        while self._pointer.value is not None:
            status = _abi.library.cw_reader_next(self._pointer, self._view)
            if status == _abi.OK:
                return record_of(self._view, self._known_resource())
            if not self._met(status, last_error() if status < 0 else "", tries):
                break
            tries += 1
        self.close()
        raise StopIteration

    def _met(self, status: int, detail: str, tries: int) -> bool:
        raise NotImplementedError

    def _known_resource(self) -> Dict[str, str]:
        """A new dict for each record, because the host may change it."""
        at = ctypes.cast(self._view.resource, ctypes.c_void_p).value
        if at is None or at != self._resource_at:
            self._resource_at, self._resource = at, resource_of(self._view)
        return dict(self._resource)

    def close(self) -> None:
        """Idempotent."""
        if getattr(self, "_pointer", None):
            _abi.library.cw_reader_close(self._pointer)

    def __del__(self) -> None:
        self.close()


if TYPE_CHECKING or _accelerator.module is None:
    _Cursor = PlainCursor
else:
    class _Cursor(_accelerator.module.Cursor):
        _frames = 1


class Reader(_Cursor):
    """An iterator over records; also a context manager. Closes itself at the end."""

    def __init__(self, path: PathLike, options: _abi.ReaderOptions,
                 idle_timeout: Optional[float]) -> None:
        self._idle_timeout = idle_timeout
        self._idle_since: Optional[float] = None
        self.damaged = 0  # damaged places met so far
        self.encrypted = 0  # archives skipped because no identity opens them
        pointer = ctypes.c_void_p()
        check(_abi.library.cw_reader_open(os.fsencode(path), options, pointer))
        self._begin(pointer.value or 0)

    if TYPE_CHECKING:
        def __iter__(self) -> "Reader": ...
        def __next__(self) -> Record: ...

    def _met(self, status: int, detail: str, tries: int) -> bool:
        """Handles an answer that is not a record, after `tries` others in the same call. True:
        continue."""
        if tries == 0:
            self._idle_since = None
        if status == _abi.E_DAMAGED:
            self.damaged += 1
            # If the host turns warnings into errors, the next call continues after the place.
            warnings.warn(describe(status, detail), DamageWarning, stacklevel=1 + self._frames)
        elif status == _abi.E_ENCRYPTED:
            self.encrypted += 1
        elif status == _abi.AGAIN:
            now = time.monotonic()
            if self._idle_since is None:
                self._idle_since = now
            if self._idle_timeout is not None and now - self._idle_since >= self._idle_timeout:
                return False
            time.sleep(_POLL_S)
        elif status == _abi.END:
            return False
        else:
            self.close()
            check(status, detail)
        return True

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trail: Optional[TracebackType]) -> None:
        self.close()


def read(path: PathLike, level: Optional[_levels.Level] = None, since: Optional[Time] = None,
         until: Optional[Time] = None, logger: Optional[str] = None,
         kinds: Union[str, Iterable[str]] = ("log",), follow: bool = False,
         from_end: bool = False, idle_timeout: Optional[float] = None,
         identity: Optional[PathLike] = None, query: Optional[str] = None) -> Reader:
    """The records of a store directory, or of a single segment or archive file.

    level: the lowest level. since (inclusive), until (exclusive): a datetime, ISO 8601 text or
    seconds since 1970. logger: this name and all names below it. kinds: names, or "all". follow:
    wait for more, forever or until nothing came for idle_timeout seconds; from_end: skip existing
    records. identity: a file of age identities that opens encrypted archives; archives that it does
    not open are skipped and counted (`Reader.encrypted`). query: a further condition, such as
    'level>=warn order=7 "timed out"' (docs/QUERY.md); kinds still applies, so exchanges and
    transactions need kinds="all".
    Raises NotFoundError, StoreError, DamagedError, EncryptedError (a single file that is unreadable
    without its key); ArgumentError for a file that holds no identities and for a wrong query, whose
    column it names; ValueError for an unknown word."""
    raw = _abi.ReaderOptions(ctypes.sizeof(_abi.ReaderOptions))
    raw.level = 0 if level is None else _levels.number(level)
    raw.kinds = _kind_set(kinds)
    raw.since_ns, raw.until_ns = _nanoseconds(since), _nanoseconds(until)
    raw.logger = None if logger is None else logger.encode()
    raw.identity_file = None if identity is None else os.fsencode(identity)
    raw.query = None if query is None else query.encode()
    raw.flags = (_abi.READ_FOLLOW if follow else 0) | (_abi.READ_FROM_END if from_end else 0)
    return Reader(path, raw, idle_timeout)
