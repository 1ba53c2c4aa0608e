// One record as a line for people: time, level, process[pid:tid], logger, message, fields,
// place. On a terminal control characters are neutralised, so that a message cannot drive
// it. No state.
// SAFETY: views are read below their count and not kept.

public enum TextLine {
    public static func append(
        _ r: borrowing RecordRef, to out: inout [UInt8], utc: Bool, color: Bool, escape: Bool
    ) {
        if color { literal("\u{1B}[2m", &out) }
        Times.appendReadable(r.timeNs, utc: utc, to: &out)
        if color { literal("\u{1B}[0m", &out) }
        out.append(0x20)
        level(r.level, color, &out)
        out.append(0x20)
        name(r.thread.process.name, escape, &out)
        out.append(0x5b)
        Digits.append(UInt64(r.thread.process.processID), to: &out)
        out.append(0x3a)
        Digits.append(UInt64(r.thread.threadID), to: &out)
        literal("] ", &out)
        if r.logger.count > 0 {
            text(r.logger, escape, &out)
            literal(": ", &out)
        }
        text(r.message, escape, &out)
        var fields = RecordFields(r)
        while let (key, value) = fields.next() {
            out.append(0x20)
            text(key, escape, &out)
            out.append(0x3d)
            append(value, escape, &out)
        }
        marks(r, &out)
        out.append(0x0a)
    }

    @inline(__always)
    private static func literal(_ text: StaticString, _ out: inout [UInt8]) {
        unsafe out.append(contentsOf: Bytes.literal(text))
    }

    private static func level(_ level: UInt8, _ color: Bool, _ out: inout [UInt8]) {
        if color {
            switch level {
            case 17...: literal("\u{1B}[31m", &out)
            case 13...: literal("\u{1B}[33m", &out)
            case 9...: literal("\u{1B}[32m", &out)
            default: literal("\u{1B}[36m", &out)
            }
        }
        let start = out.count
        if level == 0 { out.append(0x2d) } else { Levels.append(level, to: &out) }
        while out.count &- start < 5 { out.append(0x20) }
        if color { literal("\u{1B}[0m", &out) }
    }

    private static func marks(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        if r.file.count > 0 || r.line > 0 {
            literal(" (", &out)
            text(r.file, true, &out)
            out.append(0x3a)
            Digits.append(UInt64(r.line), to: &out)
            out.append(0x29)
        }
        if r.flags.contains(.truncated) {
            literal(" [cut, was ", &out)
            Digits.append(r.originalLength, to: &out)
            literal(" bytes]", &out)
        }
        if r.flags.contains(.unverified) { literal(" [unverified]", &out) }
        if r.flags.contains(.late) { literal(" [late]", &out) }
    }

    private static func name(_ name: String, _ escape: Bool, _ out: inout [UInt8]) {
        var name = name
        name.withUTF8 { text(UnsafeRawBufferPointer($0), escape, &out) }
    }

    /// Strings that would not read as one word are quoted.
    private static func append(_ value: FieldValue, _ escape: Bool, _ out: inout [UInt8]) {
        guard case .string(let bytes) = value else { return FieldText.append(value, to: &out) }
        let plain =
            unsafe bytes.count > 0
            && !bytes.contains { $0 <= 0x20 || $0 == 0x22 || $0 == 0x3d || $0 == 0x7f }
        if plain { return text(bytes, escape, &out) }
        var quoted: [UInt8] = []
        quoted.reserveCapacity(bytes.count &+ 2)
        for at in 0..<bytes.count {
            let byte = Bytes.u8(bytes, at)
            if byte == 0x22 || byte == 0x5c { quoted.append(0x5c) }
            quoted.append(byte)
        }
        out.append(0x22)
        unsafe quoted.withUnsafeBytes { text($0, true, &out) }
        out.append(0x22)
    }

    @safe package static func text(
        _ bytes: UnsafeRawBufferPointer, _ escape: Bool, _ out: inout [UInt8]
    ) {
        guard escape else { return unsafe out.append(contentsOf: bytes) }
        var run = 0
        var at = 0
        while at < bytes.count {
            let byte = unsafe bytes[at]
            // C1 controls are two bytes of UTF-8, or one byte of nothing that is UTF-8.
            let isC1 = byte == 0xC2 && Bytes.u8(bytes, at &+ 1) & 0xE0 == 0x80
            let stray = byte >= 0x80 && !isC1 ? UTF8Scan.length(bytes, at) : 1
            if byte >= 0x20 && byte != 0x7f && !isC1 && stray > 0 {
                at &+= stray
                continue
            }
            if run < at {
                unsafe out.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[run..<at]))
            }
            if isC1 {
                control(Bytes.u8(bytes, at &+ 1), &out)
                at &+= 2
            } else if stray < 0 {
                literal("\u{FFFD}", &out)
                at &+= -stray
            } else {
                control(byte, &out)
                at &+= 1
            }
            run = at
        }
        if run < at {
            unsafe out.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[run..<at]))
        }
    }

    private static func control(_ byte: UInt8, _ out: inout [UInt8]) {
        switch byte {
        case 0x0a: literal("\\n", &out)
        case 0x0d: literal("\\r", &out)
        case 0x09: literal("\\t", &out)
        default:
            literal("\\x", &out)
            out.append(Digits.hex(byte >> 4))
            out.append(Digits.hex(byte & 15))
        }
    }
}
