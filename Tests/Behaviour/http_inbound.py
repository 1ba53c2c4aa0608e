#!/usr/bin/env python3
"""A server of HTTP/2 and HTTP/1.1 over TLS whose application is captured in the way of a host:
hypercorn and `cordwood.ASGIMiddleware`.

    http_inbound.py STORE CERTIFICATE_AND_KEY.pem

Prints its port and serves until its standard input ends. Answers with what it received, and logs a
record of its own in each request."""
import asyncio
import json
import sys

import cordwood
from hypercorn.asyncio import serve
from hypercorn.config import Config
from loopback import free_port


def application(engine):
    """Answers with the number of bytes received."""
    log = engine.logger("inbound")

    async def app(scope, receive, send):
        if scope["type"] != "http":
            raise RuntimeError(scope["type"])
        size = 0
        while True:
            message = await receive()
            size += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        log.info("inside")
        body = json.dumps({"bytes": size, "version": scope["http_version"]}).encode()
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})
    return app


async def main():
    engine = cordwood.open(sys.argv[1])
    engine.capture_http(keep_text="* */*")
    config = Config()
    port = free_port()
    config.bind = [f"127.0.0.1:{port}"]
    config.certfile = config.keyfile = sys.argv[2]
    config.loglevel = "ERROR"
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, lambda: (sys.stdin.buffer.read(),
                                        loop.call_soon_threadsafe(gone.set)))

    async def tell():
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.01)
        print(port, flush=True)
    asyncio.ensure_future(tell())
    await serve(cordwood.ASGIMiddleware(application(engine), engine), config,
                shutdown_trigger=gone.wait)


if __name__ == "__main__":
    asyncio.run(main())
