"""A fake of Loggly's bulk endpoint: 5 MB a batch, 1 MB an event, never compressed; 200 with
`{"response":"ok"}`."""

import re
from urllib.parse import unquote

from strict import Answer, content_type, need, parse, text

PATH = re.compile(r"^/bulk/([^/]*)(?:/tag/([^/]+))?/?$")
TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)$")
BATCH_MAX, EVENT_MAX = 5_000_000, 1_000_000


class Fake:
    """settings: `token` that the URL must contain."""

    def __init__(self, settings):
        self.settings, self.stored = settings, []

    def answer(self, method, path, headers, body):
        """The server's answer to one request."""
        need(method == "POST", "method", 405)
        found = PATH.match(path)
        need(found, "no such path", 404)
        need(found[1] == self.settings.get("token", found[1]) and found[1], "token", 403)
        need("authorization" not in headers, "the token belongs into the URL")
        need("content-encoding" not in headers, "compressed", 400)
        need(len(body) <= BATCH_MAX, "batch too large", 413)
        content_type(headers, "text/plain", "application/json")
        string = text(body)
        need(string.endswith("\n"), "no newline at the end")
        rows = []
        tags = [unquote(tag) for tag in (found[2] or "").split(",") if tag]
        for line in string[:-1].split("\n"):
            need(line and len(line.encode()) <= EVENT_MAX, "an event over 1 MB, or none")
            row = {"text": line}
            if headers["content-type"].startswith("application/json"):
                row = parse(line)
                need(isinstance(row, dict), "no object")
                need(TIMESTAMP.match(row.get("timestamp", "")), "timestamp")
            rows.append({"tags": tags, "event": row})
        self.stored += rows
        return Answer(200, {"response": "ok"}, {"Content-Type": "application/json"})
