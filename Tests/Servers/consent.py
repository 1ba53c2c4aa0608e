"""B-SAP-10. With consent pending or denied no connection is made and no byte is sent, as counted on
the listener itself. After a denial the waiting archives are removed, with one callback each."""

import re
import threading

from frame import Server, equal, full, holds, until
from looks import looks
from loopback import Listener
from store import Host, Store


class Counter(Server):
    """Accepts, counts connections and bytes, answers 200 to each complete request."""

    name = "counter"

    def start(self):
        self.connections = self.bytes = 0
        self.stopping, self.answering = threading.Event(), threading.Event()
        self.answering.set()
        self.listener = Listener(self._serve)
        self.port = self.listener.port
        return self

    def stop(self):
        self.stopping.set()
        self.answering.set()
        self.listener.close()

    def _serve(self, client):
        self.connections += 1
        came, whole = b"", None
        while whole is None or len(came) < whole:
            data = client.recv(1 << 16)
            if not data:
                return
            self.bytes += len(data)
            came += data
            head, end, _ = came.partition(b"\r\n\r\n")
            if end and whole is None:
                length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
                whole = len(head) + len(end) + int(length[1] if length else 0)
        self.stopping.wait(0.2)  # an attempt takes a while
        self.answering.wait()
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def rolls(host, store, count=5):
    """Archives, after each of which the uploader looks for work, and one look from its beginning to
    its end."""
    for number in range(count):
        host("write", messages=[f"later {number}"])
        host("roll")
        host("wait")
    # A look that may not send opens `store` twice, and the engine once when consent has changed.
    looks(store.directory, 4)
    return count


def upload_says_consent(host):
    answer = host("upload", timeout=10)
    equal("status of an explicit upload", answer["status"], "CW_E_CONSENT")


def denied(place):
    """Denied while five archives wait: they are removed, each reported once. Later ones stay and
    are not sent. Granted again, what stayed is sent."""
    listener = Counter(place).start()
    store = Store(place)
    with Host(place, store) as host:
        host.open(consent="pending", upload_interval_s=1)
        host.target(f"http://127.0.0.1:{listener.port}/logs", kind="http", format="ndjson",
                    name="t")
        for number in range(5):
            host("write", messages=[f"record {number}"])
            host("roll")
            host("wait")
        waiting = [path.name for path in store.archives()]
        holds(len(waiting) >= 5, f"{len(waiting)} archives wait")
        upload_says_consent(host)
        host("consent", word="denied")
        # An archive that the engine has just locked is removed a moment later.
        holds(host("until", word="completed", count=len(waiting)), "no callback")
        equal("archives after the denial", [p.name for p in store.archives()
                                            if p.name in waiting], [])
        after = rolls(host, store)
        events = host("events")
        for name in waiting:
            equal(f"callbacks completed of {name}",
                  [e[2:] for e in events if e[0] == "completed" and e[1] == name], [[-18, 0]])
            equal(f"callbacks removed of {name}",
                  [e[2] for e in events if e[0] == "removed" and e[1] == name], ["consent"])
        equal("attempts", [e for e in events if e[0] == "attempting"], [])
        kept = store.archives()
        holds(len(kept) >= after, f"{len(kept)} archives stay of {after} rolls after the denial")
        upload_says_consent(host)
        equal("connections, bytes", (listener.connections, listener.bytes), (0, 0))
        host("consent", word="granted")
        answer = host("upload", timeout=60)
        equal("status once granted", answer["status"], "CW_OK")
        equal("archives once granted", store.archives(), [])
        holds(listener.connections > 0 and listener.bytes > 0, "the listener counts nothing")
        host("close")
    place.note(f"{len(waiting)} waiting archives gone, 0 connections, 0 bytes")


def pending(place):
    """Pending keeps everything and sends nothing, also over a restart and from the command line."""
    listener = Counter(place).start()
    store = Store(place)
    url = f"http://127.0.0.1:{listener.port}/logs"
    for start in range(2):
        with Host(place, store) as host:
            host.open(consent="pending" if start == 0 else "granted", upload_interval_s=1)
            host.target(url, kind="http", format="ndjson", name="t")
            host("write", messages=[f"record {start}"])
            rolls(host, store)
            upload_says_consent(host)
            equal("events", host("events"), [])
            host("close")
    done = store.upload(url, form="ndjson")
    holds(done.code != 0 and "consent" in done.complaint.lower(), f"the tool: {done}")
    equal("connections, bytes", (listener.connections, listener.bytes), (0, 0))
    holds(len(store.archives()) > 0, "no archive waits")
    equal("lines of the archives", len([line for line in store.lines() if b"record " in line]), 2)


@full
def denied_during_an_upload(place):
    """The answer is on its way when consent ends: that transfer may finish, no other begins."""
    listener = Counter(place).start()
    listener.answering.clear()
    store = Store(place)
    with Host(place, store) as host:
        host.open(upload_interval_s=1, consent="pending")
        host.target(f"http://127.0.0.1:{listener.port}/logs", kind="http", format="ndjson",
                    name="t")
        for number in range(12):
            host("write", messages=[f"record {number}"])
            host("roll")
            host("wait")
        host("consent", word="granted")
        # The first attempt, still without an answer, is the only one.
        until(lambda: listener.connections, "no attempt")
        host("consent", word="denied")
        listener.answering.set()
        rolls(host, store)
        equal("connections with those after the denial", listener.connections, 1)
        events = host("events")
        names = [event[1] for event in events if event[0] == "completed"]
        equal("archives told more than once", len(names), len(set(names)))
        host("close")


CASES = {case.__name__: case for case in (denied, pending, denied_during_an_upload)}
