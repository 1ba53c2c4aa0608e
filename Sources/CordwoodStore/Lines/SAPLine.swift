// One record as a line of SAP Mobile Services (B-SAP-4), for exports and uploads alike: `#Date
// time#Severity#CorrelationId#Source#Location#Message#`, always with seven `#`, whatever the record
// holds. Times are UTC and say so by `+00:00`. Valid UTF-8: other bytes become U+FFFD. The lossless
// forms keep the parts that have no place in this one (fields, thread, span). No state: any thread.
// SAFETY: views are read below their count and not kept.

import CordwoodCore
import CordwoodFormats

public enum SAPLine {
    /// The field of a record or its context that links it to a request.
    package static let correlationField: StaticString = "correlation_id"

    /// - Parameter mark: ends the message.
    package static func append(
        _ r: borrowing RecordRef, mark: String = "", to out: inout [UInt8]
    ) {
        out.append(0x23)
        Times.append(r.timeNs, digits: 3, to: &out)
        Literal.append("+00:00#", &out)
        Literal.append(severity(r.level), &out)
        out.append(0x23)
        correlation(r, &out)
        out.append(0x23)
        column(r.logger, &out)
        out.append(0x23)
        location(r, &out)
        out.append(0x23)
        column(r.message, &out)
        out.append(contentsOf: mark.utf8)
        exception(r, &out)
        Literal.append("#\n", &out)
    }

    /// A record without a level is reported as INFO.
    private static func severity(_ level: UInt8) -> StaticString {
        switch level {
        case 1...8: "DEBUG"
        case 13...16: "WARN"
        case 17...20: "ERROR"
        case 21...: "FATAL"
        default: "INFO"
        }
    }

    private static func correlation(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        var fields = RecordFields(r)
        while let (key, value) = fields.next() {
            guard Bytes.equal(key, Bytes.literal(correlationField)) else { continue }
            switch value {
            case .string(let text), .json(let text): return column(text, &out)
            default: return FieldText.append(value, to: &out)
            }
        }
        Hex.append(r.traceID, to: &out)
    }

    private static func location(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        if r.file.count > 0 || r.line > 0 {
            column(r.file, &out)
            out.append(0x3a)
            Digits.append(UInt64(r.line), to: &out)
            if r.function.count > 0 { out.append(0x20) }
        }
        column(r.function, &out)
    }

    /// Appended to the message: type and text, then the stack, each as if on a line of its own.
    private static func exception(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        var fields = RecordFields(r)
        var hasType = false
        while let (key, value) = fields.next() {
            guard fields.part == .exception, case .string(let text) = value else { continue }
            let isText = Bytes.equal(key, Bytes.literal("exception.message"))
            Literal.append(isText && hasType ? ": " : "\\n", &out)
            hasType = Bytes.equal(key, Bytes.literal("exception.type"))
            column(text, &out)
        }
    }

    @safe private static func column(
        _ text: UnsafeRawBufferPointer, _ out: inout [UInt8]
    ) {
        var at = 0
        var run = 0
        while at < text.count {
            let byte = unsafe text[at]
            let size = byte < 0x80 ? 1 : UTF8Scan.length(text, at)
            if size > 0 && byte != 0x23 && byte != 0x0a && byte != 0x0d {
                at &+= size
                continue
            }
            if run < at {
                unsafe out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[run..<at]))
            }
            switch byte {
            case 0x23: out.append(0x5f)
            case 0x0a: Literal.append("\\n", &out)
            case 0x0d: Literal.append("\\r", &out)
            default: Literal.append("\u{FFFD}", &out)
            }
            at &+= abs(size)
            run = at
        }
        if run < at {
            unsafe out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[run..<at]))
        }
    }
}
