// A record as a row for ClickHouse (JSONEachRow): flat columns, exactly those of the table in
// docs/UPLOADS.md. `record_id` identifies repetitions (ReplacingMergeTree); fields and resource
// attributes are one column of JSON text each. Empty values are omitted, so the column's default
// applies. Pure.

import CordwoodFormats
import CordwoodStore

struct ClickHouseEntry: Sendable {
    let origin: Origin

    func append(_ record: RecordRef, _ out: inout [UInt8]) {
        let process = record.thread.process
        var row = JSONMembers(&out)
        row.recordID("record_id", record, &out)
        row.number("time_ns", record.timeNs, &out)
        row.level("level", record.level, &out)
        row.number("level_number", UInt64(record.level), &out)
        row.text("service", origin.service(of: record), &out)
        row.text("host", origin.host(of: record), &out)
        row.text("logger", record.logger, &out)
        row.message("message", base64: "message_base64", record, &out)
        row.number("pid", UInt64(process.processID), &out)
        row.number("tid", UInt64(record.thread.threadID), &out)
        row.text("process", process.name, &out)
        row.text("thread", record.thread.name, &out)
        row.text("file", record.file, &out)
        if record.line > 0 { row.number("line", UInt64(record.line), &out) }
        row.text("function", record.function, &out)
        row.hex("trace_id", record.traceID, &out)
        row.hex("span_id", record.spanID, &out)
        row.number("sequence", record.sequence, &out)
        row.kind("kind", record.kind, &out)
        let fields = UniqueFields.of(record)
        if !fields.isEmpty { row.quoted("fields", &out) { JSONMembers.object(of: fields, &$0) } }
        let others = process.attributes(without: Origin.keys)
        if !others.isEmpty { row.quoted("resource", &out) { JSONMembers.object(of: others, &$0) } }
        row.end(&out)
        out.append(0x0a)
    }
}
