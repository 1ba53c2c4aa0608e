"""Counts the looks of an engine at its store, in any process: the kernel reports each open of a
file (inotify). A test that waits for looks, not for seconds, waits long enough on any machine."""

import ctypes
import os
import select
import struct
import time

from cases import Failed

IN_OPEN, IN_CLOSE_NOWRITE = 0x20, 0x10
HEAD = struct.Struct("iIII")  # the watch, what happened, a cookie, the length of the name
SYSTEM = ctypes.CDLL(None, use_errno=True)
SECONDS_MAX = 60


def looks(store, times, name="store"):
    """Returns when this file of the store has been opened that often from now on. The uploader
    reads `store`, which holds the consent, each time it looks for work: once targets have been
    added, after each archive, and in each interval; twice while no consent is given."""
    descriptor = SYSTEM.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    # The directory, since a file may be replaced. Without the closes, which nobody counts, the
    # kernel would report two opens in a row as one.
    if descriptor < 0 or SYSTEM.inotify_add_watch(
            descriptor, os.fsencode(store), IN_OPEN | IN_CLOSE_NOWRITE) < 0:
        raise OSError(ctypes.get_errno(), f"inotify on {store}")
    try:
        seen, end = 0, time.monotonic() + SECONDS_MAX
        while seen < times:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise Failed(f"{name} was opened {seen} times of {times} within {SECONDS_MAX} s")
            seen += opens(os.read(descriptor, 1 << 16), os.fsencode(name))
    finally:
        os.close(descriptor)


def opens(events, name):
    """How many of the events are opens of that file."""
    at = count = 0
    while at < len(events):
        _, what, _, length = HEAD.unpack_from(events, at)
        at += HEAD.size + length
        count += bool(what & IN_OPEN) and events[at - length:at].rstrip(b"\0") == name
    return count
