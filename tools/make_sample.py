#!/usr/bin/env python3
"""Writes examples/sample.log: two thousand lines like those of a small web shop's servers. They are
generated, so that they contain no real names or addresses; a seed fixes them all."""

import random
import sys

chance = random.Random(20261121)
PATHS = ("/", "/cart", "/cart/items", "/checkout", "/api/v2/orders", "/api/v2/stock", "/login",
         "/static/app.js", "/static/site.css", "/health")
AGENTS = ("Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0", "curl/8.5.0", "ShopApp/4.2 (Android 15)",
          "ShopApp/4.2 (iOS 18.1)", "kube-probe/1.31")
TABLES = ("orders", "customers", "stock", "payments", "sessions")


def address():
    return f"10.{chance.randrange(4)}.{chance.randrange(256)}.{chance.randrange(1, 255)}"


def order():
    return f"ord-{chance.randrange(10**6):06d}"


def access():
    return (f'{address()} "{chance.choice(("GET", "GET", "GET", "POST", "PUT"))} '
            f'{chance.choice(PATHS)} HTTP/1.1" {chance.choice((200, 200, 200, 200, 304, 404, 500))}'
            f' {chance.randrange(120, 48000)} {chance.expovariate(30):.3f} '
            f'"{chance.choice(AGENTS)}"')


def database():
    return (f"db.pool: {chance.choice(('select', 'insert', 'update'))} {chance.choice(TABLES)} "
            f"rows={chance.randrange(400)} took={chance.expovariate(0.2):.2f}ms "
            f"conn={chance.randrange(16)}")


def business():
    return chance.choice((
        f"order {order()} placed by customer {chance.randrange(10**5)}: "
        f"{chance.randrange(1, 9)} items, {chance.randrange(500, 90000) / 100:.2f} EUR",
        f"payment for {order()} authorised in {chance.randrange(40, 900)} ms by "
        f"{chance.choice(('card', 'sepa', 'wallet'))}",
        f"stock of sku-{chance.randrange(4000):04d} is {chance.randrange(12)}, reorder at 10"))


def trouble():
    return chance.choice((
        f"WARN retry {chance.randrange(1, 4)} of 3: connect to {address()}:5432 timed out after "
        "2000 ms",
        f"ERROR payment for {order()} declined: code={chance.choice((51, 54, 91))}",
        f"gc: heap {chance.randrange(200, 900)} MB → {chance.randrange(90, 200)} MB in "
        f"{chance.randrange(3, 40)} ms",
        f"user {chance.randrange(10**5)} failed to log in from {address()}: wrong password"))


def main():
    clock = 1_763_712_000_000
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        for _ in range(2000):
            clock += chance.randrange(1, 900)
            seconds, rest = divmod(clock // 1, 1000)
            hours, minutes = seconds // 3600 % 24, seconds // 60 % 60
            write = chance.choices((access, database, business, trouble), (55, 25, 15, 5))[0]
            file.write(f"{hours:02d}:{minutes:02d}:{seconds % 60:02d}.{rest:03d} {write()}\n")


if __name__ == "__main__":
    main()
