"""Values for C: text without a NUL, paths, lines of pairs, numbers that fit. Pure; any thread."""
import ctypes
import os
from typing import Any, Mapping, Optional, Union

from . import _abi
from ._errors import ArgumentError

PathLike = Union[str, bytes, "os.PathLike[str]"]


def path(option: str, value: Optional[PathLike]) -> Optional[bytes]:
    return None if value is None else text(option, os.fsencode(value))


def text(option: str, value: Union[str, bytes, None]) -> Optional[bytes]:
    """Text for C, which would cut it at a NUL silently. Errors omit the value: it may be secret."""
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if raw is not None and b"\0" in raw:
        raise ArgumentError(_abi.E_ARGUMENT, f"{option} holds a NUL")
    return raw


def lines(option: str, pairs: Optional[Mapping[str, object]], between: str) -> Optional[str]:
    lines = [f"{key}{between}{value}" for key, value in (pairs or {}).items()]
    # Values may be secrets, so the error omits them. `text` finds a NUL.
    if any("\n" in line or "\r" in line for line in lines):
        raise ArgumentError(_abi.E_ARGUMENT, f"{option}: a name or a value holds a line break")
    return "\n".join(lines) if lines else None


def put_number(raw: ctypes.Structure, key: str, value: Any) -> None:
    """Refuses numbers that do not fit: ctypes cuts them silently."""
    setattr(raw, key, value)
    if getattr(raw, key) != value:
        raise ValueError(f"{key} is out of range: {value!r}")
