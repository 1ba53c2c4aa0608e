#!/usr/bin/env python3
"""Records a real server's answers in recorded.json, with which dialects are tested.

    record.py SERVER VERSION URL [KIND]    sends the requests of that server's entries, of that kind
                                           or all, to URL, and puts its answers and that version
                                           into recorded.json

An entry: `kind`, `case`, `request` (path, headers, body); `entries`, the records in the body;
`answer` (status, headers, body); `means`, the dialect's expected result. An entry with a `source`
has no request: its answer was read there."""

import http.client
import json
import re
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

RECORDED = Path(__file__).resolve().parent / "recorded.json"
# The others do not reveal the fate of the body.
HEADERS = ("content-type", "location", "retry-after", "www-authenticate")


def load():
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def body_of(request):
    """`hex:…` means bytes. {now} and {date} are filled in; {x*N} becomes N times x."""
    body = request["body"]
    if body.startswith("hex:"):
        return bytes.fromhex(body[4:])
    now = time.time_ns()
    body = body.replace("{now}", str(now)).replace(
        "{date}", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now // 10**9)))
    return re.sub(r"\{x\*(\d+)\}", lambda found: "x" * int(found[1]), body).encode()


def ask(url, request):
    """The answer of a real server."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("POST", parts.path + request["path"], body_of(request), request["headers"])
    answer = connection.getresponse()
    text = answer.read().decode()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return {"status": answer.status,
            "headers": {name: headers[name] for name in HEADERS if name in headers},
            "body": text}


def main():
    server, version, url, *kinds = sys.argv[1:]
    entries = load()
    for entry in entries:
        if (entry["server"] == server and "request" in entry
                and (not kinds or entry["kind"] in kinds)):
            entry["version"] = version
            entry["answer"] = ask(url, entry["request"])
            print(entry["kind"], entry["case"], entry["answer"])
    RECORDED.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
