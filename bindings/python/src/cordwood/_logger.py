"""A logger: a dotted name in an engine, with the calls of the standard library's.

Any thread, any asyncio task, also in a forked child. A call answers whether the record was kept
when it returns: True survives the death of the process. Below the threshold and after close it
formats nothing and answers False, as it does where the store is full. It never raises but for a
level that is none.
"""
import ctypes
import sys
from typing import Any, Mapping, Tuple, Union

from . import _abi, _context, _levels, _record

Message = Union[str, bytes, bytearray, memoryview]
_EMPTY: Mapping[str, Any] = {}
_NO_PLACE: _record.Place = (b"", b"", 0)


def _formatted(message: Any, args: Tuple[Any, ...]) -> Tuple[bytes, str]:
    """The message's bytes, and why its arguments did not fit where they did not."""
    if isinstance(message, (bytes, bytearray, memoryview)) and not args:
        return message if isinstance(message, bytes) else bytes(message), ""
    text = message if isinstance(message, str) else _record.safe_str(message)
    if not args:
        return _record.encode(text), ""
    mapping = len(args) == 1 and isinstance(args[0], Mapping) and args[0]
    try:
        return _record.encode(text % (args[0] if mapping else args)), ""
    except Exception as error:  # wrong placeholders, or a host's __str__: keep what is known
        return _record.encode(f"{text} {_record.safe_str(args)}"), _record.safe_str(error)


class Logger:
    """Made by Engine.logger. `debug` … `critical` take the standard library's arguments
    (%-arguments, exc_info, stacklevel); further keywords are typed fields of the record."""

    __slots__ = ("name", "_handle", "_word", "_calls")

    def __init__(self, name: str, handle: int, calls: Any) -> None:
        self.name = name
        self._handle = handle
        # cw_enabled: the first word is 256 - threshold, 0 once closed; it never goes away.
        self._word = ctypes.c_uint32.from_address(handle)
        self._calls = calls

    def enabled(self, level: _levels.Level) -> bool:
        """True where a record of that level would be written."""
        return self._word.value + _levels.number(level) > 255

    def write(self, level: _levels.Level, data: Union[bytes, bytearray, memoryview]) -> bool:
        """A record of bytes as they are: no place in the source, the shortest way."""
        number, raw = _levels.number(level), data if isinstance(data, bytes) else bytes(data)
        context, ids = _context.fields(), _context.trace_ids()
        if not context and ids is None:
            return bool(self._calls.cw_write(self._handle, number, raw, len(raw)) == _abi.OK)
        return self.put(_record.build(number, raw, _NO_PLACE, _EMPTY, context, ids, None))

    def put(self, record: _abi.Record) -> bool:
        """Writes what _record.build made."""
        return bool(self._calls.cw_write_record(self._handle, record) == _abi.OK)

    def trace(self, message: Message, /, *args: Any, exc_info: Any = None, stacklevel: int = 1,
              **fields: Any) -> bool:
        """A record of level TRACE."""
        return (self._word.value + _levels.TRACE > 255
                and self._emit(_levels.TRACE, message, args, fields, exc_info, stacklevel))

    def debug(self, message: Message, /, *args: Any, exc_info: Any = None, stacklevel: int = 1,
              **fields: Any) -> bool:
        """A record of level DEBUG."""
        return (self._word.value + _levels.DEBUG > 255
                and self._emit(_levels.DEBUG, message, args, fields, exc_info, stacklevel))

    def info(self, message: Message, /, *args: Any, exc_info: Any = None, stacklevel: int = 1,
             **fields: Any) -> bool:
        """A record of level INFO."""
        return (self._word.value + _levels.INFO > 255
                and self._emit(_levels.INFO, message, args, fields, exc_info, stacklevel))

    def notice(self, message: Message, /, *args: Any, exc_info: Any = None, stacklevel: int = 1,
               **fields: Any) -> bool:
        """A record of level NOTICE."""
        return (self._word.value + _levels.NOTICE > 255
                and self._emit(_levels.NOTICE, message, args, fields, exc_info, stacklevel))

    def warning(self, message: Message, /, *args: Any, exc_info: Any = None, stacklevel: int = 1,
                **fields: Any) -> bool:
        """A record of level WARN."""
        return (self._word.value + _levels.WARN > 255
                and self._emit(_levels.WARN, message, args, fields, exc_info, stacklevel))

    def error(self, message: Message, /, *args: Any, exc_info: Any = None, stacklevel: int = 1,
              **fields: Any) -> bool:
        """A record of level ERROR."""
        return (self._word.value + _levels.ERROR > 255
                and self._emit(_levels.ERROR, message, args, fields, exc_info, stacklevel))

    def exception(self, message: Message, /, *args: Any, exc_info: Any = True,
                  stacklevel: int = 1, **fields: Any) -> bool:
        """A record of level ERROR with the exception that is being handled."""
        return (self._word.value + _levels.ERROR > 255
                and self._emit(_levels.ERROR, message, args, fields, exc_info, stacklevel))

    def critical(self, message: Message, /, *args: Any, exc_info: Any = None,
                 stacklevel: int = 1, **fields: Any) -> bool:
        """A record of level FATAL."""
        return (self._word.value + _levels.FATAL > 255
                and self._emit(_levels.FATAL, message, args, fields, exc_info, stacklevel))

    warn = warning
    fatal = critical

    def log(self, level: _levels.Level, message: Message, /, *args: Any, exc_info: Any = None,
            stacklevel: int = 1, **fields: Any) -> bool:
        """A record of any level: a name, or a number from 1 to 24 (not the stdlib's 10 to 50)."""
        number = _levels.number(level)
        return (self._word.value + number > 255
                and self._emit(number, message, args, fields, exc_info, stacklevel))

    def _emit(self, level: int, message: Any, args: Tuple[Any, ...], fields: Mapping[str, Any],
              exc_info: Any, stacklevel: int) -> bool:
        text, problem = _formatted(message, args)
        if problem:
            fields = {**fields, "cordwood.format_error": problem}
        error = _record.exc_info(exc_info, sys.exc_info()) if exc_info else None
        return self.put(_record.build(level, text, _caller(stacklevel), fields,
                                      _context.fields(), _context.trace_ids(), error))

    def __repr__(self) -> str:
        return f"<cordwood.Logger {self.name!r}>"


def _caller(stacklevel: int) -> _record.Place:
    """The place `stacklevel` frames above the level's method: 1 is the line that calls it."""
    try:
        frame = sys._getframe(2 + max(stacklevel, 1))  # this, _emit, the level's method
    except ValueError:  # fewer frames than asked for
        return _NO_PLACE
    return _record.place(frame.f_code, frame.f_lineno)
