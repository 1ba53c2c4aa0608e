"""How transfers fail: one class for each kind of failure, with all known details.

The errors are complete copies of cw_upload_error, so they outlive the engine. `str()` is English;
`describe("de")` is German. No attribute holds path, query, headers or token of the target.
`Failure` is the part they share with the errors of the host's own requests (_network_errors).
"""
import ctypes
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Tuple, Type

from . import _abi
from ._errors import UploadError, check

if TYPE_CHECKING:
    from ._engine import UploadResult

_LANGUAGES = ("en", "de")
_NEVER = 2 ** 64 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class ErrorDetail(NamedTuple):
    """One of the further errors that a server lists besides its main one."""
    code: str
    message: str
    property: str
    severity: str


class Failure:
    """The known details of a request that a server refused or that never reached it."""

    target = cause = location = code = message = language = transaction_id = ""
    """target: the target's name; for a request of the host's, scheme, host and port. location: of a
    redirection: scheme, host and port, or "/…" on the same server. code, message, language,
    transaction_id and details: from an answer in the form of OData or SAP Gateway."""
    details: Tuple[ErrorDetail, ...] = ()
    http_status = 0
    """0: no HTTP answer."""
    retry_after: Optional[float] = None
    """The seconds that the server asked us to wait."""
    time: datetime = _EPOCH
    _texts: Dict[str, str] = {}
    _word = "unknown"

    def describe(self, language: str = "en") -> str:
        """Text for people: "en" or "de", also with a region; other languages get English."""
        short = language.replace("_", "-").split("-")[0].split(".")[0].lower()
        return self._texts.get(short) or self._texts.get("en") or str(self)

    @property
    def outcome(self) -> str:
        """request_failed, redirection, client, server or unknown."""
        return self._word

    def _take(self, raw: Any, texts: Dict[str, str], *more: str) -> None:
        """Copies cw_upload_error; more: its texts that not every error has."""
        self._texts = texts
        for key in ("target", "cause", "location", "code", "message", "language",
                    "transaction_id", *more):
            setattr(self, key, _word(getattr(raw, key)))
        self.details = tuple(
            ErrorDetail(*(_word(getattr(raw.details[i], key)) for key in ErrorDetail._fields))
            for i in range(raw.detail_count))
        self.http_status = raw.http_status
        self.time = _EPOCH + timedelta(microseconds=raw.time_ns // 1000)
        if raw.retry_after_ms != _NEVER:
            self.retry_after = raw.retry_after_ms / 1000


class TransferError(Failure, UploadError):
    """A failed transfer; always one of the five classes below."""

    archive = ""
    attempt = 0


class RequestFailed(TransferError):
    """No HTTP answer: DNS, connect, TLS, timeout. `.cause` says which."""
    _word = "request_failed"


class Redirection(TransferError):
    """3xx, with `.location`."""
    _word = "redirection"


class ClientError(TransferError):
    """4xx."""
    _word = "client"


class ServerError(TransferError):
    """5xx."""
    _word = "server"


class UnknownOutcome(TransferError):
    """Anything else; `.cause` is kept."""


_CLASSES: Dict[int, Type[TransferError]] = {
    2: RequestFailed, 3: Redirection, 4: ClientError, 5: ServerError}


def outcome_text(outcome: int, language: str = "en") -> str:
    """One sentence for a CW_OUTCOME_ number."""
    raw: bytes = _abi.library.cw_outcome_text(outcome, language.encode())
    return raw.decode()


def _word(content: _abi.Str) -> str:
    return _abi.view(content).decode("utf-8", "replace")


def said(pointer: "ctypes._Pointer[_abi.UploadErrorView]") -> Dict[str, str]:
    """Its texts in every language."""
    return {language: _said(pointer, language) for language in _LANGUAGES}


def _said(pointer: "ctypes._Pointer[_abi.UploadErrorView]", language: str) -> str:
    size: int = _abi.library.cw_upload_error_text(pointer, language.encode(), None, 0)
    buffer = ctypes.create_string_buffer(size + 1)
    _abi.library.cw_upload_error_text(pointer, language.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")


def last_error(handle: Optional[int], target: Optional[str], status: int = _abi.E_UPLOAD,
               result: "Optional[UploadResult]" = None) -> Optional[TransferError]:
    """How the last failed transfer ended; None: no transfer failed."""
    pointer = ctypes.POINTER(_abi.UploadErrorView)()
    name = target.encode() if target is not None else None
    if check(_abi.library.cw_upload_last_error(handle, name, pointer)) != _abi.OK:
        return None
    try:
        raw = pointer[0]
        texts = said(pointer)
        error = _CLASSES.get(raw.outcome, UnknownOutcome)(status, texts["en"], result)
        error._take(raw, texts, "archive")
        error.attempt = raw.attempt
        return error
    finally:
        _abi.library.cw_upload_error_free(pointer)


def failed_upload(handle: Optional[int], status: int, result: "UploadResult") -> UploadError:
    """The error that an upload raises. If a transfer failed, in this call or before, it has the
    class of the last one: the call does not retry while a server asked to wait."""
    if status in (_abi.E_UPLOAD, _abi.E_TIMEOUT):
        found = last_error(handle, None, status, result)
        if found is not None:
            return found
    return UploadError(status, result=result)
