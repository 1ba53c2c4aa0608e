"""Reads a store, even while another process writes it: `for record in cordwood.read(path)`.

A Reader owns a C cursor; one thread at a time. It copies each record, so records may be kept.
Records come merged by time; within a thread the order is exact. The reader skips damaged places,
counts them, and reports each as a DamageWarning.
"""
import ctypes
import os
import time
import warnings
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import Any, Dict, Iterable, Iterator, NamedTuple, Optional, Type, Union

from . import _abi, _levels
from ._errors import DamageWarning, check, describe
from ._values import PathLike

Time = Union[datetime, str, int, float]
FieldValue = Union[int, float, bool, str]

_KINDS = ("log", "gap", "lifecycle", "transaction", "http")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_POLL_S = 0.02
_TRUNCATED, _NOT_UTF8, _UNVERIFIED, _LATE = 1, 2, 4, 8


class Record(NamedTuple):
    """One record that was read."""
    time_ns: int  # UTC, ns since 1970
    level_number: int  # 1 … 24
    logger: str
    message: str  # bytes that are not UTF-8 become U+FFFD here: see message_bytes
    pid: int
    tid: int
    file: Optional[str]
    line: Optional[int]
    function: Optional[str]
    fields: Dict[str, FieldValue]  # the record's own, its context, exception.type …
    trace_id: Optional[str]  # 32 hex digits
    span_id: Optional[str]  # 16 hex digits
    trace_flags: int
    kind: str  # log gap lifecycle transaction http
    sequence: int  # grows within one thread of one process
    process_name: str
    message_bytes: bytes
    original_length: int  # of the message, bytes, before it was cut
    flags: int  # CW_VIEW_…

    @property
    def time(self) -> datetime:
        """Aware, UTC; microseconds: time_ns has the rest."""
        return _EPOCH + timedelta(microseconds=self.time_ns // 1000)

    @property
    def level(self) -> str:
        """ "INFO", "INFO+2"."""
        return _levels.name(self.level_number)

    @property
    def truncated(self) -> bool:
        """The message was cut; original_length is its full length."""
        return bool(self.flags & _TRUNCATED)

    @property
    def unverified(self) -> bool:
        """After loss of power: no sync covers the record; it may be incomplete."""
        return bool(self.flags & _UNVERIFIED)

    @property
    def late(self) -> bool:
        """A following reader showed later records before this one."""
        return bool(self.flags & _LATE)


def _text(raw: _abi.Str) -> str:
    return _abi.view(raw).decode("utf-8", "replace")


def _value(field: _abi.ReadField) -> FieldValue:
    kind, value = field.type, field.value
    if kind == _abi.TYPE_INT:
        return int(value.i)
    if kind == _abi.TYPE_UINT:
        return int(value.u)
    if kind == _abi.TYPE_DOUBLE:
        return float(value.d)
    if kind == _abi.TYPE_BOOL:
        return bool(value.b)
    return _text(value.s)


def _fields(view: _abi.RecordView) -> Dict[str, FieldValue]:
    """The first field of a key counts: the record's own fields override the context's."""
    found: Dict[str, FieldValue] = {}
    for index in range(view.field_count):
        field = view.fields[index]
        found.setdefault(_text(field.key), _value(field))
    return found


def _hex(raw: Any) -> Optional[str]:
    content = bytes(raw)
    return content.hex() if any(content) else None


def _record(view: _abi.RecordView) -> Record:
    message = _abi.view(view.message)
    return Record(
        time_ns=view.time_ns, level_number=view.level, logger=_text(view.logger),
        message=message.decode("utf-8", "replace"), pid=view.process_id, tid=view.thread_id,
        file=_text(view.file) or None, line=view.line or None,
        function=_text(view.function) or None, fields=_fields(view),
        trace_id=_hex(view.trace_id), span_id=_hex(view.span_id), trace_flags=view.trace_flags,
        kind=_KINDS[view.kind] if view.kind < len(_KINDS) else str(view.kind),
        sequence=view.sequence, process_name=_text(view.process_name), message_bytes=message,
        original_length=view.original_length, flags=view.flags)


def _nanoseconds(value: Optional[Time]) -> int:
    """A datetime (naive: local time), ISO 8601 text, or seconds since 1970; None: 0."""
    if value is None:
        return 0
    if isinstance(value, str):
        value = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
    if isinstance(value, datetime):
        since = value.astimezone(timezone.utc) - _EPOCH
        return max(0, since // timedelta(microseconds=1) * 1000)
    return max(0, int(value * 1_000_000_000))


def _kind_set(kinds: Union[str, Iterable[str]]) -> int:
    if kinds == "all":
        return 0
    bits = 0
    for kind in (kinds,) if isinstance(kinds, str) else kinds:
        if kind not in _KINDS:
            raise ValueError(f"a kind is one of {', '.join(_KINDS)}, or all: {kind!r}")
        bits |= 1 << _KINDS.index(kind)
    return bits


class Reader(Iterator[Record]):
    """An iterator over records; also a context manager. Closes itself at the end."""

    def __init__(self, path: PathLike, options: _abi.ReaderOptions,
                 idle_timeout: Optional[float]) -> None:
        self._pointer = ctypes.c_void_p()
        self._view = _abi.RecordView(ctypes.sizeof(_abi.RecordView))
        self._idle_timeout = idle_timeout
        self.damaged = 0  # damaged places met so far
        self.encrypted = 0  # archives skipped because no identity opens them
        check(_abi.library.cw_reader_open(os.fsencode(path), options, self._pointer))

    def __next__(self) -> Record:
        idle_since: Optional[float] = None
        while self._pointer.value is not None:
            status = _abi.library.cw_reader_next(self._pointer, self._view)
            if status == _abi.OK:
                return _record(self._view)
            if status == _abi.E_DAMAGED:
                self.damaged += 1
                # If the host turns warnings into errors, the next call continues after the place.
                warnings.warn(describe(status), DamageWarning, stacklevel=2)
            elif status == _abi.E_ENCRYPTED:
                self.encrypted += 1
            elif status == _abi.AGAIN:
                idle_since = time.monotonic() if idle_since is None else idle_since
                if self._idle_for(idle_since):
                    break
                time.sleep(_POLL_S)
            elif status == _abi.END:
                break
            else:
                self._fail(status)
        self.close()
        raise StopIteration

    def _idle_for(self, since: float) -> bool:
        return self._idle_timeout is not None and time.monotonic() - since >= self._idle_timeout

    def _fail(self, status: int) -> None:
        try:
            check(status)
        finally:
            self.close()

    def close(self) -> None:
        """Idempotent."""
        _abi.library.cw_reader_close(self._pointer)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trail: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            self.close()


def read(path: PathLike, level: Optional[_levels.Level] = None, since: Optional[Time] = None,
         until: Optional[Time] = None, logger: Optional[str] = None,
         kinds: Union[str, Iterable[str]] = ("log",), follow: bool = False,
         from_end: bool = False, idle_timeout: Optional[float] = None,
         identity: Optional[PathLike] = None) -> Reader:
    """The records of a store directory, or of a single segment or archive file.

    level: the lowest level. since (inclusive), until (exclusive): a datetime, ISO 8601 text or
    seconds since 1970. logger: this name and all names below it. kinds: names, or "all". follow:
    wait for more, forever or until nothing came for idle_timeout seconds; from_end: skip existing
    records. identity: a file of age identities that opens encrypted archives; archives that it does
    not open are skipped and counted (`Reader.encrypted`).
    Raises NotFoundError, StoreError, DamagedError, EncryptedError (a single file that is unreadable
    without its key); ArgumentError for a file that holds no identities; ValueError for an unknown
    word."""
    raw = _abi.ReaderOptions(ctypes.sizeof(_abi.ReaderOptions))
    raw.level = 0 if level is None else _levels.number(level)
    raw.kinds = _kind_set(kinds)
    raw.since_ns, raw.until_ns = _nanoseconds(since), _nanoseconds(until)
    raw.logger = None if logger is None else logger.encode()
    raw.identity_file = None if identity is None else os.fsencode(identity)
    raw.flags = (_abi.READ_FOLLOW if follow else 0) | (_abi.READ_FROM_END if from_end else 0)
    return Reader(path, raw, idle_timeout)
