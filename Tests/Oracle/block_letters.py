"""What bit 0 of a block's flags promises to a search (FORMAT §11.6, letters). Decoding does not
depend on it, so only writers can break it."""

import re

from column_codecs import MONTHS
from deferred import TEXT, arguments
from record import fields_that_fit
from wire import Bytes, Damage

RUN = re.compile(rb"\\?[A-Za-z]+")
# What need not be there.
FREE = re.compile(rb"(?:[a-fA-FxX]*|T|" + b"|".join(MONTHS) + rb")\Z")


def check(tree, found, records):
    """`found`: the columns of a block, whose records these are."""
    if not tree.flags & 1:
        return
    texts = b"\n".join(tree.texts)
    runs = {run for content in _contents(found, records) for run in RUN.findall(content)}
    for run in sorted(runs):
        ways = [run.lstrip(b"\\")]
        if run[:2] in (b"\\n", b"\\r", b"\\t"):
            ways.append(run[2:])
        if not any(FREE.match(way) or way in texts for way in ways):
            raise Damage(f"letters that are not in the text: {run!r}")


def _contents(found, records):
    yield from found.messages
    source = Bytes(found.arguments)
    for number in found.numbers["format"]:
        for kind, value in arguments(found.formats[number].types, source)[0]:
            if kind == TEXT and value:
                yield value
    lists = [fields_that_fit(run) for run, _ in found.contexts]
    lists += [record.fields for record in records]
    for key, value in (pair for fields in lists for pair in fields):
        yield key
        if isinstance(value, bytes):
            yield value
