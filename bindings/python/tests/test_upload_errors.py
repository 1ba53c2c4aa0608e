"""B-NET: each way in which a transfer fails, as Python sees it; what is logged about it; and that
the uploader's own records never trigger an upload."""
import json
import os
import subprocess
import time
import unittest
from pathlib import Path
from typing import Any, List

from answering import Answer, Answering
from support import StoreCase, cordwood

TOOL = Path(__file__).resolve().parents[3] / "build" / "bin" / "cordwood"
ODATA = json.dumps({"error": {
    "code": "SY/530", "message": {"lang": "en", "value": "No such team"},
    "innererror": {"transactionid": "4FDF3748112322F4E10000000A420C41", "errordetails": [
        {"code": "ZX/001", "message": "not valid", "propertyref": "Team/Id",
         "severity": "error"}]}}}).encode()
XML = (b'<?xml version="1.0"?><error xmlns="urn:x"><code>C/1</code><message xml:lang="de">Nein'
       b"</message><innererror><transactionid>TX9</transactionid></innererror></error>")


def eventually(what: str, condition: Any) -> None:
    """Polls for at most 30 s."""
    until = time.monotonic() + 30
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)


class UploadErrorTest(StoreCase):
    """What upload raises, and what is logged."""

    def failure(self, answer: Answer, **options: Any) -> cordwood.TransferError:
        """Uploads one record to a server that always answers so; the resulting error."""
        server = Answering(then=answer)
        self.addCleanup(server.close)
        engine = self.open()
        engine.add_target(server.url + "/a?key=secret", kind="http", format="ndjson",
                          name="mine", auth_token="token-secret", **options)
        engine.logger("a").info("x")
        with self.assertRaises(cordwood.TransferError) as caught:
            engine.upload(timeout=30)
        self.engine = engine
        return caught.exception

    def uploader(self, **which: Any) -> List[cordwood.Record]:
        """The engine's own records."""
        return [record for record in cordwood.read(self.store, **which)
                if record.logger == "Cordwood.Uploader"]

    def test_b_net_1_each_outcome_has_its_class(self) -> None:
        cases = [(302, cordwood.Redirection, "redirection"), (404, cordwood.ClientError, "client"),
                 (500, cordwood.ServerError, "server"), (600, cordwood.UnknownOutcome, "unknown")]
        for status, kind, word in cases:
            with self.subTest(status=status):
                error = self.failure(Answer(status))
                self.assertIs(type(error), kind)
                self.assertEqual((error.http_status, error.outcome), (status, word))
                self.assertEqual(error.target, "mine")
                self.assertGreaterEqual(error.attempt, 1)
                self.assertTrue(error.archive.endswith(".cwa"))
                self.assertEqual(error.status_name, "CW_E_UPLOAD")
                self.assertAlmostEqual(error.time.timestamp(), time.time(), delta=60)
                self.engine.close()
                self.setUp()

    def test_b_net_1_no_answer(self) -> None:
        engine = self.open()
        engine.add_target("http://127.0.0.1:9", kind="http", format="ndjson")
        engine.logger("a").info("x")
        with self.assertRaises(cordwood.RequestFailed) as caught:
            engine.upload(timeout=30)
        self.assertEqual(caught.exception.http_status, 0)
        self.assertIn("127.0.0.1", caught.exception.cause)

    def test_b_net_1_redirection_without_secrets(self) -> None:
        error = self.failure(Answer(302, headers=(
            ("Location", "https://user:pass@b.example/login?token=hidden"),)))
        self.assertEqual(error.location, "https://b.example")
        text = f"{error} {error.describe('de')} {vars(error)}"
        for secret in ("pass@", "hidden", "login", "token-secret", "key=secret"):
            self.assertNotIn(secret, text)

    def test_b_net_1_retry_after(self) -> None:
        self.assertEqual(self.failure(Answer(503, headers=(("Retry-After", "7"),))).retry_after, 7)

    def test_b_net_2_odata(self) -> None:
        for status in (400, 500):
            with self.subTest(status=status):
                error = self.failure(Answer(status, ODATA))
                self.assertEqual((error.code, error.message, error.language),
                                 ("SY/530", "No such team", "en"))
                self.assertEqual(error.transaction_id, "4FDF3748112322F4E10000000A420C41")
                self.assertEqual(error.details, (cordwood.ErrorDetail(
                    "ZX/001", "not valid", "Team/Id", "error"),))
                self.engine.close()
                self.setUp()

    def test_b_net_2_xml(self) -> None:
        error = self.failure(Answer(404, XML))
        self.assertEqual((error.code, error.message, error.language, error.transaction_id),
                         ("C/1", "Nein", "de", "TX9"))

    def test_b_net_2_other_bodies_give_none(self) -> None:
        error = self.failure(Answer(404, b'{"error": {"code": "cut'))
        self.assertEqual((error.code, error.message, error.details), ("", "", ()))

    def test_b_net_2_transaction_id_is_searchable(self) -> None:
        self.failure(Answer(400, ODATA))
        self.engine.close()
        found = [record for record in self.uploader() if "transaction.id" in record.fields]
        self.assertEqual({record.fields["transaction.id"] for record in found},
                         {"4FDF3748112322F4E10000000A420C41"})
        out = subprocess.run(
            [TOOL, "cat", "--json", "--where",
             "transaction.id=4FDF3748112322F4E10000000A420C41", self.store],
            stdout=subprocess.PIPE, check=True).stdout.splitlines()
        self.assertEqual([json.loads(line)["logger"] for line in out],
                         ["Cordwood.Uploader"] * len(found))

    def test_b_net_3_last_error_by_target(self) -> None:
        engine = self.open()
        self.assertIsNone(engine.last_error())
        servers = [Answering(then=Answer(status)) for status in (503, 404)]
        for name, server in zip("ab", servers):
            self.addCleanup(server.close)
            engine.add_target(server.url, kind="http", format="ndjson", name=name)
        engine.logger("a").info("x")
        with self.assertRaises(cordwood.TransferError):
            engine.upload(timeout=30)
        found = [engine.last_error(name) for name in "ab"]
        self.assertEqual([error and error.http_status for error in found], [503, 404])
        self.assertIsNone(engine.last_error("c"))
        engine.close()
        with self.assertRaises(cordwood.ClosedError):
            engine.last_error()
        assert found[0] is not None  # outlives the engine
        self.assertEqual(found[0].describe("de"), "Auf dem Server ist ein Fehler aufgetreten. "
                         "HTTP 503: vorübergehend nicht verfügbar.")

    def test_b_net_4_logged_also_where_it_recovers(self) -> None:
        server = Answering(Answer(500), Answer(502))
        self.addCleanup(server.close)
        engine = self.open(upload_interval_s=1)
        engine.add_target(server.url, kind="http", format="ndjson")
        engine.logger("a").info("x")
        engine.roll()
        eventually("the third attempt succeeds", lambda: engine.stats().uploads_succeeded == 1)
        engine.close()
        said = [record.fields["http.status"] for record in self.uploader(level="warn")]
        self.assertEqual(said, [500, 502])

    def test_b_net_5_in_words(self) -> None:
        error = self.failure(Answer(404, ODATA))
        self.assertEqual(str(error), error.describe())
        self.assertEqual(
            error.describe("en-GB"), "The server refused what was sent. HTTP 404: no such address "
            "there. The server says: “No such team” (code SY/530, transaction "
            "4FDF3748112322F4E10000000A420C41).")
        self.assertTrue(error.describe("de_AT").startswith(
            "Der Server hat die Daten abgelehnt. HTTP 404: die Adresse gibt es dort nicht."))
        texts = {cordwood.outcome_text(outcome, language)
                 for outcome in range(7) for language in ("en", "de")}
        self.assertEqual(len(texts), 14)
        self.assertEqual(cordwood.outcome_text(99), cordwood.outcome_text(6))

    def test_b_net_4_own_records_make_no_archives(self) -> None:
        """Here, segments are rolled by age after a second instead of a day."""
        engine = self.open(roll_age_s=1, upload_interval_s=1)
        engine.add_target("http://127.0.0.1:9", kind="http", format="ndjson")
        engine.logger("a").info("x")
        eventually("it is rolled by age", lambda: engine.stats().archives_written == 1)
        eventually("it is tried again and again", lambda: engine.stats().uploads_failed >= 4)
        stats = engine.stats()
        self.assertEqual((stats.archives_written, stats.segments_sealed), (1, 1))
        self.assertEqual(len(os.listdir(Path(self.store) / "archives")), 1)
        self.assertGreaterEqual(len(self.uploader(level="warn")), 4)
        engine.logger("a").info("y")
        eventually("what the host writes is rolled", lambda: engine.stats().archives_written == 2)


if __name__ == "__main__":
    unittest.main()
