"""Queries made by seed from the words, names and values that writer.c gives its records, plus a few
that none has."""

WORDS = ["order", "anna", "timed out", "Timeout", "true", "7", "42", "disk", "full", "a/b", "x=y",
         "grün", '"q"', "zz", "\\xff\\xfe", "noise", "order=7", "user=", "late", "ms", "nowhere",
         "exception.type", "=", "e", "at run\\nat", "7.0", "TXN17-", "GET http", "x=", "-0.25"]
PATHS = ["order.id", "order.total", "order.items.0.sku", "user.items.sku", "price.items.1.n",
         "order.items", "fields.order.ok", "order.a.b", "user.a", "price.0", "order.1", "order.3",
         "user.3.1.sku", "order.3.sku", "order.sku", "user.d", "price.u", "price.n", "host.id",
         "file.ok", "level.id", '"odd key.id"', "order.2", "user.gr\u00fcn", "order.items.00",
         "order.nothing", "status.total", "pid.0.0"]
KEYS = ["order", "user", "price", "ok", "fields.level", "file", '"odd key"', "host", "status",
        "pid", "fields.file", "fields.host"]
NAMES = ["line", "function", "tid", "pid", "process", "trace", "span_id", "record_id", "service",
         "host", "method", "url", "path", "status", "txn", "usecase", "host.name", "service.name",
         "exception.type", "exception.message", "txn.event", "http.duration", "nothing"]
VALUES = ["7", "42", "-3", "7.5", "7.0", "0", "42.125", "1e3", "1e2", "100", "12.50",
          "18446744073709551615", "18446744073709551616", "18446744073709551617",
          "-9223372036854775809", "1e20",
          "100000000000000000000", "true",
          "false", "anna", "order", '"7"', '"true"', '"timed out"', "Timeout", "i:TIMEOUT",
          "i:Anna", "db.c", "src/db.c", "run", "shop", "desk", "dev-7", "dev-8", "GET", "POST",
          "/orders", "/", "/orders/7", "api.example.com", "https://api.example.com/orders?id=7",
          "200", "500", "404", "17", "-4", "TXN17-", "txn17", "4b", "00", '"x=y"', "TimeoutError",
          '""', "41", "none", "zz",
          "null", "8", "2", "1", "i:ZZ", '"[7]"', '"{\\"b\\":2}"', "1e400"]
EXPRESSIONS = ["time(d )?out", "^order", "^user=", "(an)+a", r"a\/b", "7$", "[0-9]+ is late", "=7$",
               r"\.type=T", "^[a-z]+ ", "q.|zz", "^$", "Error"]
LEVELS = ["trace", "debug", "info", "notice", "warn", "error", "fatal", "INFO+2", "20", "Warn+1",
          "none"]
KINDS = ["log", "http", "transaction", "lifecycle", "gap", "5"]
LOGGERS = ["app", "app.db", "app.db.pool", "app.dbx", "noise", "HTTP", "Transactions", "Cordwood"]
ORDERS = ["=", "!=", "<", "<=", ">", ">="]
BARE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._")


class Asking:
    def __init__(self, chance, times):
        self.chance, self.times = chance, times

    def pick(self, *choices):
        return self.chance.choice(choices)

    def word(self):
        word = self.chance.choice(WORDS)
        if set(word) <= BARE and self.chance.random() < 0.8:
            return word
        return '"' + word.replace('"', '\\"') + '"'

    def expression(self):
        return self.pick("", "", "i:") + "/" + self.chance.choice(EXPRESSIONS) + "/"

    def leaf(self):
        chance = self.chance.randrange(14)
        if chance < 3:
            return self.pick("", "", "", "i:") + self.word()
        if chance == 3:
            return self.expression()
        if chance == 4:
            return "level" + self.chance.choice(ORDERS) + self.chance.choice(LEVELS)
        if chance == 5:
            return "kind" + self.pick(":", "=", "!=") + self.chance.choice(KINDS)
        if chance == 6:
            return "time" + self.chance.choice(ORDERS) + self.chance.choice(self.times)
        if chance == 7:
            return "logger" + self.pick(":", ":", "=", "!=") + self.chance.choice(LOGGERS)
        if chance == 8:
            return "message" + self.pick(":", ":", "=", "!=", ":i:", "=i:") + self.word()
        name = self.chance.choice(self.chance.choices((KEYS, PATHS, NAMES), (5, 4, 4))[0])
        if chance == 9:
            return name + self.pick("~", "~") + self.expression()
        if chance == 10:
            return self.pick(name, name, name, "logger", "message") + self.pick("=*", ":*")
        value = self.chance.choice(VALUES)
        operator = self.pick(":", ":", "=", "=", "==", *ORDERS)
        if value.startswith("i:") and operator not in (":", "=", "!="):
            operator = ":"
        return name + operator + value

    def query(self, depth=3):
        if depth == 0 or self.chance.random() < 0.35:
            return self.leaf()
        parts = [self.query(depth - 1) for _ in range(self.chance.randrange(2, 4))]
        form = self.chance.randrange(6)
        if form == 0:
            return self.pick("-(", "NOT (") + parts[0] + ")"
        if form < 3:
            return "(" + " OR ".join(parts) + ")"
        if form == 3:  # without parentheses: precedence decides
            return " OR ".join(" ".join([part, self.leaf()]) for part in parts)
        return self.pick(" ", " AND ", "\t").join(
            part if " OR " not in part or part.startswith("(") else f"({part})" for part in parts)
