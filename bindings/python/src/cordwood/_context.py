"""Context: fields and trace ids that later records carry, kept in `contextvars`.

Every asyncio task and every thread has its own context, as contextvars provide it. The library
holds none of it: the write calls pass the values with each record.
"""
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

_MERGED_FROM = 8


class TraceIds(NamedTuple):
    """W3C ids: 16 bytes, 8 bytes or None, flags."""
    trace_id: bytes
    span_id: Optional[bytes]
    flags: int


class Layer:
    """The values that one `with` sets. ended: only a transaction's; not empty once it has ended."""

    __slots__ = ("fields", "ids", "ended", "is_left")

    def __init__(self, fields: Dict[str, Any], ids: Optional[TraceIds] = None,
                 ended: Optional[List[bool]] = None) -> None:
        self.fields = fields
        self.ids = ids
        self.ended = ended
        self.is_left = False
        """Left somewhere; copies of that context, as tasks have them, may still have the layer."""

    def covers(self, later: "Layer") -> bool:
        """Whether `later` ends too: a generator began it inside and was never read to its end."""
        return (self.ended is None and later.ended is None
                and (self.ids is None) == (later.ids is None))


class _Pair(NamedTuple):
    fields: Dict[str, Any]
    ids: Optional[TraceIds]


class State(_Pair):
    """The values in force: fields (never changed) and ids, the layers they come from, and `ended`
    of the innermost transaction. The accelerator knows the pair, `ended` and `current`."""

    layers: Tuple[Layer, ...] = ()
    ended: "Union[Tuple[()], List[bool]]" = ()

    def current(self) -> "Optional[State]":
        """The state without the transactions that have ended, which then becomes the one in
        force."""
        return put(self.layers) if self.ended else self


# One variable for both, because every log call reads it. None: nothing is in force.
STATE: "ContextVar[Optional[State]]" = ContextVar("cordwood", default=None)
_NOTHING = State({}, None)


def state_with(before: Optional[State], layer: Layer) -> State:
    """The state with the layer on top."""
    before = before or _NOTHING
    made = State({**before.fields, **layer.fields}, layer.ids or before.ids)
    made.layers = (*before.layers, layer)
    made.ended = before.ended if layer.ended is None else layer.ended
    return made


def put(layers: Iterable[Layer]) -> Optional[State]:
    """Puts these layers in force, without those of ended transactions."""
    state = None
    for layer in layers:
        if not layer.ended:
            state = state_with(state, layer)
    STATE.set(state)
    return state


def current() -> Optional[State]:
    """The state in force; None: nothing is."""
    state = STATE.get()
    return state.current() if state is not None and state.ended else state


def _merged(layers: Iterable[Layer]) -> Iterator[Layer]:
    """Merges neighbouring layers that are already left. Generators that are never read to their end
    leave one layer each in the context of a long-running task."""
    kept: Optional[Layer] = None
    for layer in layers:
        if kept is not None and layer.is_left:
            kept = Layer({**kept.fields, **layer.fields}, layer.ids or kept.ids)
            kept.is_left = True
            continue
        if kept is not None:
            yield kept
            kept = None
        if layer.is_left:
            kept = layer
        else:
            yield layer
    if kept is not None:
        yield kept


def enter(layer: Layer) -> None:
    """Puts a layer in force, in this context and its copies."""
    before = current()
    if before is not None and len(before.layers) > _MERGED_FROM:
        before = put(_merged(before.layers))
    STATE.set(state_with(before, layer))


def leave(layer: Layer) -> None:
    """Ends the layer in this context; layers that began later stay. Contexts may end in another
    order than they began. They may end in a copy of the context they began in, when asyncio ends a
    generator in a task of its own. Leaving a context that never had the layer changes nothing."""
    layer.is_left = layer.ended is None
    state = STATE.get()
    layers = () if state is None else state.layers
    for index in reversed(range(len(layers))):
        if layers[index] is layer:
            put((*layers[:index], *(one for one in layers[index + 1:] if not layer.covers(one))))
            break


@contextmanager
def context(**values: Any) -> Iterator[None]:
    """Adds fields to every record written inside, also by tasks that are started inside.
    An inner context overrides an outer one's key; a record's own fields override both."""
    layer = Layer(values)
    enter(layer)
    try:
        yield
    finally:
        leave(layer)


def _id(value: Union[str, bytes], size: int, what: str) -> bytes:
    raw = bytes.fromhex(value) if isinstance(value, str) else bytes(value)
    if len(raw) != size:
        raise ValueError(f"{what} has {size} bytes or {size * 2} hex digits: {value!r}")
    return raw


@contextmanager
def trace(trace_id: Union[str, bytes], span_id: Union[str, bytes, None] = None,
          flags: int = 0) -> Iterator[None]:
    """Puts these W3C ids into every record written inside: hex digits, or 16 and 8 bytes."""
    ids = TraceIds(_id(trace_id, 16, "trace_id"),
                   None if span_id is None else _id(span_id, 8, "span_id"), flags & 0xFF)
    layer = Layer({}, ids)
    enter(layer)
    try:
        yield
    finally:
        leave(layer)
