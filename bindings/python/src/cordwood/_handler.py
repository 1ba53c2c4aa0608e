"""A handler for the standard library's `logging`: turns its records into Cordwood's without loss.

`extra=` becomes typed fields, exc_info an exception, `created` the record's time. The caller's
place is kept, and the logger's name is the record's. Any thread, without the lock of other
handlers. A failure inside goes to logging.Handler.handleError, never to the host's code. Problems
of a record (arguments that do not fit, a formatter that raises, an unknown level, a bad name) go
there too, as with `logging`. The record is kept first, though, and its fields name the problem.
"""
import copy
import logging
from typing import Any, Dict, Mapping, Tuple

from . import _accelerator, _levels, _record, _text
from ._accelerator import Logger
from ._engine import Engine
from ._errors import ClosedError
from ._text import safe_str

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# A record with exactly these attributes has no extra fields.
_USUAL = list(vars(logging.LogRecord("", 0, "", 0, "", (), None)))
_LEVELS = {number: _levels.from_stdlib(number) for number in (10, 20, 25, 30, 40, 50)}
_NONE: Mapping[str, Any] = {}
# Writes a record exactly as `logging` makes it, in one call; None: not available.
_put_usual = _accelerator.stdlib(logging.LogRecord, _USUAL)
_GET_MESSAGE = logging.LogRecord.getMessage
# The record's own name, if the library rejects it for a logger; the root writes the record then.
_LOGGER_NAME = "logger.name"


def _level(record: logging.LogRecord, marks: Mapping[str, Any]) -> Tuple[int, Mapping[str, Any]]:
    """The level of a record whose levelno is not a number, and the marks that say so."""
    level, problem = _levels.of_call(record.levelno)
    return level, {**marks, _levels.LEVEL_ERROR: problem} if problem else marks


def sound(record: logging.LogRecord) -> logging.LogRecord:
    """A record with those attributes of another that have the types `logging` gives them."""
    sound = logging.makeLogRecord({"exc_info": record.exc_info})
    for name, kind in (("pathname", str), ("funcName", str), ("lineno", int), ("created", float)):
        value = getattr(record, name, None)
        if type(value) is kind:
            setattr(sound, name, value)
    if not 0 <= sound.lineno < 1 << 32:
        sound.lineno = 0
    return sound


class Handler(logging.Handler):
    """`logging.getLogger().addHandler(cordwood.Handler(engine))`. The host keeps the engine:
    closing the handler does not close it. If a formatter is set, it makes the message. A record
    has the time `created`; where none can (before 1970, after 2554, NaN), it has the time at
    which it is written, and a field `event.time` has `created`."""

    def __init__(self, engine: Engine, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._engine = engine
        self._loggers: Dict[str, Logger] = {}

    def handle(self, record: logging.LogRecord) -> Any:
        """Like logging.Handler.handle, without its lock: nothing here needs one."""
        passed: Any = self.filter(record) if self.filters else True
        if isinstance(passed, logging.LogRecord):  # 3.12: a filter may give another one
            record = passed
        if passed:
            self.emit(record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record if its level is enabled in the engine."""
        if (_put_usual is not None and self.formatter is None
                and logging.LogRecord.getMessage is _GET_MESSAGE
                and _put_usual(record, self._loggers, _LEVELS)):
            return
        marks, problem = _NONE, None
        try:
            try:
                logger = self._loggers.get(record.name)
            except TypeError:  # no str, and not hashable
                logger = None
            if logger is None:
                logger, marks = self._logger(record.name)
            try:
                level = _LEVELS.get(record.levelno) or _levels.from_stdlib(record.levelno)
            except Exception:
                level, marks = _level(record, marks)
            if not logger.enabled(level):
                return
            try:
                message = record.getMessage() if self.formatter is None else self.format(record)
            except Exception as error:
                problem, message = error, self._recovered(record)
                marks = {**marks, _text.FORMAT_ERROR: safe_str(error)}
            values, extra = vars(record), _NONE
            if list(values) != _USUAL:
                # A host may have put keys of any type there.
                extra = {key if type(key) is str else safe_str(key): value
                         for key, value in values.items() if key not in _STANDARD}
            if record.stack_info:
                marks = {**marks, "stack_info": record.stack_info}
            marked = _text.time_mark(record.created)
            if marked:
                marks = {**marks, **marked}
            if marks is not _NONE:  # first: if there are too many fields, the last ones are cut
                extra = _record.merged(marks, extra)
            try:
                logger.put_stdlib(record, level, message, extra)
            except Exception:
                logger.put_stdlib(sound(record), level, safe_str(message), extra)
            if problem is not None:
                raise problem
        except Exception:
            self.handleError(record)

    def _logger(self, name: Any) -> Tuple[Logger, Mapping[str, Any]]:
        """Finds the logger of a new name. If the library has none for it (too long, a NUL, one too
        many, no str): the root's logger, and a field with the name."""
        try:
            made = self._loggers[name] = self._engine.logger(name)
            return made, _NONE
        except ClosedError:
            raise
        except Exception:
            return self._engine.logger(""), {_LOGGER_NAME: safe_str(name)}

    def _recovered(self, record: logging.LogRecord) -> str:
        """The message to keep for a record that cannot be formatted."""
        try:
            message = record.getMessage()
        except Exception:
            message = _text.with_arguments(safe_str(record.msg), record.args)
            if self.formatter is not None:
                try:
                    whole = copy.copy(record)
                    whole.msg, whole.args = message, None
                    return self.format(whole)
                except Exception:
                    pass
        return message

    def flush(self) -> None:
        """Does nothing: a record is kept when emit returns."""
