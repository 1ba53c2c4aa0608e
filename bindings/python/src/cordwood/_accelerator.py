"""Selects Logger, Record and the reader's cursor: those in C if pip found a compiler, otherwise
those through ctypes.

CORDWOOD_PYTHON_ACCELERATOR=0 in the environment at import disables the C one. It takes the
addresses of the calls from the library that ctypes has loaded, so the process has one
library.
"""
from ctypes import c_void_p, cast
from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional

from . import _abi, _context, _levels, _logger, _place, _record_view, _text

ENVIRONMENT = "CORDWOOD_PYTHON_ACCELERATOR"


def _address(function: Any) -> int:
    return cast(function, c_void_p).value or 0


def _load() -> Any:
    """The extension module, ready to use; None if it is not wanted, missing, or of another version
    than the library."""
    if _abi.environment(ENVIRONMENT) == "0":
        return None
    try:
        from . import _speed
    except ImportError:
        return None
    calls = _abi.quick_calls
    fits: bool = _speed.bind(
        _abi.library.cw_version(),
        tuple(map(_address, (calls.text, calls.record, calls.site, *_abi.reader_calls))),
        _context.STATE, _text, _levels, _record_view, _place.SITES_MAX)
    return _speed if fits else None


def stdlib(record: type, names: Iterable[str]) -> Optional[Callable[..., bool]]:
    """The fastest path for a record of `logging` (speed/stdlib.h), or None."""
    if module is None or not module.usual(record, tuple(names)):
        return None
    put: Callable[..., bool] = module.put_usual
    return put


module = _load()
accelerated: bool = module is not None

if TYPE_CHECKING or module is None:
    from ._logger import Logger as Logger
    from ._record_view import Record as Record
    logger = _logger.Logger
else:
    Logger, logger = module.Logger, module.logger
    Record = _record_view.dress(module.Record)
