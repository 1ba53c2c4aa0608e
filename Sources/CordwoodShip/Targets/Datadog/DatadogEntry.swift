// A record for Datadog's log intake: an element of a JSON array, with Datadog's reserved and
// standard attributes. The record's fields stay together under `fields`, typed, so that none can
// replace a reserved attribute. Pure.

import CordwoodFormats
import CordwoodStore

struct DatadogEntry: Sendable {
    let origin: Origin
    var source: String?
    var tags: String?

    static let sourceDefault = "cordwood"

    func append(_ record: RecordRef, _ out: inout [UInt8]) {
        let process = record.thread.process
        let fields = UniqueFields.of(record)
        var object = JSONMembers(&out)
        // Datadog dates an event by `timestamp`, to the millisecond.
        object.number("timestamp", record.timeNs / 1_000_000, &out)
        object.time("time", record.timeNs, digits: 9, &out)
        object.text("status", DatadogEntry.status(record.level), &out)
        object.level("level", record.level, &out)
        object.message("message", base64: "message_base64", record, &out)
        object.text("service", origin.service(of: record), &out)
        object.text("hostname", origin.host(of: record), &out)
        object.text("ddsource", source ?? DatadogEntry.sourceDefault, &out)
        object.text("ddtags", tags, &out)
        object.name("logger", &out)
        var logger = JSONMembers(&out)
        logger.text("name", record.logger, &out)
        logger.text("thread_name", record.thread.name, &out)
        logger.text("method_name", record.function, &out)
        logger.end(&out)
        object.number("pid", UInt64(process.processID), &out)
        object.number("tid", UInt64(record.thread.threadID), &out)
        object.text("process", process.name, &out)
        object.text("file", record.file, &out)
        if record.line > 0 { object.number("line", UInt64(record.line), &out) }
        error(fields, &object, &out)
        object.hex("trace_id", record.traceID, &out)
        object.hex("span_id", record.spanID, &out)
        object.number("sequence", record.sequence, &out)
        object.kind("kind", record.kind, &out)
        object.recordID("record_id", record, &out)
        object.fields("fields", fields.filter { $0.part != .exception }, &out)
        object.resource("resource", process.attributes(without: Origin.keys), &out)
        object.end(&out)
    }

    private func error(
        _ fields: [UniqueFields.Field], _ object: inout JSONMembers, _ out: inout [UInt8]
    ) {
        guard fields.contains(where: { $0.part == .exception }) else { return }
        object.name("error", &out)
        var error = JSONMembers(&out)
        error.text("kind", UniqueFields.exception("exception.type", in: fields), &out)
        error.text("message", UniqueFields.exception("exception.message", in: fields), &out)
        error.text("stack", UniqueFields.exception("exception.stacktrace", in: fields), &out)
        error.end(&out)
    }

    private static func status(_ level: UInt8) -> String {
        switch level {
        case 1...8: "debug"
        case 10...12: "notice"
        case 13...16: "warn"
        case 17...20: "error"
        case 21...: "critical"
        default: "info"
        }
    }
}
