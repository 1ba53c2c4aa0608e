// A record for Splunk's HTTP Event Collector, one object after another. `event` holds the record's
// content. Its fields are `fields`, flat and text, because Splunk refuses nested ones (code 15).
// Fields give way to Splunk's own names and to the ones it reserves (`_…`). Pure.

import CordwoodFormats
import CordwoodStore

struct SplunkEntry: Sendable {
    let origin: Origin
    var source: String?
    var sourceType: String?
    var index: String?

    static let sourceDefault = "cordwood"
    static let sourceTypeDefault = "_json"

    private static let own = [
        "time", "host", "source", "sourcetype", "index", "linecount", "punct", "splunk_server",
        "timestamp", "message", "level", "logger", "service", "pid", "tid", "thread", "process",
        "file", "line", "function", "trace_id", "span_id", "sequence", "kind", "record_id",
        "message_base64",
    ]

    private static let names = FieldNames(.letterFirst, own: own)

    func append(_ record: RecordRef, _ out: inout [UInt8]) {
        var object = JSONMembers(&out)
        object.name("time", &out)
        Digits.append(record.timeNs / 1_000_000_000, to: &out)
        out.append(0x2e)
        Digits.append(record.timeNs % 1_000_000_000, to: &out, width: 9)
        object.text("host", origin.host(of: record), &out)
        object.text("source", source ?? SplunkEntry.sourceDefault, &out)
        object.text("sourcetype", sourceType ?? SplunkEntry.sourceTypeDefault, &out)
        object.text("index", index, &out)
        object.name("event", &out)
        event(record, &out)
        fields(record, &object, &out)
        object.end(&out)
        out.append(0x0a)
    }

    private func event(_ record: RecordRef, _ out: inout [UInt8]) {
        let process = record.thread.process
        var event = JSONMembers(&out)
        event.message("message", base64: "message_base64", record, &out)
        event.level("level", record.level, &out)
        event.text("logger", record.logger, &out)
        event.text("service", origin.service(of: record), &out)
        event.number("pid", UInt64(process.processID), &out)
        event.number("tid", UInt64(record.thread.threadID), &out)
        event.text("thread", record.thread.name, &out)
        event.text("process", process.name, &out)
        event.text("file", record.file, &out)
        if record.line > 0 { event.number("line", UInt64(record.line), &out) }
        event.text("function", record.function, &out)
        event.hex("trace_id", record.traceID, &out)
        event.hex("span_id", record.spanID, &out)
        event.number("sequence", record.sequence, &out)
        event.kind("kind", record.kind, &out)
        event.recordID("record_id", record, &out)
        event.end(&out)
    }

    private func fields(
        _ record: RecordRef, _ object: inout JSONMembers, _ out: inout [UInt8]
    ) {
        let fields = UniqueFields.of(record)
        let others = record.thread.process.attributes(without: Origin.keys)
        if fields.isEmpty && others.isEmpty { return }
        object.name("fields", &out)
        var members = JSONMembers(&out)
        var names = SplunkEntry.names
        for field in fields {
            members.name(names.name(field.key), &out)
            FieldJSON.appendString(field.value, &out)
        }
        for (key, value) in others {
            var key = key
            members.name(key.withUTF8 { names.name(UnsafeRawBufferPointer($0)) }, &out)
            JSONText.string(value, &out)
        }
        members.end(&out)
    }
}
