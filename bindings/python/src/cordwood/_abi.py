"""The C ABI: structs and prototypes of cordwood.h, declared once, and the library that has them.

Owns nothing: the other modules call `library` and keep the results. `library` releases the
interpreter lock during a call. `quick` holds it and serves only the write calls, which take less
time than releasing it (with overflow="block" they may wait, and use `library`). Structs to write
carry `Text` (points into a bytes object), structs that were read carry `Str`. Every log call goes
through `WriteCalls`. ctypes checks no types there, which halves the cost of a call, so their
arguments must be byref() of the structs here, bytes and small ints.
"""
import ctypes
import os
from ctypes import (CDLL, CFUNCTYPE, POINTER, PyDLL, Structure, Union, c_bool, c_char_p, c_double,
                    c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p)
from pathlib import Path
from typing import Any, List, NamedTuple, Optional, Tuple

OK, DISABLED, END, AGAIN = 0, 1, 2, 3
E_ARGUMENT, E_LEVEL, E_STRUCT_SIZE, E_STRUCT_TAIL, E_CLOSED = -1, -2, -3, -4, -5
E_NO_DIRECTORY, E_NOT_DIRECTORY, E_NOT_FOUND, E_PERMISSION = -6, -7, -8, -9
E_IO, E_FULL, E_MEMORY, E_LIMIT, E_TIMEOUT, E_BUSY = -10, -11, -12, -13, -14, -15
E_VERSION, E_DAMAGED, E_CONSENT, E_NO_TARGET, E_UPLOAD = -16, -17, -18, -19, -20
E_UNSUPPORTED, E_EXISTS, E_INTERNAL, E_ENCRYPTED, E_NOT_ENABLED = -21, -22, -23, -24, -25

TYPE_INT, TYPE_UINT, TYPE_DOUBLE, TYPE_BOOL, TYPE_STRING, TYPE_JSON = 1, 2, 3, 4, 5, 6
READ_FOLLOW, READ_FROM_END = 1, 2
FLAG_SYNC_CONSOLE = 1
FLAG_COARSE_CLOCK = 2
FLAG_TMPFS = 4
FLAG_SIGBUS_GUARD = 8
FLAG_GROUP_READ = 16
FOREVER = 0xFFFFFFFF

ARCHIVE_REMOVED = CFUNCTYPE(None, c_void_p, c_char_p, c_uint32)
ATTEMPTING = CFUNCTYPE(None, c_void_p, c_char_p, c_uint32)
COMPLETED = CFUNCTYPE(None, c_void_p, c_char_p, c_int32, c_int32)
CONDITION = CFUNCTYPE(c_bool, c_void_p)
DRAINED = CFUNCTYPE(None, c_void_p)
BUSY = CFUNCTYPE(None, c_void_p, c_char_p, c_uint64)
BYTES = CFUNCTYPE(c_bool, c_void_p, c_void_p, c_size_t)


class TransportRequest(Structure):
    """cw_transport_request."""
    _fields_ = [
        ("struct_size", c_uint32), ("connect_timeout_ms", c_uint32), ("method", c_char_p),
        ("url", c_char_p), ("headers", POINTER(c_char_p)), ("header_count", c_size_t),
        ("body_bytes", c_uint64), ("timeout_ms", c_uint64), ("internal", c_void_p),
    ]


CREDENTIALS = CFUNCTYPE(c_int32, c_void_p, c_char_p, c_char_p, c_void_p)
TRANSPORT = CFUNCTYPE(c_int32, c_void_p, POINTER(TransportRequest), c_void_p)


class Text(Structure):
    """cw_str that borrows a bytes object; NUL bytes inside are kept."""
    _fields_ = [("data", c_char_p), ("length", c_size_t)]


class Str(Structure):
    """cw_str that the library owns."""
    _fields_ = [("data", c_void_p), ("length", c_size_t)]


class _Value(Union):
    _fields_ = [("i", c_int64), ("u", c_uint64), ("d", c_double), ("b", c_bool), ("s", Text)]


class _ReadValue(Union):
    _fields_ = [("i", c_int64), ("u", c_uint64), ("d", c_double), ("b", c_bool), ("s", Str)]


class Field(Structure):
    """cw_field to write."""
    _fields_ = [("key", Text), ("type", c_uint32), ("value", _Value)]


class ReadField(Structure):
    """cw_field that was read."""
    _fields_ = [("key", Str), ("type", c_uint32), ("value", _ReadValue)]


class Record(Structure):
    """cw_record."""
    _fields_ = [
        ("struct_size", c_uint32), ("level", c_uint32), ("message", Text),
        ("fields", POINTER(Field)), ("field_count", c_size_t), ("file", Text),
        ("function", Text), ("line", c_uint32), ("trace_flags", c_uint32),
        ("trace_id", c_char_p), ("span_id", c_char_p), ("time_ns", c_uint64),
        ("exception_type", Text), ("exception_message", Text), ("exception_stacktrace", Text),
    ]


class Site(Structure):
    """cw_site (log.h)."""
    _fields_ = [
        ("plan", c_void_p), ("format", c_char_p), ("file", c_char_p), ("function", c_char_p),
        ("arguments", c_char_p), ("line", c_uint32), ("count", c_uint32), ("next_ns", c_uint64),
        ("style", c_uint32), ("inlined", c_uint32),
    ]


class Options(Structure):
    """cw_options."""
    _fields_ = [
        ("struct_size", c_uint32), ("directory", c_char_p), ("process_name", c_char_p),
        ("level", c_uint32), ("segment_bytes", c_uint64), ("roll_age_s", c_uint32),
        ("quota_bytes", c_uint64), ("archives_max", c_uint32), ("expiration_days", c_uint32),
        ("codec", c_uint32), ("codec_level", c_int32), ("consent", c_uint32),
        ("overflow", c_uint32), ("console", c_uint32), ("console_level", c_uint32),
        ("flags", c_uint32), ("upload_interval_s", c_uint32),
        ("archive_removed", ARCHIVE_REMOVED), ("user", c_void_p), ("encrypt_to", c_char_p),
        ("identity_file", c_char_p), ("policy_url", c_char_p), ("policy_headers", c_char_p),
        ("policy_ca_file", c_char_p), ("policy_interval_s", c_uint32),
        ("archive_method", c_uint32), ("archive_time_step_ns", c_uint32),
        ("policy_allow", c_uint32),
    ]


class Stats(Structure):
    """cw_stats."""
    _fields_ = [
        ("struct_size", c_uint32), ("lanes", c_uint32), ("records_written", c_uint64),
        ("records_dropped", c_uint64), ("bytes_written", c_uint64), ("slow_appends", c_uint64),
        ("segments_sealed", c_uint64), ("segments_recovered", c_uint64),
        ("archives_written", c_uint64), ("archive_bytes_in", c_uint64),
        ("archive_bytes_out", c_uint64), ("archives_removed", c_uint64),
        ("uploads_succeeded", c_uint64), ("uploads_failed", c_uint64), ("upload_bytes", c_uint64),
        ("segments_reused", c_uint64), ("records_refused", c_uint64),
        ("dropped_disk_full", c_uint64), ("dropped_disk_quota", c_uint64),
        ("dropped_store_quota", c_uint64), ("dropped_file_limit", c_uint64),
        ("dropped_descriptors", c_uint64), ("dropped_memory", c_uint64),
        ("dropped_not_ready", c_uint64), ("dropped_permission", c_uint64),
        ("dropped_other", c_uint64),
    ]


class ReaderOptions(Structure):
    """cw_reader_options."""
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("level", c_uint32), ("kinds", c_uint32),
        ("since_ns", c_uint64), ("until_ns", c_uint64), ("logger", c_char_p),
        ("identity_file", c_char_p), ("query", c_char_p),
    ]


class RecordView(Structure):
    """cw_record_view."""
    _fields_ = [
        ("struct_size", c_uint32), ("time_ns", c_uint64), ("level", c_uint32),
        ("process_id", c_uint32), ("thread_id", c_uint64), ("sequence", c_uint64),
        ("logger", Str), ("message", Str), ("file", Str), ("function", Str), ("line", c_uint32),
        ("fields", POINTER(ReadField)), ("field_count", c_size_t), ("trace_id", c_uint8 * 16),
        ("span_id", c_uint8 * 8), ("kind", c_uint32), ("flags", c_uint32),
        ("original_length", c_uint64), ("process_name", Str), ("trace_flags", c_uint32),
        ("resource", POINTER(ReadField)), ("resource_count", c_size_t),
        ("record_id", c_uint8 * 24),
    ]


class TargetOptions(Structure):
    """cw_target_options."""
    _fields_ = [
        ("struct_size", c_uint32), ("name", c_char_p), ("kind", c_char_p), ("url", c_char_p),
        ("format", c_char_p), ("encoding", c_char_p), ("headers", c_char_p),
        ("auth_token", c_char_p), ("connect_timeout_ms", c_uint32),
        ("request_timeout_ms", c_uint32), ("bytes_per_s", c_uint64), ("attempting", ATTEMPTING),
        ("completed", COMPLETED), ("user", c_void_p), ("method", c_char_p),
        ("parameters", c_char_p), ("auth_user", c_char_p), ("auth_password", c_char_p),
        ("ca_file", c_char_p), ("client_certificate_file", c_char_p),
        ("client_key_file", c_char_p), ("client_key_password", c_char_p), ("proxy", c_char_p),
        ("proxy_auth", c_char_p), ("http_version", c_uint32), ("level", c_uint32),
        ("loggers", c_char_p), ("body_bytes_max", c_uint64), ("body_records_max", c_uint32),
        ("requests_max", c_uint32), ("condition", CONDITION), ("drained", DRAINED),
        ("credentials", CREDENTIALS), ("transport", TRANSPORT), ("busy", BUSY),
        ("expect", c_char_p),
    ]


class UploadResult(Structure):
    """cw_upload_result."""
    _fields_ = [
        ("struct_size", c_uint32), ("uploaded", c_uint32), ("failed", c_uint32),
        ("waiting", c_uint32), ("expired", c_uint32), ("bytes_sent", c_uint64),
        ("last_http_status", c_int32), ("last_outcome", c_int32), ("refused", c_uint32),
        ("records", c_uint64), ("quarantined", c_uint32),
    ]


class UploadErrorDetail(Structure):
    """cw_upload_error_detail."""
    _fields_ = [("code", Str), ("message", Str), ("property", Str), ("severity", Str)]


class UploadErrorView(Structure):
    """cw_upload_error."""
    _fields_ = [
        ("struct_size", c_uint32), ("outcome", c_int32), ("http_status", c_int32),
        ("attempt", c_uint32), ("time_ns", c_uint64), ("retry_after_ms", c_uint64),
        ("target", Str), ("archive", Str), ("cause", Str), ("location", Str), ("code", Str),
        ("message", Str), ("language", Str), ("transaction_id", Str),
        ("details", POINTER(UploadErrorDetail)), ("detail_count", c_size_t), ("method", Str),
        ("url", Str), ("exchange_id", Str),
    ]


class HttpHeader(Structure):
    """cw_http_header (http.h)."""
    _fields_ = [("name", Text), ("value", Text)]


class NetworkResult(Structure):
    """cw_network_result (network.h)."""
    _fields_ = [
        ("struct_size", c_uint32), ("http_status", c_int32), ("headers", POINTER(HttpHeader)),
        ("header_count", c_size_t), ("body", Text), ("error", Text), ("error_type", Text),
        ("method", Text), ("url", Text), ("exchange_id", c_char_p), ("time_ns", c_uint64),
    ]


class TransactionName(Structure):
    """cw_transaction_name (transaction.h)."""
    _fields_ = [("usecase", c_int32), ("event", c_int32), ("name", c_char_p)]


class TransactionView(Structure):
    """cw_transaction_view."""
    _fields_ = [
        ("struct_size", c_uint32), ("usecase", c_int32), ("id", c_char_p),
        ("usecase_name", c_char_p), ("first_ns", c_uint64), ("last_ns", c_uint64),
        ("events", c_uint32), ("errors", c_uint32), ("is_ended", c_bool),
    ]


TRANSACTION = CFUNCTYPE(c_bool, c_void_p, POINTER(TransactionView))
UPLOAD_DONE = CFUNCTYPE(None, c_void_p, c_int32, POINTER(UploadResult))

_HANDLE = c_void_p
_PROTOTYPES: List[Tuple[str, Any, List[Any]]] = [
    ("cw_options_init", None, [POINTER(Options), c_size_t]),
    ("cw_open", c_int32, [POINTER(Options), POINTER(_HANDLE)]),
    ("cw_resource_set", c_int32, [_HANDLE, c_char_p, c_char_p]),
    ("cw_logger_get", c_int32, [_HANDLE, c_char_p, POINTER(_HANDLE)]),
    ("cw_write", c_int32, [_HANDLE, c_uint32, c_char_p, c_size_t]),
    ("cw_write_record", c_int32, [_HANDLE, POINTER(Record)]),
    ("cw_site_text", c_int32, [_HANDLE, c_uint32, POINTER(Site), c_char_p, c_uint32]),
    ("cw_flush", c_int32, [_HANDLE, c_int32, c_uint32]),
    ("cw_roll", c_int32, [_HANDLE]),
    ("cw_archive_wait", c_int32, [_HANDLE, c_uint32]),
    ("cw_stats_get", c_int32, [_HANDLE, POINTER(Stats), c_size_t]),
    ("cw_close", c_int32, [POINTER(_HANDLE), c_uint32]),
    ("cw_crash_handler_install", c_int32, [_HANDLE]),
    ("cw_level_set", c_int32, [_HANDLE, c_char_p, c_uint32]),
    ("cw_reader_open", c_int32, [c_char_p, POINTER(ReaderOptions), POINTER(_HANDLE)]),
    ("cw_reader_next", c_int32, [_HANDLE, POINTER(RecordView)]),
    ("cw_reader_close", c_int32, [POINTER(_HANDLE)]),
    ("cw_target_options_init", None, [POINTER(TargetOptions), c_size_t]),
    ("cw_credentials_set", c_int32, [_HANDLE, c_char_p, c_char_p, c_char_p]),
    ("cw_transport_request_read", c_int32,
     [POINTER(TransportRequest), c_uint64, c_void_p, c_size_t, POINTER(c_size_t)]),
    ("cw_transport_request_stopped", c_bool, [POINTER(TransportRequest)]),
    ("cw_transport_response_status", c_int32, [_HANDLE, c_int32]),
    ("cw_transport_response_header", c_int32, [_HANDLE, c_char_p, c_char_p]),
    ("cw_transport_response_body", c_int32, [_HANDLE, c_char_p, c_size_t]),
    ("cw_transport_response_failed", c_int32, [_HANDLE, c_char_p, c_bool]),
    ("cw_target_add", c_int32, [_HANDLE, POINTER(TargetOptions), POINTER(c_uint32)]),
    ("cw_target_remove", c_int32, [_HANDLE, c_char_p]),
    ("cw_quarantine_retry", c_int32, [_HANDLE, c_char_p]),
    ("cw_upload", c_int32, [_HANDLE, c_uint32, POINTER(UploadResult), c_size_t]),
    ("cw_upload_async", c_int32, [_HANDLE, UPLOAD_DONE, c_void_p]),
    ("cw_upload_preview", c_int32, [_HANDLE, c_uint32, BYTES, c_void_p]),
    ("cw_consent_set", c_int32, [_HANDLE, c_uint32]),
    ("cw_policy_apply", c_int32, [_HANDLE, c_char_p, c_size_t]),
    ("cw_upload_last_error", c_int32, [_HANDLE, c_char_p, POINTER(POINTER(UploadErrorView))]),
    ("cw_upload_error_free", c_int32, [POINTER(POINTER(UploadErrorView))]),
    ("cw_upload_error_text", c_size_t,
     [POINTER(UploadErrorView), c_char_p, c_char_p, c_size_t]),
    ("cw_network_error_from", c_int32,
     [POINTER(NetworkResult), POINTER(POINTER(UploadErrorView))]),
    ("cw_network_error_log", c_int32, [_HANDLE, POINTER(UploadErrorView), POINTER(Record)]),
    ("cw_outcome_text", c_char_p, [c_int32, c_char_p]),
    ("cw_challenge_scheme", c_size_t, [c_char_p, c_char_p, c_size_t]),
    ("cw_challenge_realm", c_size_t, [c_char_p, c_char_p, c_size_t]),
    ("cw_transaction_begin", c_int32, [_HANDLE, c_int32, POINTER(_HANDLE)]),
    ("cw_transaction_join", c_int32, [_HANDLE, c_char_p, POINTER(_HANDLE)]),
    ("cw_transaction_id", c_char_p, [_HANDLE]),
    ("cw_transaction_usecase", c_int32, [_HANDLE]),
    ("cw_transaction_event", c_int32, [_HANDLE, c_int32, c_char_p, c_char_p]),
    ("cw_transaction_traceparent", c_int32, [_HANDLE, c_char_p]),
    ("cw_transaction_end", c_int32, [POINTER(_HANDLE)]),
    ("cw_transaction_names_set", c_int32, [_HANDLE, POINTER(TransactionName), c_size_t]),
    ("cw_transactions_list", c_int32, [_HANDLE, TRANSACTION, c_void_p]),
    ("cw_transactions_delete", c_int32, [_HANDLE, c_char_p]),
    ("cw_transactions_flush", c_int32, [_HANDLE, c_uint32, POINTER(UploadResult), c_size_t]),
    ("cw_traceparent_parse", c_int32,
     [c_char_p, POINTER(c_uint8), POINTER(c_uint8), POINTER(c_uint8)]),
    ("cw_status_name", c_char_p, [c_int32]),
    ("cw_strerror", c_char_p, [c_int32]),
    ("cw_last_error", c_size_t, [c_char_p, c_size_t]),
    ("cw_version", c_uint32, []),
    ("cw_version_string", c_char_p, []),
]
_QUICK = ("cw_write", "cw_write_record", "cw_site_text", "cw_transaction_event", "cw_last_error",
          "cw_status_name", "cw_strerror")


def environment(name: str) -> Optional[str]:
    """A variable of the environment; None in a program with more rights than its caller. The only
    function that reads one."""
    at_secure = 23  # <elf.h>
    getauxval = CDLL(None).getauxval
    getauxval.restype, getauxval.argtypes = c_size_t, [c_size_t]
    return None if getauxval(at_secure) else os.environ.get(name)


def _find() -> str:
    """$CORDWOOD_LIBRARY, the bundled library, or that of the checkout that has this package."""
    named = environment("CORDWOOD_LIBRARY")
    if named:
        return named
    here = Path(__file__).resolve()
    tried = [here.with_name("libcordwood.so")]
    if len(here.parents) > 4:
        tried.append(here.parents[4] / "build" / "lib" / "libcordwood.so")
    for path in tried:
        if path.is_file():
            return str(path)
    raise ImportError(
        f"cordwood: libcordwood.so is missing (looked for {', '.join(map(str, tried))}). Run "
        "./dev build in the checkout, or name the library in CORDWOOD_LIBRARY."
    )


def _load() -> Tuple[CDLL, PyDLL]:
    path = _find()
    try:
        slow, fast = CDLL(path), PyDLL(path)
        for name, result, arguments in _PROTOTYPES:
            for loaded in (slow, fast) if name in _QUICK else (slow,):
                function = getattr(loaded, name)
                function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as cause:
        raise ImportError(
            f"cordwood: {path} cannot be used: {cause}. Run ./dev build in the checkout again."
        ) from cause
    return slow, fast


library, quick = _load()


class WriteCalls(NamedTuple):
    """The three calls that write a record to the store."""
    text: Any  # cw_write, with prototypes: its length is a size_t
    record: Any  # cw_write_record(byref(first word), byref(Record))
    site: Any  # cw_site_text(byref(first word), level, byref(Site), bytes, length)


def _write_calls(loaded: CDLL) -> WriteCalls:
    # Looked up by index: separate functions, without the prototypes.
    return WriteCalls(loaded.cw_write, loaded["cw_write_record"], loaded["cw_site_text"])


# The first set lets other threads run, for engines that may wait; the second does not.
waiting_calls, quick_calls = _write_calls(library), _write_calls(quick)
# What the accelerator's cursor calls.
reader_calls = (library.cw_reader_next, library.cw_reader_close, library.cw_last_error)


def text(content: bytes) -> Text:
    """cw_str of a bytes object, which must outlive the call it is used in."""
    return Text(content, len(content))


def view(content: Any) -> bytes:
    """A copy of the bytes that a `Str` points to."""
    return ctypes.string_at(content.data, content.length) if content.length else b""


def timeout_ms(seconds: Any) -> int:
    """Milliseconds for C: None and infinity mean forever, less than 0 is 0."""
    if seconds is None:
        return FOREVER
    if seconds != seconds:
        raise ValueError("a timeout is no number")
    return int(max(0, min(seconds * 1000, FOREVER)))
