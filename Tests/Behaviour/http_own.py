#!/usr/bin/env python3
"""A host whose requests are captured, and whose transport sends uploads by one of those clients,
elsewhere than on the engine's thread.

    http_own.py CLIENT WAY STORE URL UPLOADS

CLIENT: urllib, requests, httpx, httpx-async, aiohttp. WAY: pool (threads), loop (an event loop
that runs in a thread), forked (processes). Clients of an event loop have no other way."""
import asyncio
import concurrent.futures
import multiprocessing
import sys
import threading
import urllib.request

import cordwood


def by_urllib(method, url, headers, body):
    request = urllib.request.Request(url, body, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status


def by_requests(method, url, headers, body):
    import requests
    return requests.request(method, url, headers=headers, data=body, timeout=30).status_code


def by_httpx(method, url, headers, body):
    import httpx
    return httpx.request(method, url, headers=headers, content=body, timeout=30).status_code


async def by_httpx_async(method, url, headers, body):
    import httpx
    async with httpx.AsyncClient(timeout=30) as client:
        return (await client.request(method, url, headers=headers, content=body)).status_code


async def by_aiohttp(method, url, headers, body):
    import aiohttp
    async with aiohttp.ClientSession() as session:
        async with session.request(method, url, headers=headers, data=body) as answer:
            await answer.read()
            return answer.status


def main(client, way, store, url, uploads):
    call = globals()["by_" + client.replace("-", "_")]
    engine = cordwood.open(store)
    engine.capture_http()
    hooks = cordwood.install_http_hooks(engine)
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    pool = (concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
            if way == "forked" else concurrent.futures.ThreadPoolExecutor(1))

    def send(request):
        job = request.method, request.url, dict(request.headers), request.body.read()
        if not asyncio.iscoroutinefunction(call):
            return pool.submit(call, *job).result()
        return asyncio.run_coroutine_threadsafe(call(*job), loop).result()

    engine.add_target(url, kind="http", transport=send)
    engine.logger("x").info("the only record")
    for _ in range(int(uploads)):
        engine.upload(timeout=30)
    pool.shutdown()
    hooks.remove()
    engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
