"""A Python host that crashes in C: `python_host.py STORE MODE WHEN`. WHEN faulthandler is enabled:
never, before or after the crash handler is installed."""

import ctypes
import faulthandler
import sys

import cordwood

store, mode, when = sys.argv[1:]
engine = cordwood.open(store)
engine.logger("host").info("before")
if when == "before":
    faulthandler.enable()
if mode != "plain":
    engine.install_crash_handler()
if when == "after":
    faulthandler.enable()
ctypes.string_at(16)
