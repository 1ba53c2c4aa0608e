"""The answers of the views' parts of the API: what `cordwood http` and `cordwood transactions`
print of the same stores."""

import json
import random
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import shop
from cases import equal, holds
from serving import Server
from stores import cat, tool


def printed(*arguments):
    return [json.loads(line) for line in tool(*arguments).stdout.split(b"\n")[:-1]]


def exchanges_of(server, **parameters):
    """All exchanges, page by page, and the last line of the first page."""
    found, key, first = [], None, None
    while True:
        more = {"from": key} if key else {}
        lines = server.lines("http", **more, **parameters)
        found += [line["exchange"] for line in lines if "exchange" in line]
        done = lines[-1]["done"]
        first = first or done
        # A later page by time reads no more than necessary.
        counted = key is None or parameters.get("sort") == "duration"
        equal("counts", "matched" in done, counted)
        if done["next"] is None:
            return found, first
        key = done["next"]


def without(one, *names):
    return {name: value for name, value in one.items() if name not in names}


def check_exchange(server, row, wanted):
    """A row, its detail and its bodies are those that the command prints."""
    known = ("request", "response", "key", "start_ns")
    equal("a row", without(row, *known), without(wanted, *known))
    whole = server.get(f"http/{row['key']}").json
    equal("the key", whole["key"], row["key"])
    equal("all of it", without(whole, *known), without(wanted, *known))
    for side in ("request", "response"):
        said, message = wanted.get(side, {}), whole.get(side, {})
        body = said.get("body", "").encode()
        if "body_base64" in said:
            import base64
            body = base64.b64decode(said["body_base64"])
        kept = ("body", "body_base64", "body_kind", "body_kept")
        equal(f"its {side}", without(message, *kept), without(said, *kept))
        equal("kept", message.get("body_kept", 0), len(body))
        answer = server.api(f"http/{row['key']}/body/{side}")
        equal(f"the {side}'s status", answer.status, 200 if body else 404)
        if body:
            equal(f"the {side}'s bytes", answer.body, body)
            equal("as a file", answer.headers["Content-Type"], "application/octet-stream")
            holds(answer.headers["Content-Disposition"].startswith("attachment; "), "no file")
            holds("sandbox; default-src 'none'" in answer.headers.get_all(
                "Content-Security-Policy"), "it may run")


def http(folder, seed):
    """Lists, pages, details, bodies, curl and HAR of exchanges, ended, failed, pending and lost."""
    stores = shop.stores(folder, seed, 14)
    queries = [{}, {"q": "status>=400"}, {"q": "method=POST path:/orders/1"}, {"q": "nothing"},
               {"q": "http.side=server"}, {"q": "status=200 OR -status=*"},
               {"since": "2026-01-01", "until": "now"}]
    with Server(*stores) as server:
        for asked in queries:
            arguments = [word for name, value in asked.items()
                         for word in ({"q": "-q"}.get(name, f"--{name}"), value)]
            wanted = printed("http", "list", "--json", *stores, *arguments)
            rows, done = exchanges_of(server, limit=5, **asked)
            equal(f"{asked}: how many", (done["matched"], done["exact"]), (len(wanted), True))
            by_id = {(one["id"], one["side"]): one for one in wanted}
            equal(f"{asked}: which", {(row["id"], row["side"]) for row in rows}, set(by_id))
            equal("each once", len({row["key"] for row in rows}), len(rows))
            starts = [int(row["start_ns"]) for row in rows]
            equal("the newest first", starts, sorted(starts, reverse=True))
            for row in rows if not asked else rows[:2]:
                check_exchange(server, row, by_id[row["id"], row["side"]])
            har = server.get("http.har", **asked)
            holds("attachment" in har.headers["Content-Disposition"], "no file")
            equal(f"{asked}: HAR", har.json, json.loads(
                tool("http", "list", "--har", *stores, *arguments).stdout))
        failed = printed("http", "list", "--json", "--failed", *stores)
        rows, done = exchanges_of(server, only="failed")
        equal("failed", {row["id"] for row in rows}, {one["id"] for one in failed})
        equal("counted", (done["failed"], done["all"]), (len(rows), len(wanted)))
        slow = printed("http", "list", "--json", "--slow", "400", *stores)
        rows, done = exchanges_of(server, sort="duration", limit=4)
        took = [row.get("duration_ms", 0) for row in rows]
        equal("the longest first", took, sorted(took, reverse=True))
        holds(len([one for one in took if one >= 400]) == len(slow), f"{took}")
        equal("lost", done["pending"], 0)
        row = next(row for row in rows if row["state"] == "done")
        line = tool("http", "show", row["id"], stores[row["side"] == "server"], "--curl").stdout
        equal("curl", server.get(f"http/{row['key']}/curl").json["text"] + "\n", line.decode())
        command = server.get("command", verb="http", q="status>=400", only="failed").json["text"]
        equal("the command", command.split()[:4], ["cordwood", "http", "list", "--failed"])
        logged = server.rows(q="kind=log", limit=1)[0][0]["key"]
        for path, status in ((f"http/{logged}", 404), ("http/x", 400),
                             (f"http/{row['key']}/body/x", 404), (f"http/{row['key']}/", 404)):
            equal(path, server.api(path).status, status)
        equal("an error's column", server.api("http", q="a (").json["column"] is not None, True)
        equal("an order", server.api("http", sort="size").status, 400)
    return f"{len(wanted)} exchanges"


def http_pending(folder, seed):
    """An unfinished exchange is there while its process lives. Its key leads to its end."""
    store = folder / "store"
    program = shop.PROGRAM.split("chance =")[0] + """
engine = cordwood.open(store)
engine.capture_http()
one = calls.begin(engine._handle, "GET", address + "/slow", [], start_ns=%d)
print("ready", flush=True)
sys.stdin.readline()
one.response(204, [])
one.end()
print("ended", flush=True)
sys.stdin.readline()
""" % shop.BASE
    import sys
    process = subprocess.Popen([sys.executable, "-c", program, store, "client", str(seed), "1",
                                "http://127.0.0.1:9"], stdin=subprocess.PIPE, text=True,
                               stdout=subprocess.PIPE, env=shop.environment())
    process.stdout.readline()
    with Server(store) as server:
        rows, done = exchanges_of(server, only="pending")
        equal("pending", [(row["state"], row["url"]) for row in rows],
              [("open", "http://127.0.0.1:9/slow")])
        equal("counted", (done["pending"], done["slow"], done["failed"]), (1, 1, 0))
        key = rows[0]["key"]
        equal("open", server.get(f"http/{key}").json["state"], "open")
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        ended = server.get(f"http/{key}").json
        equal("ended", (ended["state"], ended["status"]), ("done", 204))
        equal("none pends", exchanges_of(server, only="pending")[0], [])
    process.communicate("\n")


class Little(BaseHTTPRequestHandler):
    """Answers with the request's content."""
    seen = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name: value for name, value in self.headers.items()
                   if name in ("traceparent", "X-Transaction-Id", "Content-Type")}
        Little.seen.append((self.path, headers, body))
        answer = json.dumps([self.path, headers, body.decode()]).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def little():
    """A local server, and its address."""
    made = HTTPServer(("127.0.0.1", 0), Little)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    return made, f"http://127.0.0.1:{made.server_port}"


def http_again(folder, seed):
    """The API's curl command sends the captured request to a real server."""
    listening, address = little()
    client, _ = shop.stores(folder, seed, 6, address)
    wanted = printed("http", "list", "--json", client, "-q", "method=POST")
    chance = random.Random(seed)
    with Server(client) as server:
        rows, _ = exchanges_of(server)
        for row in chance.sample(rows, 4):
            one = next(one for one in wanted if one["id"] == row["id"])
            text = server.get(f"http/{row['key']}/curl").json["text"]
            sent = subprocess.run(["sh", "-c", text + " --silent"], check=True,
                                  stdout=subprocess.PIPE).stdout
            path, headers, body = Little.seen[-1]
            equal("the answer", json.loads(sent), [path, headers, body.decode()])
            equal("the body", body, one["request"]["body"].encode())
            for header in one["request"]["headers"]:
                equal(header["name"], headers.get(header["name"]), header["value"])
            holds(path.startswith("/orders/"), path)
    listening.shutdown()


def transactions(folder, seed):
    """Figures, funnels, stuck ones and records of the transactions in two stores, without deleted
    ones, are those that the command prints."""
    stores = shop.stores(folder, seed, 16)
    wanted = printed("transactions", "--json", *stores)
    listed = printed("transactions", "--json", "--list", *stores)
    gone = next(one["id"] for one in listed if one["ended"])
    with Server(*stores) as server:
        for deleted in (False, True):
            if deleted:
                for store in stores:
                    tool("transactions", store, "--delete", gone)
                wanted = printed("transactions", "--json", *stores)
                listed = printed("transactions", "--json", "--list", *stores)
                equal("deleted", server.api(f"transaction/{gone}").status, 404)
            lines = server.lines("transactions")
            equal("use cases", [line["usecase"] for line in lines[:-1]], wanted)
            equal("the last line", (lines[-1]["done"]["matched"], lines[-1]["done"]["exact"]),
                  (len(wanted), True))
        for one in wanted:
            lines = server.lines(f"transactions/{one['usecase']}/funnel")
            equal("a funnel", lines[0]["usecase"], one)
            stuck = [line["transaction"] for line in lines if "transaction" in line]
            left = [line for line in listed
                    if line["usecase"] == one["usecase"] and not line["ended"]]
            holds(left, "none is stuck")
            equal("stuck", sorted(without(it, "last_ns")["id"] for it in stuck),
                  sorted(it["id"] for it in left))
            quiet = [int(it["last_ns"]) for it in stuck]
            equal("the longest quiet first", quiet, sorted(quiet))
        for one in listed[:6]:
            moments = [line["moment"] for line in server.lines(f"transaction/{one['id']}")[:-1]]
            equal("its records", [without(it, "key", "time_ns") for it in moments],
                  printed("transactions", "--json", "--id", one["id"], *stores))
            row = server.get(f"record/{moments[0]['key']}").json
            equal("its key", row["fields"]["txn.id"], one["id"])
        asked = printed("transactions", "--json", *stores, "-q", "txn.error.code=42")
        equal("of a query", [line["usecase"] for line in server.lines(
            "transactions", q="txn.error.code=42")[:-1]], asked)
        for path, status in (("transactions/17", 404), ("transactions/x/funnel", 400),
                             ("transaction/TXN", 400), ("transactions/17/funnel/x", 404)):
            equal(path, server.api(path).status, status)
    return f"{len(listed)} transactions of {len(wanted)} use cases"


def figures_of(stores):
    """The totals of each trace, from the records that `cat` prints."""
    found = {}
    for row in (row for store in stores for row in cat(store)):
        if row.get("trace_id"):
            found.setdefault(row["trace_id"], []).append(row)
    return {id: (len(rows), sum(row["level"].startswith(("ERROR", "FATAL")) for row in rows),
                 sorted({row["process"] for row in rows}),
                 len({row["fields"]["http.id"] for row in rows if row["kind"] == "http"}),
                 len({row["fields"]["txn.id"] for row in rows if row["kind"] == "transaction"}))
            for id, rows in found.items()}


def traces(folder, seed):
    """Traces over a client's and a server's store: their figures, by pages and by queries, and the
    spans of one trace with their causes, and the difference of the clocks."""
    stores = shop.stores(folder, seed, 14)
    wanted = figures_of(stores)
    with Server(*stores) as server:
        def walk(**parameters):
            found, key = [], None
            while True:
                more = {"from": key} if key else {}
                lines = server.lines("traces", limit=5, **more, **parameters)
                found += [line["trace"] for line in lines if "trace" in line]
                key = lines[-1]["done"]["next"]
                if key is None:
                    equal("matched", (lines[-1]["done"]["matched"], lines[-1]["done"]["exact"]),
                          (len(found), True))
                    return found

        found = walk()
        equal("figures", {one["id"]: (one["records"], one["errors"], sorted(one["processes"]),
                                      one["exchanges"], one["transactions"]) for one in found},
              wanted)
        firsts = [int(one["first_ns"]) for one in found]
        equal("the newest first", firsts, sorted(firsts, reverse=True))
        some = {row["trace_id"] for store in stores
                for row in cat(store, "-q", "level>=error kind=log") if row.get("trace_id")}
        asked = walk(q="level>=error kind=log")
        equal("of a query", {one["id"] for one in asked}, some)
        holds(0 < len(some) < len(wanted), f"{len(some)} of {len(wanted)}")
        equal("with all their records", [one["records"] for one in asked],
              [wanted[one["id"]][0] for one in asked])
        skewed = 0
        for one in found:
            lines = server.lines(f"trace/{one['id']}")
            spans = [line["span"] for line in lines if "span" in line]
            logs = [line["log"] for line in lines if "log" in line]
            equal("places", [span["place"] for span in spans], list(range(len(spans))))
            equal("records", lines[-1]["done"]["matched"], one["records"])
            if len(one["processes"]) < 2:
                continue
            kinds = [(span["kind"], span["process"], span["depth"]) for span in spans]
            equal("spans", sorted(kinds), sorted([
                ("transaction", "client", 0), ("exchange", "client", 1), ("exchange", "server", 2),
                ("transaction", "server", 1)]))
            pair = [span for span in spans if span["kind"] == "exchange"]
            equal("the client's before the server's", [span["process"] for span in pair],
                  ["client", "server"])
            equal("the place of what caused it", pair[1]["place"], pair[0]["place"] + 1)
            difference = int(pair[1]["start_ns"]) - int(pair[0]["start_ns"])
            equal("clocks", int(pair[1].get("skew_ns", 0)), min(difference, 0))
            skewed += difference < 0
            for log in logs:
                equal("on its span", spans[log["span"]]["process"], log["process"])
                equal("a record", server.get(f"record/{log['key']}").json["level"], log["level"])
        equal("skewed", skewed, 1)
        for path, status in (("trace/x", 400), ("trace/" + "0" * 31 + "1", 404),
                             ("traces/x", 404)):
            equal(path, server.api(path).status, status)
        equal("a page", server.api("traces", **{"from": "x"}).status, 400)
    return f"{len(wanted)} traces"
