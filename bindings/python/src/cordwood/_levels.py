"""Severity: names and numbers, pure.

Any number from 1 to 24 (OpenTelemetry's) is a level. Unnamed ones show as the named one below with
the difference: 11 is "NOTICE+1". The standard library's numbers (10 … 50) are another scale:
`from_stdlib` is the only place where one becomes the other.
"""
from typing import Union

TRACE = 1
DEBUG = 5
INFO = 9
NOTICE = 10
WARN = WARNING = 13
ERROR = 17
FATAL = CRITICAL = 21
OFF = 255

Level = Union[int, str]

_NUMBERS = {
    "trace": TRACE, "debug": DEBUG, "info": INFO, "notice": NOTICE, "warn": WARN,
    "warning": WARN, "error": ERROR, "fatal": FATAL, "critical": FATAL, "off": OFF,
}
_NAMES = ((FATAL, "FATAL"), (ERROR, "ERROR"), (WARN, "WARN"), (NOTICE, "NOTICE"),
          (INFO, "INFO"), (DEBUG, "DEBUG"), (TRACE, "TRACE"))
_STDLIB = ((50, FATAL), (40, ERROR), (30, WARN), (25, NOTICE), (20, INFO), (10, DEBUG))


def number(level: Level) -> int:
    """1 … 24 or 255 of a name ("warn", "warning", "INFO+2") or number; ValueError otherwise."""
    if isinstance(level, int):
        if 1 <= level <= 24 or level == OFF:
            return level
        raise ValueError(f"a level is 1 to 24, or 255 for a threshold: {level}")
    name, plus, above = level.strip().lower().partition("+")
    found = _NUMBERS.get(name)
    if found is None or (plus and not above.isdigit()):
        raise ValueError(f"no level has the name {level!r}")
    return number(found + int(above)) if plus else found


def name(level: int) -> str:
    """ "INFO", "INFO+2"; a number outside 1 … 24 as it is."""
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
