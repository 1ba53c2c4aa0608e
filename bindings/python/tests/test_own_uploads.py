"""Uploads by the host's own transport are never captured, whichever thread, loop or process sends
them; and a transport that drops the headers does not upload its own uploads. One test for each way
of sending."""
import asyncio
import concurrent.futures
import multiprocessing
import threading
import unittest
import urllib.request
from typing import Any, Callable, Dict, Iterator, List, Tuple
from contextlib import contextmanager

from answering import Answering
from support import StoreCase, cordwood

Job = Tuple[str, str, Dict[str, str], bytes]
RUNS = 3


def post(job: Job) -> int:
    """Sends one request with a client that is hooked."""
    method, url, headers, body = job
    with urllib.request.urlopen(
            urllib.request.Request(url, body, headers, method=method), timeout=30) as answer:
        answer.read()
        return int(answer.status)


def post_captured(store: str, job: Job) -> int:
    """The same in a process of its own, whose requests are captured in the same store."""
    with cordwood.open(store) as engine:
        engine.capture_http()
        with cordwood.install_http_hooks(engine):
            return post(job)


@contextmanager
def here(_: str) -> Iterator[Callable[[Job], int]]:
    """On the engine's own thread."""
    yield post


@contextmanager
def threads(_: str) -> Iterator[Callable[[Job], int]]:
    """A thread pool."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield lambda job: pool.submit(post, job).result()


@contextmanager
def thread(_: str) -> Iterator[Callable[[Job], int]]:
    """A thread for each request."""
    def send(job: Job) -> int:
        got: List[int] = []
        one = threading.Thread(target=lambda: got.append(post(job)))
        one.start()
        one.join()
        return got[0]
    yield send


@contextmanager
def loop(_: str) -> Iterator[Callable[[Job], int]]:
    """The host's event loop, which runs elsewhere."""
    running = asyncio.new_event_loop()
    owner = threading.Thread(target=running.run_forever)
    owner.start()

    async def sent(job: Job) -> int:
        return await asyncio.get_running_loop().run_in_executor(None, post, job)
    yield lambda job: asyncio.run_coroutine_threadsafe(sent(job), running).result()
    running.call_soon_threadsafe(running.stop)
    owner.join()
    running.run_until_complete(running.shutdown_default_executor())
    running.close()


@contextmanager
def forked(_: str) -> Iterator[Callable[[Job], int]]:
    """A pool of processes that are copies of this one, with its hooks."""
    with concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("fork")) as pool:
        pool.submit(int).result()  # Before there is a target.
        yield lambda job: pool.submit(post, job).result()


@contextmanager
def spawned(store: str) -> Iterator[Callable[[Job], int]]:
    """A pool of new processes."""
    with concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn")) as pool:
        yield lambda job: pool.submit(post_captured, store, job).result()


class OwnUploadTest(StoreCase):
    """One record, several uploads: the server gets one request."""

    def requests(self, way: Any, passes: bool) -> Tuple[int, int]:
        """The number of requests that the server got, and of exchanges in the store."""
        server = Answering()
        self.addCleanup(server.close)
        engine = self.open()
        engine.capture_http()
        self.addCleanup(cordwood.install_http_hooks(engine).remove)
        with way(self.store) as send:
            def transport(request: Any) -> int:
                headers = request.headers if passes else {"Content-Type": "text/plain"}
                return int(send((request.method, request.url, dict(headers),
                                 request.body.read())))
            engine.add_target(server.url + "/in", kind="http", name="t", transport=transport)
            engine.logger("x").info("the only record")
            for _ in range(RUNS):
                engine.upload(timeout=30)
            stats = engine.stats()
            self.assertEqual(stats.archives_written, 1)
        engine.close()
        captured = [record for record in cordwood.read(self.store, kinds="http")
                    if record.fields["http.op"] == "begin"]
        return len(server.requests), len(captured)

    def test_requests_of_the_host_are_captured(self) -> None:
        """Also to the target's server, whatever they say they are."""
        server = Answering()
        self.addCleanup(server.close)
        engine = self.open()
        engine.capture_http()
        engine.add_target(server.url, kind="http", transport=lambda request: 200)
        with cordwood.install_http_hooks(engine):
            for value in ("", "0123456789abcdef", "0" * 16, "f" * 15, "f" * 17, "x" * 16):
                post(("POST", server.url + "/orders", {"Cordwood-Upload": value}, b"{}"))
        engine.close()
        self.assertEqual(6, len([record for record in cordwood.read(self.store, kinds="http")
                                 if record.fields["http.op"] == "end"]))


def _add(way: Any, passes: bool) -> None:
    def test(self: OwnUploadTest) -> None:
        sent, captured = self.requests(way, passes)
        self.assertEqual(sent, 1)
        if passes:
            self.assertEqual(captured, 0)
    test.__name__ = f"test_{way.__name__}_{'passes' if passes else 'drops'}_headers"
    setattr(OwnUploadTest, test.__name__, test)


for _way in (here, threads, thread, loop, forked, spawned):
    _add(_way, True)
    # A process that begins without the target does not know that a transport sends to it.
    if _way not in (forked, spawned):
        _add(_way, False)


if __name__ == "__main__":
    unittest.main()
