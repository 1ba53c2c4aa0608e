#!/usr/bin/env python3
"""Encrypted archives from outside, beside Debian's age tool: age opens what ours writes, byte for
byte, and the reverse; every verb with the key, another key and no key; uploads; killed writers.

    age.py [--size S] [--seed N] [-k PATTERN …] [CASE …]"""

import hashlib
import http.server
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
CORDWOOD = str(ROOT / "build/bin/cordwood")
os.environ.setdefault("CORDWOOD_LIBRARY", str(ROOT / "build/lib/libcordwood.so"))
sys.path[:0] = [str(ROOT / "bindings/python/src"), str(ROOT / "Tests/TestSupport")]

import cases  # noqa: E402
from cases import Failed, holds, sized  # noqa: E402
from settings import forget_settings  # noqa: E402

forget_settings("CORDWOOD_LIBRARY")
import cordwood  # noqa: E402

SECRET = b"AGE-SECRET-KEY-1"


def same(got, wanted, what):
    if got != wanted:
        raise Failed(f"{what}: {str(got)[:500]}, not {str(wanted)[:500]}")


class Done:
    def __init__(self, code, out, error):
        self.code, self.out, self.error = code, out, error.decode(errors="replace")


def run(*arguments, code=0, data=None, env=None):
    done = subprocess.run([CORDWOOD, *map(str, arguments)], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, env=env)
    holds(SECRET not in done.stderr, "a secret key on stderr")
    if code is not None and done.returncode != code:
        raise Failed(f"cordwood {' '.join(map(str, arguments))} ended {done.returncode}: "
                     f"{done.stderr.decode(errors='replace')[:400]}")
    return Done(done.returncode, done.stdout, done.stderr)


def age(*arguments, data=None):
    return subprocess.run(["age", *map(str, arguments)], input=data, stdout=subprocess.PIPE,
                          check=True).stdout


class Folder:
    """A directory with a key, and stores in it."""

    def __init__(self, path):
        self.path = Path(path)
        self.key = self.path / "key.txt"
        run("keygen", "-o", self.key)
        self.recipient = subprocess.run(["age-keygen", "-y", self.key], stdout=subprocess.PIPE,
                                        check=True).stdout.decode().strip()

    def store(self, name, lines=2000, seed=1, to=None):
        """A store whose process has ended and left something to archive; and its lines. The process
        itself may have archived segments that were full."""
        chance = random.Random(seed)
        text = b"".join(b"line %d %s\n" % (n, chance.randbytes(20).hex().encode())
                        for n in range(lines))
        run("log", "--store", self.path / name, "--logger", "app",
            *(["--encrypt-to", to] if to else []), data=text)
        return self.path / name, text

    def archived(self, name, lines=2000, to=None):
        store, text = self.store(name, lines, to=to or self.recipient)
        run("archive", store, "--encrypt-to", to or self.recipient)
        return store, text

    def other_key(self):
        path = self.path / "other.txt"
        path.unlink(missing_ok=True)
        subprocess.run(["age-keygen", "-o", path], stderr=subprocess.DEVNULL, check=True)
        return path


def archives(store):
    return sorted((Path(store) / "archives").glob("*.cwa"))


def raw(stores, *keys):
    stores = stores if isinstance(stores, list) else [stores]
    return run("export", "--format", "raw", *stores, *keys).out


def is_encrypted(path):
    return path.read_bytes().startswith(b"age-encryption.org/v1\n")


# ── Keys ──

def case_keygen(folder):
    same(folder.key.stat().st_mode & 0o777, 0o600, "mode of an identity file")
    before = folder.key.read_bytes()
    done = run("keygen", "-o", folder.key, code=2)
    holds("exists" in done.error, done.error)
    same(folder.key.read_bytes(), before, "an identity file that was there")
    lines = before.decode().splitlines()
    holds(re.fullmatch(r"# created: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", lines[0]), lines[0])
    same(lines[1], f"# public key: {folder.recipient}", "public key")
    holds(re.fullmatch(r"AGE-SECRET-KEY-1[0-9A-Z]{58}", lines[2]) and len(lines) == 3, "3 lines")
    done = run("keygen")
    made = folder.path / "made.txt"
    made.write_bytes(done.out)
    told = subprocess.run(["age-keygen", "-y", made], stdout=subprocess.PIPE, check=True).stdout
    same(done.error, f"Public key: {told.decode()}", "what is told beside a key in a pipe")
    run("keygen", "-o", folder.path / "no/such/folder", code=4)


def case_bad_keys(folder):
    store, _ = folder.store("s", 10)
    other = folder.key.read_text().splitlines()[2]
    wrong = folder.recipient[:-1] + ("p" if folder.recipient.endswith("q") else "q")
    for recipient, what in ((wrong, "checksum"), ("", "no recipient"),
                            ("bob@example.org", "begins with age1"), (other, "secret key"),
                            (f"{folder.recipient},nobody", "begins with age1")):
        done = run("archive", store, "--encrypt-to", recipient, code=2)
        holds(what in done.error, done.error)
        try:
            cordwood.open(store, encrypt_to=recipient)
            raise Failed("an engine with a bad recipient")
        except cordwood.ArgumentError as error:
            same(error.status_name, "CW_E_ARGUMENT", "status")
            holds(what in str(error) and "SECRET" not in str(error), str(error))
    same(archives(store), [], "archives")
    holds("No such file" in run("cat", store, "--identity", "/nowhere", code=4).error, "no file")
    bad = folder.path / "bad.txt"
    bad.write_text(f"# x\n{other[:-1]}!\n")
    holds("line 2" in run("cat", store, "--identity", bad, code=4).error, "place in the file")


# ── Beside age ──

def case_age_opens_ours(folder):
    for codec in ("zstd", "lz4", "none"):
        for lines in (1, 300, 30000):
            name = f"{codec}-{lines}"
            store, text = folder.store(name, lines)
            twin = folder.path / f"{name}-plain"
            shutil.copytree(store, twin)
            run("archive", store, "--codec", codec, "--encrypt-to", folder.recipient)
            run("archive", twin, "--codec", codec)
            same([path.name for path in archives(store)], [path.name for path in archives(twin)],
                 "names")
            holds(is_encrypted(archives(store)[-1]), "an age file")
            opened = folder.path / f"{name}-opened"
            opened.mkdir()
            for ours, plain in zip(archives(store), archives(twin)):
                content = ours.read_bytes()
                if is_encrypted(ours):
                    content = age("-d", "-i", folder.key, ours)
                (opened / ours.name).write_bytes(content)
                ours, wanted = bytearray(content), plain.read_bytes()
                # The creation time and the checksum that covers it.
                for first, end in ((56, 64), (68, 72)):
                    ours[first:end] = wanted[first:end]
                same(hashlib.sha256(ours).digest(), hashlib.sha256(wanted).digest(), plain.name)
            run("verify", *sorted(opened.iterdir()))
            same(raw(sorted(opened.iterdir())), text, "lines of what age opened")
            same(raw(store, "--identity", folder.key), text, "lines of ours")


def case_we_open_ages(folder):
    store, text = folder.store("s", 20000)
    run("archive", store)
    plain = archives(store)
    recipients = folder.path / "recipients.txt"
    recipients.write_text(f"{folder.recipient}\n")
    strangers = []
    for number in range(3):
        path = folder.path / f"stranger-{number}.txt"
        run("keygen", "-o", path)
        strangers.append(path)
    options = ["-R", recipients]
    for path in strangers:
        options += ["-i", path]
    sealed = [folder.path / f"by-age-{number}.cwa" for number, _ in enumerate(plain)]
    for path, content in zip(sealed, plain):
        path.write_bytes(age("-e", *options, content))
    same(raw(sealed, "--identity", folder.key), text, "by -R and -i")
    same(raw(sealed, "--identity", strangers[1]), text, "by another of its identities")
    run("verify", *sealed, "--identity", folder.key)
    done = run("cat", *sealed, code=4)
    holds("encrypted for 4 recipients" in done.error and done.out == b"", done.error)
    # Keys from age-keygen, and several files.
    other = folder.other_key()
    recipient = subprocess.run(["age-keygen", "-y", other], stdout=subprocess.PIPE,
                               check=True).stdout.decode().strip()
    for path, content in zip(sealed, plain):
        path.write_bytes(age("-r", recipient, content))
    same(raw(sealed, "--identity", folder.key, "--identity", other), text, "by age-keygen's key")


def case_age_finds_the_same_damage(folder):
    store, _ = folder.archived("s", 50)
    path = archives(store)[-1]
    whole = path.read_bytes()
    chance = random.Random(3)
    for _ in range(150):
        bad = bytearray(whole)
        place = chance.randrange(len(bad))
        bad[place] ^= 1 << chance.randrange(8)
        path.write_bytes(bad)
        theirs = subprocess.run(["age", "-d", "-i", folder.key, path], check=False,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        ours = run("verify", store, "--identity", folder.key, code=None)
        holds(theirs != 0 and ours.code in (3, 4), f"byte {place}: age {theirs}, ours {ours.code}")


# ── Verbs ──

def case_verbs(folder):
    store, text = folder.archived("s", 500)
    with cordwood.open(store) as engine:
        engine.logger("plain").info("not archived")
    key = ["--identity", folder.key]
    env = dict(os.environ, CORDWOOD_IDENTITY=str(folder.key))
    for keys, environment in ((key, None), ([], env)):
        def go(*arguments, code=0, environment=environment):
            return run(*arguments, code=code, env=environment)
        holds(go("cat", store, *keys).out.count(b"line ") == 500, "cat")
        same(go("grep", "line 7 ", store, *keys).out.count(b"\n"), 1, "grep")
        holds(b"not archived" in go("tail", "-n", "2", store, *keys).out, "tail")
        stats = json.loads(go("stats", "--json", store, *keys).out)
        holds(stats["records"] > 500 and stats["encrypted"] == [], stats)
        verified = json.loads(go("verify", "--json", store, *keys).out)
        holds(verified["whole"] and verified["records"] > 500, verified)
        same(go("export", "--format", "raw", store, "--logger", "app", *keys).out, text, "export")
    # Everything else is printed, with the archive that stays closed and its number of recipients.
    for keys, why in (([], "no identity was given"),
                      (["--identity", folder.other_key()], "none is an identity")):
        for verb in (["cat"], ["tail", "-n", "900"], ["grep", "."], ["export", "--format", "raw"]):
            done = run(*verb, store, *keys, code=4)
            holds(b"not archived" in done.out and b"line 7" not in done.out, done.out)
            for path in archives(store):
                holds(f"{path.name}: encrypted for 1 recipient" in done.error, done.error)
            holds(why in done.error and "damage" not in done.error, done.error)
        count = len(archives(store))
        stats = json.loads(run("stats", "--json", store, *keys, code=4).out)
        holds(len(stats["encrypted"]) == count and stats["problems"] == [], stats)
        verified = json.loads(run("verify", "--json", store, *keys, code=4).out)
        holds(verified["whole"] and len(verified["encrypted"]) == count, verified)
        words = run("verify", store, *keys, code=4).out.decode()
        holds(f"{count} encrypted and not looked into" in words, words)
    # Nothing in that time range is encrypted: no key is needed.
    same(run("cat", store, "--until", "2001-01-01").out, b"", "an archive beside the question")
    # A key that is never in a file.
    ends = os.pipe()
    os.write(ends[1], folder.key.read_bytes())
    os.close(ends[1])
    done = subprocess.run([CORDWOOD, "cat", store, "--identity", f"/dev/fd/{ends[0]}"],
                          pass_fds=[ends[0]], stdout=subprocess.PIPE, check=True)
    same(done.stdout.count(b"line "), 500, "cat with a key from a pipe")
    os.close(ends[0])


def case_damage_is_no_encryption(folder):
    store, _ = folder.archived("s", 60000)
    path = archives(store)[-1]
    bad = bytearray(path.read_bytes())
    bad[len(bad) // 2] ^= 1
    path.write_bytes(bad)
    done = run("cat", store, "--identity", folder.key, code=3)
    holds("not genuine" in done.error and done.out.count(b"\n") > 0, done.error)
    holds("checksum of the encrypted payload" in run("verify", store, code=4).out.decode(),
          "damage that is seen without a key")


# ── Engines ──

def case_engine(folder):
    store = folder.path / "s"
    with cordwood.open(store, encrypt_to=[folder.recipient], segment_bytes=65536) as engine:
        log = engine.logger("app")
        for number in range(5000):
            log.info("record %d", number)
        engine.roll()
        holds(wait(lambda: engine.stats().archives_written > 0), "nothing was archived")
    run("archive", store, "--encrypt-to", folder.recipient)
    for path in archives(store):
        holds(path.read_bytes().startswith(b"age-encryption.org/v1\n"), f"{path} is plain")
    with cordwood.read(store, logger="app") as reader:
        same((sum(1 for _ in reader), reader.damaged), (0, 0), "without a key")
        same(reader.encrypted, len(archives(store)), "archives passed over")
    found = [record.message for record in cordwood.read(store, logger="app", identity=folder.key)]
    same(found, [f"record {number}" for number in range(5000)], "with a key")
    for path in (archives(store)[0],):
        sealed = folder.path / "bare.cwa"
        sealed.write_bytes(age("-r", folder.recipient,
                               data=age("-d", "-i", folder.key, path)))
        try:
            cordwood.read(sealed)
            raise Failed("a file that says nothing was opened")
        except cordwood.EncryptedError as error:
            same(error.status_name, "CW_E_ENCRYPTED", "status")


def case_adoption_and_following(folder):
    """The next process archives what a killed process left, for its recipients. A reader that
    follows continues into the archive."""
    store = folder.path / "s"
    writer = subprocess.Popen([sys.executable, "-c", f"""
import sys, os
sys.path.insert(0, {str(ROOT / "bindings/python/src")!r})
import cordwood
engine = cordwood.open({str(store)!r}, encrypt_to={folder.recipient!r})
for number in range(3000): engine.logger("app").info("record %d", number)
print("done", flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holds(writer.stdout.readline() == b"done\n", "the writer")
    writer.kill()
    writer.wait()
    with cordwood.open(store, encrypt_to=folder.recipient) as engine:
        holds(wait(lambda: archives(store) != []), "nothing was adopted")
        reader = cordwood.read(store, identity=folder.key, follow=True, idle_timeout=30,
                               logger="app")
        engine.logger("app").info("after")
        found = []
        for record in reader:  # ends by itself if nothing comes
            found.append(record.message)
            if record.message == "after":
                break
    same(found, [f"record {number}" for number in range(3000)] + ["after"], "followed")


def case_limits_without_a_key(folder):
    removed = []
    store = folder.path / "s"
    with cordwood.open(store, encrypt_to=folder.recipient, archives_max=2,
                       archive_removed=lambda name, reason: removed.append(reason)) as engine:
        for number in range(5):
            engine.logger("app").info("record %d", number)
            engine.roll()
            holds(wait(lambda: engine.stats().archives_written > number), "archived")
        holds(wait(lambda: len(removed) == 3), f"removed {removed}")
    same(removed, ["count"] * 3, "reasons")
    same(len(archives(store)), 2, "archives kept")


def case_compact(folder):
    """Re-encrypted to the same recipients, and only if all of their keys are given."""
    other = folder.other_key()
    recipient = subprocess.run(["age-keygen", "-y", other], stdout=subprocess.PIPE,
                               check=True).stdout.decode().strip()
    store, texts = folder.path / "s", []
    for seed in range(3):
        texts.append(folder.archived("s", 400, to=f"{folder.recipient},{recipient}")[1])
    before = [path.read_bytes() for path in archives(store)]
    same(len(before), 3, "archives")
    key, both = ["--identity", folder.key], ["--identity", folder.key, "--identity", other]
    for keys in ([], key):
        done = run("compact", store, "--hours", "0", *keys)
        holds(b"3 encrypted archives left" in done.out, done.out)
        same([path.read_bytes() for path in archives(store)], before, "archives")
    done = json.loads(run("compact", store, "--hours", "0", "--json", *both).out)
    same([done[name] for name in ("archives_in", "archives_out", "archives_locked")], [3, 1, 0],
         "what was compacted")
    made, = archives(store)
    holds(is_encrypted(made), "an age file")
    for keys in (key, ["--identity", other]):
        same(raw(store, *keys), b"".join(texts), "what each recipient reads")
        run("verify", store, *keys)
    age("-d", "-i", other, made)


def wait(condition, seconds=30):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


# ── Uploads ──

class Server:
    """Keeps bodies and their ids. Answers 200."""

    def __init__(self):
        self.got = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((self.headers.get("Idempotency-Key"), body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/logs"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def case_upload_as_it_is(folder):
    store, text = folder.store("s", 3000)
    with Server() as server:
        # The verb itself encrypts on the way out, without a key.
        run("upload", store, "--to", server.url, "--kind", "http", "--format", "archive",
            "--encrypt-to", folder.recipient)
    same(archives(store), [], "archives after the 2xx")
    sent = [folder.path / f"sent-{number}.cwa" for number, _ in enumerate(server.got)]
    for path, (key, body) in zip(sent, server.got):
        path.write_bytes(body)
        holds(is_encrypted(path), "what was sent is encrypted")
        out = age("-d", "-i", folder.key, path)
        same(key.replace("-", ""), f'"{out[40:56].hex()}"', "id of the request")
    same(raw(sent, "--identity", folder.key), text, "what was sent")


def case_upload_waits_for_a_key(folder):
    store, text = folder.archived("s", 3000)
    before = [path.read_bytes() for path in archives(store)]
    with Server() as server:
        target = ["--to", server.url, "--kind", "http", "--format", "ndjson"]
        for _ in range(3):
            done = run("upload", store, *target, code=5)
            same(server.got, [], "sent without a key")
            same([path.read_bytes() for path in archives(store)], before, "the archives")
        names = [path.name for path in (store / "queue").iterdir() if "@" in path.name]
        holds(len(names) == len(before) and all(".retry-3-" in name for name in names), names)
        queue = run("queue", store).out.decode()
        holds("encrypted for 1 recipient" in queue and "plain records" in queue, queue)
        other = run("upload", store, *target, "--identity", folder.other_key(), code=5)
        holds(server.got == [] and done.code == other.code, "another's key")
        same(run("upload", store, *target, "--dry-run", "--bodies").out, b"", "a preview")
        body = run("upload", store, *target, "--dry-run", "--bodies", "--identity", folder.key).out
        run("upload", store, *target, "--identity", folder.key)
        sent = b"".join(one[1] for one in server.got)
        same(hash_of(sent), hash_of(body), "the preview and what was sent")
    lines = [json.loads(line)["message"] for line in sent.splitlines()]
    same([line for line in lines if line.startswith("line ")], text.decode().splitlines(), "sent")
    same(archives(store), [], "archives after the 2xx")


def case_upload_says_so_once(folder):
    """An engine without a key reports it once in its log. With identity_file all is uploaded."""
    store = folder.path / "s"
    with Server() as server:
        with cordwood.open(store, encrypt_to=folder.recipient) as engine:
            engine.add_target(server.url, kind="http", format="ndjson")
            engine.logger("app").info("hello")
            for _ in range(3):
                try:
                    engine.upload(timeout=30)
                    raise Failed("uploaded without a key")
                except cordwood.UploadError as error:
                    same(error.status_name, "CW_E_UPLOAD", "status")
            said = [record for record in cordwood.read(store, logger="Cordwood.Uploader")
                    if "waits for a key" in record.message]
            same(len(said), 1, "diagnostics")
            holds("encrypted for 1 recipient" in said[0].fields["cause"], said[0].fields)
            same(server.got, [], "sent without a key")
        with cordwood.open(store, encrypt_to=folder.recipient, identity_file=folder.key) as engine:
            engine.add_target(server.url, kind="http", format="ndjson")
            engine.upload(timeout=30)
        holds(any(b'"hello"' in body for _, body in server.got), server.got)
    for path in store.rglob("*"):
        holds(not path.is_file() or SECRET not in path.read_bytes(), f"a secret key in {path}")


def case_collector(folder):
    store, text = folder.archived("s", 3000)
    whole = [path.read_bytes() for path in archives(store)]
    depot = folder.path / "depot"
    server = subprocess.Popen([CORDWOOD, "collect", "--listen", "127.0.0.1:0", "--directory",
                               depot], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        url = server.stdout.readline().decode().split()[-1]
        bad = folder.path / "bad"
        shutil.copytree(store, bad)
        for path, content in zip(archives(bad), whole):
            damaged = bytearray(content)
            damaged[-40] ^= 1
            path.write_bytes(damaged)
        run("upload", bad, "--to", url, code=5)
        same(archives(depot), [], "a damaged one is not taken")
        run("upload", store, "--to", url)
        same([path.read_bytes() for path in archives(depot)], whole, "taken as they are")
        holds(archives(store) == [], "deleted after the 2xx")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    same(raw(depot, "--identity", folder.key), text, "read at the collector")
    run("cat", depot, code=4)


# ── Kills ──

def case_kills(folder):
    """A kill -9 during archiving leaves no archive or a whole one. Every record is there once."""
    chance = random.Random(folder.seed)
    original, text = folder.store("original", 40000, seed=9)
    started = time.monotonic()
    trial = folder.path / "trial"
    shutil.copytree(original, trial)
    run("archive", trial, "--encrypt-to", folder.recipient)
    lasts = time.monotonic() - started
    inside = 0
    for number in range(sized(10, 40, 200)):
        shutil.rmtree(trial)
        shutil.copytree(original, trial)
        writer = subprocess.Popen([CORDWOOD, "archive", trial, "--codec", "none", "--encrypt-to",
                                   folder.recipient], stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, lasts))
        writer.kill()
        inside += writer.wait() != 0
        parts = list((trial / "archives").glob("*.part")) if (trial / "archives").exists() else []
        for path in archives(trial):
            age("-d", "-i", folder.key, path)
            run("verify", path, "--identity", folder.key)
        same(hash_of(raw(trial, "--identity", folder.key)), hash_of(text),
             f"kill {number}, seed {folder.seed}: as it lies, {parts}")
        run("archive", trial, "--encrypt-to", folder.recipient)
        same(hash_of(raw(trial, "--identity", folder.key)), hash_of(text),
             f"kill {number}, seed {folder.seed}: archived again")
        same(list((trial / "archives").glob("*.part")), [], "parts")
    holds(inside > 0, "no kill met a writer")


def hash_of(data):
    return len(data), hashlib.sha256(data).hexdigest()


def main():
    parser = cases.parser()
    arguments = parser.parse_args()
    import leftovers  # it imports this file, too
    table = cases.chosen({name[5:]: case for name, case in {**globals(), **vars(leftovers)}.items()
                          if name.startswith("case_")}, arguments)
    run = cases.Run()

    def one(name, case):
        with tempfile.TemporaryDirectory(prefix="cordwood-age-") as path:
            folder = Folder(path)
            folder.seed = arguments.seed
            case(folder)
    run.all(table, one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
