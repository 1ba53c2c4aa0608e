"""Programs with more rights than their caller, who chooses their environment: hosts in C, the
command line and Python obey nothing in it. Cases of run.py."""

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import threading
from pathlib import Path

from cases import Skipped, equal, holds
from owners import AS_USER, USER, needs, own

ROOT = Path(__file__).resolve().parent.parent.parent
GROUP = 4712
# <linux/capability.h>: revision 2, effective; CAP_NET_BIND_SERVICE, which no case needs.
CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)


@contextlib.contextmanager
def listening():
    """A loopback port that answers nothing, and the connections that came to it."""
    came, server = [], socket.create_server(("127.0.0.1", 0))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                peer, _ = server.accept()
                peer.close()
                came.append(peer)
    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}", came
    finally:
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.close()


def given(source, path, way):
    """A copy of a program with those rights."""
    shutil.copy(source, path)
    os.chown(path, 0, GROUP)
    path.chmod({"set-user-ID": 0o4755, "set-group-ID": 0o2755}.get(way, 0o755))
    if way == "capability":
        try:
            os.setxattr(path, "security.capability", CAPABILITY)
        except OSError as error:
            raise Skipped(f"no capabilities of files here: {error}") from error
    return path


def chosen(bench, stranger):
    """What the caller wishes: everything in its own directory, or sent to itself."""
    own_place = bench.directory / "callers"
    if not own_place.exists():
        own_place.mkdir()
        own_place.chmod(0o777)
    wishes = {"CORDWOOD_TARGET": f"http://{stranger}", "CORDWOOD_DIR": own_place / "made",
              "CORDWOOD_LEVEL": "error", "CORDWOOD_CONSOLE": "json", "CORDWOOD_CACHE": "",
              "XDG_CACHE_HOME": own_place, "HOME": own_place, "TMPDIR": own_place,
              "SSLKEYLOGFILE": own_place / "keys", "no_proxy": "",
              **{name: f"http://{stranger}" for name in ("http_proxy", "https_proxy", "ALL_PROXY")}}
    return own_place, {name: str(value) for name, value in wishes.items()}


def said(bench):
    return sorted(record["message"] for record in bench.records()
                  if record["logger"] == "privileged")


def secure(text):
    if text.startswith("secure 0"):
        raise Skipped("the file system gives no rights (nosuid)")


def host(way):
    def body(bench):
        needs()
        own(bench)
        if way == "set-user-ID":
            os.chown(bench.store, 0, 0)
        program = given(bench.programs / "privileged", bench.directory / "host", way)
        with listening() as (server, asked), listening() as (stranger, misled):
            place, wishes = chosen(bench, stranger)

            def run(*words):
                return bench.finish([*AS_USER, program, *words], environment=wishes)
            text = run(bench.store, f"http://{server}", f"https://{server}")
            if way:
                secure(text)
                equal("what the host says", text, "secure 1, CW_OK: \n")
                equal("the stranger's visitors", len(misled), 0)
                holds(asked, "nobody asked the host's server")
                equal("records", said(bench), ["error", "info"])
                text = run("none", f"http://{server}")
                holds(text.startswith("secure 1, CW_E_NO_DIRECTORY: "), text)
                equal("what the caller got", list(place.iterdir()), [])
            else:
                holds(misled and not asked, "the host has not obeyed its own environment")
                equal("records", said(bench), ["error"])
                run("none", f"http://{server}")
                holds((place / "made").is_dir(), "CORDWOOD_DIR was not read")
    return body


def command(bench):
    """Root's `cordwood`, as another user starts it. Started by root, it is not privileged."""
    needs()
    bench.run("many", "brief", 2, codes=(-9,))
    bench.archive()
    program = given(bench.command, bench.directory / "cordwood", "set-user-ID")
    with listening() as (server, asked), listening() as (stranger, misled):
        place, wishes = chosen(bench, stranger)
        wishes["CORDWOOD_DIR"] = str(bench.store)
        for way, privileged in ((AS_USER, True), ((), False)):
            asked.clear()
            misled.clear()
            for verb, code in (["cat"], 2 if privileged else 0), (["cat", bench.store], 0):
                bench.finish([*way, program, *verb], codes=(code,), environment=wishes)
            bench.finish([*way, program, "upload", bench.store, "--to", f"https://{server}",
                          "--timeout", "5"], codes=(5,), environment=wishes)
            if privileged:
                holds(asked and not misled, f"{len(asked)}, {len(misled)} visitors")
                equal("what the caller got", list(place.iterdir()), [])
            else:
                holds(misled and not asked, "the proxy of the environment was not asked")


def python(bench):
    """An interpreter with a capability loads the package's own library."""
    needs()
    home = Path("/usr")  # which every user may read
    if not (home / "bin/python3").exists():
        raise Skipped("no /usr/bin/python3")
    package = bench.directory / "cordwood"
    shutil.copytree(ROOT / "bindings/python/src/cordwood", package)
    shutil.copy(bench.environment["CORDWOOD_LIBRARY"], package / "libcordwood.so")
    own(bench)
    program = given(home / "bin/python3", bench.directory / "python", "capability")
    code = ("import ctypes; print('secure', ctypes.CDLL(None).getauxval(23), flush=True)\n"
            "import cordwood; print('loaded')")
    places = {"PYTHONPATH": str(bench.directory), "PYTHONHOME": str(home),
              "PYTHONDONTWRITEBYTECODE": "1", "CORDWOOD_LIBRARY": "/nowhere.so"}
    for way, found in ((AS_USER, "loaded"), ((), "/nowhere.so")):
        done = subprocess.run([*way, program, "-c", code], env=places, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if way:
            secure(done.stdout)
        holds(found in done.stdout, done.stdout)


CASES = {
    "privileged_host": host("set-user-ID"),
    "privileged_by_group": host("set-group-ID"),
    "privileged_by_capability": host("capability"),
    "unprivileged_host": host(None),
    "privileged_command": command,
    "privileged_python": python,
}
