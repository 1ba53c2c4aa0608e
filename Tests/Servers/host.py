"""A host of the Python binding under remote control: one JSON command per line on standard input,
one JSON answer per line on standard output. Started by store.Host. Collects callbacks of targets
and of the engine until they are requested. One thread."""

import base64
import json
import os
import random
import sys
import threading
import time

import cordwood

engine = None
events = []
lock = threading.Lock()
HOSTILE = [
    'plain', '', 'quote " and \\ back', 'new\nline', 'cr\r', 'tab\t', 'nul\0end', '#######',
    "a'b; DROP TABLE logs", '{"json": [1, 2]}', '<xml/>&amp;', 'grüße 世界 🪵', '\u2028\u2029',
    '%d %s {} ${x}', '\x1b[31mred', '../../etc/passwd', ' ' * 40, '\ufeffbom', '=1+1', '\x7f',
]


def note(*words):
    with lock:
        events.append(list(words))


def status_of(error):
    return {"status": error.status_name, "text": str(error),
            "outcome": getattr(error, "outcome", None),
            "result": getattr(error, "result", None) and error.result._asdict()}


def do_open(store, **options):
    global engine
    engine = cordwood.open(store, archive_removed=lambda name, why: note("removed", name, why),
                           **options)


def do_target(url, note_callbacks=True, tokens=None, **options):
    if tokens:
        queue = list(tokens)
        options["credentials"] = lambda *_: note("asked") or (queue.pop(0) if queue else None)
    return engine.add_target(
        url, attempting=lambda name, attempt: note("attempting", name, attempt),
        completed=lambda name, status, http: note("completed", name, status, http), **options)


def do_hostile(count, seed, logger="app.hostile"):
    """Messages, fields and logger names that break careless encoders."""
    chance = random.Random(seed)
    for number in range(count):
        text = HOSTILE[number % len(HOSTILE)]
        log = engine.logger(f"{logger}.{number % 3}")
        fields = {"number": number, "text": chance.choice(HOSTILE), "share": chance.random(),
                  "is": bool(number % 2), "large": 2**63 - 1, "key with = : + space": number}
        name = ("debug", "info", "warning", "error")[number % 4]
        getattr(log, name)("%s", f"{number} {text}", **fields)


def do_write(messages, logger="app"):
    log = engine.logger(logger)
    for message in messages:
        log.info("%s", message)


def do_fill(bytes, line=64 << 10, logger="app.fill"):
    """Records that no codec makes smaller."""
    log = engine.logger(logger)
    written = 0
    while written < bytes:
        text = base64.b64encode(os.urandom(line * 3 // 4)).decode()
        log.info("%s", text)
        written += len(text)
    return written


def do_upload(timeout=60):
    try:
        return {"status": "CW_OK", "result": engine.upload(timeout=timeout)._asdict()}
    except cordwood.CordwoodError as error:
        return status_of(error)


def do_until(word, count, seconds=30):
    """Waits for that many events of that word."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with lock:
            if sum(event[0] == word for event in events) >= count:
                return True
        time.sleep(0.005)
    return False


def do_memory(forget=False):
    """Peak of resident memory in KiB since the last `forget`."""
    if forget:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        words = dict(line.split(":", 1) for line in file)
    return {name: int(words[name].split()[0]) for name in ("VmHWM", "VmRSS")}


def do_events():
    with lock:
        found = list(events)
        events.clear()
    return found


def do_stats():
    return engine.stats()._asdict()


COMMANDS = {
    "open": do_open, "target": do_target, "hostile": do_hostile, "write": do_write,
    "fill": do_fill, "upload": do_upload, "until": do_until, "memory": do_memory,
    "events": do_events, "stats": do_stats,
    "roll": lambda: engine.roll(), "wait": lambda timeout=60: engine.archive_wait(timeout),
    "resource": lambda values: [engine.set_resource(*pair) for pair in values.items()] and None,
    "consent": lambda word: engine.set_consent(word),
    "flush": lambda: engine.flush(timeout=30), "close": lambda: engine.close(30),
    "remove_target": lambda name: engine.remove_target(name),
}


def main():
    for line in sys.stdin:
        words = json.loads(line)
        try:
            answer = {"ok": COMMANDS[words.pop("do")](**words)}
        except cordwood.CordwoodError as error:
            answer = {"error": status_of(error)}
        except (TypeError, ValueError) as error:
            answer = {"refused": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
