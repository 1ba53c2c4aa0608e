"""A handler for the standard library's `logging`: its records become Cordwood's, losing nothing.

`extra=` becomes typed fields, exc_info an exception, `created` the record's time, and the caller's
place is kept. The logger's name is the record's. Any thread, without the lock other handlers take.
A failure inside goes to logging.Handler.handleError and never to the host's code.
"""
import logging
from typing import Any, Dict, Mapping

from . import _levels
from ._accelerator import Logger
from ._engine import Engine
from ._text import safe_str

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# A record that has these and no others has no extra fields.
_USUAL = list(vars(logging.LogRecord("", 0, "", 0, "", (), None)))
_LEVELS = {number: _levels.from_stdlib(number) for number in (10, 20, 25, 30, 40, 50)}
_NONE: Mapping[str, Any] = {}


class Handler(logging.Handler):
    """`logging.getLogger().addHandler(cordwood.Handler(engine))`. The engine stays the host's:
    closing the handler does not close it. With a formatter set the message is what it formats."""

    def __init__(self, engine: Engine, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._engine = engine
        self._loggers: Dict[str, Logger] = {}

    def handle(self, record: logging.LogRecord) -> Any:
        """As logging.Handler.handle, but for its lock: nothing here needs one."""
        passed: Any = self.filter(record) if self.filters else True
        if isinstance(passed, logging.LogRecord):  # 3.12: a filter may give another one
            record = passed
        if passed:
            self.emit(record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record where its level is enabled in the engine."""
        try:
            name = record.name
            logger = self._loggers.get(name)
            if logger is None:
                logger = self._loggers[name] = self._engine.logger(name)
            level = _LEVELS.get(record.levelno) or _levels.from_stdlib(record.levelno)
            if not logger.enabled(level):
                return
            message = record.getMessage() if self.formatter is None else self.format(record)
            values, extra = vars(record), _NONE
            if list(values) != _USUAL:
                # A host may have put keys of any type there.
                extra = {key if type(key) is str else safe_str(key): value
                         for key, value in values.items() if key not in _STANDARD}
            if record.stack_info:
                extra = {**extra, "stack_info": record.stack_info}
            logger.put_stdlib(record, level, message, extra)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Nothing: a record is kept when emit returns."""
