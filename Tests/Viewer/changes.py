"""What the page may change: consent, levels, capture and the queue, as the command line does, by
whoever is let in and sees the current state. Running programs follow."""

import collections
import http.server
import json
import os
import subprocess
import sys
import threading

from stores import ROOT, cat, tool, write
from cases import Skipped, equal, holds, until
from serving import Server, environment

# Logs a line at DEBUG and one at INFO for each line of the standard input; uploads on request.
HOST = """
import cordwood, sys
engine = cordwood.open(sys.argv[1], level="info")
if len(sys.argv) > 2:
    engine.add_target(sys.argv[2], name="there", kind="http")
log = engine.logger("app.db")
print("ready", flush=True)
for line in sys.stdin:
    log.debug("quiet " + line.strip())
    log.info("loud " + line.strip())
    if line.startswith("send"):
        engine.roll()
        engine.archive_wait(30)
        try:
            engine.upload(30)
        except cordwood.UploadError as error:
            print("not sent:", error, flush=True)
            continue
    print(engine.captures_http, flush=True)
engine.close()
"""


class Host:
    """A program that runs while its store is changed."""

    def __init__(self, store, *more):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, str(store), *more], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env=environment(PYTHONPATH=str(ROOT / "bindings/python/src"),
                            CORDWOOD_LIBRARY=os.environ["CORDWOOD_LIBRARY"]))
        equal("the host", self.process.stdout.readline(), "ready\n")

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        equal("the host ended", self.process.wait(), 0)


class Taker:
    """A server that accepts bodies, or answers with a given status."""

    def __init__(self):
        taker = self
        self.status, self.bodies = 200, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if taker.status == 200:
                    taker.bodies.append(body)
                self.send_response(taker.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def post(server, path, body=None, text=None, **headers):
    data = text if text is not None else json.dumps(body).encode()
    return server.request(f"/api/{path}", server.headers(
        **{"Content-Type": "application/json", **headers}), method="POST", body=data)


def settings(server):
    return server.get("settings").json["stores"][0]


def change(server, name, value):
    """Changes it as the page does: with the version it has seen."""
    answer = post(server, name, {"value": value, "version": settings(server)[name]["version"]})
    if answer.status != 200:
        raise AssertionError(f"{name} {value}: {answer.status} {answer.body!r}")
    return answer.json


def files(store):
    """Every file name of a store, and the content of the small files."""
    return {str(path.relative_to(store)): path.read_bytes() if path.stat().st_size < 4_096 else b""
            for path in sorted(store.rglob("*")) if path.is_file()}


def who_may(folder, seed):
    """The method, the type and every check of the head, by raw bytes. Nothing changes."""
    store = folder / "store"
    write(store, 3)
    with Server(store) as server:
        version = settings(server)["consent"]["version"]
        body = json.dumps({"value": "pending", "version": version})
        good = {"Host": server.authority, "X-Cordwood": "1", "Cookie": server.cookie,
                "Sec-Fetch-Site": "same-origin", "Origin": f"http://{server.authority}",
                "Content-Type": "application/json", "Content-Length": str(len(body))}

        def status(line="POST /api/consent HTTP/1.1", change=None, text=body):
            headers = "".join(f"{name}: {value}\r\n"
                              for name, value in {**good, **(change or {})}.items()
                              if value is not None)
            return server.raw(f"{line}\r\n{headers}\r\n{text}".encode())[0]

        before = files(store)
        for changed, wanted in (
                ({"Content-Type": None}, 415), ({"Content-Type": "text/plain"}, 415),
                ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
                ({"Content-Type": "multipart/form-data; boundary=application/json"}, 415),
                ({"Content-Type": "application/json; charset=latin1"}, 415),
                ({"Cookie": None}, 401), ({"X-Cordwood": None}, 403),
                ({"Origin": "null"}, 403), ({"Origin": "http://evil.example"}, 403),
                ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Host": "evil.example"}, 421)):
            equal(f"{changed}", status(change=changed), wanted)
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
            equal(method, status(f"{method} /api/consent HTTP/1.1"), 405)
        for path, wanted in (("consent", 404), ("levels", 404), ("capture", 404), ("store", 200),
                             ("queue", 200)):
            equal(f"GET {path}", status(f"GET /api/{path} HTTP/1.1", {"Content-Length": "0"}, ""),
                  wanted)
        for path in ("store", "query", "record/x", "settings", "nothing", "consent/x"):
            equal(f"POST {path}", status(f"POST /api/{path} HTTP/1.1"), 405)
        for path, text in (
                ("consent", ""), ("consent", "no"), ("consent", "[]"), ("consent", "{}"),
                ("consent", '{"value":"never","version":"x"}'), ("consent", '{"value":"denied"}'),
                ("consent", '{"value":"denied","version":1}'),
                ("consent", '{"value":"denied","version":"x","archive":"y"}'),
                ("capture", '{"value":true,"version":"x"}'),
                ("levels", '{"value":"debug","version":"x"}'),
                ("levels", '{"value":[],"version":"x"}'),
                ("levels", '{"value":["a=loud"],"version":"x"}'),
                ("queue", '{"value":"send"}'), ("queue", '{"value":"quarantine"}'),
                ("queue", '{"value":"retry","archive":"x"}'),
                ("queue", '{"value":"retry","archive":"x","target":"y"}')):
            equal(f"{path} {text}", post(server, path, text=text.encode()).status, 400)
        equal("another store", post(server, "consent", {
            "store": str(folder), "value": "denied", "version": version}).status, 404)
        equal("no such target", post(server, "queue", {
            "value": "retry", "target": "nobody"}).status, 404)
        equal("an old version", post(server, "consent", {
            "value": "denied", "version": "0" * 16}).status, 409)
        holds(files(store) == before, "something was changed")
        equal("all that is right", status(), 200)
        equal("what the command line says", tool("consent", store).stdout, b"pending\n")
        equal("the same once more", status(), 409)
    before = files(store)
    with Server(store, "--read-only") as server:
        equal("with --read-only", settings(server)["writable"], False)
        for path in ("consent", "levels", "capture", "queue"):
            equal(f"POST {path}", post(server, path, {"value": "retry"}).status, 405)
        holds(files(store) == before, "something was changed")


def as_the_command(folder, seed):
    """What the page changes is, byte for byte, what the command line changes."""
    pages, commands = folder / "pages", folder / "commands"
    for store in (pages, commands):
        write(store, 3)
    with Server(pages) as server:
        def same(what):
            for name in ("store", "control"):
                a, b = ((store / name).read_bytes().split(b"\n") for store in (pages, commands))
                left = [line for line in a if not line.startswith((b"id ", b"created "))]
                right = [line for line in b if not line.startswith((b"id ", b"created "))]
                equal(f"{what}: {name}", left, right)

        change(server, "levels", ["app.db=debug", "noise=off", "warn"])
        tool("level", commands, "app.db=debug", "noise=off", "warn")
        same("levels")
        equal("shown", settings(server)["levels"]["value"],
              ["app.db=debug", "noise=off", "=warn"])
        equal("as the command", tool("level", pages).stdout.decode().split(),
              settings(server)["levels"]["value"])
        change(server, "levels", ["noise=default", "app.db=info"])
        tool("level", commands, "noise=default", "app.db=info")
        same("levels again")
        for word, verb in (("on", "enable"), ("off", "disable"), ("auto", "auto")):
            change(server, "capture", word)
            tool("http", verb, commands)
            same(f"capture {word}")
        for word in ("pending", "denied", "granted"):
            change(server, "consent", word)
            tool("consent", commands, word)
            same(f"consent {word}")
        # Another change came first.
        seen = settings(server)
        tool("level", pages, "app.db=trace")
        equal("levels", post(server, "levels", {
            "value": ["app.db=warn"], "version": seen["levels"]["version"]}).status, 409)
        equal("stays", tool("level", pages).stdout, b"=warn\napp.db=trace\n")
        tool("http", "enable", pages)
        equal("capture", post(server, "capture", {
            "value": "off", "version": seen["capture"]["version"]}).status, 409)
        holds(b"http on" in (pages / "control").read_bytes(), "capture was changed")


def the_queue(folder, seed):
    """Pairs are those of `cordwood queue`. Retry and quarantine change one of them, or all."""
    store = folder / "store"
    with Taker() as taker:
        taker.status = 400
        for _ in range(3):
            write(store, 20)
            tool("archive", store)
        tool("upload", store, "--to", taker.url, "--kind", "http", codes=(5,))
        with Server(store) as server:
            def pairs(**parameters):
                return server.get("queue", **parameters).json["pairs"]

            def printed():
                return [json.loads(line)
                        for line in tool("queue", store, "--json").stdout.splitlines()]

            def plain(pair):
                return {name: value for name, value in pair.items()
                        if name not in ("store", "version", "last_ns")}

            found = pairs()
            holds(len(found) >= 3, f"{len(found)} pairs")
            equal("pairs", [plain(pair) for pair in found], printed())
            holds({pair["state"] for pair in found} == {"retry", "waiting"}, f"{found}")
            target = server.get("queue").json["stores"][0]["targets"][0]
            equal("counted", {state: count for state, (count, _) in target["states"].items()},
                  collections.Counter(pair["state"] for pair in found))
            equal("bytes", sum(size for _, size in target["states"].values()),
                  sum(pair["bytes"] for pair in found))
            equal("kind", (target["kind"], target["origin"] + "/"), ("http", taker.url))
            failed = [pair for pair in found if pair["state"] == "retry"]
            equal("by state", pairs(state="retry"), failed)
            equal("by target", pairs(target="nobody"), [])
            # Page by page.
            paged, key = [], None
            while True:
                page = server.get("queue", limit=1, **({"from_": key} if key else {})).json
                paged += page["pairs"]
                key = page["next"]
                if key is None:
                    break
            equal("pages", paged, found)
            holds(failed[0]["cause"] and failed[0]["attempts"] == 1, f"{failed[0]}")
            one = failed[0]
            wish = {"value": "quarantine", "archive": one["archive"], "target": one["target"],
                    "version": one["version"]}

            def state():
                return next(pair for pair in pairs() if pair["archive"] == one["archive"])

            equal("given up", post(server, "queue", wish).json, {"changed": 1})
            equal("its state", state()["state"], "quarantined")
            equal("once more", post(server, "queue", wish).status, 409)
            equal("as printed", [plain(pair) for pair in pairs()], printed())
            again = {**wish, "value": "retry", "version": state()["version"]}
            equal("by another's eyes", post(server, "queue", {**wish, "value": "retry"}).status,
                  409)
            equal("again", post(server, "queue", again).json, {"changed": 1})
            equal("its state", (state()["state"], state()["attempts"]), ("retry", 0))
            equal("all that failed", post(server, "queue", {"value": "retry"}).json,
                  {"changed": len(failed)})
            taker.status = 200
            tool("upload", store, "--to", taker.url, "--kind", "http")
            equal("arrived", len(taker.bodies), len(found))
            equal("nothing waits", pairs(), [])


def hosts_follow(folder, seed):
    """A running program sees levels, capture and consent without a restart."""
    store = folder / "store"
    with Taker() as taker, Host(store, taker.url) as host, Server(store) as server:
        host.say("one")
        change(server, "levels", ["app.db=debug"])
        until(lambda: host.say("again") and any(
            row["message"] == "quiet again" for row in cat(store)), "the level")
        holds(not any(row["message"] == "quiet one" for row in cat(store)), "it was set before")
        equal("capture", host.say("x"), "False")
        change(server, "capture", "on")
        until(lambda: host.say("x") == "True", "capture")
        change(server, "consent", "pending")
        holds(host.say("send").startswith("not sent"), "sent without consent")
        equal("arrived", taker.bodies, [])
        change(server, "consent", "granted")
        equal("sent", host.say("send"), "True")
        holds(taker.bodies, "nothing arrived")
        change(server, "consent", "denied")
        holds(host.say("send").startswith("not sent"), "sent although denied")


def unwritable(folder, seed):
    """Of a store on read-only media everything is shown and nothing changed."""
    store = folder / "store"
    write(store, 3)
    mounted = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"mount --bind {store} {store} && mount -o "
         f"remount,ro,bind {store} && touch {store}/x"],
        capture_output=True, check=False)
    if os.geteuid() != 0 or b"Read-only" not in mounted.stderr:
        raise Skipped("needs root and a read-only mount")
    subprocess.run(["mount", "--bind", store, store], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", store], check=True)
        with Server(store) as server:
            found = settings(server)
            equal("writable", found["writable"], False)
            equal("its queue", server.get("queue").json["pairs"], [])
            equal("consent", post(server, "consent", {
                "value": "denied", "version": found["consent"]["version"]}).status, 404)
    finally:
        subprocess.run(["umount", store], check=True)
