"""A fake of SAP Mobile Services' log upload: 204, or 400 for a line that is not in SAP's form, 403
if the policy is off."""

import re
from urllib.parse import parse_qs, unquote, urlsplit

from strict import Answer, Refused, content_type, lines, need, plain, text

PATH = re.compile(r"^/mobileservices/application/([^/]+)/clientlogs/v1/runtime/log/application/"
                  r"([^/]+)$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$")
SEVERITIES = {"DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
NAMES = ("time", "severity", "correlation", "source", "location", "message")


class Fake:
    """settings: `policy` "off" answers 403."""

    def __init__(self, settings):
        self.settings, self.stored = settings, []

    def answer(self, method, path, headers, body):
        """The server's answer to one request."""
        need(method == "POST", "method", 405)
        parts = urlsplit(path)
        found = PATH.match(parts.path)
        need(found, "no such path", 404)
        device = parse_qs(parts.query, strict_parsing=True).get("deviceId", [""])
        need(len(device) == 1 and device[0], "deviceId")
        if self.settings.get("policy") == "off":
            raise Refused(403, "log upload is disabled")
        content_type(headers, "text/plain")
        rows = []
        for line in lines(text(plain(headers, body))):
            need(line.count("#") == 7 and line[0] == line[-1] == "#", f"seven #: {line[:200]!r}")
            need("\r" not in line, "a carriage return")
            row = dict(zip(NAMES, line[1:-1].split("#")))
            need(TIME.match(row["time"]), f"time {row['time']!r}")
            need(row["severity"] in SEVERITIES, f"severity {row['severity']!r}")
            row.update(application=unquote(found[1]), application_id=unquote(found[2]),
                       device=device[0])
            rows.append(row)
        self.stored += rows
        return Answer(204)
