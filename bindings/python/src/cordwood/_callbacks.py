"""The host's callables behind the C callbacks: one C function of each kind for the whole process.
It finds the callable by the number that the library hands back as `user`.

Nothing that the library may still call is therefore ever freed. A callable is released as soon as
it is no longer needed: with its target, or after its call. A released callable is never called;
any thread may enter. sys.unraisablehook shows whatever a callable raises; it goes no further.
"""
import itertools
import os
from typing import Any, Callable, Dict, NamedTuple, Optional

from . import _abi
from ._transport import Credentials, Transport, answer_challenge, send_by

Attempting = Callable[[str, int], None]
Completed = Callable[[str, int, int], None]
Condition = Callable[[], bool]
Drained = Callable[[], None]
Busy = Callable[[str, float], None]
Done = Callable[[int, Any], None]


class Target(NamedTuple):
    """A host's callables that observe a target or work for it."""
    attempting: Optional[Attempting] = None
    completed: Optional[Completed] = None
    condition: Optional[Condition] = None
    drained: Optional[Drained] = None
    credentials: Optional[Credentials] = None
    transport: Optional[Transport] = None
    busy: Optional[Busy] = None


_numbers = itertools.count(1)  # 0 is NULL, which ctypes shows as None
_targets: Dict[int, Target] = {}
_dones: Dict[int, Done] = {}
_NOBODY = Target()


def _of(user: Optional[int]) -> Target:
    return _targets.get(user or 0, _NOBODY)


def _attempting(user: Optional[int], archive: bytes, count: int) -> None:
    call = _of(user).attempting
    if call is not None:
        call(os.fsdecode(archive), count)


def _completed(user: Optional[int], archive: bytes, status: int, http: int) -> None:
    call = _of(user).completed
    if call is not None:
        call(os.fsdecode(archive), status, http)


def _condition(user: Optional[int]) -> bool:
    call = _of(user).condition
    return call is not None and bool(call())


def _drained(user: Optional[int]) -> None:
    call = _of(user).drained
    if call is not None:
        call()


def _credentials(user: Optional[int], target: bytes, challenge: Optional[bytes], out: Any) -> int:
    call = _of(user).credentials
    return _abi.E_NOT_FOUND if call is None else answer_challenge(call, target, challenge, out)


def _transport(user: Optional[int], raw: Any, response: Any) -> int:
    call = _of(user).transport
    return _abi.E_CLOSED if call is None else send_by(call, raw, response)


def _busy(user: Optional[int], target: bytes, delay_ms: int) -> None:
    call = _of(user).busy
    if call is not None:
        call(os.fsdecode(target), delay_ms / 1000)


def _done(user: Optional[int], status: int, raw: Any) -> None:
    call = _dones.pop(user or 0, None)
    if call is not None:
        call(status, raw[0])


_POINTERS = Target(_abi.ATTEMPTING(_attempting), _abi.COMPLETED(_completed),
                   _abi.CONDITION(_condition), _abi.DRAINED(_drained),
                   _abi.CREDENTIALS(_credentials), _abi.TRANSPORT(_transport),
                   _abi.BUSY(_busy))
_DONE = _abi.UPLOAD_DONE(_done)
_NO_DONE = _abi.UPLOAD_DONE()


def put_target(raw: _abi.TargetOptions, target: Target) -> int:
    """Sets the C functions for the target's callables; returns the number for forget_target."""
    number = next(_numbers)
    _targets[number] = target
    raw.user = number
    for name, call, pointer in zip(Target._fields, target, _POINTERS):
        if call is not None:
            setattr(raw, name, pointer)
    return number


def forget_target(number: Optional[int]) -> None:
    """Releases the target's callables: only calls that have already begun still run."""
    _targets.pop(number or 0, None)


def upload_async(handle: Any, done: Optional[Done]) -> int:
    """cw_upload_async; keeps `done` until it is called."""
    if done is None:
        return int(_abi.library.cw_upload_async(handle, _NO_DONE, None))
    number = next(_numbers)
    _dones[number] = done
    status = int(_abi.library.cw_upload_async(handle, _DONE, number))
    if status < 0:
        _dones.pop(number, None)
    return status
