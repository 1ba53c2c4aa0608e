"""A fake of a server of application transactions (B-TXN-4, B-TXN-5): one POST a set, 200. Checks
every byte. It remembers ids: a transaction may come again with other events, but the same request
(Idempotency-Key) is stored once."""

import re
from datetime import datetime, timezone

from strict import Answer, Refused, need, parse, text

ID = re.compile(r"^TXN(-?\d+)-[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}$")
KEY = re.compile(r'^"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.\d+-\d+)?"$')
TIME = "%a, %d %b %Y %H:%M:%S GMT"
HEAD = ["apptxn/id", "apptxn/usecase", "apptxn/user-agent-device-make",
        "apptxn/user-agent-device-os", "apptxn/user-agent-device-os-version", "apptxn/logs"]
LOG = ["apptxnlog/usecase-event", "apptxnlog/timestamp", "apptxnlog/in-ctx-err-code"]
DESCRIPTION = "apptxnlog/in-ctx-err-desc"


class Fake:
    """settings: `content_type` and `authorization` in exact bytes; `path`; `events_max`,
    `body_max`; `any_key`: no key is required."""

    def __init__(self, settings):
        self.settings, self.stored, self.keys = settings, [], set()

    def answer(self, method, path, headers, body):
        """The server's answer to one request."""
        need(method == "POST", "method", 405)
        need(path == self.settings.get("path", path), "no such path", 404)
        wanted = self.settings.get("authorization", 'Token token="token"')
        if headers.get("authorization") != wanted:
            raise Refused(401, "who are you", {"WWW-Authenticate": 'Token realm="a \\"shop\\""'})
        wanted = self.settings.get("content_type",
                                   "application/apptxnset-v1+json;charset=UTF-8")
        need(headers.get("content-type") == wanted, headers.get("content-type", ""), 415)
        need("content-encoding" not in headers, "compressed", 415)
        key = headers.get("idempotency-key", "")
        need(KEY.match(key) or self.settings.get("any_key"), "Idempotency-Key")
        need(len(body) <= self.settings.get("body_max", 256 << 10), "too large", 413)
        string = text(body)
        document = parse(string)
        need(list(document) == ["apptxns"] and document["apptxns"], "apptxns, not empty")
        rows = [row for one in document["apptxns"] for row in self.rows(one)]
        ids = [one["apptxn/id"] for one in document["apptxns"]]
        need(len(set(ids)) == len(ids), "an id twice")
        need(len(rows) <= self.settings.get("events_max", 1000), "too many events", 413)
        if not key or key not in self.keys:
            self.keys.add(key)
            self.stored += rows
        return Answer(200)

    def rows(self, one):
        """A row an event."""
        need(list(one) == HEAD, f"members {list(one)}")
        found = ID.match(one["apptxn/id"])
        need(found, f"id {one['apptxn/id']!r}")
        need(type(one["apptxn/usecase"]) is int and one["apptxn/usecase"] == int(found[1]),
             "usecase")
        for name in HEAD[2:5]:
            need(isinstance(one[name], str), name)
        need(one["apptxn/logs"], "no events")
        for log in one["apptxn/logs"]:
            need(list(log) in (LOG, LOG + [DESCRIPTION]), f"members {list(log)}")
            need(type(log[LOG[0]]) is int, "event")
            code = log[LOG[2]]
            need(code is None or isinstance(code, str), "code")
            need(DESCRIPTION not in log or (code is not None
                                            and isinstance(log[DESCRIPTION], str)), "description")
            when = datetime.strptime(log[LOG[1]], TIME).replace(tzinfo=timezone.utc)
            need(when.strftime(TIME) == log[LOG[1]], f"timestamp {log[LOG[1]]!r}")
            yield {"id": one["apptxn/id"], "usecase": one["apptxn/usecase"],
                   "device": [one[name] for name in HEAD[2:5]], "event": log[LOG[0]],
                   "time": int(when.timestamp()), "code": code,
                   "description": log.get(DESCRIPTION)}
