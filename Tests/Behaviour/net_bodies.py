#!/usr/bin/env python3
"""A host whose requests are refused with bodies of any length: net_bodies.py CLIENT URL.

Prints a line of JSON for each path: [path, error's code, bytes that the host reads after that]; -1:
it does not try."""
import asyncio
import json
import sys
import urllib.error
import urllib.request

import cordwood

# Those that the host reads, too, as if `NetworkError` had not.
READ = ("/small", "/packed", "/long")
UNREAD = ("/endless", "/bomb", "/said", "/moved")


def told(path, error, read):
    """Prints one line."""
    print(json.dumps([path, error.code, read]), flush=True)


def with_requests(url):
    """requests."""
    import requests
    for path in READ + UNREAD:
        with requests.get(url + path, stream=True, allow_redirects=False, timeout=60) as answer:
            error = cordwood.NetworkError.of(answer)
            told(path, error, len(answer.content) if path in READ else -1)


def with_httpx(url):
    """httpx, not awaited."""
    import httpx
    for path in READ + UNREAD:
        with httpx.stream("GET", url + path, timeout=60) as answer:
            error = cordwood.NetworkError.of(answer)
            told(path, error, len(answer.read()) if path in READ else -1)


async def with_httpx_async(url):
    """httpx, awaited."""
    import httpx
    async with httpx.AsyncClient(timeout=60) as client:
        for path in READ + UNREAD:
            async with client.stream("GET", url + path) as answer:
                error = await cordwood.NetworkError.of_async(answer)
                told(path, error, len(await answer.aread()) if path in READ else -1)


async def with_aiohttp(url):
    """aiohttp."""
    import aiohttp
    async with aiohttp.ClientSession() as session:
        for path in READ + UNREAD:
            async with session.get(url + path, allow_redirects=False) as answer:
                error = await cordwood.NetworkError.of_async(answer)
                told(path, error, len(await answer.read()) if path in READ else -1)
                if path not in READ:
                    answer.close()


class Unanswered(urllib.request.HTTPRedirectHandler):
    """Does not follow redirections."""

    def redirect_request(self, *_):
        """Follows none."""


def with_urllib(url):
    """urllib.request, which does not decompress."""
    opener = urllib.request.build_opener(Unanswered)
    for path in READ + UNREAD:
        try:
            opener.open(url + path, timeout=60)
        except urllib.error.HTTPError as answer:
            error = cordwood.NetworkError.of(answer)
            told(path, error, len(answer.read()) if path in READ else -1)
            answer.close()


CLIENTS = {"requests": with_requests, "httpx": with_httpx, "httpx-async": with_httpx_async,
           "aiohttp": with_aiohttp, "urllib": with_urllib}


def main(client, url):
    """All clients."""
    made = CLIENTS[client](url)
    if made is not None:
        asyncio.run(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
