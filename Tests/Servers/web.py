"""Web servers and proxies for the tests: nginx, Apache, haproxy, tinyproxy, caddy and mitmproxy.
Each writes its own configuration and can be asked what it stored or saw."""

import os
import signal
from pathlib import Path

from cases import json_lines
from frame import Certificates, Server, Skipped, find, free_port


class Nginx(Server):
    """PUT below /dav/; POST of bodies into files below /post; /small refuses over 2 KiB; /limited
    lets one request a second through; /discard drops bodies; redirects. tls: with a client
    certificate if `verify` is set. Elsewhere 404 or, after `passes`, that server's answer."""

    name = "nginx"

    def configure(self):
        self.sink = free_port()
        for name in ("dav", "bodies", "temporary"):
            (self.directory / name).mkdir(exist_ok=True)
        tls = ""
        if self.options.get("tls"):
            made = Certificates(self.place)
            tls = (f"ssl_certificate {made['server.pem']}; "
                   f"ssl_certificate_key {made['server.key']};")
            if self.options.get("verify"):
                tls += f" ssl_client_certificate {made.authority}; ssl_verify_client on;"
        listen = f"127.0.0.1:{self.port}" + (" ssl http2" if tls else "")
        behind = self.options.get("behind")
        other = f"location / {{ proxy_pass {behind}; }}" if behind else ""
        user = "user root;" if os.geteuid() == 0 else ""
        here = self.directory
        (here / "nginx.conf").write_text(f"""
{user}
daemon off; worker_processes {self.options.get("workers", 1)}; pid {here}/pid;
error_log {here}/errors.txt warn;
events {{ worker_connections 512; }}
http {{
  client_body_temp_path {here}/bodies; proxy_temp_path {here}/temporary;
  fastcgi_temp_path {here}/temporary; uwsgi_temp_path {here}/temporary;
  scgi_temp_path {here}/temporary;
  log_format seen escape=json '{{"status":$status,"method":"$request_method",'
    '"path":"$request_uri","id":"$http_idempotency_key","encoding":"$http_content_encoding",'
    '"type":"$content_type","length":"$http_content_length","protocol":"$server_protocol",'
    '"file":"$request_body_file","client":"$ssl_client_s_dn","expect":"$http_expect"}}';
  access_log {here}/seen.jsonl seen;
  client_max_body_size 0;
  limit_req_zone $server_name zone=second:1m rate=1r/s;
  server {{
    listen {listen}; server_name localhost; {tls}
    location /dav/ {{ root {here}; dav_methods PUT; create_full_put_path on; }}
    location /post {{
      client_body_in_file_only on; client_body_buffer_size 64k;
      proxy_pass http://127.0.0.1:{self.sink}; proxy_pass_request_body off;
      proxy_set_header Content-Length "";
    }}
    location /small {{
      client_max_body_size 2k; client_body_in_file_only on;
      proxy_pass http://127.0.0.1:{self.sink}; proxy_pass_request_body off;
      proxy_set_header Content-Length "";
    }}
    location /limited {{
      limit_req zone=second; limit_req_status 429; error_page 429 = @wait;
      client_body_in_file_only on;
      proxy_pass http://127.0.0.1:{self.sink}; proxy_pass_request_body off;
      proxy_set_header Content-Length "";
    }}
    location @wait {{ add_header Retry-After 1 always; return 429; }}
    location /moved302 {{ return 302 /post; }}
    location /moved307 {{ return 307 /post; }}
    location /moved308 {{ return 308 /post; }}
    location /elsewhere307 {{ return 307 http://127.0.0.1:1/post; }}
    location /discard {{ return 204; }}
    {other}
  }}
  server {{ listen 127.0.0.1:{self.sink}; access_log off; location / {{ return 204; }} }}
}}
""")

    def command(self):
        return [find("nginx"), "-p", self.directory, "-c", self.directory / "nginx.conf"]

    def passes(self, url):
        """From now on passes requests on, as an ingress does once its service is deployed."""
        self.options["behind"] = url
        self.configure()
        self.process.send_signal(signal.SIGHUP)

    @property
    def url(self):
        scheme = "https" if self.options.get("tls") else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    def seen(self, path=""):
        """Its own log: one entry per request, in the order of their ends."""
        return [entry for entry in json_lines(self.directory / "seen.jsonl")
                if entry["path"].startswith(path)]

    def bodies(self, path="/post"):
        """(id, encoding, bytes) of the bodies accepted there."""
        return [(e["id"], e["encoding"], Path(e["file"]).read_bytes()) for e in self.seen(path)
                if e["status"] == 204 and e["file"]]

    def put(self):
        """The files below /dav/, by path."""
        root = self.directory / "dav"
        return {str(path.relative_to(root)): path.read_bytes()
                for path in root.rglob("*") if path.is_file()}


class Apache(Server):
    """PUT below /dav/, with 412 for existing files if If-None-Match requests it; below /inflate/
    gzip bodies are decoded before they are stored."""

    name = "apache"
    MODULES = ("mpm_event", "authz_core", "dav", "dav_fs", "deflate", "filter", "headers", "mime",
               "dir", "setenvif", "unixd")

    def configure(self):
        here = self.directory
        root = here / "www"
        for name in ("dav", "inflate"):
            (root / name).mkdir(parents=True, exist_ok=True)
            (root / name).chmod(0o777)
        modules = Path("/usr/lib/apache2/modules")
        loads = "\n".join(f"LoadModule {name}_module {modules}/mod_{name}.so"
                          for name in self.MODULES if (modules / f"mod_{name}.so").exists())
        user = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
        (here / "httpd.conf").write_text(f"""
ServerRoot "{here}"
ServerName localhost
Listen 127.0.0.1:{self.port}
PidFile {here}/pid
Mutex file:{here}
DefaultRuntimeDir {here}
ErrorLog {here}/errors.txt
LogLevel warn
{loads}
{user}
TypesConfig /dev/null
DocumentRoot "{root}"
DavLockDB "{here}/locks"
<Directory "{root}">
  Require all granted
  Dav On
</Directory>
<Location /inflate>
  SetInputFilter DEFLATE
</Location>
""")

    def command(self):
        if not Path("/usr/lib/apache2/modules/mod_dav.so").exists():
            raise Skipped("apache2-bin is not installed")
        return [find("apache2"), "-DFOREGROUND", "-f", self.directory / "httpd.conf"]

    stop_signal = signal.SIGKILL

    def put(self):
        root = self.directory / "www"
        return {str(path.relative_to(root)): path.read_bytes()
                for path in root.rglob("*") if path.is_file() and ".DAV" not in path.parts}


class Haproxy(Server):
    """In front of another server (`upstream`, a port): more than `rate` requests in two seconds get
    429 with Retry-After, and `percent` of the rest a 503."""

    name = "haproxy"

    def configure(self):
        rate, percent = self.options.get("rate", 0), self.options.get("percent", 0)
        limit = (f"http-request return status 429 hdr Retry-After 1 if {{ sc_http_req_rate(0) gt "
                 f"{rate} }}" if rate else "")
        chance = (f"http-request return status 503 if {{ rand(100) lt {percent} }}" if percent
                  else "")
        (self.directory / "haproxy.cfg").write_text(f"""
global
  maxconn 200
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend front
  bind 127.0.0.1:{self.port}
  stick-table type ip size 1k expire 30s store http_req_rate(2s)
  http-request track-sc0 src
  {limit}
  {chance}
  default_backend behind
backend behind
  server one 127.0.0.1:{self.options["upstream"]}
""")

    def command(self):
        return [find("haproxy"), "-db", "-f", self.directory / "haproxy.cfg"]


class Tinyproxy(Server):
    """A proxy that requires user and password, and allows CONNECT to every port."""

    name = "tinyproxy"
    USER, PASSWORD = "reader", "secret4proxy"

    def configure(self):
        (self.directory / "tinyproxy.conf").write_text(f"""
Port {self.port}
Listen 127.0.0.1
Timeout 60
MaxClients 50
BasicAuth {self.USER} {self.PASSWORD}
LogFile "{self.directory}/seen.txt"
LogLevel Connect
""")

    def command(self):
        return [find("tinyproxy"), "-d", "-c", self.directory / "tinyproxy.conf"]

    def seen(self):
        path = self.directory / "seen.txt"
        return path.read_text(errors="replace") if path.exists() else ""


class Caddy(Server):
    """TLS with its own authority and HTTP/2, in front of another server (`upstream`)."""

    name = "caddy"

    def configure(self):
        (self.directory / "Caddyfile").write_text(f"""
{{
  admin off
  skip_install_trust
  auto_https disable_redirects
  storage file_system {self.directory}/storage
  default_sni localhost
}}
https://localhost:{self.port}, https://127.0.0.1:{self.port} {{
  tls internal
  log {{
    output file {self.directory}/seen.jsonl
  }}
  reverse_proxy 127.0.0.1:{self.options["upstream"]}
}}
""")

    def command(self):
        return [find("caddy"), "run", "--config", self.directory / "Caddyfile", "--adapter",
                "caddyfile"]

    def environment(self):
        return {"HOME": str(self.directory), "XDG_DATA_HOME": str(self.directory / "data"),
                "XDG_CONFIG_HOME": str(self.directory / "config")}

    @property
    def url(self):
        return f"https://localhost:{self.port}"

    @property
    def authority(self):
        return self.directory / "storage/pki/authorities/local/root.crt"

    def answers(self):
        return self.authority.exists() and super().answers()

    def seen(self):
        return [entry["request"] | {"status": entry["status"]}
                for entry in json_lines(self.directory / "seen.jsonl") if "request" in entry]


class Mitmproxy(Server):
    """Between client and another server (`upstream`). `script`: the fate of the requests, one word
    each, in order, the rest pass: pass, 503 (with Retry-After: 1), late (answers two seconds
    later), kill (before the server has it), lose (the server has stored it, the client is cut)."""

    name = "mitmproxy"

    def configure(self):
        script = self.options["script"]
        (self.directory / "faults.py").write_text(f'''
import asyncio
from mitmproxy import http
script = {list(script)!r}
count = 0

async def request(flow):
    global count
    what = script[count] if count < len(script) else "pass"
    count += 1
    flow.metadata["what"] = what
    print("fault", count, what, flush=True)
    if what == "503":
        flow.response = http.Response.make(503, b"", {{"Retry-After": "1"}})
    elif what == "kill":
        flow.kill()
    elif what == "late":
        await asyncio.sleep(2)

def response(flow):
    if flow.metadata.get("what") == "lose":
        flow.kill()
''')

    def command(self):
        return [find("mitmdump"), "--mode", f"reverse:http://127.0.0.1:{self.options['upstream']}",
                "--listen-host", "127.0.0.1", "-p", self.port, "-s", self.directory / "faults.py",
                "--set", f"confdir={self.directory}", "--set", "stream_large_bodies=1g"]

    def faults(self):
        return [line.split()[2] for line in self.said().splitlines() if line.startswith("fault ")]
