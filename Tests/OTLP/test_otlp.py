"""What OTLP receivers get, against what was logged."""

import math
import os
import random
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import cordwood
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from receiver import Receiver, from_json

ROOT = Path(__file__).resolve().parent.parent.parent
CORDWOOD = str(Path(os.environ.get("CORDWOOD_BUILD", ROOT / "build")) / "bin/cordwood")
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TEXTS = ["plain", "", "quote \" and \\ back", "new\nline", "cr\r", "tab\t", "nul\0end", "#######",
         '{"json": [1, 2]}', "<xml/>&amp;", "grüße 世界 🪵", "\u2028\u2029", "%d {} ${x}",
         "\x1b[31mred", " " * 40, "\ufeffbom", "\x7f", "x" * 5_000]
BYTES = [b"\xff\xfe\x80", b"half \xc3", b"\xed\xa0\x80", b"ok", b"", b"\0\x01\x02"]
NUMBERS = [0, -1, 1, 2**31, -2**31 - 1, 2**53 + 1, 2**63 - 1, -2**63, 2**63, 2**64 - 1]
DOUBLES = [0.0, -0.0, 1.5, 0.1, 5e-324, 1.7976931348623157e308, -1e-7, 1e16, 123456789.125,
           math.inf, -math.inf, math.nan]
LEVELS = [1, 2, 5, 8, 9, 10, 12, 13, 17, 21, 24]


def write_all(engine, seed=1):
    """Records of every kind that a host can write."""
    chance = random.Random(seed)
    logs = [engine.logger(name) for name in ("app", "app.db", "äpp.ü", "a b/c:d")]
    for number, text in enumerate(TEXTS):
        logs[number % 4].log(LEVELS[number % len(LEVELS)], "%s", text, text=text, n=number)
    for data in BYTES:
        logs[0].write("warn", data)
    for number in NUMBERS:
        logs[1].info("a number", number=number, flag=number % 2 == 0)
    for number in DOUBLES:
        logs[1].info("a double", double=number)
    for text in TEXTS:
        logs[2].info("fields", **{text: text, "key": text, "number": chance.random()})
    for _ in range(40):
        logs[3].info("many", **{f"k{n}": n for n in range(chance.randrange(60))})
    with cordwood.context(user="anna", order=8), cordwood.trace(TRACE, SPAN, flags=1):
        logs[0].info("in a context", order=7)
        logs[0].write("info", b"raw in a context")
        with cordwood.trace("1" * 32):
            logs[0].info("no span")
    logs[2].info("parts", order={
        "id": 7, "items": [{"sku": "x", "n": 2.5}, [], {}, None, True], "": "no name",
        "\u00fc\n": -2**63, "big": 2**63}, none=None, list=[1, [2, ["\u20ac"]]])
    logs[0].log("info", "own time", time_ns=1_000_000_000_000_000_123)
    # Names with a meaning in OpenTelemetry.
    logs[0].info("mine", **{"thread.id": "mine", "code.file.path": 5, "log.record.uid": "own"})
    try:
        raise ValueError("broken\n\"thing\"")
    except ValueError:
        logs[1].exception("it failed", code=7)
    work = threading.Thread(target=lambda: logs[1].info("elsewhere"))
    work.start()
    work.join()


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return ("parts", {pair.key: value_of(pair.value) for pair in value.kvlist_value.values})
    if kind == "array_value":
        return ("parts", [value_of(part) for part in value.array_value.values])
    return (kind, getattr(value, kind)) if kind else (None, None)


def expected_value(value):
    """The AnyValue for a field that was read back."""
    if value is None:
        return (None, None)
    if isinstance(value, dict):
        return ("parts", {key: expected_value(part) for key, part in value.items()})
    if isinstance(value, list):
        return ("parts", [expected_value(part) for part in value])
    if isinstance(value, bool):
        return ("bool_value", value)
    if isinstance(value, int):
        return ("int_value", value) if value < 2**63 else ("string_value", str(value))
    if isinstance(value, float):
        return ("double_value", value)
    return ("string_value", value)


def same(got, wanted):
    """NaN equals NaN here, and -0.0 does not equal 0.0."""
    if isinstance(got[1], float) and isinstance(wanted[1], float):
        return got[0] == wanted[0] and (
            math.isnan(got[1]) and math.isnan(wanted[1])
            or got[1] == wanted[1] and math.copysign(1, got[1]) == math.copysign(1, wanted[1]))
    return got == wanted


def flat(requests):
    """(resource, scope's name, record) of each record. Checks each group."""
    found = []
    for request in requests:
        resources = set()
        for group in request.resource_logs:
            resource = {a.key: value_of(a.value)[1] for a in group.resource.attributes}
            assert len(resource) == len(group.resource.attributes), "a resource's key twice"
            key = group.resource.SerializeToString(deterministic=True)
            assert key not in resources, "one resource in two groups"
            resources.add(key)
            names = [scope.scope.name for scope in group.scope_logs]
            assert len(set(names)) == len(names), "one logger in two groups"
            for scope in group.scope_logs:
                assert scope.log_records, "an empty group"
                found += [(resource, scope.scope.name, record) for record in scope.log_records]
    return found


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cordwood-otlp-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)
        self.count = 0

    def engine(self, **options):
        self.count += 1
        self.store = str(self.folder / f"store{self.count}")
        engine = cordwood.open(self.store, process_name="otlp test", level="trace", **options)
        self.addCleanup(engine.close, 60)
        return engine

    def wanted(self):
        """All kinds except the engine's records about its uploads: a later archive has them."""
        return [r for r in cordwood.read(self.store, kinds="all")
                if r.logger != "Cordwood.Uploader"]

    def compare(self, wanted, found):
        found = [entry for entry in found if entry[1] != "Cordwood.Uploader"]
        self.assertEqual(len(found), len(wanted))
        ids = set()

        def key(time_ns, tid, message):
            return (time_ns, tid, message)
        left = {}
        for record in wanted:
            left.setdefault(key(record.time_ns, record.tid, record.message_bytes),
                            []).append(record)
        for resource, logger, got in found:
            kind, body = value_of(got.body)
            data = body if kind == "bytes_value" else body.encode()
            attributes = {a.key: value_of(a.value) for a in got.attributes}
            self.assertEqual(len(attributes), len(got.attributes), "a key twice")
            record = left[key(got.time_unix_nano, self.tid(attributes, resource),
                              data)].pop(0)
            self.compare_one(record, resource, logger, got, kind, attributes)
            uid = attributes["log.record.uid"][1]
            self.assertEqual(uid, record.fields.get("log.record.uid", record.record_id))
            ids.add(uid)
        own = sum("log.record.uid" in record.fields for record in wanted)
        self.assertEqual(len(ids), len(found) - own + min(own, 1), "ids are unique")

    def tid(self, attributes, resource):
        found = attributes["thread.id"]
        # One record has its own field of that name.
        return resource["process.pid"] if found[0] == "string_value" else found[1]

    def compare_one(self, record, resource, logger, got, kind, attributes):
        self.assertEqual(logger, record.logger)
        self.assertEqual(got.severity_number, record.level_number)
        self.assertEqual(got.severity_text, record.level if record.level_number else "")
        whole = "bytes_value" if b"\xff" in record.message_bytes or not utf8(
            record.message_bytes) else "string_value"
        self.assertEqual(kind, whole)
        self.assertEqual(got.trace_id.hex(), record.trace_id or "")
        self.assertEqual(got.span_id.hex(), record.span_id or "")
        self.assertEqual(got.flags, record.trace_flags)
        self.assertEqual(got.dropped_attributes_count, 0, record)
        self.assertGreater(got.observed_time_unix_nano, 1_600_000_000_000_000_000)
        self.assertEqual(resource["process.pid"], record.pid)
        self.assertEqual(resource["process.executable.name"], record.process_name)
        # An empty key is sent as `_`: receivers refuse a body with an empty one.
        expected = {key or "_": expected_value(value) for key, value in record.fields.items()}
        own = {"thread.id": ("int_value", record.tid)}
        if record.file:
            own["code.file.path"] = ("string_value", record.file)
        if record.line:
            own["code.line.number"] = ("int_value", record.line)
        if record.function:
            own["code.function.name"] = ("string_value", record.function)
        if record.kind != "log":
            own["cordwood.kind"] = ("string_value", record.kind)
        if record.truncated:
            own["cordwood.original_bytes"] = ("int_value", record.original_length)
        for key, value in own.items():
            expected.setdefault(key, value)
        if "log.record.uid" not in record.fields:
            attributes = {k: v for k, v in attributes.items() if k != "log.record.uid"}
        self.assertEqual(sorted(attributes), sorted(expected))
        for key, value in expected.items():
            self.assertTrue(same(attributes[key], value), (key, attributes[key], value))


def utf8(data):
    try:
        data.decode()
        return True
    except UnicodeDecodeError:
        return False


class Fields(Case):
    def send(self, form, encoding, rounds=1, **options):
        engine = self.engine()
        engine.set_resource("service.name", "shop")
        engine.set_resource("user.id", "grüße \"7\"")
        for seed in range(rounds):
            write_all(engine, seed)
        engine.roll()
        engine.archive_wait(30)
        wanted = self.wanted()
        engine.add_target(self.receiver.url, kind="otlp", format=form, encoding=encoding, **options)
        result = engine.upload(timeout=60)
        self.assertEqual((result.failed, result.refused), (0, 0))
        return wanted

    def test_every_field_in_every_form_and_encoding(self):
        for form in ("otlp-protobuf", "otlp-json"):
            for encoding in ("gzip", "none", "zstd"):
                with self.subTest(form=form, encoding=encoding):
                    self.receiver.seen.clear()
                    wanted = self.send(form, encoding)
                    self.assertGreater(len(wanted), 100)
                    found = flat(self.receiver.requests())
                    self.compare(wanted, found)
                    for resource, _, _ in found:
                        self.assertEqual(resource["service.name"], "shop")
                        self.assertEqual(resource["user.id"], "grüße \"7\"")
                        self.assertTrue(resource["host.name"])
                        self.assertRegex(resource["service.instance.id"], r"^[0-9a-f-]{36}$")
                    headers = self.receiver.seen[0][1]
                    self.assertEqual(headers.get("Content-Encoding"),
                                     None if encoding == "none" else encoding)

    def test_service_name_is_the_process_where_nobody_says(self):
        engine = self.engine()
        engine.logger("a").info("x")
        engine.add_target(self.receiver.url, kind="otlp")
        engine.upload(timeout=60)
        (resource, _, _), *_ = flat(self.receiver.requests())
        self.assertEqual(resource["service.name"], "otlp test")

    def test_bodies_keep_the_limit(self):
        for form in ("otlp-protobuf", "otlp-json"):
            with self.subTest(form=form):
                self.receiver.seen.clear()
                wanted = self.send(form, "gzip", 6, body_bytes_max=100_000)
                self.assertGreater(len(self.receiver.seen), 3)
                self.assertLessEqual(max(len(data) for _, _, data, _ in self.receiver.seen),
                                     100_000)
                self.compare(wanted, flat(self.receiver.requests()))
                ids = [headers["Idempotency-Key"] for _, headers, _, _ in self.receiver.seen]
                self.assertEqual(len(set(ids)), len(ids))

    def test_long_messages_are_cut_to_fit_and_say_so(self):
        engine = self.engine()
        engine.logger("a").info("%s", "ü" * 100_000, field="kept")
        engine.add_target(self.receiver.url, kind="otlp", body_bytes_max=1 << 16)
        self.assertEqual(engine.upload(timeout=60).refused, 0)
        found = [r for _, logger, r in flat(self.receiver.requests()) if logger == "a"]
        attributes = {a.key: value_of(a.value)[1] for a in found[0].attributes}
        self.assertEqual(attributes["cordwood.original_bytes"], 200_000)
        self.assertEqual(attributes["field"], "kept")
        text = found[0].body.string_value
        self.assertEqual(set(text), {"ü"})
        self.assertGreater(len(text), 10_000)

    def test_both_forms_say_the_same(self):
        engine = self.engine()
        write_all(engine)
        engine.roll()
        engine.archive_wait(30)
        for form in ("otlp-protobuf", "otlp-json"):
            engine.add_target(self.receiver.url, kind="otlp", format=form, name=form)
        self.assertEqual(engine.upload(timeout=60).failed, 0)
        forms = {"application/json": [], "application/x-protobuf": []}
        for (_, headers, _, _), request in zip(self.receiver.seen, self.receiver.requests()):
            # NaN does not equal itself: compare the bytes, which is as exact for the rest.
            forms[headers["Content-Type"]].append(request.SerializeToString(deterministic=True))
        first, second = forms.values()
        self.assertTrue(first)
        self.assertEqual(sorted(first), sorted(second))


class Export(Case):
    def test_lines_are_requests_with_every_record(self):
        engine = self.engine()
        write_all(engine)
        for archived in (False, True):
            if archived:
                engine.close()
            wanted = self.wanted()
            done = subprocess.run([CORDWOOD, "export", self.store, "--format", "otlp"],
                                  capture_output=True, check=True)
            lines = done.stdout.split(b"\n")
            self.assertEqual(lines.pop(), b"")
            found = flat(map(from_json, lines))
            if archived:
                self.compare(wanted, found)
                continue
            # While a program runs, the same instant may be shown some ns apart.
            bodies = [value_of(record.body)[1] for _, _, record in found]
            self.assertEqual(sorted(b if isinstance(b, bytes) else b.encode() for b in bodies),
                             sorted(record.message_bytes for record in wanted))

    def test_selection_and_size_of_lines(self):
        engine = self.engine()
        for number in range(3_000):
            engine.logger("app.db" if number % 3 else "app").info("%s", f"{number} " + "x" * 300)
        done = subprocess.run([CORDWOOD, "export", self.store, "--format", "otlp", "--logger",
                               "app.db"], capture_output=True, check=True)
        lines = done.stdout.splitlines()
        self.assertGreater(len(lines), 2)
        found = flat(map(from_json, lines))
        self.assertEqual({logger for _, logger, _ in found}, {"app.db"})
        self.assertEqual(len(found), 2_000)


class Answers(Case):
    def target(self, **options):
        engine = self.engine()
        engine.logger("a").info("x")
        engine.add_target(self.receiver.url, kind="otlp", **options)
        return engine

    def said(self, engine):
        return [record for record in cordwood.read(self.store, logger="Cordwood.Uploader")
                if record.message == "the target does not take some records"]

    def test_success_may_be_empty(self):
        for status in (200, 201, 202, 204):
            with self.subTest(status=status):
                self.receiver.answers = [(status, {}, b"")]
                self.assertEqual(self.target().upload(timeout=60).uploaded, 1)

    def test_partial_success_is_kept_and_never_repeated(self):
        answer = ExportLogsServiceResponse()
        answer.partial_success.rejected_log_records = 2
        answer.partial_success.error_message = "too old"
        binary = answer.SerializeToString()
        text = json_format.MessageToJson(answer).encode()
        for form, kind, body in (("otlp-protobuf", "application/x-protobuf", binary),
                                 ("otlp-json", "application/json", text),
                                 ("otlp-protobuf", "application/json", text)):
            with self.subTest(form=form, kind=kind):
                self.receiver.answers = [(200, {"Content-Type": kind}, body)]
                self.receiver.seen.clear()
                engine = self.target(format=form)
                for text in "yz":
                    engine.logger("a").info("%s", text)
                with self.assertRaises(cordwood.UploadError) as raised:
                    engine.upload(timeout=60)
                result = raised.exception.result
                self.assertEqual((result.uploaded, result.quarantined, result.refused), (0, 1, 2))
                told = self.said(engine)
                archive = told[0].fields["archive"]
                self.assertTrue(Path(self.store, "archives", archive).exists())
                # Afterwards only the uploader's own record about it is sent.
                self.assertEqual(engine.upload(timeout=60).refused, 0)
                sent = [r.body.string_value for _, _, r in flat(self.receiver.requests())]
                self.assertEqual(sent.count("x"), 1)
                self.assertEqual(len(told), 1)
                self.assertEqual(told[0].fields["records"], 2)
                self.assertIn("too old", told[0].fields["cause"])

    def test_busy_receivers_are_asked_again_when_they_say(self):
        for status in (429, 502, 503, 504):
            with self.subTest(status=status):
                self.receiver.answers = [(status, {"Retry-After": "3600"}, b"")] * 20
                engine = self.target()
                with self.assertRaises(cordwood.UploadError):
                    engine.upload(timeout=60)
                self.receiver.seen.clear()
                with self.assertRaises(cordwood.UploadError):
                    engine.upload(timeout=60)
                self.assertEqual(self.receiver.seen, [], "it said when")
                engine.close()

    def test_400_to_what_is_too_large_is_split(self):
        """The collector's own limit applies before compression, and its answer is 400."""
        self.receiver.judge = lambda _, data: 400 if len(data) > 1_200_000 else 200
        engine = self.target()
        self.assertEqual(engine.upload(timeout=60).uploaded, 1)
        for number in range(40):
            engine.logger("app").info("%s", f"{number} " + "y" * 90_000)
        engine.roll()
        engine.archive_wait(30)
        wanted = self.wanted()
        self.receiver.seen.clear()
        result = engine.upload(timeout=60)
        self.assertEqual((result.failed, result.refused), (0, 0))
        statuses = [status for _, _, _, status in self.receiver.seen]
        self.assertLessEqual(statuses.count(400), 2)
        self.assertEqual([h["Content-Encoding"] for _, h, _, _ in self.receiver.seen],
                         ["gzip"] * len(statuses))
        found = [r.body.string_value for _, logger, r in flat(self.receiver.requests())
                 if logger == "app"]
        self.assertEqual(found, [r.message for r in wanted if r.logger == "app"])

    def test_a_record_that_is_refused_alone_is_kept(self):
        """Halving finds the record; all others are sent."""
        refusal = (400, {}, b"\x08\x03\x12\x07bad key")
        self.receiver.judge = lambda _, data: refusal if b"number 77" in data else 200
        engine = self.target()
        self.assertEqual(engine.upload(timeout=60).uploaded, 1)
        for number in range(200):
            engine.logger("a").info("%s", f"number {number}")
        with self.assertRaises(cordwood.UploadError) as raised:
            engine.upload(timeout=60)
        result = raised.exception.result
        self.assertEqual((result.uploaded, result.quarantined, result.refused), (0, 1, 1))
        taken = [r.body.string_value for _, logger, r in flat(self.receiver.requests())
                 if logger == "a"]
        self.assertEqual(sorted(taken),
                         sorted(["x", *(f"number {n}" for n in range(200) if n != 77)]))
        told = self.said(engine)
        self.assertEqual([r.fields["records"] for r in told][:1], [1])
        self.assertIn("HTTP 400: bad key", told[0].fields["cause"])


if __name__ == "__main__":
    unittest.main()
