#!/usr/bin/env python3
"""The collector under hostile clients: requests mutated by seed, in pieces, cut short, pipelined,
with tampered archives, against a real `cordwood collect`. After each round it must be alive,
answer, hold only whole archives under names of its own making, and stay within its memory.

Used by run.py. When something breaks, the seed of the last request is printed."""

import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from cases import Failed

ROOT = Path(__file__).resolve().parent.parent.parent
CORDWOOD = ROOT / "build/bin/cordwood"
ARCHIVES = ROOT / "build/fuzz/seeds/store"
# Resident at any time: two loops, four file threads with a block each (FORMAT 1), buffers.
MEGABYTES_MAX = 700
TOKEN = "right"
NAME = re.compile(r"\d{8}T\d{6}Z-\d{1,10}-[0-9a-f]{16}\.\d{8,}-\d{8,}\.[0-9a-f]{16}\.cwa")


class Broken(Exception):
    pass


class Server:
    def __init__(self, folder):
        self.store = folder / "depot"
        environment = dict(os.environ, CORDWOOD_TOKEN=TOKEN)
        self.process = subprocess.Popen(
            [CORDWOOD, "collect", "--directory", self.store, "--listen", "127.0.0.1:0"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r":(\d+)", line)
        if not found:
            raise Broken(f"collect says {line!r}: {self.process.stderr.read()}")
        self.port = int(found[1])

    def megabytes(self):
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) // 1024

    def check_alive(self):
        if self.process.poll() is not None:
            raise Broken(f"collect ended with {self.process.returncode}: "
                         f"{self.process.stderr.read()[-2000:]}")

    def check_store(self):
        for path in (self.store / "archives").iterdir():
            if path.name.startswith(".incoming-"):
                continue
            if not NAME.fullmatch(path.name):
                raise Broken(f"a file of a client's making: {path.name!r}")
            done = subprocess.run([CORDWOOD, "verify", path], capture_output=True, check=False)
            if done.returncode != 0:
                raise Broken(f"{path.name} was taken and is not whole: {done.stdout!r}")
        names = {path.name for path in self.store.iterdir()}
        if not names <= {"store", "lanes", "archives", ".collector", "targets", "queue", "senders",
                         "quarantine"}:
            raise Broken(f"in the depot: {names}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Broken("collect did not end within 30 s of SIGTERM") from None


def real_archives(folder):
    """The bytes of archives that a writer made, in each codec."""
    import seeds  # beside this file
    program = seeds.build(ROOT / "build/lib", folder)
    found = []
    for codec in range(3):
        store = folder / f"made-{codec}"
        subprocess.run([program, store, str(codec), "closed"], check=True)
        found += [path.read_bytes() for path in sorted((store / "archives").glob("*.cwa"))]
    return found


def tampered(chance, archive):
    data = bytearray(archive)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 8))):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at:at + 8] = struct.pack("<Q", chance.choice((0, 1, 2**31, 2**32 - 1, 2**63)))
        elif kind == 2:
            del data[at:]
            break
        else:
            data += bytes(chance.randrange(256) for _ in range(40))
    return bytes(data)


ODD = ["", " ", "\0", "\r\n", "../..", "%2e%2e/", "x" * 20_000, "\xff", "0", "-1", "+5", "0x10",
       "99999999999999999999", "18446744073709551615", "1e3", ",", "\"", "chunked", "close"]


def request(chance, archives):
    """The bytes of one request."""
    body = tampered(chance, chance.choice(archives)) if archives else b""
    if chance.random() < 0.2:
        body = bytes(chance.randrange(256) for _ in range(chance.randrange(2000)))
    method = chance.choice(["POST"] * 8 + ["GET", "PUT", "HEAD", "OPTIONS", "CONNECT", "PO\0ST"])
    path = chance.choice(["/v1/archives"] * 8 + ["/healthz", "/", "*", "/v1/archives/../../x",
                                                 "http://a/v1/archives", "/v1/archives?x=%00"])
    headers = [("Host", "t"), ("Authorization", f"Bearer {TOKEN}"),
               ("Content-Length", str(len(body)))]
    if chance.random() < 0.3:
        key = "".join(chance.choice("0123456789abcdef-") for _ in range(36))
        headers.append(("Idempotency-Key", f'"{key}"'))
    if chance.random() < 0.15:
        headers.append(("Expect", "100-continue"))
    if chance.random() < 0.15:
        headers.append(("Transfer-Encoding", "chunked"))
        size = chance.choice(["%x" % len(body), "f" * 16, "-1", "0", "f" * 19])
        body = size.encode() + b"\r\n" + body + b"\r\n0\r\n\r\n"
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2, 60))):
        name, value = chance.choice(headers)
        odd = chance.choice(ODD)
        headers.append((name if chance.random() < 0.7 else "X-" + name,
                        odd if chance.random() < 0.7 else value + odd))
    if chance.random() < 0.2:
        headers.pop(chance.randrange(len(headers)))
    version = chance.choice(["HTTP/1.1"] * 9 + ["HTTP/1.0", "HTTP/2.0", "HTTP/9", ""])
    head = f"{method} {path} {version}\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers) + "\r\n"
    data = bytearray(head.encode("latin-1") + body)
    for _ in range(chance.choice((0, 0, 0, 0, 1, 3))):
        data[chance.randrange(min(len(data), 400))] = chance.randrange(256)
    return bytes(data)


def send(port, chance, data):
    """Returns whether every answer was valid HTTP."""
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.settimeout(60)
        try:
            at = 0
            while at < len(data):
                piece = chance.choice((1, 100, 5000, len(data)))
                client.sendall(data[at:at + piece])
                at += piece
                if chance.random() < 0.05:
                    break
            if chance.random() < 0.1:
                return
            client.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := client.recv(65536):
                answer += piece
        except TimeoutError:
            raise Broken("no answer in 60 s") from None
        except OSError:  # it has closed, which is allowed
            return
        if answer and not re.match(rb"HTTP/1\.[01] (100|200|4\d\d|503|507) ", answer):
            raise Broken(f"answers {answer[:200]!r}")


def slow_clients(port):
    """Silent connections, and one more client: it is answered, and soon."""
    idle = [socket.create_connection(("127.0.0.1", port), 20) for _ in range(100)]
    for client in idle[:50]:
        client.sendall(b"POST /v1/archives HTTP/1.1\r\nHost: t\r\n")
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.settimeout(20)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n")
        answer = client.recv(4096)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise Broken(f"beside 100 idle clients: {answer!r}")
    for client in idle:
        client.close()
    if time.monotonic() - started > 10:
        raise Broken("an answer beside 100 idle clients took over 10 s")


def attack(runs, seconds, first, found):
    """Returns the number of executions. runs: None goes on for `seconds`."""
    folder = Path(tempfile.mkdtemp(prefix="cordwood-collector-"))
    done, data = 0, b""
    end = time.monotonic() + seconds
    server = None
    try:
        archives = real_archives(folder)
        server = Server(folder)
        slow_clients(server.port)
        while done < runs if runs is not None else time.monotonic() < end:
            chance = random.Random(first + done)
            data = b"".join(request(chance, archives) for _ in range(chance.choice((1, 1, 1, 3))))
            send(server.port, chance, data)
            done += 1
            if done % 100 == 0:
                server.check_alive()
        server.check_alive()
        if server.megabytes() > MEGABYTES_MAX:
            raise Broken(f"{server.megabytes()} MiB resident, over {MEGABYTES_MAX}")
        server.check_store()
        server.stop()
        server = None
    except (Broken, OSError) as error:
        found.mkdir(parents=True, exist_ok=True)
        (found / f"collector-{first + done}").write_bytes(data)
        raise Failed(f"request of seed {first + done}: {error}") from error
    finally:
        if server is not None:
            server.process.kill()
            server.process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    return done
