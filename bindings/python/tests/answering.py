"""An HTTP server in this process that gives prepared answers, one after the other."""
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, NamedTuple, Tuple


class Answer(NamedTuple):
    """The answer to one request; delay: seconds before it (at most until the server closes)."""
    status: int = 200
    body: bytes = b""
    headers: Tuple[Tuple[str, str], ...] = ()
    delay: float = 0


class Answering:
    """`script` holds the next answers; once it is empty, every request gets `then`."""

    def __init__(self, *script: Answer, then: Answer = Answer()) -> None:
        self.script: List[Answer] = list(script)
        self.then = then
        self.requests: List[Tuple[str, str, Dict[str, str]]] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            """Answers GET and POST."""
            protocol_version = "HTTP/1.1"

            def _take(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with outer._lock:
                    outer.requests.append((self.command, self.path, dict(self.headers)))
                    answer = outer.script.pop(0) if outer.script else outer.then
                outer.closing.wait(answer.delay)
                self.send_response(answer.status)
                for name, value in answer.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = _take

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

        class Server(ThreadingHTTPServer):
            """Stays silent when a client leaves."""
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Clients may leave."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stops serving."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
