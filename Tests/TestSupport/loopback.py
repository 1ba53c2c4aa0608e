"""What suites with servers share: loopback ports, a listener that serves each connection in a
thread, a pipe between two connections, and waiting for a condition within a bound."""

import random
import socket
import threading

from cases import until  # noqa: F401


def free_port():
    """A free port. It is below the range of ports that the system assigns by itself: otherwise
    another process could get it before the server that it is meant for."""
    chance = random.SystemRandom()
    for _ in range(1000):
        port = chance.randrange(12_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise OSError("no port is free")


class Listener:
    """Calls serve(connection) in a thread for each connection, and closes it after that."""

    def __init__(self, serve):
        self.serve = serve
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def close(self):
        """The thread ends first: else it would accept on the next socket with that number."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join()
        self.socket.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection):
        """A client that leaves is not an error."""
        with connection:
            try:
                self.serve(connection)
            except OSError:
                pass


def pump(source, sink):
    """Passes what arrives to sink(data) until the end."""
    while data := source.recv(1 << 16):
        sink(data)


def pipe(one, other):
    """Both directions, until one of them ends."""
    def copy(source, target):
        try:
            pump(source, target.sendall)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
    back = threading.Thread(target=copy, args=(other, one), daemon=True)
    back.start()
    copy(one, other)
    back.join()
