"""What all fakes check strictly: bodies in one piece, unambiguous JSON, required headers. A body
that a lenient server might accept is refused here, with the reason."""

import json
import re
import zlib


class Refused(Exception):
    """The answer to an incorrect request."""

    def __init__(self, status, text, headers=None):
        super().__init__(text)
        self.status, self.text, self.headers = status, text, headers or {}


class Answer:
    """Status, body and headers of an answer."""

    def __init__(self, status, body=b"", headers=None):
        self.status = status
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = headers or {}


def plain(headers, body, encodings=("gzip",)):
    """The body without its encoding: one gzip member, nothing after it."""
    encoding = headers.get("content-encoding", "identity")
    if encoding == "identity":
        return body
    if encoding not in encodings or encoding != "gzip":
        raise Refused(415, f"Content-Encoding {encoding}")
    inflater = zlib.decompressobj(31)
    try:
        content = inflater.decompress(body) + inflater.flush()
    except zlib.error as error:
        raise Refused(400, f"gzip: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise Refused(400, "gzip: cut, or more than one member")
    return content


def _pairs(pairs):
    found = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key twice: {key!r}")
        found[key] = value
    return found


def _constant(text):
    raise ValueError(f"no JSON: {text}")


DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def text(body):
    """The body as text; strict UTF-8."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(400, f"no UTF-8: {error}") from error


def check_strings(value):
    """Lone surrogates, which JSON can spell and UTF-8 cannot."""
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, dict):
        for key, inner in value.items():
            check_strings(key)
            check_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            check_strings(inner)


def parse(string):
    """Exactly one JSON value; no key twice, no NaN."""
    try:
        value = DECODER.decode(string)
        check_strings(value)
        return value
    except ValueError as error:
        raise Refused(400, f"JSON: {error}") from error


def concatenated(string):
    """Concatenated JSON values."""
    values, at = [], 0
    space = re.compile(r"[ \t\r\n]*")
    while True:
        at = space.match(string, at).end()
        if at == len(string):
            return values
        try:
            value, at = DECODER.raw_decode(string, at)
            check_strings(value)
        except ValueError as error:
            raise Refused(400, f"JSON: {error}") from error
        values.append(value)


def lines(string):
    """Lines, each with its newline; none is empty."""
    if not string.endswith("\n"):
        raise Refused(400, "no newline at the end")
    found = string[:-1].split("\n")
    if any(not line for line in found):
        raise Refused(400, "an empty line")
    return found


def need(condition, what, status=400):
    """Refuses unless it holds."""
    if not condition:
        raise Refused(status, what)


def content_type(headers, *allowed):
    """Without its parameters."""
    given = headers.get("content-type", "")
    need(given.split(";")[0].strip() in allowed, f"Content-Type {given}", 415)
