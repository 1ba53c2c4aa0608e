// One record as one line of JSON, in the exact form that the API promises: time, level, logger,
// message, pid, tid and kind always, the rest only if it is not empty. Bytes that are not UTF-8
// become U+FFFD; a message that held any is also added in base64. No state: any thread.
// SAFETY: every index into a view stays below its count; output is an array, which grows by itself.

import CordwoodCore
import CordwoodFormats

public enum JSONLine {
    public static func append(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        append(r, mark: "", to: &out)
    }

    /// `mark` ends the message; it needs no escapes.
    package static func append(
        _ r: borrowing RecordRef, mark: String, to out: inout [UInt8]
    ) {
        out.append(0x7b)
        appendHead(r, mark: mark, to: &out)
        fields(r, &out)
        appendTail(r, to: &out)
        Literal.append("}\n", &out)
    }

    /// The members before `fields`. `mark` ends the message.
    package static func appendHead(
        _ r: borrowing RecordRef, mark: String, to out: inout [UInt8]
    ) {
        Literal.append("\"time\":\"", &out)
        Times.appendExact(r.timeNs, to: &out)
        Literal.append("\",\"level\":\"", &out)
        Levels.append(r.level, to: &out)
        Literal.append("\",\"logger\":", &out)
        _ = JSONText.string(r.logger, &out)
        Literal.append(",\"message\":", &out)
        if !JSONText.string(r.message, mark: mark, &out) {
            Literal.append(",\"message_base64\":\"", &out)
            JSONText.base64(r.message, &out)
            out.append(0x22)
        }
        Literal.append(",\"pid\":", &out)
        Digits.append(UInt64(r.thread.process.processID), to: &out)
        Literal.append(",\"tid\":", &out)
        Digits.append(UInt64(r.thread.threadID), to: &out)
        place(r, &out)
    }

    /// The members after `fields`.
    package static func appendTail(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        trace(r, &out)
        Literal.append(",\"kind\":\"", &out)
        kind(r.kind, &out)
        out.append(0x22)
    }

    package static func kind(_ kind: UInt8, _ out: inout [UInt8]) {
        switch kind {
        case 0: Literal.append("log", &out)
        case 1: Literal.append("gap", &out)
        case 2: Literal.append("lifecycle", &out)
        case 3: Literal.append("transaction", &out)
        case 4: Literal.append("http", &out)
        default: Digits.append(UInt64(kind), to: &out)
        }
    }

    private static func place(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        if r.file.count > 0 {
            Literal.append(",\"file\":", &out)
            _ = JSONText.string(r.file, &out)
        }
        if r.line > 0 {
            Literal.append(",\"line\":", &out)
            Digits.append(UInt64(r.line), to: &out)
        }
        if r.function.count > 0 {
            Literal.append(",\"function\":", &out)
            _ = JSONText.string(r.function, &out)
        }
    }

    private static func fields(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        _ = appendFields(r, before: ",\"fields\":", to: &out)
    }

    /// Appends the fields as an object. Returns false without fields and then writes nothing, not
    /// even `before`. A context field never hides one of the record's own: parsers keep the last
    /// value of a key.
    package static func appendFields(
        _ r: borrowing RecordRef, before: StaticString, to out: inout [UInt8]
    ) -> Bool {
        if r.sections.count == 0 && r.context.count == 0 { return false }
        var fields = RecordFields(r)
        var count = 0
        while let (key, value) = fields.next() {
            if fields.part != .own, count > 0, isOwn(key, r) { continue }
            if count == 0 { Literal.append(before, &out) }
            out.append(count == 0 ? 0x7b : 0x2c)
            count &+= 1
            _ = JSONText.string(key, &out)
            out.append(0x3a)
            append(value, &out)
        }
        if count > 0 { out.append(0x7d) }
        return count > 0
    }

    @safe private static func isOwn(_ key: UnsafeRawBufferPointer, _ r: borrowing RecordRef) -> Bool
    {
        var own = RecordFields(r)
        while let (other, _) = own.next(), own.part == .own {
            if Bytes.equal(other, key) { return true }
        }
        return false
    }

    /// Numbers and booleans in JSON's own form; a number that is not finite becomes a string.
    package static func append(_ value: FieldValue, _ out: inout [UInt8]) {
        switch value {
        case .string(let text):
            _ = JSONText.string(text, &out)
        case .double(let number) where !number.isFinite:
            out.append(0x22)
            FieldText.append(number, to: &out)
            out.append(0x22)
        default:
            FieldText.append(value, to: &out)
        }
    }

    private static func trace(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        if r.traceID.count > 0 {
            Literal.append(",\"trace_id\":\"", &out)
            Hex.append(r.traceID, to: &out)
            out.append(0x22)
        }
        if r.spanID.count > 0 {
            Literal.append(",\"span_id\":\"", &out)
            Hex.append(r.spanID, to: &out)
            out.append(0x22)
        }
    }
}
