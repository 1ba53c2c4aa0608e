"""B-TXN: application transactions, against a fake that checks every byte."""

import enum
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from email.utils import format_datetime
from datetime import datetime, timedelta, timezone
from pathlib import Path

import cordwood
from cases import json_lines
from looks import looks
from loopback import until
from sending import CORDWOOD, ROOT, WORK, Scripted, StoreCase, another_second

ID = re.compile(r"^TXN17-[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}$")
TIME = "%a, %d %b %Y %H:%M:%S GMT"
MEDIA = "application/vnd.shop.apptxnset-v3+json;charset=UTF-8"
PARAMETERS = {"prefix": "vnd.shop.", "version": "3", "scheme": "PEApp", "param": "key",
              "device_make": "ACME", "device_os": "Linux", "device_os_version": "6.1"}
AUTHORIZATION = r'PEApp key="a\"b\\c"'
TOKEN = 'a"b\\c'


class Usecase(enum.IntEnum):
    CHECKOUT = 17


class Event(enum.IntEnum):
    BEGUN = 0
    PAID = 1


class Strict:
    """Tests/TestSupport/fakes/transactions.py as a server."""

    def __init__(self, case, faults=(), **settings):
        self.directory = Path(tempfile.mkdtemp(dir=WORK))
        settings = {"content_type": MEDIA, "authorization": AUTHORIZATION, "path": "/txn",
                    "faults": list(faults), **settings}
        self.process = subprocess.Popen(
            [sys.executable, "-u", ROOT / "Tests/TestSupport/fakes/server.py", self.directory,
             "transactions", json.dumps(settings)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/txn"
        case.addCleanup(self.stop)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    @property
    def requests(self):
        return json_lines(self.directory / "requests.jsonl")

    @property
    def stored(self):
        return json_lines(self.directory / "stored.jsonl")

    @property
    def events(self):
        return [(row["id"], row["event"]) for row in self.stored]


class Txn(StoreCase):
    def add(self, url, **options):
        options = {"name": "txn", "kind": "transactions", "parameters": PARAMETERS,
                   "auth_token": TOKEN, **options}
        return self.engine.add_target(url, **options)

    def flush(self):
        return self.engine.flush_transactions(timeout=30)

    def refused(self):
        with self.assertRaises(cordwood.UploadError) as caught:
            self.flush()
        return caught.exception

    def records(self, store=None):
        return [record for record in cordwood.read(store or self.store, kinds="transaction")
                if "txn.op" in record.fields]

    def test_B_TXN_1_id_and_events(self):
        before = time.time_ns()
        transaction = self.engine.transaction(17)
        self.assertRegex(transaction.id, ID)
        self.assertEqual(transaction.usecase, 17)
        transaction.event(0)
        transaction.event(1, error_code="42", error_description="Baad!")
        transaction.event(-5, error_code="")
        transaction.end()
        begin, first, second, third, end = self.records()
        self.assertEqual([record.fields["txn.op"] for record in self.records()],
                         ["begin", "event", "event", "event", "end"])
        for record in self.records():
            self.assertEqual((record.logger, record.fields["txn.id"], record.fields["txn.usecase"]),
                             ("Transactions", transaction.id, 17))
            self.assertEqual(record.trace_id, transaction.id[6:].replace("-", "").lower())
            self.assertLessEqual(before / 1e9 - 1, record.time.timestamp())
        self.assertEqual((begin.message, first.message, end.message),
                         (f"{transaction.id} begin", f"{transaction.id} event 0",
                          f"{transaction.id} end"))
        self.assertEqual((second.message, second.level, second.fields["txn.event"],
                          second.fields["txn.error.code"], second.fields["txn.error.description"]),
                         (f"{transaction.id} event 1: 42 Baad!", "ERROR", 1, "42", "Baad!"))
        self.assertEqual((third.fields["txn.event"], third.fields["txn.error.code"]), (-5, ""))
        self.assertNotIn("txn.error.description", third.fields)
        self.assertGreater(end.fields["txn.duration_ns"], 0)
        self.assertRegex(self.engine.transaction(-7).id, r"^TXN-7-[0-9A-F]{8}-")

    def test_B_TXN_2_operations(self):
        engine = self.engine
        engine.set_level("", "off")
        self.assertEqual(engine.transactions(), [])
        one, two = engine.transaction(Usecase.CHECKOUT), engine.transaction(18)
        one.event(Event.PAID)
        one.event(Event.PAID, error_code="1")
        two.end()
        listed = engine.transactions()
        self.assertEqual([(info.id, info.usecase, info.usecase_name, info.events, info.errors,
                           info.ended) for info in listed],
                         [(one.id, 17, "CHECKOUT", 2, 1, False), (two.id, 18, "", 0, 0, True)])
        self.assertLess(listed[0].first_ns, listed[0].last_ns)
        names = [record.fields.get("txn.event.name") for record in self.records()]
        self.assertEqual(names.count("PAID"), 2)
        engine.delete_transactions(one.id)
        self.assertEqual([info.id for info in engine.transactions()], [two.id])
        one.event(Event.PAID)
        self.assertEqual([(info.id, info.events) for info in engine.transactions()
                          if info.id == one.id], [(one.id, 1)], "it begins anew")
        engine.delete_transactions()
        self.assertEqual(engine.transactions(), [])
        server = Strict(self)
        self.add(server.url)
        self.assertEqual(self.flush().records, 0)
        self.assertEqual(server.requests, [], "what was deleted is not sent")
        engine.join_transaction(two.id).event(9)
        self.assertEqual(self.flush().records, 1)
        self.assertEqual(server.events, [(two.id, 9)])

    def test_B_TXN_2_asynchronously_on_a_timer(self):
        self.engine.close()
        engine = self.engine = self.open(upload_interval_s=1)
        server = Strict(self)
        self.add(server.url)
        self.log.info("no reason to send")
        transaction = engine.transaction(17)
        # The first may belong to the new target, the second is the timer's.
        looks(self.store, 2)
        self.assertEqual(server.requests, [], "without an event there is nothing to send")
        transaction.event(3)
        until(lambda: server.events == [(transaction.id, 3)], "the timer sends")
        transaction.event(4)
        until(lambda: len(server.events) == 2, "and again")
        self.assertEqual(len(server.requests), 2, "nor was anything sent later")

    def test_B_TXN_3_survives_a_kill(self):
        program = ("import cordwood, os, signal, sys\n"
                   "engine = cordwood.open(sys.argv[1])\n"
                   "one = engine.transaction(17)\n"
                   "print(one.id, flush=True)\n"
                   "for number in range(1000): one.event(number)\n"
                   "os.kill(os.getpid(), signal.SIGKILL)\n")
        self.engine.close()
        done = subprocess.run([sys.executable, "-c", program, self.store], env=environment(),
                              stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        server = Strict(self)
        self.engine = self.open()
        self.add(server.url)
        result = self.flush()
        self.assertEqual((result.records, result.uploaded), (1000, 1))
        self.assertEqual(server.events, [(done.stdout.strip(), n) for n in range(1000)])

    def test_B_TXN_3_resurrection(self):
        server = Strict(self)
        self.add(server.url)
        one = self.engine.transaction(17)
        one.event(0)
        self.assertEqual(self.flush().records, 1)
        one.event(1)
        one.end()
        self.assertEqual(self.flush().records, 1)
        joined = self.engine.join_transaction(one.id)
        joined.event(2)
        self.assertEqual(self.flush().records, 1)
        self.assertEqual(server.events, [(one.id, 0), (one.id, 1), (one.id, 2)])
        keys = [request["headers"]["idempotency-key"] for request in server.requests]
        self.assertEqual(len(set(keys)), 3)

    def test_B_TXN_4_requests(self):
        server = Strict(self)
        self.add(server.url)
        self.engine.logger("app").info("no transaction")
        self.engine.transaction(17).end()
        self.assertEqual(self.flush().records, 0)
        self.assertEqual(server.requests, [], "an empty set")
        one = self.engine.transaction(17)
        for number in range(2_345):
            one.event(number)
        self.assertEqual(self.flush().records, 2_345)
        self.assertEqual([event for _, event in server.events], list(range(2_345)))
        batches = len(server.requests)  # a lane's first segment may have been archived separately
        self.assertIn(batches, (3, 4), "at most 1,000 events in a batch")
        for request in server.requests:
            headers = request["headers"]
            self.assertEqual((request["method"], request["path"]), ("POST", "/txn"))
            self.assertEqual((headers["content-type"], headers["authorization"]),
                             (MEDIA, AUTHORIZATION))
        for number in range(200):
            one.event(number, error_code="x" * 1_000, error_description="é" * 1_000)
        self.assertEqual(self.flush().records, 200)
        self.assertLessEqual(max(row["bytes"] for row in server.requests[batches:]), 256 << 10)
        self.assertGreater(len(server.requests), batches + 2)

    def test_B_TXN_4_the_host_tightens(self):
        server = Strict(self, events_max=10, body_max=20_000)
        self.add(server.url, body_records_max=10, body_bytes_max=20_000)
        one = self.engine.transaction(17)
        for number in range(35):
            one.event(number)
        one.event(35, error_code="c" * 4_096, error_description="\x01" * 4_096)
        self.assertEqual(self.flush().records, 36)
        self.assertEqual([event for _, event in server.events], list(range(36)))
        with self.assertRaises(cordwood.ArgumentError):
            self.add(server.url, name="other", body_bytes_max=10_000)

    def test_B_TXN_4_arguments(self):
        for parameters, word in (({"prefix": "a b"}, "prefix"), ({"version": "1;x"}, "version"),
                                 ({"scheme": ""}, "scheme"), ({"param": 'a"'}, "param"),
                                 ({"brand": "x"}, "brand")):
            with self.assertRaisesRegex(cordwood.ArgumentError, word):
                self.add("http://127.0.0.1:9/x", parameters=parameters)
        with self.assertRaises(cordwood.UploadError) as caught:
            self.flush()
        self.assertEqual(caught.exception.status_name, "CW_E_NO_TARGET")

    def test_B_TXN_5_body(self):
        """Byte for byte, with the real seconds of two events and of the flush."""
        server = Scripted(self)
        self.add(server.url + "/txn")
        # Once something is archived, the engine's first tick, which may come late, is over.
        self.log.info("begins")
        self.archive()
        one = self.engine.transaction(17)
        one.event(0)
        another_second()
        one.event(1, error_code="42", error_description="Baad!")
        two = self.engine.transaction(18)
        two.event(7, error_code="7")
        one.event(2)
        times = {(record.fields["txn.id"], record.fields["txn.event"]): record.time
                 for record in self.records() if record.fields["txn.op"] == "event"}
        another_second()  # the event's time counts, not the flush's
        self.assertEqual(self.flush().records, 4)
        request, = server.requests
        self.assertEqual((request["headers"]["content-type"], request["headers"]["authorization"]),
                         (MEDIA, AUTHORIZATION))
        body = server.body(1).decode()
        at = re.findall(r'"apptxnlog/timestamp":"([^"]+)"', body)

        def head(transaction):
            return (f'{{"apptxn/id":"{transaction.id}","apptxn/usecase":{transaction.usecase},'
                    '"apptxn/user-agent-device-make":"ACME","apptxn/user-agent-device-os":"Linux",'
                    '"apptxn/user-agent-device-os-version":"6.1","apptxn/logs":[')

        def log(event, when, rest):
            return (f'{{"apptxnlog/usecase-event":{event},"apptxnlog/timestamp":"{when}",'
                    f'"apptxnlog/in-ctx-err-code":{rest}}}')
        self.assertEqual(body, '{"apptxns":[' + head(one)
                         + log(0, at[0], "null") + ","
                         + log(1, at[1], '"42","apptxnlog/in-ctx-err-desc":"Baad!"') + ","
                         + log(2, at[2], "null") + "]}," + head(two)
                         + log(7, at[3], '"7"') + "]}]}")
        seconds = [datetime.strptime(text, TIME).replace(tzinfo=timezone.utc) for text in at]
        self.assertGreater(seconds[1], seconds[0])
        for key, when in zip(((one.id, 0), (one.id, 1), (one.id, 2), (two.id, 7)), seconds):
            self.assertEqual(when, times[key].replace(microsecond=0))

    def test_B_TXN_5_hostile(self):
        server = Strict(self)
        self.add(server.url, parameters={**PARAMETERS, "device_make": "ä\"\\" * 200})
        one = self.engine.transaction(17)
        texts = ['"\\\n\r\t\x01\x7f', "\udcff\udc80abc", "\u2028💥" * 10, "x" * 100_000,
                 "é" * 5_000, "]}]}", ""]
        for text in texts:
            one.event(1, error_code=text, error_description=text)
        for bad in ("a\0b",):
            with self.assertRaises(cordwood.ArgumentError):
                one.event(1, error_code=bad)
        with self.assertRaises(cordwood.ArgumentError):
            one.event(1, error_description="without a code")
        with self.assertRaises(cordwood.ArgumentError):
            one.event(1 << 31)
        self.assertEqual(self.flush().records, len(texts))
        shown = [row["code"] for row in server.stored]
        self.assertEqual(shown, [row["description"] for row in server.stored])
        self.assertEqual(shown[:1] + shown[2:3] + shown[5:], texts[:1] + texts[2:3] + texts[5:])
        self.assertEqual(shown[1], "\ufffd\ufffdabc")
        self.assertEqual(shown[3:5], ["x" * 4_096, "é" * 2_048])

    def test_B_TXN_6_exactly_what_was_sent(self):
        """An event during the POST stays and is sent with the next one. Logging is not delayed."""
        server, begun = Strict(self, [{"action": "hold"}]), threading.Event()
        self.add(server.url, attempting=lambda *_: begun.set())
        one = self.engine.transaction(17)
        one.event(0)

        def latencies():
            for _ in range(200):  # warm-up
                one.event(5)
            found = []
            for _ in range(1_000):
                began = time.perf_counter_ns()
                one.event(5)
                found.append(time.perf_counter_ns() - began)
                time.sleep(0.0005)
            return sorted(found)
        done = []
        thread = threading.Thread(target=lambda: done.append(self.flush()))
        thread.start()
        self.assertTrue(begun.wait(30))
        during = latencies()
        one.event(1)
        self.assertFalse(done, "it still hangs")
        (server.directory / "go").touch()
        thread.join()
        self.assertEqual(done[0].records, 1)
        without = latencies()
        # An event that waited for the POST, or for a lock that it holds, would fail all of these.
        # On a shared machine single calls may be interrupted.
        self.assertLess(during[-1], 2_500_000_000, "none waited for the answer")
        self.assertLess(sum(took > 10_000_000 for took in during), len(during) / 10)
        half, usual = during[len(during) // 2], without[len(without) // 2]
        self.assertLess(half, 2 * usual + 500_000, "ns; as without a POST")
        logged = len(during) + len(without) + 2 * 200
        self.assertEqual(self.flush().records, logged + 1)
        events = [event for _, event in server.events]
        self.assertEqual((events.index(0), events.count(0), events.count(1)), (0, 1, 1))
        self.assertEqual(len(events), 2 + logged)

    def test_B_TXN_6_other_records_stay(self):
        """A target of events alone ends no archive: its other records were sent to no target."""
        self.add(Strict(self).url)
        self.log.info("beside them")
        with self.engine.transaction(17) as one:
            one.event(0)
        self.assertEqual(self.flush().records, 1)
        self.assertEqual(self.flush().records, 0, "they are sent once")

        def kept():
            return [record.message for record in cordwood.read(self.store)
                    if record.logger == "app"]
        self.assertEqual(kept(), ["beside them"])
        lines = Scripted(self)
        self.engine.add_target(lines.url, name="lines", kind="http", format="ndjson",
                               encoding="none")
        self.upload()
        self.assertEqual(kept(), [])
        self.assertIn(b"beside them", b"".join(
            lines.body(request["number"]) for request in lines.requests))

    def test_B_TXN_6_other_targets_keep_it(self):
        """Sent events are forgotten, even if another target still needs the archive."""
        server = Strict(self)
        self.add(server.url)
        logs = Scripted(self, [{"status": 500}] * 100)
        # The background may start when the flush has ended.
        self.engine.add_target(logs.url, name="logs", kind="http", format="ndjson",
                               condition=lambda: False)
        one = self.engine.transaction(17)
        one.event(0)
        self.assertEqual(self.flush().records, 1)
        self.assertEqual(logs.requests, [], "a flush is for transactions alone")
        self.assertEqual(self.flush().records, 0)
        self.assertEqual(len(server.requests), 1)
        with self.assertRaises(cordwood.ServerError):
            self.engine.upload(timeout=30)
        self.assertEqual(len(server.requests), 1)

    def test_B_TXN_7_503(self):
        now = datetime.now(timezone.utc)
        dates = {"wrong weekday": now + timedelta(seconds=90), "past": now - timedelta(days=1)}
        text = format_datetime(dates["wrong weekday"], usegmt=True)
        days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        wrong = days[(days.index(text[:3]) + 1) % 7] + text[3:]
        cases = [("seconds", "7", 7, 8), ("date", text, 60, 110), ("wrong weekday", wrong, 60, 110),
                 ("past", format_datetime(dates["past"], usegmt=True), 0, 1.1),
                 ("none", None, 1, 3)]
        for name, header, least, most in cases:
            with self.subTest(name):
                headers = {"Retry-After": header} if header else {}
                server = Strict(self, [{"status": 503, "headers": headers}])
                busy = []
                self.add(server.url, name=name, busy=lambda *said: busy.append(said))
                one = self.engine.transaction(17)
                one.event(1)
                error = self.refused()
                self.assertEqual(error.http_status, 503)
                (target, seconds), = busy
                self.assertEqual(target, name)
                self.assertTrue(least <= seconds <= most, seconds)
                if most > 5:
                    self.refused()
                    self.assertEqual(len(server.requests), 1, "a server's word holds")
                else:
                    until(lambda: server.events == [(one.id, 1)], "sent by the timer that moved")
                self.engine.remove_target(name)
                self.engine.delete_transactions()

    def test_B_TXN_7_401(self):
        server = Strict(self, [{"status": 401, "headers": {
            "WWW-Authenticate": 'PEApp realm="the \\"shop\\"", charset="UTF-8"'}}])
        asked, may = [], threading.Event()

        def fresh(target, challenge):
            asked.append((target, cordwood.parse_challenge(challenge)))
            may.wait(30)
            return TOKEN
        self.add(server.url, auth_token="stale", credentials=fresh)
        one = self.engine.transaction(17)
        one.event(1)
        done = []
        thread = threading.Thread(target=lambda: done.append(self.flush()))
        thread.start()
        until(lambda: asked, "the host is asked")
        one.event(2)
        self.assertEqual(server.events, [])
        may.set()
        thread.join()
        self.assertEqual(done[0].records, 1, "it goes on when the token comes")
        self.assertEqual(asked, [("txn", ("PEApp", 'the "shop"'))])
        self.assertEqual(self.flush().records, 1)
        self.assertEqual(server.events, [(one.id, 1), (one.id, 2)])

    def test_B_TXN_7_every_other_answer_keeps(self):
        for answer in (409, 400, 403, 404, 410, 415, 422, 429, 451, 500, 501, 502, 504, 302,
                       304, 700):
            with self.subTest(answer):
                server = Strict(self, [{"status": answer}] * 2)
                self.add(server.url, name=str(answer))
                one = self.engine.transaction(17)
                one.event(1)
                self.refused()
                self.refused()
                self.assertEqual(self.flush().records, 1)
                self.assertEqual(server.events, [(one.id, 1)])
                self.engine.remove_target(str(answer))
                self.engine.delete_transactions()
        dropping = Strict(self, [{"action": "drop"}, {"action": "lose"}])
        self.add(dropping.url)
        one = self.engine.transaction(17)
        one.event(1)
        self.refused()
        self.refused()
        self.assertEqual(self.flush().records, 1)
        self.assertEqual(dropping.events, [(one.id, 1)], "stored once, by its redelivery key")

    def test_B_TXN_8_propagation(self):
        one = self.engine.transaction(17)
        headers = one.headers()
        self.assertEqual(headers, {"X-Transaction-Id": one.id, "traceparent": one.traceparent})
        self.assertEqual(one.headers("X-Shop")["X-Shop"], one.id)
        uuid = one.id[6:].replace("-", "").lower()
        self.assertRegex(one.traceparent, rf"^00-{uuid}-[0-9a-f]{{16}}-01$")
        self.assertNotEqual(one.traceparent[36:52], "0" * 16)
        program = ("import cordwood, sys\n"
                   "with cordwood.open(sys.argv[1]) as engine:\n"
                   "    ids = cordwood.parse_traceparent(sys.argv[3])\n"
                   "    joined = engine.join_transaction(sys.argv[2])\n"
                   "    with joined, cordwood.trace(*ids):\n"
                   "        engine.logger('server').info('inside')\n"
                   "        joined.event(100)\n")
        store = Path(tempfile.mkdtemp(dir=WORK))
        for directory in (store, self.store):  # the store of another machine, and the same one
            subprocess.run([sys.executable, "-c", program, directory, one.id, one.traceparent],
                           env=environment(), check=True)
        with one:
            self.log.info("client")
            one.event(1)
        found = {record.message: record for record in cordwood.read(store)}
        inside = found["inside"]
        self.assertEqual((inside.fields["txn.id"], inside.trace_id, inside.span_id),
                         (one.id, uuid, one.traceparent[36:52]))
        self.assertEqual([record.fields["txn.op"] for record in self.records(store)],
                         ["join", "event", "end"])
        info, = self.engine.transactions()
        self.assertEqual((info.id, info.events), (one.id, 2))
        client = next(record for record in cordwood.read(self.store) if record.message == "client")
        self.assertEqual((client.fields["txn.id"], client.trace_id), (one.id, uuid))

    def test_B_TXN_8_bad_headers(self):
        good = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
        self.assertEqual(cordwood.parse_traceparent(good).flags, 1)
        self.assertTrue(cordwood.parse_traceparent("cc" + good[2:] + "-what-the-future"))
        for bad in ("", good[:-1], good + "0", good + "-", "ff" + good[2:], good.replace("1", "A"),
                    "00-" + "0" * 32 + good[35:], good[:36] + "0" * 16 + good[52:], " " + good,
                    good.replace("-", "_"), "0x" + good[2:], good[:53] + "1g", "\0" + good):
            with self.subTest(bad), self.assertRaises(cordwood.ArgumentError):
                cordwood.parse_traceparent(bad)
        uuid = "586AB00B-0A2C-4E61-9C53-3F4C59D1A0F7"
        self.assertEqual(self.engine.join_transaction(f"TXN-2147483648-{uuid}").usecase, -1 << 31)
        for bad in ("", "TXN", f"TXN-{uuid}", f"TXN17{uuid}", f"TXN017-{uuid}", f"TXN+1-{uuid}",
                    f"TXN2147483648-{uuid}", f"txn17-{uuid}", f"TXN17-{uuid.lower()}",
                    f"TXN17-{uuid[:-1]}", f"TXN17-{uuid}0", f"TXN17-{uuid}\n", f"TXN-0-{uuid}",
                    "TXN17-00000000-0000-0000-0000-000000000000", f"TXN17-{uuid[:-1]}G",
                    "TXN17-" + uuid.replace("-", "_"), "é" * 20, "x" * 10_000, f"TXN1\0-{uuid}"):
            with self.subTest(bad), self.assertRaises(cordwood.ArgumentError):
                self.engine.join_transaction(bad)

    def test_B_TXN_9_defects(self):
        """The defects named there are tested above, except these."""
        server = Strict(self, [{"action": "lose"}])
        self.add(server.url)
        one = self.engine.transaction(17)
        one.event(1)
        self.refused()
        self.flush()
        keys = {request["headers"]["idempotency-key"] for request in server.requests}
        self.assertEqual((len(server.requests), len(keys)), (2, 1), "a redelivery has its key")
        self.assertEqual(server.events, [(one.id, 1)])

    def test_preview_and_command_line(self):
        server = Strict(self)
        self.engine.set_consent("pending")  # the background would send it before the preview
        number = self.add(server.url)
        one = self.engine.transaction(17)
        one.event(1)
        body, = self.engine.upload_preview(number)
        self.assertEqual(json.loads(body)["apptxns"][0]["apptxn/id"], one.id)
        self.assertEqual(server.requests, [])
        self.engine.close()
        subprocess.run([CORDWOOD, "consent", self.store, "granted"], check=True,
                       stdout=subprocess.DEVNULL)
        words = [part for name, value in PARAMETERS.items()
                 for part in ("--parameter", f"{name}={value}")]
        subprocess.run([CORDWOOD, "upload", self.store, "--to", server.url, "--kind",
                        "transactions", "--name", "txn", *words],
                       env={**os.environ, "CORDWOOD_TOKEN": TOKEN}, check=True,
                       stdout=subprocess.DEVNULL)
        self.assertEqual(server.events, [(one.id, 1)])

    def test_consent_comes_first(self):
        self.engine.close()
        engine = self.engine = self.open(upload_interval_s=1)
        server = Strict(self)
        self.add(server.url)
        engine.set_consent("pending")
        one = engine.transaction(17)
        one.event(1)
        self.assertEqual(self.refused().status_name, "CW_E_CONSENT")
        self.assertEqual(server.requests, [])
        engine.set_consent("granted")
        until(lambda: server.events == [(one.id, 1)], "the timer, once it may")

    def test_a_damaged_list_of_the_deleted_sends_nothing(self):
        server = Strict(self)
        self.add(server.url)
        one = self.engine.transaction(17)
        one.event(1)
        path = self.store / "deleted"
        for content in (b"", b"nonsense\n", b"cordwood deleted\nformat 1\nall soon\n",
                        b"cordwood deleted\nformat 9\n", b"\xff\0" * 100):
            path.write_bytes(content)
            with self.assertRaises(cordwood.DamagedError):
                self.engine.transactions()
            with self.assertRaises(cordwood.UploadError):
                self.flush()
        self.assertEqual(server.requests, [])
        path.write_text("cordwood deleted\nformat 1\nlater something\n")
        self.assertEqual(self.flush().records, 1)

    def test_after_close(self):
        one = self.engine.transaction(17)
        self.engine.close()
        for call in (lambda: one.event(1), lambda: self.engine.transaction(17),
                     lambda: self.engine.join_transaction(one.id), self.engine.transactions,
                     self.engine.delete_transactions,
                     self.engine.flush_transactions):
            with self.assertRaises(cordwood.CordwoodError) as caught:
                call()
            self.assertEqual(caught.exception.status_name, "CW_E_CLOSED")
        one.end()
        with self.assertRaises(cordwood.ClosedError):
            one.event(1)


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python/src")}
