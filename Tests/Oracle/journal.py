"""The machine-durable copies (FORMAT §10), and what is trusted after a loss of power (§9)."""

import os

from wire import check_words, crc32c, u32, u64


def frames(path, lane_id, report):
    """Every valid frame: (kind, segment, chunk, from, to, chunk header, bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"CWJRNL01" or data[16:32] != lane_id:
        report(f"{path}: not this lane's journal")
        return
    check_words(path, u32(data, 8), 0)
    salt, at = u64(data, 32), 64
    while at + 112 <= len(data):
        length = u32(data, at + 8)
        if (u64(data, at) != salt or length < 112 or at + length > len(data)
                or crc32c(data[at + 16:at + length]) != u32(data, at + 12)):
            return
        yield (u32(data, at + 16), u64(data, at + 24), u64(data, at + 32), u32(data, at + 40),
               u32(data, at + 44), data[at + 48:at + 112], data[at + 112:at + length])
        at += (length + 7) // 8 * 8


class Journal:
    """Overlays a lane of another boot: its frames override the content of the files."""

    def __init__(self, lane):
        self.covered = {}  # (segment, chunk) → trusted bytes of the chunk
        self.chunks, self.headers = [], {}
        path = os.path.join(lane.directory, lane.name + ".journal")
        if not os.path.exists(path):
            return
        for kind, segment, chunk, start, end, header, content in frames(path, lane.id,
                                                                        lane.report):
            if kind == 1:
                self.chunks.append((segment, chunk, start, header, content))
                known = self.covered.get((segment, chunk), 128)
                if start <= known:
                    self.covered[(segment, chunk)] = max(known, end)
            elif kind == 2:
                region = lane.data if segment == 0 else lane.growth.setdefault(
                    segment, bytearray(64))
                base = lane.catalog_at[0] if segment == 0 else 64
                _lay(region, base + chunk, content)
            elif kind == 3:
                self.headers[segment] = content
            elif kind == 4:
                _lay(lane.data, 0, content)
        lane.read_header()

    def lay_over(self, segment):
        if segment.number in self.headers:
            _lay(segment.data, 0, self.headers[segment.number])
        for number, chunk, start, header, content in self.chunks:
            if number != segment.number:
                continue
            _lay(segment.data, chunk, b"")
            if bytes(segment.data[chunk:chunk + 8]) != header[:8]:
                _lay(segment.data, chunk, header)
            elif u32(segment.data, chunk + 8) < u32(header, 8):
                _lay(segment.data, chunk, header)
            _lay(segment.data, chunk + start, content)


def _lay(data, at, content):
    if len(data) < at + len(content):
        data.extend(bytes(at + len(content) - len(data)))
    data[at:at + len(content)] = content
