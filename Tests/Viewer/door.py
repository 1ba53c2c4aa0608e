"""Who is let in, and what that may cost."""

import http.client
import os
import pty
import shutil
import signal
import socket
import stat
import subprocess
import sys

from stores import ROOT, tool, write
from cases import Skipped, equal, holds, until
from serving import CORDWOOD, LINK, Server, environment

sys.path.append(str(ROOT / "Tests/Disk"))
from harness import Words, interposer  # noqa: E402


def links(folder, seed):
    """Valid once and for a limited time, with a cookie that scripts and other sites cannot get."""
    write(folder / "store", 3)
    master, slave = pty.openpty()
    words = Words(folder / "words")
    clocks = {"LD_PRELOAD": str(interposer(folder)), "DISK_WORDS": str(words.path),
              "DISK_STORE": str(folder / "store")}
    with Server(folder / "store", stdin=slave, enters=False, env=clocks) as server:
        holds("ssh -L " in server.how and str(server.port) in server.how, server.how)
        answer = server.enter()
        name, attributes = answer.headers["Set-Cookie"].split("=", 1)[0], \
            answer.headers["Set-Cookie"].split("; ")[1:]
        holds(name.startswith(f"cordwood-{server.port}-"), name)
        equal("the cookie's attributes", attributes, ["Path=/", "HttpOnly", "SameSite=Strict"])
        equal("with it", server.api("store").status, 200)
        equal("the second time", server.request(server.link).status, 403)
        equal("another token", server.request("/open/" + "0" * 32).status, 403)
        os.write(master, b"\n")
        again = LINK.match(server.process.stdout.readline().decode())
        holds(again and again[3] != server.link, "Enter prints no other link")
        equal("by HEAD", server.request(again[3], method="HEAD").status, 405)
        server.enter(again[3])
        equal("with its cookie", server.api("store").status, 200)
        for seconds, status in ((30, 303), (61, 403)):
            os.write(master, b"\n")
            late = LINK.match(server.process.stdout.readline().decode())[3]
            words.wait(seconds)
            equal(f"after {seconds} s", server.request(late).status, status)
    os.close(master)
    os.close(slave)


def the_matrix(folder, seed):
    """Each header of a request separately, by raw bytes."""
    write(folder / "store", 3)
    with Server(folder / "store") as server:
        good = {"Host": server.authority, "X-Cordwood": "1", "Cookie": server.cookie,
                "Sec-Fetch-Site": "same-origin", "Origin": f"http://{server.authority}"}

        def status(line, change=None, *more):
            headers = {**good, **(change or {})}
            text = "".join(f"{name}: {value}\r\n" for name, value in headers.items()
                           if value is not None) + "".join(more)
            return server.raw(f"{line}\r\n{text}\r\n".encode("latin-1"))[0]

        line = "GET /api/store HTTP/1.1"
        equal("all that is right", status(line), 200)
        for change, wanted in (
                ({"Host": "evil.example"}, 421), ({"Host": None}, 421), ({"Host": ""}, 421),
                ({"Host": f"127.0.0.1.evil.example:{server.port}"}, 421),
                ({"Host": f"localhost:{server.port}"}, 403),
                ({"Host": f"localhost:{server.port}", "Origin": None}, 200),
                ({"Host": "localhost:8080", "Origin": "http://localhost:8080"}, 200),
                ({"Host": "[::1]:1", "Origin": "http://[::1]:1"}, 200),
                ({"Origin": None}, 200), ({"Origin": "null"}, 403),
                ({"Origin": "http://evil.example"}, 403), ({"Origin": "http://127.0.0.1:1"}, 403),
                ({"Sec-Fetch-Site": None}, 200), ({"Sec-Fetch-Site": "cross-site"}, 403),
                ({"Sec-Fetch-Site": "same-site"}, 403), ({"Sec-Fetch-Site": "none"}, 403),
                ({"X-Cordwood": None}, 403), ({"X-Cordwood": "2"}, 403),
                ({"Cookie": None}, 401), ({"Cookie": server.cookie + "0"}, 401),
                ({"Cookie": server.cookie[:-1]}, 401), ({"Cookie": server.cookie.upper()}, 401),
                ({"Cookie": f"a=b; {server.cookie}"}, 200)):
            equal(f"{change}", status(line, change), wanted)
        equal("two hosts", status(line, None, f"Host: {server.authority}\r\n"), 421)
        for method, wanted in (("POST", 405), ("PUT", 405), ("DELETE", 405), ("OPTIONS", 405),
                               ("HEAD", 405), ("TRACE", 405), ("PATCH", 405)):
            equal(method, status(f"{method} /api/store HTTP/1.1"), wanted)
        for path, wanted in (("/", 200), ("/page/app.js", 200), ("/page/../page.c", 404),
                             ("/page/%2e%2e/x", 404), ("/api/", 404), ("/api/nothing", 404),
                             ("/api/record/x", 400), ("/api/query?q=%ff", 400),
                             ("/api/query?limit=1001", 400), ("/api/query?limit=0", 400),
                             ("/api/query?parts=all", 400), ("/api/query?dir=up", 400),
                             ("/api/query?from=x", 400), ("/api/query?since=never", 400)):
            equal(path, status(f"GET {path} HTTP/1.1"), wanted)
        equal("HTTP/1.0", status("GET / HTTP/1.0"), 505)
        equal("no HTTP", server.raw(b"hello\r\n\r\n")[0], 400)
        equal("a long head", server.raw(b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000)[0], 431)
        equal("a long body", status("GET / HTTP/1.1", {"Content-Length": "70000"}), 413)
        equal("long pieces", server.raw(
            f"GET / HTTP/1.1\r\nHost: {server.authority}\r\nTransfer-Encoding: chunked\r\n\r\n"
            .encode() + b"12000\r\n" + b"x" * 0x12000)[0], 413)
        wrong = server.api("query", q="grün (a")
        equal("a wrong query", (wrong.status, wrong.json),
              (400, {"error": "a ( without its )", "column": 6}))
        errors = server.end()
        holds("refused 127.0.0.1: " in errors, errors)


def headers(folder, seed):
    """Of every answer, and of the page's files."""
    write(folder / "store", 3)
    with Server(folder / "store") as server:
        answers = {path: server.request(path, server.headers())
                   for path in ("/", "/page/style.css", "/page/app.js", "/api/store",
                                "/api/query", "/nothing", server.link)}
        for path, answer in answers.items():
            policy = answer.headers["Content-Security-Policy"]
            for part in ("default-src 'none'", "script-src 'self'", "base-uri 'none'",
                         "frame-ancestors 'none'", "form-action 'none'",
                         "require-trusted-types-for 'script'"):
                holds(part in policy, f"{path}: {policy}")
            holds("unsafe" not in policy, policy)
            for name, wanted in (("X-Content-Type-Options", "nosniff"),
                                 ("Referrer-Policy", "no-referrer"),
                                 ("Cross-Origin-Opener-Policy", "same-origin"),
                                 ("Cross-Origin-Resource-Policy", "same-origin")):
                equal(f"{path}: {name}", answer.headers[name], wanted)
            holds(not [name for name in answer.headers if "access-control" in name.lower()],
                  f"{path}: {answer.headers}")
            if path.startswith(("/api", "/open", "/nothing")):
                equal(f"{path}: Cache-Control", answer.headers["Cache-Control"], "no-store")
        for path, kind in (("/", "text/html"), ("/page/style.css", "text/css"),
                           ("/page/app.js", "text/javascript")):
            answer = answers[path]
            equal(path, answer.headers["Content-Type"], f"{kind}; charset=utf-8")
            tag = answer.headers["ETag"]
            again = server.request(path, {"If-None-Match": f'"x", {tag}'})
            equal(f"{path} again", (again.status, again.body), (304, b""))
            head = server.request(path, method="HEAD")
            equal(f"{path} by HEAD", (head.status, head.body, head.headers["Content-Length"]),
                  (200, b"", str(len(answer.body))))
        source = ROOT / "Sources/CViewerPage/page"
        for file in source.iterdir():
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            equal(path, server.request(path).body, file.read_bytes())
        tags = {server.request(f"/page/{file.name}").headers["ETag"] for file in source.iterdir()
                if file.stat().st_size > 0}
        equal("tags", len(tags), len([f for f in source.iterdir() if f.stat().st_size > 0]))


def another_user(folder, seed):
    """Cookie and link do not help on a socket of another user."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skipped("needs root and setpriv")
    write(folder / "store", 3)
    program = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
connection.request("GET", sys.argv[2], headers={"Cookie": sys.argv[3], "X-Cordwood": "1"})
print(connection.getresponse().status)
"""
    with Server(folder / "store", enters=False) as server:
        def ask(path, *user):
            done = subprocess.run(
                [*user, sys.executable, "-c", program, str(server.port), path,
                 server.cookie or ""], stdout=subprocess.PIPE, check=True)
            return int(done.stdout)

        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        equal("the link by another user", ask(server.link, *nobody), 403)
        server.enter()  # still valid
        for path in ("/", "/page/app.js", "/api/store"):
            equal(f"{path} by another user", ask(path, *nobody), 403)
            equal(f"{path} by the same", ask(path), 200)


# Makes a request over a Unix socket (first argument) with a cookie (second).
STRANGER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as own:
    own.connect(sys.argv[1])
    own.sendall(f"GET /api/store HTTP/1.1\\r\\nHost: localhost\\r\\nX-Cordwood: 1\\r\\n"
                f"Cookie: {sys.argv[2]}\\r\\n\\r\\n".encode())
    print(own.recv(4096).decode())
"""


def sockets(folder, seed):
    """A Unix socket belongs to its owner alone, and is removed afterwards."""
    write(folder / "store", 3)
    path = folder / "viewer.socket"
    process = subprocess.Popen([CORDWOOD, "serve", str(folder / "store"), "--socket", str(path)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    link = process.stdout.readline().decode().strip()
    how = process.stdout.readline().decode()
    holds(f"ssh -L 8080:{path} " in how, how)
    equal("its mode", stat.S_IMODE(path.stat().st_mode), 0o600)

    def ask(target, cookie=""):
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(str(path))
            own.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost:8080\r\nX-Cordwood: 1\r\n"
                        f"Cookie: {cookie}\r\nConnection: close\r\n\r\n".encode())
            got = b""
            while piece := own.recv(65536):
                got += piece
        return got.decode()

    entered = ask(link.removeprefix("http://127.0.0.1:8080"))
    holds(entered.startswith("HTTP/1.1 303 "), entered)
    cookie = entered.split("Set-Cookie: ")[1].split(";")[0]
    holds('"records":' in ask("/api/store", cookie), "no answer")
    if os.geteuid() == 0 and shutil.which("setpriv"):
        # Even if the mode would let another user in, the check of the socket's user refuses.
        folder.chmod(0o711)
        path.chmod(0o666)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        for user, status in (([], "200"), (nobody, "403")):
            done = subprocess.run(
                [*user, sys.executable, "-c", STRANGER, str(path), cookie],
                stdout=subprocess.PIPE, check=True, text=True)
            equal("another user's status" if user else "the same one's",
                  done.stdout.split()[1], status)
    process.terminate()
    process.communicate(timeout=60)
    equal("serve ended", process.returncode, 0)
    holds(not path.exists(), "the socket is left")


def arguments(folder, seed):
    """What is refused before it listens, and how it ends."""
    write(folder / "store", 3)
    store = folder / "store"
    for address in ("0.0.0.0:0", "192.0.2.1:80", "[::]:0"):
        done = tool("serve", store, "--listen", address, codes=(2,))
        holds(b"use ssh -L" in done.stderr, done.stderr)
    tool("serve", store, "--listen", "80", codes=(2,))
    tool("serve", store, "--listen", "example.com:80", codes=(4,))
    tool("serve", store, "--idle-exit", "soon", codes=(2,))
    tool("serve", store, "--page", "x", codes=(2,))
    tool("serve", folder / "nothing", codes=(4,))
    done = tool("serve", store, "--idle-exit", "300ms")
    holds(b"nobody has asked" in done.stderr, done.stderr)
    with Server(store, "--listen", "[::1]:0") as server:
        equal("by ::1", server.api("store").status, 200)
    for number in (signal.SIGINT, signal.SIGTERM):
        server = Server(store)
        with server.stream("tail") as answer:
            answer.readline()
            server.end(number)
    # --open starts xdg-open with the link, without our streams.
    opener = folder / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" > {folder}/opened.part\n'
                      f'mv {folder}/opened.part {folder}/opened\necho noise; echo noise >&2\n')
    opener.chmod(0o755)
    with Server(store, "--open", enters=False,
                env={"PATH": f"{folder}:{os.environ['PATH']}"}) as server:
        until((folder / "opened").exists, "xdg-open")
        equal("the opened link", (folder / "opened").read_text(),
              f"http://127.0.0.1:{server.port}{server.link}\n")
        server.enter()


# ── What it may cost ──

def half_open(folder, seed):
    """1,000 connections without a request give way to one with a request."""
    write(folder / "store", 3)
    with Server(folder / "store") as server:
        crowd = []
        for number in range(1000):
            try:
                made = socket.create_connection(("127.0.0.1", server.port), timeout=10)
                made.sendall(b"" if number % 2 else b"GET / HTTP/1.1\r\nHo")
                crowd.append(made)
            except OSError:
                pass
        holds(len(crowd) > 60, f"only {len(crowd)} connections")

        def asked():
            try:
                return server.api("store").status == 200
            except (OSError, http.client.HTTPException):
                return False

        until(asked, "somebody gives way", 30)
        holds(server.memory() < 60 << 20, f"{server.memory()} bytes")
        for made in crowd:
            made.close()
        until(asked, "afterwards", 30)


def slow_readers(folder, seed):
    """A client that does not read delays only its own query, and costs no memory. A fifth query is
    told when to retry. A client that leaves makes room at once."""
    store = folder / "store"
    write(store, 1_500, message="x" * 10_000 + " %d")
    with Server(store) as server:
        before = server.memory()
        path = "/api/query?dir=forward&limit=1000&parts=rows"
        text = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
        slow = []
        for _ in range(4):
            made = socket.socket()
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            made.connect(("127.0.0.1", server.port))
            made.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.authority}\r\n{text}\r\n".encode())
            holds(made.recv(15) == b"HTTP/1.1 200 OK", "no answer")
            slow.append(made)
        busy = server.api("store")
        equal("a fifth query", (busy.status, busy.headers["Retry-After"]), (503, "1"))
        equal("the page", server.request("/").status, 200)
        grown = server.memory() - before
        holds(grown < 48 << 20, f"{grown} bytes for 4 slow readers of 10 MB each")
        slow.pop().close()
        until(lambda: server.api("store").status == 200, "room again")
        # A client that resumes reading gets everything.
        slow[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        rest = b""
        while b"\r\n0\r\n\r\n" not in rest[-16:]:
            piece = slow[0].recv(1 << 16)
            holds(piece, "it ended early")
            rest += piece
        equal("its rows", rest.count(b'{"row":'), 1_000)
        for made in slow:
            made.close()


def a_crowd(folder, seed):
    """200 clients that request 10 MB each and read nothing: 4 are served, and memory is bounded."""
    store = folder / "store"
    write(store, 1_200, message="x" * 10_000 + " %d")
    with Server(store) as server:
        before = server.memory()
        text = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
        crowd = []
        for number in range(200):
            made = socket.socket()
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            made.connect(("127.0.0.1", server.port))
            way = ("back", "forward")[number % 2]
            made.sendall(f"GET /api/query?dir={way}&limit=1000&parts=rows HTTP/1.1\r\n"
                         f"Host: {server.authority}\r\n{text}\r\n".encode())
            crowd.append(made)
        served = 0
        for made in crowd:
            made.settimeout(30)
            try:
                served += made.recv(12) == b"HTTP/1.1 200"
            except ConnectionError:
                pass  # It gave way to another.
        grown = server.memory() - before
        holds(grown < 96 << 20, f"{grown} bytes for {served} of 200 slow readers")
        holds(0 < served <= 4, f"{served} of 200 are served at a time")
        for made in crowd:
            made.close()
        until(lambda: server.api("store").status == 200, "room again")
    return f"{served} served, {grown >> 20} MiB"


def cancel(folder, seed):
    """A query ends once its client has left, even if it finds nothing; so does a tail."""
    store = folder / "store"
    # So many that reading them takes a while.
    write(store, 400_000)
    tool("archive", store)
    with Server(store) as server:
        began = server.processor()
        equal("matched", server.rows(q="-record_id:q", parts="count")[1]["matched"], 400_000)
        whole = server.processor() - began
        began = server.processor()
        for _ in range(4):
            connection = server.connect()
            connection.request("GET", "/api/query?q=nowhere=1&parts=rows,count",
                               headers=server.headers())
            connection.sock.close()
            connection.close()
        until(lambda: server.api("store").status == 200, "room again")
        until(lambda: server.api("command").status == 200, "room again")
        spent = server.processor() - began
        holds(spent < whole * 2, f"{spent} s for what was left, {whole} s for one")
    with Server(store) as server:
        open_ones = [server.connect() for _ in range(4)]
        for connection in open_ones:
            connection.request("GET", "/api/tail", headers=server.headers())
            equal("a tail", connection.getresponse().status, 200)
        equal("a fifth", server.api("tail").status, 503)
        equal("queries meanwhile", server.rows()[1]["matched"], 200)
        for connection in open_ones:
            connection.sock and connection.sock.close()
            connection.close()

        def again():
            connection = server.connect()
            connection.request("GET", "/api/tail", headers=server.headers())
            status = connection.getresponse().status
            connection.close()
            return status == 200

        until(again, "room for a tail")


def pipelines(folder, seed):
    """Pipelined requests are answered one after the other."""
    write(folder / "store", 3)
    with Server(folder / "store") as server:
        text = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
        one = f"GET /api/query HTTP/1.1\r\nHost: {server.authority}\r\n{text}\r\n"
        last = one.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        with server.socket() as own:
            own.sendall((one * 50 + last).encode())
            got = b""
            while piece := own.recv(1 << 16):
                got += piece
        equal("answers", got.count(b"HTTP/1.1 200 OK"), 51)
        equal("rows", got.count(b'{"row":'), 153)
        connection = server.connect()
        for _ in range(20):
            equal("one connection", server.api("query", connection=connection).status, 200)
        connection.close()
