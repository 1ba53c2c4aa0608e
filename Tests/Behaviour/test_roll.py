"""B-ROLL: an upload when a file rolls, without the defects of what it replaces."""

import gzip
import json
import os
import random
import subprocess
import sys
import threading
import time

import cordwood
from loopback import until
from sending import CORDWOOD, Scripted, StoreCase


class Roll(StoreCase):
    def archives(self):
        folder = self.store / "archives"
        return sorted(path.name for path in folder.glob("*.cwa")) if folder.is_dir() else []

    def archive(self, count=1):
        for number in range(count):
            self.log.info("record %d", number)
            self.engine.roll()
            self.engine.archive_wait(30)

    def reopen(self, **options):
        self.engine.close()
        self.engine = self.open(**options)
        return self.engine

    def test_B_ROLL_1_template(self):
        server = Scripted(self)
        self.archive(2)
        files = {name: (self.store / "archives" / name).read_bytes() for name in self.archives()}
        self.add(server.url + "/in/{name}?from=here", format="archive", method="PUT",
                 headers={"X-Team": "storage"})
        self.upload()
        self.assertEqual(len(server.requests), 2)
        for request in server.requests:
            name = request["path"].removeprefix("/in/").partition("?")[0]
            self.assertEqual((request["method"], request["headers"]["x-team"]), ("PUT", "storage"))
            self.assertEqual(server.body(request["number"]), files[name])

    def test_B_ROLL_2_size_and_age(self):
        engine = self.reopen(segment_bytes=65_536, roll_age_s=0)
        count = 3_000
        for number in range(count):
            self.log.info("record %d %s", number, "x" * 80)
        until(lambda: engine.stats().segments_sealed >= 3, "rolls by size")
        engine = self.reopen(roll_age_s=1)
        self.log.info("record %d", count)
        until(lambda: engine.stats().segments_sealed >= 1, "a roll by age")
        found = sorted(int(record.message.split()[1]) for record in cordwood.read(self.store)
                       if record.logger == "app")
        self.assertEqual(found, list(range(count + 1)), "no record is lost, and none twice")

    def test_B_ROLL_3_triggers(self):
        server = Scripted(self, [{"status": 500}] * 3)
        self.add(server.url)
        self.archive()
        until(lambda: len(server.requests) >= 1, "a roll sends")
        until(lambda: len(server.requests) >= 2, "what failed is retried by a timer")
        self.archive()
        until(lambda: len(server.requests) >= 3, "a roll sends all")
        until(lambda: not self.archives(), "the retries")
        # At start, once there is a target; and on demand.
        closed = Scripted(self, [{"status": 500}])
        engine = self.reopen(upload_interval_s=1)
        self.engine.remove_target("target")
        self.log.info("left behind")
        engine.close()
        self.engine = self.open(upload_interval_s=1)
        self.add(closed.url, name="second")
        until(lambda: closed.requests, "the first tick at start")
        self.engine.upload(timeout=30)
        self.assertEqual(self.archives(), [])

    def test_B_ROLL_4_leaves_at_once(self):
        gone = threading.Event()
        server = Scripted(self)
        self.archive(3)
        ended = []

        def completed(name, status, http_status):
            ended.append(name)
            if len(ended) == 1:
                gone.set()
        self.add(server.url, completed=completed, requests_max=1)
        self.upload()
        self.assertEqual((len(ended), self.archives()), (3, []))

    def test_B_ROLL_5_retention(self):
        removed = []
        engine = self.reopen(archives_max=2, archive_removed=lambda *what: removed.append(what))
        self.archive(5)
        until(lambda: len(self.archives()) == 2, "two archives")
        until(lambda: len(removed) == 3, "each deletion is told")
        self.assertEqual(len({name for name, _ in removed}), 3, "exactly once")
        self.assertEqual({reason for _, reason in removed}, {"count"})
        engine = self.reopen(archives_max=0, quota_bytes=0)
        self.archive(6)
        self.assertEqual(len(self.archives()), 8, "0 is unlimited")
        self.assertEqual(engine.stats().archives_removed, 0)
        # The quota. What is being written stays in any case.
        removed.clear()
        engine = self.reopen(quota_bytes=2 << 20, segment_bytes=65_536,
                             archive_removed=lambda *what: removed.append(what))
        self.log.info("the last record")
        for number in range(60):
            self.log.write("info", random.Random(number).randbytes(50_000))
            engine.roll()
            engine.archive_wait(30)
        until(lambda: any(reason == "quota" for _, reason in removed), "the quota")
        self.assertEqual(len({name for name, _ in removed}), len(removed))

    def test_B_ROLL_5_what_others_left_is_archived_first(self):
        """The segment of a process that has ended takes a hundred times the space of its archive:
        no archive is deleted for it, and no roll is refused."""
        removed = []
        for number in range(4):
            engine = self.reopen()
            for line in range(700):
                self.log.info("%d of host %d %s", line, number, "x" * 1_000)
        self.archive(3)
        engine.close()
        left = list((self.store / "lanes").glob("*.sealed"))
        self.assertGreater(sum(path.stat().st_blocks * 512 for path in left), 2 << 20)
        engine = self.reopen(quota_bytes=2 << 20, segment_bytes=65_536,
                             archive_removed=lambda *what: removed.append(what))
        for number in range(3):
            self.log.info("after them %d", number)
            engine.roll()
        engine.archive_wait(30)
        self.assertEqual(removed, [])
        found = [record.message for record in cordwood.read(self.store) if record.logger == "app"]
        self.assertEqual(len(found), 4 * 700 + 3 + 3)

    def test_B_ROLL_6_callbacks(self):
        server = Scripted(self, [{"status": 500}, {"status": 503}])
        seen = []
        self.add(server.url, attempting=lambda name, attempt: seen.append(("attempting", attempt)),
                 completed=lambda name, status, http: seen.append(("completed", status, http)))
        self.log.info("x")
        for _ in range(2):
            self.fails()
        self.upload()
        self.upload()
        self.assertEqual(seen, [("attempting", 1), ("attempting", 2), ("attempting", 3),
                                ("completed", 0, 200)])

    def test_B_ROLL_7_discretionary(self):
        server, allowed, asked = Scripted(self), [], []

        def condition():
            asked.append(1)
            return bool(allowed)
        engine = self.reopen(upload_interval_s=1)
        self.add(server.url, condition=condition)
        self.archive()
        until(lambda: len(asked) >= 2, "it is asked")
        self.assertEqual(server.requests, [])
        self.assertEqual(engine.upload(timeout=30).uploaded, 1, "an explicit upload overrides it")
        self.archive()
        allowed.append(1)
        until(lambda: len(server.requests) == 2, "the condition is met")
        until(lambda: not self.archives(), "the answer is heeded")
        # A byte rate, which an explicit call overrides, too.
        engine.remove_target("target")
        engine.set_consent("pending")
        self.log.write("info", random.Random(7).randbytes(400_000))
        engine.roll()
        engine.archive_wait(30)
        size = sum((self.store / "archives" / name).stat().st_size for name in self.archives())
        self.add(server.url, format="archive", bytes_per_s=max(1, size // 100))
        engine.set_consent("granted")
        began = time.monotonic()
        engine.upload(timeout=60)
        until(lambda: not self.archives(), "it is sent, by this call or by what the grant began")
        self.assertLess(time.monotonic() - began, 50, "a hundredth a second would be 100 s")

    def test_B_ROLL_8_compression(self):
        for encoding in ("none", "gzip", "zstd", "lz4"):
            server = Scripted(self)
            self.add(server.url, name=encoding, encoding=encoding)
            self.log.info("in %s", encoding)
            self.upload()
            request, = server.requests
            body = server.body(1)
            said = request["headers"].get("content-encoding", "none")
            self.assertEqual(said, encoding)
            magic = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}
            self.assertTrue(body.startswith(magic.get(encoding, b"{")))
            self.engine.remove_target(encoding)
        refuses = Scripted(self, [], rules={"refuse": "zstd"})
        self.add(refuses.url, encoding="zstd")
        self.log.info("falls back")
        self.upload()
        self.assertIn(b"falls back", gzip.decompress(refuses.body(2)))
        with self.assertRaises(cordwood.ArgumentError):
            self.add(refuses.url, name="loggly", kind="loggly", format="json", encoding="gzip")

    def test_B_ROLL_9_outlives_the_program(self):
        program = ("import cordwood, os, signal, sys\n"
                   "engine = cordwood.open(sys.argv[1])\n"
                   "engine.add_target(sys.argv[2], kind='http', format='ndjson', name='target')\n"
                   "for n in range(100): engine.logger('app').info('record %d', n)\n"
                   "os.kill(os.getpid(), signal.SIGKILL)\n")
        self.engine.close()
        dead = Scripted(self, [{"status": 500}] * 99)
        done = subprocess.run([sys.executable, "-c", program, self.store, dead.url],
                              env=environment(), check=False)
        self.assertEqual(done.returncode, -9)
        server = Scripted(self)
        watch = subprocess.Popen(
            [CORDWOOD, "upload", self.store, "--to", server.url, "--kind", "http", "--format",
             "ndjson", "--name", "target", "--watch"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        until(lambda: self.messages(server) == [f"record {n}" for n in range(100)],
              "what a killed program left")
        # A callback reports that everything that waited is done.
        drained = threading.Event()
        self.engine = self.open()
        self.add(server.url, drained=drained.set)
        self.log.info("one more")
        self.engine.roll()
        self.assertTrue(drained.wait(30) or not self.archives())

    def messages(self, server):
        lines = [line for request in server.requests if request["status"] == 200
                 for line in self.sent_lines(server.body(request["number"]))]
        return [line["message"] for line in lines if line["message"].startswith("record")]

    def test_B_ROLL_10_integrations(self):
        server = Scripted(self, [], rules={"respond": "loggly"})
        self.add(server.url, kind="loggly", format="json", auth_token="the-token", name="loggly")
        before = time.time()
        self.log.info("to loggly")
        self.upload()
        request, = server.requests
        self.assertEqual(request["path"], "/bulk/the-token/tag/cordwood/")
        line = [line for line in map(json.loads, server.body(1).splitlines())
                if line["message"] == "to loggly"][0]
        stamp = time.strptime(line["timestamp"][:19], "%Y-%m-%dT%H:%M:%S")
        self.assertLess(abs(time.mktime(stamp) - time.timezone - before), 5)
        self.engine.remove_target("loggly")
        plain = Scripted(self, [], rules={"respond": "loggly"})
        self.add(plain.url, kind="loggly", format="text", auth_token="t", name="plain")
        self.log.info("in plain")
        self.upload()
        self.assertIn(b"in plain", plain.body(1))
        self.engine.remove_target("plain")
        bucket = Scripted(self, [], rules={"respond": "s3"})
        self.add(bucket.url + "/bucket", kind="s3", format="archive", name="s3", auth_user="KEY",
                 auth_password="secret")
        self.log.info("to s3")
        self.upload()
        request, = bucket.requests
        self.assertTrue(request["path"].startswith("/bucket/"))
        self.assertIn("AWS4-HMAC-SHA256", request["headers"]["authorization"])

    def test_B_ROLL_11_defects(self):
        """A 500 deletes nothing, a crash between 2xx and delete sends the same id again, and no
        header contains a local path."""
        server = Scripted(self, [{"status": 500}, {"action": "lose"}])
        self.add(server.url)
        self.log.info("x")
        for _ in range(2):
            self.fails()
            self.assertEqual(len(self.archives()), 1)
        self.upload()
        keys = {request["headers"]["idempotency-key"] for request in server.requests}
        self.assertEqual((len(server.requests), len(keys)), (3, 1))
        for request in server.requests:
            self.assertNotIn(str(self.store), json.dumps(request["headers"]))


def environment():
    return {**os.environ, "PYTHONPATH": [path for path in sys.path if "bindings" in path][0]}
