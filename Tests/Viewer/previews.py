"""The viewer's previews of waiting uploads: byte for byte what a server then receives, without
secrets, and without a change to the store."""

import gzip
import http.server
import os
import subprocess
import threading

from cases import Skipped, equal, holds
from changes import files
from serving import Server
from stores import tool, write

# A target's name, and its options: several parts, several encodings, a filter, headers, secrets.
TARGETS = {
    "lines": ("http", "--format", "json", "--body-records-max", "7", "--send-level", "info",
              "--send-loggers", "app,other", "--header", "X-Key: hidden-1", "--method", "PUT",
              "--token", "hidden-2"),
    "file": ("http", "--encoding", "gzip"),
    "protobuf": ("otlp", "--token", "hidden-3", "--body-bytes-max", "65536"),
    "otlp": ("otlp", "--format", "otlp-json", "--encoding", "none"),
    "loki": ("loki", "--parameter", "labels=team=storage,zone=7", "--parameter",
             "tenant=hidden-4", "--parameter", "service=shop", "--user", "hidden-5"),
    "elastic": ("elasticsearch", "--parameter", "index=of-one", "--parameter", "index_in=action",
                "--parameter", "host=desk", "--token", "hidden-6"),
    "splunk": ("splunk", "--parameter", "sourcetype=of-one", "--parameter", "channel=hidden-7",
               "--token", "hidden-8"),
}


class Recorder:
    """A server that records requests by id, and refuses everything until it is told to accept."""

    def __init__(self):
        recorder = self
        self.takes, self.requests = False, {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if recorder.takes:
                    recorder.requests[self.path, self.headers["Idempotency-Key"].strip('"')] = (
                        self.command, self.headers, body)
                loki, splunk = "/loki/" in self.path, "/services/" in self.path
                answer = b'{"code":0}' if splunk else b'{"errors":false}'
                answer = answer if splunk or "_bulk" in self.path else b""
                self.send_response((204 if loki else 200) if recorder.takes else 503)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_PUT = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def upload(self, store, name, codes=(0,)):
        """Like a program with this target."""
        kind, *options = TARGETS[name]
        path = "/hidden-9/" if kind == "http" else ""
        tool("upload", store, "--to", f"{self.origin}{path}", "--kind", kind, "--name", name,
             *options, codes=codes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def decoded(headers, body):
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


def shown(server, pair):
    """Every request of a pair: its description, its body as sent, its content."""
    asked = {"archive": pair["archive"], "target": pair["target"], "store": pair["store"]}
    part, found = 0, []
    while part is not None:
        said = server.get("preview", part=part, **asked).json
        sent, content = (server.get(f"preview/{what}", part=part, **asked)
                         for what in ("sent", "content"))
        for answer in (sent, content):
            equal("its kind", answer.headers["Content-Type"], "application/octet-stream")
            policies = answer.headers.get_all("Content-Security-Policy")
            holds(any("sandbox" in one for one in policies), f"run by a browser: {policies}")
        found.append((said, sent.body, content.body))
        part = said.get("next")
    equal("behind the last", server.api("preview", part=len(found), **asked).status, 404)
    return found


def previews(folder, seed):
    """Equal to what arrives, request by request. Nothing is sent, written or locked for it."""
    store = folder / "store"
    for name in ("app", "other.db", "noise"):
        write(store, 30, message="f\u00fcr %d", name=name)
        tool("archive", store)
    with Recorder() as recorder, Server(store, "--read-only") as server:
        for name in TARGETS:
            recorder.upload(store, name, codes=(5,))
        before = files(store)
        pairs = [pair for pair in server.get("queue").json["pairs"]
                 if pair["state"] in ("waiting", "retry")]
        equal("pairs", len(pairs) % len(TARGETS), 0)
        found = {}
        for pair in pairs:
            text = tool("cat", "--json", store / "archives" / pair["archive"]).stdout
            if pair["target"] == "lines" and b'"logger":"noise"' in text:
                answer = server.api("preview", archive=pair["archive"], target="lines")
                equal("the target wants none of it", answer.status, 404)
                continue
            for said, sent, content in shown(server, pair):
                equal("bytes", (said["body_bytes"], said["content_bytes"]),
                      (len(sent), len(content)))
                holds(b"hidden-" not in repr(said).encode() + content, f"a secret: {said}")
                equal("the server", said["origin"], recorder.origin)
                headers = {one["name"].lower(): one["value"] for one in said["headers"]}
                equal("its content", decoded(headers, sent), content)
                found[pair["target"], said["id"]] = said, headers, sent
        holds(sum(name == "lines" for name, _ in found) > 6, "parts are missing")
        holds(files(store) == before, "the store was changed")
        equal("requests", recorder.requests, {})
        recorder.takes = True
        for name in TARGETS:
            recorder.requests = {}
            recorder.upload(store, name)
            equal(f"requests to {name}", {one for _, one in recorder.requests},
                  {one for target, one in found if target == name})
            for (_, one), (method, received, body) in recorder.requests.items():
                said, headers, sent = found[name, one]
                equal(f"{name}: method", said["method"], method)
                equal(f"{name}: body", sent, body)
                more = {"host", "content-length", "accept"}
                equal(f"{name}: headers", set(headers), {
                    key.lower() for key in received} - more)
                for key, value in headers.items():
                    equal(f"{name}: {key}", value,
                          "***" if "hidden-" in received[key] or key == "authorization"
                          else received[key])


def preview_refusals(folder, seed):
    """Names of other stores, archives that do not wait, and incomplete registrations."""
    store, other = folder / "store", folder / "other"
    for one in (store, other):
        write(one, 5)
        tool("archive", one)
    with Recorder() as recorder, Server(store) as server:
        recorder.upload(store, "otlp", codes=(5,))
        archive = next((store / "archives").glob("*.cwa")).name
        foreign = next((other / "archives").glob("*.cwa")).name
        asked = {"archive": archive, "target": "otlp"}
        equal("all that is right", server.api("preview", **asked).status, 200)
        for what, status, more in (
                ("another store", 404, {"store": str(other)}),
                ("its parent", 404, {"store": str(folder)}),
                ("another's archive", 404, {"archive": foreign}),
                ("a way out", 404, {"archive": f"../../other/archives/{foreign}"}),
                ("no archive", 400, {"archive": ""}), ("no target", 400, {"target": ""}),
                ("another target", 404, {"target": "../store"}),
                ("a part", 404, {"part": "1"}), ("no part", 400, {"part": "-1"})):
            for path in ("preview", "preview/sent", "preview/content"):
                equal(f"{what}: {path}", server.api(path, **{**asked, **more}).status, status)
        equal("another path", server.api("preview/state", **asked).status, 404)
        equal("without the header", server.request(
            "/api/preview", {"Cookie": server.cookie}).status, 403)
        registered = store / "targets/otlp"
        whole = registered.read_text()
        holds("hidden-" not in whole and "bodies 1\n" in whole, f"registered: {whole}")
        for text in (whole.split("bodies 1")[0], whole.replace("bodies 1", "bodies 2"),
                     whole.replace("bodies 1\n", "bodies 1\nlevel 300\n"),
                     whole.replace("kind otlp", "kind later"),
                     whole.replace("bodies 1\n", "bodies 1\nparameter never=heard\n")):
            registered.write_text(text)
            answer = server.api("preview", **asked)
            equal(text, answer.status, 422)
            holds(answer.json["error"], "no reason")
        registered.write_text(whole)
        recorder.takes = True
        keep(store, recorder)
        recorder.upload(store, "otlp")
        equal("what was sent", server.api("preview", **asked).status, 404)


def keep(store, recorder):
    """Adds another target that keeps its archives."""
    recorder.takes = False
    recorder.upload(store, "loki", codes=(5,))
    recorder.takes = True


def preview_of_media(folder, seed):
    """A store on read-only media is previewed as well."""
    store = folder / "store"
    write(store, 5)
    tool("archive", store)
    with Recorder() as recorder:
        recorder.upload(store, "loki", codes=(5,))
    if os.geteuid() != 0:
        raise Skipped("needs root and a read-only mount")
    subprocess.run(["mount", "--bind", store, store], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", store], check=True)
        with Server(store) as server:
            pair = server.get("queue").json["pairs"][0]
            (said, sent, content), = shown(server, pair)
            equal("its content", gzip.decompress(sent), content)
            equal("kind", said["body_kind"], "json")
    finally:
        subprocess.run(["umount", store], check=True)
