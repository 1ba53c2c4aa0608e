"""Queries, written from docs/QUERY.md alone: a parser, and a plain filter over the records that the
oracle decodes. Slow and plain on purpose: if it and the engine differ, one of them misreads the
page. A parsed query is a function of a record."""

import datetime
import json
import re

from record import JSONText, record_id

BLANKS = b" \t\n\r"
OPERATORS = (b"!=", b"<=", b">=", b"==", b":", b"=", b"<", b">", b"~")
KINDS = (b"log", b"gap", b"lifecycle", b"transaction", b"http")
LEVELS = {b"none": 0, b"trace": 1, b"debug": 5, b"info": 9, b"notice": 10, b"warn": 13,
          b"error": 17, b"fatal": 21}
NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
HAS, BEGINS, IS = "has", "begins", "is"
# The test that `:` makes for a name with a meaning of its own.
MEANING = {b"file": HAS, b"function": HAS, b"url": HAS, b"path": HAS, b"trace": BEGINS,
           b"span": BEGINS, b"trace_id": BEGINS, b"span_id": BEGINS, b"record_id": BEGINS,
           b"txn": BEGINS}


class Wrong(Exception):
    """Not a query; `column` counts as in the page."""

    def __init__(self, column):
        super().__init__(f"column {column}")
        self.column = column


# ── Values ──

def number(text):
    """The number that JSON reads, or None. Whole numbers are exact."""
    match = NUMBER.fullmatch(text)
    if not match:
        return None
    if match[2] is None and match[3] is None:
        return int(text)
    value = float(text)
    return value if abs(value) != float("inf") else None


class JSONNumber(bytes):
    """A number in JSON, as it is written."""


def kind_of(value):
    if isinstance(value, JSONNumber):
        return "number"
    if isinstance(value, JSONText):
        return "json"
    return "bool" if isinstance(value, bool) else "text" if isinstance(value, bytes) else "number"


def as_text(value):
    """The text in which `cat` prints a field's value, without quotes and escapes."""
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        if value != value:
            return b"NaN"
        if value in (float("inf"), float("-inf")):
            return b"Infinity" if value > 0 else b"-Infinity"
    return repr(value).encode()


def lower(text):
    return bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in text)


ORDERS = {b"<": lambda a, b: a < b, b"<=": lambda a, b: a <= b, b">": lambda a, b: a > b,
          b">=": lambda a, b: a >= b, b"=": lambda a, b: a == b}


def is_true_of(operator, value, folded, found):
    """(types match, it is true) for one value of the record. `operator` is not `!=`."""
    asked, has = kind_of(value), kind_of(found)
    if asked == has:
        if asked == "bool" and operator != b"=":
            return True, False
        if folded:
            value, found = lower(value), lower(found)
        if isinstance(found, JSONNumber):
            found = number(found.strip(BLANKS))
        return True, ORDERS[operator](found, value)
    if asked == "number" and has == "text":
        read = number(found) if len(found) <= 64 else None
        return False, read is not None and ORDERS[operator](read, value)
    if operator != b"=":
        return False, False
    if asked == "bool" and has == "text":
        return False, found == as_text(value)
    if asked == "text":
        text = as_text(found)
        return False, lower(text) == lower(value) if folded else text == value
    return False, False


def typed(operator, value, folded, values):
    if not values:
        return False
    asked = b"=" if operator == b"!=" else operator
    found = [is_true_of(asked, value, folded, one) for one in values]
    if any(same for same, _ in found):
        found = [one for one in found if one[0]]
    result = any(true for _, true in found)
    return not result if operator == b"!=" else result


# ── Records ──

def fields(record):
    found = list(record.fields) + list(record.context)
    if record.exception:
        names = (b"exception.type", b"exception.message", b"exception.stacktrace")
        found += [(name, part) for name, part in zip(names, record.exception) if part]
    return [(bytes(key), bytes(value) if isinstance(value, (bytes, bytearray))
             and not isinstance(value, JSONText) else value) for key, value in found]


def named(record, name):
    all_of_them = fields(record)
    exact = [value for key, value in all_of_them if key == name]
    if exact:
        return [found for value in exact for found in (
            at_path(b"", value.decode()) if isinstance(value, JSONText) else [value])]
    return [found for key, value in all_of_them
            if isinstance(value, JSONText) and rest_of(name, key)
            for found in at_path(rest_of(name, key), value.decode())]


# ── Paths ──

SOLID = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder()


def parts_of(text):
    """(name or None, text) of each member of an object or an array."""
    def solid(at):
        return SOLID.match(text, at).end()

    at = solid(1)
    while text[at] not in "]}":
        name = None
        if text[0] == "{":
            name, at = DECODER.raw_decode(text, at)
            at = solid(solid(at) + 1)
        end = DECODER.raw_decode(text, at)[1]
        yield name, text[at:end]
        at = solid(end)
        if text[at] == ",":
            at = solid(at + 1)


def rest_of(path, name):
    """The rest of a path after a name, or None."""
    if path == name:
        return b""
    return path[len(name) + 1:] or None if path.startswith(name + b".") else None


def at_path(path, text):
    """The values at that path."""
    whole, text = text, text.strip(" \t\r\n")
    if not path:
        if NUMBER.fullmatch(text.encode()):
            known = number(text.encode()) is not None
            return [JSONNumber(whole.encode()) if known else text.encode()]
        value = json.loads(text)
        if isinstance(value, bool):
            return [value]
        text = whole
        return [value.encode() if isinstance(value, str) else JSONText(text.encode())]
    found = []
    if text[0] in "[{":
        for index, (name, part) in enumerate(parts_of(text)):
            if text[0] == "{":
                rest = rest_of(path, name.encode())
            else:
                rest = rest_of(path, str(index).encode())
                if rest is None and not path[:1].isdigit():
                    rest = path
            if rest is not None:
                found += at_path(rest, part)
    return found


def attribute(record, name):
    value = record.resource.get(name)
    return [bytes(value)] if value else []


def path_of(url):
    match = re.match(rb"[^:]*://[^/?#]*", url)
    rest = url[match.end():] if match else url
    return re.match(rb"[^?#]*", rest)[0] or b"/"


def column(record, name):
    if name in (b"file", b"function"):
        text = bytes(getattr(record, name.decode()))
        return [text] if text else []
    if name == b"line":
        return [record.line] if record.line else []
    if name == b"tid":
        return [record.thread_id]
    if name == b"pid":
        return [record.lane.pid]
    if name == b"process":
        text = bytes(record.lane.process_name)
        return [text] if text else []
    if name in (b"trace", b"trace_id", b"span", b"span_id"):
        part = record.trace[:16] if name.startswith(b"trace") else record.trace[16:24]
        return [bytes(part).hex().encode()] if any(part) else []
    if name == b"record_id":
        return [record_id(record).encode()]
    if name == b"service":
        return attribute(record, b"service.name")
    if name == b"host":
        return named(record, b"server.address") if record.kind == 4 else attribute(
            record, b"host.name")
    if name == b"path":
        return [path_of(url) for url in named(record, b"url.full")]
    alias = {b"method": b"http.request.method", b"status": b"http.response.status_code",
             b"url": b"url.full", b"txn": b"txn.id", b"usecase": b"txn.usecase"}.get(name)
    return named(record, alias) if alias else []


def values(record, name):
    if name.startswith(b"fields.") and len(name) > 7:
        return named(record, name[7:])
    return named(record, name) or column(record, name) or attribute(record, name)


def pieces(record):
    """The texts that a text search looks at."""
    yield bytes(record.message)
    for key, value in fields(record):
        yield key + b"=" + as_text(value)


def shown(record):
    return record.event_utc if record.event_utc is not None else record.utc


# ── The grammar ──

class Parser:
    def __init__(self, text):
        self.text, self.at = text.encode(), 0
        if len(self.text) > 8192:
            raise Wrong(8193)

    def wrong(self, at=None):
        before = self.text[:self.at if at is None else at]
        return Wrong(len(before.decode(errors="replace")) + 1)

    def blanks(self):
        while self.text[self.at:self.at + 1] and self.text[self.at] in BLANKS:
            self.at += 1

    def word(self, word):
        self.blanks()
        end = self.at + len(word)
        if self.text[self.at:end] == word and (
                end == len(self.text) or self.text[end] in BLANKS + b"()"):
            self.at = end
            return True
        return False

    def next(self, byte):
        return self.text[self.at:self.at + 1] == byte

    def query(self):
        self.blanks()
        found = self.either()
        if self.at < len(self.text):
            raise self.wrong()
        return found

    def either(self):
        choices = [self.both()]
        while self.word(b"OR"):
            choices.append(self.both())
        return lambda record: any(choice(record) for choice in choices)

    def both(self):
        parts = [self.term()]
        while True:
            if not self.word(b"AND"):
                before = self.at
                if self.at == len(self.text) or self.next(b")") or self.word(b"OR"):
                    self.at = before
                    break
            parts.append(self.term())
        return lambda record: all(part(record) for part in parts)

    def term(self):
        self.blanks()
        if self.at == len(self.text) or self.next(b")"):
            raise self.wrong()
        if self.word(b"NOT"):
            part = self.term()
            return lambda record: not part(record)
        if self.next(b"-"):
            self.at += 1
            part = self.term()
            return lambda record: not part(record)
        if self.next(b"("):
            start, self.at = self.at, self.at + 1
            found = self.either()
            if not self.next(b")"):
                raise self.wrong(start)
            self.at += 1
        else:
            found = self.leaf()
        if self.at < len(self.text) and self.text[self.at] not in BLANKS + b")":
            raise self.wrong()
        return found

    def folds(self):
        if self.text[self.at:self.at + 2] == b"i:":
            self.at += 2
            return True
        return False

    def leaf(self):
        start, folded = self.at, self.folds()
        if self.next(b"/"):
            pattern = self.expression(folded)
            return lambda record: any(pattern.search(piece) for piece in pieces(record))
        quoted = self.next(b'"')
        text = self.quoted() if quoted else self.run(operators=True)
        if not folded:
            for operator in OPERATORS:
                if self.text.startswith(operator, self.at):
                    if not text or not quoted and text[:1].isdigit():
                        raise self.wrong(start)
                    self.at += len(operator)
                    return self.comparison(text, operator)
        if not text:
            raise self.wrong(start)
        if folded:
            return lambda record: any(lower(text) in lower(piece) for piece in pieces(record))
        return lambda record: any(text in piece for piece in pieces(record))

    def run(self, operators):
        start = self.at
        while self.at < len(self.text):
            rest = self.text[self.at:]
            if rest[0] in BLANKS + b'()"' or operators and rest.startswith(OPERATORS):
                break
            self.at += 1
        return self.text[start:self.at]

    def quoted(self):
        start, found = self.at, b""
        self.at += 1
        while self.at < len(self.text):
            byte = self.text[self.at:self.at + 1]
            self.at += 1
            if byte == b'"':
                return found
            if byte == b"\\":
                letter = self.text[self.at:self.at + 1]
                self.at += 1
                if letter == b"x":
                    byte = bytes.fromhex(self.text[self.at:self.at + 2].decode())
                    self.at += 2
                else:
                    byte = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"r": b"\r",
                            b"t": b"\t"}[letter]
            found += byte
        raise self.wrong(start)

    def expression(self, folded):
        start, found = self.at, b""
        self.at += 1
        while self.at < len(self.text) and not self.next(b"/"):
            if self.next(b"\\"):
                if self.text[self.at + 1:self.at + 2] != b"/":
                    found += b"\\"
                self.at += 1
            found += self.text[self.at:self.at + 1]
            self.at += 1
        if not self.next(b"/") or not found:
            raise self.wrong(start)
        self.at += 1
        # The generator's patterns mean the same in both languages, except this.
        found = found.replace(b"$", rb"\Z")
        return re.compile(found, re.DOTALL | (re.IGNORECASE if folded else 0))

    # ── A comparison ──

    def value(self):
        """(the text, whether it is in quotes, whether case is ignored)"""
        start, folded = self.at, self.folds()
        if self.next(b'"'):
            return self.quoted(), True, folded
        text = self.run(operators=False)
        if (not text or text[:1] in (b"=", b"<", b">", b"~") or text.startswith(b"//")
                or len(text) > 2 and text[:1] == text[-1:] == b"/"):
            raise self.wrong(start)
        return text, False, folded

    def comparison(self, name, operator):
        if operator == b"~":
            folded = self.folds()
            if not self.next(b"/"):
                raise self.wrong()
            pattern = self.expression(folded)
            return lambda record: any(
                pattern.search(as_text(value)) for value in self.searched(record, name))
        at = self.at
        text, quoted, folded = self.value()
        if name in (b"time", b"level", b"kind"):
            return self.fixed(name, operator, text, at)
        is_star = text == b"*" and not quoted and not folded and operator in (b":", b"=")
        if name in (b"logger", b"message"):
            if is_star:
                return lambda record: any(self.searched(record, name))
            return self.textual(name, operator, text, folded)
        if is_star:
            return lambda record: bool(values(record, name))
        if operator == b"==":
            return lambda record: any(as_text(found) == text for found in values(record, name))
        meaning = MEANING.get(name, IS)
        folded = folded or meaning == BEGINS and operator in (b":", b"=", b"!=")
        if operator == b":" and meaning != IS:
            def asks(found):
                found, wanted = as_text(found), text
                if folded:
                    found, wanted = lower(found), lower(wanted)
                return wanted in found if meaning == HAS else found.startswith(wanted)
            return lambda record: any(asks(found) for found in values(record, name))
        operator = b"=" if operator == b":" else operator
        value = text
        if not quoted and not folded and meaning == IS:
            value = number(text)
            if value is None:
                value = text == b"true" if text in (b"true", b"false") else text
        return lambda record: typed(operator, value, folded, values(record, name))

    @staticmethod
    def searched(record, name):
        if name == b"logger":
            return [bytes(record.logger)]
        return [bytes(record.message)] if name == b"message" else values(record, name)

    def fixed(self, name, operator, text, at):
        operator = b"=" if operator in (b":", b"==") else operator
        if name == b"time":
            moment = datetime.datetime.strptime(
                text.decode()[:19] + "+0000", "%Y-%m-%dT%H:%M:%S%z")
            fraction = text.decode()[19:].strip(".Z")
            wanted = int(moment.timestamp()) * 10**9 + int((fraction or "0").ljust(9, "0"))
        elif name == b"level":
            word, _, more = lower(text).partition(b"+")
            if word in LEVELS:
                wanted = LEVELS[word] + int(more or 0)
            elif word.isdigit():
                wanted = int(word)
            else:
                raise self.wrong(at)
        elif text in KINDS:
            wanted = KINDS.index(text)
        elif text.isdigit():
            wanted = int(text)
        else:
            raise self.wrong(at)

        def test(record):
            found = shown(record) if name == b"time" else getattr(record, name.decode())
            return found != wanted if operator == b"!=" else ORDERS[operator](found, wanted)
        return test

    @staticmethod
    def textual(name, operator, text, folded):
        def test(record):
            found, wanted = bytes(getattr(record, name.decode())), text
            if folded:
                found, wanted = lower(found), lower(wanted)
            if operator == b":" and name == b"message":
                return wanted in found
            if operator == b":":
                return not wanted or found == wanted or found.startswith(wanted + b".")
            return (found == wanted) == (operator != b"!=")
        return test


def parse(text):
    """Returns a function of an oracle's record."""
    return Parser(text).query()
