"""B-HTTP 4, 6, 7 and 8 with real clients: one program per client runs all cases and stays open.
Another process lists each exchange within a second of its end, exports a HAR that is valid and
replays, prints curl lines that run, and finds none of the secrets that were sent."""

import base64
import hashlib
import json
import statistics
import subprocess
import time

import capturing
import http_peer
from cases import full
from exchanges import HAR_SCHEMA
from http_hosts import HERE, WANTED, Hosts, environment
from json_schema import problems
from replaying import Followed, replay, run_line
from sending import CORDWOOD, Scripted

SECRET = http_peer.SECRET.encode()
# As in `Authorization: Basic`, at any offset.
FORMS = [SECRET, *(base64.b64encode(b"x" * at + SECRET)[at + 2:-4] for at in range(3))]
# What the URL of each case ends with.
ENDS = {**{case: wanted[0] for case, wanted in WANTED.items()},
        "redirect": "/redirect?to=/json%3Fhop", "close": "/close", "multi": "/json?multi",
        "h2": "/two", "h2-upload": "/two"}
MORE = ("secret-get", "secret-json", "secret-escaped", "secret-form", "secret-pieces",
        "large-asked", "large-answer", "no-text-asked", "no-text-answer")


def ends_with(case, url):
    """Whether the URL belongs to that case."""
    return url.endswith(ENDS.get(case, f"case={case}")) if case != "tls" else \
        url.startswith("https://127") and url.endswith("/json")


class Matrix(Hosts):
    def tool(self, *words):
        done = subprocess.run([CORDWOOD, *map(str, words)], capture_output=True, check=True)
        return done.stdout.decode()

    def client(self, name):
        """Runs a Python client through all cases. Returns what it saw, and what was read then."""
        self.server_of_two = self.two()
        urls = {**self.urls, "h2": self.server_of_two, "ca": str(self.pems / "ca.pem"), "more": 1}
        return self.program(self.python, HERE / "http_clients.py", name, self.store,
                            json.dumps(urls))

    def program(self, *words):
        """Runs a host through all cases: another process sees each within a second of its end,
        except for delays of a busy machine."""
        follow, heard, late = Followed(self, "--json"), [], []
        began = time.monotonic()
        saw = self.start(*words, heard=lambda line: heard.append(
            (json.loads(line)[0], time.monotonic())))
        self.assertIsNone(self.host.poll(), "it still runs")
        for case, at in heard:
            if case.endswith("-heads"):
                continue

            def is_it(line, case=case):
                one = json.loads(line)
                return one["state"] == "done" and ends_with(case, one["url"])
            came, _ = follow.wait(is_it)
            self.assertGreater(came, began)
            late.append(came - at)
        self.assertLess(statistics.median(late), 1.0)
        return saw

    def read(self):
        """All exchanges, as the tool lists and exports them while the host runs."""
        har = json.loads(self.tool("http", "--har", self.store))
        self.assertEqual(problems(har, json.loads(HAR_SCHEMA.read_text())), [])
        entries = har["log"]["entries"]
        listed = [json.loads(line) for line in
                  self.tool("http", "--json", self.store).splitlines()]
        self.assertEqual([one["id"] for one in listed], [entry["_id"] for entry in entries])
        self.assertNotIn("open", [one["state"] for one in listed])
        return {one["id"]: one for one in listed}, entries

    def makes_again(self, listed, entries):
        """Each request that was kept whole and answered gets the same answer when replayed."""
        replayed = 0
        for entry in entries:
            request, response, one = entry["request"], entry["response"], listed[entry["_id"]]
            sent = request.get("postData", {})
            cut = "cut" in sent.get("comment", "") or one["failed"] and "error" in one
            if not response["status"] or cut or "_left" in entry or "/drip" in request["url"]:
                continue
            if "comment" in response:  # curl does not take such headers
                continue
            wanted = content(response["content"])
            differs = "[redacted]" in json.dumps([sent, response["content"]])
            with self.subTest(request["url"], method=request["method"]):
                got, told = run_line(self, entry["_id"], self.pems,
                                     CURL_CA_BUNDLE=str(self.pems / "ca.pem"))
                if not differs:
                    self.same(got, response["content"], wanted)
                self.assertEqual("not whole" in told, "comment" in request, told)
                if request["url"].startswith(self.plain.url):
                    status, got = replay(request)
                    self.assertEqual(status, response["status"])
                    if not differs:
                        self.same(got, response["content"], wanted)
                replayed += 1
        return replayed

    def same(self, got, kept, wanted):
        if "cut" in kept.get("comment", ""):
            self.assertGreater(len(got), len(wanted))
            got = got[:len(wanted)]
        self.assertEqual(got, wanted)

    def nowhere(self):
        """No secret is in any byte of the store, its archives and the tool's outputs."""
        self.assertEqual(capturing.leaks(self.store, FORMS), [])

    def not_shown(self, listed):
        """Nor in the output for a single exchange."""
        for one in listed.values():
            if "secret" in one["url"]:
                for form in ((), ("--curl",), ("--har",), ("--json",)):
                    shown = self.tool("http", "show", one["id"], self.store, *form)
                    self.assertIn("[redacted]", shown)
                    self.assertFalse([form for form in FORMS if form in shown.encode()])

    def secrets(self, listed):
        """Open, closed, archived, uploaded."""
        self.nowhere()
        kept = json.dumps(list(listed.values()))
        self.assertGreater(kept.count("[redacted]"), 12)
        self.not_shown(listed)
        self.host.stdin.close()
        self.assertEqual(self.host.wait(30), 0)
        self.nowhere()
        self.tool("archive", self.store)
        self.assertTrue(list(self.store.rglob("*.cwa")))
        self.nowhere()
        self.not_shown(listed)
        server, self.engine = Scripted(self), self.open()
        self.add(server.url, encoding="none")
        self.upload()
        bodies = b"".join(server.body(request["number"]) for request in server.requests)
        self.assertIn(b"[redacted]", bodies)
        self.assertFalse([form for form in FORMS if form in bodies])

    def all_of(self, name):
        saw = self.client(name)
        over = ("h2", "h2-upload") if name.startswith("httpx") else ()
        self.assertEqual({*MORE, *over, "cancelled", "cancelled-body"} - set(saw), set())
        listed, entries = self.read()
        by_case = {case: [one for one in listed.values() if ends_with(case, one["url"])]
                   for case in saw}
        self.assertEqual({case: len(found) for case, found in by_case.items()},
                         {case: 2 if case.startswith("h2") else 1 for case in saw})
        whole = b"".join(http_peer.SECRETS)
        self.assertEqual(saw["secret-get"][2:], [len(whole), hashlib.sha256(whole).hexdigest()],
                         "the client has got the secrets")
        for case in ("cancelled", "cancelled-body"):
            one, = by_case[case]
            self.assertTrue(one["cancelled"] and one["failed"])
            self.assertEqual(one.get("status"), 200 if case == "cancelled-body" else None)
        for case in over:
            self.assertEqual({one["protocol"] for one in by_case[case]}, {"h2"})
        if "early" in saw:  # ten bytes read, then closed
            one, = by_case["early"]
            self.assertEqual((one["failed"], one["left_of_bytes"]), (False, http_peer.DRIP_BYTES))
        self.odd(by_case, saw)
        self.assertGreater(self.makes_again(listed, entries), 12)
        self.secrets(listed)

    def odd(self, by_case, saw):
        """A megabyte of headers is cut and marked as cut. Bytes stay bytes."""
        asked, = by_case["large-asked"]
        self.assertEqual((asked["status"], asked["request"]["headers_note"]), (200, "cut"))
        answer, = by_case["large-answer"]
        if isinstance(saw["large-answer"][0], int):  # else the client refuses that many
            self.assertEqual(answer["response"]["headers_note"], "cut")
            self.assertEqual(saw["large-answer"][2], len(http_peer.JSON))
        else:
            self.assertIn("error", answer)
        sent, = by_case["no-text-asked"]
        self.assertEqual(base64.b64decode(sent["request"]["body_base64"]), b'{"a":"\xff\xfe"}')
        got, = by_case["no-text-answer"]
        self.assertEqual(base64.b64decode(got["response"]["body_base64"]), http_peer.NO_TEXT)

    def test_B_HTTP_4_6_7_8_requests(self):
        self.all_of("requests")

    @full
    def test_B_HTTP_4_6_7_8_httpx(self):
        self.all_of("httpx")

    @full
    def test_B_HTTP_4_6_7_8_httpx_async(self):
        self.all_of("httpx-async")

    @full
    def test_B_HTTP_4_7_8_curl(self):
        self.program(self.built_curl(), self.store, self.plain.url, self.tls.url, self.two(),
                     self.pems / "ca.pem")
        listed, entries = self.read()
        self.assertGreater(self.makes_again(listed, entries), 8)

    def test_B_HTTP_6_curl(self):
        saw = self.program(self.built_curl("http_curl_secrets"), self.store, self.plain.url,
                           http_peer.SECRET)
        self.assertEqual(saw, {case: 200 for case in MORE if case.startswith("secret")})
        self.secrets(self.read()[0])

    @full
    def test_B_HTTP_7_streams_of_256_mebibytes(self):
        """Both ways, in memory that does not grow with their size."""
        program = (
            "import asyncio, cordwood, httpx, requests, resource, sys\n"
            "engine = cordwood.open(sys.argv[1])\n"
            "engine.capture_http(keep_text='* */*')\n"
            "cordwood.install_http_hooks(engine)\n"
            "size, base = 256 << 20, sys.argv[2]\n"
            "down, up = f'{base}/download?bytes={size}', base + '/upload?'\n"
            "def given():\n"
            "    for _ in range(256): yield b'u' * (1 << 20)\n"
            "async def agiven():\n"
            "    for piece in given(): yield piece\n"
            "def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "requests.get(base + '/json'); httpx.get(base + '/json')\n"
            "before = most()\n"
            "assert requests.post(up + 'requests', data=given()).json()['bytes'] == size\n"
            "with httpx.stream('GET', down + '&httpx', timeout=60) as got:\n"
            "    assert sum(map(len, got.iter_raw())) == size\n"
            "assert httpx.post(up + 'httpx', content=given(), timeout=60).json()['bytes'] == size\n"
            "async def main():\n"
            "    async with httpx.AsyncClient(timeout=60) as client:\n"
            "        async with client.stream('GET', down + '&async') as got:\n"
            "            assert sum([len(part) async for part in got.aiter_raw()]) == size\n"
            "        done = await client.post(up + 'async', content=agiven())\n"
            "        assert done.json()['bytes'] == size\n"
            "asyncio.run(main())\n"
            "print(most() - before)\n")
        done = subprocess.run([self.python, "-c", program, self.store, self.plain.url],
                              env=environment(), check=True, stdout=subprocess.PIPE, text=True)
        self.assertLess(int(done.stdout), 40 << 10, "KiB more at the most")
        listed, _ = self.read()
        sizes = [max(one[side].get("body_bytes", 0) for side in ("request", "response"))
                 for one in listed.values() if "/json" not in one["url"]]
        self.assertEqual(sizes, [256 << 20] * 5)


def content(kept):
    """The bytes of an answer's content in a HAR."""
    text = kept.get("text", "")
    return base64.b64decode(text) if kept.get("encoding") == "base64" else text.encode()
