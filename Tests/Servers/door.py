"""The collector's door: `cordwood collect` beside clients that hold connections and send nothing,
and behind the web servers of docs/UPLOADS.md, whose configurations run as written there."""

import contextlib
import errno
import json
import os
import re
import socket
import subprocess

import page
import forged
from away import Words, interposer
from clouds import Collector
from frame import CORDWOOD, Certificates, Failed, Server, equal, find, full, holds, until
from store import Store, same_lines

TLS = "TLS before the collector"
TOKEN = "s3cret"
HEAD = "POST /v1/archives HTTP/1.1\r\nHost: t\r\n"
REQUEST = HEAD + "Content-Length: 9999999\r\n\r\n"


def connect(server, address, text):
    """Each address of 127.0.0.0/8 counts as another client."""
    client = socket.create_connection(("127.0.0.1", server.port), 20, (address, 0))
    client.settimeout(20)
    client.sendall(text.encode())
    return client


def answer(client):
    """Returns what arrives until the server closes."""
    got = b""
    with contextlib.closing(client):
        while piece := client.recv(4096):
            got += piece
    return got.decode()


def sends(place, server, **options):
    """Uploads a store, attempt by attempt, for the collector to be read back."""
    store = Store(place, "beside").fill(100, place.seed)
    lines = store.lines()
    rounds = store.upload_all(server.url, kind="collector", token=TOKEN, **options)
    store.is_empty()
    return store, lines, rounds


@full
def half_open_heads(place):
    """All connections wait for the rest of a head and reconnect when closed. Archives from other
    clients are still accepted, because one address gets only its share."""
    server = Collector(place, token=TOKEN, more=(
        "--connections", "16", "--connections-per-address", "12")).start()
    crowd = [connect(server, "127.0.0.2", HEAD) for _ in range(16)]
    until(lambda: "503 12 connections of its address" in server.said(), "a refusal of the address")
    store, lines, rounds = sends(place, server)
    same_lines("records", store.lines(where=server.central), lines)
    place.note(f"{rounds} rounds beside {len(crowd)} heads")


@full
def heads_of_many_addresses(place):
    """256 clients of 64 addresses hold all connections. Each gives way after five seconds."""
    server = Collector(place, token=TOKEN).start()
    crowd = [connect(server, f"127.0.1.{number % 64 + 1}", HEAD) for number in range(256)]
    until(lambda: "all 256 connections are taken" in refused(server) + server.said(),
          "all connections taken")
    store, lines, rounds = sends(place, server)
    same_lines("records", store.lines(where=server.central), lines)
    lines = [line for line in server.said().splitlines() if "refused" in line]
    holds(0 < len(lines) <= 60, f"{len(lines)} lines for a crowd")
    place.note(f"{rounds} rounds beside {len(crowd)} heads")


def refused(server):
    """The answer to one more client."""
    with contextlib.suppress(ConnectionError):
        return answer(connect(server, "127.0.0.1", "GET /healthz HTTP/1.0\r\n\r\n"))
    return ""


def bodies_without_a_token(place):
    """The server does not wait for a body: it answers before the body, and then closes."""
    server = Collector(place, token=TOKEN).start()
    crowd = [connect(server, "127.0.0.2", REQUEST) for _ in range(32)]
    for client in crowd:
        holds(answer(client).startswith("HTTP/1.1 401 "), "401 before the body")
    until(lambda: "401 token missing or wrong" in server.said(), "a line about it")


class Watched(Collector):
    """Its calls to the disk are counted."""

    def __init__(self, place, **options):
        super().__init__(place, **options)
        self.words = Words(place.directory / "words")
        self.library = interposer(place.folder("tools"))

    def environment(self):
        return {"LD_PRELOAD": str(self.library), "DISK_WORDS": str(self.words.path),
                "DISK_STORE": str(self.directory / "central")}


def names_outlast_a_start(place):
    """A name that a killed run had only renamed is made durable before any client hears that the
    archive is stored: the directory is synced at the start, or nothing is served."""
    server = Watched(place, token=TOKEN).start()
    sends(place, server)
    names = server.archives()
    server.stop()
    server.words.only("/archives")
    before = server.words.count("sync")
    server.start()
    holds(server.words.count("sync") > before, "the directory is not synced at the start")
    equal("archives", server.archives(), names)
    server.stop()
    server.words.fail(errno.EIO, "sync")
    try:
        server.start()
    except Failed as refused:
        holds("fsync" in str(refused), f"{refused}")
    else:
        holds(False, "it serves over a directory that cannot be synced")


def readiness(place):
    """While the disk takes no archive, a health check gets the answer of an upload. It is well
    again by itself, though no client comes."""
    server = Watched(place).start()
    # No archive; but it fails before anybody looks at it.
    body = "Content-Length: 5\r\nConnection: close\r\n\r\nhello"
    health = "/healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"

    def ask(words):
        head, _, text = answer(connect(server, "127.0.0.1", words)).partition("\r\n\r\n")
        return int(head.split()[1]), text

    equal("at first", ask("GET " + health), (200, '{"status":"ok"}\n'))
    for error, status, text in ((errno.ENOSPC, 507, "no space"),
                                (errno.EIO, 500, "could not store: Input/output error")):
        server.words.fail(error, "write")
        told = (status, json.dumps({"error": text}, separators=(",", ":")) + "\n")
        equal("an upload", ask(HEAD + body), told)
        for _ in range(2):
            equal("health", ask("GET " + health), told)
            equal("health by HEAD", ask("HEAD " + health), (status, ""))
            server.words.more(1, "write")
        server.words.fail(0, "write")
        until(lambda: ask("GET " + health)[0] == 200, "health once the disk takes archives")
        equal("by HEAD", ask("HEAD " + health), (200, ""))
        equal("an upload", ask(HEAD + body)[0], 400)


def tokens_of_a_file(place):
    """Tokens come and go with their file, beside those of the command line. A file that cannot be
    used changes nothing, and is told once."""
    path = place.directory / "tokens"

    def write(text):
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)

    def takes(token):
        words = f"{HEAD}Authorization: Bearer {token}\r\nContent-Length: 1\r\n\r\n"
        client = connect(server, "127.0.0.1", words + "x")
        with contextlib.closing(client):
            return client.recv(4096).decode().split()[1] != "401"

    write("# of the fleet\nold\r\n\nolder\n")
    server = Collector(place, token="one", more=("--token", "two", "--token-file", path)).start()
    # By chance: a token of the last file, of this one, of both, or of neither.
    for turn in range(4):
        equal("tokens taken", [name for name in ("one", "two", "old", "older", "new", "one,two", "")
                               if takes(name)],
              ["one", "two", *(["old", "older"] if turn % 2 == 0 else ["older", "new"])])
        write("older\nnew" if turn % 2 == 0 else "old\nolder\n")
        # What is revoked goes first, and what is new comes once the senders are known.
        wanted = ("new", "old") if turn % 2 == 0 else ("old", "new")
        until(lambda: [takes(token) for token in wanted] == [True, False], "the file's tokens")
    for text, why in (("", "has no token"), ("new\nwith\ttab\n", "line 2 has a character beyond")):
        write(text)
        until(lambda: why in server.said(), why)
        holds(takes("old") and not takes("new"), "the tokens read last count")
        equal("lines about it", server.said().count(why), 1)
    path.unlink()
    until(lambda: "cannot be read" in server.said(), "a missing file is told")
    holds(takes("old"), "the tokens read last count")
    write("new\n")
    until(lambda: "tokens read again" in server.said(), "the file is well again")
    holds(takes("new") and takes("two") and not takes("old"), "its tokens count")
    write("new  newer\n")
    until(lambda: takes("newer"), "two tokens of a line")
    holds(takes("new"), "the line's other token")


# ── Devices that speak for others ──

def give(server, token, archive):
    """The answer to a device's archive."""
    data = archive.data()
    words = (f"{HEAD}Authorization: Bearer {token}\r\nContent-Length: {len(data)}\r\n"
             f"Idempotency-Key: \"{archive.id_text()}\"\r\nConnection: close\r\n\r\n")
    with socket.create_connection(("127.0.0.1", server.port), 20) as client:
        client.sendall(words.encode() + data)
        head, _, text = answer(client).partition("\r\n\r\n")
    return int(head.split()[1]), json.loads(text)


def device(place, name, *words):
    """A store of one archive."""
    store = Store(place, name).log([f"{name} {word}".encode() for word in words]).archive()
    return store, forged.Archive(store.archives()[0].read_bytes())


def aside(server):
    return sorted((server.central / "quarantine").glob("*.cwa"))


def strangers(place, tokens):
    """B says that its archives have A's records, before and after A sends them. A's records are in
    the collector's store all the same, before and after a restart and `compact`."""
    server = Collector(place, token=tokens[0], more=(
        () if len(set(tokens)) == 1 else ("--token", tokens[1]))).start()
    a, first = device(place, "a", "evidence", "more")
    later, second = device(place, "later", "evidence")
    wanted = a.lines()

    def lies(victim, number):
        """Each says something else about the victim's archive."""
        only, wide, named, junk = (
            device(place, f"{kind}{number}", "noise")[1]
            for kind in ("only", "wide", "name", "junk"))
        only.replaced = wide.replaced = [(victim.id(), victim.records)]
        wide.covers = sorted(wide.covers + victim.covers, key=lambda cover: cover.name)
        named.covers[0].name = victim.covers[0].name
        junk.covers = victim.covers
        return only, wide, named, junk

    def whole(where):
        same_lines(where, [line for line in a.lines(where=server.central)
                           if b'"message":"a ' in line], wanted)

    only, wide, named, junk = lies(first, 0)
    equal("before A", [give(server, tokens[1], lie)[0] for lie in (only, named, junk)],
          [200, 200, 400])
    before = sorted(server.archives().values())
    equal("aside before A", len(aside(server)), 0)
    sent = {path.name: path.read_bytes() for path in a.archives()}
    equal("A's upload", a.upload(server.url, "collector", token=tokens[0]).code, 0)
    a.is_empty()
    whole("after A")
    equal("with A", sorted(server.archives().values()), sorted(before + list(sent.values())))
    equal("A has all", give(server, tokens[1], wide)[0], 200)
    only, again, named, junk = lies(first, 1)
    equal("after A", [give(server, tokens[1], lie)[0] for lie in (only, again, named, junk)],
          [200, 200, 200, 400])
    equal("aside", sorted(path.read_bytes() for path in aside(server)),
          sorted(lie.data() for lie in (wide, again)))
    holds(all("because" in path.with_suffix(".why").read_text() for path in aside(server)), "why")
    until(lambda: server.said().count("put aside what came from 127.0.0.1: archive ") == 2,
          "a line for each")
    holds(b"aside     2 archives in quarantine/" in a.tool("stats", server.central), "stats")
    whole("after the lies")
    server.stop()
    server.start()
    whole("after a restart")
    a.tool("compact", server.central, "--hours", "0")
    whole("after compact")
    a.tool("verify", server.central)
    equal("A's name", give(server, tokens[1], lies(second, 2)[2])[0], 200)
    equal("later", later.upload(server.url, "collector", token=tokens[0]).code, 0)
    later.is_empty()
    place.note(f"{len(aside(server))} aside")


def strangers_of_two_tokens(place):
    strangers(place, ("one", "two"))


def strangers_of_one_token(place):
    strangers(place, ("one", "one"))


def many_replaced(place):
    """What an archive says of others costs the collector no memory."""
    server = Collector(place, token=TOKEN).start()

    def memory():
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def lie(number):
        _, made = device(place, f"b{number}", "noise")
        made.replaced = [(os.urandom(16), 1) for _ in range(65_000)]
        equal("taken", give(server, TOKEN, made)[0], 200)

    for number in range(4):
        lie(number)
    before = memory()
    for number in range(4, 16):
        lie(number)
    holds(memory() - before < 16 << 10, f"{memory() - before} KiB for 12 archives")
    place.note(f"{memory() - before} KiB for 12 archives of 65,000 ids")


def limits_of_the_command(place):
    """Impossible numbers are refused before anything is opened."""
    for words, what in (
            (["--connections", "0"], "take positive numbers"),
            (["--connections-per-address=-1"], "take positive numbers"),
            (["--token", ""], "a token is empty, or has a character beyond"),
            (["--token-file", place.directory / "none"], "none: cannot be read"),
            (["--connections", "999999999"], "takes 3000000189 file descriptors; the limit is ")):
        done = subprocess.run(
            [CORDWOOD, "collect", "--directory", place.directory / "x", "--listen", "127.0.0.1:0",
             *words], capture_output=True, check=False, timeout=60)
        equal(f"exit of {words}", done.returncode, 2)
        holds(what in done.stderr.decode(), f"{words}: {done.stderr!r}")
    holds(not (place.directory / "x").exists(), "a store was made")


# ── Behind TLS, as the page says ──

class Page(Server):
    """One of the page's configurations: only addresses, ports and paths are replaced."""

    def configure(self):
        self.made = Certificates(self.place)
        (self.made["server.pair"]).write_bytes(
            self.made["server.pem"].read_bytes() + self.made["server.key"].read_bytes())
        text = page.block(TLS, self.opening)
        for pattern, value in (
                (r"127\.0\.0\.1:4500", f"127.0.0.1:{self.options['upstream']}"),
                (r"/etc/ssl/logs\.pem", self.made["server.pem"]),
                (r"/etc/ssl/logs\.key", self.made["server.key"]),
                (r"/etc/haproxy/logs\.pem", self.made["server.pair"]),
                (r"(listen |bind :)443", rf"\g<1>{self.port}".replace("bind :", "bind 127.0.0.1:")),
                (r"logs\.example\.org \{", f"https://localhost:{self.port} {{\ntls internal")):
            text = re.sub(pattern, str(value), text)
        self.write(text)

    @property
    def url(self):
        return f"https://localhost:{self.port}"

    @property
    def authority(self):
        return self.made.authority


class PageNginx(Page):
    name, opening = "nginx-page", "limit_conn_zone"

    def write(self, text):
        here = self.directory
        (here / "temporary").mkdir(exist_ok=True)
        temporary = "".join(f"{kind}_temp_path {here}/temporary; " for kind in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.geteuid() == 0 else ""
        (here / "nginx.conf").write_text(
            f"{user} daemon off; pid {here}/pid; error_log {here}/errors.txt;\n"
            f"events {{ }}\nhttp {{ access_log off; {temporary}\n{text}}}\n")

    def command(self):
        return [find("nginx"), "-p", self.directory, "-c", self.directory / "nginx.conf"]


class PageCaddy(Page):
    name, opening = "caddy-page", "logs.example.org"

    def write(self, text):
        (self.directory / "Caddyfile").write_text(
            "{\nadmin off\nskip_install_trust\nauto_https disable_redirects\n"
            f"storage file_system {self.directory}/storage\n}}\n{text}")

    def command(self):
        return [find("caddy"), "run", "--config", self.directory / "Caddyfile", "--adapter",
                "caddyfile"]

    def environment(self):
        return {"HOME": str(self.directory), "XDG_DATA_HOME": str(self.directory / "data"),
                "XDG_CONFIG_HOME": str(self.directory / "config")}

    @property
    def authority(self):
        return self.directory / "storage/pki/authorities/local/root.crt"

    def answers(self):
        return self.authority.exists() and super().answers()


class PageHaproxy(Page):
    name, opening = "haproxy-page", "defaults"

    def write(self, text):
        (self.directory / "haproxy.cfg").write_text(text)

    def command(self):
        return [find("haproxy"), "-db", "-f", self.directory / "haproxy.cfg"]


def behind(kind):
    def case(place):
        server = Collector(place, token=TOKEN).start()
        proxy = kind(place, upstream=server.port).start()
        store, lines, _ = sends(place, proxy, more=("--ca-file", proxy.authority))
        same_lines("records", store.lines(where=server.central), lines)
        other = Store(place, "refused").fill(10, place.seed)
        other.upload(proxy.url, "collector", token="wrong", more=("--ca-file", proxy.authority))
        states = other.states()
        holds(states and all("paused" in state for state in states), f"401 passes: {states}")
    return case


behind_nginx = behind(PageNginx)
behind_caddy, behind_haproxy = full(behind(PageCaddy)), full(behind(PageHaproxy))

CASES = {
    "half_open_heads": half_open_heads, "heads_of_many_addresses": heads_of_many_addresses,
    "bodies_without_a_token": bodies_without_a_token,
    "names_outlast_a_start": names_outlast_a_start,
    "limits_of_the_command": limits_of_the_command, "readiness": readiness,
    "tokens_of_a_file": tokens_of_a_file, "strangers_of_two_tokens": strangers_of_two_tokens,
    "strangers_of_one_token": strangers_of_one_token, "many_replaced": many_replaced,
    "behind_nginx": behind_nginx,
    "behind_caddy": behind_caddy, "behind_haproxy": behind_haproxy}
