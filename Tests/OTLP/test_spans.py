"""`cordwood export --format otlp-spans` against OTLP's official schema: transactions as spans, with
client and server in one trace."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import cordwood
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from receiver import as_proto3, no_twice

ROOT = Path(__file__).resolve().parent.parent.parent
CORDWOOD = str(Path(os.environ.get("CORDWOOD_BUILD", ROOT / "build")) / "bin/cordwood")
TEXTS = ["plain", "quote \" and \\ back", "new\nline", "cr\r\ttab", "grüße 世界 🪵", "\x1b[31mred"]


def spans_of(store):
    """(process' resource, span) for each span that the command writes."""
    out = subprocess.run([CORDWOOD, "export", store, "--format", "otlp-spans"], check=True,
                         stdout=subprocess.PIPE).stdout
    found = []
    for line in out.splitlines():
        value = json.loads(line, object_pairs_hook=no_twice)
        for group in value["resourceSpans"]:
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    for name in ("startTimeUnixNano", "endTimeUnixNano"):
                        assert isinstance(span[name], str), "a 64-bit number is a string"
        request = json_format.ParseDict(as_proto3(value), ExportTraceServiceRequest())
        for group in request.resource_spans:
            resource = {item.key: item.value for item in group.resource.attributes}
            for scope in group.scope_spans:
                assert scope.scope.name == "Transactions"
                found += [(resource, span) for span in scope.spans]
    return found


class Spans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cordwood-spans-")
        self.addCleanup(folder.cleanup)
        self.store = folder.name + "/store"
        self.engine = cordwood.open(self.store)
        self.addCleanup(self.engine.close, 60)

    def test_client_and_server_share_a_trace(self):
        self.engine.name_transaction(17, "Check\"out")
        client = self.engine.transaction(17)
        client.event(0)
        server = self.engine.join_transaction(client.id)
        server.event(7, "42", "Baad!")
        server.end()
        client.event(1)
        parents = re.fullmatch("00-(.{32})-(.{16})-01", client.headers()["traceparent"])
        client.end()
        found = {span.kind: span for _, span in spans_of(self.store)}
        self.assertEqual(set(found), {Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_SERVER})
        ours, theirs = found[Span.SPAN_KIND_INTERNAL], found[Span.SPAN_KIND_SERVER]
        self.assertEqual(ours.trace_id.hex(), client.id[-36:].replace("-", "").lower())
        self.assertEqual((ours.trace_id.hex(), ours.span_id.hex()), parents.groups())
        self.assertEqual(theirs.trace_id, ours.trace_id)
        self.assertNotEqual(theirs.span_id, ours.span_id)
        self.assertEqual([ours.name, theirs.name], ["Check\"out"] * 2)
        self.assertEqual([event.name for event in ours.events], ["event 0", "event 1"])
        self.assertEqual(ours.status.code, Status.STATUS_CODE_UNSET)
        self.assertEqual((theirs.status.code, theirs.status.message),
                         (Status.STATUS_CODE_ERROR, "42: Baad!"))
        values = {item.key: item.value for item in theirs.events[0].attributes}
        self.assertEqual(values["txn.event"].int_value, 7)
        self.assertEqual(values["txn.error.code"].string_value, "42")
        for span in (ours, theirs):
            self.assertLessEqual(span.start_time_unix_nano, span.events[0].time_unix_nano)
            self.assertLessEqual(span.events[-1].time_unix_nano, span.end_time_unix_nano)
        self.assertLess(ours.start_time_unix_nano, theirs.start_time_unix_nano)
        self.assertLess(theirs.end_time_unix_nano, ours.end_time_unix_nano)

    def test_hostile_texts_and_many(self):
        for number in range(1_000):
            with self.engine.transaction(number - 500) as one:
                one.event(number, TEXTS[number % 6], TEXTS[number % 5])
        kept = self.engine.transaction(9)  # no end
        kept.event(1)
        found = spans_of(self.store)
        self.assertEqual(len(found), 1_001)
        for number, (resource, span) in enumerate(found[:-1]):
            self.assertEqual(resource["process.pid"].int_value, os.getpid())
            self.assertEqual(span.name, f"TXN{number - 500}")
            self.assertTrue(span.status.message.startswith(TEXTS[number % 6]))
        self.assertEqual(found[-1][1].events[0].time_unix_nano, found[-1][1].end_time_unix_nano)
        kept.end()
        self.engine.delete_transactions()
        self.assertEqual(spans_of(self.store), [])
