"""Turns Python values into one cw_record: typed fields, text, exception, place.

Pure but for the caller's objects' own __str__, whose failures are kept as text, never raised: a log
call does not harm its host. What is built borrows bytes objects, which the C struct keeps alive.
"""
import ctypes
import numbers
import traceback
from types import CodeType, TracebackType
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, Union

from . import _abi
from ._context import TraceIds

ExcInfo = Union[Tuple[Type[BaseException], BaseException, Optional[TracebackType]],
                Tuple[None, None, None]]
Place = Tuple[bytes, bytes, int]

_SIZE = ctypes.sizeof(_abi.Record)
_INT_MIN, _INT_MAX, _UINT_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_PLACES_MAX = 4096
_places: Dict[CodeType, Tuple[bytes, bytes]] = {}


def encode(content: str) -> bytes:
    """UTF-8; what came from undecodable bytes (surrogateescape) becomes those bytes again."""
    try:
        return content.encode()
    except UnicodeEncodeError:
        try:
            return content.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return content.encode("utf-8", "surrogatepass")


def safe_str(value: Any) -> str:
    """str(value), or what stands for a value that cannot be shown."""
    try:
        return str(value)
    except Exception:  # whatever a host's __str__ raises stays here
        return f"<unprintable {type(value).__name__} object>"


def _field(key: str, value: Any) -> _abi.Field:
    field = _abi.Field()
    field.key = _abi.text(encode(key))
    if isinstance(value, bool):
        field.type, field.value.b = _abi.TYPE_BOOL, value
    elif isinstance(value, numbers.Integral) and _INT_MIN <= int(value) <= _INT_MAX:
        field.type, field.value.i = _abi.TYPE_INT, int(value)
    elif isinstance(value, numbers.Integral) and 0 <= int(value) <= _UINT_MAX:
        field.type, field.value.u = _abi.TYPE_UINT, int(value)
    elif isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        field.type, field.value.d = _abi.TYPE_DOUBLE, float(value)
    else:
        raw = bytes(value) if isinstance(value, (bytes, bytearray)) else encode(safe_str(value))
        field.type, field.value.s = _abi.TYPE_STRING, _abi.text(raw)
    return field


def _put_fields(record: _abi.Record, own: Mapping[str, Any], context: Mapping[str, Any]) -> None:
    built: List[_abi.Field] = [_field(key, value) for key, value in own.items()]
    built += [_field(key, value) for key, value in context.items() if key not in own]
    if built:
        record.fields = (_abi.Field * len(built))(*built)
        record.field_count = len(built)


def exc_info(given: Any, current: ExcInfo) -> Optional[ExcInfo]:
    """What the stdlib takes as exc_info (True, an exception, a tuple), as a tuple; None: none."""
    if not given:
        return None
    if isinstance(given, BaseException):
        return type(given), given, given.__traceback__
    if isinstance(given, tuple) and len(given) == 3:
        return given
    return current


def _put_exception(record: _abi.Record, info: ExcInfo) -> None:
    kind, error, trail = info
    if kind is None:
        return
    module = "" if kind.__module__ == "builtins" else kind.__module__ + "."
    record.exception_type = _abi.text(encode(module + kind.__qualname__))
    record.exception_message = _abi.text(encode(safe_str(error)))
    try:
        shown = "".join(traceback.format_exception(kind, error, trail))
    except Exception:  # a chained exception's own __str__
        shown = "".join(traceback.format_tb(trail))
    record.exception_stacktrace = _abi.text(encode(shown))


def place(code: CodeType, line: Optional[int]) -> Place:
    """File, function and line of a frame's code, encoded once for each piece of code."""
    known = _places.get(code)
    if known is None:
        if len(_places) >= _PLACES_MAX:  # a host that compiles code for ever
            _places.clear()
        name = getattr(code, "co_qualname", code.co_name)  # 3.11 has the class, too
        known = _places[code] = (encode(code.co_filename), encode(name))
    return known[0], known[1], line or 0


def build(level: int, message: bytes, where: Place, own: Mapping[str, Any],
          context: Mapping[str, Any], ids: Optional[TraceIds], error: Optional[ExcInfo],
          time_ns: int = 0) -> _abi.Record:
    """One record for cw_write_record."""
    record = _abi.Record(_SIZE, level, _abi.text(message))
    if own or context:
        _put_fields(record, own, context)
    record.file, record.function, record.line = _abi.text(where[0]), _abi.text(where[1]), where[2]
    if ids is not None:
        record.trace_id, record.span_id, record.trace_flags = ids.trace_id, ids.span_id, ids.flags
    record.time_ns = time_ns
    if error is not None:
        _put_exception(record, error)
    return record
