"""The programs on the pages in docs/ and of the Python package: all code blocks with a language. C
and C++ are compiled, Swift is compiled with the other hosts (swift_hosts.py), Python is run. What a
block presumes, such as an engine, is declared here for each language."""

import enum
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "bindings/python/README.md"]
BLOCK = re.compile(r"^```(c|cpp|python|swift)\n(.*?)^```$", re.S | re.M)

C_GIVEN = """
#include <cordwood/cordwood.h>
#include <cordwood/curl.h>
#include <cordwood/curl_error.h>
#include <cordwood/transaction.h>
#include <stdio.h>
void given(cw_engine *engine, cw_logger *log, CURL *easy, cw_http_request request,
           struct cw_http_response response, cw_http_outcome outcome, const char *bytes,
           const char *body, size_t length);
void given(cw_engine *engine, cw_logger *log, CURL *easy, cw_http_request request,
           struct cw_http_response response, cw_http_outcome outcome, const char *bytes,
           const char *body, size_t length) {
    CURLcode code = CURLE_OK;
    const cw_network_error *error = NULL;
    cw_options options;
    cw_options_init(&options, sizeof options);
    (void)engine; (void)log; (void)easy; (void)request; (void)response; (void)outcome;
    (void)bytes; (void)body; (void)length; (void)code; (void)error; (void)options;
    {
"""
CPP_GIVEN = """
#include <cordwood/cordwood.hpp>
#include <cordwood/cordwood_transaction.hpp>
void given(const cordwood::engine &engine);
void given(const cordwood::engine &engine) {
    {
"""
SWIFT_GIVEN = """
import Cordwood
import CordwoodHTTPCapture
import CordwoodURLSession
import Foundation
import FoundationNetworking

let bytes: [UInt8] = []
"""
SWIFT_NAMES = ("_ engine: Engine, _ log: Logger, _ session: URLSession, _ url: URL, "
               "_ mine: URLSessionConfiguration, _ myDelegate: any URLSessionDelegate")


def blocks():
    """(page:line, language, code) of each."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 2
            yield f"{page.relative_to(ROOT)}:{line}", found[1], found[2]


def swift_file():
    """A source with each Swift block in a function of its own."""
    text = [SWIFT_GIVEN]
    for number, (place, language, code) in enumerate(blocks()):
        if language == "swift":
            code = "\n".join(line for line in code.splitlines() if not line.startswith("import "))
            unused = re.findall(r"^(?:let|var) (\w+) =", code, re.M)
            uses = "".join(f"_ = {name}\n" for name in unused)
            text.append(f"// {place}\nfunc snippet{number}({SWIFT_NAMES}) async throws {{\n"
                        f"do {{\n{code}\n{uses}}}\n}}\n")
    return "\n".join(text)


def compiled(language, code):
    """Why it does not compile; or None."""
    given, command = {
        "c": (C_GIVEN, ["cc", "-std=c11", "-xc"]),
        "cpp": (CPP_GIVEN, ["g++", "-std=c++17", "-xc++"]),
    }[language]
    strict = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused"]
    done = subprocess.run([*command, *strict, f"-I{ROOT}/include", "-"], text=True,
                          input=f"{given}{code}\n}}\n}}\n", capture_output=True)
    return done.stderr if done.returncode else None


class Answers(http.server.BaseHTTPRequestHandler):
    """The server for Python blocks."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_):
        pass


def fake_requests(url):
    """The parts of requests that the pages use."""
    answer = types.SimpleNamespace(status_code=200, headers={}, content=b"{}", url=url)
    return types.SimpleNamespace(get=lambda *_, **__: answer, post=lambda *_, **__: answer,
                                 RequestException=OSError)


def run_python(code, folder):
    """Runs one block in a child process. Returns a traceback, or None."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    done = subprocess.run(
        [sys.executable, __file__, url], input=code, text=True, capture_output=True, cwd=folder,
        timeout=60, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                             PYTHONPATH=str(ROOT / "bindings/python/src"),
                             CORDWOOD_LIBRARY=str(ROOT / "build/lib/libcordwood.so")))
    server.shutdown()
    return done.stderr if done.returncode else None


def child(url):
    """In its own process: standard input is the block."""
    import cordwood
    code = re.sub(r"https://[\w.]*example[\w.]*", url, sys.stdin.read())
    with cordwood.open(":memory:") as engine:
        engine.add_target(url, kind="http", format="ndjson", name="given")
        with engine.transaction(1) as transaction:
            headers = transaction.headers()
        names = {
            "cordwood": cordwood, "engine": engine, "log": engine.logger("page"), "enum": enum,
            "json": json, "url": url, "token": "token", "requests": fake_requests(url),
            "request": types.SimpleNamespace(headers=headers), "app": lambda *_: [],
            "token_service": types.SimpleNamespace(get=lambda: "token"),
            "error": ConnectionError("refused"),
        }
        exec(compile(code, "page", "exec"), names)  # noqa: S102
        if isinstance(names["engine"], cordwood.Engine):
            names["engine"].close(timeout=10)


if __name__ == "__main__":
    child(sys.argv[1])
