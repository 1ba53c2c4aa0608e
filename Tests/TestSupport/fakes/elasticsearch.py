"""A fake of Elasticsearch's bulk interface for `create` with ids: keeps each id once, answers each
document separately, maps fields as dynamic mapping would and refuses contradictions."""

import re
from urllib.parse import parse_qs, urlsplit

from strict import Answer, Refused, content_type, need, parse, plain, text

BODY_MAX, ID_MAX = 100 << 20, 512
# VictoriaLogs 1.26: -insert.maxLineSizeBytes. Lines of this length or more are skipped.
LINE_MAX = 256 << 10
LONG = range(-(1 << 63), 1 << 63)
FILTERS = {"errors", "items.create._id", "items.create.status", "items.create.error.type"}
TYPES = {400: "document_parsing_exception", 401: "security_exception",
         403: "cluster_block_exception", 404: "index_not_found_exception",
         409: "version_conflict_engine_exception", 429: "es_rejected_execution_exception"}


class Contradiction(Exception):
    """A document that the mapping does not accept."""


class Fake:
    """settings: `token` of `Authorization: ApiKey`; `busy`: the number of times each document whose
    id ends in 3 is answered 429 before it is accepted; `forbid`: [status, times] of each document
    whose id ends in 7; `refuse`: documents whose message has this word are refused; `unreadable`:
    200 without the documents' results."""

    def __init__(self, settings):
        self.settings, self.stored, self.documents, self.seen, self.mapping = (
            settings, [], {}, {}, {})

    def answer(self, method, path, headers, body):
        """The server's answer to one request."""
        parts = urlsplit(path)
        found = re.match(r"^(/insert/elasticsearch)?(?:/([a-z0-9][^/]*))?/_bulk$", parts.path)
        need(method == "POST" and found, "no such path", 404)
        token = self.settings.get("token")
        need(token is None or found[1] or headers.get("authorization") == f"ApiKey {token}",
             "who", 401)
        content_type(headers, "application/x-ndjson")
        content = plain(headers, body)
        need(len(content) <= BODY_MAX, "too large", 413)
        string = text(content)
        if not string.endswith("\n"):
            raise Refused(400, "The bulk request must be terminated by a newline [\\n]")
        rows = string[:-1].split("\n")
        need(len(rows) % 2 == 0, "an action without a document")
        if found[1]:
            return self.victoria(parse_qs(parts.query), rows)
        items = [self.document(found[2], parse(rows[at]), parse(rows[at + 1]))
                 for at in range(0, len(rows), 2)]
        if self.settings.get("unreadable"):
            return Answer(200, b"<html>signed in</html>", {"Content-Type": "text/html"})
        wanted = set(parse_qs(parts.query).get("filter_path", [""])[0].split(","))
        need(wanted == FILTERS, f"filter_path {wanted}")
        return Answer(200, {
            "errors": any(status not in (200, 201) for _, status in items),
            "items": [{"create": fate(name, status)} for name, status in items]})

    def victoria(self, query, rows):
        """VictoriaLogs 1.26 (app/vlinsert/elasticsearch): it ignores ids, and answers 201 also for
        lines that it skips."""
        need(query.get("_msg_field") == ["message"], "_msg_field")
        for at in range(0, len(rows), 2):
            need('"create"' in rows[at] or '"index"' in rows[at], "unexpected command")
            if len(rows[at + 1].encode()) < LINE_MAX:
                self.stored.append({"document": parse(rows[at + 1])})
        return Answer(200, {"took": 1, "errors": False,
                            "items": [{"create": {"status": 201}} for _ in rows[::2]]})

    def document(self, index, action, document):
        """Id and status of one document."""
        need(set(action) == {"create"}, "action")
        named = {"_id"} if index else {"_id", "_index"}
        need(set(action["create"]) in (named, {"_id"}), "action")
        index = index or action["create"].get("_index")
        name = action["create"]["_id"]
        need(isinstance(name, str) and 0 < len(name.encode()) <= ID_MAX, "_id")
        need(isinstance(document, dict), "document")
        times = self.seen[name] = self.seen.get(name, 0) + 1
        if name in self.documents:
            return name, 409
        if name.endswith("3") and times <= self.settings.get("busy", 0):
            return name, 429
        status, most = self.settings.get("forbid", (0, 0))
        if name.endswith("7") and times <= most:
            return name, status
        word = self.settings.get("refuse")
        if word and word in document.get("message", ""):
            return name, 400
        try:
            mapping = dict(self.mapping)
            need("@timestamp" in document, "a data stream needs @timestamp")
            add(mapping, (), document)
            self.mapping = mapping
        except Contradiction as error:
            print(f"mapper_parsing_exception: {error}", flush=True)
            return name, 400
        self.documents[name] = document
        self.stored.append({"index": index, "_id": name, "document": document})
        return name, 201


def fate(name, status):
    """What the filter leaves of one document's result."""
    error = {"error": {"type": TYPES[status]}} if status in TYPES else {}
    return {"_id": name, "status": status, **error}


def add(mapping, place, value):
    """Adds the value's fields to the mapping: objects against values, numbers against text."""
    for key, inner in value.items():
        names = tuple(key.split("."))
        if not all(names) or any(not name.strip() for name in names):
            raise Contradiction(f"name {key!r}")
        for end in range(1, len(names)):
            note(mapping, place + names[:end], "object")
        full = place + names
        if isinstance(inner, dict):
            note(mapping, full, "object")
            add(mapping, full, inner)
        elif isinstance(inner, bool):
            note(mapping, full, "boolean")
        elif isinstance(inner, int):
            if inner not in LONG:
                raise Contradiction(f"{key} out of range of long")
            note(mapping, full, "number")
        elif isinstance(inner, float):
            note(mapping, full, "number")
        elif isinstance(inner, str):
            note(mapping, full, "text")
        else:
            raise Contradiction(f"{key}: {inner!r}")


def note(mapping, place, kind):
    """Numbers may go into text fields. No other conversion is allowed."""
    known = mapping.setdefault(place, kind)
    if known != kind and not (known == "text" and kind in ("number", "boolean")):
        raise Contradiction(f"{'.'.join(place)} is {known}, not {kind}")
