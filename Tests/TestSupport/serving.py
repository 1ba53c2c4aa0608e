"""What the scripted server and the fakes share: a server that does not wait for connections, a
missing answer, and a server's life that ends with its caller."""

import http.server
import sys
import threading


class Serving(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A client that left is not an error."""


def cut(handler):
    """Closes without an answer."""
    handler.close_connection = True
    try:
        handler.connection.shutdown(2)
    except OSError:
        pass


def serve_caller(server):
    """Prints the port on the first line of stdout. The caller holds the other end of stdin: when it
    closes, the server ends."""
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
