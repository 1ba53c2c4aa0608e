#!/usr/bin/env python3
"""What the hooks of HTTP clients cost a request, compared with the same client without them: `none`
(no hook), `off` (installed, capture off), `on` (captured). One keep-alive connection to a loopback
server that answers 2 KB. The three take turns. Prints the median and the lowest of the rounds'
means, in microseconds.

    http_hooks.py [--requests N] [--rounds N]

With the clients of Tests/Behaviour/requirements.txt; those that are not installed are left out."""

import argparse
import http.client
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bindings/python/src"), str(ROOT / "Tests/TestSupport")]

import environments  # noqa: E402

import cordwood  # noqa: E402

BODY = b"x" * 2048
ANSWER = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(BODY)
          + BODY)


def serve(listener):
    """Answers every request, which ends with an empty line; one thread a connection."""
    def one(connection):
        with connection:
            kept = b""
            while data := connection.recv(65536):
                kept += data
                while b"\r\n\r\n" in kept:
                    kept = kept.partition(b"\r\n\r\n")[2]
                    connection.sendall(ANSWER)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=one, args=(connection,), daemon=True).start()


def clients(port):
    """For each installed client, a call that makes a request."""
    url = f"http://127.0.0.1:{port}/"
    found = {}
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def plain():
        connection.request("GET", "/")
        connection.getresponse().read()
    found["http.client"] = plain
    try:
        import requests
        session = requests.Session()
        session.trust_env = False
        found["requests"] = lambda: session.get(url).content
    except ImportError:
        pass
    try:
        import httpx
        client = httpx.Client(trust_env=False)
        found["httpx"] = lambda: client.get(url).content
    except ImportError:
        pass
    return found


def mean_us(call, count):
    """The mean of `count` calls."""
    began = time.perf_counter_ns()
    for _ in range(count):
        call()
    return (time.perf_counter_ns() - began) / count / 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--serve", action="store_true",
                        help="the server alone, for Benchmarks/swift's HTTPHooks")
    asked = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    if asked.serve:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
        serve(listener)
    # A separate process: in ours it would share the interpreter's lock.
    fork = multiprocessing.get_context("fork")
    server = fork.Process(target=serve, args=(listener,), daemon=True)
    server.start()
    engine = cordwood.open(tempfile.mkdtemp(prefix="cordwood-bench-"))
    print(f"{'µs a request':14} {'none':>8} {'off':>8} {'on':>8} {'off +':>7} {'on +':>7}"
          "   lowest +")
    for name, call in clients(listener.getsockname()[1]).items():
        took = {"none": [], "off": [], "on": []}
        mean_us(call, asked.requests)
        for _ in range(asked.rounds):
            took["none"].append(mean_us(call, asked.requests))
            with cordwood.install_http_hooks(engine):
                engine.capture_http(enabled=False)
                took["off"].append(mean_us(call, asked.requests))
                engine.capture_http(enabled=True)
                took["on"].append(mean_us(call, asked.requests))
        middle = {way: statistics.median(values) for way, values in took.items()}
        least = {way: min(values) for way, values in took.items()}
        print(f"{name:14} {middle['none']:8.1f} {middle['off']:8.1f} {middle['on']:8.1f} "
              f"{middle['off'] - middle['none']:7.1f} {middle['on'] - middle['none']:7.1f}   "
              f"off {least['off'] - least['none']:.1f}, on {least['on'] - least['none']:.1f}")
    engine.close()
    server.terminate()


if __name__ == "__main__":
    with_clients = environments.interpreter("http")
    if with_clients and Path(sys.prefix).resolve() != Path(with_clients).parent.parent.resolve():
        os.execv(with_clients, [with_clients, *sys.argv])
    main()
