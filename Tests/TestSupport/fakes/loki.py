"""A fake of Loki's push interface with its default limits. It merges lines of one stream with the
same time and text, as Loki does, and stores the good lines of a request that it answers 400."""

import re

from strict import Answer, Refused, content_type, need, parse, plain, text

NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
LINE_MAX, MESSAGE_MAX = 256 << 10, 4 << 20
METADATA_MAX, METADATA_COUNT_MAX, LABELS_MAX, LABEL_MAX = 64 << 10, 128, 15, 2048
UNTIL = (1 << 63) - 1


def check_labels(stream):
    """Refuses what Loki's label checks refuse."""
    need(isinstance(stream, dict) and stream, "error at least one label pair is required")
    need(len(stream) <= LABELS_MAX, "too many labels")
    for name, value in stream.items():
        need(NAME.match(name) and isinstance(value, str), f"label {name!r}")
        need(len(value.encode()) <= LABEL_MAX, f"label value too long: {name}")


class Fake:
    """settings: `oldest_ns`, lines before it are ignored; `tenant`, the X-Scope-OrgID needed;
    `metadata` false: structured metadata is not allowed."""

    def __init__(self, settings):
        self.settings, self.stored, self.known, self.merged = settings, [], set(), 0

    def answer(self, method, path, headers, body):
        """What the server says to one request."""
        need(method == "POST" and path == "/loki/api/v1/push", "no such path", 404)
        need(headers.get("x-scope-orgid") == self.settings.get("tenant"), "no org id", 401)
        content_type(headers, "application/json")
        content = plain(headers, body)
        if len(content) > MESSAGE_MAX:
            raise Refused(500, "rpc error: code = ResourceExhausted desc = trying to send message "
                               f"larger than max ({len(content)} vs. {MESSAGE_MAX})")
        push = parse(text(content))
        need(set(push) == {"streams"} and push["streams"], "streams")
        faults = {}
        for stream in push["streams"]:
            need(set(stream) == {"stream", "values"} and stream["values"], "stream and values")
            check_labels(stream["stream"])
            for value in stream["values"]:
                fault = self.line(stream["stream"], value)
                if fault:
                    said, count = faults.get(fault[0], (fault[1], 0))
                    faults[fault[0]] = (said, count + 1)
        if faults:  # as the distributor of Loki 3 groups what it does not let through
            raise Refused(400, "; ".join(f"{count} errors like: {said}"
                                         for said, count in faults.values()) + "\n")
        return Answer(204)

    def line(self, labels, value):
        """Stores one line, or says what is wrong with it: (the fault's name, its words)."""
        need(isinstance(value, list) and len(value) in (2, 3), "a value is [time, line, metadata]")
        time, line = value[:2]
        metadata = value[2] if len(value) == 3 else {}
        need(isinstance(time, str) and re.match(r"^\d+$", time) and isinstance(line, str), "value")
        need(int(time) <= UNTIL, "time")
        need(isinstance(metadata, dict), "metadata")
        for name, inner in metadata.items():
            need(NAME.match(name) and isinstance(inner, str), f"metadata {name!r}")
            need(name not in labels, f"metadata hides label {name}")
        if metadata and not self.settings.get("metadata", True):
            return ("off", "stream '{}' includes structured metadata, but this feature is "
                           "disallowed. Please see `limits_config.allow_structured_metadata`")
        size = sum(len(n.encode()) + len(v.encode()) for n, v in metadata.items())
        if size > METADATA_MAX:
            return "large", f"stream '{{}}' has structured metadata too large: '{size}' bytes"
        if len(metadata) > METADATA_COUNT_MAX:
            return "many", "stream '{}' has too many structured metadata labels"
        if len(line.encode()) > LINE_MAX:
            return "long", f"max entry size '{LINE_MAX}' bytes exceeded for stream '{{}}'"
        if int(time) < self.settings.get("oldest_ns", 0):
            return "old", (f"entry for stream '{{}}' has timestamp too old: {time}, oldest "
                           f"acceptable timestamp is: {self.settings['oldest_ns']}")
        identity = (tuple(sorted(labels.items())), time, line)
        if identity in self.known:
            self.merged += 1
            return None
        self.known.add(identity)
        self.stored.append({"labels": labels, "time": time, "line": line, "metadata": metadata})
        return None
