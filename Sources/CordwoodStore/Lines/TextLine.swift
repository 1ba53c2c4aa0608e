// One record as a line for people: time, level, process[pid:tid], logger, message, fields, place;
// further lines of the message follow it, marked as such. `cat`, `tail`, `grep`, exports, consoles
// and text bodies all use this. No state.
// SAFETY: views are read below their count and not kept.

import CordwoodCore
import CordwoodFormats

public enum TextLine {
    /// CW_KIND_HTTP
    private static let exchange: UInt8 = 4

    /// - Parameter form: of the message; the text before and after it is one line in every form
    /// except `raw`.
    public static func append(
        _ r: borrowing RecordRef, to out: inout [UInt8], utc: Bool, color: Bool,
        form: TextForm = .lines
    ) {
        let names: TextForm = form == .raw ? .raw : .oneLine
        if color { Literal.append("\u{1B}[2m", &out) }
        // An exchange's own time is its beginning, but among its neighbours it is placed by its
        // end.
        Times.appendReadable(r.kind == exchange ? r.writtenNs : r.timeNs, utc: utc, to: &out)
        if color { Literal.append("\u{1B}[0m", &out) }
        out.append(0x20)
        level(r.level, color, &out)
        out.append(0x20)
        name(r.thread.process.name, names, &out)
        out.append(0x5b)
        Digits.append(UInt64(r.thread.process.processID), to: &out)
        out.append(0x3a)
        Digits.append(UInt64(r.thread.threadID), to: &out)
        Literal.append("] ", &out)
        if r.logger.count > 0 {
            PlainText.append(r.logger, as: names, to: &out)
            Literal.append(": ", &out)
        }
        PlainText.append(r.message, as: form, to: &out)
        var fields = RecordFields(r)
        while let (key, value) = fields.next() {
            out.append(0x20)
            PlainText.append(key, as: names, to: &out)
            out.append(0x3d)
            append(value, names, &out)
        }
        marks(r, &out)
        out.append(0x0a)
    }

    private static func level(_ level: UInt8, _ color: Bool, _ out: inout [UInt8]) {
        if color {
            switch level {
            case 17...: Literal.append("\u{1B}[31m", &out)
            case 13...: Literal.append("\u{1B}[33m", &out)
            case 9...: Literal.append("\u{1B}[32m", &out)
            default: Literal.append("\u{1B}[36m", &out)
            }
        }
        let start = out.count
        if level == 0 { out.append(0x2d) } else { Levels.append(level, to: &out) }
        while out.count &- start < 5 { out.append(0x20) }
        if color { Literal.append("\u{1B}[0m", &out) }
    }

    private static func marks(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        if r.file.count > 0 || r.line > 0 {
            Literal.append(" (", &out)
            PlainText.append(r.file, as: .oneLine, to: &out)
            out.append(0x3a)
            Digits.append(UInt64(r.line), to: &out)
            out.append(0x29)
        }
        if r.flags.contains(.truncated) {
            Literal.append(" [cut, was ", &out)
            Digits.append(r.originalLength, to: &out)
            Literal.append(" bytes]", &out)
        }
        if r.flags.contains(.unverified) { Literal.append(" [unverified]", &out) }
        if r.flags.contains(.late) { Literal.append(" [late]", &out) }
    }

    private static func name(_ name: String, _ form: TextForm, _ out: inout [UInt8]) {
        var name = name
        name.withUTF8 { PlainText.append(UnsafeRawBufferPointer($0), as: form, to: &out) }
    }

    /// Quotes strings that would not read as one word.
    private static func append(_ value: FieldValue, _ form: TextForm, _ out: inout [UInt8]) {
        guard case .string(let bytes) = value else { return FieldText.append(value, to: &out) }
        let start = out.count
        let isWord =
            unsafe bytes.count > 0 && !bytes.contains { $0 <= 0x20 || $0 == 0x22 || $0 == 0x3d }
        if isWord {
            PlainText.append(bytes, as: form, to: &out)
            if out.count &- start == bytes.count { return }
            // The string contains something to escape, so its backslashes must be escaped, too.
            out.removeSubrange(start...)
        }
        var quoted: [UInt8] = []
        quoted.reserveCapacity(bytes.count &+ 2)
        for at in 0..<bytes.count {
            let byte = Bytes.u8(bytes, at)
            if byte == 0x22 || byte == 0x5c { quoted.append(0x5c) }
            quoted.append(byte)
        }
        out.append(0x22)
        unsafe quoted.withUnsafeBytes { PlainText.append($0, as: .oneLine, to: &out) }
        out.append(0x22)
    }
}
