"""Captured exchanges as another process has them: the list that follows a store, and requests made
again, from a HAR entry and by the printed curl command."""

import base64
import http.client
import os
import re
import subprocess
import threading
import time
import urllib.parse
import zlib

from sending import CORDWOOD


class Followed:
    """`cordwood http -f`: its lines with their arrival times."""

    def __init__(self, case, *arguments):
        self.process = subprocess.Popen([CORDWOOD, "http", "-f", *arguments, case.store],
                                        stdout=subprocess.PIPE, text=True)
        self.lines, self.news = [], threading.Condition()
        self.thread = threading.Thread(target=self.gather, daemon=True)
        self.thread.start()
        case.addCleanup(self.stop)

    def gather(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self.news.notify_all()

    def wait(self, condition, seconds=20):
        """The first line for which it holds, and its arrival time."""
        found = []

        def look():
            found[:] = [line for line in self.lines if condition(line[1])]
            return found
        with self.news:
            if not self.news.wait_for(look, seconds):
                raise AssertionError(f"not within {seconds} s; lines: {self.lines}")
        return found[0]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()


def replay(request):
    """Makes the request of an entry; (status, body)."""
    url = urllib.parse.urlsplit(request["url"])
    connection = http.client.HTTPConnection(url.netloc, timeout=20)
    post = request.get("postData")
    body = None
    if post:
        is_binary = post.get("_encoding") == "base64"
        body = base64.b64decode(post["text"]) if is_binary else post["text"].encode()
    headers = {pair["name"]: pair["value"].encode() for pair in request["headers"]
               if pair["name"].lower() not in ("transfer-encoding", "content-length")}
    connection.request(request["method"], urllib.parse.urlunsplit(("", "", *url[2:])), body,
                       headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    if response.getheader("Content-Encoding") == "gzip":
        content = zlib.decompress(content, 31)
    return response.status, content


def undated(answer):
    return re.sub(rb"(?m)^Date: .*\r$", b"Date", answer)


def run_line(case, one, cwd, **environment):
    """Runs the output of `--curl` for an exchange of the case's store. Returns curl's result, and
    the tool's stderr."""
    done = subprocess.run([CORDWOOD, "http", "show", one, case.store, "--curl"],
                          capture_output=True, check=True)
    printable = all(byte >= 0x20 or byte in b"\n\t" for byte in done.stdout)
    case.assertTrue(printable, "nothing that moves a cursor is printed")
    line = done.stdout.decode()
    # A line longer than an argument may be is typed or piped.
    ran = subprocess.run(["sh"], input=f"set -e\n{line}".encode(), capture_output=True,
                         cwd=cwd, check=False,
                         env={"PATH": os.environ["PATH"], "HOME": str(cwd), **environment})
    case.assertEqual(ran.returncode, 0, (line[:500], ran.stderr))
    if len(line) < 100_000 and not environment:
        again = subprocess.run(["sh", "-c", line], capture_output=True, cwd=cwd, check=False)
        # With -i its head is included, and two answers may differ by a second.
        case.assertEqual(undated(again.stdout), undated(ran.stdout))
    return ran.stdout, done.stderr.decode()
