"""Real servers: what is read back from each equals what was logged. Web servers and proxies use the
kinds for any HTTP server, OTLP and ClickHouse their own interfaces. S3: s3.py."""

import json
import shutil
import urllib.parse

import page
from clouds import ClickHouse, Collector, Recorder, Rotel
from frame import Certificates, equal, full, holds, until
from store import FAILED, Host, Store, archive_lines, decoded, nasty_lines, same_lines
from web import Apache, Caddy, Haproxy, Mitmproxy, Nginx, Tinyproxy


def filled(place, count=200):
    store = Store(place).fill(count, place.seed)
    return store, store.lines(), store.hashes()


def compare_bodies(store, bodies, lines, hashes):
    """bodies: (id, encoding, bytes) from a server. Each archive is there once, with all lines."""
    equal("ids", sorted(name.strip('"') for name, _, _ in bodies), sorted(hashes))
    got = b"".join(decoded(body, encoding) for _, encoding, body in bodies)
    same_lines("what the server has", store.ours(got), lines)


# ── nginx ──

def nginx_post(place):
    """Bodies go into files, in every encoding, each with Content-Type and Content-Length."""
    nginx = Nginx(place).start()
    for encoding in ("none", "gzip", "zstd", "lz4"):
        store = Store(place, encoding).fill(100, place.seed)
        lines, hashes = store.lines(), store.hashes()
        equal("exit", store.upload(nginx.url + f"/post/{encoding}", form="ndjson",
                                   encoding=encoding).code, 0)
        store.is_empty()
        compare_bodies(store, nginx.bodies(f"/post/{encoding}"), lines, hashes)
    for entry in nginx.seen("/post"):
        equal("type", entry["type"], "application/x-ndjson")
        holds(entry["length"].isdigit() and entry["expect"] == "", f"headers: {entry}")


def nginx_put(place):
    """PUT by DAV: the archive's own bytes under its id and its name."""
    nginx = Nginx(place).start()
    store, lines, _ = filled(place)
    wanted = {path.name: path.read_bytes() for path in store.archives()}
    try:
        with Host(place, store) as host:
            host.open()
            host.target(nginx.url + "/dav/a/{name}", kind="http", format="archive", method="PUT",
                        name="t")
            equal("status", host("upload")["status"], "CW_OK")
            host("close")
    finally:
        got = nginx.put()
    equal("names", sorted(name.removeprefix("a/") for name in got if name[2:] in wanted),
          sorted(wanted))
    found = []
    for name, data in wanted.items():
        equal("bytes", got[f"a/{name}"], data)
        found += archive_lines(store, got[f"a/{name}"], place.directory)
    same_lines("records", found, lines)


@full
def nginx_refuses_large_bodies(place):
    """413 by client_max_body_size: split until it fits, every record once."""
    nginx = Nginx(place).start()
    store, lines, hashes = filled(place, 400)
    equal("exit", store.upload(nginx.url + "/small", form="ndjson", encoding="none").code, 0)
    store.is_empty()
    bodies = nginx.bodies("/small")
    holds(len(bodies) > len(hashes), "nothing was split")
    equal("ids", len({name for name, _, _ in bodies}), len(bodies))
    same_lines("what nginx has", store.ours(b"".join(body for _, _, body in bodies)), lines)
    refused = sum(entry["status"] == 413 for entry in nginx.seen("/small"))
    place.note(f"{len(bodies)} parts of {len(hashes)} archives, {refused} refusals")


@full
def nginx_limits_the_rate(place):
    """429 with Retry-After: 1 for all but one request per second."""
    nginx = Nginx(place).start()
    store = Store(place)
    for number in range(3):
        store.log(nasty_lines(20, number), logger=f"app.{number}").archive()
    lines, hashes = store.lines(), store.hashes()
    rounds = store.upload_all(nginx.url + "/limited", form="ndjson", encoding="gzip")
    compare_bodies(store, nginx.bodies("/limited"), lines, hashes)
    store.is_empty()
    refused = sum(entry["status"] == 429 for entry in nginx.seen("/limited"))
    holds(0 < refused <= 6, f"{refused} requests were refused for {len(hashes)} archives")
    place.note(f"{rounds} rounds, {refused} refusals")


@full
def nginx_redirects(place):
    """307 and 308 to the same origin are followed with method and body. At 302, and at 307 to
    another origin, the target rests."""
    nginx = Nginx(place).start()
    for path in ("/moved307", "/moved308"):
        store = Store(place, path[1:]).fill(30, place.seed)
        lines, hashes = store.lines(), store.hashes()
        equal("exit", store.upload(nginx.url + path, form="ndjson", encoding="gzip").code, 0)
        fresh = nginx.bodies("/post")
        compare_bodies(store, fresh[-len(hashes):], lines, hashes)
    for path, status in (("/moved302", 302), ("/elsewhere307", 307)):
        store = Store(place, path[1:]).fill(30, place.seed)
        count = len(store.archives())
        equal("exit", store.upload(nginx.url + path, form="ndjson", encoding="gzip").code, FAILED)
        state, = store.states()
        holds(state.startswith("retry-1-") and "-refused" in state, f"{status}: {state}")
        equal("archives that stay", len(store.archives()), count)


@full
def nginx_client_certificate(place):
    """The server's certificate is checked with the host's CA file. The client presents its own."""
    nginx = Nginx(place, tls=True, verify=True).start()
    made = Certificates(place)
    store, lines, hashes = filled(place, 60)
    base = {"url": nginx.url + "/post", "kind": "http", "format": "ndjson", "encoding": "gzip"}
    with Host(place, store) as host:
        host.open(expiration_days=0)
        host.target(**base, name="unknown-authority")
        answer = host("upload")
        equal("outcome without the CA", answer["outcome"], "request_failed")
        host("remove_target", name="unknown-authority")
        host.target(**base, name="without", ca_file=str(made.authority))
        answer = host("upload")
        equal("HTTP status without a client certificate",
              answer["result"]["last_http_status"], 400)
        host("remove_target", name="without")
        host.target(**base, name="with", ca_file=str(made.authority),
                    client_certificate_file=str(made["client.pem"]),
                    client_key_file=str(made["client.key"]))
        equal("status", host("upload")["status"], "CW_OK")
        host("close")
    bodies = nginx.bodies()
    got = b"".join(decoded(body, encoding) for _, encoding, body in bodies)
    same_lines("what nginx has", [line for line in store.ours(got)
                                  if line in set(lines)], lines)
    equal("clients", {e["client"] for e in nginx.seen() if e["status"] == 204}, {"CN=client"})


# ── Apache ──

@full
def apache_inflates(place):
    """Apache decodes the gzip body before it stores it: one member, whole."""
    apache = Apache(place).start()
    store, lines, hashes = filled(place)
    with Host(place, store) as host:
        host.open()
        host.target(apache.url + "/inflate/{id}", kind="http", format="ndjson", encoding="gzip",
                    method="PUT", name="t")
        equal("status", host("upload")["status"], "CW_OK")
        host("close")
    got = apache.put()
    holds(set(hashes) <= {name.removeprefix("inflate/") for name in got}, "names")
    same_lines("what Apache has", [line for data in got.values() for line in store.ours(data)
                                   if line in set(lines)], lines)


def apache_has_it_already(place):
    """If-None-Match: * and 412: already there, so it counts as sent and is stored once."""
    apache = Apache(place).start()
    store, _, _ = filled(place, 40)
    archives = {path.name: path.read_bytes() for path in store.archives()}
    again = Store(place, "again")
    shutil.copytree(store.directory, again.directory)
    for number, status in ((0, 201), (1, 412)):
        with Host(place, (store, again)[number]) as host:
            host.open()
            host.target(apache.url + "/dav/{name}", kind="http", format="archive", method="PUT",
                        headers={"If-None-Match": "*"}, name="t")
            equal("status", host("upload")["status"], "CW_OK")
            ended = {event[1]: event[2:] for event in host("events") if event[0] == "completed"}
            host("close")
        for name in archives:
            equal(f"how {name} ended", ended.get(name), [0, status])
    got = apache.put()
    for name, data in archives.items():
        equal("bytes", got.get(f"dav/{name}"), data)
    again.is_empty()


# ── Proxies and faults ──

@full
def haproxy_rate_and_chance(place):
    """A proxy that answers 429 by rate and 503 by chance, in front of nginx. Everything arrives,
    and is stored once, because neither answer was nginx's."""
    nginx = Nginx(place).start()
    haproxy = Haproxy(place, upstream=nginx.port, rate=6, percent=40).start()
    store = Store(place)
    for number in range(6):
        store.log(nasty_lines(10, number), logger=f"app.{number}").archive()
    lines, hashes = store.lines(), store.hashes()
    rounds = store.upload_all(haproxy.url + "/post", form="ndjson", encoding="gzip")
    store.is_empty()
    compare_bodies(store, nginx.bodies(), lines, hashes)
    place.note(f"{rounds} rounds for {len(hashes)} archives")


def tinyproxy_connect(place):
    """TLS through a proxy by CONNECT, with user and password. Without them it is refused. The
    password is in no text of ours."""
    nginx = Nginx(place, tls=True).start()
    proxy = Tinyproxy(place).start()
    made = Certificates(place)
    store, lines, _ = filled(place, 60)
    options = {"url": nginx.url + "/post", "kind": "http", "format": "ndjson", "encoding": "gzip",
               "ca_file": str(made.authority), "proxy": proxy.url}
    with Host(place, store) as host:
        host.open(level="trace")
        host.target(**options, name="without")
        equal("outcome without a password", host("upload")["outcome"], "request_failed")
        host("remove_target", name="without")
        host.target(**options, name="with",
                    proxy_auth=f"{proxy.USER}:{proxy.PASSWORD}")
        equal("status", host("upload")["status"], "CW_OK")
        host("close")
    got = b"".join(decoded(body, encoding) for _, encoding, body in nginx.bodies())
    same_lines("what nginx has", [line for line in store.ours(got) if line in set(lines)], lines)
    holds("CONNECT" in proxy.seen(), "the proxy saw no CONNECT")
    texts = got + store.tool("cat", store.directory)
    holds(proxy.PASSWORD.encode() not in texts, "the proxy's password is in a log")


def caddy_http2(place):
    """TLS with its own authority, and HTTP/2."""
    nginx = Nginx(place).start()
    caddy = Caddy(place, upstream=nginx.port).start()
    store, lines, _ = filled(place, 60)
    with Host(place, store) as host:
        host.open()
        host.target(caddy.url + "/post", kind="http", format="ndjson", encoding="gzip", name="t",
                    ca_file=str(caddy.authority))
        equal("status", host("upload")["status"], "CW_OK")
        host("close")
    got = b"".join(decoded(body, encoding) for _, encoding, body in nginx.bodies())
    same_lines("what nginx has", [line for line in store.ours(got) if line in set(lines)], lines)
    protocols = {entry["proto"] for entry in caddy.seen()}
    equal("protocols", protocols, {"HTTP/2.0"})


@full
def mitmproxy_faults(place):
    """503 with Retry-After three times, a late answer, a killed connection."""
    nginx = Nginx(place).start()
    proxy = Mitmproxy(place, upstream=nginx.port,
                      script=["503", "503", "503", "late", "kill"]).start()
    store, lines, hashes = filled(place, 60)
    rounds = store.upload_all(proxy.url + "/post", form="ndjson", encoding="gzip")
    store.is_empty()
    compare_bodies(store, nginx.bodies(), lines, hashes)
    place.note(f"{rounds} rounds; faults met: {' '.join(proxy.faults())}")


# ── Our collector, OTLP, ClickHouse ──

def collector(place):
    """Archives byte for byte, and their records with every reading verb."""
    server = Collector(place, token="s3cret").start()
    store, lines, _ = filled(place)
    wanted = {path.read_bytes() for path in store.archives()}
    equal("exit with a wrong token",
          store.upload(server.url, "collector", token="wrong").code, FAILED)
    equal("exit", store.upload(server.url, "collector", token="s3cret").code, 0)
    store.is_empty()
    equal("archives", set(server.archives().values()), wanted)
    same_lines("records", store.lines(where=server.central), lines)


@full
def rotel(place):
    """An independent OTLP receiver reads our bodies and prints each message."""
    server = Rotel(place).start()
    for form in ("otlp-protobuf", "otlp-json"):
        store = Store(place, form)
        store.log([b"%s record %d of rotel" % (form.encode(), n) for n in range(50)]).archive()
        equal("exit", store.upload(server.url, "otlp", form).code, 0)
        store.is_empty()
        for number in range(50):
            text = f"{form} record {number} of rotel"
            # It answers before it prints.
            until(lambda text=text: text in server.seen(), f"{text!r} in what rotel saw")


TABLE = """CREATE TABLE logs (time String, level String, logger String, message String,
pid UInt32, tid UInt64, kind String) ENGINE = MergeTree ORDER BY (logger, tid)
""".replace("\n", " ")


def clickhouse_insert(place):
    """INSERT … FORMAT JSONEachRow of gzip NDJSON, sent as to any HTTP server, and read back."""
    server = ClickHouse(place).start()
    server.query(TABLE)
    insert = urllib.parse.urlencode({"query": "INSERT INTO logs FORMAT JSONEachRow",
                                     "input_format_skip_unknown_fields": 1})
    store, lines, _ = filled(place)
    done = store.upload(f"{server.url}/?{insert}", form="ndjson", encoding="gzip",
                        headers=["X-ClickHouse-User: writer", "X-ClickHouse-Key: se+cret"])
    equal("exit", done.code, 0)
    store.is_empty()
    same_rows(server, lines)


def same_rows(server, lines):
    rows = server.rows("SELECT * FROM logs WHERE kind = 'log' AND logger NOT LIKE 'Cordwood.%'")
    equal("rows", len(rows), len(lines))
    wanted = [json.loads(line) for line in lines]
    key = ("logger", "message", "level")
    got = sorted(tuple(str(row[name]) for name in key) for row in rows)
    equal("rows' content", got, sorted(tuple(str(row[name]) for name in key) for row in wanted))


@full
def clickhouse_kind(place):
    """The dedicated kind."""
    server = ClickHouse(place).start()
    server.query(page.table())
    store, lines, _ = filled(place)
    with Host(place, store) as host:
        host.open()
        host.target(server.url, kind="clickhouse", name="t", parameters={"table": "logs"},
                    auth_user="writer", auth_password="se+cret")
        equal("status", host("upload")["status"], "CW_OK")
        host("close")
    same_rows(server, lines)


@full
def clickhouse_fleet(place):
    """The recipe for fleets in docs/UPLOADS.md: many hosts into one table, an archive that is sent
    twice is there once, and a query over all of them."""
    server = ClickHouse(place).start()
    server.query(page.table())
    to = {"url": server.url, "kind": "clickhouse", "parameters": {"table": "logs"}}
    for number in range(3):
        store = Store(place, f"host-{number}")
        with Host(place, store) as host:
            host.open(level="trace")
            host("resource", values={"service.name": "shop", "host.name": f"host-{number}"})
            host("hostile", count=40, seed=number)
            host("roll")
            host("wait")
            host("close")
        for name in ("t", "again") if number == 0 else ("t",):
            copy = Store(place, f"copy-{number}-{name}")
            shutil.copytree(store.directory, copy.directory)
            with Host(place, copy) as host:
                host.open()
                host.target(**to, name=name)
                holds(host("upload")["status"] == "CW_OK", "not sent")
                host("close")
    ours = "logger LIKE 'app.%'"
    equal("rows of all hosts, without what came twice", server.rows(
        f"SELECT host, count() AS n FROM logs FINAL WHERE {ours} GROUP BY host ORDER BY host"),
          [{"host": f"host-{number}", "n": "40"} for number in range(3)])
    asked = server.rows("SELECT level, uniqExact(host) AS hosts FROM logs WHERE service = 'shop' "
                        f"AND level_number >= 17 AND {ours} GROUP BY level")
    equal("errors of the service", asked, [{"level": "ERROR", "hosts": "3"}])
    numbers = server.rows("SELECT visitParamExtractInt(fields, 'number') AS number FROM logs FINAL "
                          f"WHERE host = 'host-1' AND {ours} ORDER BY number")
    equal("a field of every record", [int(row["number"]) for row in numbers], list(range(40)))


@full
def asked_again(place):
    """401: the host is asked for credentials, and the upload continues with them (the new token is
    in no text of ours)."""
    server = Recorder(place).start()
    server.script([{"status": 401, "headers": {"WWW-Authenticate": "Bearer realm=\"logs\""}}])
    store, lines, _ = filled(place, 40)
    with Host(place, store) as host:
        host.open(level="trace")
        host.target(server.url + "/logs", kind="http", format="ndjson", encoding="gzip", name="t",
                    auth_token="first-token", tokens=["second-token"])
        for _ in range(3):
            if host("upload")["status"] in ("CW_OK", "CW_END"):
                break
        asked = [event for event in host("events") if event[0] == "asked"]
        host("close")
    requests = server.requests()
    used = [request["headers"].get("authorization") for request in requests]
    equal("tokens that were used", list(dict.fromkeys(used)),
          ["Bearer first-token", "Bearer second-token"])
    equal("times that the host was asked", len(asked), 1)
    got = b"".join(decoded(server.body(request), "gzip") for request in server.taken())
    same_lines("what the server has", [line for line in store.ours(got) if line in set(lines)],
               lines)
    holds(b"second-token" not in store.tool("cat", store.directory) + got, "a token is in a log")


CASES = {case.__name__: case for case in (
    nginx_post, nginx_put, nginx_refuses_large_bodies, nginx_limits_the_rate, nginx_redirects,
    nginx_client_certificate, apache_inflates, apache_has_it_already, haproxy_rate_and_chance,
    tinyproxy_connect, caddy_http2, mitmproxy_faults, collector, rotel, clickhouse_insert,
    clickhouse_kind, clickhouse_fleet, asked_again)}
