"""Bodies with planted secrets, one for each number: under a secret's name in JSON, lines of JSON,
forms, multipart, XML and event streams, as tokens of known issuers, and in unstructured texts. With
wrong content types, odd encodings, compressed, and cut off anywhere. Each secret contains MARK or
begins with DIGITS, so that one search finds all."""

import gzip
import json
import random
import re
import unicodedata
import urllib.parse
import zlib
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

MARK = "zQ7s3cRmK"
DIGITS = "770313377051"
SOURCES = Path(__file__).resolve().parents[2] / "Sources"


def listed_names(which):
    """The names of a list of the library, of every alphabet."""
    text = (SOURCES / "CordwoodTrace/HTTP/Redaction/SecretDefaults.swift").read_text("utf-8")
    part = re.search(rf"static let {which} = \[(.*?)\]", text, re.S)[1]
    return re.findall(r'"([^"]+)"', part)


def listed_tokens():
    """The shapes of tokens that the library lists, with a place for the secret. Hexadecimal ones
    have no room for MARK."""
    between = {"NUMBER_COLON": "123456:", "NUMBER_PATH": "123456789012345678/",
               "SLACK": "0AB12CD/B0AB12CD/", "DOTTED": "ab12" * 5 + ".",
               "TEAMS": "0123456789abcdef" * 2 + "/"}
    shapes = re.findall(r'SHAPE\("([^"]+)", \d+, ([A-Z0-9_]+)', (SOURCES / "CShims/tokens.c")
                        .read_text("utf-8"))
    return [f"{prefix}{between.get(form, '')}{{}}" for prefix, form in shapes if form != "HEX"]


ENDINGS, KEYS, FRONTS = (listed_names(which) for which in ("endings", "keys", "fronts"))
SECRET_NAMES = ["userPassword", "API-Key", "refreshToken", "PWD", "sessionId", "X-Auth-Token",
                "smsCode", "mfaCode", "seedPhrase", "storageKey", *KEYS]
PLAIN_NAMES = ["user", "name", "id", "note", "total", "items", "tokenizer", "passing", "ü", "href"]
WORDS = ["kept", "hello there", "ümläut", "a \"quote\"", "back\\slash", "line\nline", "100%", "",
         "<b>", "{0}", "[INFO] x", "https://example.com/a?b=c&d=e", "a=b&c"]
NAMINGS = ["name", "key", "field", "param", "header", "property"]
TOKENS = listed_tokens()
# What a token may follow: escapes, whose last byte may be a letter or a digit, and more than ASCII.
BEFORE_TOKENS = ["", "", "", "x%20", "x%0A", "x%2C", "x%E2%80%9C", "x\\n", "x\\t", "x\\u0020",
                 "x\\x2c", "x\u201c", "\u4ee4\u724c\uff1a", "x\u00a0", "\u00e9",
                 "https://h.example/a?q=my%20", "a=b&c=x%26", "line\n"]
TYPES = ["application/json", "application/problem+json", "text/plain", "text/html", "",
         "application/octet-stream", "application/xml", "text/xml; charset=iso-8859-1",
         "application/x-www-form-urlencoded", "text/event-stream", "application/x-ndjson",
         "multipart/form-data; boundary=other", "application/json; charset=utf-16"]


class Planted:
    """One body: `content_type`, `coding` (of Content-Encoding), `body` as sent, and `end`, the
    number of bytes that its sender sends before it leaves; None: all."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.number = number
        self.count = 0
        self.encoding = self.random.choice(
            ["utf-8"] * 12 + ["utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
        maker, self.content_type = self.random.choice([
            (self.json, "application/json"), (self.json, "application/hal+json"),
            (self.lines, "application/x-ndjson"), (self.form, "application/x-www-form-urlencoded"),
            (self.parts, "multipart/form-data; boundary=b0und"), (self.xml, "application/xml"),
            (self.events, "text/event-stream"), (self.free, "text/plain")])
        body = maker().encode(self.encoding, "replace")
        if self.random.random() < 0.25:
            self.content_type = self.random.choice(TYPES)
        if self.random.random() < 0.15:
            body = body[:self.random.randrange(len(body) + 1)]
        self.coding = self.random.choice([None] * 6 + ["gzip", "deflate"])
        if self.coding:
            body = {"gzip": gzip.compress, "deflate": zlib.compress}[self.coding](body)
        self.body = body
        self.end = self.random.randrange(len(body) + 1) if self.random.random() < 0.1 else None

    # ── Pieces ──

    def secret(self):
        self.count += 1
        return f"{MARK}-{self.number}-{self.count}" + self.random.choice(["", " x", "\"", "&", "<"])

    def token(self):
        self.count += 1
        made = f"{MARK}{self.number:08}{self.count:04}" + "a" * 48
        return self.random.choice(BEFORE_TOKENS) + self.random.choice(TOKENS).format(made)

    def number_of(self):
        self.count += 1
        return int(f"{DIGITS}{self.random.randrange(1000):03}")

    def secret_name(self):
        """Of any alphabet that the encoding has, in any case, composed or not, behind others."""
        if self.random.random() < 0.4:
            name = self.random.choice(SECRET_NAMES)
            made = self.random.choice([name, name.upper(), f"new_{name}", f"db.{name}",
                                       self.random.choice(FRONTS) + name.replace("_", "")])
        else:
            name = self.random.choice(ENDINGS)
            mixed = "".join(self.random.choice([one.upper(), one]) for one in name)
            made = self.random.choice(["", "", "", "new_", "db.", "user", "мой", "Ma", "私の"])
            made += self.random.choice([name, name.upper(), name.title(), mixed])
            made = unicodedata.normalize(self.random.choice(["NFC", "NFD"]), made)
        has_it = self.encoding != "latin-1" or all(one < "\u0100" for one in made)
        return made if has_it else "password"

    def word(self):
        if self.random.random() < 0.08:
            return f"see {self.token()} there"
        if self.random.random() < 0.05:
            return f"https://joe:{self.secret().split(' ')[0].strip('&<')}@example.com/x".replace(
                '"', "")
        return self.random.choice(WORDS)

    # ── JSON ──

    def hidden(self, depth=0):
        """A value under a secret's name."""
        choice = self.random.randrange(8 if depth < 2 else 5)
        if choice < 4:
            return self.secret()
        if choice == 4:
            return self.number_of()
        if choice == 5:
            return [self.hidden(depth + 1) for _ in range(self.random.randrange(3))]
        if choice == 6:
            return {self.random.choice(PLAIN_NAMES): self.hidden(depth + 1)}
        return self.random.choice([None, True, 17, "", {}])

    def value(self, depth):
        choice = self.random.randrange(9 if depth < 4 else 4)
        if choice == 0:
            return self.random.choice([None, True, 12.5, -3, 10**9])
        if choice < 4:
            return self.word()
        if choice == 4:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        if choice == 5:
            return self.text_of(self.object(depth + 1))
        if choice == 6:
            pair = [(self.random.choice(NAMINGS), self.secret_name()),
                    (self.random.choice(["value", "val", "values"]), self.hidden()),
                    ("note", self.word())]
            self.random.shuffle(pair)
            return dict(pair)
        return self.object(depth + 1)

    def object(self, depth=0):
        made = {}
        for _ in range(self.random.randrange(1, 5)):
            if self.random.random() < 0.4:
                made[self.secret_name()] = self.hidden()
            else:
                made[self.random.choice(PLAIN_NAMES)] = self.value(depth)
        return made

    def text_of(self, value):
        separators = self.random.choice([(",", ":"), (", ", ": "), (" ,\t", " :\r\n")])
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5, separators=separators,
                          indent=self.random.choice([None, None, 1]))

    def json(self):
        made = self.random.choice([self.object, lambda: [self.object() for _ in range(3)]])()
        return self.random.choice(["", "", "", ")]}',\n", " \n"]) + self.text_of(made)

    def lines(self):
        end = self.random.choice(["\n", "\r\n"])
        return end.join(json.dumps(self.object()) for _ in range(self.random.randrange(1, 6))) + end

    # ── Others ──

    def form(self):
        items = []
        for _ in range(self.random.randrange(1, 6)):
            if self.random.random() < 0.5:
                items.append((self.secret_name(), self.secret()))
            else:
                items.append((self.random.choice(PLAIN_NAMES), self.random.choice(
                    [self.word(), json.dumps(self.object()), "//x?" + urllib.parse.urlencode(
                        {self.secret_name(): self.secret()})])))
        return urllib.parse.urlencode(items)

    def parts(self):
        made = ""
        for _ in range(self.random.randrange(1, 5)):
            made += "--b0und\r\nContent-Disposition: form-data; name="
            choice = self.random.randrange(4)
            if choice == 0:
                made += f'"{self.secret_name()}"\r\n\r\n{self.secret()}\r\n'
            elif choice == 1:
                made += ('"data"\r\nContent-Type: application/json\r\n\r\n'
                         + json.dumps(self.object()) + "\r\n")
            elif choice == 2:
                made += ('"f"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n'
                         f"password: {self.secret()}\r\n")
            else:
                made += f'"note"\r\n\r\n{self.word()}\r\n'
        return made + "--b0und--\r\n"

    def element(self, depth=0):
        choice = self.random.randrange(6)
        name = self.random.choice(["a", "user", "ns:item", "note"])
        if choice == 0:
            tag = self.random.choice(["Password", "u:userToken", "apiKey", "pin", "clientSecret",
                                      self.secret_name(), self.secret_name()])
            return f"<{tag}>{escape(self.secret())}</{tag}>"
        if choice == 1:
            return f"<{name} {self.secret_name()}={quoteattr(self.secret())} n='kept'/>"
        if choice == 2:
            return f'<property name="{self.secret_name()}">{escape(self.secret())}</property>'
        if choice == 3:
            return f"<key>{self.secret_name()}</key><string>{escape(self.secret())}</string>"
        if choice == 4 or depth > 3:
            return f"<{name}>{escape(self.word())}</{name}>"
        inner = "".join(self.element(depth + 1) for _ in range(self.random.randrange(4)))
        return f"<{name}>{inner}</{name}>"

    def xml(self):
        head = self.random.choice(["", '<?xml version="1.0"?>\n', "<!-- kept -->"])
        return (head + "<ns:root xmlns:ns='urn:x'>" + "".join(
            self.element() for _ in range(self.random.randrange(1, 6))) + "</ns:root>")

    def events(self):
        made = ""
        for _ in range(self.random.randrange(1, 5)):
            made += self.random.choice(["", "event: delta\n", "id: 7\n", ": ping\n"])
            made += self.random.choice([
                f"data: {json.dumps(self.object())}\n\n",
                f"data: {self.secret_name()}: {self.secret()}\n\n", "data: [DONE]\n\n"])
        return made

    def free(self):
        secret = self.secret()
        return self.random.choice([
            f"password: {secret}\nuser: kept", f"[db]\npassword = {secret}\n",
            f"<html><input name='password' value='{secret}'></html>", f"--password {secret}",
            f"db:\n  password: |\n    {secret}\n", f"{{'password': '{secret}'}}",
            f"callback({{\"password\": \"{secret}\"}})", f"password={secret}", secret,
            f'{{"password": "{secret}', f'<a b="1" password={secret}>',
            f"x,password\n1,{secret}\n"])
