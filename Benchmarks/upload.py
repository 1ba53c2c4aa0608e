"""Uploads archives over loopback: to an nginx that discards them, with the processor time, compared
with curl on the same files; and to our own collector, which verifies every checksum and syncs every
archive before it answers. Figures inform."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from house import CORDWOOD, ROOT

sys.path.insert(0, str(ROOT / "Tests/Servers"))
from clouds import Collector  # noqa: E402
from frame import Failed, Place, Skipped  # noqa: E402
from store import Host, Store  # noqa: E402
from web import Nginx  # noqa: E402

ROUNDS = 3


def cpu_seconds(pid):
    """Processor time of a process and its living children."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if path.parent.name == str(pid) or words[1] == str(pid):
            total += int(words[11]) + int(words[12])
    return total / os.sysconf("SC_CLK_TCK")


def timed(command):
    """(seconds, CPU seconds, exit code) of one process."""
    started = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise Failed(f"{command[0]} ended {process.returncode}: {complaint.decode()[-200:]}")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime


def upload(directory, url, kind, form):
    return [CORDWOOD, "upload", directory, "--to", url, "--kind", kind, "--format", form,
            "--encoding", "none", "--name", "bench", "--json"]


def archives(place, size):
    """A store with `size` bytes of archives, 16 MiB each, of uncompressed random records."""
    store = Store(place, "made")
    with Host(place, store) as host:
        host.open(quota_bytes=0, codec="none")
        host("fill", bytes=size)
        host("roll")
        host("wait", timeout=600)
        host("close")
    return store


def one(house, name, made, command, cpu_of, rounds=ROUNDS):
    """The best of several rounds: other load can only slow them down."""
    size = sum(path.stat().st_size for path in made.archives())
    best = None
    for number in range(rounds):
        copy = made.directory.with_name(f"copy-{number}")
        shutil.copytree(made.directory, copy)
        before = cpu_seconds(cpu_of)
        seconds, cpu = timed(command(copy))
        row = {"what": name, "bytes": size, "mb_s": round(size / seconds / 1e6, 1),
               "cpu_s_gb": round(cpu / size * 1e9, 3),
               "server_cpu_s_gb": round((cpu_seconds(cpu_of) - before) / size * 1e9, 3)}
        left = list((copy / "archives").glob("*.cwa"))
        shutil.rmtree(copy)
        if name != "curl" and left:
            raise Failed(f"{name}: {len(left)} archives were not sent")
        best = row if best is None or row["mb_s"] > best["mb_s"] else best
    house.more.setdefault("upload", []).append(best)


def curl(url):
    def command(copy):
        files = sorted((copy / "archives").glob("*.cwa"))
        words = ["curl", "-sS", "-f", "-H", "Expect:"]
        for path in files:
            words += ["-T", path, url]
        return words
    return command


def measure(house):
    place = Place(house.where())
    try:
        made = archives(place, house.few(128 << 20, 1 << 30))
        nginx = Nginx(place, workers=1).start()
        url = nginx.url + "/discard"
        one(house, "archives to nginx", made,
            lambda copy: upload(copy, url, "http", "archive"), nginx.process.pid)
        if shutil.which("curl"):
            one(house, "curl", made, curl(url), nginx.process.pid)
        collector = Collector(place).start()
        # In a second round, the collector would have everything already.
        one(house, "archives to our collector", made,
            lambda copy: upload(copy, collector.url, "collector", "archive"),
            collector.process.pid, rounds=1)
    except Skipped as reason:
        house.note(f"upload: {reason}")
    finally:
        place.clean()
