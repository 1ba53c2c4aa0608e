"""Application transactions: a use case, its events, and one id that client and server share.

    with engine.transaction(17) as checkout:
        requests.post(url, headers=checkout.headers())
        checkout.event(1, error_code="42", error_description="Baad!")

Inside `with` every record carries the id and the trace ids, through contextvars, even in asyncio
tasks that are started there. Members of an enum.IntEnum serve as numbers and name them. Any thread
may log to a transaction. A transaction that was never ended ends when it is collected.
"""
import ctypes
import enum
import operator
import os
import threading
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple, Type

from . import _abi
from ._context import Layer, TraceIds, enter, leave
from ._errors import ArgumentError, ClosedError, check
from ._text import encode

TRANSACTION_HEADER = "X-Transaction-Id"
_EVENT_NONE = -(1 << 31)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TransactionInfo(NamedTuple):
    """A transaction as the store has it, with the times of its first and last record, UTC."""
    id: str
    usecase: int
    usecase_name: str
    first_ns: int
    last_ns: int
    events: int
    errors: int
    ended: bool

    @property
    def first(self) -> datetime:
        """To the microsecond."""
        return _EPOCH + timedelta(microseconds=self.first_ns // 1000)

    @property
    def last(self) -> datetime:
        """To the microsecond."""
        return _EPOCH + timedelta(microseconds=self.last_ns // 1000)


def _number(what: str, value: Any) -> int:
    """Refuses numbers that do not fit: ctypes cuts them silently."""
    try:
        number = operator.index(value.value if isinstance(value, enum.Enum) else value)
    except TypeError:
        raise ArgumentError(
            _abi.E_ARGUMENT, f"{what} takes a whole number or a member of an IntEnum, "
            f"not {value!r} ({type(value).__name__})") from None
    if not -(1 << 31) <= number < 1 << 31:
        raise ArgumentError(_abi.E_ARGUMENT, f"{what} {number} does not fit 32 bits")
    return number


def _text(what: str, value: Optional[str]) -> Optional[bytes]:
    """Text for C, which would cut it at a NUL silently. Lone surrogates as in messages."""
    raw = encode(value) if isinstance(value, str) else value
    if raw is not None and b"\0" in raw:
        raise ArgumentError(_abi.E_ARGUMENT, f"{what} holds a NUL")
    return raw


class Transaction:
    """One use case under way. As a context manager, it ends with the `with` block."""

    id: str
    """ "TXN17-586AB00B-…" """
    usecase: int

    def __init__(self, engine: "Transactions", handle: ctypes.c_void_p) -> None:
        self._engine = engine
        self._handle = handle
        self._process = os.getpid()
        # A handle must not be used while it is being ended: that would crash the interpreter.
        self._lock = threading.Lock()
        self._entered = 0  # in all contexts
        self._ended: List[bool] = []  # not empty: no context has the transaction in force any more
        self._calls = _abi.library if engine._blocks else _abi.quick
        raw: bytes = _abi.library.cw_transaction_id(handle)
        self.id = raw.decode()
        self.usecase = int(_abi.library.cw_transaction_usecase(handle))
        buffer = ctypes.create_string_buffer(56)
        check(_abi.library.cw_transaction_traceparent(handle, buffer))
        self.traceparent = buffer.value.decode()
        """The W3C header of a request made inside."""
        parts = self.traceparent.split("-")
        ids = TraceIds(bytes.fromhex(parts[1]), bytes.fromhex(parts[2]), int(parts[3], 16))
        self._layer = Layer({"txn.id": self.id}, ids, self._ended)

    def event(self, event: int, error_code: Optional[str] = None,
              error_description: Optional[str] = None) -> None:
        """Logs an event at the present time. The event survives the death of the process once this
        returns. error_code: marks it as an error. Raises ArgumentError, StoreError (disk full),
        ClosedError."""
        number = _number("Transaction.event: event", event)
        if isinstance(event, enum.Enum):
            self._engine._name_transaction(self.usecase, number, event.name)
        code = _text("error_code", error_code)
        description = _text("error_description", error_description)
        with self._lock:
            if not self._handle.value:
                raise ClosedError(_abi.E_CLOSED, f"{self.id} has ended here")
            status = self._calls.cw_transaction_event(self._handle, number, code, description)
        check(status)

    def headers(self, name: str = TRANSACTION_HEADER) -> Dict[str, str]:
        """The headers by which a server joins the transaction of a request."""
        return {name: self.id, "traceparent": self.traceparent}

    def end(self) -> None:
        """Records the duration. The transaction takes no more events here; it continues elsewhere.
        Idempotent; raises nothing if the engine is closed. A forked child only releases it."""
        if os.getpid() != self._process:  # the parent ends it; the lock may be held for good
            self._handle.value = None
            self._ended.append(True)
            return
        with self._lock:
            if not self._handle.value:
                return
            status = _abi.library.cw_transaction_end(self._handle)
            self._ended.append(True)
        if status != _abi.E_CLOSED:
            check(status)

    def __enter__(self) -> "Transaction":
        with self._lock:
            self._entered += 1
        enter(self._layer)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trail: Optional[TracebackType]) -> None:
        leave(self._layer)
        if os.getpid() != self._process:
            return
        with self._lock:
            self._entered -= 1
            is_last = self._entered == 0
        if is_last:
            self.end()

    def __del__(self) -> None:
        try:
            self.end()
        except Exception:  # collected: no caller can see it
            pass

    def __repr__(self) -> str:
        return f"<Transaction {self.id}>"


class Transactions:
    """The transaction methods of an engine; Engine inherits them."""

    _handle: Any
    _blocks: bool
    _txn_names: Set[Tuple[int, int]]

    def transaction(self, usecase: int) -> Transaction:
        """Begins a transaction of the use case; a member of an IntEnum also provides its name."""
        number = _number("transaction: usecase", usecase)
        if isinstance(usecase, enum.Enum):
            self._name_transaction(number, _EVENT_NONE, usecase.name)
        handle = ctypes.c_void_p()
        check(_abi.library.cw_transaction_begin(self._handle, number, handle))
        return Transaction(self, handle)

    def join_transaction(self, transaction_id: str) -> Transaction:
        """Joins a transaction that another process, or an earlier run, began: its events belong
        to it, even after it was sent. Raises ArgumentError for an invalid id."""
        handle = ctypes.c_void_p()
        check(_abi.library.cw_transaction_join(self._handle, _text("the id", transaction_id),
                                               handle))
        return Transaction(self, handle)

    def name_transaction(self, usecase: int, name: Optional[str],
                         event: Optional[int] = None) -> None:
        """Names a use case, or one of its events, for people; None removes the name."""
        number = _EVENT_NONE if event is None else _number("name_transaction: event", event)
        entry = _abi.TransactionName(_number("name_transaction: usecase", usecase), number,
                                     _text("name", name))
        check(_abi.library.cw_transaction_names_set(self._handle, entry, 1))

    def _name_transaction(self, usecase: int, event: int, name: str) -> None:
        """Registers the name of an enum's member, once. If the name is too long, or one too many,
        the number is used alone."""
        if (usecase, event) in self._txn_names:
            return
        self._txn_names.add((usecase, event))
        try:
            self.name_transaction(usecase, name, None if event == _EVENT_NONE else event)
        except ArgumentError as error:
            if error.status != _abi.E_LIMIT:
                raise

    def transactions(self) -> List[TransactionInfo]:
        """The store's transactions, oldest first, including those of other processes and excluding
        deleted ones. Reads the store. Raises DamagedError if a place of it cannot be read."""
        found: List[TransactionInfo] = []

        def take(_: Any, raw: Any) -> bool:
            one = raw.contents
            found.append(TransactionInfo(
                one.id.decode(), one.usecase, one.usecase_name.decode("utf-8", "replace"),
                one.first_ns, one.last_ns, one.events, one.errors, one.is_ended))
            return True

        check(_abi.library.cw_transactions_list(self._handle, _abi.TRANSACTION(take), None))
        return found

    def delete_transactions(self, id: Optional[str] = None) -> None:
        """Deletes a transaction, or (None) every transaction of the store, for example at a logout:
        records logged up to now are no longer listed or sent."""
        check(_abi.library.cw_transactions_delete(self._handle, _text("the id", id)))

    def flush_transactions(self, timeout: Optional[float] = None) -> Any:
        """Like upload, but only for targets of the kind "transactions"; `.records` of the
        UploadResult counts the accepted events."""
        return self._sent(_abi.library.cw_transactions_flush, timeout)

    def _sent(self, call: Any, timeout: Optional[float]) -> Any:
        raise NotImplementedError


def parse_traceparent(header: str) -> TraceIds:
    """Parses a client's header: `with cordwood.trace(*parse_traceparent(header)):`. Strict; raises
    ArgumentError for an invalid header."""
    trace_id, span_id = (ctypes.c_uint8 * 16)(), (ctypes.c_uint8 * 8)()
    flags = ctypes.c_uint8()
    check(_abi.library.cw_traceparent_parse(_text("traceparent", header), trace_id, span_id,
                                            flags))
    return TraceIds(bytes(trace_id), bytes(span_id), flags.value)
