"""The recipes of docs/UPLOADS.md, run as written: only the servers' addresses, the secrets (`…`)
and a key are replaced. Each command gets its own store in `logs`. Afterwards the server has every
line once, and the store has none left."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import page
from clouds import ClickHouse, Collector, Fake, Recorder, Rclone, Rotel
from frame import BUILD, LIBRARY, ROOT, VENV, Failed, equal, find, holds, plain_environment, until
from store import Store, decoded, same_lines

LINES = 60


class Shell:
    """A folder for running commands of the page, and the values for their `…`."""

    def __init__(self, place, server, secret="token", **environment):
        self.place, self.server, self.secret = place, server, secret
        self.folder = place.folder("shell")
        places = [BUILD / "bin", VENV / "bin", Path(rotel_agent()).parent]
        self.environment = plain_environment(
            PATH=":".join([*map(str, places), os.environ["PATH"]]), HOME=str(self.folder),
            **environment)
        self.key = None

    def fill(self, number=0):
        """A store whose lines identify themselves."""
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        store = Store(self.place, "shell/logs")
        store.log([b"recipe %d line %04d" % (number, line) for line in range(LINES)],
                  logger="shop.http", level="warn")
        return store

    def written(self, command):
        """The command with our server's address, secrets and key."""
        command = re.sub(r"https?://[\w.-]+(:\d+)?", f"http://127.0.0.1:{self.server.port}",
                         command)
        command = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{self.server.port}", command)
        if self.key:
            command = command.replace("age1…", self.key)
        return re.sub(r"(CORDWOOD_\w+)=…", rf"\1='{self.secret}'", command)

    def run(self, command, more=""):
        """more: additional server arguments for these tests."""
        command = self.written(command)
        holds("…" not in command, f"nothing stands for the dots: {command}")
        if command.endswith("&"):
            return self.start(command.removesuffix("&") + more)
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=120)
        if done.returncode:
            raise Failed(f"{command}: ended {done.returncode}: {done.stderr[-300:]}")
        return done.stdout

    def start(self, command):
        """Starts a server of the page in place of ours."""
        self.server.command = lambda: ["bash", "-c", "exec " + command]
        self.server.directory = self.folder
        self.server.environment = lambda: {name: self.environment[name] for name in ("PATH",
                                                                                      "HOME")}
        self.server._begin()
        until(self.server.answers, f"{command} answers")


def rotel_agent():
    found = [*VENV.glob("lib/python3*/site-packages/rotel/rotel-agent")]
    return found[0] if found else find("rotel-agent")


def once(text, number=0):
    """Each line of a store is there once."""
    found = re.findall(rf"recipe {number} line (\d{{4}})", text)
    same_lines("what the server has", found, [f"{line:04}" for line in range(LINES)])


def uploads(title):
    return [line for line in page.commands(title) if "cordwood upload" in line]


# ── Services that are not available here: fakes ──

def of_fake(kind, **settings):
    def case(place):
        fake = Fake(place, kind=kind, settings={"token": "token", **settings}).start()
        shell = Shell(place, fake)
        for number, command in enumerate(uploads(kind)):
            store = shell.fill(number)
            shell.run(command)
            store.is_empty()
            once(fake.stored(), number)
    return case


# ── Real servers, and our own ──

def http(place):
    """Any server: reads back the body, by the name under which it was sent."""
    server = Recorder(place).start()
    shell = Shell(place, server)
    for number, command in enumerate(uploads("http")):
        store = shell.fill(number)
        shell.run(command)
        store.is_empty()
        for request in server.requests():
            identity = request["headers"]["idempotency-key"].strip('"')
            equal("path", request["path"], f"/in/{identity}.ndjson")
            equal("condition", request["headers"]["if-none-match"], "*")
        bodies = [decoded(server.body(request), "gzip") for request in server.taken()]
        once(b"".join(bodies).decode(), number)


EVENTS = '''
import cordwood, sys
with cordwood.open(sys.argv[1]) as engine:
    with engine.transaction(17) as one:
        for line in range(int(sys.argv[3])):
            one.event(line, error_code="x", error_description="recipe %s line %04d"
                      % (sys.argv[2], line))
'''


def transactions(place):
    """A store of events instead of lines."""
    fake = Fake(place, kind="transactions", settings={
        "content_type": "application/vnd.example.apptxnset-v1+json;charset=UTF-8",
        "path": "/apptxns"}).start()
    shell = Shell(place, fake)
    for number, command in enumerate(uploads("transactions")):
        store = shell.fill(number)
        subprocess.run([sys.executable, "-c", EVENTS, store.directory, str(number), str(LINES)],
                       check=True, env={**os.environ, "CORDWOOD_LIBRARY": LIBRARY,
                                        "PYTHONPATH": str(ROOT / "bindings/python/src")})
        shell.run(command)
        # The lines beside the events were sent to no target: they stay.
        equal("what waits", [state for state in store.states() if not state.startswith("sent")],
              [])
        equal("the lines", len(store.archives()) > 0, True)
        once(fake.stored(), number)


def collector(place):
    server = Collector(place)
    shell = Shell(place, server)
    for command in page.commands("collector"):
        if "upload" in command:
            store = shell.fill()
        shell.run(command)
    store.is_empty()
    once(shell.run("cordwood cat in"))


def s3(place):
    server = Rclone(place)
    shell = Shell(place, server)
    for command in page.commands("s3"):
        if "upload" in command:
            store = shell.fill()
        shell.run(command)
        if "upload" not in command:
            continue
        store.is_empty()
        bucket = shell.folder / "bucket-root/logs"
        keys = [path for path in bucket.rglob("*") if path.is_file()]
        for path in keys:
            if path.suffix == ".cwa":
                once(shell.run(f"cordwood cat '{path}'"))
            else:
                holds(re.fullmatch(r"dt=\d{4}-\d\d-\d\d/hour=\d\d/[0-9a-f-]+\.ndjson\.zst",
                                   str(path.relative_to(bucket))), f"key {path}")
                once(decoded(path.read_bytes(), "zstd").decode())
            path.unlink()
        holds(keys, "the bucket is empty")


def otlp(place):
    server = Rotel(place)
    server.configure()
    shell = Shell(place, server)
    commands = page.commands("otlp")
    for command in commands:
        if "upload" in command or "export" in command:
            store = shell.fill()
        shell.run(command, f"--otlp-grpc-endpoint 127.0.0.1:{server.grpc} "
                           "--debug-log-verbosity detailed")
        if "upload" in command:
            store.is_empty()
            once(server.said())
    holds(any("export" in command for command in commands), "nothing is exported")
    once((shell.folder / "logs.jsonl").read_text())


def encrypted(place):
    """keygen, an upload of encrypted archives, and one of their records with the key."""
    central, plain = Collector(place).start(), Recorder(place).start()
    shell = Shell(place, central)
    for command in page.commands("Encrypted archives"):
        if "upload" in command:
            store = shell.fill()
        if "--identity" in command:
            shell.run(f"cordwood archive logs --encrypt-to {shell.key}")
            holds(b"age-encryption.org/v1" in store.archives()[0].read_bytes(),
                  "the archive is not encrypted")
            shell.server = plain
        shell.run(command)
        if "keygen" in command:
            shell.key = re.search(r"age1\w+", (shell.folder / "key.txt").read_text())[0]
    store.is_empty()
    once(shell.run(f"cordwood cat '{central.central}' --identity key.txt"))
    once(b"".join(plain.body(request) for request in plain.taken()).decode())


def clickhouse(place):
    server = ClickHouse(place).start()
    server.query(page.table())
    shell = Shell(place, server, secret="se+cret")
    for number, command in enumerate(uploads("clickhouse")):
        store = shell.fill(number)
        shell.run(command)
        store.is_empty()
        once(server.query("SELECT message FROM logs FORMAT TSV"), number)


def fleets(place):
    """The worked example: the table, three hosts, and the queries."""
    server = ClickHouse(place).start()
    answers = []
    for command in page.commands("Fleets"):
        shell = Shell(place, server, secret="se+cret")
        (shell.folder / "logs.sql").write_text(page.table())
        if "upload" not in command:
            answers.append(shell.run(command))
            continue
        for number in range(3):
            shell.environment["HOSTNAME"] = f"web-{number}"
            store = shell.fill(number)
            shell.run(command)
            store.is_empty()
    _, by_host, found = answers
    for number in range(3):
        holds(re.search(rf"web-{number}\W+WARN\W+{LINES}\b", by_host),
              f"web-{number} is not in {by_host}")
    equal("lines that hold what was asked for", len(found.splitlines()), 3)


CASES = {
    "sap": of_fake("sap"), "loggly": of_fake("loggly"), "loki": of_fake("loki", tenant="acme"),
    "elasticsearch": of_fake("elasticsearch"), "splunk": of_fake("splunk"),
    "datadog": of_fake("datadog"), "http": http, "collector": collector, "s3": s3, "otlp": otlp,
    "encrypted": encrypted, "clickhouse": clickhouse, "fleets": fleets,
    "transactions": transactions,
}
