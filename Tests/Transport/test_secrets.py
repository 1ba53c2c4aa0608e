"""No secret appears where others may look: processes' command lines, logs, errors, statistics, the
whole store, the host's streams. Uses every way in which a secret can come in, and every way in
which a transfer can then fail."""

import subprocess
import sys
import unittest
from pathlib import Path

from support import Front, Scripted, Tinyproxy, WORK, certificate

# Each contains a piece that is in no other text.
SECRETS = ("tok3n-first", "tok3n-second", "p4ssword-basic", "k3y-header", "qu3ry-secret",
           "p4th-secret", "pr0xy-secret", "key-password", "n0nsense-secret")

HOST = r'''
import json, os, sys
import cordwood
store, answering, refusing, dead, secure, certificates, proxy, front = sys.argv[1:]
secret = json.load(sys.stdin)
shown = []

def note(error):
    shown.append(f"{error} {error!r} {getattr(error, 'result', '')}")

with cordwood.open(store, upload_interval_s=3600, console="text") as engine:
    def add(name, url, **options):
        try:
            engine.add_target(url, name=name, kind="http", format="ndjson", **options)
        except cordwood.CordwoodError as error:
            note(error)
    first, second, basic, header, query, path, proxied, key, nonsense = secret
    url = f"/{path}?k={query}"
    everything = dict(headers={"X-Key": header})
    add("good", answering + url, auth_token=first, **everything)
    add("refusing", refusing + url, auth_token=first, credentials=lambda target, challenge: second,
        **everything)
    add("basic", refusing + url, auth_user="user", auth_password=basic, **everything)
    add("dead", dead + url, auth_token=first, **everything)
    add("unsafe", secure + url, auth_token=first, ca_file=certificates + "/other-ca.pem")
    add("client", secure + url, auth_token=first, ca_file=certificates + "/ca.pem",
        client_certificate_file=certificates + "/client.pem",
        client_key_file=certificates + "/client-locked.pem", client_key_password=key)
    add("wrong-key", secure + url, auth_token=first, ca_file=certificates + "/ca.pem",
        client_certificate_file=certificates + "/client.pem",
        client_key_file=certificates + "/client-locked.pem", client_key_password=nonsense)
    add("proxied", secure + url, auth_token=first, ca_file=certificates + "/ca.pem", proxy=proxy,
        proxy_auth="proxy-user:" + proxied)
    add("proxied-plain", answering + url, auth_token=first, proxy=proxy,
        proxy_auth="proxy-user:" + nonsense)
    add("broken", front + url, auth_token=first, **everything)

    def transport(request):
        raise ConnectionError("cannot reach " + request.url + str(request.headers))
    add("own", answering + url, auth_token=first, transport=transport, **everything)
    # What is refused at once.
    for bad in (dict(auth_token=nonsense + "\n"), dict(headers={"X Y": nonsense}),
                dict(headers={"X": nonsense + "\r\n"}), dict(proxy="http://u:" + nonsense + "@p"),
                dict(proxy_auth=nonsense), dict(client_key_password=nonsense),
                dict(auth_password=nonsense), dict(auth_user="a:b", auth_password=nonsense),
                dict(parameters={"unknown": nonsense})):
        add("bad", answering + url, **bad)
    add("bad", "http://user:" + nonsense + "@host/")
    add("bad", answering + url + " " + nonsense)

    engine.logger("app").info("a record")
    for _ in range(2):
        try:
            engine.upload(timeout=40)
        except cordwood.UploadError as error:
            note(error)
    shown.append(str(engine.stats()))
    for process in os.listdir("/proc"):
        try:
            shown.append(open(f"/proc/{process}/cmdline", errors="replace").read())
        except OSError:
            pass
for record in cordwood.read(store):
    shown.append(f"{record.message} {record.fields}")
print(json.dumps(shown))
'''


def nonsense(connection):
    """Answers a request that has arrived: one that is broken off fails differently."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 nonsense\r\n\r\n")


class Secrets(unittest.TestCase):
    """One host that meets all of them."""

    def test_nothing_is_found(self):
        answering, refusing = Scripted(self), Scripted(self, [{"status": 401}] * 40)
        dead = Scripted(self)
        dead.stop()
        self.doCleanups_of(dead)
        secure = Scripted(self, [], certificate("server.pem"), certificate("ca.pem"))
        proxy = Tinyproxy(self)
        front = Front(self, nonsense)
        store = WORK / "secrets"
        done = subprocess.run(
            [sys.executable, "-c", HOST, store, answering.url, refusing.url, dead.url, secure.url,
             str(Path(certificate("ca.pem")).parent), proxy.address,
             f"http://127.0.0.1:{front.port}"],
            input=str(list(SECRETS)).replace("'", '"'), capture_output=True, text=True, timeout=180,
            env={**__import__("os").environ, "PYTHONPATH": ":".join(sys.path)}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

        # They were used: they are found where they belong.
        heads = [request["headers"] for server in (answering, refusing)
                 for request in server.requests]
        self.assertIn("Bearer tok3n-first", [head.get("authorization") for head in heads])
        self.assertIn("Bearer tok3n-second", [head.get("authorization") for head in heads])
        self.assertTrue(all("p4th-secret?k=qu3ry-secret" in request["path"]
                            for request in answering.requests))
        self.assertTrue(secure.requests)

        places = {"stdout": done.stdout, "stderr": done.stderr}
        for path in store.rglob("*"):
            places[str(path)] = path.name
            if path.is_file():
                places[str(path)] += path.read_bytes().decode("latin-1")
        self.assertIn("a record", done.stdout)
        found = [(secret, place) for place, text in places.items()
                 for secret in (*SECRETS, *map(encoded, SECRETS)) if secret in text]
        self.assertEqual(found, [])

    def doCleanups_of(self, server):
        """It has stopped already."""
        server.stop = lambda: None


def encoded(secret):
    """In the form of Basic authentication."""
    import base64
    return base64.b64encode(f"user:{secret}".encode()).decode().rstrip("=")


if __name__ == "__main__":
    unittest.main()
