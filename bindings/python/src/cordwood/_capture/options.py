"""Selects which HTTP exchanges an engine captures, and what is replaced in them (docs/HTTP.md).

Has the struct and prototypes of http.h that belong to an engine's options; `Engine.capture_http`
calls `set_options`. Any thread.
"""
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int32, c_size_t, c_uint32, c_uint64
from ctypes import c_void_p, sizeof
from typing import Iterable, List, Optional, Union

from .. import _abi
from .._errors import ArgumentError, check

Words = Union[str, Iterable[str]]

_NONE = 0xFFFFFFFFFFFFFFFF


class HttpOptions(Structure):
    """cw_http_options."""
    _fields_ = [
        ("struct_size", c_uint32), ("enabled", c_uint32), ("body_bytes_max", c_uint64),
        ("sample_per_million", c_uint32), ("hosts", c_char_p), ("hosts_excluded", c_char_p),
        ("conversation_header", c_char_p), ("redact_headers", c_char_p),
        ("redact_keys", c_char_p), ("redact_patterns", c_char_p), ("keep_text", c_char_p),
        ("keep_keys", c_char_p),
    ]


for _name, _result, _arguments in (
        ("cw_http_options_init", None, [POINTER(HttpOptions), c_size_t]),
        ("cw_http_options_set", c_int32, [c_void_p, POINTER(HttpOptions)]),
        ("cw_http_enabled", c_bool, [c_void_p])):
    _function = getattr(_abi.library, _name)
    _function.restype, _function.argtypes = _result, _arguments


def _raw(option: str, text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise ArgumentError(_abi.E_ARGUMENT, f"{option} holds a NUL")
    return raw


def words(given: Words) -> List[str]:
    """One word, or several."""
    return [given] if isinstance(given, str) else list(given)


def _lines(option: str, given: Words) -> Optional[bytes]:
    listed = words(given)
    for word in listed:
        if "\n" in word:
            raise ArgumentError(_abi.E_ARGUMENT, f"{option} holds a line's end: {word!r}")
    return _raw(option, "\n".join(listed)) if listed else None


def _sample(fraction: float) -> int:
    if not 0 < fraction <= 1:
        raise ArgumentError(_abi.E_ARGUMENT, f"sample is over 0 and at most 1: {fraction!r}")
    return max(1, round(fraction * 1_000_000))


def set_options(
        handle: Optional[int], enabled: bool, body_bytes_max: int, sample: float, hosts: Words,
        hosts_excluded: Words, conversation_header: Optional[str], redact_headers: Words,
        redact_keys: Words, redact_patterns: Words, keep_text: Words, keep_keys: Words) -> None:
    """cw_http_options_set."""
    options = HttpOptions()
    _abi.library.cw_http_options_init(options, sizeof(options))
    if not 0 <= body_bytes_max < _NONE:
        raise ArgumentError(_abi.E_ARGUMENT, f"body_bytes_max is no size: {body_bytes_max!r}")
    options.enabled = 1 if enabled else 0
    options.body_bytes_max = body_bytes_max or _NONE
    options.sample_per_million = _sample(sample)
    options.hosts = _lines("hosts", hosts)
    options.hosts_excluded = _lines("hosts_excluded", hosts_excluded)
    options.conversation_header = _raw("conversation_header", conversation_header or "")
    options.redact_headers = _lines("redact_headers", redact_headers)
    options.redact_keys = _lines("redact_keys", redact_keys)
    options.redact_patterns = _lines("redact_patterns", redact_patterns)
    options.keep_text = _lines("keep_text", keep_text)
    options.keep_keys = _lines("keep_keys", keep_keys)
    check(_abi.library.cw_http_options_set(handle, options))


def is_enabled(handle: Optional[int]) -> bool:
    """cw_http_enabled."""
    return bool(_abi.library.cw_http_enabled(handle))
