"""Errors: one class for each way in which a host may react to a failure.

Every error is a CordwoodError with `.status` (the number in cordwood.h) and `.status_name`. Its
text comes from the library: what failed, on which path or value, and why. Writing a record never
raises these errors: the write calls return whether the record was kept.
"""
import ctypes
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Type

from . import _abi

if TYPE_CHECKING:
    from ._engine import UploadResult


class CordwoodError(Exception):
    """A call that failed."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message or describe(status))
        self.status = status
        self.status_name = status_name(status)

    def __reduce__(self) -> "Tuple[Any, ...]":
        # Process pools pickle what a worker raises; one that cannot be made again ends the pool.
        return _made_again, (type(self), self.args), self.__dict__


class ArgumentError(CordwoodError, ValueError):
    """A value that is not valid, or exceeds a documented limit."""


class ClosedError(CordwoodError):
    """The engine is closed."""


class StoreError(CordwoodError):
    """The store cannot be made, opened or written: directory, permission, I/O, disk full."""


class NotFoundError(CordwoodError):
    """The store, file or target does not exist."""


class DamagedError(CordwoodError):
    """Damaged data, or a format of a newer version."""


class DamageWarning(UserWarning):
    """A reader skipped a damaged place: which one, and what is wrong with it."""


class EncryptedError(CordwoodError):
    """An archive is encrypted, and none of the given identities opens it."""


class WaitTimeout(CordwoodError):
    """Time ran out; the operation continues in the background."""


class UploadError(CordwoodError):
    """An upload was impossible or incomplete. `.result` counts what was done; `.outcome` says how
    the last transfer ended (request_failed, redirection, client, server …). If a transfer failed,
    the error is a subclass of TransferError."""

    def __init__(self, status: int, message: str = "",
                 result: "Optional[UploadResult]" = None) -> None:
        super().__init__(status, message)
        self.result = result

    @property
    def outcome(self) -> str:
        """How the last transfer ended; "none" if there was none."""
        return self.result.last_outcome if self.result is not None else "none"


def _made_again(kind: "Type[CordwoodError]", words: "Tuple[Any, ...]") -> CordwoodError:
    return kind.__new__(kind, *words)


_CLASSES: Dict[int, Type[CordwoodError]] = {
    _abi.E_ARGUMENT: ArgumentError, _abi.E_LEVEL: ArgumentError, _abi.E_LIMIT: ArgumentError,
    _abi.E_EXISTS: ArgumentError, _abi.E_CLOSED: ClosedError, _abi.E_NOT_FOUND: NotFoundError,
    _abi.E_NO_DIRECTORY: StoreError, _abi.E_NOT_DIRECTORY: StoreError,
    _abi.E_PERMISSION: StoreError, _abi.E_IO: StoreError, _abi.E_FULL: StoreError,
    _abi.E_VERSION: DamagedError, _abi.E_DAMAGED: DamagedError, _abi.E_TIMEOUT: WaitTimeout,
    _abi.E_ENCRYPTED: EncryptedError,
    _abi.E_CONSENT: UploadError, _abi.E_NO_TARGET: UploadError, _abi.E_UPLOAD: UploadError,
    _abi.E_NOT_ENABLED: UploadError,
}


def status_name(status: int) -> str:
    """ "CW_E_FULL"."""
    name: bytes = _abi.quick.cw_status_name(status)
    return name.decode()


def last_error() -> str:
    """This thread's last failure, with path, value and cause."""
    buffer = ctypes.create_string_buffer(1024)
    _abi.quick.cw_last_error(buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")


def describe(status: int, detail: Optional[str] = None) -> str:
    """The status's sentence and what failed (None: this thread's last failure)."""
    sentence: bytes = _abi.quick.cw_strerror(status)
    detail = last_error() if detail is None else detail
    general = f"{status_name(status)}: {sentence.decode('utf-8', 'replace')}"
    return f"{general} ({detail})" if detail else general


def check(status: int, detail: Optional[str] = None) -> int:
    """Returns the status if it is no error; raises the error's class otherwise."""
    if status < 0:
        raise _CLASSES.get(status, CordwoodError)(status, describe(status, detail))
    return status
