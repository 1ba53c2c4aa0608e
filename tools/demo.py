#!/usr/bin/env python3
"""`./dev demo`: the main job, end to end. Four programs in four languages log real lines into one
store; one of them is killed. Everything is archived and uploaded to a collector that refuses once
and is restarted once. What the collector has is then compared, thread by thread, with what each
program was told is kept. Exits with 0 only if nothing is lost, doubled, torn or out of order. The
output of compilers and tools goes to build/demo/log; the stores stay in build/demo to look at."""

import argparse
import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import demo_hosts as hosts  # noqa: E402
from counting_proxy import CountingProxy  # noqa: E402
from demo_hosts import ROOT, THREADS, Trouble  # noqa: E402

CORDWOOD = str(ROOT / "build/bin/cordwood")
PLACE = ROOT / "build/demo"
LOG = PLACE / "log"
REAL_LINES = Path("/var/log/dpkg.log")
SAMPLE = ROOT / "examples/sample.log"
INPUT_LINES_MAX = 20_000
UPLOAD_TRIES = 30


def prepare_input(folder):
    """A file whose line count is a multiple of the thread count, so that line i of every repetition
    goes to the same thread."""
    source = SAMPLE
    if REAL_LINES.is_file() and REAL_LINES.stat().st_size > 4096:
        source = REAL_LINES
    lines = [line for line in source.read_bytes().split(b"\n") if line][:INPUT_LINES_MAX]
    lines = lines[:len(lines) // THREADS * THREADS]
    path = folder / "input.log"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return source, path, [line.decode("utf-8", "replace") for line in lines]


def heading(text):
    print(f"\n{text}", flush=True)


def item(text):
    print(f"  {text}", flush=True)


def quietly(command, check=True):
    """Runs a command; its output goes to the log."""
    with LOG.open("a", encoding="utf-8") as log:
        print("$", *command, file=log, flush=True)
        return subprocess.run(command, check=check, stdout=log, stderr=log)


class Collector:
    """The collector process; it keeps its port over a restart."""

    def __init__(self, directory):
        self.directory, self.port, self.child = directory, 0, None

    def start(self, *more):
        self.child = subprocess.Popen(
            [CORDWOOD, "collect", "--listen", f"127.0.0.1:{self.port}", "--directory",
             str(self.directory), *more], stdout=subprocess.PIPE,
            stderr=LOG.open("a", encoding="utf-8"), text=True)
        for line in self.child.stdout:
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                return
        raise Trouble(f"the collector ended {self.child.wait()}")

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
                raise Trouble("the collector did not stop when asked to") from None
        self.child = None


def waiting(store):
    return [path for path in store.rglob("*.cwa")]


def archive_and_upload(store, url):
    """Uploads until nothing waits. A refusal is part of the demo: the uploader respects
    Retry-After, and so the second between attempts is the server's."""
    quietly([CORDWOOD, "archive", str(store)])
    archives = len(waiting(store))
    for attempt in range(UPLOAD_TRIES):
        done = quietly([CORDWOOD, "upload", str(store), "--to", url, "--kind", "collector"], False)
        if done.returncode == 0 and not waiting(store):
            item(f"{archives} archives sent, and deleted here once the collector had them")
            return
        if attempt == 0:
            item("the collector answered 503, as it was told to: the upload is repeated")
        time.sleep(1)
    raise Trouble(f"{len(waiting(store))} archives still wait after {UPLOAD_TRIES} uploads")


def said(run, name):
    item(f"{name:<7} {sum(run.kept):6,} records kept"
         + (", then killed with kill -9 in the middle of its work" if run.killed else ""))
    return run


def log_and_upload(folder, commands, source, lines, proxy):
    """Runs all hosts; afterwards, the collector has everything they kept."""
    store, collector = folder / "store", Collector(folder / "collected")
    url = f"http://127.0.0.1:{proxy.port}"
    try:
        collector.start("--refuse", "1", "--retry-after", "1")
        proxy.upstream = collector.port
        runs = [said(hosts.run_whole("c", commands["c"], store, source, folder / "kept-c"), "C"),
                said(hosts.run_killed("c", commands["c"], store, source, lines,
                                      folder / "kept-c9"), "C")]
        archive_and_upload(store, url)
        collector.stop()
        collector.start()
        item("the collector was restarted")
        proxy.upstream = collector.port
        for host, name in (("cpp", "C++"), ("python", "Python"), ("swift", "Swift")):
            runs.append(said(hosts.run_whole(host, commands[host], store, source,
                                             folder / f"kept-{host}"), name))
        archive_and_upload(store, url)
    finally:
        collector.stop()
    return runs, collector.directory


class Shop(http.server.BaseHTTPRequestHandler):
    """A service for examples/http and examples/transactions to talk to."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b'{"orders":[{"id":17,"state":"paid"}],"token":"s3cret"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_):
        pass


def leave_more(store):
    """Makes a store with a captured exchange and a transaction, to look at afterwards."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/orders"
    try:
        for program in ("http/main.py", "transactions/transactions.py"):
            with LOG.open("a", encoding="utf-8") as log:
                subprocess.run([sys.executable, str(ROOT / "examples" / program), str(store), url],
                               check=True, env=hosts.environment(), stdout=log, stderr=log)
    finally:
        server.shutdown()


def log_records(place):
    """Records of a directory or one archive that are not the engine's own."""
    with subprocess.Popen([CORDWOOD, "cat", "--json", str(place)],
                          stdout=subprocess.PIPE) as child:
        for line in child.stdout:
            record = json.loads(line)
            if record["kind"] == "log" and not record["logger"].startswith("Cordwood"):
                yield record
    if child.returncode != 0:
        raise Trouble(f"cordwood cat ended {child.returncode}")


def read_back(directory, pids):
    """pid → tid → messages."""
    found = {pid: {} for pid in pids}
    for record in log_records(directory):
        if record["pid"] not in found:
            raise Trouble(f"a record of nobody: {str(record)[:200]}")
        found[record["pid"]].setdefault(record["tid"], []).append(record["message"])
    return found


def compare(run, threads, lines):
    """(lost, duplicates, problems) of one process. Threads are told apart by what they wrote."""
    lost = duplicates = 0
    problems, left = [], dict(threads)
    for number in range(THREADS):
        mine = lines[number::THREADS]
        kept = run.kept[number]
        match = None
        for tid, messages in left.items():
            most = kept + 1 if run.killed else kept
            if kept <= len(messages) <= most and all(
                    messages[at:at + len(mine)] == mine[:len(messages) - at]
                    for at in range(0, len(messages), len(mine))):
                match = tid
                break
        if match is not None:
            del left[match]
        elif kept:
            problems.append(f"{run.host}: thread {number} ({kept} kept) was not read back as kept")
    extra = {tid: len(messages) for tid, messages in left.items()}
    if extra:
        problems.append(f"{run.host}: threads that match no program's: {extra}")
    read = sum(len(messages) for messages in threads.values())
    difference = read - sum(run.kept)
    if difference < 0:
        lost = -difference
    elif difference > (THREADS if run.killed else 0):
        duplicates = difference
    return lost, duplicates, problems


def raw_and_zstd3(archives):
    """Bytes of the archives' messages, a line each, and of `zstd -3` over those of each program, as
    if each had written a file. Dead lanes may share an archive."""
    texts = {}
    for archive in archives:
        for record in log_records(archive):
            texts.setdefault(record["pid"], []).append(record["message"] + "\n")
    texts = ["".join(lines).encode() for lines in texts.values()]
    packed = [subprocess.run(["zstd", "-3", "-q", "-c"], input=text, check=True,
                             stdout=subprocess.PIPE).stdout for text in texts]
    return sum(map(len, texts)), sum(map(len, packed))


def result(runs, read, lines, directory, proxy, warm):
    out = {"hosts": {}, "lost": 0, "duplicates": 0}
    problems = []
    for run in runs:
        lost, duplicates, found = compare(run, read[run.pid], lines)
        problems += found
        out["lost"] += lost
        out["duplicates"] += duplicates
        host = out["hosts"].setdefault(run.host, {"kept": 0, "read": 0})
        host["kept"] += sum(run.kept)
        host["read"] += sum(len(messages) for messages in read[run.pid].values())
        host["ns_per_record"] = warm[run.host]
    archives = waiting(Path(directory))
    out["uploads"] = len(archives)
    out["attempts"] = proxy.attempts
    out["archive_bytes"] = sum(path.stat().st_size for path in archives)
    out["raw_bytes"], out["zstd3_bytes"] = raw_and_zstd3(archives)
    text_bytes = sum(len(message.encode()) + 1 for threads in read.values()
                     for messages in threads.values() for message in messages)
    if out["raw_bytes"] != text_bytes:
        problems.append(f"{out['raw_bytes']} bytes archive by archive, {text_bytes} as a whole")
    if proxy.statuses.get(503, 0) != 1:
        problems.append(f"the collector refused {proxy.statuses.get(503, 0)} times, not once")
    if proxy.attempts <= len(archives):
        problems.append(f"{proxy.attempts} attempts for {len(archives)} archives")
    return out, problems


def table(out, seconds):
    heading("Compared: what the collector has with what each program was told is kept")
    item(f"{'':7} {'kept':>9} {'read':>9} {'ns a record':>12}   (one thread, warm)")
    names = {"c": "C", "cpp": "C++", "python": "Python", "swift": "Swift"}
    for host, seen in out["hosts"].items():
        item(f"{names[host]:7} {seen['kept']:9,} {seen['read']:9,} {seen['ns_per_record']:12.0f}")
    item(f"lost {out['lost']}, duplicates {out['duplicates']}; "
         f"{out['uploads']} archives arrived in {out['attempts']} attempts")
    item(f"archives {out['archive_bytes']:,} bytes; text alone {out['raw_bytes']:,}, "
         f"zstd -3 of it {out['zstd3_bytes']:,}: "
         f"{out['archive_bytes'] / max(out['zstd3_bytes'], 1):.2f} of that")
    heading(f"{seconds:.0f} s in all. What is left to look at:")
    tool, place = os.path.relpath(CORDWOOD), os.path.relpath(PLACE)
    for line in (f"tail -n 5 {place}/collected", f"grep configure {place}/collected",
                 f"http {place}/shop", f"transactions {place}/shop"):
        item(f"{tool} {line}")


def build():
    """host → command."""
    heading("Building the library, the tool and four programs: 2 to 4 minutes the first time")
    quietly([str(ROOT / "tools/build.sh")])
    with LOG.open("a", encoding="utf-8") as log:
        return hosts.build(PLACE, log)


def run(proxy):
    """The results, and what is wrong with them."""
    commands = build()
    source, path, lines = prepare_input(PLACE)
    heading(f"Logging {len(lines):,} lines of {source} from {THREADS} threads in each program")
    runs, directory = log_and_upload(PLACE, commands, path, len(lines), proxy)
    warm = hosts.measure(commands, PLACE, path, len(lines))
    leave_more(PLACE / "shop")
    read = read_back(directory, {run.pid for run in runs})
    return result(runs, read, lines, directory, proxy, warm)


def main():
    parser = argparse.ArgumentParser(prog="./dev demo")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    started = time.monotonic()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    try:
        with contextlib.closing(CountingProxy()) as proxy:
            out, problems = run(proxy)
    except (Trouble, subprocess.CalledProcessError) as trouble:
        tail = LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        print("", *tail, f"demo: {trouble}; all of it: {os.path.relpath(LOG)}", sep="\n",
              file=sys.stderr)
        return 1
    table(out, time.monotonic() - started)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(out) + "\n", encoding="utf-8")
    for problem in problems:
        print(f"demo: {problem}", file=sys.stderr)
    return 1 if problems or out["lost"] or out["duplicates"] else 0


if __name__ == "__main__":
    sys.exit(main())
