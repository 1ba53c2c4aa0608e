"""A target for archives: the options of cw_target_options, as a value that programs make and pass
around."""
import ctypes
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence, Union

from . import _abi, _callbacks, _levels
from ._callbacks import Attempting, Busy, Completed, Condition, Drained
from ._transport import Credentials, Transport
from ._values import PathLike, lines, path, put_number, text


@dataclass(frozen=True)
class Target:
    """A server, and how archives get there. None: the default of cw_target_options in upload.h.
    docs/UPLOADS.md has a recipe for each kind. Timeouts are seconds. The callables run on the
    library's threads."""
    url: str
    name: Optional[str] = None
    kind: Optional[str] = None
    format: Optional[str] = None
    encoding: Optional[str] = None
    headers: Optional[Mapping[str, str]] = None
    parameters: Optional[Mapping[str, object]] = None
    method: Optional[str] = None
    auth_token: Optional[str] = None
    auth_user: Optional[str] = None
    auth_password: Optional[str] = None
    ca_file: Optional[PathLike] = None
    client_certificate_file: Optional[PathLike] = None
    client_key_file: Optional[PathLike] = None
    client_key_password: Optional[str] = None
    proxy: Optional[str] = None
    proxy_auth: Optional[str] = None
    http_version: Optional[int] = None
    level: Optional[_levels.Level] = None
    loggers: Union[str, Sequence[str], None] = None
    """Names, or one text with commas between them."""
    connect_timeout: Optional[float] = None
    request_timeout: Optional[float] = None
    bytes_per_s: Optional[int] = None
    body_bytes_max: Optional[int] = None
    body_records_max: Optional[int] = None
    requests_max: Optional[int] = None
    attempting: Optional[Attempting] = None
    """Called with (archive, attempt) before each attempt."""
    completed: Optional[Completed] = None
    """Called with (archive, status, http_status) after each attempt."""
    condition: Optional[Condition] = None
    """Asked in the background: may the target send now? An exception counts as false."""
    drained: Optional[Drained] = None
    """Called when nothing waits any more."""
    credentials: Optional[Credentials] = None
    """Asked on 401 and 403 with (target, challenge): a token, (user, password) or None."""
    transport: Optional[Transport] = None
    """Sends a TransportRequest in place of libcurl; returns (status, headers, body)."""
    busy: Optional[Busy] = None
    """Called with (target, seconds): the server is overloaded, and the target waits."""
    expect: Optional[str] = None
    """The condition on an answer that proves the body arrived:
    "status:202;header:X-Stored=yes;body:accepted"."""

    def __repr__(self) -> str:
        """Leaves out possible secrets: credentials, headers, the URL's path and query."""
        return f"Target(name={self.name!r}, kind={self.kind!r})"

    def _callables(self) -> _callbacks.Target:
        return _callbacks.Target(self.attempting, self.completed, self.condition, self.drained,
                                 self.credentials, self.transport, self.busy)

    def _options(self) -> _abi.TargetOptions:
        """cw_target_options without the callables."""
        raw = _abi.TargetOptions()
        _abi.library.cw_target_options_init(raw, ctypes.sizeof(raw))
        texts = {key: getattr(self, key) for key in (
            "url", "name", "kind", "format", "encoding", "method", "auth_token", "auth_user",
            "auth_password", "client_key_password", "proxy", "proxy_auth", "expect")}
        texts["headers"] = lines("headers", self.headers, ": ")
        texts["parameters"] = lines("parameters", self.parameters, "=")
        texts["loggers"] = (self.loggers if isinstance(self.loggers, str)
                            else ",".join(self.loggers or []) or None)
        values = {key: text(key, value) for key, value in texts.items()}
        for key in ("ca_file", "client_certificate_file", "client_key_file"):
            values[key] = path(key, getattr(self, key))
        for key, value in values.items():
            if value is not None:
                setattr(raw, key, value)
        numbers = {key: getattr(self, key) for key in (
            "bytes_per_s", "body_bytes_max", "body_records_max", "requests_max", "http_version")}
        if self.level is not None:
            numbers["level"] = _levels.number(self.level)
        for key in ("connect_timeout", "request_timeout"):
            seconds = getattr(self, key)
            if seconds is not None:
                numbers[f"{key}_ms"] = _abi.timeout_ms(seconds)
        for key, number in numbers.items():
            if number is not None:
                put_number(raw, key, number)
        return raw
