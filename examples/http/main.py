"""Captures requests of urllib, and of requests, httpx and aiohttp if they are installed, and the
inbound side of a WSGI application: main.py STORE URL

    PYTHONPATH=bindings/python/src python3 examples/http/main.py STORE URL
"""
import sys
import urllib.error
import urllib.request

import cordwood


def application(environ, start_response):
    """A service that asks another one."""
    with urllib.request.urlopen(environ["shop.url"]) as answer:
        body = answer.read()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [body]


def main(store, url):
    """One request to a service, which makes another one."""
    with cordwood.open(store) as engine:
        engine.capture_http()
        with cordwood.install_http_hooks(engine, propagate=True):
            service = cordwood.WSGIMiddleware(application, engine)
            environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/orders", "SERVER_NAME": "shop",
                       "SERVER_PORT": "80", "HTTP_X_CONVERSATION_ID": "7d1f", "shop.url": url}
            for part in service(environ, lambda status, headers: None):
                sys.stdout.buffer.write(part)


if __name__ == "__main__":
    main(*sys.argv[1:])
