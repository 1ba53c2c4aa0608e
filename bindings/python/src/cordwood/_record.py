"""One cw_record that is filled again and again, so that a log call makes no struct of its own.

A `Draft` belongs to the call that took it from its place's list, until it is put back. A nested
call (a signal handler, a __str__ that logs) or another thread takes or makes another one. Members
are set through cells, ctypes objects that share its memory: half the price of a struct's
attributes. The record borrows bytes objects, which the cells keep alive; nothing is copied.
"""
from ctypes import (Structure, byref, c_bool, c_char_p, c_double, c_int64, c_size_t, c_uint32,
                    c_uint64, sizeof)
from itertools import islice
from typing import Any, Dict, List, Mapping, Optional

from . import _abi
from ._context import TraceIds
from ._place import Place
from ._text import (FIELDS_CUT, FIELDS_MAX, INT_MAX, INT_MIN, ExceptionTexts, JSONBytes, encode,
                    plain)
from ._text import key as key_bytes

KEPT_BYTES_MAX = 65_536  # a draft that held more is not kept: it would hold the memory for long
_SIZE = sizeof(_abi.Record)
_NO_TEXT = _abi.Text()
_LENGTH = _abi.Text.length.offset
Slot = List[Any]


def _slot(field: Structure) -> Slot:
    """A field's key; the type for which the cell behind it is set up; that cell; the type's cell;
    the cells of all types: int, uint, double, bool, and the two words of a string; the field."""
    at = _abi.Field.value.offset
    return ["", None, None, c_uint32.from_buffer(field, _abi.Field.type.offset),
            c_int64.from_buffer(field, at), c_uint64.from_buffer(field, at),
            c_double.from_buffer(field, at), c_bool.from_buffer(field, at),
            c_char_p.from_buffer(field, at), c_size_t.from_buffer(field, at + _LENGTH),
            field]


class Draft:
    """A record of one place."""

    __slots__ = ("level", "data", "length", "slots", "pointer", "_record", "_array", "_room",
                 "_level", "_time_ns", "_trace_id", "_span_id", "_flags")

    def __init__(self, place: Place) -> None:
        # `data` and `length` and the cells do not keep shared memory alive: `_record`, `_array` do.
        record = self._record = _abi.Record(_SIZE)
        record.file, record.function = _abi.text(place.file), _abi.text(place.function)
        record.line = place.line
        kind = _abi.Record
        self.pointer = byref(record)
        self.level = 0
        self.data = c_char_p.from_buffer(record, kind.message.offset)
        self.length = c_size_t.from_buffer(record, kind.message.offset + _LENGTH)
        self.slots: List[Slot] = []
        self._array: Any = None
        self._room: List[Slot] = []
        self._level = c_uint32.from_buffer(record, kind.level.offset)
        self._time_ns = c_uint64.from_buffer(record, kind.time_ns.offset)
        self._trace_id = c_char_p.from_buffer(record, kind.trace_id.offset)
        self._span_id = c_char_p.from_buffer(record, kind.span_id.offset)
        self._flags = c_uint32.from_buffer(record, kind.trace_flags.offset)

    def put_level(self, level: int) -> None:
        """Sets the level."""
        self.level = self._level.value = level

    def put_time(self, time_ns: int) -> None:
        """Sets the record's own time; 0: now."""
        self._time_ns.value = time_ns

    def put_count(self, count: int) -> List[Slot]:
        """Sets the number of fields; returns their slots."""
        if count > len(self._room):
            self._array = (_abi.Field * count)()
            self._room = [_slot(field) for field in self._array]
            self._record.fields = self._array
        self._record.field_count = count
        self.slots = self._room[:count]
        return self.slots

    def put_trace(self, ids: Optional[TraceIds]) -> None:
        """Sets the ids, or none."""
        self._trace_id.value, self._span_id.value, self._flags.value = ids or (None, None, 0)

    def put_exception(self, texts: Optional[ExceptionTexts]) -> None:
        """Sets the exception, or none."""
        record = self._record
        record.exception_type = _abi.text(texts[0]) if texts else _NO_TEXT
        record.exception_message = _abi.text(texts[1]) if texts else _NO_TEXT
        record.exception_stacktrace = _abi.text(texts[2]) if texts else _NO_TEXT


def put_field(slot: Slot, key: str, value: Any) -> int:
    """Sets a field; returns its bytes if it is a string."""
    if slot[0] is not key:
        slot[0], slot[10].key = key, _abi.text(key_bytes(key))
    kind = type(value)
    if kind is str:
        value = encode(value)
    else:
        value = plain(value)
        kind = type(value)
    if kind is float:
        slot[1], slot[2], slot[3].value = kind, slot[6], _abi.TYPE_DOUBLE
    elif kind is bool:
        slot[1], slot[2], slot[3].value = kind, slot[7], _abi.TYPE_BOOL
    elif kind is int and value <= INT_MAX:
        slot[1], slot[2], slot[3].value = kind, slot[4], _abi.TYPE_INT
    elif kind is int:
        slot[1], slot[2], slot[3].value = None, slot[5], _abi.TYPE_UINT
    else:
        slot[1], slot[2] = None, slot[8]
        slot[3].value = _abi.TYPE_JSON if kind is JSONBytes else _abi.TYPE_STRING
        slot[9].value = len(value)
        slot[2].value = value
        return len(value)
    slot[2].value = value
    return 0


def cut(fields: Mapping[str, Any], room: int = FIELDS_MAX) -> Dict[str, Any]:
    """The first fields, as many as there is room for, and the number of the others."""
    kept = dict(islice(fields.items(), room - 1))
    kept[FIELDS_CUT] = len(fields) - len(kept)
    return kept


def merged(own: Mapping[str, Any], context: Mapping[str, Any]) -> Dict[str, Any]:
    """A record's fields: its own, then those that only the context has."""
    return {**own, **{key: value for key, value in context.items() if key not in own}}
