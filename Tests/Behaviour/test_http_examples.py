"""B-HTTP: the programs of examples/http, and the Swift ones of examples/swift, do what they say."""

import subprocess
import sys

import cordwood
import http_peer
import swift_hosts
from sending import BUILD, ROOT, WORK, StoreCase
from test_http_hooks import environment


class Examples(StoreCase):
    def setUp(self):
        super().setUp()
        self.engine.close()
        self.server = http_peer.Server()
        self.addCleanup(self.server.close)

    def run_one(self, *words):
        """A program's output, and the exchanges in its store afterwards."""
        done = subprocess.run([*map(str, words), str(self.store), self.server.url + "/json"],
                              env=environment(), check=True, stdout=subprocess.PIPE)
        self.assertEqual(done.stdout, http_peer.JSON)
        return [record.fields for record in cordwood.read(self.store, kinds="http")
                if record.fields["http.op"] == "end"]

    def built(self, name, compiler, standard):
        program = WORK / f"example-{name.replace('.', '-')}"
        subprocess.run([compiler, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I",
                        ROOT / "include", ROOT / "examples/http" / name, "-o", program, "-L",
                        BUILD / "lib", "-lcordwood", "-lcurl"], check=True)
        return program

    def check(self, found):
        self.assertEqual([(one["url.full"], one["http.response.status_code"]) for one in found],
                         [(self.server.url + "/json", 200)])

    def test_B_HTTP_7_example_c(self):
        self.check(self.run_one(self.built("main.c", "cc", "-std=c11")))

    def test_B_HTTP_7_example_cpp(self):
        self.check(self.run_one(self.built("main.cpp", "c++", "-std=c++17")))

    def test_B_HTTP_7_example_swift(self):
        self.check(self.run_one(swift_hosts.program("HTTP")))

    def test_B_HTTP_7_example_python(self):
        found = self.run_one(sys.executable, ROOT / "examples/http/main.py")
        self.assertEqual([one["http.side"] for one in found], ["client", "server"])
        self.assertEqual({one["http.conversation"] for one in found}, {"7d1f"})
