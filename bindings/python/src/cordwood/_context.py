"""Context: fields and trace ids that later records carry, kept in `contextvars`.

Every asyncio task and every thread has its own, as contextvars give it. Nothing is set in the
library: the write calls take what stands here and pass it with each record.
"""
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Dict, Iterator, NamedTuple, Optional, Union


class TraceIds(NamedTuple):
    """W3C ids: 16 bytes, 8 bytes or None, flags."""
    trace_id: bytes
    span_id: Optional[bytes]
    flags: int


_fields: ContextVar[Dict[str, Any]] = ContextVar("cordwood_fields")
_trace: ContextVar[Optional[TraceIds]] = ContextVar("cordwood_trace", default=None)
_NO_FIELDS: Dict[str, Any] = {}


def fields() -> Dict[str, Any]:
    """The fields in force here. Not to be changed."""
    return _fields.get(_NO_FIELDS)


def trace_ids() -> Optional[TraceIds]:
    """The ids in force here."""
    return _trace.get()


@contextmanager
def context(**values: Any) -> Iterator[None]:
    """Adds fields to every record written inside, also by tasks that are started inside.
    An inner context overrides an outer one's key; a record's own fields override both."""
    token = _fields.set({**fields(), **values})
    try:
        yield
    finally:
        _fields.reset(token)


def _id(value: Union[str, bytes], size: int, what: str) -> bytes:
    raw = bytes.fromhex(value) if isinstance(value, str) else bytes(value)
    if len(raw) != size:
        raise ValueError(f"{what} has {size} bytes or {size * 2} hex digits: {value!r}")
    return raw


@contextmanager
def trace(trace_id: Union[str, bytes], span_id: Union[str, bytes, None] = None,
          flags: int = 0) -> Iterator[None]:
    """Gives every record written inside these W3C ids: hex digits, or 16 and 8 bytes."""
    ids = TraceIds(_id(trace_id, 16, "trace_id"),
                   None if span_id is None else _id(span_id, 8, "span_id"), flags & 0xFF)
    token = _trace.set(ids)
    try:
        yield
    finally:
        _trace.reset(token)
