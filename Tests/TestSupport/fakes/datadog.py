"""A fake of Datadog's log intake (`/api/v2/logs`)."""

from strict import Answer, content_type, need, parse, plain, text

BODY_MAX, LOG_MAX, LOGS_MAX = 5_000_000, 1_000_000, 1_000
STATUSES = {"emergency", "alert", "critical", "error", "warn", "notice", "info", "debug", "ok"}


class Fake:
    """settings: `token`, the API key; `busy`: that many first requests are answered 429."""

    def __init__(self, settings):
        self.settings, self.stored, self.busy = settings, [], settings.get("busy", 0)

    def answer(self, method, path, headers, body):
        """The server's answer to one request."""
        need(method == "POST" and path == "/api/v2/logs", "no such path", 404)
        need(headers.get("dd-api-key") == self.settings.get("token", "token"), "Forbidden", 403)
        need("authorization" not in headers, "two ways to say who")
        if self.busy > 0:
            self.busy -= 1
            return Answer(429, {"errors": ["Too many requests"]})
        content_type(headers, "application/json")
        content = plain(headers, body)
        need(len(content) <= BODY_MAX, "Payload too big", 413)
        logs = parse(text(content))
        need(isinstance(logs, list) and 0 < len(logs) <= LOGS_MAX, "an array of 1 to 1,000", 413)
        starts = content.count(b"\n{\"timestamp\"") + 1
        need(starts == len(logs), "a log that spans lines")
        for line, log in zip(content.split(b"\n"), logs):
            # Datadog would cut it, a silent loss.
            need(len(line) - 1 <= LOG_MAX + 1, "a log over 1 MB")
            need(isinstance(log, dict) and isinstance(log.get("message"), str), "message")
            # Milliseconds: accepted by the other receivers of this interface, too.
            need(type(log.get("timestamp")) is int, "timestamp")
            need(log.get("status") in STATUSES, f"status {log.get('status')!r}")
            for name in ("service", "ddsource", "ddtags", "hostname"):
                need(isinstance(log.get(name, ""), str), name)
        self.stored += logs
        return Answer(202, {})
