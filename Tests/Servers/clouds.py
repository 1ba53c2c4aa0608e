"""Stores and receivers for the tests: S3 by rclone, moto and SeaweedFS (all check signatures), OTLP
by rotel, ClickHouse, and our own collector. Each can be asked what it stored."""

import base64
import contextlib
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from cases import json_lines
from frame import (CORDWOOD, ROOT, Failed, Server, equal, find, free_port, plain_environment,
                   until, venv_python)

ACCESS_KEY, SECRET_KEY = "AKIDTESTSONLY", "a+secret/of=tests"


def signed(server, method, path, *more):
    """curl's result of a request with the server's keys."""
    return subprocess.run(
        [find("curl"), "-sS", "--fail-with-body", "-X", method, "--max-time", "30",
         "--aws-sigv4", f"aws:amz:{server.region}:s3",
         "--user", f"{server.access_key}:{server.secret_key}",
         "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", *more, f"{server.url}/{path}"],
        capture_output=True, text=True, check=False, env=plain_environment())


def boto(program, *arguments):
    """The output of a program with boto3."""
    environment = plain_environment(AWS_EC2_METADATA_DISABLED="true")
    done = subprocess.run([venv_python(), "-c", program, *arguments], capture_output=True,
                          text=True, check=False, env=environment)
    if done.returncode:
        raise Failed(f"boto3: {done.stderr[-400:]}")
    return done.stdout


def boto_says(server, program, *arguments):
    """The same with the server's keys as `s3` and its `bucket`. Returns the output as JSON."""
    head = """
import base64, json, sys, boto3
from botocore.config import Config
s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1",
                  aws_access_key_id=sys.argv[2], aws_secret_access_key=sys.argv[3],
                  config=Config(s3={"addressing_style": "path"}))
bucket = sys.argv[4]
"""
    return json.loads(boto(head + program, server.url, server.access_key, server.secret_key,
                           server.bucket, *arguments) or "null")


class S3(Server):
    """A server of buckets."""

    region = "us-east-1"
    bucket = "logs"
    access_key, secret_key = ACCESS_KEY, SECRET_KEY
    LIST = """
found = {}
for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
    for entry in page.get("Contents", []):
        body = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
        found[entry["Key"]] = base64.b64encode(body).decode()
print(json.dumps(found))
"""

    def make_bucket(self, name):
        done = signed(self, "PUT", name)
        equal(f"making bucket {name}: {done.stdout} {done.stderr}", done.returncode, 0)

    def objects(self):
        """Contents by key."""
        return {key: base64.b64decode(body) for key, body in boto_says(self, self.LIST).items()}


class Rclone(S3):
    """`rclone serve s3`: a bucket is a folder. Further buckets are made by requests: rclone caches
    folders in memory. A folder made behind its back would need `--dir-cache-time 0s`, with which a
    PUT can look for its own folder for minutes."""

    name = "rclone"

    def configure(self):
        (self.directory / "data/logs").mkdir(parents=True, exist_ok=True)

    def command(self):
        return [find("rclone"), "serve", "s3", "--auth-key", f"{ACCESS_KEY},{SECRET_KEY}",
                "--addr", f"127.0.0.1:{self.port}", "--config", self.directory / "none.conf",
                self.directory / "data"]

    def objects(self):
        root = self.directory / "data" / self.bucket
        return {str(path.relative_to(root)): path.read_bytes()
                for path in root.rglob("*") if path.is_file()}


class Moto(S3):
    """moto's S3. It checks signatures only after some initial unsigned actions, which make a user
    with a key, its rights and a bucket."""

    name = "moto"
    SETUP = """
import json, sys, boto3
from botocore.config import Config
url = sys.argv[1]
def client(service, key="none", secret="none"):
    return boto3.client(service, endpoint_url=url, region_name="us-east-1",
                        aws_access_key_id=key, aws_secret_access_key=secret,
                        config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}))
iam = client("iam")
iam.create_user(UserName="tests")
allow = {"Version": "2012-10-17",
         "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="tests", PolicyName="all", PolicyDocument=json.dumps(allow))
client("s3").create_bucket(Bucket="logs")
key = iam.create_access_key(UserName="tests")["AccessKey"]
print(json.dumps([key["AccessKeyId"], key["SecretAccessKey"]]))
"""

    def command(self):
        return [venv_python(), "-m", "moto.server", "-H", "127.0.0.1", "-p", self.port]

    def environment(self):
        return {"INITIAL_NO_AUTH_ACTION_COUNT": "4", "PYTHONUNBUFFERED": "1"}

    def start(self):
        super().start()
        self.access_key, self.secret_key = json.loads(boto(self.SETUP, self.url))
        return self


class SeaweedFS(S3):
    """`weed server -s3`: a master, a volume server, a filer and S3 in front of them, in one
    process. It answers long before it can store: it is ready when it accepts an object."""

    name = "seaweedfs"
    stop_signal = signal.SIGKILL

    def configure(self):
        (self.directory / "data").mkdir(exist_ok=True)
        keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
        (self.directory / "identities.json").write_text(json.dumps({"identities": [
            {"name": "tests", "credentials": [keys], "actions": ["Admin"]}]}))

    def command(self):
        ports = [f"-{part}={free_port()}" for part in (
            "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port",
            "filer.port.grpc", "s3.port.grpc")]
        return [find("weed"), "server", "-ip=127.0.0.1", f"-dir={self.directory}/data",
                "-volume.max=100", "-master.volumeSizeLimitMB=64", "-master.telemetry=false", "-s3",
                f"-s3.port={self.port}", f"-s3.config={self.directory}/identities.json", *ports]

    def answers(self):
        return (super().answers() and signed(self, "PUT", "ready").returncode == 0
                and signed(self, "PUT", "ready/object", "--data-raw", "x").returncode == 0)


class Rotel(Server):
    """An OTLP receiver that prints what it receives."""

    name = "rotel"

    def configure(self):
        self.grpc = free_port()

    def command(self):
        python = Path(venv_python())
        found = [*python.parent.parent.glob("lib/python3*/site-packages/rotel/rotel-agent")]
        program = found[0] if found else find("rotel-agent")
        return [program, "start", "--otlp-http-endpoint", f"127.0.0.1:{self.port}",
                "--otlp-grpc-endpoint", f"127.0.0.1:{self.grpc}", "--exporter", "blackhole",
                "--debug-log", "logs", "--debug-log-verbosity", "detailed"]

    def seen(self):
        return self.said()


class ClickHouse(Server):
    """The server with only its HTTP interface, and a user without a password."""

    name = "clickhouse"
    stop_signal = signal.SIGKILL

    def configure(self):
        here = self.directory
        for name in ("data", "temporary", "files", "schemas"):
            (here / name).mkdir(exist_ok=True)
        (here / "users.xml").write_text("""<yandex>
  <profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles>
  <users><default><password></password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></default>
    <writer><password>se+cret</password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></writer></users>
  <quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors>
    <result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time>
  </interval></default></quotas>
</yandex>""")
        (here / "config.xml").write_text(f"""<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host><http_port>{self.port}</http_port>
  <tcp_port>{free_port()}</tcp_port>
  <path>{here}/data/</path><tmp_path>{here}/temporary/</tmp_path>
  <user_files_path>{here}/files/</user_files_path>
  <format_schema_path>{here}/schemas/</format_schema_path>
  <users_config>{here}/users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
  <mark_cache_size>100000000</mark_cache_size><timezone>UTC</timezone>
</yandex>""")

    def command(self):
        return [find("clickhouse-server"), f"--config-file={self.directory}/config.xml"]

    def answers(self):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(self.url + "/ping", timeout=2) as reply:
                return reply.status == 200
        return False

    def query(self, text, data=None):
        """The text of the answer."""
        url = self.url + "/?" + urllib.parse.urlencode({"query": text})
        try:
            with urllib.request.urlopen(url, data=data or b"", timeout=30) as reply:
                return reply.read().decode()
        except urllib.error.HTTPError as error:
            raise Failed(f"ClickHouse: {error.read().decode()[:300]}") from error

    def rows(self, text):
        return [json.loads(line) for line in
                self.query(text + " FORMAT JSONEachRow").splitlines()]


class Collector(Server):
    """`cordwood collect`. `central` is its store."""

    name = "collector"

    def configure(self):
        self.central = self.directory / "central"

    def command(self):
        token = ["--token", self.options["token"]] if self.options.get("token") else []
        return [CORDWOOD, "collect", "--listen", f"127.0.0.1:{self.port}", "--directory",
                self.central, *token, *self.options.get("more", ())]

    def answers(self):
        return "listening on" in self.said() and super().answers()

    def archives(self):
        """Contents by file name."""
        return {path.name: path.read_bytes() for path in (self.central / "archives").glob("*.cwa")}


class Fake(Server):
    """One of Tests/TestSupport/fakes; `kind` and its `settings` are options."""

    name = "fake"

    def command(self):
        return [sys.executable, ROOT / "Tests/TestSupport/fakes/server.py", self.directory,
                self.options["kind"], json.dumps(self.options.get("settings", {}))]

    def start(self):
        return begin_with_port(self)

    def stored(self):
        """What it has stored, one row of JSON per line."""
        path = self.directory / "stored.jsonl"
        return path.read_text(encoding="utf-8") if path.exists() else ""


def begin_with_port(server):
    """Starts a server that chooses its port itself and prints it first."""
    server.configure()
    server._begin()
    until(lambda: server.said().strip() or server.process.poll() is not None, "the server's port")
    server.port = int(server.said().split()[0])
    return server


class Recorder(Server):
    """Tests/TestSupport/fault_server.py: gives scripted answers, and keeps the requests."""

    name = "recorder"

    def configure(self):
        self.kept = self.directory / "kept"
        self.kept.mkdir(exist_ok=True)

    def command(self):
        return [sys.executable, ROOT / "Tests/TestSupport/fault_server.py", self.kept,
                json.dumps(self.options.get("answers", [])), *self.options.get("arguments", [])]

    def start(self):
        return begin_with_port(self)

    def script(self, answers=(), **rules):
        """Discards earlier requests, and answers in this way from now on."""
        self.count = getattr(self, "count", 0) + 1
        self.kept = self.directory / f"kept-{self.count}"
        words = {"directory": str(self.kept), "answers": list(answers), "rules": rules}
        request = urllib.request.Request(self.url + "/_script", json.dumps(words).encode(),
                                         method="PUT")
        urllib.request.urlopen(request, timeout=10).close()
        return self

    def requests(self):
        return sorted(json_lines(self.kept / "requests.jsonl"),
                      key=lambda request: request["number"])

    def taken(self):
        """The requests that were answered 2xx."""
        return [request for request in self.requests() if 200 <= request["status"] < 300]

    def body(self, request):
        path = self.kept / f"body-{request['number']}"
        return path.read_bytes() if path.exists() else None

    def stored(self):
        path = self.kept / "stored.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def documents(self):
        """The documents of the bulk interface, by id."""
        path = self.kept / "documents.json"
        return json.loads(path.read_text()) if path.exists() else {}
