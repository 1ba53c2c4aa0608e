#!/usr/bin/env python3
"""A captured host that gets and sends planted bodies (planted.py) with one client.

    http_planted.py CLIENT STORE BASE FIRST COUNT

The server and the client break off answers; neither is an error. Prints the number of answers that
were read whole."""
import asyncio
import contextlib
import itertools
import sys
import urllib.request

import cordwood
from planted import Planted


def headers_of(planted):
    made = {"Content-Type": planted.content_type} if planted.content_type else {}
    return {**made, "Content-Encoding": planted.coding} if planted.coding else made


def of_urllib():
    def get(url, limit):
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read(limit)

    def post(url, planted):
        request = urllib.request.Request(url, planted.body, headers_of(planted), method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()
    return get, post


def of_requests():
    import requests
    session = requests.Session()
    session.trust_env = False

    def get(url, limit):
        with session.get(url, timeout=30, stream=True) as answer:
            return answer.content if limit is None else next(answer.iter_content(limit), b"")

    def post(url, planted):
        session.post(url, data=planted.body, headers=headers_of(planted), timeout=30)
    return get, post


def of_httpx():
    import httpx
    client = httpx.Client(timeout=30, trust_env=False)

    def get(url, limit):
        with client.stream("GET", url) as answer:
            return answer.read() if limit is None else next(answer.iter_raw(limit), b"")

    def post(url, planted):
        client.post(url, content=planted.body, headers=headers_of(planted))
    return get, post


def of_aiohttp():
    import aiohttp
    import atexit
    loop = asyncio.new_event_loop()

    async def made():
        return aiohttp.ClientSession()
    session = loop.run_until_complete(made())
    atexit.register(lambda: loop.run_until_complete(session.close()))

    async def got(url, limit):
        async with session.get(url) as answer:
            return await answer.content.read(-1 if limit is None else limit)

    async def posted(url, planted):
        async with session.post(url, data=planted.body, headers=headers_of(planted)) as answer:
            await answer.read()
    return (lambda url, limit: loop.run_until_complete(got(url, limit)),
            lambda url, planted: loop.run_until_complete(posted(url, planted)))


def main(client, store, base, first, count):
    engine = cordwood.open(store, segment_bytes=1 << 20, expiration_days=0, quota_bytes=0)
    engine.capture_http()
    cordwood.install_http_hooks(engine)
    get, post = globals()[f"of_{client}"]()
    whole = 0
    for number in itertools.islice(itertools.count(int(first)), int(count)):
        planted = Planted(number)
        limit = planted.random.choice([None] * 8 + [1 + len(planted.body) // 2])
        # Each client raises its own errors for broken answers.
        with contextlib.suppress(Exception):
            get(f"{base}/{number}", limit)
            whole += 1
        with contextlib.suppress(Exception):
            post(f"{base}/{number}", Planted(number + 10**7))
    engine.close()
    print(whole)


if __name__ == "__main__":
    main(*sys.argv[1:])
