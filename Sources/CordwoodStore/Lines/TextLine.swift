// One record as a line for people: time, level, process[pid:tid], logger, message, fields, place.
// On request, the host and the service stand before the process, and the record's id at the end.
// Further lines of the message and the stack trace follow the line, marked as such. `cat`, `tail`,
// `grep`, exports, consoles and text bodies all use this. Code that writes many lines keeps a
// `TextLines`, which remembers the text of a second and of a process. One thread at a time each.
// SAFETY: views are read below their count and not kept.

import CordwoodCore
import CordwoodFormats

/// How much a line of text says of a record's origin.
public enum TextOrigin: Equatable, Sendable {
    /// Only its process.
    case none
    /// Also its host, if that is another one than this.
    case elsewhere
    /// Host, service and the record's id.
    case all
}

public enum TextLine {
    /// A single line. See `TextLines`.
    public static func append(
        _ r: borrowing RecordRef, to out: inout [UInt8], utc: Bool, color: Bool,
        form: TextForm = .lines, origin: TextOrigin = .none
    ) {
        var line = LineText(
            isUTC: utc, hasColor: color, form: form, origin: origin, keepsHeads: false)
        line.append(r, TextMarks(ranges: []))
        unsafe out.append(contentsOf: line.bytes.bytes)
    }
}

package final class TextLines {
    /// One thread at a time and no callbacks: accesses need no check.
    @exclusivity(unchecked) private var line: LineText

    /// - Parameters:
    ///   - form: of the message and the stack trace; the rest is one line in every form except
    ///     `raw`. In `oneLine` the stack trace is a field like the others.
    ///   - origin: what the line says of the record's origin, besides its process.
    package init(
        utc: Bool, color: Bool, form: TextForm = .lines, origin: TextOrigin = .none
    ) {
        unsafe line = LineText(
            isUTC: utc, hasColor: color, form: form, origin: origin, keepsHeads: true)
    }

    /// - Parameter marked: ranges of `TextLine.Shown` to show in another colour: ascending, not
    /// empty, apart.
    package func append(
        _ r: borrowing RecordRef, to out: inout GrowingBytes, marked: [Range<Int>] = []
    ) {
        // Builds the line directly in `out`.
        unsafe swap(&line.bytes, &out)
        unsafe line.append(r, TextMarks(ranges: marked))
        unsafe swap(&line.bytes, &out)
    }

    package func append(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        unsafe line.bytes.removeAll()
        unsafe line.append(r, TextMarks(ranges: []))
        unsafe out.append(contentsOf: line.bytes.bytes)
    }
}

/// The line being built.
private struct LineText: ~Copyable {
    /// CW_KIND_HTTP
    private static let exchange: UInt8 = 4

    var bytes = GrowingBytes()
    private let form: TextForm
    private let names: TextForm
    private let isUTC: Bool
    private let hasColor: Bool
    private let origin: TextOrigin
    /// The time of a record in the millisecond that begins there, and the start of its second.
    private var clock = ReadyBytes()
    private var millisecond: UInt64 = 0
    private var second: UInt64 = 0
    /// What lines say between the time and the message.
    private var heads: LineHeads

    init(isUTC: Bool, hasColor: Bool, form: TextForm, origin: TextOrigin, keepsHeads: Bool) {
        self.isUTC = isUTC
        self.hasColor = hasColor
        self.form = form
        self.origin = origin
        names = form == .raw ? .raw : .oneLine
        heads = LineHeads(isKept: keepsHeads, hasThread: true)
    }

    mutating func append(_ r: borrowing RecordRef, _ marks: TextMarks) {
        if hasColor { bytes.append("\u{1B}[2m") }
        time(r)
        head(r)
        if !marks.ranges.isEmpty {
            put(r.message, form, marks, at: 0)
        } else {
            // Most messages are only printable ASCII.
            let shown = form == .raw ? 0 : bytes.append(printable: r.message)
            if shown < r.message.count {
                put(unsafe UnsafeRawBufferPointer(rebasing: r.message[shown...]), form)
            }
        }
        var trace = Bytes.none
        var fieldsEnd = r.message.count
        if r.sections.count > 0 || r.context.count > 0 {
            if marks.ranges.isEmpty {
                unsafe trace = TextLine.Shown.appendFields(r, form, to: &bytes)
            } else {
                var fields = GrowingBytes()
                unsafe trace = TextLine.Shown.appendFields(r, form, to: &fields)
                put(unsafe fields.bytes, .raw, marks, at: r.message.count)
                fieldsEnd &+= fields.count
            }
        }
        appendMarks(r)
        if case .all = origin {
            bytes.append(" [")
            append(r.id)
            bytes.append(0x5d)
        }
        bytes.append(0x0a)
        if trace.count == 0 { return }
        if form == .lines { bytes.append(PlainText.continuation) }
        put(trace, form, marks, at: fieldsEnd &+ 1)
        bytes.append(0x0a)
    }

    private mutating func append(_ id: RecordID) {
        let (a, b, c, d, e, f) = id.digits
        bytes.append(word: a)
        bytes.append(word: b)
        bytes.append(word: c)
        bytes.append(word: d)
        bytes.append(word: e)
        bytes.append(word: f)
    }

    private mutating func time(_ r: borrowing RecordRef) {
        // An exchange's own time is its beginning, but its end decides its place among its
        // neighbours.
        let ns = r.kind == LineText.exchange ? r.writtenNs : r.timeNs
        // For a time before that millisecond, the difference wraps to a large number.
        if ns &- millisecond >= 1_000_000 || clock.count == 0 { setClock(ns) }
        bytes.append(clock)
    }

    /// The offset after `2026-11-21 09:15:30.`; UTC ns of 64 bits end in 2554.
    private static let millisecondsAt = 20

    @inline(never)
    private mutating func setClock(_ ns: UInt64) {
        if ns &- second >= 1_000_000_000 || clock.count == 0 {
            second = ns &- ns % 1_000_000_000
            var text: [UInt8] = []
            Times.appendReadable(second, utc: isUTC, to: &text)
            clock = unsafe text.withUnsafeBytes { ReadyBytes($0) } ?? ReadyBytes()
        }
        let digits = UInt32(truncatingIfNeeded: ns &- second) / 1_000_000
        millisecond = second &+ UInt64(digits) &* 1_000_000
        clock.set(UInt8(truncatingIfNeeded: 0x30 | digits / 100), at: LineText.millisecondsAt)
        clock.set(
            UInt8(truncatingIfNeeded: 0x30 | digits / 10 % 10), at: LineText.millisecondsAt + 1)
        clock.set(UInt8(truncatingIfNeeded: 0x30 | digits % 10), at: LineText.millisecondsAt + 2)
    }

    // MARK: Between the time and the message

    private mutating func head(_ r: borrowing RecordRef) {
        if heads.append(r, to: &bytes) { return }
        let start = bytes.count
        makeHead(r)
        heads.keep(r, unsafe Bytes.slice(bytes.bytes, start, bytes.count &- start))
    }

    private mutating func makeHead(_ r: borrowing RecordRef) {
        if hasColor {
            bytes.append("\u{1B}[0m ")
            switch r.level {
            case 17...: bytes.append("\u{1B}[31m")
            case 13...: bytes.append("\u{1B}[33m")
            case 9...: bytes.append("\u{1B}[32m")
            default: bytes.append("\u{1B}[36m")
            }
            level(r.level)
            bytes.append("\u{1B}[0m")
        } else {
            bytes.append(0x20)
            level(r.level)
        }
        place(r.thread.process)
        bytes.append(decimal: UInt64(r.thread.threadID))
        bytes.append("] ")
        if r.logger.count > 0 {
            put(r.logger, names)
            bytes.append(": ")
        }
    }

    private mutating func level(_ level: UInt8) {
        var text: [UInt8] = []
        if level == 0 { text.append(0x2d) } else { Levels.append(level, to: &text) }
        while text.count < 5 { text.append(0x20) }
        unsafe text.withUnsafeBytes { bytes.append($0) }
    }

    /// The process, up to the thread.
    private mutating func place(_ process: ProcessInfo) {
        bytes.append(0x20)
        let from = process.origin
        let isTold =
            switch origin {
            case .none: false
            case .elsewhere: !from.isHere
            case .all: true
            }
        if isTold, !from.host.isEmpty {
            put(from.host)
            bytes.append(0x20)
        }
        if case .all = origin, !from.service.isEmpty {
            put(from.service)
            bytes.append(0x2f)
        }
        put(process.name)
        bytes.append(0x5b)
        bytes.append(decimal: UInt64(process.processID))
        bytes.append(0x3a)
    }

    // MARK: Parts

    private mutating func put(_ name: String) {
        var name = name
        name.withUTF8 { put(UnsafeRawBufferPointer($0), names) }
    }

    @safe private mutating func put(
        _ text: UnsafeRawBufferPointer, _ form: TextForm, _ marks: TextMarks, at start: Int
    ) {
        if marks.ranges.isEmpty { return put(text, form) }
        marks.append(text, at: start, as: form, to: &bytes)
    }

    @safe private mutating func put(_ text: UnsafeRawBufferPointer, _ form: TextForm) {
        PlainText.append(text, as: form, to: &bytes)
    }

    @inline(never)
    private mutating func place(_ r: borrowing RecordRef) {
        let start = bytes.count
        bytes.append(" (")
        put(r.file, .oneLine)
        bytes.append(0x3a)
        bytes.append(decimal: UInt64(r.line))
        bytes.append(0x29)
        heads.keepPlace(r, unsafe Bytes.slice(bytes.bytes, start, bytes.count &- start))
    }

    private mutating func appendMarks(_ r: borrowing RecordRef) {
        if r.file.count > 0 || r.line > 0, !heads.appendPlace(r, to: &bytes) { place(r) }
        if r.flags.isEmpty { return }
        if r.flags.contains(.truncated) {
            bytes.append(" [cut, was ")
            bytes.append(decimal: r.originalLength)
            bytes.append(" bytes]")
        }
        if r.flags.contains(.unverified) { bytes.append(" [unverified]") }
        if r.flags.contains(.late) { bytes.append(" [late]") }
    }
}
