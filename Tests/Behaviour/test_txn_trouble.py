"""B-TXN under interference: deletion and death while a batch is being sent, processes that end
beside an engine, words that no terminal should see."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import cordwood
from loopback import until
from sending import CORDWOOD, ROOT, Scripted, StoreCase

HOST = """
import sys
sys.path.insert(0, sys.argv[1])
import cordwood
engine = cordwood.open(sys.argv[2], upload_interval_s=3600)
transaction = engine.transaction(17)
for number in range(int(sys.argv[3])):
    transaction.event(number)
if len(sys.argv) > 4:
    engine.add_target(sys.argv[4], name="txn", kind="transactions")
    engine.flush_transactions(timeout=60)
engine.close()
"""


class Trouble(StoreCase):
    def host(self, events, *url):
        return [sys.executable, "-c", HOST, ROOT / "bindings/python/src", self.store, str(events),
                *url]

    def add(self, url, **options):
        """Only explicit calls send, unless the test passes another condition: the timer would take
        part of what a flush is to count."""
        options = {"condition": lambda: False, **options}
        return self.engine.add_target(url, name="txn", kind="transactions", **options)

    def pass_first_segment(self):
        """All events that follow are in one archive. How many a lane's first segment takes, which
        is small, depends on time."""
        self.engine.logger("app").info("in the first segment")
        self.engine.roll()

    def events(self, server, number):
        return [log["apptxnlog/usecase-event"]
                for one in json.loads(server.body(number))["apptxns"] for log in one["apptxn/logs"]]

    def test_B_TXN_2_deleted_while_it_is_sent(self):
        """The request under way is sent. No later request contains what was deleted."""
        server = Scripted(self, [{}, {"status": 500}])
        self.add(server.url, body_bytes_max=16_384)
        self.pass_first_segment()
        one = self.engine.transaction(17)
        for number in range(120):
            one.event(number)
        with self.assertRaises(cordwood.UploadError):
            self.engine.flush_transactions(timeout=30)
        self.assertEqual(len(server.requests), 2)
        before = len(self.events(server, 1))
        self.assertLess(before, 120)
        # The second batch was kept. It is cut as before, without what was deleted.
        self.engine.delete_transactions()
        self.engine.flush_transactions(timeout=30)
        self.assertEqual(len(server.requests), 2)

    def test_B_TXN_2_deleted_between_two_batches(self):
        taken = []

        def transport(request):
            taken.append(request.body.read())
            if len(taken) == 2:
                self.engine.delete_transactions()
            return 200, {}, b""
        self.add("http://127.0.0.1:1/", body_bytes_max=16_384, transport=transport)
        one = self.engine.transaction(17)
        for number in range(600):
            one.event(number)
        self.engine.flush_transactions(timeout=30)
        self.assertEqual(len(taken), 2, "no request after the deletion")

    def test_B_TXN_6_killed_while_a_smaller_batch_is_sent(self):
        """The next process sends the same events under the same key, whatever its limit."""
        server = Scripted(self, [{"status": 413}, {"action": "hang"}])
        process = subprocess.Popen(self.host(100, server.url))
        until(lambda: (server.directory / "body-2").exists(), "the second request")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.add(server.url)
        self.assertEqual(self.engine.flush_transactions(timeout=30).records, 100)
        first, second = self.events(server, 2), self.events(server, 3)
        self.assertLess(len(first), 100)
        self.assertEqual(second, first)
        keys = [row["headers"]["idempotency-key"] for row in server.requests]
        self.assertEqual(keys[2], keys[1])
        self.assertEqual(len(set(keys)), len(keys) - 1)

    def said_of_refusals(self):
        return [(record.fields["records"], record.fields["cause"])
                for record in cordwood.read(self.store, level="error")
                if record.message == "the target does not take some records"]

    def test_B_TXN_7_one_event_is_too_large_by_itself(self):
        """It is kept, counted, reported, and stays in the store. All others are sent, in order."""
        server = Scripted(self, rules={"limit": 3_000})
        self.add(server.url)
        one = self.engine.transaction(17)
        for number in range(60):
            one.event(number, *(["42", "d" * 4_000] if number in (0, 31, 58) else []))
        with self.assertRaises(cordwood.UploadError) as caught:
            self.engine.flush_transactions(timeout=30)
        result = caught.exception.result
        self.assertEqual((result.records, result.refused), (57, 3))
        self.assertGreater(result.quarantined, 0)
        taken = [number for row in server.requests if row["status"] == 200
                 for number in self.events(server, row["number"])]
        self.assertEqual(taken, [number for number in range(60) if number not in (0, 31, 58)])
        self.assertEqual(sum(count for count, _ in self.said_of_refusals()), 3)
        info, = self.engine.transactions()
        self.assertEqual(info.events, 60)
        before = len(server.requests)
        self.engine.flush_transactions(timeout=30)
        self.assertEqual(len(server.requests), before, "it is not tried again")

    def test_B_TXN_7_too_large_for_now(self):
        """With Retry-After a 413 is not final: the event waits, as after a 503."""
        server = Scripted(self, [{"status": 413, "headers": {"Retry-After": "1"}}])
        self.add(server.url, condition=None)
        self.engine.transaction(17).event(0)
        with self.assertRaises(cordwood.UploadError):
            self.engine.flush_transactions(timeout=30)
        self.assertEqual(self.said_of_refusals(), [])
        until(lambda: len(server.requests) == 2, "sent by the timer that moved")
        self.assertEqual(self.events(server, 2), [0])

    def test_B_TXN_6_what_is_in_doubt_is_cut_as_it_was(self):
        """A process with a smaller limit sends what another process had no answer for, under the
        same key and with the same events."""
        server, losing = Scripted(self, [{"status": 413}]), Scripted(self, [{"action": "lose"}])
        self.add(server.url)
        one = self.engine.transaction(17)
        for number in range(20):
            one.event(number)
        self.assertEqual(self.engine.flush_transactions(timeout=30).records, 20)
        self.assertGreater(len(server.requests), 2)
        subprocess.run(self.host(100, losing.url), stderr=subprocess.DEVNULL, check=False)
        before = len(server.requests)
        self.assertEqual(self.engine.flush_transactions(timeout=30).records, 100)
        lost, again = losing.requests[0], server.requests[before]
        self.assertEqual(again["headers"]["idempotency-key"], lost["headers"]["idempotency-key"])
        self.assertEqual(self.events(server, again["number"]), list(range(100)))
        self.assertEqual(len(server.requests), before + 1)

    def test_B_TXN_6_in_doubt_and_too_large(self):
        """A server that refuses a batch in doubt as too large does not have it: halve it."""
        server = Scripted(self, [{"action": "drop"}, {"status": 413}])
        self.add(server.url)
        self.pass_first_segment()
        one = self.engine.transaction(17)
        for number in range(40):
            one.event(number)
        with self.assertRaises(cordwood.UploadError):
            self.engine.flush_transactions(timeout=30)
        self.assertEqual(self.engine.flush_transactions(timeout=30).records, 40)
        taken = [self.events(server, row["number"]) for row in server.requests[2:]]
        self.assertGreater(len(taken), 1)
        self.assertEqual(sum(taken, []), list(range(40)))

    def test_B_TXN_6_of_processes_that_ended_meanwhile(self):
        server = Scripted(self)
        self.add(server.url)
        self.engine.transaction(17).event(0)
        self.assertEqual(self.engine.flush_transactions(timeout=30).records, 1)
        for _ in range(2):
            subprocess.run(self.host(3), check=True)
            self.assertEqual(self.engine.flush_transactions(timeout=30).records, 3)

    def test_B_TXN_2_nothing_else_is_deleted(self):
        self.engine.transaction(17).event(0)
        for option in (["--usecase", "1"], ["--since", "1h"], ["--level", "error"]):
            done = subprocess.run([CORDWOOD, "transactions", self.store, "--delete-all", *option],
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(self.engine.transactions()), 1)

    def test_B_TXN_1_names_that_are_gone_take_no_room(self):
        for number in range(5_000):
            self.engine.name_transaction(number, "name")
            self.engine.name_transaction(number, None)
        for number in range(3):
            self.engine.name_transaction(number, "again")
        self.engine.transaction(2).event(1)
        said = [record.fields.get("txn.usecase.name")
                for record in cordwood.read(self.store, kinds="transaction")]
        self.assertEqual(said, ["again"] * 3)  # begin, event, end

    def test_B_TXN_5_no_terminal_obeys_what_is_shown(self):
        words = "a\x9b2Jb\x7fc\x1b[2Jd"
        with self.engine.transaction(17) as one:
            one.event(1, "42", words)
        for arguments in (["cat", "--json"], ["transactions", "--json", "--id", one.id],
                          ["export", "--format", "otlp-spans"], ["cat"]):
            shown = on_terminal([CORDWOOD, *arguments, self.store])
            for bad in (b"\xc2\x9b", b"\x7f", b"\x1b[2J"):
                self.assertNotIn(bad, shown, arguments)
            if arguments == ["cat", "--json"]:
                texts = [json.loads(line)["fields"].get("txn.error.description")
                         for line in shown.replace(b"\r\n", b"\n").splitlines()]
                self.assertIn(words, texts)


def on_terminal(command):
    """What a command writes if its output is a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["NO_COLOR"] = "1"
        os.execv(command[0], [str(word) for word in command])
    shown, end = b"", time.monotonic() + 30
    while time.monotonic() < end:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    os.waitpid(child, 0)
    return shown
