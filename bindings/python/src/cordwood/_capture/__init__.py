"""Captures HTTP exchanges: hooks in the clients, and middlewares for servers (docs/HTTP.md)."""
