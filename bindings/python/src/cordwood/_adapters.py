"""Adapters for two logging packages of PyPI, loguru and structlog: values that a program has bound
to a logger become typed fields of the record, not a part of its text.

    loguru.logger.add(cordwood.LoguruSink(engine))
    structlog.configure(processors=[..., cordwood.StructlogProcessor(engine)])

Neither package is needed to import this one. Any thread, without a lock of our own. A failure
inside is shown as cordwood.Handler shows it, and never reaches the host's code.
"""
import importlib
import logging
import sys
from types import FrameType
from typing import Any, Dict, Mapping, MutableMapping, Optional, Tuple

from . import _levels, _record, _text
from ._engine import Engine
from ._handler import Handler, sound
from ._text import safe_str

_NO_MARKS: Mapping[str, Any] = {}
# Callers of code that no host wrote: a record from there has no place.
_RUNNERS = ("asyncio", "concurrent", "threading")


def _source(name: str, path: str, function: str, line: int, created: Optional[float],
            exc_info: Any) -> logging.LogRecord:
    """What Logger.put_stdlib needs and Handler.handleError shows. `created`: None: now."""
    return logging.makeLogRecord({"name": name, "pathname": path, "funcName": function,
                                  "lineno": line, "created": created, "exc_info": exc_info})


class _Adapter:
    """Writes with the loggers of a handler. The host keeps the engine."""

    def __init__(self, engine: Engine) -> None:
        self._handler = Handler(engine)

    def _write(self, source: logging.LogRecord, level: int, message: Any,
               fields: Mapping[Any, Any]) -> None:
        """Writes a record if its level is enabled."""
        try:
            logger, marks = self._handler._loggers.get(source.name), _NO_MARKS
            if logger is None:
                logger, marks = self._handler._logger(source.name)
            if not logger.enabled(level):
                return
            source.msg = text = message if type(message) is str else safe_str(message)
            named: Mapping[str, Any] = {
                key if type(key) is str else safe_str(key): value for key, value in fields.items()}
            marked = _text.time_mark(source.created)
            if marks or marked:
                named = _record.merged({**marks, **marked}, named)
            try:
                logger.put_stdlib(source, level, text, named)
            except Exception:
                logger.put_stdlib(sound(source), level, text, named)
        except Exception:
            self._handler.handleError(source)


class LoguruSink(_Adapter):
    """`loguru.logger.add(cordwood.LoguruSink(engine))`: values that are bound, contextualized or
    passed by keyword are fields. loguru's own format is not used: place, level, time and exception
    are the record's, and SUCCESS is NOTICE. The module is the logger's name."""

    def __call__(self, message: Any) -> None:
        """A message of loguru: a text with its record."""
        record = message.record
        error = record["exception"]
        self._write(
            _source(record["name"] or "", record["file"].path, record["function"], record["line"],
                    record["time"].timestamp(), tuple(error) if error else None),
            _levels.from_stdlib(record["level"].no), record["message"], record["extra"])


class StructlogProcessor(_Adapter):
    """The last of structlog's processors: `event` is the message, everything else in the event is
    a field. Place and exception are the record's; `logger` (of add_logger_name), or else `name`, is
    its logger. With passes=True it hands the event on to the processors that follow. Otherwise it
    ends the event's way, as structlog.DropEvent does."""

    def __init__(self, engine: Engine, name: str = "", *, passes: bool = False) -> None:
        super().__init__(engine)
        self._name = name
        # No stubs are needed to check this package.
        self._end: Any = None if passes else importlib.import_module("structlog").DropEvent

    def __call__(self, logger: Any, method: str,
                 event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """A processor's call; raises structlog.DropEvent unless it passes events on."""
        fields: Dict[str, Any] = dict(event)
        path, function, line = _place(fields)
        name = fields.pop("logger", None) or getattr(logger, "name", None) or self._name
        error = fields.pop("exc_info", None)
        if method == "exception" and error is None:
            error = True
        level = _level(method, fields)
        message = fields.pop("event", "")
        self._write(_source(name if type(name) is str else safe_str(name), path, function, line,
                            None, _exc_info(error)), level, message, fields)
        if self._end is not None:
            raise self._end
        return event


def _level(method: str, fields: Dict[str, Any]) -> int:
    """The level that add_log_level wrote, otherwise the method's. `msg` and `log` are INFO. A
    `level` that does not name one stays a field."""
    for name in (fields.get("level"), "error" if method == "exception" else method):
        if type(name) is str:
            level, problem = _levels.of_call(name)
            if not problem:
                if name == fields.get("level"):
                    del fields["level"]
                return level
    return _levels.INFO


def _exc_info(given: Any) -> Any:
    """True means the exception being handled."""
    return sys.exc_info() if given is True else given


def _place(fields: Dict[str, Any]) -> Tuple[str, str, int]:
    """CallsiteParameterAdder's place, otherwise the first frame that is not structlog's."""
    if {"pathname", "func_name", "lineno"} <= fields.keys():
        return fields.pop("pathname"), fields.pop("func_name"), fields.pop("lineno")
    frame: Optional[FrameType] = sys._getframe(2)
    while frame is not None and _module(frame).partition(".")[0] == "structlog":
        frame = frame.f_back
    if frame is None or _module(frame).partition(".")[0] in _RUNNERS:
        return "", "", 0
    code = frame.f_code
    return code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    return name if isinstance(name, str) else ""
