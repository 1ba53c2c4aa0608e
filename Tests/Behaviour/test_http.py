"""B-HTTP: captured exchanges: when, which parts, limits, conversations and redaction.
test_http_read.py tests reading them, test_http_hooks.py the hooks."""

import gzip
import json
import os
import resource
import stat
import subprocess
import time
import zlib

import cordwood
from cordwood._abi import Field, Text
from capturing import CANCELLED, SERVER, Exchange, begun, ended, everything, leaks
from cases import full
from loopback import until
from sending import BUILD, CORDWOOD, ROOT, WORK, StoreCase

JSON = ("Content-Type", "application/json")
FORM = ("Content-Type", "application/x-www-form-urlencoded")


class Http(StoreCase):
    def capture(self, **options):
        self.engine.capture_http(True, **options)

    def one(self):
        found = ended(self.store)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def cordwood(self, *arguments, code=0):
        done = subprocess.run([CORDWOOD, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    # ── 1: when ──

    def test_B_HTTP_1_off_by_default(self):
        self.assertFalse(self.engine.captures_http)
        exchange = Exchange(self.engine)
        self.assertEqual((exchange.status, exchange.handle.value, exchange.id), (1, None, ""))
        exchange.sends(b"x").answers(200, [], b"y")
        self.assertEqual(exchange.ends(), 1)
        self.capture()
        self.assertTrue(self.engine.captures_http)
        self.assertEqual(Exchange(self.engine).answers().ends(), 0)
        self.engine.capture_http(False)
        self.assertEqual(Exchange(self.engine).status, 1)
        self.assertEqual(len(ended(self.store)), 1)

    def test_B_HTTP_1_switched_from_outside_within_a_second(self):
        def follows(verb, on, engine):
            self.cordwood("http", verb, self.store)
            started = time.monotonic()
            until(lambda: engine.captures_http == on, f"http {verb}")
            return time.monotonic() - started

        taken = [follows("enable", True, self.engine)]
        # Unless the host says otherwise, the defaults apply.
        Exchange(self.engine, headers=[("Authorization", "Bearer abc")]).answers().ends()
        self.assertIn("Authorization: [redacted]", self.one()["http.request.headers"])
        later = self.open()
        self.assertTrue(later.captures_http, "one that is opened later begins with it")
        taken.append(follows("disable", False, self.engine))
        self.engine.capture_http(True)
        self.assertFalse(self.engine.captures_http, "the file goes before the host")
        taken.append(follows("auto", True, self.engine))
        self.assertLess(min(taken), 1.0)

    def test_B_HTTP_1_levels_from_outside(self):
        log = self.engine.logger("app.db")
        self.assertFalse(log.enabled("debug"))
        self.assertEqual(self.cordwood("level", self.store, "app.db=DEBUG", "app=off"),
                         "app.db=debug\napp=off\n")
        until(lambda: log.enabled("debug"), "the level")
        until(lambda: not self.engine.logger("app").enabled("fatal"), "the level")
        self.engine.set_level("app.db", "error")
        self.assertTrue(log.enabled("debug"), "the file goes before the host")
        self.assertEqual(self.open().logger("app.db.pool").enabled("debug"), True)
        self.assertEqual(self.cordwood("level", self.store), "app.db=debug\napp=off\n")
        self.cordwood("level", self.store, "app.db=default", "app=default")
        until(lambda: not log.enabled("warn") and log.enabled("error"), "the host's")
        self.assertEqual(self.cordwood("level", self.store), "")
        self.cordwood("level", self.store, "app.db=loud", code=2)

    def test_B_HTTP_1_a_damaged_control_file_changes_nothing(self):
        self.cordwood("http", "enable", self.store)
        until(lambda: self.engine.captures_http, "http enable")
        (self.store / "control").write_text("cordwood control\nformat 1\nhttp maybe\n")

        def told():
            return [record for record in cordwood.read(self.store, level="warn")
                    if "control file" in record.message]

        until(told, "a word about it")
        self.assertTrue(self.engine.captures_http)
        self.assertIn("http maybe", told()[0].fields["cause"])
        self.cordwood("http", "disable", self.store, code=4)
        os.remove(self.store / "control")
        until(lambda: not self.engine.captures_http, "as the host says")
        self.assertEqual(len(told()), 1, "once")

    def test_B_HTTP_1_a_store_that_cannot_be_opened(self):
        with self.assertRaises(cordwood.CordwoodError):
            cordwood.open("/proc/nowhere/logs")

        class Nothing:
            _handle = None

        exchange = Exchange(Nothing)
        self.assertEqual(exchange.status, -1)
        exchange.sends(b"x").answers(200, [JSON], b"{}")
        self.assertEqual(exchange.ends(), 1)
        # Closed in mid-exchange: the host is not disturbed.
        self.capture()
        exchange = Exchange(self.engine)
        self.engine.close()
        self.assertEqual(exchange.answers(200, [JSON], b"{}").ends(), -5)
        self.assertEqual(Exchange(self.engine).status, -5)

    # ── 2: which parts ──

    def test_B_HTTP_2_all_parts(self):
        self.capture()
        start = time.time_ns() - 5_000_000_000
        Exchange(self.engine, "POST", "http://api.test:8080/v1/orders?page=2",
                 [JSON, ("Accept", "*/*")], b'{"a":', start_ns=start, attempt=2,
                 redirected_from=b"0123456789abcdef").sends(b"1}").answers(
            201, [("Server", "x"), JSON], b'{"id"', b":7}", protocol=b"h2").ends(
            dns_ns=1, connect_ns=2, tls_ns=3, send_ns=4, wait_ns=5, receive_ns=6,
            duration_ns=12_345_678, remote_address=b"127.0.0.1:8080")
        found = self.one()
        self.assertEqual(found.pop("message"),
                         "POST http://api.test:8080/v1/orders 201 12.3 ms")
        self.assertRegex(found.pop("http.id"), "^[0-9a-f]{16}$")
        self.assertEqual(found.pop("time_ns"), start)
        found.pop("trace_id")
        self.assertEqual(found, {
            "level": "INFO", "http.op": "end", "http.side": "client",
            "http.request.method": "POST", "url.full": "http://api.test:8080/v1/orders?page=2",
            "server.address": "api.test", "server.port": 8080, "http.attempt": 2,
            "http.redirected_from": "0123456789abcdef", "network.protocol": "h2",
            "network.peer": "127.0.0.1:8080", "http.response.status_code": 201,
            "http.start": start, "http.duration": 12_345_678, "http.dns": 1, "http.connect": 2,
            "http.tls": 3, "http.send": 4, "http.wait": 5, "http.receive": 6,
            "http.request.headers": "Content-Type: application/json\nAccept: */*",
            "http.response.headers": "Server: x\nContent-Type: application/json",
            "http.request.body": '{"a":1}', "http.request.body.size": 7,
            "http.response.body": '{"id":7}', "http.response.body.size": 8})

    def test_B_HTTP_2_without_any_response(self):
        self.capture(keep_text="* */*")
        hangs = Exchange(self.engine, "GET", "http://hangs.test/")
        Exchange(self.engine, "GET", "http://late.test/a?b=c").ends(
            "no byte within 10 s", "timeout", duration_ns=10_003_100_000)
        late = self.one()
        self.assertEqual((late["level"], late["message"]), (
            "ERROR", "GET http://late.test/a timeout 10003.1 ms: no byte within 10 s"))
        self.assertEqual((late["error.type"], late["error.message"]),
                         ("timeout", "no byte within 10 s"))
        self.assertNotIn("http.response.status_code", late)
        # One that hangs, or dies with its process, shows by its beginning.
        short = [one for one in begun(self.store) if one["http.id"] == hangs.id]
        self.assertEqual([(one["level"], one["message"]) for one in short],
                         [("DEBUG", "GET http://hangs.test/ …")])
        hangs.answers(200, [], b"half").ends("reset", "connection", flags=CANCELLED)
        broken = ended(self.store)[-1] if ended(self.store)[-1]["http.id"] == hangs.id \
            else ended(self.store)[0]
        self.assertEqual((broken["http.cancelled"], broken["http.response.body"],
                          broken["level"]), (True, "half", "WARN"))

    def test_B_HTTP_2_levels_sides_and_odata_errors(self):
        self.capture()
        body = json.dumps({"error": {"code": "SY/530", "message": {
            "lang": "en", "value": "No team"}, "innererror": {"transactionid": "ABC123"}}})
        for status, level in ((200, "INFO"), (304, "INFO"), (403, "WARN"), (500, "ERROR")):
            Exchange(self.engine, side=SERVER).answers(100).answers(
                status, [JSON], body.encode()).ends()
            found = ended(self.store)[-1]
            self.assertEqual((found["level"], found["http.side"]), (level, "server"))
            self.assertEqual(found.get("odata.code"), "SY/530" if status >= 400 else None)
        self.assertEqual((found["odata.message"], found["odata.transaction_id"]),
                         ("No team", "ABC123"))

    def test_B_HTTP_2_from_cpp(self):
        program = WORK / "exchange"
        subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic",
                        f"-I{ROOT}/include", ROOT / "Tests/Behaviour/exchange.cpp", "-o", program,
                        f"-L{BUILD}/lib", "-lcordwood", f"-Wl,-rpath,{BUILD}/lib"], check=True)
        subprocess.run([program, self.store], check=True)
        first, second, *talks = ended(self.store)
        done = subprocess.run([CORDWOOD, "http", self.store, "--json"], check=True,
                              stdout=subprocess.PIPE)
        said = {json.loads(line)["id"]: json.loads(line) for line in done.stdout.splitlines()}
        self.assertEqual([said[one["http.id"]].get("conversation") for one in talks], [
            "talk-2", "talk-1", "own", "talk-1", "talk-1", None,
            "a-conversation-with-a-long-id-3", "talk-1"])
        self.assertEqual([one.get("shop") for one in talks[3:6]], ["x"] * 3)
        self.assertEqual((first["http.response.status_code"], first["network.protocol"],
                          first["http.response.body"]), (200, "h2", '{"a":1}'))
        self.assertEqual((second["error.type"], second["url.full"]),
                         ("abandoned", "http://api.test/left"))
        self.assertEqual(leaks(self.store, [b"zq-1", b"zq-2", b"zq-3"]), [])

    def test_B_HTTP_2_hosts_and_samples(self):
        self.capture(hosts=["api.test", "*.example.com", "one.test:8443"],
                     hosts_excluded="bad.example.com")
        asked = {"http://api.test/": 0, "https://API.test:99/": 0, "http://xapi.test/": 1,
                 "http://example.com/": 0, "http://a.b.example.com/": 0,
                 "http://badexample.com/": 1, "http://u:p@bad.example.com/": 1,
                 "https://one.test:8443/": 0, "https://one.test/": 1}
        for url, status in asked.items():
            exchange = Exchange(self.engine, url=url)
            self.assertEqual(exchange.status, status, url)
            exchange.ends()
        self.capture(sample=0.25)
        kept = sum(Exchange(self.engine).ends() == 0 for _ in range(4_000))
        self.assertTrue(800 < kept < 1_200, kept)
        for wrong, words in (({"hosts": "a b"}, "hosts: 'a b'"),
                             ({"redact_patterns": ["ok", r"(a)\1"]}, "pattern 2"),
                             ({"redact_patterns": "((a{1000}){1000}){1000}"}, "pattern 1"),
                             ({"body_bytes_max": 1 << 40}, "16 MiB"),
                             ({"redact_keys": "-"}, "redact_keys")):
            with self.assertRaises(cordwood.CordwoodError) as caught:
                self.capture(**wrong)
            self.assertIn(words, str(caught.exception))

    # ── 3: bounds ──

    def test_B_HTTP_3_bounded_bodies(self):
        self.capture(keep_text="* */*")
        Exchange(self.engine).sends(b"a" * 100_000).answers(
            200, [], *[b"b" * 10_000] * 10).ends()
        found = self.one()
        self.assertEqual(found["http.request.body"], "a" * 65_536)
        self.assertEqual(found["http.response.body"], "b" * 65_536)
        for side in ("request", "response"):
            self.assertEqual(found[f"http.{side}.body.size"], 100_000)
            self.assertEqual(found[f"http.{side}.body.note"], "cut")
        self.capture(body_bytes_max=0)
        Exchange(self.engine, body=b"xyz").ends()
        found = ended(self.store)[-1]
        self.assertNotIn("http.request.body", found)
        self.assertEqual(found["http.request.body.size"], 3)

    @full
    def test_B_HTTP_3_a_streamed_gibibyte_is_counted_and_not_held(self):
        self.capture()
        exchange = Exchange(self.engine).answers(200, [])
        piece = bytes(1 << 20)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(1_024):
            exchange.receives(piece)
        exchange.ends()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 8_192, "KiB")
        self.assertEqual(self.one()["http.response.body.size"], 1 << 30)

    def test_B_HTTP_3_codings(self):
        self.capture(keep_text="* */*")
        text = json.dumps({"items": ["words and words"] * 500, "password": "hidden"}).encode()
        raw = zlib.compressobj(wbits=-15)
        packed = {"gzip": gzip.compress(text), "deflate": zlib.compress(text),
                  "Deflate ": raw.compress(text) + raw.flush(), "x-gzip": gzip.compress(text)}
        for name, body in packed.items():
            Exchange(self.engine).answers(200, [JSON, ("Content-Encoding", name)], body).ends()
            found = ended(self.store)[-1]
            self.assertEqual(found["http.response.body"],
                             text.decode().replace("hidden", "[redacted]"), name)
            self.assertEqual(found["http.response.body.note"], "unpacked")
            self.assertEqual(found["http.response.body.size"], len(body))
        Exchange(self.engine).answers(200, [("Content-Encoding", "br")], b"\x8b\x02\x80\x01").ends()
        found = ended(self.store)[-1]
        self.assertEqual(found["http.response.body.note"], "coding br not kept")
        self.assertNotIn("http.response.body", found)
        # A host that decompresses leaves the header as it was.
        Exchange(self.engine).answers(200, [JSON, ("Content-Encoding", "br, gzip")], text).ends()
        self.assertIn("[redacted]", ended(self.store)[-1]["http.response.body"])
        # Decompresses to a thousand times its size. What is kept is bounded.
        bomb = gzip.compress(bytes(64 << 20))
        Exchange(self.engine).answers(200, [("Content-Encoding", "gzip")], bomb).ends()
        found = ended(self.store)[-1]
        self.assertEqual(len(found["http.response.body"]), 65_536)
        self.assertEqual(found["http.response.body.note"], "cut, unpacked")

    def test_B_HTTP_3_framing_of_chunks(self):
        """Removed however the bytes are split. Other text stays. Broken framing is not shown."""
        self.capture(keep_text="* */*")
        headers = [("transfer-encoding", "gzip;q=0, CHUNKED")]
        framed = (b'c;a=b\r\n{"a":1,"pass\r\nE \nword":"s3cr3t"\n00001\r\n}\r\n'
                  b"0\r\nToken: s3cr3t\r\n\r\n")
        for size in range(1, len(framed) + 1):
            pieces = [framed[at:at + size] for at in range(0, len(framed), size)]
            Exchange(self.engine, headers=headers).sends(*pieces).answers(
                200, headers, *pieces).ends()
        whole = '{"a":1,"password":"[redacted]"}'
        for one in ended(self.store):
            for side in ("request", "response"):
                self.assertEqual(one[f"http.{side}.body"], whole)
                self.assertEqual(one[f"http.{side}.body.size"], 27)
                self.assertNotIn(f"http.{side}.body.note", one)
        chunked, bare = 4, 16  # CW_HTTP_RESPONSE_…
        cases = [  # bytes, flags, what is kept, note
            (b'{"a":1}', 0, '{"a":1}', None), (b'{"a":1}', chunked, None, "not shown"),
            (b"0\n", 0, "0\n", None), (b"9f3c5a0de1b27788\n", 0, "9f3c5a0de1b27788\n", None),
            (b"add up\nto", 0, "add up\nto", None), (b"1\n2\n", bare, "1\n2\n", None),
            (b'a\r\n{"token":"\r\n9\r\ns3cr3t', 0, '{"token":"[redacted]', "cut"),
            (b'8\r\n{"token":"\r\n9\r\ns3cr3t', 0, None, "not shown"),
            (b"ffffffffffffffff\r\nab", 0, "ab", "cut"),
            (b"fffffffffffffffff\r\nab", chunked, None, "not shown")]
        for body, flags, *_ in cases:
            Exchange(self.engine).answers(200, headers, body).ends(flags=flags)
        for (body, flags, kept, note), one in zip(cases, ended(self.store)[len(framed):]):
            with self.subTest(body=body, flags=flags):
                self.assertEqual(one.get("http.response.body"), kept)
                self.assertEqual(one.get("http.response.body.note"), note)
        self.assertEqual(leaks(self.store, [b"s3cr3t"]), [])

    def test_B_HTTP_3_hostile(self):
        self.capture()
        url = "http://x.test/" + "a" * (1 << 20)
        Exchange(self.engine, "GET", url, [("A", "b" * (1 << 20)), ("C", "d")]).answers(
            200, [("H%d" % number, "v") for number in range(100_000)],
            b"\xff\xfe\x00broken \xc3( \x00\x00").ends()
        found = self.one()
        self.assertEqual(len(found["url.full"]), 65_536)
        self.assertLessEqual(len(found["http.request.headers"]), 65_536)
        self.assertLessEqual(len(found["http.response.headers"]), 65_536)
        self.assertIn("H5000: v\n", found["http.response.headers"])
        Exchange(self.engine, "G\nT", "http://x.test/\r\nb", [
            ("X-A\nB", "one\ntwo: three"), ("Broken", b"\xff\xc3(")], b"\0\1\2\xff").answers(
                299, [], b"\xc3(\0").ends()
        found = ended(self.store)[-1]
        self.assertEqual(found["http.request.headers"].count("\n"), 1)
        self.assertTrue(found["message"].startswith("G T http://x.test/  b 299 "))
        # Small segments keep as much as fits.
        with cordwood.open(self.store, segment_bytes=65_536) as small:
            small.capture_http(True, body_bytes_max=1 << 20, keep_text="* */*")
            self.assertEqual(Exchange(small, headers=[("A", "b" * 60_000)], body=b"c" * 900_000)
                             .answers(200, [], b"d" * 900_000).ends(), 0)
        found = ended(self.store)[-1]
        self.assertEqual(found["http.request.body.size"], 900_000)
        self.assertEqual(found["http.request.body.note"], "cut")

    # ── 5: conversations ──

    def test_B_HTTP_5_conversation(self):
        self.capture()
        Exchange(self.engine, headers=[("x-conversation-id", "C-1")]).answers().ends()
        Exchange(self.engine).answers(200, [("X-Conversation-Id", "C-2")]).ends()
        Exchange(self.engine).answers().ends()
        self.assertEqual([one.get("http.conversation") for one in ended(self.store)],
                         ["C-1", "C-2", None])
        self.assertEqual([one.get("http.conversation") for one in begun(self.store)],
                         ["C-1", None, None])
        self.capture(conversation_header="Request-Context")
        Exchange(self.engine, headers=[("X-Conversation-Id", "no"),
                                       ("Request-Context", "C-3")]).ends()
        self.assertEqual(ended(self.store)[-1]["http.conversation"], "C-3")
        listed = self.cordwood("http", "list", "--conversation", "C-3", "--json", self.store)
        self.assertEqual(json.loads(listed)["conversation"], "C-3")

    # ── 6: redaction ──

    def test_B_HTTP_6_no_secret_is_in_the_store(self):
        names = iter(range(1, 1_000))
        secrets = []

        def secret():
            secrets.append(f"s3cr3t-{next(names)}-zq".encode())
            return secrets[-1].decode()

        self.capture(redact_headers=["X-Custom"], redact_keys=["kunden_nr"],
                     redact_patterns=[r"s3cr3t-[0-9]+-zq-pattern", r"(?i)iban [a-z]{2}[0-9]+"])
        nested = json.dumps({"password": secret(), "api-key": secret(), "n": 12345})
        deeper = json.dumps({"outer": json.dumps({"inner": nested})})
        body = ('{"user":"joe","password":"%s","n":{"list":[{"pass\\u0077ord":"%s"},'
                '{"Api-Key":{"a":"%s","b":["%s"]}}]},"clientSecret":"%s","kundenNr":"%s",'
                '"nested":%s,"deeper":%s,"url":"https://x/?access_token=%s&a=1",'
                '"note":"Bearer %s","jwt_in_text":"see eyJhbGciOiJIUzI1NiJ9.%s.c2ln"}' % (
                    secret(), secret(), secret(), secret(), secret(), secret(),
                    json.dumps(nested), json.dumps(deeper), secret(), secret(), secret()))
        Exchange(
            self.engine, "POST",
            f"https://joe:{secret()}@x.test/a?token={secret()}&page=2&pass%77ord={secret()}"
            f"&next=https%3A%2F%2Fy%2F%3Ftoken%3D{secret()}%26b%3D1#id_token={secret()}",
            [("Authorization", f"Basic {secret()}"), ("Cookie", f"sid={secret()}"), JSON,
             ("X-Custom", secret()), ("X-Session-Token", secret()),
             ("Referer", f"https://x.test/?api_key={secret()}")],
            body.encode(),
        ).answers(302, [("Set-Cookie", f"sid={secret()}; Path=/"),
                        ("Location", f"https://u:{secret()}@y.test/?token={secret()}"),
                        ("WWW-Authenticate", 'Bearer realm="kept"')],
                  f"user=joe&password={secret()}&x=y".encode()).ends(
            f"failed at https://z.test/?sig={secret()}")
        # Split into two pieces, at every place of the secret and its name.
        whole = f'{{"a":"b","password":"{secret()}","c":"kept"}}'.encode()
        for at in range(10, len(whole) - 4, 3):
            Exchange(self.engine, headers=[JSON]).sends(whole[:at], whole[at:]).ends()
        # Compressed; cut in the middle of the value, plain and compressed.
        Exchange(self.engine).answers(200, [JSON, ("Content-Encoding", "gzip")], gzip.compress(
            f'{{"password":"{secret()}"}}'.encode())).ends()
        self.engine.capture_http(True, body_bytes_max=30)
        for text in ('{"a":1,"password":"%s"}', '{"a":1,"x":"{\\"password\\":\\"%s\\"}"}',
                     'a=1&xxxxxxxx&password=%s'):
            Exchange(self.engine, body=(text % secret()).encode()).ends()
        self.engine.capture_http(True)
        lines = "\n".join(f'{{"n":{n},"secret":"{secret()}"}}' for n in range(3))
        part = ('--b0\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
                '--b0\r\nContent-Disposition: form-data; name="note"\r\n\r\nkept\r\n--b0--\r\n')
        for header, text in (
                [("Content-Type", "application/x-ndjson"), lines],
                [FORM, f"user=joe&Pass%77ord={secret()}&x=y+z"],
                [FORM, f"user%5Bpassword%5D={secret()}+and+{secret()}"],
                [FORM, "data=%7B%22password%22%3A%22" + secret() + "%22%7D"],
                [("Content-Type", "multipart/form-data; boundary=b0"),
                 part.format("password", secret())],
                [("X-None", "1"), '{"token": "%s"}' % secret()],
                [("X-None", "1"), f"password={secret()}&a=b"],
                [("Content-Type", "text/xml"),
                 f"<e><u:Password Type='t'>{secret()}</u:Password></e>"],
                [("Content-Type", "text/plain"), f'broken "quote {{"password": "{secret()}"'],
                [JSON, '{"password": ' + '{"a":"' + secret()]):
            Exchange(self.engine, headers=[header], body=text.encode()).answers(
                200, [header], text.encode()).ends()
        self.assertGreater(len(set(secrets)), 40)
        self.assertEqual(leaks(self.store, secrets), [])
        shown = "".join(one.get("http.request.body", "") for one in ended(self.store))
        self.assertIn('"c":"kept"', shown)
        self.assertIn("\r\n\r\nkept\r\n", shown)
        self.engine.roll()
        self.engine.archive_wait(30)
        self.engine.close()
        self.cordwood("archive", self.store)
        self.assertTrue(list(self.store.rglob("*.cwa")))
        self.assertEqual(leaks(self.store, secrets), [])
        # The check itself sees what is there.
        self.assertIn(b"kept", b"".join(everything(self.store).values()))

    def test_B_HTTP_6_patterns_of_the_host(self):
        self.capture(redact_patterns=["[0-9]{4}-[0-9]{4}", "(?i)hello", "x|a.*z"],
                     keep_text="* */*")
        Exchange(self.engine, url="http://h.test/1234-5678/", headers=[("A", "say HeLLo")],
                 body=b"no 1234-567 but 9999-8888. " + b"xay" * 3).ends()
        found = self.one()
        self.assertEqual(found["url.full"], "http://h.test/[redacted]/")
        self.assertEqual(found["http.request.headers"], "A: say [redacted]")
        self.assertTrue(found["http.request.body"].startswith("no 1234-567 but [redacted]. "))
        # Patterns that take quadratic time elsewhere.
        self.capture(redact_patterns="c|a.*z", keep_text="* */*")
        started = time.thread_time()  # others may use the processor meanwhile
        Exchange(self.engine, body=b"ac" * 32_768).ends()
        self.assertLess(time.thread_time() - started, 2)

    def test_B_HTTP_6_nothing_passes_beside_redaction(self):
        self.capture(redact_patterns=["HUNTER[0-9]"])
        Exchange(self.engine, headers=[("Cook ie: HUNTER2", "a"), ("token=zq-1\n", "zq-2")] + [
            (name, "zq-3") for name in (
                "DD-APPLICATION-KEY", "X-Parse-Master-Key", "X-Session", "X-Sid",
                "X-Consumer-Key", "Api-Tokens")]).answers(
            302, [("Location", "https://h/cb?token=o'zq-4<zq-5&page=2")]).ends()
        found = self.one()
        self.assertEqual(found["http.request.headers"].split("\n")[:2],
                         ["[redacted]: [redacted]"] * 2)
        self.assertEqual(found["http.response.headers"],
                         "Location: https://h/cb?token=[redacted]&page=2")
        Exchange(self.engine).ends("broken", "HUNTER2")
        self.assertTrue(ended(self.store)[-1]["message"].startswith(
            "GET http://127.0.0.1/ [redacted] "))
        self.assertEqual(ended(self.store)[-1]["error.type"], "[redacted]")
        # Cut in a password.
        Exchange(self.engine).ends("x" * 4_070 + " https://joe:zq-6" + "y" * 100 + "@h/")
        self.assertTrue(ended(self.store)[-1]["error.message"].endswith("https://joe:[redacted]"))
        Exchange(self.engine, headers=[("A", "b" * 65_513 + " https://joe:zq-7" + "z" * 99)]).ends()
        self.assertEqual(leaks(self.store, [b"HUNTER2", *(b"zq-%d" % n for n in range(1, 8))]), [])

    def test_B_HTTP_6_patterns_have_one_bound_together(self):
        self.capture(redact_patterns=["([a-z]x){750}", "([0-9]x){750}"])
        with self.assertRaises(cordwood.CordwoodError) as caught:
            self.capture(redact_patterns=["(ab){750}", "(cd){750}", "(ef){750}"])
        self.assertIn("pattern 3", str(caught.exception))
        self.assertIn("4000 steps together", str(caught.exception))

    def test_B_HTTP_2_a_forked_copy_writes_nothing(self):
        self.capture()
        exchange = Exchange(self.engine).answers(200, [JSON], b"{}")
        child = os.fork()
        if child == 0:
            os._exit(10 + exchange.ends())
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 11)
        self.assertEqual(exchange.ends(), 0)
        self.assertEqual(self.one()["http.id"], exchange.id)

    def test_B_HTTP_2_own_fields_do_not_stand_beside_the_exchanges(self):
        self.capture()
        fields = (Field * 2)()
        for field, key, value in zip(fields, (b"http.id", b"shop"), (b"mine", b"ours")):
            field.key, field.type = Text(key, len(key)), 5
            field.value.s = Text(value, len(value))
        exchange = Exchange(self.engine, fields=fields, field_count=2)
        exchange.ends()
        found = self.one()
        self.assertEqual((found["http.id"], found["shop"]), (exchange.id, "ours"))

    def test_B_HTTP_6_files_and_directories_are_the_owners(self):
        self.cordwood("http", "enable", self.store)
        self.capture()
        Exchange(self.engine).answers().ends()
        self.engine.roll()
        self.engine.archive_wait(30)
        for path in [self.store, *self.store.rglob("*")]:
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # the engine replaces files while it runs
                continue
            wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
            self.assertEqual(stat.S_IMODE(mode), wanted, path)
