"""A fake of Loki's push interface with its default limits. Like Loki it merges lines of one stream
with the same time and text, and stores the good lines of a request that it answers 400, but none of
a stream with bad labels. As of Loki 3.8 (pkg/distributor, pkg/validation, pkg/util/errors)."""

import re
from collections import Counter
from datetime import datetime, timezone

from strict import Answer, Refused, content_type, need, parse, plain, text

NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
LINE_MAX, MESSAGE_MAX = 256 << 10, 4 << 20
METADATA_MAX, METADATA_COUNT_MAX, LABELS_MAX, LABEL_MAX = 64 << 10, 128, 15, 2048
UNTIL = (1 << 63) - 1


def text_of(stream):
    """A stream as named in errors."""
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(stream.items())) + "}"


def day(time):
    """Nanoseconds as shown in errors."""
    return datetime.fromtimestamp(int(time) // 10**9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Fake:
    """settings: `oldest_ns`, lines before it are ignored; `tenant`, the required X-Scope-OrgID;
    `metadata` false: structured metadata is not allowed; `enforced`: a label that every stream
    needs."""

    def __init__(self, settings):
        self.settings, self.stored, self.known, self.merged = settings, [], set(), 0

    def answer(self, method, path, headers, body):
        """The server's answer to one request."""
        need(method == "POST" and path == "/loki/api/v1/push", "no such path", 404)
        need(headers.get("x-scope-orgid") == self.settings.get("tenant"), "no org id", 401)
        content_type(headers, "application/json")
        content = plain(headers, body)
        if len(content) > MESSAGE_MAX:
            raise Refused(500, "rpc error: code = ResourceExhausted desc = trying to send message "
                               f"larger than max ({len(content)} vs. {MESSAGE_MAX})")
        push = parse(text(content))
        need(set(push) == {"streams"} and push["streams"], "streams")
        faults = Counter()
        for stream in push["streams"]:
            need(set(stream) == {"stream", "values"} and stream["values"], "stream and values")
            fault = self.labels(stream["stream"])
            if fault:  # one error, and no line of the stream is stored
                faults[fault] += 1
                continue
            for value in stream["values"]:
                fault = self.line(stream["stream"], value)
                if fault:
                    faults[fault] += 1
        if faults:
            counts = len(faults) > 1 or max(faults.values()) > 1
            raise Refused(400, "; ".join(f"{count} errors like: {said}" if counts else said
                                         for said, count in faults.items()) + "\n")
        return Answer(204)

    def labels(self, stream):
        """What is wrong with a stream's labels."""
        need(isinstance(stream, dict), "stream")
        for name, value in stream.items():
            need(NAME.match(name) and isinstance(value, str), f"label {name!r}")
        enforced = self.settings.get("enforced")
        if not stream:
            return "error at least one label pair is required per stream"
        count = len(stream) - ("service_name" in stream)
        if count > LABELS_MAX:
            return (f"entry for stream '{text_of(stream)}' has {count} label names; "
                    f"limit {LABELS_MAX}")
        for value in stream.values():
            if len(value.encode()) > LABEL_MAX:
                return f"stream '{text_of(stream)}' has label value too long: '{value}'"
        if enforced and enforced not in stream:
            return (f"missing required labels '{enforced}' for user 'fake' for stream "
                    f"'{text_of(stream)}' (policy: '')")
        return None

    def line(self, labels, value):
        """Stores one line, or returns what is wrong with it."""
        need(isinstance(value, list) and len(value) in (2, 3), "a value is [time, line, metadata]")
        time, line = value[:2]
        metadata = value[2] if len(value) == 3 else {}
        need(isinstance(time, str) and re.match(r"^\d+$", time) and isinstance(line, str), "value")
        need(int(time) <= UNTIL, "time")
        need(isinstance(metadata, dict), "metadata")
        for name, inner in metadata.items():
            need(NAME.match(name) and isinstance(inner, str), f"metadata {name!r}")
            need(name not in labels, f"metadata hides label {name}")
        stream = text_of(labels)
        if int(time) < self.settings.get("oldest_ns", 0):
            return (f"entry for stream '{stream}' has timestamp too old: {day(time)}, oldest "
                    f"acceptable timestamp is: {day(self.settings['oldest_ns'])}")
        if len(line.encode()) > LINE_MAX:
            return (f"max entry size '{LINE_MAX}' bytes exceeded for stream '{stream}' while "
                    f"adding an entry with length '{len(line.encode())}' bytes")
        if metadata and not self.settings.get("metadata", True):
            return (f"stream '{stream}' includes structured metadata, but this feature is "
                    "disallowed. Please see `limits_config.allow_structured_metadata` or contact "
                    "your Loki administrator to enable it")
        size = sum(len(n.encode()) + len(v.encode()) for n, v in metadata.items())
        if size > METADATA_MAX:
            return (f"stream '{stream}' has structured metadata too large: '{size}' bytes, "
                    f"limit: '{METADATA_MAX}' bytes.")
        if len(metadata) > METADATA_COUNT_MAX:
            return (f"stream '{stream}' has too many structured metadata labels: "
                    f"'{len(metadata)}', limit: '{METADATA_COUNT_MAX}'.")
        identity = (tuple(sorted(labels.items())), time, line)
        if identity in self.known:
            self.merged += 1
            return None
        self.known.add(identity)
        self.stored.append({"labels": labels, "time": time, "line": line, "metadata": metadata})
        return None
