"""B-HTTP 7: hooks of real clients against a local server. Each request is recorded exactly once, as
it was. The host sees what it sees without the hook. Another process lists everything within a
second while the writer runs."""

import json
import socket
import subprocess
import unittest

import cordwood
import http_peer
from cases import full
from http_hosts import BIG, CAPTURED, HERE, WANTED, Hosts, ended, environment, text
from loopback import Listener, pipe, until
from sending import WORK

class Hooks(Hosts):
    def client(self, name, *more):
        """Runs a client with and without hooks: both must see the same. Returns the exchanges, read
        within a second while it runs."""
        command = [self.python, HERE / "http_clients.py", name]
        urls = json.dumps({**self.urls, **dict(more)})
        alone = self.start(*command, "-", urls)
        hooked = self.start(*command, self.store, urls)
        self.assertEqual(hooked, alone)
        return self.listed(len([case for case in hooked if case in WANTED]))

    def listed(self, least):
        return until(lambda: (lambda all_: all_ if len(all_) >= least else None)(
            ended(self.store)), "all are listed")

    def check(self, found, cases, twice=()):
        """Each case's exchange is there once, with the values of WANTED."""
        for case in cases:
            path, status, errors, size = WANTED[case]
            mine = [one for one in found if one["url.full"].endswith(path)]
            with self.subTest(case=case):
                self.assertEqual(len(mine), 2 if case in twice else 1, mine)
                one = mine[-1]
                self.assertEqual(one.get("http.response.status_code"), status)
                self.assertEqual("error.type" in one, errors is not None, one)
                if errors is not None and case not in twice:
                    self.assertIn(one["error.type"], errors)
                if size is not None:
                    self.assertEqual(one["http.response.body.size"], size)
                if case.startswith("upload"):
                    self.assertEqual(one["http.request.body.size"], BIG)
                    self.assertEqual(len(text(one["http.request.body"])), CAPTURED)
                if case.startswith("cancelled"):
                    self.assertIs(one["http.cancelled"], True)

    def bodies(self, found):
        """What was read is kept, decompressed and without chunks."""
        def body(path):
            one, = [one for one in found if one["url.full"].endswith(path)]
            return text(one["http.response.body"])
        self.assertEqual(body("/json?case=json"), http_peer.JSON)
        self.assertEqual(body("/chunked"), http_peer.JSON)
        self.assertEqual(body("/gzip"), http_peer.JSON * 20)
        self.assertEqual(body("/download?bytes=20000000"), http_peer.BLOCK)
        one, = [one for one in found if one["url.full"].endswith("/odata")]
        self.assertEqual(one["odata.code"], "SY/530")

    def redirection(self, found):
        first, = [one for one in found if "/redirect" in one["url.full"]]
        second, = [one for one in found
                   if one["url.full"] == self.plain.url + "/json?hop"]
        self.assertEqual(first["http.response.status_code"], 302)
        self.assertEqual(second["http.response.status_code"], 200)
        self.assertEqual(second["http.redirected_from"], first["http.id"])

    def untrusted(self, found):
        one, = [one for one in found if one["url.full"].startswith(self.tls.url)]
        self.assertEqual((one["error.type"], one.get("http.response.status_code")), ("tls", None))

    ASKS = ("json", "odata", "hang", "download", "gzip", "chunked", "empty", "short", "dns",
            "refused")
    SYNC = (*ASKS, "upload", "upload-pieces", "upload-file", "early")
    ASYNC = (*ASKS, "upload", "upload-pieces", "cancelled", "cancelled-body")

    def all(self, found, cases):
        self.check(found, cases)
        self.redirection(found)
        self.untrusted(found)

    def test_B_HTTP_7_urllib(self):
        found = self.client("urllib")
        # urllib reads nothing of an error body unless the host does: here it does.
        self.all(found, self.SYNC)
        self.bodies(found)

    def test_B_HTTP_7_requests(self):
        found = self.client("requests")
        self.all(found, self.SYNC)
        self.bodies(found)
        # Connections are seen, and which request opened one.
        self.assertTrue(any(one.get("http.connect") for one in found))
        self.assertTrue(all(one.get("http.wait") for one in found
                            if one.get("http.response.status_code") == 403))

    def test_B_HTTP_7_httpx(self):
        two = self.two()
        found = self.client("httpx", ("h2", two), ("ca", str(self.pems / "ca.pem")))
        self.all(found, self.SYNC)
        self.bodies(found)
        over = [one for one in found if one["url.full"].startswith(two)]
        self.assertEqual([one["network.protocol"] for one in over], ["h2", "h2"])
        self.assertEqual(over[1]["http.request.body.size"], 1_000_000)

    @full
    def test_B_HTTP_7_httpx_async(self):
        found = self.client("httpx-async")
        self.all(found, self.ASYNC)
        self.bodies(found)

    def test_B_HTTP_7_aiohttp(self):
        found = self.client("aiohttp")
        self.all(found, self.ASYNC)
        self.bodies(found)

    def test_B_HTTP_7_conversation(self):
        """A client's conversation, trace and transaction are sent in headers. The server's exchange
        and the records logged inside it have the same."""
        two = self.two()
        program = (
            "import cordwood, httpx, requests, ssl, sys, urllib.request, json\n"
            "engine = cordwood.open(sys.argv[1])\n"
            "engine.capture_http(keep_text='* */*')\n"
            "cordwood.install_http_hooks(engine, propagate=True)\n"
            "trusted = ssl.create_default_context(cafile=sys.argv[4])\n"
            "transaction = 'TXN17-0AF76519-16CD-43DD-8448-EB211C80319C'\n"
            "echo = sys.argv[2] + '/headers'\n"
            "with cordwood.trace('0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331', 1), \\\n"
            "        cordwood.context(**{'txn.id': transaction}), cordwood.conversation('7d1f'):\n"
            "    httpx.Client(http2=True, verify=trusted).get(sys.argv[3] + '/orders')\n"
            "    said = [requests.get(echo).json(), httpx.get(echo).json()]\n"
            "    own = requests.get(echo, headers={'X-Conversation-Id': 'mine'}).json()\n"
            "print(json.dumps([said, own, requests.get(echo).json()]))\n")
        done = subprocess.run([self.python, "-c", program, self.store, self.plain.url, two,
                               self.pems / "ca.pem"],
                              env=environment(), check=True, stdout=subprocess.PIPE)
        said, own, outside = json.loads(done.stdout)
        trace = "0af7651916cd43dd8448eb211c80319c"
        for headers in said:
            names = {name.lower(): value for name, value in headers.items()}
            self.assertEqual(names["traceparent"], f"00-{trace}-b7ad6b7169203331-01")
            self.assertEqual(names["x-conversation-id"], "7d1f")
            self.assertEqual(names["x-transaction-id"][:6], "TXN17-")
        self.assertEqual(own["X-Conversation-Id"], "mine")
        self.assertFalse({"traceparent", "x-conversation-id"} & {n.lower() for n in outside})
        inbound = until(lambda: [record for record in cordwood.read(self.store / "inbound",
                                                                    kinds="http")
                                 if record.fields["http.op"] == "end"], "the server's side")
        self.assertEqual(inbound[0].fields["http.side"], "server")
        self.assertEqual(inbound[0].fields["http.conversation"], "7d1f")
        self.assertEqual(inbound[0].trace_id, trace)
        inside, = [record for record in cordwood.read(self.store / "inbound")
                   if record.message == "inside"]
        self.assertEqual((inside.trace_id, inside.fields["http.conversation"]), (trace, "7d1f"))
        self.assertEqual(inside.fields["txn.id"][:6], "TXN17-")
        client = [one for one in ended(self.store) if one["url.full"].startswith(two)]
        self.assertEqual([one["http.conversation"] for one in client], ["7d1f"])

    def test_B_HTTP_7_curl(self):
        program = self.built_curl()
        two = self.two()
        words = [self.plain.url, self.tls.url, two, str(self.pems / "ca.pem")]
        alone = self.start(program, "-", *words)
        self.assertEqual(self.start(program, self.store, *words), alone)
        cases = (*self.ASKS, "upload", "upload-pieces", "cancelled")
        found = self.listed(len(cases))
        self.all(found, cases)
        self.bodies(found)
        over = [one for one in found if one["url.full"].startswith(two)]
        self.assertEqual([one["network.protocol"] for one in over], ["h2"])
        by_multi = [one for one in found if one["url.full"].endswith("/json?multi")]
        self.assertEqual([one["http.response.status_code"] for one in by_multi], [200])

    def test_B_HTTP_7_proxies(self):
        """The URL is the target's. A proxy's CONNECT is no exchange, its refusal an error."""
        program = (
            "import cordwood, httpx, json, requests, ssl, sys, urllib.request\n"
            "store, proxy, plain, tls, ca = sys.argv[1:]\n"
            "engine = cordwood.open(store)\n"
            "engine.capture_http(keep_text='* */*')\n"
            "cordwood.install_http_hooks(engine)\n"
            "trusted = ssl.create_default_context(cafile=ca)\n"
            "both = {'http': proxy, 'https': proxy}\n"
            "opener = urllib.request.build_opener(urllib.request.ProxyHandler(both),\n"
            "                                     urllib.request.HTTPSHandler(context=trusted))\n"
            "client = httpx.Client(proxy=proxy, verify=trusted)\n"
            "for name, get in (('urllib', lambda url: opener.open(url).read()),\n"
            "                  ('requests', lambda url: requests.get(url, proxies=both,\n"
            "                                                        verify=ca).content),\n"
            "                  ('httpx', lambda url: client.get(url).content)):\n"
            "    for base in (plain, tls):\n"
            "        assert len(get(f'{base}/json?{name}')) > 100\n"
            "    try: get(f'https://refused.invalid/{name}')\n"
            "    except Exception: pass\n"
            "    else: raise SystemExit('not refused')\n")
        proxy = Listener(forward)
        self.addCleanup(proxy.close)
        subprocess.run([self.python, "-c", program, self.store, f"http://127.0.0.1:{proxy.port}",
                        self.plain.url, self.tls.url, self.pems / "ca.pem"],
                       env={**environment(), "NO_PROXY": "", "no_proxy": ""}, check=True)
        wanted = [url for name in ("urllib", "requests", "httpx")
                  for url in (f"{self.plain.url}/json?{name}", f"{self.tls.url}/json?{name}",
                              f"https://refused.invalid/{name}")]
        found = ended(self.store)
        self.assertEqual([one["url.full"] for one in found], wanted)
        self.assertEqual([one.get("http.response.status_code") for one in found],
                         [200, 200, None] * 3)
        for one in found[2::3]:
            self.assertIn("error.type", one)

    @full
    def test_B_HTTP_7_one_gibibyte(self):
        """The body streams through. What is kept of it is bounded."""
        program = (
            "import cordwood, requests, resource, sys, urllib.request\n"
            "engine = cordwood.open(sys.argv[1])\n"
            "engine.capture_http(keep_text='* */*')\n"
            "cordwood.install_http_hooks(engine)\n"
            "def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "requests.get(sys.argv[2] + '/download?bytes=100000').content\n"
            "before = most()\n"
            "with requests.get(sys.argv[2] + '/download?bytes=1073741824', stream=True) as got:\n"
            "    size = sum(len(part) for part in got.iter_content(1 << 20))\n"
            "assert size == 1 << 30, size\n"
            "print(most() - before)\n")
        done = subprocess.run([self.python, "-c", program, self.store, self.plain.url],
                              env=environment(), check=True, stdout=subprocess.PIPE, text=True)
        self.assertLess(int(done.stdout), 40 << 10, "KiB more at the most")
        one = ended(self.store)[-1]
        self.assertEqual(one["http.response.body.size"], 1 << 30)
        self.assertEqual(len(text(one["http.response.body"])), CAPTURED)

    def test_B_HTTP_7_store_that_cannot_be_opened(self):
        taken = WORK / "a-file"
        taken.write_text("no directory")
        program = (
            "import cordwood, sys, urllib.request, {1}\n"
            "cordwood.install_http_hooks(sys.argv[1])\n"
            "for _ in range(3):\n"
            "    print({0}(sys.argv[2] + '/json').{2})\n")
        for words in (("urllib.request.urlopen", "json", "status"),
                      ("requests.get", "requests", "status_code"),
                      ("httpx.get", "httpx", "status_code")):
            with self.subTest(words[0]):
                done = subprocess.run(
                    [self.python, "-c", program.format(*words), taken, self.plain.url],
                    env=environment(), check=True, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.stdout.split(), ["200"] * 3)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                self.assertIn("HTTP capture is off", done.stderr)

    @full
    def test_B_HTTP_7_many_threads_and_tasks(self):
        program = (
            "import asyncio, cordwood, httpx, requests, sys, threading\n"
            "engine = cordwood.open(sys.argv[1])\n"
            "engine.capture_http(keep_text='* */*')\n"
            "cordwood.install_http_hooks(engine)\n"
            "url = sys.argv[2] + '/json?'\n"
            "def thread(n):\n"
            "    session = requests.Session()\n"
            "    for i in range(20):\n"
            "        with cordwood.trace('%032x' % (n + 1)):\n"
            "            assert session.get(f'{url}t{n}.{i}').status_code == 200\n"
            "async def task(client, n):\n"
            "    with cordwood.trace('%032x' % (n + 1000)):\n"
            "        for i in range(5):\n"
            "            assert (await client.get(f'{url}a{n}.{i}')).status_code == 200\n"
            "async def main():\n"
            "    async with httpx.AsyncClient() as client:\n"
            "        await asyncio.gather(*(task(client, n) for n in range(20)))\n"
            "threads = [threading.Thread(target=thread, args=(n,)) for n in range(8)]\n"
            "for t in threads: t.start()\n"
            "asyncio.run(main())\n"
            "for t in threads: t.join()\n")
        subprocess.run([self.python, "-c", program, self.store, self.plain.url],
                       env=environment(), check=True)
        wanted = {f"/json?t{n}.{i}": n + 1 for n in range(8) for i in range(20)}
        wanted.update({f"/json?a{n}.{i}": n + 1000 for n in range(20) for i in range(5)})
        seen = {}
        for record in cordwood.read(self.store, kinds="http"):
            if record.fields["http.op"] == "end":
                path = record.fields["url.full"].removeprefix(self.plain.url)
                self.assertNotIn(path, seen)
                seen[path] = int(record.trace_id, 16)
        self.assertEqual(seen, wanted)


def forward(connection):
    """A proxy: CONNECT opens a tunnel, except to .invalid. Other requests pass unchanged."""
    head = b""
    while b"\r\n\r\n" not in head:
        data = connection.recv(65536)
        if not data:
            return
        head += data
    method, target, _ = head.split(b"\r\n")[0].decode().split()
    place = target if method == "CONNECT" else target.split("/")[2]
    if ".invalid" in place:
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        return
    host, _, port = place.rpartition(":")
    with socket.create_connection((host, int(port))) as server:
        if method == "CONNECT":
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server.sendall(head)
        pipe(connection, server)


if __name__ == "__main__":
    unittest.main()
