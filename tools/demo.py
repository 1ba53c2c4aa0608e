#!/usr/bin/env python3
"""`./dev demo`: the main job, end to end. Four programs in four languages log real lines into one
store, one of them is killed; all is archived and uploaded to a collector that refuses once and is
restarted once; what the collector holds is compared, thread by thread, with what each program had
been told is kept. Ends 0 only where nothing is lost, doubled, torn or out of order."""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import demo_hosts as hosts  # noqa: E402
from counting_proxy import CountingProxy  # noqa: E402
from demo_hosts import ROOT, THREADS, Trouble  # noqa: E402

CORDWOOD = str(ROOT / "build/bin/cordwood")
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


class Collector:
    """The collector process; the port stays over a restart."""

    def __init__(self, directory):
        self.directory, self.port, self.child = directory, 0, None

    def start(self, *more):
        self.child = subprocess.Popen(
            [CORDWOOD, "collect", "--listen", f"127.0.0.1:{self.port}", "--directory",
             str(self.directory), *more], stdout=subprocess.PIPE, text=True)
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
    """Until nothing waits. A refusal is part of the demo: the uploader keeps to Retry-After, and so
    the second between tries is the server's."""
    subprocess.run([CORDWOOD, "archive", str(store)], check=True, stdout=sys.stderr)
    for _ in range(UPLOAD_TRIES):
        done = subprocess.run([CORDWOOD, "upload", str(store), "--to", url, "--kind", "collector"],
                              check=False, stdout=sys.stderr)
        if done.returncode == 0 and not waiting(store):
            return
        time.sleep(1)
    raise Trouble(f"{len(waiting(store))} archives still wait after {UPLOAD_TRIES} uploads")


def log_and_upload(folder, commands, source, lines, proxy):
    """The runs of all hosts; everything they kept is with the collector afterwards."""
    store, collector = folder / "store", Collector(folder / "collected")
    url = f"http://127.0.0.1:{proxy.port}"
    try:
        collector.start("--refuse", "1", "--retry-after", "1")
        proxy.upstream = collector.port
        runs = [hosts.run_whole("c", commands["c"], store, source, folder / "kept-c"),
                hosts.run_killed("c", commands["c"], store, source, lines, folder / "kept-c9")]
        print(f"killed the C program after {sum(runs[-1].kept)} records", file=sys.stderr)
        archive_and_upload(store, url)
        collector.stop()
        collector.start()
        proxy.upstream = collector.port
        for host in ("cpp", "python", "swift"):
            runs.append(hosts.run_whole(host, commands[host], store, source,
                                        folder / f"kept-{host}"))
        archive_and_upload(store, url)
    finally:
        collector.stop()
    return runs, collector.directory


def log_records(place):
    """Those of a directory or one archive that are not the engine's own."""
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
    """(lost, duplicates, problems) of one process. What they wrote tells its threads apart."""
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
    """Bytes of the archives' messages, a line each, and of `zstd -3` over each archive's own: it
    sees the same pieces as we do."""
    raw = packed = 0
    for archive in archives:
        text = "".join(record["message"] + "\n" for record in log_records(archive)).encode()
        raw += len(text)
        packed += len(subprocess.run(["zstd", "-3", "-q", "-c"], input=text, check=True,
                                     stdout=subprocess.PIPE).stdout) if text else 0
    return raw, packed


def result(runs, read, lines, directory, proxy):
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
        if run.ns is not None:
            host["ns_per_record"] = run.ns
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
    print(f"{'host':8} {'kept':>10} {'read':>10} {'ns/record':>10}")
    for name, host in out["hosts"].items():
        print(f"{name:8} {host['kept']:10,} {host['read']:10,} "
              f"{host.get('ns_per_record', 0):10.1f}")
    print(f"lost {out['lost']}, duplicates {out['duplicates']}; "
          f"uploads {out['uploads']}, attempts {out['attempts']}")
    print(f"bytes: raw {out['raw_bytes']:,}, archived {out['archive_bytes']:,}, "
          f"zstd -3 of the same text {out['zstd3_bytes']:,}")
    print(f"{seconds:.0f} s, building included")


def main():
    parser = argparse.ArgumentParser(prog="./dev demo")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--built", action="store_true", help="build/ is up to date")
    arguments = parser.parse_args()
    started = time.monotonic()
    proxy = CountingProxy()
    try:
        if not arguments.built:
            subprocess.run([str(ROOT / "tools/build.sh")], check=True, stdout=sys.stderr)
        with tempfile.TemporaryDirectory() as top:
            folder = Path(top)
            commands = hosts.build(folder)
            source, path, lines = prepare_input(folder)
            print(f"input: {len(lines)} lines of {source}", file=sys.stderr)
            runs, directory = log_and_upload(folder, commands, path, len(lines), proxy)
            read = read_back(directory, {run.pid for run in runs})
            out, problems = result(runs, read, lines, directory, proxy)
    except (Trouble, subprocess.CalledProcessError) as trouble:
        print(f"demo: {trouble}", file=sys.stderr)
        return 1
    finally:
        proxy.close()
    table(out, time.monotonic() - started)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(out) + "\n", encoding="utf-8")
    for problem in problems:
        print(f"demo: {problem}", file=sys.stderr)
    return 1 if problems or out["lost"] or out["duplicates"] else 0


if __name__ == "__main__":
    sys.exit(main())
