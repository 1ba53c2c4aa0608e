"""A host with targets. It prints a JSON line for each callback about an archive: the callback's
name ("completed" or "removed"), the archive, the target, and the status or reason.

    removedhost.py STORE OPTIONS TARGETS

OPTIONS is JSON for `cordwood.open`, with "told": false for no `archive_removed`. TARGETS is JSON:
{name: URL}. Writes "ready" when they are added, and ends when stdin does."""

import json
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings/python/src"))
import cordwood  # noqa: E402  pylint: disable=wrong-import-position

LOCK = threading.Lock()


def say(*words):
    with LOCK:
        print(json.dumps(words), flush=True)


def main():
    options, targets = json.loads(sys.argv[2]), json.loads(sys.argv[3])
    if options.pop("told", True):
        options["archive_removed"] = lambda name, why: say("removed", name, "", why)
    engine = cordwood.open(sys.argv[1], upload_interval_s=1, **options)
    for name, url in targets.items():
        engine.add_target(
            url, kind="http", format="ndjson", name=name, completed=lambda archive, status, http,
            name=name: say("completed", archive, name, int(status)))
    say("ready")
    sys.stdin.read()
    engine.close()


main()
