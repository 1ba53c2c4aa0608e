"""A handler for the standard library's `logging`: its records become Cordwood's, losing nothing.

`extra=` becomes typed fields, exc_info an exception, `created` the record's time, and the caller's
place is kept. The logger's name is the record's. Any thread. A failure inside goes to
logging.Handler.handleError and never to the host's code.
"""
import logging
from typing import Any, Dict

from . import _context, _levels, _record
from ._engine import Engine
from ._logger import Logger

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Handler(logging.Handler):
    """`logging.getLogger().addHandler(cordwood.Handler(engine))`. The engine stays the host's:
    closing the handler does not close it. With a formatter set the message is what it formats."""

    def __init__(self, engine: Engine, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._engine = engine
        self._loggers: Dict[str, Logger] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record where its level is enabled in the engine."""
        try:
            logger = self._logger(record.name)
            level = _levels.from_stdlib(record.levelno)
            if logger.enabled(level):
                self._write(logger, level, record)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Nothing: a record is kept when emit returns."""

    def _logger(self, name: str) -> Logger:
        logger = self._loggers.get(name)
        if logger is None:
            logger = self._loggers[name] = self._engine.logger(name)
        return logger

    def _write(self, logger: Logger, level: int, record: logging.LogRecord) -> None:
        message = record.getMessage() if self.formatter is None else self.format(record)
        extra = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.stack_info:
            extra["stack_info"] = record.stack_info
        where = (_record.encode(record.pathname), _record.encode(record.funcName or ""),
                 record.lineno)
        error: Any = record.exc_info or None
        logger.put(_record.build(level, _record.encode(message), where, extra, _context.fields(),
                                 _context.trace_ids(), error, int(record.created * 1e9)))
