// One record as a row of CSV (RFC 4180, except that lines end in LF), after a first row of names.
// Cells are valid UTF-8: other bytes become U+FFFD, and a message that held any also appears in
// `message_base64`. No state: any thread.
// SAFETY: views are read below their count and not kept.

import CordwoodCore
import CordwoodFormats

public enum CSVLine {
    private static let names: [StaticString] = [
        "time", "level", "logger", "message", "pid", "tid", "file", "line", "function", "fields",
        "trace_id", "span_id", "kind", "message_base64",
    ]

    package static func appendHeader(to out: inout [UInt8]) {
        for (index, name) in names.enumerated() {
            if index > 0 { out.append(comma) }
            Literal.append(name, &out)
        }
        out.append(0x0a)
    }

    package static func append(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        Times.appendExact(r.timeNs, to: &out)
        out.append(comma)
        Levels.append(r.level, to: &out)
        out.append(comma)
        cell(r.logger, &out)
        out.append(comma)
        let isWhole = cell(r.message, &out)
        out.append(comma)
        Digits.append(UInt64(r.thread.process.processID), to: &out)
        out.append(comma)
        Digits.append(UInt64(r.thread.threadID), to: &out)
        out.append(comma)
        cell(r.file, &out)
        out.append(comma)
        if r.line > 0 { Digits.append(UInt64(r.line), to: &out) }
        out.append(comma)
        cell(r.function, &out)
        out.append(comma)
        fields(r, &out)
        out.append(comma)
        Hex.append(r.traceID, to: &out)
        out.append(comma)
        Hex.append(r.spanID, to: &out)
        out.append(comma)
        JSONLine.kind(r.kind, &out)
        out.append(comma)
        if !isWhole { JSONText.base64(r.message, &out) }
        out.append(0x0a)
    }

    private static let comma: UInt8 = 0x2c
    private static let quote: UInt8 = 0x22

    /// A JSON object, as in a JSON line; empty if there are no fields.
    private static func fields(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        var text: [UInt8] = []
        guard JSONLine.appendFields(r, before: "", to: &text) else { return }
        unsafe text.withUnsafeBytes { _ = cell($0, &out) }
    }

    /// False if bytes that are not UTF-8 were replaced.
    @safe @discardableResult
    private static func cell(_ text: UnsafeRawBufferPointer, _ out: inout [UInt8]) -> Bool {
        let isQuoted = unsafe text.contains {
            $0 == comma || $0 == quote || $0 == 0x0a || $0 == 0x0d
        }
        if isQuoted { out.append(quote) }
        var isWhole = true
        var at = 0
        var run = 0
        while at < text.count {
            let byte = unsafe text[at]
            let size = byte < 0x80 ? 1 : UTF8Scan.length(text, at)
            if size > 0 && byte != quote {
                at &+= size
                continue
            }
            // A quote is doubled: written once here, and again as the start of what follows.
            let end = size < 0 ? at : at &+ 1
            unsafe out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[run..<end]))
            if size < 0 {
                isWhole = false
                Literal.append("\u{FFFD}", &out)
            }
            run = size < 0 ? at &- size : at
            at &+= abs(size)
        }
        unsafe out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[run..<at]))
        if isQuoted { out.append(quote) }
        return isWhole
    }
}
