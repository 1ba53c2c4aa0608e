"""What the transport suite shares beyond Tests/TestSupport/sending.py: caddy, tinyproxy, a SOCKS
proxy and a TLS front in this process, and the certificates. No fixed sleeps: conditions are polled,
within a bound."""

import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

import certificates  # noqa: E402
import environments  # noqa: E402
from cases import json_lines  # noqa: E402
from loopback import Listener, free_port, pipe, until  # noqa: E402, F401
from sending import BUILD, ROOT, WORK, Scripted, StoreCase, cordwood  # noqa: E402, F401

VENV = environments.folder("servers")
CERTIFICATES = WORK / "certificates"


def certificate(name):
    if not CERTIFICATES.exists():
        certificates.make(CERTIFICATES)
    return str(CERTIFICATES / name)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def program(name):
    for place in (str(VENV / "bin"), "/usr/bin", "/usr/sbin", "/usr/local/bin"):
        if os.access(f"{place}/{name}", os.X_OK):
            return f"{place}/{name}"
    raise AssertionError(f"{name} is not installed; run.py installs it")


class Started:
    """The process of a real server, which is ready once its port answers."""

    def __init__(self, case, directory, port, *command):
        self.log = directory / "output"
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=output,
                                            env={**os.environ, "HOME": str(directory)})
        case.addCleanup(self.stop)
        until(lambda: listens(port) or self.process.poll() is not None, command[0])
        if self.process.poll() is not None:
            raise AssertionError(f"{command[0]} ended: {self.log.read_text()[-2000:]}")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Caddy(Started):
    """TLS and HTTP/2 with our certificate, and HTTP/2 without TLS, in front of another server."""

    def __init__(self, case, behind):
        directory = Path(tempfile.mkdtemp(dir=WORK))
        self.port, self.plain_port = free_port(), free_port()
        self.access = directory / "access.json"
        (directory / "Caddyfile").write_text(f"""{{
    admin off
    auto_https off
    persist_config off
    default_sni localhost
    servers {{
        protocols h1 h2 h2c
    }}
}}
(common) {{
    bind 127.0.0.1
    log {{
        output file {self.access}
        format json
    }}
    reverse_proxy 127.0.0.1:{behind.port}
}}
https://localhost:{self.port} {{
    tls {certificate("server-cert.pem")} {certificate("server-key.pem")}
    import common
}}
http://localhost:{self.plain_port} {{
    import common
}}
""")
        super().__init__(case, directory, self.port, program("caddy"), "run", "--config",
                         "Caddyfile", "--adapter", "caddyfile")

    @property
    def protocols(self):
        return [line["request"]["proto"] for line in json_lines(self.access)]


class Tinyproxy(Started):
    """A proxy that requires `proxy-user` and `proxy-secret`."""

    def __init__(self, case):
        directory = Path(tempfile.mkdtemp(dir=WORK))
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        (directory / "conf").write_text(f"""Port {self.port}
Listen 127.0.0.1
Allow 127.0.0.1
Timeout 60
LogLevel Connect
BasicAuth proxy-user proxy-secret
""")
        super().__init__(case, directory, self.port, program("tinyproxy"), "-d", "-c", "conf")

    @property
    def connects(self):
        """The targets of its CONNECT requests."""
        return re.findall(r"\): CONNECT (\S+) HTTP", self.log.read_text(errors="replace"))


class Front(Listener):
    """A listener of one test."""

    def __init__(self, case, serve):
        super().__init__(serve)
        case.addCleanup(self.close)


class TLSFront(Front):
    """TLS in front of a port without it: makes a proxy one that speaks https."""

    def __init__(self, case, port):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate("server.pem"))

        def handle(plain):
            with context.wrap_socket(plain, server_side=True) as secure:
                with socket.create_connection(("127.0.0.1", port)) as behind:
                    pipe(secure, behind)
        super().__init__(case, handle)


class Socks(Front):
    """SOCKS 5 with a user and a password. Resolves names itself, as `names` shows."""

    def __init__(self, case, user, password):
        self.names, self.refused = [], 0

        def exactly(connection, count):
            data = b""
            while len(data) < count:
                more = connection.recv(count - len(data))
                if not more:
                    raise OSError("ended")
                data += more
            return data

        def handle(connection):
            exactly(connection, exactly(connection, 2)[1])
            connection.sendall(b"\x05\x02")
            name = exactly(connection, exactly(connection, 2)[1])
            word = exactly(connection, exactly(connection, 1)[0])
            if (name, word) != (user.encode(), password.encode()):
                self.refused += 1
                connection.sendall(b"\x01\x01")
                return
            connection.sendall(b"\x01\x00")
            kind = exactly(connection, 4)[3]
            host = exactly(connection, exactly(connection, 1)[0] if kind == 3 else 4)
            port = int.from_bytes(exactly(connection, 2), "big")
            self.names.append(host.decode() if kind == 3 else socket.inet_ntoa(host))
            with socket.create_connection(("127.0.0.1", port)) as behind:
                connection.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
                pipe(connection, behind)
        super().__init__(case, handle)
