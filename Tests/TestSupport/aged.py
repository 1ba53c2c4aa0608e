"""Archives as if they had been written long ago (FORMAT §11.3): age counts from then, whatever time
an event names."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Oracle"))

from wire import crc32c  # noqa: E402

DAY_NS = 86_400 * 10**9
FOOTER, ENTRY = 80, 72


def make_old(archive, days):
    """Only its footer says so; the blocks' own headers are left. Of a plain archive."""
    data = bytearray(archive.read_bytes())
    start = data.rindex(b"CWFOOT01")
    end = len(data) - 8
    entries = range(start + FOOTER, end - 8, ENTRY)
    for at in (start + 64, start + 72, *(entry + word for entry in entries for word in (56, 64))):
        then = int.from_bytes(data[at:at + 8], "little") - days * DAY_NS
        data[at:at + 8] = then.to_bytes(8, "little")
    data[end - 4:end] = crc32c(bytes(data[start:end - 4])).to_bytes(4, "little")
    archive.write_bytes(data)
