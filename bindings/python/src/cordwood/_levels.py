"""Severity: names and numbers, pure.

Any number from 1 to 24 (OpenTelemetry's) is a level. An unnamed one shows as the named one below it
plus the difference: 11 is "NOTICE+1". The standard library's numbers (10 … 50) are another scale,
which `from_stdlib` translates. We avoid its 30, 40 and 50, which keep their meaning there.
"""
import operator
from typing import Any, Tuple, Union

TRACE = 1
DEBUG = 5
INFO = 9
NOTICE = 10
WARN = WARNING = 13
ERROR = 17
FATAL = CRITICAL = 21
OFF = 255

Level = Union[int, str]

# A record with an unknown level is kept at this one, which most thresholds let through. A field
# names the problem.
FALLBACK = WARN
LEVEL_ERROR = "cordwood.level_error"

_NUMBERS = {
    "trace": TRACE, "debug": DEBUG, "info": INFO, "notice": NOTICE, "warn": WARN,
    "warning": WARN, "error": ERROR, "err": ERROR, "fatal": FATAL, "critical": FATAL,
    "crit": FATAL, "alert": FATAL, "emerg": FATAL, "panic": FATAL, "off": OFF,
}
_NAMES = ((FATAL, "FATAL"), (ERROR, "ERROR"), (WARN, "WARN"), (NOTICE, "NOTICE"),
          (INFO, "INFO"), (DEBUG, "DEBUG"), (TRACE, "TRACE"))
_STDLIB = ((50, FATAL), (40, ERROR), (30, WARN), (25, NOTICE), (20, INFO), (10, DEBUG))


def number(level: Level) -> int:
    """1 … 24 or 255 of a name ("warn", "warning", "INFO+2") or number; ValueError otherwise."""
    # The real class: objects may claim another __class__.
    if not issubclass(type(level), (int, str)):
        of_another_library: Any = level
        try:
            level = operator.index(of_another_library)
        except Exception:  # a host's __index__ may raise anything
            raise ValueError(f"a level is a number or a name, no {type(level).__name__}") from None
    if isinstance(level, int):
        if 1 <= level <= 24 or level == OFF:
            return level
        if level in (30, 40, 50):
            return from_stdlib(level)
        raise ValueError(f"a level is 1 to 24, or 255 for a threshold: {level}")
    name, plus, above = level.strip().lower().partition("+")
    found = _NUMBERS.get(name)
    if found is None or (plus and not above.isdigit()):
        raise ValueError(f"no level has the name {level!r}")
    total = found + int(above or 0)
    if plus and total > 24:
        raise ValueError(f"a level is 1 to 24: {level!r} is {total}")
    return total


def of_call(level: Any) -> Tuple[int, str]:
    """The level of a log call. An unknown level does not raise: FALLBACK, and the problem."""
    try:
        found = number(level)
        return (found, "") if found != OFF else (FALLBACK, "255 (off) is a threshold, no level")
    except ValueError as error:
        return FALLBACK, str(error)[:200]
    except Exception as error:  # a host's str subclass with methods that raise
        return FALLBACK, f"no level: {type(error).__name__}"


def name(level: int) -> str:
    """ "INFO", "INFO+2"; a number outside 1 … 24 unchanged."""
    for least, text in _NAMES:
        if least <= level <= 24:
            return text if level == least else f"{text}+{level - least}"
    return "OFF" if level == OFF else str(level)


def from_stdlib(level: int) -> int:
    """The level of a `logging` number: 10 is DEBUG, 25 NOTICE, 50 FATAL, below 10 TRACE."""
    for least, mapped in _STDLIB:
        if level >= least:
            return mapped
    return TRACE
