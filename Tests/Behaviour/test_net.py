"""B-NET: every transfer ends in one outcome, which is reported, logged and put into words."""

import json

import cordwood
from loopback import free_port
from sending import Scripted, StoreCase

ODATA = {"error": {"code": "SY/530", "message": {"lang": "en", "value": "No such team"},
                   "innererror": {"transactionid": "4FDF3748112322F4E10000000A420C41",
                                  "errordetails": [{"code": "A/1", "message": "wrong",
                                                    "propertyref": "Team/Id",
                                                    "severity": "error"}]}}}


class Net(StoreCase):
    def outcome(self, answer):
        server = Scripted(self, [answer])
        self.add(server.url, name=f"t{server.port}", request_timeout=30.0)
        self.log.info("x")
        error = self.fails()
        self.engine.remove_target(f"t{server.port}")
        return error

    def test_B_NET_1_outcomes(self):
        cases = [({"status": 302, "headers": {"Location": "https://other.example/x?secret=1"}},
                  "redirection", cordwood.Redirection),
                 ({"status": 404}, "client", cordwood.ClientError),
                 ({"status": 500}, "server", cordwood.ServerError),
                 ({"status": 700}, "unknown", cordwood.UnknownOutcome),
                 ({"action": "drop"}, "request_failed", cordwood.RequestFailed)]
        for answer, word, kind in cases:
            with self.subTest(word):
                error = self.outcome(answer)
                self.assertIsInstance(error, kind)
                self.assertEqual(error.outcome, word)
                self.assertTrue(error.cause)
                if word == "redirection":
                    self.assertEqual(error.location, "https://other.example")
        self.add(f"http://127.0.0.1:{free_port()}", name="nobody")
        self.log.info("x")
        error = self.fails()
        self.assertEqual((error.outcome, error.http_status), ("request_failed", 0))
        self.engine.remove_target("nobody")
        self.add(Scripted(self).url)
        self.assertEqual(self.upload().last_outcome, "success")

    def test_B_NET_2_odata(self):
        headers = {"Content-Type": "application/json"}
        error = self.outcome({"status": 400, "headers": headers, "body": json.dumps(ODATA)})
        self.assertEqual((error.code, error.message, error.language, error.transaction_id),
                         ("SY/530", "No such team", "en", "4FDF3748112322F4E10000000A420C41"))
        detail, = error.details
        self.assertEqual(tuple(detail), ("A/1", "wrong", "Team/Id", "error"))
        found = [record for record in cordwood.read(self.store)
                 if record.fields.get("transaction.id") == error.transaction_id]
        self.assertTrue(found, "the transaction id is a field to search by")
        error = self.outcome({"status": 400, "headers": headers, "body": "{\"error\": ["})
        self.assertEqual((error.outcome, error.code, error.details), ("client", "", ()))

    def test_B_NET_3_typed(self):
        error = self.outcome({"status": 429, "headers": {"Retry-After": "7"}})
        self.assertEqual((error.http_status, error.attempt, error.retry_after), (429, 1, 7.0))
        last = self.engine.last_error()
        self.assertEqual((type(last), last.http_status, last.archive),
                         (type(error), error.http_status, error.archive))

    def test_B_NET_4_always_logged(self):
        server = Scripted(self, [{"status": 503}])
        self.add(server.url)
        self.log.info("x")
        self.fails()
        self.upload()
        said = [record for record in cordwood.read(self.store)
                if record.logger == "Cordwood.Uploader" and record.fields.get("http.status") == 503]
        self.assertEqual(len(said), 1, "also where the next attempt succeeds")
        before = len(server.requests)
        self.upload()
        self.upload()
        self.assertEqual(len(server.requests), before, "its own records are not sent in a loop")

    def test_B_NET_5_words(self):
        texts = set()
        for answer in ({"status": 302}, {"status": 404}, {"status": 500}, {"status": 700},
                       {"action": "drop"}):
            error = self.outcome(answer)
            english, german = error.describe("en"), error.describe("de-AT")
            self.assertNotEqual(english, german)
            texts |= {english, german}
        self.assertEqual(len(texts), 10)
