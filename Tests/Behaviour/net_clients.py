#!/usr/bin/env python3
"""A host whose own requests fail, with one Python client: net_clients.py CLIENT STORE URL.

Makes each request twice, once with the answer handed to `NetworkError`, once with what the client
raises. Logs both under "net". Prints a line of JSON for each: [case, what the error says]."""
import asyncio
import json
import sys
import urllib.error
import urllib.request

import cordwood

HANG_S = 1.0
TIMEOUT_S = 30.0
# name → (status, form); the id of each is NAME-CLIENT-HOW.
ANSWERS = {"v2": (403, "v2"), "v4": (404, "v4"), "xml": (500, "xml"), "plain": (429, ""),
           "moved": (302, ""), "odd": (700, "")}
RAISES = {"v2", "v4", "xml", "plain"}


def told(case, error, log):
    """Prints one line and logs the record."""
    error.log(log, case=case)
    print(json.dumps([case, {
        "kind": type(error).__name__, "outcome": error.outcome, "status": error.http_status,
        "cause": error.cause, "code": error.code, "message": error.message,
        "language": error.language, "transaction": error.transaction_id,
        "details": error.details, "location": error.location, "retry": error.retry_after,
        "method": error.method, "url": error.url, "exchange": error.exchange_id,
        "de": error.describe("de")}]), flush=True)


def address(url, client, case, how):
    """The URL whose answer fails in that way."""
    status, form = ANSWERS[case]
    return f"{url}/fails?status={status}&form={form}&id={case}-{client}-{how}&token=hush"


def failing(url):
    """Requests with no answer or half an answer: name → address."""
    return {"refused": "http://127.0.0.1:1/x?token=hush", "hang": url + "/hang?token=hush",
            "close": url + "/close?token=hush", "short": url + "/short?token=hush"}


def with_requests(url, log):
    """requests."""
    import requests
    session = requests.Session()
    for case in ANSWERS:
        with session.get(address(url, "requests", case, "answer"), allow_redirects=False,
                         stream=True) as answer:
            told(f"{case}-answer", cordwood.NetworkError.of(answer), log)
        if case in RAISES:
            try:
                session.get(address(url, "requests", case, "raised")).raise_for_status()
            except requests.RequestException as error:
                told(f"{case}-raised", cordwood.NetworkError.of(error), log)
    for case, place in failing(url).items():
        try:
            session.get(place, timeout=HANG_S if case == "hang" else TIMEOUT_S)
        except requests.RequestException as error:
            told(case, cordwood.NetworkError.of(error), log)


def with_httpx(url, log):
    """httpx, not awaited."""
    import httpx
    with httpx.Client(timeout=TIMEOUT_S) as client:
        for case in ANSWERS:
            with client.stream("GET", address(url, "httpx", case, "answer")) as answer:
                told(f"{case}-answer", cordwood.NetworkError.of(answer), log)
            if case in RAISES:
                try:
                    client.get(address(url, "httpx", case, "raised")).raise_for_status()
                except httpx.HTTPError as error:
                    told(f"{case}-raised", cordwood.NetworkError.of(error), log)
        for case, place in failing(url).items():
            try:
                client.get(place, timeout=HANG_S if case == "hang" else TIMEOUT_S)
            except httpx.HTTPError as error:
                told(case, cordwood.NetworkError.of(error), log)


async def with_httpx_async(url, log):
    """httpx, awaited."""
    import httpx
    async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
        for case in ANSWERS:
            place = address(url, "httpx-async", case, "answer")
            async with client.stream("GET", place) as answer:
                told(f"{case}-answer", await cordwood.NetworkError.of_async(answer), log)
            if case in RAISES:
                try:
                    place = address(url, "httpx-async", case, "raised")
                    (await client.get(place)).raise_for_status()
                except httpx.HTTPError as error:
                    told(f"{case}-raised", cordwood.NetworkError.of(error), log)
        for case, place in failing(url).items():
            try:
                await client.get(place, timeout=HANG_S if case == "hang" else TIMEOUT_S)
            except httpx.HTTPError as error:
                told(case, cordwood.NetworkError.of(error), log)


async def with_aiohttp(url, log):
    """aiohttp: the body of an answer that raises is not available."""
    import aiohttp
    async with aiohttp.ClientSession() as session:
        for case in ANSWERS:
            place = address(url, "aiohttp", case, "answer")
            async with session.get(place, allow_redirects=False) as answer:
                try:
                    await cordwood.NetworkError.check_async(answer)
                except cordwood.NetworkError as error:
                    told(f"{case}-answer", error, log)
        try:
            async with session.get(address(url, "aiohttp", "v2", "raised")) as answer:
                answer.raise_for_status()
        except aiohttp.ClientError as error:
            told("v2-raised", cordwood.NetworkError.of(error), log)
        for case, place in failing(url).items():
            limit = aiohttp.ClientTimeout(HANG_S if case == "hang" else TIMEOUT_S)
            try:
                async with session.get(place, timeout=limit) as answer:
                    await answer.read()
            except (aiohttp.ClientError, asyncio.TimeoutError) as error:
                told(case, cordwood.NetworkError.of(error), log)


class Unanswered(urllib.request.HTTPRedirectHandler):
    """Does not follow redirections."""

    def redirect_request(self, *_):
        """Follows none."""


def with_urllib(url, log):
    """urllib.request, whose failed answers are exceptions."""
    opener = urllib.request.build_opener(Unanswered)
    places = {f"{case}-answer": address(url, "urllib", case, "answer") for case in ANSWERS}
    for case, place in {**places, **failing(url)}.items():
        try:
            opener.open(place, timeout=HANG_S if case == "hang" else TIMEOUT_S).read()
        except Exception as error:
            told(case, cordwood.NetworkError.of(error), log)


CLIENTS = {"requests": with_requests, "httpx": with_httpx, "urllib": with_urllib,
           "httpx-async": with_httpx_async, "aiohttp": with_aiohttp}


def main(client, store, url):
    """All cases."""
    call = CLIENTS[client]
    with cordwood.open(store) as engine, cordwood.install_http_hooks(engine):
        engine.capture_http(keep_text="* */*")
        made = call(url, engine.logger("net"))
        if made is not None:
            asyncio.run(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
