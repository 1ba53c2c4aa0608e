"""A record that was read, and how it is made from the library's view.

`Record` is a named tuple of copies. The accelerator has a type of its own that copies once and
makes members when they are used (speed/records.h); `dress` gives it the rest of the named tuple's
attributes, so that both are used alike. Pure; any thread.
"""
import json
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, NamedTuple, Optional, Union

from . import _abi, _levels

FieldValue = Union[int, float, bool, str, None, List[Any], Dict[str, Any]]

KINDS = ("log", "gap", "lifecycle", "transaction", "http")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TRUNCATED, _NOT_UTF8, _UNVERIFIED, _LATE = 1, 2, 4, 8


class Record(NamedTuple):
    """One record that was read."""
    time_ns: int  # UTC, ns since 1970
    level_number: int  # 1 … 24
    logger: str
    message: str  # bytes that are not UTF-8 become U+FFFD here: see message_bytes
    pid: int
    tid: int
    file: Optional[str]
    line: Optional[int]
    function: Optional[str]
    fields: Dict[str, FieldValue]  # the record's own, its context, exception.type …
    trace_id: Optional[str]  # 32 hex digits
    span_id: Optional[str]  # 16 hex digits
    trace_flags: int
    kind: str  # log gap lifecycle transaction http
    sequence: int  # grows within one thread of one process
    process_name: str
    message_bytes: bytes
    original_length: int  # of the message, bytes, before it was cut
    flags: int  # CW_VIEW_…
    resource: Dict[str, str]  # of the program that logs: service.name, host.name, user.id …
    record_id: str  # 48 hex digits; the same live, sealed and archived, and no other record's

    @property
    def process(self) -> str:
        """process_name, as cat --json names it."""
        return self.process_name

    @property
    def service(self) -> Optional[str]:
        """service.name of the resource."""
        return self.resource.get("service.name")

    @property
    def host(self) -> Optional[str]:
        """host.name of the resource."""
        return self.resource.get("host.name")

    @property
    def time(self) -> datetime:
        """Aware, UTC; microseconds: time_ns has the rest."""
        return EPOCH + timedelta(microseconds=self.time_ns // 1000)

    @property
    def level(self) -> str:
        """ "INFO", "INFO+2"."""
        return _levels.name(self.level_number)

    @property
    def truncated(self) -> bool:
        """The message was cut; original_length is its full length."""
        return bool(self.flags & _TRUNCATED)

    @property
    def unverified(self) -> bool:
        """After loss of power: no sync covers the record; it may be incomplete."""
        return bool(self.flags & _UNVERIFIED)

    @property
    def late(self) -> bool:
        """A following reader showed later records before this one."""
        return bool(self.flags & _LATE)


Record.__module__ = "cordwood"  # as pickle finds it, whichever of the two is there


def _text(raw: _abi.Str) -> str:
    return _abi.view(raw).decode("utf-8", "replace")


def _value(field: _abi.ReadField) -> FieldValue:
    kind, value = field.type, field.value
    if kind == _abi.TYPE_INT:
        return int(value.i)
    if kind == _abi.TYPE_UINT:
        return int(value.u)
    if kind == _abi.TYPE_DOUBLE:
        return float(value.d)
    if kind == _abi.TYPE_BOOL:
        return bool(value.b)
    return json_value(_text(value.s)) if kind == _abi.TYPE_JSON else _text(value.s)


def json_value(text: str) -> FieldValue:
    """The value of JSON text; the text itself if it holds a number that Python refuses to read
    (thousands of digits)."""
    try:
        found: FieldValue = json.loads(text)
    except ValueError:
        return text
    return found


def _fields(view: _abi.RecordView) -> Dict[str, FieldValue]:
    """The first field of a key counts: the record's own fields override the context's."""
    found: Dict[str, FieldValue] = {}
    for index in range(view.field_count):
        field = view.fields[index]
        found.setdefault(_text(field.key), _value(field))
    return found


def resource_of(view: _abi.RecordView) -> Dict[str, str]:
    found = (view.resource[index] for index in range(view.resource_count))
    return {_text(field.key): _text(field.value.s) for field in found}


def _hex(raw: Any) -> Optional[str]:
    content = bytes(raw)
    return content.hex() if any(content) else None


def record_of(view: _abi.RecordView, resource: Dict[str, str]) -> Record:
    message = _abi.view(view.message)
    return Record(
        time_ns=view.time_ns, level_number=view.level, logger=_text(view.logger),
        message=message.decode("utf-8", "replace"), pid=view.process_id, tid=view.thread_id,
        file=_text(view.file) or None, line=view.line or None,
        function=_text(view.function) or None, fields=_fields(view),
        trace_id=_hex(view.trace_id), span_id=_hex(view.span_id), trace_flags=view.trace_flags,
        kind=KINDS[view.kind] if view.kind < len(KINDS) else str(view.kind),
        sequence=view.sequence, process_name=_text(view.process_name), message_bytes=message,
        original_length=view.original_length, flags=view.flags, resource=resource,
        record_id=bytes(view.record_id).hex())


def dress(kind: Any) -> Any:
    """Adds the members that the accelerator's type leaves to the named tuple."""
    def make(cls: Any, values: Any) -> Any:
        return cls(*values)

    def replace(self: Any, **members: Any) -> Any:
        return type(self)(*self._whole._replace(**members))

    kind._make = classmethod(make)
    kind._replace = kind.__replace__ = replace
    kind._asdict = lambda self: self._whole._asdict()
    kind.count = lambda self, value: self._whole.count(value)
    kind.index = lambda self, *arguments: self._whole.index(*arguments)
    for name in ("_fields", "_field_defaults", "__annotations__", "__match_args__", "__doc__"):
        if hasattr(Record, name):  # __match_args__: from 3.10 on
            setattr(kind, name, getattr(Record, name))
    for name, found in vars(Record).items():
        if isinstance(found, property) and not hasattr(kind, name):
            setattr(kind, name, found)
    return kind
