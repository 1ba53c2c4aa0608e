// A record for the bulk interface of Elasticsearch and OpenSearch: an action line with our own
// `_id`, which lets the server recognise repetitions, and a document with the names of the Elastic
// Common Schema. Fields go to `labels`, numbers to `numeric_labels`, as that schema demands. Names
// have no dots, so that `a` and `a.b` do not conflict. Pure.

import CordwoodFormats
import CordwoodStore

struct ElasticsearchEntry: Sendable {
    let origin: Origin
    /// nil: the action line does not name it.
    var index: String?

    private static let attributes: [(key: String, name: StaticString)] = [
        ("service.version", "service.version"), ("deployment.environment", "service.environment"),
        ("user.id", "user.id"), ("os.type", "host.os.type"), ("os.version", "host.os.version"),
    ]
    private static let known = Origin.keys + attributes.map(\.key)

    func append(_ record: RecordRef, _ out: inout [UInt8]) {
        Literal.append("{\"create\":{", &out)
        if let index {
            // Index names contain no character that JSON escapes.
            Literal.append("\"_index\":\"", &out)
            out += index.utf8
            Literal.append("\",", &out)
        }
        Literal.append("\"_id\":\"", &out)
        record.id.append(to: &out)
        Literal.append("\"}}\n", &out)
        let process = record.thread.process
        let fields = UniqueFields.of(record)
        var object = JSONMembers(&out)
        object.time("@timestamp", record.timeNs, digits: 9, &out)
        object.level("log.level", record.level, &out)
        object.message("message", base64: "cordwood.message_base64", record, &out)
        object.text("log.logger", record.logger, &out)
        object.text("service.name", origin.service(of: record), &out)
        object.text("host.name", origin.host(of: record), &out)
        for (key, name) in ElasticsearchEntry.attributes {
            object.text(name, process.attribute(key), &out)
        }
        object.number("process.pid", UInt64(process.processID), &out)
        object.text("process.name", process.name, &out)
        object.number("process.thread.id", UInt64(record.thread.threadID), &out)
        object.text("process.thread.name", record.thread.name, &out)
        object.text("log.origin.file.name", record.file, &out)
        if record.line > 0 { object.number("log.origin.file.line", UInt64(record.line), &out) }
        object.text("log.origin.function", record.function, &out)
        object.text("error.type", UniqueFields.exception("exception.type", in: fields), &out)
        object.text("error.message", UniqueFields.exception("exception.message", in: fields), &out)
        object.text(
            "error.stack_trace", UniqueFields.exception("exception.stacktrace", in: fields), &out)
        object.hex("trace.id", record.traceID, &out)
        object.hex("span.id", record.spanID, &out)
        object.number("event.sequence", record.sequence & UInt64(Int64.max), &out)
        object.kind("cordwood.kind", record.kind, &out)
        labels(fields, process, &object, &out)
        object.end(&out)
        out.append(0x0a)
    }

    /// The value decides where a field goes: one that the server's numbers cannot hold (NaN, more
    /// than 63 bits) is a label. JSON is a label, too, as text: a label is a keyword, and the
    /// server refuses a record with an object there.
    private func labels(
        _ fields: [UniqueFields.Field], _ process: ProcessInfo, _ object: inout JSONMembers,
        _ out: inout [UInt8]
    ) {
        var names = FieldNames(.dotless)
        var isOpen = false
        var members: JSONMembers?
        func label(_ name: [UInt8], _ value: FieldValue) {
            if !isOpen {
                object.name("labels", &out)
                members = JSONMembers(&out)
                isOpen = true
            }
            members?.name(name, &out)
            FieldJSON.appendString(value, &out)
        }
        for field in fields where field.part != .exception && !isNumber(field.value) {
            label(names.name(field.key), field.value)
        }
        for (key, value) in process.attributes(without: ElasticsearchEntry.known) {
            var (key, value) = (key, value)
            let name = key.withUTF8 { names.name(UnsafeRawBufferPointer($0)) }
            value.withUTF8 { label(name, unsafe .string(UnsafeRawBufferPointer($0))) }
        }
        members?.end(&out)
        var numbers: JSONMembers?
        var numberNames = FieldNames(.dotless)
        for field in fields where field.part != .exception && isNumber(field.value) {
            if numbers == nil {
                object.name("numeric_labels", &out)
                numbers = JSONMembers(&out)
            }
            numbers?.name(numberNames.name(field.key), &out)
            JSONLine.append(field.value, &out)
        }
        numbers?.end(&out)
    }

    private func isNumber(_ value: FieldValue) -> Bool {
        switch value {
        case .int: true
        case .uint(let number): number <= UInt64(Int64.max)
        case .double(let number): number.isFinite
        case .bool, .string, .json: false
        }
    }
}
