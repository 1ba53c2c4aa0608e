"""What the scripted server and the fakes share: a server that waits for no connection, an answer
that is none, and the life of a server that ends with its caller."""

import http.server
import sys
import threading


class Serving(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A client that left is no error."""


def cut(handler):
    """Closes without an answer."""
    handler.close_connection = True
    try:
        handler.connection.shutdown(2)
    except OSError:
        pass


def serve_caller(server):
    """Says the port on the first line of stdout; the caller holds the other end of stdin: when it
    goes, so does the server."""
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
