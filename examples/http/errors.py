"""Asks a server, and says how the request failed: errors.py STORE URL

    PYTHONPATH=bindings/python/src python3 examples/http/errors.py STORE URL

This uses urllib. requests, httpx and aiohttp differ only in their exceptions, which
`NetworkError.of` takes, too. The failure is a record of the logger "shop.net". It is found by the
server's transaction id, and carries the id of the captured exchange.
"""
import sys
import urllib.request

import cordwood


def get(url, log):
    """Returns the body; raises a NetworkError, which is logged."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read()
    except OSError as error:  # a refusal, or no answer: HTTPError, URLError, timeout
        failed = cordwood.NetworkError.of(error)
        failed.log(log)
        raise failed from error


def main(store, url):
    """One request, captured."""
    with cordwood.open(store) as engine, cordwood.install_http_hooks(engine):
        engine.capture_http()
        try:
            get(url, engine.logger("shop.net"))
        except cordwood.NetworkError as error:
            print(error.outcome, error.http_status, error.code, error.transaction_id)
            print(error)
            print(error.describe("de"))


if __name__ == "__main__":
    main(*sys.argv[1:])
