"""Selects the Logger: the C one if pip found a compiler, otherwise the one through ctypes.

CORDWOOD_PYTHON_ACCELERATOR=0 in the environment at import disables the C one. It takes the
addresses of the write calls from the library that ctypes has loaded, so the process has one
library.
"""
import os
from ctypes import c_void_p, cast
from typing import TYPE_CHECKING, Any

from . import _abi, _context, _levels, _logger, _place, _text

ENVIRONMENT = "CORDWOOD_PYTHON_ACCELERATOR"


def _address(function: Any) -> int:
    return cast(function, c_void_p).value or 0


def _load() -> Any:
    """The extension module, ready to use; None if it is not wanted, missing, or of another version
    than the library."""
    if os.environ.get(ENVIRONMENT) == "0":
        return None
    try:
        from . import _speed
    except ImportError:
        return None
    calls = _abi.quick_calls
    fits: bool = _speed.bind(
        _abi.library.cw_version(), _address(calls.text), _address(calls.record),
        _address(calls.site), _context.STATE, _text, _levels,
        _place.SITES_MAX)
    return _speed if fits else None


_module = _load()
accelerated: bool = _module is not None

if TYPE_CHECKING or _module is None:
    from ._logger import Logger as Logger
    logger = _logger.Logger
else:
    Logger, logger = _module.Logger, _module.logger
