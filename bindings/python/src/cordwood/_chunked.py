"""Takes the chunked framing (RFC 9112 §7.1) off bytes that come in pieces. One request's; no state
but its own. What is no framing is handed on as it is: better too much recorded than nothing."""
from typing import Iterator

_LINE_MAX = 4096


class Dechunker:
    """Fed with what goes over the wire; gives what it carries."""

    __slots__ = ("_line", "_left", "_is_raw", "_is_over")

    def __init__(self) -> None:
        self._line = bytearray()
        self._left = -1  # of the chunk; -1: its size line comes, -2: the line end behind it
        self._is_raw = False
        self._is_over = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The parts of bodies in it."""
        at = 0
        while at < len(data) and not self._is_over:
            if self._is_raw:
                yield data[at:]
                return
            if self._left > 0:
                part = data[at:at + self._left]
                self._left -= len(part)
                at += len(part)
                yield part
                if not self._left:
                    self._left = -2
                continue
            end = data.find(b"\n", at)
            self._line += data[at:] if end < 0 else data[at:end + 1]
            at = len(data) if end < 0 else end + 1
            if end >= 0 or len(self._line) > _LINE_MAX:
                self._size()
                if self._is_raw:
                    yield bytes(self._line)

    def _size(self) -> None:
        line = bytes(self._line).partition(b";")[0].strip()
        if self._left == -2 and not line:
            self._left = -1
        else:
            try:
                self._left = int(line, 16)
                self._is_over = self._left == 0
            except ValueError:
                self._is_raw = True
                return
        self._line.clear()
