"""A fake of Splunk's HTTP Event Collector (`/services/collector/event`). Like Splunk, it stores the
events before a refused one (seen with Splunk 7, moby/moby #35862)."""

import re

from strict import Answer, Refused, concatenated, content_type, plain, text

KEYS = {"time", "host", "source", "sourcetype", "index", "event", "fields"}
RESERVED = {"time", "host", "source", "sourcetype", "index", "linecount", "punct"}


def fail(status, code, words, **more):
    """An error in Splunk's words."""
    return Answer(status, {"text": words, "code": code, **more})


class Fake:
    """settings: `token`; `busy`: that many first requests are answered 503 code 9; `indexes` that
    exist; `channel`, the required one; `body_max`."""

    def __init__(self, settings):
        self.settings, self.stored, self.busy = settings, [], settings.get("busy", 0)

    def answer(self, method, path, headers, body):
        """The server's answer to one request."""
        if method != "POST" or path != "/services/collector/event":
            return fail(404, 404, "The requested URL was not found on this server.")
        given = headers.get("authorization")
        if given is None:
            return fail(401, 2, "Token is required")
        if not given.startswith("Splunk "):
            return fail(401, 3, "Invalid authorization")
        if given != f"Splunk {self.settings.get('token', 'token')}":
            return fail(403, 4, "Invalid token")
        channel = self.settings.get("channel")
        if channel and headers.get("x-splunk-request-channel") != channel:
            return fail(400, 10, "Data channel is missing")
        if self.busy > 0:
            self.busy -= 1
            return fail(503, 9, "Server is busy")
        if len(body) > self.settings.get("body_max", 1_000_000):
            return fail(413, 27, "Request entity too large")
        try:
            content_type(headers, "application/json")
            events = concatenated(text(plain(headers, body)))
        except Refused as error:
            return fail(400, 6, f"Invalid data format: {error.text}")
        if not events:
            return fail(400, 5, "No data")
        for number, event in enumerate(events):
            fault = self.check(event)
            if fault:
                return fail(400, *fault, **{"invalid-event-number": number})
            self.stored.append(event)
        return fail(200, 0, "Success")

    def check(self, event):
        """Code and words for what is wrong with an event."""
        if not isinstance(event, dict) or set(event) - KEYS:
            return 6, "Invalid data format"
        if "event" not in event:
            return 12, "Event field is required"
        if event["event"] in ("", None, {}):
            return 13, "Event field cannot be blank"
        if not isinstance(event.get("time"), (int, float)):
            return 6, "Invalid data format"
        if "index" in event and event["index"] not in self.settings.get("indexes", ["main"]):
            return 7, "Incorrect index"
        for name, value in event.get("fields", {}).items():
            flat = isinstance(value, str) or (
                isinstance(value, list) and all(isinstance(inner, str) for inner in value))
            if not flat or name in RESERVED or not re.match(r"^[A-Za-z][A-Za-z0-9_.:-]*$", name):
                return 15, f"Error in handling indexed fields: {name!r}"
        return None
