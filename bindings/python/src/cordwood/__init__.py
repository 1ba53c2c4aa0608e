"""Cordwood: an embeddable logging engine. A record is kept when the call returns.

    import cordwood
    with cordwood.open("logs") as engine:
        log = engine.logger("app.db")
        log.info("order %d", 7, price=1.5)
    for record in cordwood.read("logs", level="warn"):
        print(record.time, record.message)
"""
from ._abi import library as _library
from ._accelerator import Logger, Record, accelerated
from ._adapters import LoguruSink, StructlogProcessor
from ._context import context, trace
from ._engine import Engine, Stats, UploadResult, open
from ._errors import (ArgumentError, ClosedError, CordwoodError, DamagedError, DamageWarning,
                      EncryptedError, NotFoundError, StoreError, UploadError, WaitTimeout)
from ._handler import Handler
from ._capture.hooks import HTTPHooks, conversation, install_http_hooks
from ._upload_errors import (ClientError, ErrorDetail, Redirection, RequestFailed, ServerError,
                             TransferError, UnknownOutcome, outcome_text)
from ._levels import (CRITICAL, DEBUG, ERROR, FATAL, INFO, NOTICE, OFF, TRACE, WARN, WARNING)
from ._capture.middleware import ASGIMiddleware, WSGIMiddleware
from ._network.errors import (NetworkClientError, NetworkError, NetworkRedirection,
                              NetworkRequestFailed, NetworkServerError, NetworkUnknownOutcome)
from ._reader import Reader, read
from ._target import Target
from ._transaction import (TRANSACTION_HEADER, Transaction, TransactionInfo, parse_traceparent)
from ._transport import Challenge, parse_challenge

__version__: str = _library.cw_version_string().decode()

__all__ = [
    "ArgumentError", "CRITICAL", "Challenge", "ClientError", "ClosedError", "CordwoodError",
    "DEBUG", "DamageWarning", "DamagedError", "ERROR", "EncryptedError", "Engine", "ErrorDetail",
    "FATAL", "Handler", "INFO", "Logger", "LoguruSink", "NOTICE", "NotFoundError", "OFF", "Reader",
    "Record", "Redirection", "RequestFailed", "ServerError", "Stats", "StoreError",
    "StructlogProcessor", "TRACE", "TRANSACTION_HEADER", "Target", "Transaction",
    "TransactionInfo", "TransferError", "UnknownOutcome", "UploadError", "UploadResult", "WARN",
    "WARNING", "WaitTimeout", "accelerated", "context", "open", "outcome_text", "parse_challenge",
    "parse_traceparent", "read", "trace",
]
__all__ += ["ASGIMiddleware", "HTTPHooks", "WSGIMiddleware", "conversation", "install_http_hooks"]
__all__ += ["NetworkClientError", "NetworkError", "NetworkRedirection", "NetworkRequestFailed",
            "NetworkServerError", "NetworkUnknownOutcome"]
