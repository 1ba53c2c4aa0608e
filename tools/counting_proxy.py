"""Stands between uploader and collector and counts requests, so that the demo's attempts are those
that went over the wire, not those that either side claims. One thread a direction; plain HTTP/1.1
only."""

import re
import socket
import threading

REQUEST = re.compile(rb"(?:POST|PUT) /v1/archives[^ \r\n]* HTTP/1\.1\r\n")
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})[^\r\n]*\r\n")


class CountingProxy:
    """Listens on its own port; `upstream` may change while it runs (a restarted collector)."""

    def __init__(self):
        self.upstream = None
        self.attempts = 0
        self.statuses = {}
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.upstream))
            except OSError:
                client.close()
                continue
            for source, target, count in ((client, server, self._request),
                                          (server, client, self._answer)):
                threading.Thread(target=self._pump, args=(source, target, count),
                                 daemon=True).start()

    def _pump(self, source, target, count):
        tail = b""
        try:
            while True:
                data = source.recv(1 << 16)
                if not data:
                    break
                # The tail has no match in it, so none is counted twice.
                tail = count(tail + data)[-256:]
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _request(self, data):
        with self.lock:
            self.attempts += len(REQUEST.findall(data))
        return REQUEST.sub(b"", data)

    def _answer(self, data):
        for found in STATUS.finditer(data):
            status = int(found[1])
            with self.lock:
                self.statuses[status] = self.statuses.get(status, 0) + (status != 100)
        return STATUS.sub(b"", data)
