# The accelerator (speed/speed.c), as _accelerator uses it. Its Logger has the methods of
# _logger.Logger, which is what hosts are told it is.
from contextvars import ContextVar
from types import ModuleType
from typing import Any

Logger: Any

def bind(version: int, write: int, write_record: int, site_text: int, context: ContextVar[Any],
         text: ModuleType, levels: ModuleType, sites_max: int, /) -> bool: ...
def logger(name: str, handle: int, waits: bool, /) -> Any: ...
