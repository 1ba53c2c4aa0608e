"""B-SAP: the behaviour of SAP's log uploader, without its defects."""

import json
import logging
import re
import subprocess
import threading
import time
from datetime import datetime, timezone

import cordwood
from aged import make_old
from loopback import until
from sending import CORDWOOD, Scripted, StoreCase

LINE = re.compile(r"#\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d#"
                  r"(DEBUG|INFO|WARN|ERROR|FATAL)#[^#]*#[^#]*#[^#]*#[^#]*#")


class SAP(StoreCase):
    def records(self, **more):
        return [record for record in cordwood.read(self.store, **more)
                if not record.logger.startswith("Cordwood.")]

    def archives(self):
        folder = self.store / "archives"
        return sorted(path.name for path in folder.glob("*.cwa")) if folder.is_dir() else []

    def archive(self, count=1):
        for _ in range(count):
            self.log.info("x")
            self.engine.roll()
            self.engine.archive_wait(30)

    def test_B_SAP_1_attach(self):
        with self.assertRaises(cordwood.StoreError):
            cordwood.open("/dev/null/store")
        engine = self.open(segment_bytes=65_536, archives_max=2)
        handler = cordwood.Handler(engine)
        root = logging.getLogger()
        root.addHandler(handler)
        try:
            logging.getLogger("some.library").warning("through the root")
            for _ in range(3_000):
                logging.getLogger("some.library").warning("%s", "y" * 100)
        finally:
            root.removeHandler(handler)
        engine.roll()
        engine.archive_wait(30)
        until(lambda: len(self.archives()) <= 2, "two files at most")
        self.assertTrue(self.records(logger="some.library"))
        self.assertLess(max((self.store / "archives" / name).stat().st_size
                            for name in self.archives()), 65_536)

    def test_B_SAP_2_loggers(self):
        engine = self.engine
        names = ("app", "app.db", "app.db.pool", "app.dbx")
        engine.set_level("", "error")
        engine.set_level("app.db", "debug")
        for name in names:
            engine.logger(name).debug("first")
        engine.set_level("app.db", "off")
        for name in names:
            engine.logger(name).fatal("second")
        found = [(record.logger, record.message) for record in self.records(level="trace")]
        self.assertEqual(found, [("app.db", "first"), ("app.db.pool", "first"), ("app", "second"),
                                 ("app.dbx", "second")])

    def test_B_SAP_3_fields(self):
        before = datetime.now(timezone.utc)
        try:
            raise ValueError("no money")
        except ValueError:
            self.log.exception("order %d failed", 7, correlation_id="c-1")
        record, = self.records()
        self.assertEqual((record.logger, record.level, record.message),
                         ("app", "ERROR", "order 7 failed"))
        self.assertLessEqual(before.timestamp() - 1, record.time.timestamp())
        self.assertEqual((record.function.rpartition(".")[2], record.file.rpartition("/")[2]),
                         ("test_B_SAP_3_fields", "test_sap.py"))
        self.assertGreater(record.line, 0)
        self.assertEqual(record.tid, threading.get_native_id())
        self.assertEqual(record.fields["correlation_id"], "c-1")
        self.assertIn("no money", str(record))
        server = Scripted(self, [{"status": 500}])
        self.add(server.url)
        self.fails()
        self.assertTrue([record for record in cordwood.read(self.store)
                         if record.logger == "Cordwood.Uploader"])

    def test_B_SAP_4_lines(self):
        names = ["app", "a#b", "#######", "zeile\neins\r"]
        for number, level in enumerate(("trace", "notice", "warn", "fatal")):
            engine = self.engine
            engine.set_level("", "trace")
            engine.logger(names[number]).log(level, "%s", "m#1\nm#2\r end",
                                             correlation_id="k#\n" if number else "")
        self.archive()
        lines = self.export_sap()
        self.assertEqual(len(lines), 5)
        for line in lines:
            self.assertEqual(line.count("#"), 7, line)
            self.assertRegex(line, LINE)
        self.assertEqual([line.split("#")[2] for line in lines[:4]],
                         ["DEBUG", "INFO", "WARN", "FATAL"])
        self.assertEqual(lines[1].split("#")[3:5], ["k_\\n", "a_b"])
        self.assertEqual(lines[1].split("#")[6], "m_1\\nm_2\\r end")
        self.assertRegex(lines[1].split("#")[5], r"test_sap\.py:\d+ \S*test_B_SAP_4_lines$")
        self.assertIn("m#1\nm#2\r end", [record.message for record in self.records(level="trace")],
                      "what is stored is lossless")

    def export_sap(self):
        done = subprocess.run([CORDWOOD, "export", self.store, "--format", "sap"], check=True,
                              stdout=subprocess.PIPE)
        lines = done.stdout.decode().split("\n")
        return [line for line in lines if line and "#Cordwood." not in line]

    def test_B_SAP_5_upload(self):
        server = Scripted(self)
        self.add(server.url, kind="sap", format="sap", auth_user="u", auth_password="p",
                 parameters={"application": "com.example", "application_id": "shop",
                             "device_id": "d 1"}, request_timeout=30.0)
        for number in range(10):
            self.log.info("line %d", number)
        self.assertEqual(self.upload().uploaded, 1)
        request, = server.requests
        self.assertEqual(request["path"], "/mobileservices/application/com.example/clientlogs/v1/"
                                          "runtime/log/application/shop?deviceId=d%201")
        self.assertTrue(request["headers"]["authorization"].startswith("Basic "))
        self.assertEqual(request["headers"]["content-type"].split(";")[0], "text/plain")
        # To the host's own endpoint, in several bodies.
        self.engine.remove_target("target")
        self.add(server.url + "/own/{app}", kind="sap", format="sap", body_records_max=3,
                 parameters={"application": "shop"})
        for number in range(10):
            self.log.info("line %d", number)
        self.assertEqual(self.upload().uploaded, 1)
        chunks = server.requests[1:]
        self.assertGreaterEqual(len(chunks), 4)
        self.assertEqual({chunk["path"] for chunk in chunks}, {"/own/shop"})
        # A request that takes too long is ended.
        slow = Scripted(self, [{"action": "hang"}])
        self.engine.remove_target("target")
        self.add(slow.url, request_timeout=0.3)
        self.log.info("x")
        self.assertEqual(self.fails().outcome, "request_failed")

    def test_B_SAP_6_success(self):
        answers = [{"status": status} for status in (500, 302, 404)] + [{"action": "drop"}]
        for answer in answers:
            with self.subTest(answer=answer):
                server = Scripted(self, [answer])
                self.add(server.url, name=f"t{server.port}")
                self.log.info("x")
                self.fails()
                self.assertTrue(self.archives(), "only a 2xx removes")
                self.engine.remove_target(f"t{server.port}")
        server = Scripted(self, [{"status": 204}])
        self.add(server.url)
        self.upload()
        self.assertEqual(self.archives(), [])

    def test_B_SAP_7_expiry(self):
        """Age counts from when a record was written: an event of long ago stays."""
        entry = logging.LogRecord("old", logging.INFO, __file__, 1, "told today", (), None)
        entry.created = time.time() - 8 * 86_400
        cordwood.Handler(self.engine).emit(entry)
        for days in (0, 8, 6):
            known = set(self.archives())
            self.log.info(f"{days} days")
            self.engine.roll()
            self.engine.archive_wait(30)
            made, = set(self.archives()) - known
            make_old(self.store / "archives" / made, days)
        self.engine.close()
        removed = []
        self.engine = engine = self.open(
            expiration_days=7, archive_removed=lambda name, reason: removed.append(reason))
        self.archive()
        server = Scripted(self)
        self.add(server.url)
        self.assertEqual(engine.upload(timeout=30).expired, 1)
        sent = b"".join(server.body(request["number"]) for request in server.requests).decode()
        self.assertIn("6 days", sent)
        self.assertIn("told today", sent)
        self.assertNotIn("8 days", sent)
        self.assertEqual(removed, ["expired"])

    def test_B_SAP_8_errors(self):
        engine, found = self.engine, {}

        def status(call):
            try:
                call()
                return "none"
            except cordwood.CordwoodError as error:
                return error.status_name
        found["no target"] = status(engine.upload)
        server = Scripted(self, [{"status": 500}])
        self.add(server.url)
        self.log.info("x")
        found["network"] = status(engine.upload)
        error = engine.last_error("target")
        self.assertEqual((error.outcome, error.http_status, error.cause),
                         ("server", 500, "HTTP 500"))
        engine.upload(timeout=30)
        self.assertEqual(engine.upload(timeout=30).uploaded, 0, "nothing to upload is no error")
        entered, done, over = threading.Event(), threading.Event(), threading.Event()

        def hold(request):
            entered.set()
            done.wait(20)
            return 200, {}, b""
        engine.remove_target("target")
        self.add("http://held.example", transport=hold)
        self.log.info("x")
        engine.upload_async(lambda *_: over.set())
        self.assertTrue(entered.wait(20))
        found["in progress"] = status(engine.upload)
        done.set()
        self.assertTrue(over.wait(30), "the first upload's end")
        engine.set_consent("pending")
        found["no consent"] = status(engine.upload)
        engine.set_consent("granted")
        engine.apply_policy({"enabled": False})
        found["not enabled"] = status(engine.upload)
        engine.apply_policy({})
        self.assertEqual(found, {
            "no target": "CW_E_NO_TARGET", "network": "CW_E_UPLOAD", "in progress": "CW_E_BUSY",
            "no consent": "CW_E_CONSENT", "not enabled": "CW_E_NOT_ENABLED"})
        ended = []
        engine.remove_target("target")
        self.add(server.url, completed=lambda name, status, http: ended.append(status))
        engine.set_consent("pending")
        self.archive()
        path = self.store / "archives" / self.archives()[0]
        path.write_bytes(path.read_bytes()[:100])
        engine.set_consent("granted")
        self.fails()
        self.assertEqual(ended, [-17], "a damaged file: CW_E_DAMAGED")

    def test_B_SAP_9_policy(self):
        policy = {"levels": {"app": "error"}, "enabled": True, "expiration_days": 3,
                  "max_files": 10, "max_file_size_bytes": 65_536, "quota_bytes": 1 << 26,
                  "upload_interval_s": 60}
        server = Scripted(self, [{"status": 200, "body": json.dumps(policy)},
                                 {"status": 200, "body": "{\"levels\": 7}"}])
        self.engine.close()
        self.engine = engine = self.open(policy_url=server.url + "/policy", policy_interval_s=1,
                                         policy_allow=["erase"])
        until(lambda: not engine.logger("app").enabled("warn"), "the policy from the URL")
        until(lambda: len(server.requests) >= 2, "the malformed one")
        until(lambda: [cause for cause in self.causes if "levels" in cause], "it is reported")
        self.assertFalse(engine.logger("app").enabled("warn"), "it changes nothing")
        with self.assertRaises(cordwood.ArgumentError) as caught:
            engine.apply_policy({"enabled": "yes"})
        self.assertIn("enabled", str(caught.exception))
        engine.apply_policy({"levels": {"app": "trace"}})
        self.assertTrue(engine.logger("app").enabled("trace"), "by the host")
        self.archive(12)
        engine.apply_policy({"max_files": 10})
        until(lambda: len(self.archives()) <= 10, "the policy's number of files")

    def test_B_SAP_10_consent(self):
        self.engine.close()
        removed = []
        self.store = self.store / "new"
        self.engine = engine = self.open(
            consent="pending", archive_removed=lambda name, reason: removed.append(reason))
        server = Scripted(self)
        number = self.add(server.url)
        self.log.info("private")
        with self.assertRaises(cordwood.UploadError):
            engine.upload(timeout=10)
        self.assertEqual(len(self.archives()), 1, "pending keeps")
        seen = engine.upload_preview(number)
        self.assertIn(b"private", b"".join(seen), "what would be sent can be seen")
        engine.set_consent("granted")
        engine.upload(timeout=30)  # or the upload that the grant started did it
        until(lambda: not self.archives(), "the archive is sent and removed")
        self.assertEqual(server.body(1), seen[0], "and exactly that is sent")
        engine.set_consent("pending")
        self.archive()
        engine.set_consent("denied")
        until(lambda: removed == ["consent"] and not self.archives(), "what waited is gone")
        self.assertEqual(len(server.requests), 1)
        engine.close()
        self.engine = self.open()
        self.add(server.url)
        self.fails()
