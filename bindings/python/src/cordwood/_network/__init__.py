"""Finds the outcome of a request from the exceptions and answers of Python's clients
(docs/HTTP.md)."""
