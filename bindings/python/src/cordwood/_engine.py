"""An engine: one open store directory, from open to close.

The engine owns its C handle, which stays safe after close (calls then raise ClosedError) and in a
forked child. Any thread may call anything. Engines that are still open when the interpreter exits
are closed with a short wait. Callbacks run on the library's helper thread; sys.unraisablehook
shows whatever they raise, and it goes no further.
"""
import atexit
import ctypes
import json
import os
from dataclasses import replace
from types import TracebackType
from typing import (Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set,
                    Tuple, Type, Union)

from . import _abi, _accelerator, _callbacks, _levels, _upload_errors
from ._capture import options as _http
from ._accelerator import Logger
from ._errors import check
from ._secret_names import is_secret
from ._target import Target
from ._transaction import Transactions
from ._values import PathLike, lines, path, put_number, text

ArchiveRemoved = Callable[[str, str], None]

_EXIT_WAIT_S = 1.0
_WORDS: Dict[str, Tuple[str, ...]] = {
    "codec": ("zstd", "lz4", "none"),
    "archive_method": ("dense", "plain"),
    "consent": ("granted", "pending", "denied"),
    "overflow": ("grow", "drop", "block"),
    "console": ("off", "text", "json", "auto"),
    "durable": ("process", "machine"),
}
_ALLOWANCES = ("erase", "off", "http")
_REASONS = ("", "quota", "count", "expired", "consent")
_OUTCOMES = ("none", "success", "request_failed", "redirection", "client", "server", "unknown")

# A helper that is still busy after close may call once more, so these live as long as the process.
_removed_callbacks: List[Any] = []
# Strong: a host may keep only a logger, and its engine must still be closed at exit.
_open: "Set[Engine]" = set()


class Stats(NamedTuple):
    """Counts since open; see cw_stats in cordwood.h."""
    lanes: int
    records_written: int
    records_dropped: int
    bytes_written: int
    slow_appends: int
    segments_sealed: int
    segments_recovered: int
    archives_written: int
    archive_bytes_in: int
    archive_bytes_out: int
    archives_removed: int
    uploads_succeeded: int
    uploads_failed: int
    upload_bytes: int
    segments_reused: int
    records_refused: int
    dropped_disk_full: int
    dropped_disk_quota: int
    dropped_store_quota: int
    dropped_file_limit: int
    dropped_descriptors: int
    dropped_memory: int
    dropped_not_ready: int
    dropped_permission: int
    dropped_other: int


class UploadResult(NamedTuple):
    """The result of one upload call: pairs of archive and target, and the last transfer."""
    uploaded: int
    failed: int
    waiting: int
    expired: int
    bytes_sent: int
    last_http_status: int
    last_outcome: str
    refused: int = 0
    """Records that a target refused; they are kept."""
    records: int = 0
    """Records in bodies that got a 2xx; 0 for archives sent as files."""
    quarantined: int = 0
    """Pairs given up, entirely or for some records; the archives are kept."""


def _word(option: str, value: Union[str, int]) -> int:
    words = _WORDS[option]
    if isinstance(value, str):
        if value.lower() not in words:
            raise ValueError(f"{option} is one of {', '.join(words)}: {value!r}")
        return words.index(value.lower())
    return value


def _named(names: Tuple[str, ...], index: int) -> str:
    return names[index] if 0 <= index < len(names) else str(index)


def _result(raw: _abi.UploadResult) -> UploadResult:
    return UploadResult(raw.uploaded, raw.failed, raw.waiting, raw.expired, raw.bytes_sent,
                        raw.last_http_status, _named(_OUTCOMES, raw.last_outcome),
                        raw.refused, raw.records, raw.quarantined)


class Engine(Transactions):
    """An open store. A context manager: leaving it closes the engine."""

    def __init__(self, options: _abi.Options) -> None:
        self._pointer = ctypes.c_void_p()
        check(_abi.library.cw_open(options, self._pointer))
        self._handle = self._pointer.value  # stays usable after close: calls then report it
        self._blocks = options.overflow == _WORDS["overflow"].index("block")
        self._loggers: Dict[str, Logger] = {}
        self._targets: Dict[str, int] = {}  # the callbacks' numbers by name
        self._txn_names = set()
        _open.add(self)

    def logger(self, name: str = "") -> Logger:
        """The logger of the dotted name; "" is the root. The same name gives the same object."""
        found = self._loggers.get(name)
        if found is None:
            handle = ctypes.c_void_p()
            raw = name.encode()
            if b"\0" in raw:
                raise ValueError(f"a logger's name has no NUL: {name!r}")
            check(_abi.library.cw_logger_get(self._handle, raw, handle))
            made = _accelerator.logger(name, handle.value or 0, self._blocks)
            found = self._loggers.setdefault(name, made)
        return found

    def set_level(self, prefix: str, level: _levels.Level) -> None:
        """Sets the threshold of a name and all dotted names below it; "" is the root."""
        check(_abi.library.cw_level_set(self._handle, text("prefix", prefix),
                                        _levels.number(level)))

    def capture_http(
            self, enabled: bool = True, *, body_bytes_max: int = 65_536, sample: float = 1.0,
            hosts: _http.Words = (), hosts_excluded: _http.Words = (),
            conversation_header: Optional[str] = "X-Conversation-Id",
            redact_headers: _http.Words = (), redact_keys: _http.Words = (),
            redact_patterns: _http.Words = (), keep_text: _http.Words = (),
            keep_keys: _http.Words = ()) -> None:
        """Sets which HTTP exchanges are captured from now on (docs/HTTP.md). The store's control
        file overrides `enabled`. body_bytes_max 0 keeps no bodies. Each call replaces the previous
        one."""
        redact_headers, redact_keys = _http.words(redact_headers), _http.words(redact_keys)
        redact_patterns = _http.words(redact_patterns)
        _http.set_options(self._handle, enabled, body_bytes_max, sample, hosts, hosts_excluded,
                          conversation_header, redact_headers, redact_keys, redact_patterns,
                          keep_text, keep_keys)
        self._conversation_header = conversation_header or ""  # what hooks add to requests
        # Only the engine can tell what a pattern matches in it, in time linear in its length.
        self._conversation_is_secret = bool(redact_patterns) or is_secret(
            self._conversation_header, redact_headers + redact_keys)

    @property
    def captures_http(self) -> bool:
        """True if an exchange that begins now may be captured."""
        return _http.is_enabled(self._handle)

    def set_resource(self, key: str, value: str) -> None:
        """Sets an attribute of the program that logs (service.name, user.id …) for the records
        that follow; "" removes it. Values that change with each request belong in the context
        (cordwood.context)."""
        check(_abi.library.cw_resource_set(self._handle, text("key", key),
                                           text("value", value)))

    def set_consent(self, consent: Union[str, int]) -> None:
        """Sets and stores granted, pending or denied. Denied removes everything not sent yet."""
        check(_abi.library.cw_consent_set(self._handle, _word("consent", consent)))

    def apply_policy(self, policy: Union[str, bytes, Mapping[str, Any]]) -> None:
        """Applies a policy: a JSON object, or a dict of its keys (cw_policy_apply in cordwood.h).
        Raises ArgumentError if it is not valid, and changes nothing then."""
        if isinstance(policy, str):
            raw = policy.encode("utf-8", "surrogatepass")
        else:
            raw = policy if isinstance(policy, bytes) else json.dumps(dict(policy)).encode()
        check(_abi.library.cw_policy_apply(self._handle, raw, len(raw)))

    def last_error(self, target: Optional[str] = None) -> "Optional[_upload_errors.TransferError]":
        """How the last failed transfer to a target ended, since open; None: no transfer failed.
        target: the target's name; None: any target."""
        return _upload_errors.last_error(self._handle, target)

    def install_crash_handler(self) -> None:
        """Opt-in: a fatal signal writes a last record at FATAL under the logger "Cordwood.Crash",
        with signal, address and backtrace. It then goes on to the handler that was installed before
        (including faulthandler's), or to the core dump."""
        check(_abi.library.cw_crash_handler_install(self._handle))

    def flush(self, durable: Union[str, int] = "machine",
              timeout: Optional[float] = None) -> None:
        """Makes every record whose call returned survive the death of the process ("process":
        already guaranteed) or loss of power ("machine"). timeout: seconds, None for no limit."""
        check(_abi.library.cw_flush(self._handle, _word("durable", durable),
                                    _abi.timeout_ms(timeout)))

    def roll(self) -> None:
        """Seals the open segments, so that they are archived in the background and can be
        uploaded."""
        check(_abi.library.cw_roll(self._handle))

    def archive_wait(self, timeout: Optional[float] = None) -> None:
        """Waits until everything sealed before the call is archived. timeout: seconds."""
        check(_abi.library.cw_archive_wait(self._handle, _abi.timeout_ms(timeout)))

    def stats(self) -> Stats:
        """Counts since open."""
        raw = _abi.Stats()
        check(_abi.library.cw_stats_get(self._handle, raw, ctypes.sizeof(raw)))
        return Stats(*(getattr(raw, name) for name in Stats._fields))

    def add_target(self, target: Union[Target, str, None] = None, **options: Any) -> int:
        """Adds a target for archives and returns its number, for upload_preview. target: a Target,
        or a URL with a Target's other options as keywords. The callables are kept until
        remove_target; those of a target without a name, or of one left at close, until the process
        ends. Raises ArgumentError, StoreError; TypeError for an unknown keyword, ValueError for a
        number that does not fit."""
        if isinstance(target, Target):
            added = replace(target, **options)
        else:
            added = Target(target, **options) if target is not None else Target(**options)
        raw = added._options()
        calls = _callbacks.put_target(raw, added._callables())
        number = ctypes.c_uint32()
        status = _abi.library.cw_target_add(self._handle, raw, number)
        if status < 0:
            _callbacks.forget_target(calls)
        elif added.name is not None:
            # The library forgot a target of that name that was removed from outside.
            if added.name in self._targets:
                _callbacks.forget_target(self._targets[added.name])
            self._targets[added.name] = calls
        check(status)
        return number.value

    def remove_target(self, name: str) -> None:
        """Removes a target: its state leaves the store, archives stay."""
        calls = self._targets.get(name)
        check(_abi.library.cw_target_remove(self._handle, text("name", name)))
        # Another thread that added the name again meanwhile has put its own number there.
        if calls is not None and self._targets.get(name) == calls:
            del self._targets[name]
        _callbacks.forget_target(calls)

    def retry_quarantined(self, target: Optional[str] = None) -> bool:
        """Releases archives that targets refused and the store keeps for another attempt at the
        next occasion. Of an archive accepted except for some records, only those are sent again.
        None: all targets. Returns whether there were any."""
        status = _abi.library.cw_quarantine_retry(self._handle, text("target", target))
        check(status)
        return bool(status == _abi.OK)

    def upload(self, timeout: Optional[float] = None) -> UploadResult:
        """Seals the open segments, makes one attempt per waiting archive and target, and waits for
        it (seconds, None for no limit). Nothing to send is no error. Raises UploadError
        otherwise."""
        result: UploadResult = self._sent(_abi.library.cw_upload, timeout)
        return result

    def _sent(self, call: Any, timeout: Optional[float]) -> UploadResult:
        raw = _abi.UploadResult(ctypes.sizeof(_abi.UploadResult))
        status = call(self._handle, _abi.timeout_ms(timeout), raw, ctypes.sizeof(raw))
        if status < 0:
            raise _upload_errors.failed_upload(self._handle, status, _result(raw))
        return _result(raw)

    def upload_preview(self, target: int) -> List[bytes]:
        """Returns exactly the bodies that upload would send to a target (a number from add_target),
        and sends nothing. Seals and archives open segments first. Holds all bodies in memory."""
        bodies = [bytearray()]

        def take(_: Any, data: Optional[int], length: int) -> bool:
            if not data or length == 0:
                bodies.append(bytearray())
            else:
                bodies[-1] += ctypes.string_at(data, length)
            return True

        check(_abi.library.cw_upload_preview(self._handle, target, _abi.BYTES(take), None))
        return [bytes(body) for body in bodies[:-1]]

    def upload_async(self, done: Optional[Callable[[int, UploadResult], None]] = None) -> None:
        """Like upload, in the background; calls done(status, result) on the library's thread."""
        call = done
        ended = None if call is None else (
            lambda status, raw: call(status, _result(raw)))
        check(_callbacks.upload_async(self._handle, ended))

    def close(self, timeout: float = 5.0) -> None:
        """Closes, and waits up to timeout seconds for the helper's present job. Idempotent. Raises
        WaitTimeout if the helper is still busy: the engine is closed anyway."""
        status = _abi.library.cw_close(self._pointer, _abi.timeout_ms(timeout))
        _open.discard(self)
        check(status)

    @property
    def closed(self) -> bool:
        """True after close."""
        return self._pointer.value is None

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trail: Optional[TracebackType]) -> None:
        self.close()


def open(directory: Optional[PathLike] = None, *, process_name: Optional[str] = None,
         level: Optional[_levels.Level] = None, segment_bytes: Optional[int] = None,
         roll_age_s: Optional[int] = None, quota_bytes: Optional[int] = None,
         archives_max: Optional[int] = None, expiration_days: Optional[int] = None,
         codec: Union[str, int, None] = None, codec_level: Optional[int] = None,
         consent: Union[str, int, None] = None, overflow: Union[str, int, None] = None,
         console: Union[str, int, None] = None, console_level: Optional[_levels.Level] = None,
         sync_console: bool = False, coarse_clock: bool = False,
         tmpfs: bool = False, sigbus_guard: bool = False, group_read: bool = False,
         upload_interval_s: Optional[int] = None,
         archive_removed: Optional[ArchiveRemoved] = None,
         encrypt_to: Union[str, Iterable[str], None] = None,
         identity_file: Optional[PathLike] = None, policy_url: Optional[str] = None,
         policy_interval_s: Optional[int] = None,
         policy_headers: Optional[Mapping[str, str]] = None,
         policy_ca_file: Optional[PathLike] = None,
         archive_method: Union[str, int, None] = None,
         archive_time_step_ns: Optional[int] = None,
         policy_allow: Iterable[str] = ()) -> Engine:
    """Opens a store for writing, and creates it if it does not exist. Without a directory it uses
    CORDWOOD_DIR of the environment. Omitted options have the defaults of cw_options in cordwood.h;
    codec, archive_method, consent, overflow and console are words ("zstd", "plain", "pending",
    "drop", "json").
    archive_removed(archive, reason) is called, on the library's thread, for an archive that left
    the disk without being uploaded (quota, count, expired, consent). encrypt_to: the age recipients
    ("age1…") to which this engine encrypts its archives; close archives what is left.
    identity_file: age identities that open encrypted archives for targets that need plain records.
    policy_url: where to look for a policy, at once and every policy_interval_s (an hour).
    policy_allow: what policies may do, of "erase", "off" and "http" (CW_POLICY_… in upload.h).
    Raises ArgumentError, StoreError, DamagedError; ValueError for an unknown word."""
    raw = _abi.Options()
    _abi.library.cw_options_init(raw, ctypes.sizeof(raw))
    if directory is not None:
        raw.directory = path("directory", directory)
    words = {"codec": codec, "archive_method": archive_method, "consent": consent,
             "overflow": overflow, "console": console}
    levels = {"level": level, "console_level": console_level}
    given: Dict[str, Any] = {
        "process_name": text("process_name", process_name), "segment_bytes": segment_bytes,
        "roll_age_s": roll_age_s, "quota_bytes": quota_bytes, "archives_max": archives_max,
        "expiration_days": expiration_days, "codec_level": codec_level,
        "archive_time_step_ns": archive_time_step_ns,
        "upload_interval_s": upload_interval_s, "policy_interval_s": policy_interval_s,
        "policy_url": text("policy_url", policy_url),
        "policy_ca_file": path("policy_ca_file", policy_ca_file),
        "policy_headers": text("policy_headers", lines("policy_headers", policy_headers, ": ")),
        **{key: _word(key, value) for key, value in words.items() if value is not None},
        **{key: _levels.number(value) for key, value in levels.items() if value is not None},
    }
    for key, value in given.items():
        if value is not None:
            put_number(raw, key, value)
    for wanted, flag in ((sync_console, _abi.FLAG_SYNC_CONSOLE),
                         (coarse_clock, _abi.FLAG_COARSE_CLOCK), (tmpfs, _abi.FLAG_TMPFS),
                         (sigbus_guard, _abi.FLAG_SIGBUS_GUARD),
                         (group_read, _abi.FLAG_GROUP_READ)):
        if wanted:
            raw.flags |= flag
    for word in [policy_allow] if isinstance(policy_allow, str) else policy_allow:
        if word not in _ALLOWANCES:
            raise ValueError(f"policy_allow has words of {', '.join(_ALLOWANCES)}: {word!r}")
        raw.policy_allow |= 1 << _ALLOWANCES.index(word)
    if encrypt_to is not None:
        recipients = [encrypt_to] if isinstance(encrypt_to, str) else encrypt_to
        raw.encrypt_to = text("encrypt_to", " ".join(recipients))
    if identity_file is not None:
        raw.identity_file = path("identity_file", identity_file)
    if archive_removed is not None:
        call = archive_removed
        raw.archive_removed = _abi.ARCHIVE_REMOVED(lambda _, archive, reason: call(
            os.fsdecode(archive), _named(_REASONS, reason)))
        _removed_callbacks.append(raw.archive_removed)
    return Engine(raw)


def _close_all() -> None:
    """At interpreter exit: seals open segments without a long wait."""
    for engine in list(_open):
        try:
            engine.close(_EXIT_WAIT_S)
        except Exception:  # too late to react, and exit codes belong to the host
            pass


atexit.register(_close_all)
