// One record as one line of JSON, the exact form the API promises: time, level, logger, message,
// pid, tid and kind always, the rest where it is not empty. Bytes that are not UTF-8 become
// U+FFFD; a message that held such is added in base64. What it is made of serves every other form
// of JSON, too: nobody else escapes. No state: any thread.
// SAFETY: every index into a view stays below its count; output is an array, which grows by itself.

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
        literal("}\n", &out)
    }

    /// The members before `fields`. `mark` ends the message.
    package static func appendHead(
        _ r: borrowing RecordRef, mark: String, to out: inout [UInt8]
    ) {
        literal("\"time\":\"", &out)
        Times.appendExact(r.timeNs, to: &out)
        literal("\",\"level\":\"", &out)
        Levels.append(r.level, to: &out)
        literal("\",\"logger\":", &out)
        _ = string(r.logger, &out)
        literal(",\"message\":", &out)
        if !string(r.message, mark: mark, &out) {
            literal(",\"message_base64\":\"", &out)
            base64(r.message, &out)
            out.append(0x22)
        }
        literal(",\"pid\":", &out)
        Digits.append(UInt64(r.thread.process.processID), to: &out)
        literal(",\"tid\":", &out)
        Digits.append(UInt64(r.thread.threadID), to: &out)
        place(r, &out)
    }

    /// Those behind it.
    package static func appendTail(_ r: borrowing RecordRef, to out: inout [UInt8]) {
        trace(r, &out)
        literal(",\"kind\":\"", &out)
        kind(r.kind, &out)
        out.append(0x22)
    }

    @inline(__always)
    private static func literal(_ text: StaticString, _ out: inout [UInt8]) {
        unsafe out.append(contentsOf: Bytes.literal(text))
    }

    package static func kind(_ kind: UInt8, _ out: inout [UInt8]) {
        switch kind {
        case 0: literal("log", &out)
        case 1: literal("gap", &out)
        case 2: literal("lifecycle", &out)
        case 3: literal("transaction", &out)
        case 4: literal("http", &out)
        default: Digits.append(UInt64(kind), to: &out)
        }
    }

    private static func place(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        if r.file.count > 0 {
            literal(",\"file\":", &out)
            _ = string(r.file, &out)
        }
        if r.line > 0 {
            literal(",\"line\":", &out)
            Digits.append(UInt64(r.line), to: &out)
        }
        if r.function.count > 0 {
            literal(",\"function\":", &out)
            _ = string(r.function, &out)
        }
    }

    private static func fields(_ r: borrowing RecordRef, _ out: inout [UInt8]) {
        _ = appendFields(r, before: ",\"fields\":", to: &out)
    }

    /// The fields as an object; false and nothing, not even `before`, where there are none. A field
    /// of the context does not hide one of the record's own: parsers keep the last of a key.
    package static func appendFields(
        _ r: borrowing RecordRef, before: StaticString, to out: inout [UInt8]
    ) -> Bool {
        if r.sections.count == 0 && r.context.count == 0 { return false }
        var fields = RecordFields(r)
        var count = 0
        while let (key, value) = fields.next() {
            if fields.part != .own, count > 0, isOwn(key, r) { continue }
            if count == 0 { literal(before, &out) }
            out.append(count == 0 ? 0x7b : 0x2c)
            count &+= 1
            _ = string(key, &out)
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

    /// Numbers and truth as JSON has them; what is not finite as a string.
    package static func append(_ value: FieldValue, _ out: inout [UInt8]) {
        switch value {
        case .string(let text):
            _ = string(text, &out)
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
            literal(",\"trace_id\":\"", &out)
            Digits.appendHex(r.traceID, to: &out)
            out.append(0x22)
        }
        if r.spanID.count > 0 {
            literal(",\"span_id\":\"", &out)
            Digits.appendHex(r.spanID, to: &out)
            out.append(0x22)
        }
    }

    /// A JSON string; false where bytes that are not UTF-8 were replaced.
    @safe public static func string(_ text: UnsafeRawBufferPointer, _ out: inout [UInt8]) -> Bool {
        out.append(0x22)
        let isWhole = content(text, &out)
        out.append(0x22)
        return isWhole
    }

    /// The same with `mark`, which needs no escapes, at its end.
    @safe package static func string(
        _ text: UnsafeRawBufferPointer, mark: String, _ out: inout [UInt8]
    ) -> Bool {
        out.append(0x22)
        let isWhole = content(text, &out)
        out.append(contentsOf: mark.utf8)
        out.append(0x22)
        return isWhole
    }

    /// A JSON string without its quotes.
    @safe package static func content(
        _ text: UnsafeRawBufferPointer, _ out: inout [UInt8]
    ) -> Bool {
        var isWhole = true
        var at = 0
        var run = 0
        while at < text.count {
            let byte = unsafe text[at]
            if byte >= 0x20 && byte < 0x80 && byte != 0x22 && byte != 0x5c {
                at &+= 1
                continue
            }
            if byte >= 0x80 {
                let size = UTF8Scan.length(text, at)
                if size > 0 {
                    at &+= size
                    continue
                }
                flush(text, run, at, &out)
                literal("\u{FFFD}", &out)
                isWhole = false
                at &+= -size
            } else {
                flush(text, run, at, &out)
                escape(byte, &out)
                at &+= 1
            }
            run = at
        }
        flush(text, run, at, &out)
        return isWhole
    }

    @safe @inline(__always)
    private static func flush(
        _ text: UnsafeRawBufferPointer, _ from: Int, _ to: Int, _ out: inout [UInt8]
    ) {
        if from < to {
            unsafe out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[from..<to]))
        }
    }

    private static func escape(_ byte: UInt8, _ out: inout [UInt8]) {
        switch byte {
        case 0x22: literal("\\\"", &out)
        case 0x5c: literal("\\\\", &out)
        case 0x0a: literal("\\n", &out)
        case 0x0d: literal("\\r", &out)
        case 0x09: literal("\\t", &out)
        default:
            literal("\\u00", &out)
            out.append(Digits.hex(byte >> 4))
            out.append(Digits.hex(byte & 15))
        }
    }

    @safe package static func base64(_ bytes: UnsafeRawBufferPointer, _ out: inout [UInt8]) {
        let letters: StaticString =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        let table = Bytes.literal(letters)
        var at = 0
        while at < bytes.count {
            let count = min(3, bytes.count &- at)
            let word =
                unsafe UInt32(bytes[at]) << 16 | UInt32(Bytes.u8(bytes, at &+ 1)) << 8
                | UInt32(Bytes.u8(bytes, at &+ 2))
            for index in 0..<4 {
                let digit = Int(word >> UInt32(18 - 6 * index) & 63)
                unsafe out.append(index <= count ? table[digit] : 0x3d)
            }
            at &+= 3
        }
    }
}

public enum UTF8Scan {
    @safe public static func isValid(_ text: UnsafeRawBufferPointer) -> Bool {
        validCount(text) == text.count
    }

    /// How many bytes from the first on are whole characters.
    @safe package static func validCount(_ text: UnsafeRawBufferPointer) -> Int {
        var at = 0
        while at < text.count {
            if at &+ 32 <= text.count {
                let words = unsafe text.loadUnaligned(fromByteOffset: at, as: SIMD4<UInt64>.self)
                if (words[0] | words[1] | words[2] | words[3]) & 0x8080_8080_8080_8080 == 0 {
                    at &+= 32
                    continue
                }
            }
            let size = length(text, at)
            if size <= 0 { return at }
            at &+= size
        }
        return at
    }

    /// Length of the character at `at`; where it is not one, minus the length of what is replaced
    /// by one U+FFFD: the longest beginning of a character, at least one byte.
    @safe package static func length(_ text: UnsafeRawBufferPointer, _ at: Int) -> Int {
        let first = unsafe text[at]
        var low: UInt8 = 0x80
        var high: UInt8 = 0xBF
        let more: Int
        switch first {
        case 0x00...0x7F: return 1
        case 0xC2...0xDF: more = 1
        case 0xE0...0xEF:
            more = 2
            if first == 0xE0 { low = 0xA0 }
            if first == 0xED { high = 0x9F }
        case 0xF0...0xF4:
            more = 3
            if first == 0xF0 { low = 0x90 }
            if first == 0xF4 { high = 0x8F }
        default: return -1
        }
        for index in 1...more {
            guard at &+ index < text.count else { return -index }
            let byte = unsafe text[at &+ index]
            if byte < low || byte > high { return -index }
            low = 0x80
            high = 0xBF
        }
        return more &+ 1
    }
}
