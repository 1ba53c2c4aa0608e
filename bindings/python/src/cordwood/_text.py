"""Text that leaves Python: a log call can turn any object into text, without ever raising. Pure
except for the objects' own methods, whose failures are kept as text: a log call does not harm its
host. The accelerator calls these for cases it does not handle, so both paths write the same
bytes."""
import json
import math
import numbers
import sys
import traceback
from typing import Any, Dict, Mapping, Optional, Tuple, Union

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
UINT_MAX = (1 << 64) - 1
FORMAT_ERROR = "cordwood.format_error"
# The number of fields missing from a record that had more than the library takes.
FIELDS_CUT = "cordwood.fields_cut"
FIELDS_MAX = 4096
# The time of an event, as it was given, where no record can have it.
EVENT_TIME = "event.time"
_KEY_BYTES_MAX = 65_535
_KEY_CUT = "…".encode()

# The library's limits for JSON; it would keep anything beyond them as plain text.
JSON_BYTES_MAX = 262_144
JSON_DEPTH_MAX = 20

ExceptionTexts = Tuple[bytes, bytes, bytes]


def time_ns(seconds: Optional[float]) -> int:
    """A time in seconds since 1970 as that of a record. 0: none, or no record can have it (it is
    not after 1970-01-01 or not before 2554-07-21)."""
    if seconds is None:
        return 0
    return int(seconds * 1e9) if 1e-9 <= seconds < 1.84467440737e10 else 0


def time_mark(created: Any) -> Mapping[str, Any]:
    """A field with `created` of a `logging` record if no record can have that time."""
    if isinstance(created, (int, float)):
        return {} if time_ns(created) else {EVENT_TIME: created}
    return {} if created is None else {EVENT_TIME: safe_str(created)}


class JSONBytes(bytes):
    """The text of a field that is JSON."""


def encode(content: str) -> bytes:
    """UTF-8; surrogates from undecodable bytes (surrogateescape) become those bytes again."""
    try:
        return str.encode(content)
    except UnicodeEncodeError:
        try:
            return str.encode(content, "utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return str.encode(content, "utf-8", "surrogatepass")


def key(name: str) -> bytes:
    """A field's key; a key that is too long for the library is cut, and ends with "…"."""
    raw = encode(name)
    if len(raw) <= _KEY_BYTES_MAX:
        return raw
    end = _KEY_BYTES_MAX - len(_KEY_CUT)
    while end > 0 and raw[end] & 0xC0 == 0x80:  # in the middle of a character
        end -= 1
    return raw[:end] + _KEY_CUT


def safe_str(value: Any) -> str:
    """str(value), or a substitute for a value that cannot be shown."""
    try:
        return str(value)
    except Exception:  # whatever a host's __str__ raises stays here
        if type(value) is int:  # Python writes no more than 4,300 decimal digits
            return hex(value)
        return f"<unprintable {type(value).__name__} object>"


def _is(value: Any, *kinds: type) -> bool:
    """isinstance by the real class of the value: objects may claim another __class__."""
    return issubclass(type(value), kinds)


def _has_mapping(args: Tuple[Any, ...]) -> bool:
    try:
        return len(args) == 1 and isinstance(args[0], Mapping) and bool(args[0])
    except Exception:
        return False


def formatted(message: Any, args: Tuple[Any, ...]) -> Tuple[bytes, str]:
    """The message's bytes, and why its arguments did not fit if they did not."""
    if not args:
        try:
            if _is(message, bytes, bytearray, memoryview):
                return bytes(message), ""
        except Exception:  # a memoryview that was released
            pass
        return encode(message if _is(message, str) else safe_str(message)), ""
    text: str = message if _is(message, str) else safe_str(message)
    try:
        made = text % (args[0] if _has_mapping(args) else args)
    except Exception as error:  # wrong placeholders, or a host's __str__: keep the known parts
        return unformatted(text, args, error)
    return encode(made if _is(made, str) else safe_str(made)), ""


def _shown(args: Any) -> str:
    """str of a call's arguments, even if one of them cannot be shown."""
    try:
        return str(args)
    except Exception:
        pass
    if type(args) is not tuple:
        return safe_str(args)
    shown = [_safe_repr(value) for value in args]
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<unprintable {type(value).__name__} object>"


def with_arguments(text: str, args: Any) -> str:
    """A message whose arguments do not fit it, followed by the arguments."""
    return f"{text} {_shown(args)}"


def unformatted(text: str, args: Any, error: BaseException) -> Tuple[bytes, str]:
    """The text to keep of a message whose arguments raised that."""
    return encode(with_arguments(text, args)), safe_str(error)


def recovered(message: Any, args: Tuple[Any, ...], text: Any,
              error: BaseException) -> Tuple[bytes, str]:
    """The message's bytes if the fast path (text = message % args, encoded) raised that."""
    if type(text) is str:
        return encode(text), ""
    if type(message) is str and not _has_mapping(args):
        return unformatted(message, args, error)
    return formatted(message, args)


def _part(value: Any, depth: int) -> Any:
    """A value as json.dumps takes it, with the types that fields have."""
    if value is None or type(value) is bool:
        return value
    if type(value) is int:
        text = "" if INT_MIN <= value <= UINT_MAX else safe_str(value)
        return text if "x" in text else value
    if _is(value, str):
        return encode(value).decode("utf-8", "replace")
    if _is(value, dict, list, tuple):
        if depth == JSON_DEPTH_MAX:
            raise ValueError("nested too deeply")
        if not _is(value, dict):
            return [_part(element, depth + 1) for element in list(value)]
        members: Dict[str, Any] = {}
        for name, member in list(dict.items(value)):
            text = encode(name if _is(name, str) else safe_str(name)).decode("utf-8", "replace")
            members.setdefault(text, _part(member, depth + 1))
        return members
    made = plain(value)
    if type(made) is bytes:
        return made.decode("utf-8", "replace")
    if type(made) is float and not math.isfinite(made):
        return str(made).replace("inf", "Infinity").replace("nan", "NaN")
    return made


def structured(value: Any) -> bytes:
    """None, a list, a tuple or a dict as JSON; as text where it is too large or nested too deeply,
    contains itself, or changes meanwhile."""
    try:
        text = json.dumps(_part(value, 0), ensure_ascii=False, separators=(",", ":"))
        content = JSONBytes(text.encode())
        if len(content) <= JSON_BYTES_MAX:
            return content
    except Exception:  # whatever a host's own types raise
        pass
    return encode(safe_str(value))


def plain(value: Any) -> Union[bool, int, float, bytes]:
    """The value that a field keeps: exactly one of these types, an int within 64 bits; or
    JSONBytes."""
    try:
        if type(value) is bool:
            return value
        if value is None or _is(value, dict, list, tuple):
            return structured(value)
        if _is(value, bytes, bytearray):
            return bytes(value)
        if isinstance(value, numbers.Integral):
            number = int(value)
            if INT_MIN <= number <= UINT_MAX:
                return number
        elif isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
            return float(value)
    except Exception:  # a host's type that poses as a number
        pass
    return encode(safe_str(value))


def exception(given: Any) -> Optional[ExceptionTexts]:
    """Type, message and stack trace of anything the standard library takes as exc_info (True, an
    exception, a tuple); None: no exception."""
    try:
        if not given:
            return None
        info: Any = given
        if isinstance(given, BaseException):
            info = type(given), given, given.__traceback__
        elif not (isinstance(given, tuple) and len(given) == 3):
            info = sys.exc_info()
        kind, error, trail = info
        if kind is None:
            return None
        module = "" if kind.__module__ == "builtins" else kind.__module__ + "."
        name = encode(module + kind.__qualname__)
    except Exception:  # not an exception: shown as an ordinary value
        return encode(type(given).__name__), encode(safe_str(given)), b""
    try:
        shown = "".join(traceback.format_exception(kind, error, trail))
    except Exception:  # a chained exception's own __str__, or an object that is no traceback
        try:
            shown = "".join(traceback.format_tb(trail))
        except Exception:
            shown = ""
    return name, encode(safe_str(error)), encode(shown)
