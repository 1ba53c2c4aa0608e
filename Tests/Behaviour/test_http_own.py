"""B-HTTP 7: uploads by the host's own transport are never captured, whatever client sends them and
wherever; without their headers, they make no uploads of their own. One test for each client and
way, in Python and C++. bindings/python/tests/test_own_uploads.py covers further ways with the
standard library's client, OwnUploadActorTests an actor and URLSession."""

import subprocess

import cordwood
from http_hosts import HERE, Hosts, environment
from sending import BUILD, ROOT, WORK, Scripted

UPLOADS = 3
CLIENTS = [("urllib", "pool"), ("requests", "pool"), ("requests", "forked"), ("httpx", "pool"),
           ("httpx", "forked"), ("httpx-async", "loop"), ("aiohttp", "loop")]


class OwnTest(Hosts):
    def sent(self, *program, last=()):
        """Runs a host. Returns the numbers of requests that it sent, and of exchanges that it
        captured."""
        server = Scripted(self)
        done = subprocess.run(
            [str(word) for word in (*program, self.store, server.url + "/in", UPLOADS, *last)],
            env=environment(), check=False, timeout=120, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return len(server.requests), sum(record.fields["http.op"] == "begin"
                                         for record in cordwood.read(self.store, kinds="http"))

    def test_B_HTTP_7_own_uploads_of_a_cpp_thread(self):
        program = WORK / "http_own"
        subprocess.run(
            ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include",
             HERE / "http_own.cpp", "-o", program, "-L", BUILD / "lib", "-lcordwood", "-lcurl",
             "-lpthread"], check=True)
        self.assertEqual(self.sent(program, last=["passes"]), (1, 0))
        self.store = self.store / "drops"
        self.assertEqual(self.sent(program, last=["drops"]), (1, 1))


def add(client, way):
    def test(self):
        self.assertEqual(self.sent(self.python, HERE / "http_own.py", client, way), (1, 0))
    name = f"test_B_HTTP_7_own_uploads_{client.replace('-', '_')}_{way}"
    setattr(OwnTest, name, test)


for one in CLIENTS:
    add(*one)
