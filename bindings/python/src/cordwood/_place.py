"""Places in the source: file, function and line of a log call, found once and kept.

The code object and the instruction in it, both at hand in a frame, identify a place. The first call
from there computes the line. Each distinct place is a `cw_site`, so that its records name it by
number. The library never forgets a site, so the count is bounded here: records of further places
carry file and function themselves. Any thread: every step is one operation on a dict or a list.
Code objects are kept, so that no other gets the address of a dead one.
"""
import sys
from ctypes import byref
from types import CodeType, FrameType
from typing import Any, Dict, List, Tuple

from . import _abi
from ._text import encode

SITES_MAX = 16_384  # of the library's 65,536, which all languages of a process share
_CODES_MAX = 4096  # for a host that keeps compiling code
_STRING_MAX = 65_535  # of a site's file and function

# One argument, the ready text, kept byte for byte (log.h).
FORMAT = b"{}"
_ARGUMENTS = b"\x0b" + bytes(7)  # CW_ARG_TEXT, CW_ARG_NONE, zero up to 8
_STYLE_BRACES = 2


class Place:
    """One place. `site`: byref of its cw_site; None: too many, or unknown."""

    __slots__ = ("file", "function", "line", "site", "drafts")

    def __init__(self, file: bytes, function: bytes, line: int, has_site: bool) -> None:
        self.file, self.function, self.line = file, function, line
        self.site: Any = byref(_abi.Site(None, FORMAT, file, function, _ARGUMENTS, line, 0, 0,
                                         _STYLE_BRACES, 0)) if has_site else None
        # Records of this place to be refilled (_record.Draft).
        self.drafts: List[Any] = []


NOWHERE = Place(b"", b"", 0, False)

# By id of the code, then by instruction; the code itself is at -1 - _KEEPS.
codes: Dict[int, Dict[int, Any]] = {}
_KEEPS = -1_000_000
_places: Dict[Tuple[bytes, bytes, int], Place] = {}


def find(frame: FrameType) -> Place:
    """The place of a frame that `codes` does not have yet."""
    code = frame.f_code
    place = _place(code, frame.f_lineno or 0)
    known = codes.get(id(code))
    if known is None:
        if len(codes) >= _CODES_MAX:
            codes.clear()
        known = codes.setdefault(id(code), {_KEEPS: code})
    known[frame.f_lasti] = place
    return place


def _place(code: CodeType, line: int) -> Place:
    name = getattr(code, "co_qualname", code.co_name)  # 3.11 has the class, too
    return of(encode(code.co_filename), encode(name), line)


def of(file: bytes, function: bytes, line: int) -> Place:
    """The place of these; the same object each time."""
    key = file, function, line
    found = _places.get(key)
    if found is not None:
        return found
    fits = (len(_places) < SITES_MAX and b"\0" not in file + function
            and max(len(file), len(function)) <= _STRING_MAX)
    made = Place(file, function, line, fits)
    return _places.setdefault(key, made) if fits else made


def above(stacklevel: Any, depth: int) -> FrameType:
    """The frame `stacklevel` above the level's method, which is `depth` above the caller's;
    ValueError: there are fewer frames. A value that is no number counts as 1."""
    # The real class: objects may claim another __class__.
    level = int(stacklevel) if issubclass(type(stacklevel), int) else 1
    return sys._getframe(depth + min(max(level, 1), 1 << 30))


_stdlib: Dict[Tuple[Any, Any, Any], Place] = {}


def of_stdlib(file: Any, function: Any, line: Any) -> Place:
    """The place of a `logging` record. The record has its own time, so it never names a site."""
    found = _stdlib.get((file, function, line))
    if found is None:
        if len(_stdlib) >= _CODES_MAX:
            _stdlib.clear()
        found = _stdlib[file, function, line] = Place(
            encode(file or ""), encode(function or ""), line or 0, False)
    return found
