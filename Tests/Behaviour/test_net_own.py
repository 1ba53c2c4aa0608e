"""B-NET for a host's own requests, against a local server: in C, C++, Python and Swift the typed
error, its words in both languages, its record, found by the transaction id, and the captured
exchange that the record belongs to; and the same for every Python client."""

import json
import subprocess
import sys

import cordwood
import http_peer
import swift_hosts
from cases import full
from http_hosts import HERE, Hosts, ended, environment
from net_clients import ANSWERS, RAISES
from sending import BUILD, CORDWOOD, ROOT, WORK, StoreCase

KINDS = {403: ("NetworkClientError", "client"), 404: ("NetworkClientError", "client"),
         429: ("NetworkClientError", "client"), 500: ("NetworkServerError", "server"),
         302: ("NetworkRedirection", "redirection"), 700: ("NetworkUnknownOutcome", "unknown")}
ENGLISH = {403: "The server refused what was sent. HTTP 403: not allowed.",
           404: "The server refused what was sent. HTTP 404: no such address there.",
           500: "The server had an error of its own. HTTP 500.",
           304: "The server points to another address. HTTP 304.",
           700: "The server gave an answer that is not understood. HTTP 700."}
GERMAN = {403: "Der Server hat die Daten abgelehnt. HTTP 403: keine Berechtigung.",
          404: "Der Server hat die Daten abgelehnt. HTTP 404: die Adresse gibt es dort nicht.",
          500: "Auf dem Server ist ein Fehler aufgetreten. HTTP 500.",
          304: "Der Server verweist auf eine andere Adresse. HTTP 304.",
          700: "Die Antwort des Servers ist nicht zu verstehen. HTTP 700."}
WAITS = (" It asks to wait 7 s.", " Er bittet, 7 s zu warten.")
LOCATION = (" Address: https://other.example.", " Adresse: https://other.example.")


def found(store, *words):
    """A verb's output lines, as objects."""
    done = subprocess.run([CORDWOOD, *words, store, "--json"], check=False,
                          stdout=subprocess.PIPE, env=environment())
    return [json.loads(line) for line in done.stdout.splitlines()]


def recorded(case, store, transaction):
    """The single record that both searches find by the transaction; and its exchange."""
    record, = found(store, "grep", transaction)
    again, = (json.loads(line) for line in subprocess.run(
        [CORDWOOD, "cat", store, "--where", f"transaction.id={transaction}", "--json"], check=True,
        stdout=subprocess.PIPE).stdout.splitlines())
    case.assertEqual(again, record)
    fields = record["fields"]
    exchange, = [one for one in ended(store) if one["http.id"] == fields["http.id"]]
    case.assertEqual(exchange["http.response.status_code"], fields["http.status"])
    case.assertEqual(exchange["odata.transaction_id"], transaction)
    return record


class FourLanguages(StoreCase):
    """The programs of examples/http and examples/swift."""

    CASES = {"v2": (403, "v2"), "v4": (404, "v4"), "xml": (500, "xml"), "same": (304, ""),
             "odd": (700, "")}

    def setUp(self):
        super().setUp()
        self.engine.close()
        self.server = http_peer.Server()
        self.addCleanup(self.server.close)

    def built(self, name, compiler, standard):
        program = WORK / f"example-{name.replace('.', '-')}"
        subprocess.run([compiler, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I",
                        ROOT / "include", ROOT / "examples/http" / name, "-o", program, "-L",
                        BUILD / "lib", "-lcordwood", "-lcurl"], check=True)
        return [program]

    def said(self, program, url):
        done = subprocess.run([*map(str, program), str(self.store), url], env=environment(),
                              check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.splitlines()

    def check(self, program):
        for case, (status, form) in self.CASES.items():
            id = f"{case}-0123456789" if form else ""
            with self.subTest(case):
                lines = self.said(program, f"{self.server.url}/fails?status={status}&form={form}"
                                           f"&id={id}&token=hush")
                word = {304: "redirection", 700: "unknown", 500: "server"}.get(status, "client")
                more = ("", "")
                if form:
                    more = (f" The server says: “No such team” (code SY/530, transaction {id}).",
                            f" Der Server meldet: „No such team“ (Code SY/530, Transaktion {id}).")
                elif status == 304:
                    more = LOCATION
                self.assertEqual(lines, [
                    f"{word} {status} {'SY/530' if form else ''} {id}",
                    ENGLISH[status] + more[0] + WAITS[0], GERMAN[status] + more[1] + WAITS[1]])
                if form:
                    record = recorded(self, self.store, id)
                    self.assertEqual(record["logger"], "shop.net")
                    self.assertEqual(record["level"], "ERROR" if status == 500 else "WARN")
                    self.assertEqual(
                        {key: value for key, value in record["fields"].items()
                         if key != "http.id"},
                        {"http.request.method": "GET", "url.full": self.server.url + "/fails",
                         "http.status": status, "cause": f"HTTP {status}", "outcome": word,
                         "retry_after_s": 7, "transaction.id": id, "error.code": "SY/530",
                         "error.message": "No such team",
                         "error.detail": "error A/1: wrong (Team/Id)"})
        lines = self.said(program, "http://127.0.0.1:1/?token=hush")
        self.assertEqual(lines[0].strip(), "request_failed 0")
        self.assertRegex(lines[2], "^Der Server war nicht zu erreichen oder hat nicht geantwortet. "
                                   r"Ursache: [^?]+\.$")
        fields = [record.fields for record in cordwood.read(self.store)
                  if record.logger == "shop.net"][-1]
        self.assertEqual(fields["outcome"], "request_failed")
        lost, = [one for one in ended(self.store) if one["http.id"] == fields["http.id"]]
        self.assertEqual(lost["error.type"], "connect")
        self.assertEqual(self.said(program, self.server.url + "/json"), [], "it went well")

    def test_B_NET_3_own_requests_in_c(self):
        self.check(self.built("errors.c", "cc", "-std=c11"))

    @full
    def test_B_NET_3_own_requests_in_cpp(self):
        self.check(self.built("errors.cpp", "c++", "-std=c++17"))

    def test_B_NET_3_own_requests_in_python(self):
        self.check([sys.executable, ROOT / "examples/http/errors.py"])

    @full
    def test_B_NET_3_own_requests_in_swift(self):
        self.check([swift_hosts.program("HTTPErrors")])


class Clients(Hosts):
    """The Python clients."""

    # Cases without an answer: the causes that a client may name.
    CAUSES = {"refused": "(?i)refused|connect", "hang": "(?i)time", "close": "(?i)clos|disconnect",
              "short": "(?i)incomplete|closed|not enough|bytes"}

    def check(self, client, raised=RAISES, python=None):
        done = subprocess.run(
            [python or self.python, HERE / "net_clients.py", client, self.store, self.plain.url],
            env=environment(), check=True, stdout=subprocess.PIPE, text=True)
        self.assertNotIn("hush", done.stdout)
        seen = dict(map(json.loads, done.stdout.splitlines()))
        cases = [f"{case}-answer" for case in ANSWERS] + [f"{case}-raised" for case in raised]
        self.assertEqual(set(seen), {*cases, *self.CAUSES})
        exchanges = {one["http.id"]: one for one in ended(self.store)}
        for case in cases:
            with self.subTest(case):
                self.answered(client, case, seen[case], exchanges)
        for case, cause in self.CAUSES.items():
            with self.subTest(case):
                one = seen[case]
                self.assertEqual((one["kind"], one["outcome"]),
                                 ("NetworkRequestFailed", "request_failed"))
                self.assertRegex(one["cause"], cause)
                self.assertIn(one["cause"], one["de"])
                # urllib reads on by itself, and does not notice half an answer.
                if one["exchange"] or case != "short":
                    self.assertIn("error.type", exchanges[one["exchange"]])
        records = [record.fields for record in cordwood.read(self.store)
                   if record.logger == "net"]
        self.assertEqual([fields["case"] for fields in records], list(seen))

    def answered(self, client, case, one, exchanges):
        name, how = case.split("-")
        status, form = ANSWERS[name]
        kind, word = KINDS[status]
        self.assertEqual((one["kind"], one["outcome"], one["status"], one["cause"], one["retry"]),
                         (kind, word, status, f"HTTP {status}", 7.0))
        self.assertEqual((one["method"], one["url"]), ("GET", self.plain.url + "/fails"))
        self.assertEqual(one["location"], "https://other.example" if status == 302 else "")
        # An exchange has no status above 599.
        self.assertEqual(exchanges[one["exchange"]].get("http.response.status_code"),
                         status if status <= 599 else None)
        if not form or client == "aiohttp" and how == "raised":  # which has no body
            self.assertEqual((one["code"], one["details"]), ("", []))
            return
        id = f"{name}-{client}-{how}"
        self.assertEqual((one["code"], one["message"], one["transaction"]),
                         ("SY/530", "No such team", id))
        self.assertEqual(one["details"], [["A/1", "wrong", "Team/Id", "error"]])
        self.assertIn(f"Transaktion {id}", one["de"])
        self.assertEqual(recorded(self, self.store, id)["fields"]["case"], case)

    def test_B_NET_2_own_requests_urllib(self):
        self.check("urllib", (), sys.executable)

    @full
    def test_B_NET_2_own_requests_requests(self):
        self.check("requests")

    @full
    def test_B_NET_2_own_requests_httpx(self):
        self.check("httpx")

    @full
    def test_B_NET_2_own_requests_httpx_awaited(self):
        self.check("httpx-async")

    @full
    def test_B_NET_2_own_requests_aiohttp(self):
        self.check("aiohttp", ("v2",))
