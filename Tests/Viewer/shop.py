"""A shop's two stores: a client's transactions and requests, and its server's side of them. Bodies
are seeded. Nothing is sent anywhere."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Orders are a second apart. All are in the past.
BASE = time.time_ns() // 10**9 * 10**9 - 60 * 10**9

# Runs in its own process: argv is the store, client or server, a seed, the count, the address.
PROGRAM = r'''
import json, os, random, sys
import cordwood
from cordwood._capture import calls

store, side, seed, count, address = sys.argv[1:]
chance = random.Random(int(seed))
engine = cordwood.open(store, process_name=side, level="trace")
engine.capture_http(keep_text=["* */*"])
engine.name_transaction(17, "Checkout")
for number, name in enumerate(["begun", "paid <b>", "sent"]):
    engine.name_transaction(17, name, event=number)
log = engine.logger("shop." + side)
HOSTILE = ["<script>document.title='x'</script>", "\u202ecod", "a\x1bb", "'\"><img src=x>"]


def exchange(at, method, path, headers, body, status, answer, took, error="", ends=True):
    one = calls.begin(engine._handle, method, address + path, headers, body=body,
                      side=1 if side == "server" else 0, start_ns=BASE + at)
    if not ends:
        return one
    if status:
        one.response(status, [("Content-Type", answer[0]), ("X-Odd", chance.choice(HOSTILE))],
                     protocol="http/1.1")
        if answer[1]:
            one.response_body(answer[1])
    one.end(error=error, error_type="timeout" if error else "", dns_ns=took // 10,
            wait_ns=took // 2, duration_ns=took)
    return one


BASE = %BASE%
pending = []
for number in range(int(count)):
    usecase = 17 if number % 3 else 4
    given = json.loads(sys.stdin.readline()) if side == "server" else None
    scope = engine.join_transaction(given["id"]) if given else engine.transaction(usecase)
    at = number * 10**9
    with scope as one:
        told = given["told"] if given else one.headers()
        log.info("order %d of %s", number, chance.choice(HOSTILE), order=number)
        if number % 4 == 3:
            log.error("order %d went wrong", number)
        body = json.dumps({"order": number, "note": chance.choice(HOSTILE), "items":
                           [{"sku": f"s{n}", "price": 1.5} for n in range(3)]}).encode()
        kind = [("application/json", body), ("text/html", b"<h1>no</h1>"),
                ("image/png", b"\x89PNG"),
                ("application/octet-stream", bytes(range(256)))][number % 4]
        status = [200, 404, 503, 201, 200][number % 5]
        ends = number % 7 != 6
        made = exchange(at + (0 if side == "client" else -2_000_000 if number == 1 else 3_000_000),
                        "POST", f"/orders/{number}?x=<b>&y={number}",
                        [*told.items(), ("Content-Type", "application/json")], body,
                        status if number % 6 != 5 else 0, kind,
                        (50_000_000 + number * 40_000_000) // (1 if side == "client" else 2),
                        "no answer in time" if number % 6 == 5 else "", ends)
        if not ends:
            pending.append(made)
        if side == "client":
            print(json.dumps({"id": one.id, "told": told}), flush=True)
        for event in range(3):
            if event and number % 5 == event:
                break
            if event == 1 and number % 4 == 3:
                one.event(event, error_code="42", error_description="Baad <i>")
            else:
                one.event(event)
        if number % 5 == 2:
            left = engine.transaction(usecase)  # begun, and never ended
            left.event(0)
            pending.append(left)
print("ready", flush=True)
if sys.stdin.readline() == "stay\n":
    sys.stdin.readline()
os._exit(0) if pending else engine.close()
'''.replace("%BASE%", str(BASE))


def run(store, side, seed, count, address, given=""):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(store), side, str(seed), str(count), address],
        input=given, text=True, check=True, stdout=subprocess.PIPE, env=environment())
    return done.stdout.splitlines()


def environment():
    build = Path(os.environ.get("CORDWOOD_BUILD", ROOT / "build"))
    return {**os.environ, "CORDWOOD_LIBRARY": str(build / "lib/libcordwood.so"),
            "PYTHONPATH": str(ROOT / "bindings/python/src")}


def stores(folder, seed, count=12, address="https://shop.example.com"):
    """The client's store and the server's."""
    client, server = folder / "client", folder / "server"
    told = run(client, "client", seed, count, address)[:-1]
    run(server, "server", seed + 1, count, address, "\n".join(told) + "\n")
    return client, server


def ids(told):
    return [json.loads(line)["id"] for line in told]


def chosen(seed, items, count):
    return random.Random(seed).sample(items, min(count, len(items)))
