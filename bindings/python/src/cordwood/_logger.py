"""A logger: a dotted name in an engine, with the calls of the standard library's loggers.

Any thread, any asyncio task, also in a forked child. A call returns whether the record was kept:
True survives the death of the process. Below the threshold and after close it formats nothing and
returns False, as it does if the store is full. It never raises: the record says what was wrong with
its call (arguments, level, more fields than fit). This is the path through ctypes; _speed.c is the
same in C (see _accelerator).

A call costs what its bytecode costs, so one function handles the usual record, `method` below:
format, find the place, call C. Everything else goes through `_put`.
"""
import ctypes
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Union

from . import _abi, _context, _levels, _place, _record, _text

Message = Union[str, bytes, bytearray, memoryview]

if TYPE_CHECKING:
    from typing import Protocol

    class Method(Protocol):
        """A level's method. exc_info and stacklevel are the standard library's; further keywords
        are typed fields of the record."""

        def __call__(self, message: Message, /, *args: Any, exc_info: Any = None,
                     stacklevel: int = 1, **fields: Any) -> bool: ...

_getframe = sys._getframe
_codes = _place.codes
_Draft, _put_field = _record.Draft, _record.put_field
_state = _context.STATE.get
_NO_FIELDS: Mapping[str, Any] = {}
_KEPT_BYTES_MAX = _record.KEPT_BYTES_MAX


def _marked(fields: Mapping[str, Any], key: str, problem: str) -> Dict[str, Any]:
    """The fields, led by the problem with their call: the first fields are never cut."""
    return {key: problem, **{name: fields[name] for name in fields if name != key}}


def _signature(self: "Logger", message: Message, /, *args: Any, exc_info: Any = None,
               stacklevel: int = 1, **fields: Any) -> bool:
    """The signature that help() and inspect show: reading keywords from `fields` is cheaper."""
    raise NotImplementedError


def _method(name: str, level: int, doc: str, depth: int = 1, current: Any = None) -> Any:
    """Makes the method of a level. depth: frames up to the host's; current: default of exc_info."""
    def method(self: "Logger", message: Any, /, *args: Any, **fields: Any) -> bool:
        if self._word.value + level < 256:
            return False
        text = None
        try:
            text = message % args if args else message
            if type(text) is not str:
                raise TypeError
            raw = text.encode()
        except Exception as error:  # no str, wrong placeholders, surrogates, a host's __str__
            raw, problem = _text.recovered(message, args, text, error)
            if problem:
                fields = _marked(fields, _text.FORMAT_ERROR, problem)
        exc_info = current
        try:
            if fields and ("exc_info" in fields or "stacklevel" in fields):
                exc_info = fields.pop("exc_info", current)
                frame = _place.above(fields.pop("stacklevel", 1), depth)
            else:
                frame = _getframe(depth)
            place = _codes[id(frame.f_code)][frame.f_lasti]
        except KeyError:
            place = _place.find(frame)
        except ValueError:  # not called by Python code, or by fewer frames than asked for
            place = _place.NOWHERE
        site = place.site
        state = _state()
        length = len(raw)
        if state is not None or exc_info is not None or length > 65_536:  # KEPT_BYTES_MAX
            return self._put(level, raw, place, fields, state, exc_info)
        if not fields and site is not None:
            write = self._write_site
            return not write(self._first, level, site, raw, length)
        try:
            draft = place.drafts.pop()
        except IndexError:
            draft = _Draft(place)
        draft.data.value = raw
        draft.length.value = length
        if draft.level != level:
            draft.put_level(level)
        slots = draft.slots
        if len(fields) != len(slots):
            if len(fields) > 4096:  # FIELDS_MAX
                fields = _record.cut(fields)
            slots = draft.put_count(len(fields))
        index = 0
        for key in fields:  # not zip and items, which cost a fifth of the whole call
            slot = slots[index]
            index += 1
            value = fields[key]
            kind = type(value)
            if slot[0] is key and slot[1] is kind and (
                    kind is not int or -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF):
                slot[2].value = value
            else:
                length += _put_field(slot, key, value)
        write = self._write_record
        status = write(self._first, draft.pointer)
        if length <= 65_536:
            place.drafts.append(draft)
        return not status

    method.__name__, method.__doc__ = name, doc
    method.__qualname__ = f"Logger.{name}"
    method.__wrapped__ = _signature  # type: ignore[attr-defined]
    return method


class Logger:
    """Engine.logger makes it. `debug` … `critical` take the standard library's arguments
    (%-arguments, exc_info, stacklevel); further keywords are typed fields of the record."""

    __slots__ = ("name", "_word", "_first", "_write_site", "_write_record", "_write_text")

    if TYPE_CHECKING:
        trace: Method
        debug: Method
        info: Method
        notice: Method
        warning: Method
        warn: Method
        error: Method
        exception: Method
        critical: Method
        fatal: Method
    else:
        trace = _method("trace", _levels.TRACE, "A record of level TRACE.")
        debug = _method("debug", _levels.DEBUG, "A record of level DEBUG.")
        info = _method("info", _levels.INFO, "A record of level INFO.")
        notice = _method("notice", _levels.NOTICE, "A record of level NOTICE.")
        warning = warn = _method("warning", _levels.WARN, "A record of level WARN.")
        error = _method("error", _levels.ERROR, "A record of level ERROR.")
        exception = _method("exception", _levels.ERROR, "A record of level ERROR with the "
                            "exception that is being handled.", current=True)
        critical = fatal = _method("critical", _levels.FATAL, "A record of level FATAL.")

    def __init__(self, name: str, handle: int, waits: bool) -> None:
        self.name = name
        # cw_enabled: the first word is 256 - threshold, 0 once closed; it lives as long as the
        # process.
        self._word = ctypes.c_uint32.from_address(handle)
        self._first = ctypes.byref(self._word)
        calls = _abi.waiting_calls if waits else _abi.quick_calls
        self._write_text, self._write_record, self._write_site = calls

    @property
    def _handle(self) -> int:
        """The cw_logger."""
        return ctypes.addressof(self._word)

    def enabled(self, level: _levels.Level) -> bool:
        """True if a record of that level would be written; ValueError: unknown level."""
        return self._word.value + _levels.number(level) > 255

    def log(self, level: _levels.Level, message: Message, /, *args: Any, **fields: Any) -> bool:
        """Writes a record of any level: a name, or a number from 1 to 24 (not the stdlib's 10 to
        50). With an unknown level the record becomes a warning, and a field says why."""
        number, problem = _levels.of_call(level)
        if problem:
            fields = _marked(fields, _levels.LEVEL_ERROR, problem)
        return _LEVELED[number](self, message, *args, **fields)

    def write(self, level: _levels.Level, data: Union[bytes, bytearray, memoryview]) -> bool:
        """Writes a record of bytes, unchanged: no place in the source, the fastest path. Unknown
        levels are handled as in `log`."""
        number, problem = _levels.of_call(level)
        raw = data if isinstance(data, bytes) else bytes(data)
        state = _state()
        if state is None and not problem:
            return bool(self._write_text(self._first, number, raw, len(raw)) == _abi.OK)
        fields = {_levels.LEVEL_ERROR: problem} if problem else _NO_FIELDS
        return self._put(number, raw, _place.NOWHERE, fields, state, None)

    def _put(self, level: int, raw: bytes, place: _place.Place, fields: Mapping[str, Any],
             state: Optional[_context.State], exc_info: Any,
             time_ns: Optional[int] = None) -> bool:
        """Writes a record with all optional parts."""
        error = _text.exception(exc_info) if exc_info is not None else None
        try:
            draft = place.drafts.pop()
        except IndexError:
            draft = _record.Draft(place)
        ids = None
        if state is not None and state.ended:
            state = state.current()
        if state is not None:
            ids = state.ids
            fields = _record.merged(fields, state.fields)
        length = len(raw)
        draft.data.value = raw
        draft.length.value = length
        if draft.level != level:
            draft.put_level(level)
        slots = draft.slots
        if len(fields) > _text.FIELDS_MAX:
            fields = _record.cut(fields)
        if len(fields) != len(slots):
            slots = draft.put_count(len(fields))
        for index, key in enumerate(fields):
            length += _put_field(slots[index], key, fields[key])
        if time_ns is not None:  # a place sets it always or never
            draft.put_time(time_ns)
        if ids is not None:
            draft.put_trace(ids)
        if error is not None:
            draft.put_exception(error)
        write = self._write_record
        status = write(self._first, draft.pointer)
        if length <= _KEPT_BYTES_MAX and error is None:
            if ids is not None:
                draft.put_trace(None)
            place.drafts.append(draft)
        return not status

    def put_stdlib(self, record: Any, level: int, message: str, extra: Mapping[str, Any]) -> bool:
        """Writes a `logging` record, for Handler, which has checked the level."""
        return self._put(
            level, _text.encode(message),
            _place.of_stdlib(record.pathname, record.funcName, record.lineno), extra, _state(),
            record.exc_info or None, _text.time_ns(record.created))

    def __copy__(self) -> "Logger":
        return self

    def __deepcopy__(self, memo: Any) -> "Logger":
        return self

    def __repr__(self) -> str:
        return f"<cordwood.Logger {self.name!r}>"


_LEVELED: Dict[int, Callable[..., bool]] = {
    number: _method("log", number, "", depth=2) for number in range(1, 25)}
