"""B-HTTP 6: a kept body is what was parsed, plus what the host says to keep."""

import base64
import json

import cordwood
from capturing import Exchange, ended, leaks
from sending import StoreCase

JSON = ("Content-Type", "application/json")


class Bodies(StoreCase):
    def capture(self, **options):
        self.engine.capture_http(True, **options)

    def test_B_HTTP_6_names_that_are_values_and_other_shapes(self):
        self.capture()
        basic = base64.b64encode(b"joe:HUNTER2").decode()
        xml = ("Content-Type", "text/xml")
        for header, body in (
                (JSON, '[{"name":"Accept","value":"kept"},'
                 '{"name":"Authorization","value":"HUNTER2"}]'),
                (JSON, '{"value":"HUNTER2","name":"db.password","note":"kept"}'),
                (JSON, json.dumps({"o": json.dumps({"key": "pin", "value": "HUNTER2"}),
                                   "n": "kept"})),
                (JSON, '{"u":"https:\\/\\/joe:HUNTER2@h\\/kept","v":"//joe:HUNTER2@h/"}'),
                (JSON, '{"headers":["Authorization: Basic %s","A: kept"]}' % basic),
                (JSON, json.dumps({"pem": "-----BEGIN PRIVATE KEY-----\nHUNTER2\n-----END PRIVATE "
                                   "KEY-----\n", "a": "kept"})),
                (xml, '<c><add key="Password" value="HUNTER2"/><property name="password">HUNTER2'
                 '</property><b>kept</b></c>')):
            for one in (header, ("X-None", "1")):
                Exchange(self.engine, headers=[one], body=body.encode()).answers(
                    200, [one], body.encode()).ends()
                found = ended(self.store)[-1]
                self.assertIn("kept", found["http.request.body"], body)
                self.assertIn("[redacted]", found["http.response.body"], body)
        self.assertEqual(leaks(self.store, [b"HUNTER2", basic.encode()[:12]]), [])
        for body in ('{"name":"Alice","value":"x"}', '{"a":"Basic information: use //a/b:c"}',
                     '<input name="user" value="joe"/>'):
            Exchange(self.engine, body=body.encode()).ends()
            self.assertEqual(ended(self.store)[-1]["http.request.body"], body)

    def test_B_HTTP_6_what_is_not_parsed_is_not_kept(self):
        self.capture()
        wide = '{"\u00fcser":"joe","password":"HUNTER2","more":"words"}'
        for header, body, kind in (
                ("text/html", b'<form><input name="password" value="HUNTER2"></form>', "text"),
                ("text/html", b"<!doctype html><p>HUNTER2", "html"),
                ("application/yaml", b"db:\n  password: |\n    HUNTER2\n", "text"),
                ("text/plain", b"Cookie: a=1;\r\n b=HUNTER2\r\n", "text"),
                ("text/plain", b"[db]\npassword = HUNTER2", "text"),
                ("application/x-www-form-urlencoded", b"[db]\npassword = HUNTER2", "text"),
                ("application/grpc-web", b"\0\0\0\0\7HUNTER2", "binary"),
                ("image/png", b"\x89PNG\r\n\x1a\nHUNTER2", "png 89504e470d0a1a0a"),
                ("application/json", wide.encode("utf-16"), "utf-16 fffe"),
                ("application/json", wide.encode("utf-16-le"), "binary")):
            Exchange(self.engine, headers=[("Content-Type", header)], body=body).ends()
            found = ended(self.store)[-1]
            self.assertNotIn("http.request.body", found, body)
            self.assertEqual(found["http.request.body.size"], len(body))
            self.assertRegex(found["http.request.body.note"],
                             f"^not parsed: {kind} hash [0-9a-f]{{16}}$")
        self.assertEqual(leaks(self.store, [b"HUNTER2"]), [])
        # Equal bodies have equal hashes.
        for body in (b"one", b"two", b"one"):
            Exchange(self.engine, body=body).ends()
        notes = [one["http.request.body.note"] for one in ended(self.store)[-3:]]
        self.assertEqual(notes[0], notes[2])
        self.assertNotEqual(notes[0], notes[1])

    def test_B_HTTP_6_what_the_host_keeps(self):
        self.capture(keep_text=["*.test errors", "other.test text/*"],
                     keep_keys=["session", "a.test/v1:pin"])
        for url, status, header, body, kept in (
                ("http://a.test/v1/x", 500, "text/plain", b"no such host", True),
                ("http://a.test/v1/x", 200, "text/plain", b"no such host", False),
                ("http://a.test/v1/x", 500, "text/html", b"no such host", False),
                ("http://other.test/x", 200, "text/csv", b"a,b", True),
                ("http://a.test/v1/x", 200, "application/json", b'{"session":"k","pin":"k"}', True),
                ("http://a.test/v2/x", 200, "application/json", b'{"session":"k"}', True)):
            Exchange(self.engine, url=url).answers(
                status, [("Content-Type", header)], body).ends()
            self.assertEqual(ended(self.store)[-1].get("http.response.body"),
                             body.decode() if kept else None, url)
        Exchange(self.engine, url="http://a.test/v2/x").answers(
            200, [], b'{"pin":"HUNTER2"}').ends()
        self.assertEqual(ended(self.store)[-1]["http.response.body"], '{"pin":"[redacted]"}')
        for wrong in ({"keep_text": "api.test"}, {"keep_text": "^ text/plain"},
                      {"keep_keys": "a/b:"}):
            with self.assertRaises(cordwood.CordwoodError) as caught:
                self.capture(**wrong)
            self.assertIn(next(iter(wrong)), str(caught.exception))
