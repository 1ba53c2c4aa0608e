"""Context: fields and trace ids that later records carry, kept in `contextvars`.

Every asyncio task and every thread has its own, as contextvars give it. Nothing is set in the
library: the write calls take what stands here and pass it with each record.
"""
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, Dict, Iterator, NamedTuple, Optional, Union


class TraceIds(NamedTuple):
    """W3C ids: 16 bytes, 8 bytes or None, flags."""
    trace_id: bytes
    span_id: Optional[bytes]
    flags: int


class State(NamedTuple):
    """What is in force: fields, not to be changed, and ids."""
    fields: Dict[str, Any]
    ids: Optional[TraceIds]


# One variable for both, for every log call reads it. None: nothing is in force.
STATE: "ContextVar[Optional[State]]" = ContextVar("cordwood", default=None)
_NOTHING = State({}, None)


def leave(token: "Token[Optional[State]]", own: State, kept: State) -> None:
    """Ends what `own` began; `kept` is what is in force then. Contexts may end in another order
    than they began: then the other kind's part stays. Or in a copy of the context they began in,
    as a generator does that asyncio ends in a task of its own."""
    if STATE.get() is own:
        try:
            STATE.reset(token)
            return
        except ValueError:
            pass
    STATE.set(kept)


@contextmanager
def context(**values: Any) -> Iterator[None]:
    """Adds fields to every record written inside, also by tasks that are started inside.
    An inner context overrides an outer one's key; a record's own fields override both."""
    before = STATE.get() or _NOTHING
    own = State({**before.fields, **values}, before.ids)
    token = STATE.set(own)
    try:
        yield
    finally:
        leave(token, own, State(before.fields, (STATE.get() or _NOTHING).ids))


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
    before = STATE.get() or _NOTHING
    own = State(before.fields, ids)
    token = STATE.set(own)
    try:
        yield
    finally:
        leave(token, own, State((STATE.get() or _NOTHING).fields, before.ids))
