"""S3 with three servers that check signatures: rclone, moto and SeaweedFS. What is read back equals
what was logged, for keys of all kinds. An object is not stored twice. Large archives are sent in
parts, and none of these remain when the sender is killed."""

import base64
import gzip
import signal
import subprocess

from clouds import Moto, Rclone, SeaweedFS, boto_says
from frame import (CORDWOOD, HERE, Failed, Place, equal, find, full, holds, plain_environment,
                   until)
from store import FAILED, Store, archive_lines, decoded, nasty_lines, same_lines
from web import Mitmproxy

CORNERS = "a+b c:d=e(f)'g'*~ü,@$&;!/{id}.{ext}"
PART = 5 << 20


class Passing(Mitmproxy):
    """Leaves the signed Host header unchanged."""

    def command(self):
        return [*super().command(), "--set", "keep_host_header=true"]


def send(store, server, form=None, parameters=(), secret=None, url=None, name="t", more=(),
         environment=None, encoding=None):
    """`cordwood upload` with the server's keys."""
    words = ["--user", server.access_key]
    for parameter in parameters:
        words += ["--parameter", parameter]
    given = {"CORDWOOD_PASSWORD": secret or server.secret_key, **(environment or {})}
    return store.upload(url or f"{server.url}/{server.bucket}", "s3", form, encoding=encoding,
                        name=name, more=[*words, *more], environment=given)


def large(store, megabytes=14):
    """One archive of that size, which no codec makes smaller."""
    with open("/dev/urandom", "rb") as source:
        lines = [base64.b64encode(source.read(48 << 10)) for _ in range(megabytes * 22)]
    store.log(lines).archive()
    sizes = [path.stat().st_size for path in store.archives()]
    holds(max(sizes) > 2 * PART, f"the archives are small: {sizes}")
    return {path.read_bytes() for path in store.archives()}


def read_back(store, server, wanted, lines, place):
    """The bucket has these archives under keys that contain their id, and every record."""
    store.is_empty()
    objects = server.objects()
    equal("objects", set(objects.values()), wanted)
    found = []
    for data in objects.values():
        found += archive_lines(store, data, place.directory)
    same_lines("records", found, lines)
    return objects


def archives(start):
    def case(place):
        server = start(place)
        store = Store(place)
        store.log(nasty_lines(200, place.seed)).archive()
        lines, wanted = store.lines(), {path.read_bytes() for path in store.archives()}
        ids = store.hashes()
        equal("exit", send(store, server).code, 0)
        objects = read_back(store, server, wanted, lines, place)
        for key in objects:
            date, service, name = key.split("/")
            holds(name.removesuffix(".cwa") in ids and len(date) == 10, f"key {key}")
            equal("the service is the process", service, "cordwood")
    return case


def corners(start):
    """Everything in a key that signers often get wrong."""
    def case(place):
        server = start(place)
        store = Store(place)
        store.log(nasty_lines(50, place.seed)).archive()
        lines, wanted = store.lines(), {path.read_bytes() for path in store.archives()}
        equal("exit", send(store, server, parameters=[f"key={CORNERS}"]).code, 0)
        objects = read_back(store, server, wanted, lines, place)
        prefix = CORNERS.partition("{")[0]
        holds(all(key.startswith(prefix) for key in objects), f"keys {list(objects)}")
    return case


def lines_of(start):
    """NDJSON in each encoding. Readers go by the extension."""
    def case(place):
        server = start(place)
        for encoding, end in (("zstd", ".ndjson.zst"), ("gzip", ".ndjson.gz"), ("none", ".ndjson")):
            store = Store(place, encoding)
            store.log(nasty_lines(100, place.seed)).archive()
            lines = store.lines()
            done = send(store, server, "ndjson", [f"key={encoding}/{{id}}.{{ext}}"],
                        encoding=encoding)
            holds(done.code == 0, f"{done}")
            store.is_empty()
            mine = {key: data for key, data in server.objects().items()
                    if key.startswith(encoding)}
            holds(mine and all(key.endswith(end) for key in mine), f"keys {list(mine)}")
            got = b"".join(decoded(data, encoding) for data in mine.values())
            same_lines("records", store.ours(got), lines)
    return case


def wrong_secret(start):
    """403: the target rests, the archive stays, the secret is in no text. With the right secret it
    is sent."""
    def case(place):
        server = start(place)
        store = Store(place)
        store.log(nasty_lines(20, place.seed)).archive()
        lines, wanted = store.lines(), {path.read_bytes() for path in store.archives()}
        done = send(store, server, secret="wr0ng/secret+of=tests")
        equal("exit", done.code, FAILED)
        holds(all(state.startswith("paused-1-403") for state in store.states()),
              f"states {store.states()}")
        equal("objects", server.objects(), {})
        said = done.complaint + str(done.result) + store.tool("cat", store.directory).decode(
            errors="replace")
        holds("wr0ng" not in said and "Signature=" not in said, "a secret is in a text")
        holds("SignatureDoesNotMatch" in said, f"the cause is not told: {done.complaint}")
        equal("exit", send(store, server).code, 0)
        read_back(store, server, wanted, lines, place)
    return case


def in_parts(start):
    def case(place):
        server = start(place)
        store = Store(place)
        wanted = large(store)
        lines = store.lines()
        equal("exit", send(store, server, parameters=[f"part_bytes={PART}"]).code, 0)
        read_back(store, server, wanted, lines, place)
    return case


def no_bucket(start):
    """Not the archive's fault: the target rests, and the cause explains it."""
    def case(place):
        server = start(place)
        store = Store(place)
        store.log(nasty_lines(20, place.seed)).archive()
        done = send(store, server, url=server.url + "/missing")
        equal("exit", done.code, FAILED)
        holds(all("-refused" in state for state in store.states()),
              f"states {store.states()}; {done.complaint}")
    return case


def has_it_already(start):
    """If-None-Match: the second answer is 412, counts as sent, and nothing is overwritten."""
    def case(place):
        server = start(place)
        store = Store(place)
        store.log(nasty_lines(20, place.seed)).archive()
        archive = store.archives()[0]
        data, name = archive.read_bytes(), archive.name
        equal("exit", send(store, server).code, 0)
        listing = """
print(json.dumps([str(entry["LastModified"])
                  for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]))"""
        before = boto_says(server, listing)
        store.is_empty()
        # As after a lost answer: the same archive again.
        (store.directory / "archives" / name).write_bytes(data)
        done = send(store, server)
        equal("exit", done.code, 0)
        equal("HTTP status", done["last_http_status"], 412)
        store.is_empty()
        equal("objects", boto_says(server, listing), before)
        # A host that requests it overwrites. The bytes are the same.
        (store.directory / "archives" / name).write_bytes(data)
        done = send(store, server, parameters=["if_none_match=0"])
        equal("HTTP status", done["last_http_status"], 200)
        equal("objects", list(server.objects().values()), [data])
    return case


@full
def moto_lost_answers(place):
    """The server has it, the client is cut off: stored once."""
    server = Moto(place).start()
    proxy = Passing(place, upstream=server.port, script=["lose", "kill", "lose"]).start()
    store = Store(place)
    store.log(nasty_lines(20, place.seed)).archive()
    lines, wanted = store.lines(), {path.read_bytes() for path in store.archives()}
    for _ in range(6):
        done = send(store, server, url=proxy.url + "/logs")
        if done.code == 0:
            break
    holds(done.code == 0, f"{done}")
    equal("HTTP status", done["last_http_status"], 412)
    read_back(store, server, wanted, lines, place)


@full
def moto_killed_in_parts(place):
    """kill -9 while parts are sent: the next attempt ends that upload and sends all of it."""
    server = Moto(place).start()
    store = Store(place)
    wanted = large(store, 30)
    lines = store.lines()
    words = [CORDWOOD, "upload", store.directory, "--to", server.url + "/logs", "--kind", "s3",
             "--name", "t", "--user", server.access_key, "--parameter", f"part_bytes={PART}"]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=plain_environment(
                                   CORDWOOD_PASSWORD=server.secret_key))
    until(lambda: "partNumber=2" in server.said() or process.poll() is not None, "the second part")
    process.send_signal(signal.SIGKILL)
    process.wait()
    list_uploads = """
print(json.dumps([entry["UploadId"]
                  for entry in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]))"""
    left = boto_says(server, list_uploads)
    holds(left, "it was killed too late: nothing is unfinished")
    equal("exit", send(store, server, parameters=[f"part_bytes={PART}"]).code, 0)
    equal("unfinished uploads", boto_says(server, list_uploads), [])
    read_back(store, server, wanted, lines, place)
    place.note(f"{len(left)} left by the kill")


@full
def moto_reads_as_a_fleet(place):
    """NDJSON by date and hour, as read by Athena, ClickHouse and DuckDB: the content type is the
    file's, and nothing decompresses it on the way."""
    server = Moto(place).start()
    store = Store(place)
    store.log(nasty_lines(50, place.seed)).archive()
    lines = store.lines()
    done = send(store, server, "ndjson", ["key=dt={date}/hour={hour}/{host}-{id}.{ext}"],
                encoding="gzip")
    equal("exit", done.code, 0)
    heads = boto_says(server, """
found = []
for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]:
    head = s3.head_object(Bucket=bucket, Key=entry["Key"])
    found.append([entry["Key"], head["ContentType"], head.get("ContentEncoding")])
print(json.dumps(found))""")
    for key, kind, encoding in heads:
        equal("type and encoding", (kind, encoding or ""), ("application/gzip", ""))
        day, hour, name = key.split("/")
        holds(day.startswith("dt=20") and hour.startswith("hour=") and name.endswith(".ndjson.gz"),
              f"key {key}")
    got = b"".join(gzip.decompress(data) for data in server.objects().values())
    same_lines("records", store.ours(got), lines)


@full
def rclone_wrong_clock(place):
    """Our clock is off by two hours: the server's own time is signed."""
    server = Rclone(place).start()
    library = place.directory / "skew.so"
    subprocess.run([find("gcc"), "-shared", "-fPIC", "-o", library, HERE / "skew.c", "-ldl"],
                   check=True)
    for seconds in ("7200", "-7200"):
        store = Store(place, f"store{seconds}")
        store.log(nasty_lines(20, place.seed)).archive()
        wanted = {path.read_bytes() for path in store.archives()}
        done = send(store, server, parameters=[f"key={seconds}/{{id}}"],
                    environment={"LD_PRELOAD": str(library), "SKEW_SECONDS": seconds})
        holds(done.code == 0, f"{done}")
        store.is_empty()
        equal("objects", {data for key, data in server.objects().items()
                          if key.startswith(seconds + "/")}, wanted)


@full
def seaweedfs(place):
    """One server for all, because its start takes long; a bucket for each. Without `no_bucket`:
    SeaweedFS creates missing buckets."""
    server = SeaweedFS(place).start()
    for make in (archives, corners, lines_of, wrong_secret, in_parts, has_it_already):
        server.bucket = make.__name__.replace("_", "-")
        server.make_bucket(server.bucket)
        inner = Place(place.directory / make.__name__, place.seed)
        try:
            make(lambda _: server)(inner)
        except Failed as reason:
            raise Failed(f"{make.__name__}: {reason}") from reason
        finally:
            inner.clean()


CASES = {"seaweedfs": seaweedfs}
for kind in (Rclone, Moto):
    for make in (archives, corners, lines_of, wrong_secret, in_parts, no_bucket):
        case = make(lambda place, kind=kind: kind(place).start())
        is_quick = kind is Rclone and make is not in_parts
        CASES[f"{kind.name}_{make.__name__}"] = case if is_quick else full(case)
CASES["moto_has_it_already"] = full(has_it_already(lambda place: Moto(place).start()))
for single in (moto_lost_answers, moto_killed_in_parts, moto_reads_as_a_fleet, rclone_wrong_clock):
    CASES[single.__name__] = single
