// Records as rows: the object that `cordwood cat --json` prints, with the record's key and its time
// as a number. One owner, one thread at a time.
// SAFETY: a field's views are those of the record, and are read at once.

import Cordwood
import enum CordwoodCore.Bytes

struct RowJSON {
    private let lines = JSONLines()

    /// `{"row":…}` and a newline.
    func appendLine(_ record: borrowing RecordRef, isSelf: Bool = false, to out: inout [UInt8]) {
        out += "{\"row\":".utf8
        append(record, isSelf: isSelf, to: &out) { _ in }
        out += "}\n".utf8
    }

    /// The object alone. `more` may add members, each after a comma.
    func append(
        _ record: borrowing RecordRef, isSelf: Bool = false, to out: inout [UInt8],
        more: (inout [UInt8]) -> Void
    ) {
        lines.append(record, to: &out)
        // Without `}` and the newline.
        out.removeLast(2)
        out += ",\"key\":\"".utf8
        RecordKey(record).append(to: &out)
        out += "\",\"time_ns\":\"".utf8
        Digits.append(record.timeNs, to: &out)
        out.append(0x22)
        if isSelf { out += ",\"self\":true".utf8 }
        more(&out)
        out.append(0x7d)
    }

    /// Everything known about one record: also its thread, its exception, and the bytes that are
    /// not UTF-8.
    func appendWhole(_ record: borrowing RecordRef, to out: inout [UInt8]) {
        let thread = record.thread.name
        let record = copy record
        append(record, to: &out) { out in
            if !thread.isEmpty {
                out += ",\"thread\":".utf8
                JSONText.string(thread, &out)
            }
            RowJSON.appendException(record, &out)
            RowJSON.appendHex(record, &out)
        }
    }

    private static func appendException(_ record: RecordRef, _ out: inout [UInt8]) {
        var isFirst = true
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            guard fields.part == .exception, case .string(let text) = value else { continue }
            out += (isFirst ? ",\"exception\":{" : ",").utf8
            isFirst = false
            // exception.type, exception.message, exception.stacktrace
            let name = unsafe key.dropFirst("exception.".utf8.count)
            _ = unsafe JSONText.string(UnsafeRawBufferPointer(rebasing: name), &out)
            out.append(0x3a)
            _ = JSONText.string(text, &out)
        }
        if !isFirst { out.append(0x7d) }
    }

    private static func appendHex(_ record: RecordRef, _ out: inout [UInt8]) {
        var isFirst = true
        add(Bytes.literal("message"), record.message, &isFirst, &out)
        add(Bytes.literal("logger"), record.logger, &isFirst, &out)
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            if case .string(let text) = value { add(key, text, &isFirst, &out) }
        }
        if !isFirst { out.append(0x7d) }
    }

    @safe private static func add(
        _ name: UnsafeRawBufferPointer, _ text: UnsafeRawBufferPointer, _ isFirst: inout Bool,
        _ out: inout [UInt8]
    ) {
        if UTF8Scan.isValid(text), UTF8Scan.isValid(name) { return }
        out += (isFirst ? ",\"hex\":{" : ",").utf8
        isFirst = false
        _ = JSONText.string(name, &out)
        out += ":\"".utf8
        Hex.append(text, to: &out)
        out.append(0x22)
    }
}
