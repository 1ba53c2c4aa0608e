# The accelerator (speed/speed.c), as _accelerator uses it. Its Logger and its Record have the
# attributes of _logger.Logger and _record_view.Record, which is what hosts are told they are.
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Tuple

Logger: Any
Record: Any
Cursor: Any

def bind(version: int, calls: Tuple[int, ...], context: ContextVar[Any], text: ModuleType,
         levels: ModuleType, records: ModuleType, sites_max: int, /) -> bool: ...
def logger(name: str, handle: int, waits: bool, /) -> Any: ...
def usual(record: type, names: Tuple[str, ...], /) -> bool: ...
def put_usual(record: Any, loggers: Any, levels: Any, /) -> bool: ...
