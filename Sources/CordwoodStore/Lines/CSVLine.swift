// One record as a row of CSV (RFC 4180, except that lines end in LF); the first row contains names.
// Cells are valid UTF-8: other bytes become U+FFFD, and a message that held any also appears in
// `message_base64`. Code that writes many rows keeps a `CSVLines`, which remembers the text of a
// second and of threads. One thread at a time each.
// SAFETY: views are read below their count and not kept.

import CordwoodCore
import CordwoodFormats

public enum CSVLine {
    private static let names: [StaticString] = [
        "time", "level", "logger", "message", "pid", "tid", "file", "line", "function", "fields",
        "trace_id", "span_id", "kind", "message_base64", "process", "service", "host", "resource",
        "record_id",
    ]

    package static func appendHeader(to out: inout [UInt8]) {
        for (index, name) in names.enumerated() {
            if index > 0 { out.append(0x2c) }
            Literal.append(name, &out)
        }
        out.append(0x0a)
    }

    /// A single row. See `CSVLines`.
    package static func append(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        var line = LineCSV(keepsHeads: false)
        line.append(r)
        unsafe out.append(contentsOf: line.bytes.bytes)
    }
}

package final class CSVLines {
    /// One thread at a time and no callbacks: accesses need no check.
    @exclusivity(unchecked) private var line: LineCSV

    /// - Parameter isSafe: cells in which a spreadsheet would see a formula begin with an
    ///   apostrophe.
    package init(isSafe: Bool = false) {
        unsafe line = LineCSV(keepsHeads: true, isSafe: isSafe)
    }

    package func append(_ r: borrowing RecordRef, to out: inout GrowingBytes) {
        // Builds the row directly in `out`.
        unsafe swap(&line.bytes, &out)
        unsafe line.append(r)
        unsafe swap(&line.bytes, &out)
    }
}

/// The row being built.
private struct LineCSV: ~Copyable {
    private static let comma: UInt8 = 0x2c
    private static let quote: UInt8 = 0x22
    private static let apostrophe: UInt8 = 0x27

    var bytes = GrowingBytes()
    /// The time of that second, without its fraction.
    private var clock = ReadyBytes()
    private var second: UInt64 = .max
    /// Holds text that needs more than a copy.
    private var odd: [UInt8] = []
    private var json = LineJSON()
    private var heads: LineHeads
    private let isSafe: Bool

    init(keepsHeads: Bool, isSafe: Bool = false) {
        heads = LineHeads(isKept: keepsHeads)
        self.isSafe = isSafe
    }

    mutating func append(_ r: borrowing RecordRef) {
        time(r.timeNs)
        head(r)
        let isWhole = cell(r.message)
        let writer = heads.find(r.thread)
        if writer < 0 { number(r.thread) } else { heads.appendStart(writer, to: &bytes) }
        place(r)
        fields(r)
        trace(r)
        if r.kind == 0 { bytes.append("log") } else { putOdd { JSONLine.kind(r.kind, &$0) } }
        bytes.append(LineCSV.comma)
        if !isWhole {
            odd.removeAll(keepingCapacity: true)
            JSONText.base64(r.message, &odd)
            unsafe odd.withUnsafeBytes { _ = cell($0) }
        }
        if writer < 0 { origin(r.thread) } else { heads.appendEnd(writer, to: &bytes) }
        bytes.append(hex: r.sequence)
        bytes.append(0x0a)
    }

    private mutating func time(_ ns: UInt64) {
        let (seconds, fraction) = ns.quotientAndRemainder(dividingBy: 1_000_000_000)
        if seconds != second {
            second = seconds
            var text: [UInt8] = []
            Times.append(seconds: Int64(seconds), separator: 0x54, to: &text)
            text.append(0x2e)
            clock = unsafe text.withUnsafeBytes { ReadyBytes($0) } ?? ReadyBytes()
        }
        bytes.append(clock)
        bytes.append(nanoseconds: fraction)
    }

    private mutating func head(_ r: borrowing RecordRef) {
        if heads.append(r, to: &bytes) { return }
        let start = bytes.count
        bytes.append("Z,")
        putOdd { Levels.append(r.level, to: &$0) }
        bytes.append(LineCSV.comma)
        _ = cell(r.logger)
        bytes.append(LineCSV.comma)
        heads.keep(r, unsafe Bytes.slice(bytes.bytes, start, bytes.count &- start))
    }

    private mutating func number(_ thread: ThreadInfo) {
        let start = bytes.count
        bytes.append(LineCSV.comma)
        bytes.append(decimal: UInt64(thread.process.processID))
        bytes.append(LineCSV.comma)
        bytes.append(decimal: UInt64(thread.threadID))
        bytes.append(LineCSV.comma)
        let end = bytes.count
        origin(thread)
        let made = unsafe Bytes.slice(bytes.bytes, end, bytes.count &- end) ?? Bytes.none
        heads.keep(
            thread, unsafe Bytes.slice(bytes.bytes, start, end &- start), unsafe Array(made))
        bytes.resize(end)
    }

    private mutating func place(_ r: borrowing RecordRef) {
        if r.formatNumber == 0 { return makePlace(r) }
        if heads.appendPlace(r, to: &bytes) { return }
        let start = bytes.count
        makePlace(r)
        heads.keepPlace(r, unsafe Bytes.slice(bytes.bytes, start, bytes.count &- start))
    }

    private mutating func makePlace(_ r: borrowing RecordRef) {
        if r.file.count > 0 { _ = cell(r.file) }
        bytes.append(LineCSV.comma)
        if r.line > 0 { bytes.append(decimal: UInt64(r.line)) }
        bytes.append(LineCSV.comma)
        if r.function.count > 0 { _ = cell(r.function) }
        bytes.append(LineCSV.comma)
    }

    /// A JSON object, as in a JSON line; empty if there are no fields.
    private mutating func fields(_ r: borrowing RecordRef) {
        json.bytes.removeAll()
        if json.fields(r, before: "") { _ = cell(unsafe json.bytes.bytes) }
        bytes.append(LineCSV.comma)
    }

    private mutating func trace(_ r: borrowing RecordRef) {
        if r.trace.count > 0 { putOdd { Hex.append(r.traceID, to: &$0) } }
        bytes.append(LineCSV.comma)
        if r.trace.count > 0 { putOdd { Hex.append(r.spanID, to: &$0) } }
        bytes.append(LineCSV.comma)
    }

    /// Process, service, host and the other attributes as a JSON object, empty if unknown; and the
    /// record's id up to the sequence.
    private mutating func origin(_ thread: ThreadInfo) {
        bytes.append(LineCSV.comma)
        let origin = thread.process.origin
        for text in [thread.process.name, origin.service, origin.host] {
            var text = text
            text.withUTF8 { _ = cell(UnsafeRawBufferPointer($0)) }
            bytes.append(LineCSV.comma)
        }
        if origin.object.count > 2 { unsafe origin.object.withUnsafeBytes { _ = cell($0) } }
        bytes.append(LineCSV.comma)
        let id = RecordID(lane: thread.process.laneID, threadSerial: thread.serial, sequence: 0)
        let (a, b, c, d, _, _) = id.digits
        bytes.append(word: a)
        bytes.append(word: b)
        bytes.append(word: c)
        bytes.append(word: d)
    }

    /// False if bytes that are not UTF-8 were replaced.
    @safe private mutating func cell(_ text: UnsafeRawBufferPointer) -> Bool {
        let start = bytes.count
        let isFormula = isSafe && LineCSV.beginsFormula(text)
        if isFormula { bytes.append(LineCSV.apostrophe) }
        // Most need no quotes.
        let shown = bytes.append(text, before: LineCSV.comma, LineCSV.quote)
        if shown == text.count { return true }
        bytes.resize(start)
        let isQuoted = unsafe text[shown...].contains {
            $0 == LineCSV.comma || $0 == LineCSV.quote || $0 == 0x0a || $0 == 0x0d
        }
        if isQuoted { bytes.append(LineCSV.quote) }
        if isFormula { bytes.append(LineCSV.apostrophe) }
        var isWhole = true
        var at = 0
        while true {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: text[at...])
            at &+= bytes.append(rest, marking: LineCSV.quote, LineCSV.quote, by: LineCSV.quote)
            if at == text.count { break }
            let byte = Bytes.u8(text, at)
            let size = byte < 0x80 ? 1 : UTF8Scan.length(text, at)
            if size > 0 {
                bytes.append(unsafe UnsafeRawBufferPointer(rebasing: text[at..<(at &+ size)]))
            } else {
                isWhole = false
                bytes.append(Bytes.literal("\u{FFFD}"))
            }
            at &+= max(abs(size), 1)
        }
        if isQuoted { bytes.append(LineCSV.quote) }
        return isWhole
    }

    @safe private static func beginsFormula(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count > 0 else { return false }
        switch Bytes.u8(text, 0) {
        case UInt8(ascii: "="), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "@"), 0x09, 0x0a,
            0x0d:
            return true
        case 0xef:
            guard text.count > 2 else { return false }
            // U+FF1D, U+FF0B, U+FF0D and U+FF20: the same signs in full width.
            switch (Bytes.u8(text, 1), Bytes.u8(text, 2)) {
            case (0xbc, 0x9d), (0xbc, 0x8b), (0xbc, 0x8d), (0xbc, 0xa0): return true
            default: return false
            }
        default: return false
        }
    }

    private mutating func putOdd(_ append: (inout [UInt8]) -> Void) {
        odd.removeAll(keepingCapacity: true)
        append(&odd)
        unsafe odd.withUnsafeBytes { bytes.append($0) }
    }
}
