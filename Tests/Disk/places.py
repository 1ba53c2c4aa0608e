"""Where a store lies: file systems whose mappings are trusted and those that are not, the layers of
an overlay, and lanes of other machines on a network file system. RELIABILITY R14, R33."""

import json
import os
import shutil
import struct
import subprocess

from harness import OK, SECONDS_MAX, TOOL, Skipped, equal, exact, holds, until

MACHINE, HOST_BYTES, WRITTEN, HOST = 64, 288, 292, 296


def stats(store):
    done = subprocess.run([TOOL, "stats", "--json", store], capture_output=True, text=True,
                          check=True, timeout=SECONDS_MAX)
    return json.loads(done.stdout)


def told(store):
    """The engine's own records about the file system."""
    done = subprocess.run([TOOL, "cat", "--json", "--logger", "Cordwood.Engine", store],
                          capture_output=True, text=True, check=True, timeout=SECONDS_MAX)
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_mapped(place, store, wanted, what, words=None):
    """A host that logs there maps its lane, or does not. It reports which, and so do the header and
    the tool. Killed, it has lost nothing."""
    host = place.host(store, words).open(segment=1 << 20)
    equal(f"{what}: kept", host.write(3000, 100)["kept"], 3000)
    with open(f"/proc/{host.process.pid}/maps") as file:
        # Not the page that holds the owner's lock, which is mapped without access.
        maps = sum(line.rstrip().endswith(".lane") and " rw-s " in line for line in file)
    equal(f"{what}: mapped lane files", maps > 0, wanted)
    lane = next((store / "lanes").glob("*.lane"))
    word, = struct.unpack_from("<I", lane.read_bytes(), WRITTEN)
    equal(f"{what}: the header's `written`", word, 0 if wanted else 1)
    equal(f"{what}: lanes_written", stats(store)["lanes_written"], 0 if wanted else 1)
    records = told(store)
    equal(f"{what}: told", len(records), 0 if wanted else 1)
    if records:
        holds("pwrite" in records[0]["message"], f"told: {records[0]}")
    equal(f"{what}: probes left", [n for n in os.listdir(store / "lanes") if "probe" in n], [])
    host.kill()
    read = place.host(store).read()
    equal(f"{what}: read", (read["logs"], read["bad"], read["damaged"]), (3000, 0, 0))


def disk(place, kind):
    """A mounted file system of that kind."""
    if kind in ("tmpfs", "ramfs"):
        return place.mount("-t", kind, kind)
    if kind == "ext4":
        return place.ext4(48)
    if not shutil.which(f"mkfs.{kind}"):
        raise Skipped(f"no mkfs.{kind}")
    image = place.directory / f"image{len(place.mounts)}"
    with open(image, "wb") as file:
        file.truncate(400 << 20)
    subprocess.run([f"mkfs.{kind}", "-q", image], check=True, capture_output=True)
    return place.mount("-o", "loop", image)


def file_systems(place):
    """Each by itself and below an overlay: those that overwrite preallocated blocks in place are
    mapped, no others."""
    seen = []
    for kind, wanted in (("ext4", True), ("tmpfs", True), ("xfs", True), ("ramfs", False),
                         ("btrfs", False)):
        try:
            mounted = disk(place, kind)
        except Skipped:
            if kind in ("ext4", "tmpfs", "ramfs"):
                raise
            continue  # no tools, or not in this kernel
        is_mapped(place, mounted / "store", wanted, kind)
        for name in ("lower", "upper", "work"):
            (mounted / name).mkdir()
        overlay = place.mount("-t", "overlay", "overlay", "-o",
                              f"lowerdir={mounted}/lower,upperdir={mounted}/upper,"
                              f"workdir={mounted}/work")
        is_mapped(place, overlay / "store", wanted, f"overlay over {kind}")
        seen.append(kind)
    place.note(", ".join(seen))


def unknown_file_system(place):
    """An unknown file system is written to; so is an overlay whose probe fails."""
    words = place.words()
    words.pretend(0x1234)
    is_mapped(place, place.directory / "unknown", False, "an unknown type", words)
    words.pretend(0x794C7630)
    words.fail(28, "allocate")
    host = place.host(place.directory / "full", words)
    host.open(wanted=OK)
    words.fail(0, "allocate")
    equal("kept", host.write(1000, 100)["kept"], 1000)
    lane = next((place.directory / "full/lanes").glob("*.lane"))
    equal("written", struct.unpack_from("<I", lane.read_bytes(), WRITTEN)[0], 1)
    exact(host)
    host.end()


def mark(lane, machine=None, name=None):
    """Writes a machine's id and name into a lane's header."""
    with open(lane, "r+b") as file:
        if machine is not None:
            file.seek(MACHINE)
            file.write(machine)
        if name is not None:
            file.seek(HOST_BYTES)
            file.write(struct.pack("<H", len(name)))
            file.seek(HOST)
            file.write(name.ljust(64, b"\0"))


def dead_lanes(place, store, words, count):
    hosts = [place.host(store, words).open() for _ in range(count)]
    for host in hosts:
        host.write(100, 100)
    for host in hosts:
        host.kill()
    lanes = sorted((store / "lanes").glob("*.lane"))
    equal("lanes of the dead", len(lanes), count)
    return lanes


def another_machines_name(place):
    """Names tell machines apart whose ids are equal or missing. On a network file system such a
    lane is left alone, `stats` says why, and the user's word gives it away. A lane from before
    there were names counts as this machine's. R33."""
    words = place.words()
    store = place.directory / "store"
    lanes = dead_lanes(place, store, words, 4)
    own = os.uname().nodename.encode()
    header = lanes[0].read_bytes()
    length, = struct.unpack_from("<H", header, HOST_BYTES)
    equal("the name in the header", header[HOST:HOST + length], own)
    mark(lanes[0], bytes(16), b"container-1")   # no id, another name
    mark(lanes[1], None, b"copied-image")       # the same id, another name
    mark(lanes[2], bytes(16), b"")              # an old lane without an id
    mark(lanes[3], bytes(16), own)              # no id, this machine's name
    words.pretend(0x6969)
    host = place.host(store, words).open()
    until(lambda: not lanes[2].exists() and not lanes[3].exists(), "adoption of this machine's")
    host.close()
    host.end()
    holds(lanes[0].exists() and lanes[1].exists(), "another machine's lane was adopted")

    def tool(*arguments):
        environment = dict(os.environ, LD_PRELOAD=str(place.programs[1]),
                           DISK_WORDS=str(words.path), DISK_STORE=str(store))
        done = subprocess.run([TOOL, *arguments, store], capture_output=True, text=True,
                              check=True, env=environment, timeout=SECONDS_MAX)
        return done.stdout
    said = tool("stats")
    holds("container-1, copied-image" in said and "--foreign" in said, f"stats: {said}")
    facts = json.loads(tool("stats", "--json"))
    equal("stats", (facts["lanes_foreign"], facts["foreign_hosts"]),
          (2, ["container-1", "copied-image"]))
    said = tool("archive")
    holds("2 lanes of other machines" in said and "--foreign" in said, f"archive: {said}")
    holds(lanes[0].exists() and lanes[1].exists(), "adopted without the user's word")
    tool("archive", "--foreign")
    holds(not lanes[0].exists() and not lanes[1].exists(), "not adopted on the user's word")
    reader = place.host(store)
    read = reader.read()
    equal("records, damaged", (read["logs"], read["damaged"]), (400, 0))
    reader.end()


def foreign_and_alive(place):
    """The user's word gives away no lane whose lock is held."""
    words = place.words()
    store = place.directory / "store"
    host = place.host(store, words).open()
    host.write(100, 100)
    lane = next((store / "lanes").glob("*.lane"))
    mark(lane, bytes(16), b"container-1")
    words.pretend(0x6969)
    environment = dict(os.environ, LD_PRELOAD=str(place.programs[1]),
                       DISK_WORDS=str(words.path), DISK_STORE=str(store))
    subprocess.run([TOOL, "archive", "--foreign", store], capture_output=True, check=True,
                   env=environment, timeout=SECONDS_MAX)
    holds(lane.exists(), "a lane was taken whose lock is held")
    host.write(100, 100)
    words.pretend(0)
    exact(host)
    host.end()


CASES = {f.__name__: f for f in (
    file_systems, unknown_file_system, another_machines_name, foreign_and_alive)}
