// One record as one line of JSON, in the exact form that the API promises: time, level, logger,
// message, pid, tid, kind, process, service, host, resource and record_id always, the rest only if
// it is not empty. If process, service or host is unknown, it is null. Bytes that are not UTF-8
// become U+FFFD; a message that held any is also added in base64. Code that writes many lines keeps
// a `JSONLines`, which remembers the text of a second and of threads. One thread at a time each.
// SAFETY: views are read below their count and not kept.

import CordwoodCore
import CordwoodFormats

public enum JSONLine {
    /// A single line. See `JSONLines`.
    public static func append(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        append(r, mark: "", to: &out)
    }

    /// `mark` ends the message; it needs no escapes.
    package static func append(_ r: borrowing RecordRef, mark: String, to out: inout [UInt8]) {
        var line = LineJSON()
        line.line(r, mark: mark)
        line.copy(to: &out)
    }

    /// The same with all fields as one string of JSON; a record without fields has `"{}"`. Every
    /// line then has the same columns for a reader that infers them.
    package static func appendFlat(_ r: borrowing RecordRef, mark: String, to out: inout [UInt8]) {
        var line = LineJSON()
        line.line(r, mark: mark, isFlat: true)
        line.copy(to: &out)
    }

    /// The members before `fields`. `mark` ends the message.
    package static func appendHead(
        _ r: borrowing RecordRef, mark: String, to out: inout [UInt8]
    ) {
        var line = LineJSON()
        line.head(r, mark: mark)
        line.copy(to: &out)
    }

    /// The members after `fields`.
    package static func appendTail(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        var line = LineJSON()
        line.tail(r)
        line.copy(to: &out)
    }

    /// Appends the fields as an object. Returns false and writes nothing if there are no fields.
    package static func appendFields(_ r: borrowing RecordRef, to out: inout [UInt8]) -> Bool {
        var line = LineJSON()
        let isAny = line.fields(r, before: "")
        line.copy(to: &out)
        return isAny
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

    /// Numbers and booleans in JSON's own form; a number that is not finite becomes a string. No
    /// object of JSON has a name twice.
    package static func append(_ value: FieldValue, _ out: inout [UInt8]) {
        switch value {
        case .string(let text):
            _ = JSONText.string(text, &out)
        case .json(let text): JSONWalk.appendOnce(text, to: &out)
        case .double(let number) where !number.isFinite:
            out.append(0x22)
            FieldText.append(number, to: &out)
            out.append(0x22)
        default:
            FieldText.append(value, to: &out)
        }
    }
}

package final class JSONLines {
    /// One thread at a time and no callbacks: accesses need no check.
    @exclusivity(unchecked) private var line = LineJSON(keepsHeads: true)

    package init() {}

    package func append(_ r: borrowing RecordRef, to out: inout GrowingBytes) {
        // Builds the line directly in `out`.
        unsafe swap(&line.bytes, &out)
        unsafe line.line(r, mark: "")
        unsafe swap(&line.bytes, &out)
    }

    package func append(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        unsafe line.bytes.removeAll()
        unsafe line.line(r, mark: "")
        unsafe line.copy(to: &out)
    }
}

/// The line being built.
struct LineJSON: ~Copyable {
    var bytes = GrowingBytes()
    /// The time of that second, without its fraction.
    private var clock = ReadyBytes()
    private var second: UInt64 = .max
    /// Holds text that needs more than a copy.
    private var odd: [UInt8] = []
    private var heads: LineHeads

    /// - Parameter keepsHeads: more lines follow.
    init(keepsHeads: Bool = false) { heads = LineHeads(isKept: keepsHeads) }

    func copy(to out: inout [UInt8]) { unsafe out.append(contentsOf: bytes.bytes) }

    mutating func line(_ r: borrowing RecordRef, mark: String, isFlat: Bool = false) {
        bytes.append(0x7b)
        head(r, mark: mark)
        if isFlat {
            flatFields(r)
        } else {
            _ = fields(r, before: ",\"fields\":")
        }
        tail(r)
        bytes.append("}\n")
    }

    mutating func head(_ r: borrowing RecordRef, mark: String) {
        time(r.timeNs)
        if !heads.append(r, to: &bytes) {
            let start = bytes.count
            name(r)
            heads.keep(r, unsafe Bytes.slice(bytes.bytes, start, bytes.count &- start))
        }
        if !string(r.message, mark: mark) {
            bytes.append(",\"message_base64\":\"")
            putOdd { JSONText.base64(r.message, &$0) }
            bytes.append(0x22)
        }
        let writer = heads.find(r.thread)
        if writer < 0 {
            let start = bytes.count
            number(r.thread)
            let made = unsafe Bytes.slice(bytes.bytes, start, bytes.count &- start)
            heads.keep(r.thread, made, JSONLine.origin(of: r.thread))
        } else {
            heads.appendStart(writer, to: &bytes)
        }
        place(r)
    }

    private mutating func name(_ r: borrowing RecordRef) {
        bytes.append("Z\",\"level\":\"")
        putOdd { Levels.append(r.level, to: &$0) }
        bytes.append("\",\"logger\":")
        _ = string(r.logger)
        bytes.append(",\"message\":")
    }

    private mutating func number(_ thread: ThreadInfo) {
        bytes.append(",\"pid\":")
        bytes.append(decimal: UInt64(thread.process.processID))
        bytes.append(",\"tid\":")
        bytes.append(decimal: UInt64(thread.threadID))
    }

    mutating func tail(_ r: borrowing RecordRef) {
        trace(r)
        if r.kind == 0 {
            bytes.append(",\"kind\":\"log\"")
        } else {
            bytes.append(",\"kind\":\"")
            putOdd { JSONLine.kind(r.kind, &$0) }
            bytes.append(0x22)
        }
        let writer = heads.find(r.thread)
        if writer < 0 {
            unsafe JSONLine.origin(of: r.thread).withUnsafeBytes { bytes.append($0) }
        } else {
            heads.appendEnd(writer, to: &bytes)
        }
        bytes.append(hex: r.sequence)
        bytes.append(0x22)
    }

    /// False if there are no fields; then nothing is written, not even `before`. A context field
    /// never hides one of the record's own: parsers keep the last value of a key.
    mutating func fields(_ r: borrowing RecordRef, before: StaticString) -> Bool {
        if r.sections.count == 0 && r.context.count == 0 { return false }
        var fields = RecordFields(r)
        var count = 0
        while let (key, value) = fields.next() {
            if fields.part != .own, count > 0, LineJSON.isOwn(key, r) { continue }
            if count == 0 { bytes.append(before) }
            bytes.append(count == 0 ? 0x7b : 0x2c)
            count &+= 1
            _ = string(key)
            bytes.append(0x3a)
            put(value)
        }
        if count > 0 { bytes.append(0x7d) }
        return count > 0
    }

    private mutating func flatFields(_ r: borrowing RecordRef) {
        var object: [UInt8] = []
        if !JSONLine.appendFields(r, to: &object) { object += "{}".utf8 }
        bytes.append(",\"fields\":")
        _ = unsafe object.withUnsafeBytes { string($0) }
    }

    @safe private static func isOwn(_ key: UnsafeRawBufferPointer, _ r: borrowing RecordRef) -> Bool
    {
        var own = RecordFields(r)
        while let (other, _) = own.next(), own.part == .own {
            if Bytes.equal(other, key) { return true }
        }
        return false
    }

    private mutating func put(_ value: FieldValue) {
        switch value {
        case .string(let text): _ = string(text)
        case .double(let number) where !number.isFinite: putOdd { JSONLine.append(value, &$0) }
        case .json(let text): putOdd { JSONWalk.append(text, to: &$0) }
        default: FieldText.append(value, to: &bytes)
        }
    }

    private mutating func time(_ ns: UInt64) {
        let (seconds, fraction) = ns.quotientAndRemainder(dividingBy: 1_000_000_000)
        if seconds != second {
            second = seconds
            var text: [UInt8] = []
            Literal.append("\"time\":\"", &text)
            Times.append(seconds: Int64(seconds), separator: 0x54, to: &text)
            text.append(0x2e)
            clock = unsafe text.withUnsafeBytes { ReadyBytes($0) } ?? ReadyBytes()
        }
        bytes.append(clock)
        bytes.append(nanoseconds: fraction)
    }

    private mutating func place(_ r: borrowing RecordRef) {
        if r.formatNumber == 0 { return makePlace(r) }
        if heads.appendPlace(r, to: &bytes) { return }
        let start = bytes.count
        makePlace(r)
        heads.keepPlace(r, unsafe Bytes.slice(bytes.bytes, start, bytes.count &- start))
    }

    private mutating func makePlace(_ r: borrowing RecordRef) {
        if r.file.count > 0 {
            bytes.append(",\"file\":")
            _ = string(r.file)
        }
        if r.line > 0 {
            bytes.append(",\"line\":")
            bytes.append(decimal: UInt64(r.line))
        }
        if r.function.count > 0 {
            bytes.append(",\"function\":")
            _ = string(r.function)
        }
    }

    private mutating func trace(_ r: borrowing RecordRef) {
        if r.trace.count == 0 { return }
        if r.traceID.count > 0 {
            bytes.append(",\"trace_id\":\"")
            putOdd { Hex.append(r.traceID, to: &$0) }
            bytes.append(0x22)
        }
        if r.spanID.count > 0 {
            bytes.append(",\"span_id\":\"")
            putOdd { Hex.append(r.spanID, to: &$0) }
            bytes.append(0x22)
        }
    }

    /// A JSON string with `mark` at its end; false if bytes that are not UTF-8 were replaced.
    @safe private mutating func string(_ text: UnsafeRawBufferPointer, mark: String = "") -> Bool {
        bytes.append(0x22)
        var isWhole = true
        // Most bytes stand for themselves.
        var at = bytes.append(text, before: 0x22, 0x5c)
        while at < text.count {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: text[at...])
            at &+= bytes.append(rest, marking: 0x22, 0x5c, by: 0x5c)
            if at == text.count { break }
            let end = JSONText.end(of: text, from: at)
            if end > at {
                bytes.append(unsafe UnsafeRawBufferPointer(rebasing: text[at..<end]))
                at = end
            } else {
                if Bytes.u8(text, at) >= 0x80 { isWhole = false }
                putOdd { at &+= JSONText.replace(text, at, &$0) }
            }
        }
        if !mark.isEmpty { putOdd { $0.append(contentsOf: mark.utf8) } }
        bytes.append(0x22)
        return isWhole
    }

    private mutating func putOdd(_ append: (inout [UInt8]) -> Void) {
        odd.removeAll(keepingCapacity: true)
        append(&odd)
        unsafe odd.withUnsafeBytes { bytes.append($0) }
    }
}

extension JSONLine {
    /// The members that say where a thread's records come from, up to the sequence.
    fileprivate static func origin(of thread: ThreadInfo) -> [UInt8] {
        var text = thread.process.origin.members
        Literal.append(",\"record_id\":\"", &text)
        RecordID(lane: thread.process.laneID, threadSerial: thread.serial, sequence: 0)
            .append(to: &text)
        text.removeLast(16)
        return text
    }
}
