"""How servers are reached, through the whole library: TLS, HTTP/2, proxies of each kind."""

import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

from support import (WORK, Caddy, Front, Scripted, Socks, StoreCase, TLSFront, Tinyproxy,
                     certificate, cordwood)


class TLS(StoreCase):
    """Certificates, both ways."""

    def test_private_authority(self):
        server = Scripted(self, [], certificate("server.pem"))
        self.add(server.url, ca_file=certificate("ca.pem"))
        self.log.info("through TLS")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(self.sent_lines(server.body(1))[0]["message"], "through TLS")

    def test_unknown_authority_and_wrong_host(self):
        for pem, authority in (("server.pem", "other-ca.pem"), ("elsewhere.pem", "ca.pem")):
            server = Scripted(self, [], certificate(pem))
            self.add(server.url, name=pem, ca_file=certificate(authority))
        self.log.info("for nobody")
        error = self.fails()
        self.assertEqual((error.outcome, error.result.failed), ("request_failed", 2))
        self.assertEqual(server.requests, [])
        self.assertTrue(all("certificate" in cause.lower() for cause in self.causes), self.causes)

    def test_client_certificate(self):
        server = Scripted(self, [], certificate("server.pem"), certificate("ca.pem"))
        self.add(server.url, name="without", ca_file=certificate("ca.pem"))
        self.log.info("x")
        self.assertEqual(self.fails().outcome, "request_failed")
        self.engine.remove_target("without")
        self.add(server.url, ca_file=certificate("ca.pem"),
                 client_certificate_file=certificate("client.pem"),
                 client_key_file=certificate("client-locked.pem"),
                 client_key_password="key-password")
        self.assertEqual(self.upload().uploaded, 1)

    def test_files_are_checked_at_once(self):
        with self.assertRaises(cordwood.ArgumentError) as caught:
            self.add("https://localhost", ca_file=str(self.store / "nowhere.pem"))
        self.assertIn("ca_file", str(caught.exception))
        self.assertIn("No such file", str(caught.exception))


class HTTP2(StoreCase):
    """caddy speaks it, and logs the version spoken."""

    def test_versions(self):
        behind = Scripted(self)
        caddy = Caddy(self, behind)
        secure, plain = f"https://localhost:{caddy.port}", f"http://localhost:{caddy.plain_port}"
        ways = ((secure, 0, "HTTP/2.0"), (secure, 1, "HTTP/1.1"), (secure, 2, "HTTP/2.0"),
                (plain, 0, "HTTP/1.1"), (plain, 2, "HTTP/2.0"))
        for number, (url, version, _) in enumerate(ways):
            self.add(f"{url}/{number}", name=str(number), http_version=version,
                     ca_file=certificate("ca.pem"))
            self.log.info("by version %d", version)
            self.assertEqual(self.upload().failed, 0)
            self.engine.remove_target(str(number))
        self.assertEqual(caddy.protocols, [spoken for _, _, spoken in ways])
        self.assertTrue(all(request["bytes"] for request in behind.requests))

    def test_large_body(self):
        behind = Scripted(self)
        caddy = Caddy(self, behind)
        self.add(f"https://localhost:{caddy.port}/", ca_file=certificate("ca.pem"))
        text = "0123456789abcdef" * 4096
        for _ in range(320):
            self.log.info(text)
        self.assertEqual(self.upload(60).failed, 0)
        self.assertEqual(set(caddy.protocols), {"HTTP/2.0"})
        lines = self.sent_lines(b"".join(behind.body(request["number"])
                                         for request in behind.requests))
        self.assertEqual(len(lines), 320)
        self.assertTrue(all(line["message"] == text for line in lines))


class Proxies(StoreCase):
    """tinyproxy with a password, TLS in front of it, a SOCKS proxy, and no proxy."""

    def test_tunnel(self):
        server = Scripted(self, [], certificate("server.pem"))
        proxy = Tinyproxy(self)
        self.add(server.url, ca_file=certificate("ca.pem"), proxy=proxy.address,
                 proxy_auth="proxy-user:proxy-secret", auth_token="server-secret")
        self.log.info("through a tunnel")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(proxy.connects, [f"127.0.0.1:{server.port}"])
        headers = server.requests[0]["headers"]
        self.assertEqual(headers["authorization"], "Bearer server-secret")
        self.assertNotIn("proxy-authorization", headers)

    def test_token_is_not_for_the_proxy(self):
        heard = []

        def answer(connection):
            heard.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        front = Front(self, answer)
        self.add("https://logs.example", proxy=f"http://127.0.0.1:{front.port}",
                 proxy_auth="a:b", auth_token="server-secret", headers={"X-Key": "server-key"})
        self.log.info("x")
        self.fails()
        self.assertTrue(heard[0].startswith(b"CONNECT logs.example:443 "), heard)
        self.assertNotIn(b"server-", heard[0])
        self.assertEqual(set(self.causes), {"the proxy answered 502"})

    def test_wrong_password(self):
        server = Scripted(self, [], certificate("server.pem"))
        self.add(server.url, proxy=Tinyproxy(self).address, ca_file=certificate("ca.pem"),
                 proxy_auth="proxy-user:wrong-secret")
        self.log.info("x")
        error = self.fails()
        self.assertEqual((error.outcome, error.result.failed), ("request_failed", 1))
        self.assertEqual(server.requests, [])
        # tinyproxy answers 401.
        self.assertEqual(set(self.causes), {"the proxy answered 401: proxy_auth"})
        # A proxy's refusal is not a refusal of the archive: nothing is in quarantine.
        self.assertEqual(error.result.waiting, 1)

    def test_wrong_password_without_a_tunnel(self):
        server = Scripted(self)
        self.add(server.url, proxy=Tinyproxy(self).address, proxy_auth="proxy-user:wrong-secret")
        self.log.info("x")
        error = self.fails()
        # tinyproxy reads no body, so the system may cut off its answer.
        self.assertIn(error.outcome, ("client", "request_failed"))
        self.assertEqual((error.result.failed, error.result.waiting), (1, 1))
        self.assertEqual(server.requests, [])
        self.assertNotIn("wrong-secret", str(self.causes))

    def test_401_without_a_tunnel(self):
        for answer in ({"status": 401}, {"status": 401, "action": "half"}):
            with self.subTest(answer):
                proxy = Scripted(self, [answer])
                self.add("http://logs.example", proxy=proxy.url, proxy_auth="proxy-user:secret")
                self.log.info("x")
                error = self.fails()
                self.assertEqual(error.outcome, "client")
                self.assertEqual(len(proxy.requests), 1)
                self.assertEqual(self.causes[-1],
                                 "HTTP 401 of the server, or of the proxy for proxy_auth")
                self.engine.remove_target("target")

    def test_plain_http(self):
        server = Scripted(self)
        proxy = Tinyproxy(self)
        self.add(server.url, proxy=proxy.address, proxy_auth="proxy-user:proxy-secret")
        self.log.info("x")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(proxy.connects, [])

    def test_proxy_behind_tls(self):
        server = Scripted(self, [], certificate("server.pem"))
        proxy = Tinyproxy(self)
        front = TLSFront(self, proxy.port)
        self.add(server.url, ca_file=certificate("ca.pem"),
                 proxy=f"https://127.0.0.1:{front.port}", proxy_auth="proxy-user:proxy-secret")
        self.log.info("x")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(len(proxy.connects), 1)

    def test_socks(self):
        server = Scripted(self, [], certificate("server.pem"))
        socks = Socks(self, "socks-user", "socks-secret")
        address = f"socks5h://127.0.0.1:{socks.port}"
        url = f"https://localhost:{server.port}"
        self.add(url, name="wrong", ca_file=certificate("ca.pem"), proxy=address,
                 proxy_auth="socks-user:wrong")
        self.log.info("x")
        self.assertEqual(self.fails().outcome, "request_failed")
        self.assertEqual((socks.refused, server.requests), (1, []))
        self.engine.remove_target("wrong")
        self.add(url, ca_file=certificate("ca.pem"), proxy=address,
                 proxy_auth="socks-user:socks-secret")
        self.assertEqual(self.upload().uploaded, 1)
        self.assertEqual(socks.names, ["localhost"])

    def test_environment(self):
        """Its proxy is used if the target names none, but not if the target disables proxies."""
        server = Scripted(self)
        proxy = Tinyproxy(self)
        address = proxy.address.replace("//", "//proxy-user:proxy-secret@")
        through = []
        for number, options in enumerate(({}, {"proxy": ""})):
            before = proxy.log.read_text(errors="replace").count("Request")
            done = subprocess.run(
                [sys.executable, "-c", CHILD, self.store / f"child-{number}", server.url,
                 json.dumps(options)], check=False, capture_output=True, text=True,
                env={**os.environ, "http_proxy": address, "PYTHONPATH": ":".join(sys.path)})
            self.assertEqual(done.returncode, 0, done.stderr)
            through.append(proxy.log.read_text(errors="replace").count("Request") > before)
        self.assertEqual((through, len(server.requests)), ([True, False], 2))


class Resolver(StoreCase):
    """A resolver that does not return in time."""

    def test_does_not_hold_the_upload(self):
        library = WORK / "slow.so"
        subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Werror", "-shared", "-fPIC",
                        Path(__file__).with_name("slow_resolver.c"), "-o", library], check=True)
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", IMPATIENT, self.store / "child"], check=False,
            capture_output=True, text=True, timeout=120,
            env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": ":".join(sys.path)})
        self.assertEqual(done.returncode, 0, done.stderr)
        upload, close = map(float, done.stdout.split())
        # Of the resolver's 40 s; a second was allowed.
        self.assertLess(upload, 15)
        self.assertLess(close, 15)
        self.assertLess(time.monotonic() - begin, 30)


IMPATIENT = """
import sys, time, cordwood
engine = cordwood.open(sys.argv[1], upload_interval_s=3600)
engine.add_target("http://slow.example/", kind="http", format="ndjson")
engine.logger("app").info("x")
begin = time.monotonic()
try:
    engine.upload(timeout=1)
    sys.exit("it was sent")
except (cordwood.UploadError, cordwood.WaitTimeout):
    pass
middle = time.monotonic()
engine.close(1)
print(middle - begin, time.monotonic() - middle)
"""

CHILD = """
import json, sys, cordwood
store, url, options = sys.argv[1:]
with cordwood.open(store) as engine:
    engine.add_target(url, kind="http", format="ndjson", **json.loads(options))
    engine.logger("app").info("x")
    assert engine.upload(timeout=30).uploaded == 1
"""

if __name__ == "__main__":
    unittest.main()
