#!/usr/bin/env python3
"""A host whose requests are captured: one Python client runs all cases and prints what it saw.

    http_clients.py CLIENT STORE|- URLS

URLS: JSON with `plain`, `tls` (an untrusted certificate) and, for httpx, `h2` and `ca`. With `more`
the client also sends secrets, odd bytes, large headers and requests that it breaks off. With "-"
the client runs without capture, for tests to compare. Prints a line of JSON per case, [name, what
the host saw], then "done". Stays until its standard input ends: it still writes while others read.
"""
import asyncio
import hashlib
import io
import json
import os
import re
import signal
import socket
import ssl
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

from loopback import until

BIG = bytes(range(32, 96)) * 16384 * 20  # 20 MiB
HANG_S = 1.0  # how long a client waits for /hang
TIMEOUT_S = 30.0
DROPS = 6  # of /drip: a client that was sent this many has begun to read the answer


def pieces():
    """The big body, from a generator."""
    for at in range(0, len(BIG), 100_000):
        yield BIG[at:at + 100_000]


def saw(status, headers, body):
    """What a host sees of an answer."""
    kept = sorted((name.lower(), value) for name, value in headers
                  if name.lower() not in ("date", "server"))
    return [status, kept, len(body), hashlib.sha256(body).hexdigest()]


def failed(error):
    """What a host sees of an error, without addresses of objects."""
    return [type(error).__name__, re.sub(r"0x[0-9a-f]+", "0x", str(error))]


def run(case, call, *arguments):
    """Prints one line."""
    try:
        result = call(*arguments)
    except Exception as error:
        result = failed(error)
    print(json.dumps([case, result]), flush=True)


def gets(urls):
    """The cases that only make requests."""
    plain = urls["plain"]
    return {
        "json": plain + "/json?case=json", "odata": plain + "/odata", "hang": plain + "/hang",
        "redirect": plain + "/redirect?to=/json%3Fhop",
        "download": plain + "/download?bytes=20000000",
        "gzip": plain + "/gzip", "chunked": plain + "/chunked", "empty": plain + "/empty",
        "short": plain + "/short", "close": plain + "/close", "tls": urls["tls"] + "/json",
        "dns": "http://no-such-host.invalid/x", "refused": "http://127.0.0.1:1/x",
    }


def secrets(urls, pieces_of):
    """Requests with secrets everywhere: (case, URL, headers, body)."""
    from http_peer import SECRET
    kinds = ({"Content-Type": "application/json"},
             {"Content-Type": "application/x-www-form-urlencoded"})
    nested = {"a": {"password": f"{SECRET}-5", "list": [{"api_key": f"{SECRET}-6"}]},
              "text": json.dumps({"token": f"{SECRET}-7"})}
    split = f'{{"user":"joe","pass', f'word":"{SECRET[:4]}', f'{SECRET[4:]}-8","z":1}}'
    base = urls["plain"]
    return [
        ("secret-get", f"{base}/split-secrets?token={SECRET}-9&case=secret-get",
         {"Authorization": f"Bearer {SECRET}-10", "Cookie": f"sid={SECRET}-11"}, None),
        ("secret-json", f"{base}/upload?case=secret-json", kinds[0], json.dumps(nested).encode()),
        ("secret-escaped", f"{base}/upload?case=secret-escaped", kinds[0],
         b'{"p\\u0061ssword":"' + SECRET.encode() + b'-12"}'),
        ("secret-form", f"{base}/upload?case=secret-form", kinds[1],
         f"user=joe&password={SECRET}-13&x=y".encode()),
        ("secret-pieces", f"{base}/upload?case=secret-pieces", kinds[0],
         pieces_of([piece.encode() for piece in split])),
    ]


def odd(urls):
    """A megabyte of headers and bytes that are not UTF-8, both ways: in the form of `secrets`."""
    base = urls["plain"]
    return [
        ("large-asked", f"{base}/json?case=large-asked",
         {f"X-{n}": "v" * 60_000 for n in range(16)}, None),
        ("large-answer", f"{base}/large?count=17&case=large-answer", {}, None),
        ("no-text-asked", f"{base}/upload?case=no-text-asked",
         {"X-Odd": b"\xff\xc3(", "Content-Type": "application/json"}, b'{"a":"\xff\xfe"}'),
        ("no-text-answer", f"{base}/no-text?case=no-text-answer", {}, None),
    ]


def timeout_s(url):
    """Of a request: short only if no answer comes."""
    return HANG_S if url.endswith("/hang") else TIMEOUT_S


def begun(url):
    """Asks the server how far a waiting request is, over a plain socket that no hook sees."""
    parts = urllib.parse.urlsplit(url)
    of = urllib.parse.quote(f"{parts.path}?{parts.query}", safe="")
    with socket.create_connection((parts.hostname, parts.port), TIMEOUT_S) as asks:
        asks.sendall(f"GET /begun?of={of} HTTP/1.1\r\nHost: peer\r\nConnection: close\r\n\r\n"
                     .encode())
        answer = b"".join(iter(lambda: asks.recv(4096), b""))
    return int(answer.rpartition(b"\r\n\r\n")[2])


def moment(url):
    """Returns a function that tells whether the server is in the middle of a request made after
    this call: it has asked for the answer or, for /drip, has received some of it."""
    wanted = begun(url) + (DROPS if "/drip" in url else 1)
    return lambda: begun(url) >= wanted


def interrupted(call, url):
    """Ctrl-C while the client waits for the server."""
    # A test run in the background ignores SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    come = moment(url)

    def interrupt():
        until(come, url)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        return call(url)
    except KeyboardInterrupt as error:
        return failed(error)


def sync_more(urls, get, post):
    """The requests of `more`, for a blocking client."""
    for case, url, headers, body in secrets(urls, iter) + odd(urls):
        if body is None:
            run(case, lambda: get(url, headers=headers))
        else:
            run(case, lambda: post(url, body, headers=headers))
    run("cancelled", interrupted, get, urls["plain"] + "/hang?cancelled")
    run("cancelled-body", interrupted, get, urls["plain"] + "/drip?seconds=60&cancelled")


def sync_cases(urls, get, post, early):
    """All cases, for a blocking client."""
    for case, url in gets(urls).items():
        run(case, get, url)
    upload = urls["plain"] + "/upload"
    run("upload", post, upload + "?as=bytes", BIG)
    run("upload-pieces", post, upload + "?as=pieces", pieces())
    run("upload-file", post, upload + "?as=file", io.BytesIO(BIG))
    run("early", early, urls["plain"] + "/drip")
    if "more" in urls:
        sync_more(urls, get, post)


def of_urllib(urls):
    """urllib.request, which is http.client."""
    def get(url, data=None):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=data),
                                        timeout=timeout_s(url)) as answer:
                return saw(answer.status, answer.headers.items(), answer.read())
        except urllib.error.HTTPError as error:
            return saw(error.code, error.headers.items(), error.read())

    def early(url):
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            return len(answer.read(10))
    sync_cases(urls, get, get, early)


def of_requests(urls):
    """requests, which is urllib3 and http.client."""
    import requests
    session = requests.Session()
    session.trust_env = False

    def get(url, **more):
        answer = session.get(url, timeout=timeout_s(url), **more)
        return saw(answer.status_code, answer.headers.items(), answer.content)

    def post(url, data, **more):
        answer = session.post(url, data=data, timeout=TIMEOUT_S, **more)
        return saw(answer.status_code, answer.headers.items(), answer.content)

    def early(url):
        with session.get(url, timeout=TIMEOUT_S, stream=True) as answer:
            return len(next(answer.iter_content(10)))
    sync_cases(urls, get, post, early)


def of_httpx(urls):
    """httpx, sync."""
    import httpx
    client = httpx.Client(timeout=TIMEOUT_S, follow_redirects=True, trust_env=False)

    def get(url, **more):
        answer = client.get(url, timeout=timeout_s(url), **more)
        return saw(answer.status_code, answer.headers.items(), answer.content)

    def post(url, data, **more):
        answer = client.post(url, content=data, **more)
        return saw(answer.status_code, answer.headers.items(), answer.content)

    def early(url):
        with client.stream("GET", url) as answer:
            return len(next(answer.iter_raw(10)))
    sync_cases(urls, get, post, early)
    if "h2" in urls:
        two = httpx.Client(http2=True, trust_env=False, timeout=TIMEOUT_S,
                           verify=ssl.create_default_context(cafile=urls["ca"]))

        def both(url, data=None):
            answer = two.request("POST" if data else "GET", url, content=data)
            return [answer.http_version, answer.status_code, len(answer.content)]
        run("h2", both, urls["h2"] + "/two")
        run("h2-upload", both, urls["h2"] + "/two", BIG[:1_000_000])


async def arun(case, made):
    """The same as run, for awaitables."""
    try:
        result = await made
    except (Exception, asyncio.CancelledError) as error:
        result = failed(error)
    print(json.dumps([case, result]), flush=True)


async def broken_off(get, url):
    """Cancelled while it waits for the server."""
    come = moment(url)
    task = asyncio.ensure_future(get(url))
    await asyncio.to_thread(until, come, url)
    task.cancel()
    return await task


async def apieces():
    """The big body, from an async generator."""
    for piece in pieces():
        yield piece


async def async_cases(urls, get, post):
    """All cases, for an async client."""
    for case, url in gets(urls).items():
        await arun(case, get(url))
    upload = urls["plain"] + "/upload"
    await arun("upload", post(upload + "?as=bytes", BIG))
    await arun("upload-pieces", post(upload + "?as=pieces", apieces()))
    await arun("cancelled", broken_off(get, urls["plain"] + "/hang?cancelled"))
    await arun("cancelled-body", broken_off(get, urls["plain"] + "/drip?seconds=60&cancelled"))
    if "more" in urls:
        async def given(all_):
            for piece in all_:
                yield piece
        for case, url, headers, body in secrets(urls, given) + odd(urls):
            await arun(case, get(url, headers=headers) if body is None
                       else post(url, body, headers=headers))


def of_httpx_async(urls):
    """httpx, awaited."""
    import httpx

    async def main():
        async with httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=True,
                                     trust_env=False) as client:
            async def get(url, **more):
                answer = await client.get(url, timeout=timeout_s(url), **more)
                return saw(answer.status_code, answer.headers.items(), answer.content)

            async def post(url, data, **more):
                answer = await client.post(url, content=data, **more)
                return saw(answer.status_code, answer.headers.items(), answer.content)
            await async_cases(urls, get, post)
        if "h2" not in urls:
            return
        trusted = ssl.create_default_context(cafile=urls["ca"])
        async with httpx.AsyncClient(http2=True, trust_env=False, verify=trusted,
                                     timeout=TIMEOUT_S) as client:
            async def both(url, data=None):
                answer = await client.request("POST" if data else "GET", url, content=data)
                return [answer.http_version, answer.status_code, len(answer.content)]
            await arun("h2", both(urls["h2"] + "/two"))
            await arun("h2-upload", both(urls["h2"] + "/two", BIG[:1_000_000]))
    asyncio.run(main())


def of_aiohttp(urls):
    """aiohttp."""
    import aiohttp

    async def main():
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout) as client:
            async def get(url):
                async with client.get(
                        url, timeout=aiohttp.ClientTimeout(total=timeout_s(url))) as answer:
                    return saw(answer.status, answer.headers.items(), await answer.read())

            async def post(url, data):
                async with client.post(url, data=data) as answer:
                    return saw(answer.status, answer.headers.items(), await answer.read())
            await async_cases(urls, get, post)
    asyncio.run(main())


CLIENTS = {"urllib": of_urllib, "requests": of_requests, "httpx": of_httpx,
           "httpx-async": of_httpx_async, "aiohttp": of_aiohttp}


def main():
    client, store, urls = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    if store != "-":
        import cordwood
        engine = cordwood.open(store)
        engine.capture_http(keep_text="* */*")
        cordwood.install_http_hooks(engine)
    CLIENTS[client](urls)
    print("done", flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
