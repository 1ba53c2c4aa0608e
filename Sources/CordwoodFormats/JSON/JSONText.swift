// Strings of JSON: every writer of JSON escapes here. Bytes that are not UTF-8 become U+FFFD. No
// state: any thread.
// SAFETY: every index into a view stays below its count; output is an array, which grows by itself.

public enum JSONText {
    /// A JSON string; false where bytes that are not UTF-8 were replaced.
    @safe public static func string(_ text: UnsafeRawBufferPointer, _ out: inout [UInt8]) -> Bool {
        out.append(0x22)
        let isWhole = content(text, &out)
        out.append(0x22)
        return isWhole
    }

    @discardableResult
    package static func string(_ text: [UInt8], _ out: inout [UInt8]) -> Bool {
        unsafe text.withUnsafeBytes { string($0, &out) }
    }

    package static func string(_ text: String, _ out: inout [UInt8]) {
        var text = text
        text.withUTF8 { _ = string(UnsafeRawBufferPointer($0), &out) }
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
                Literal.append("\u{FFFD}", &out)
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
        case 0x22: Literal.append("\\\"", &out)
        case 0x5c: Literal.append("\\\\", &out)
        case 0x0a: Literal.append("\\n", &out)
        case 0x0d: Literal.append("\\r", &out)
        case 0x09: Literal.append("\\t", &out)
        default:
            Literal.append("\\u00", &out)
            Hex.append(byte, to: &out)
        }
    }

    @safe package static func base64(_ bytes: UnsafeRawBufferPointer, _ out: inout [UInt8]) {
        let letters: StaticString =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        let table = unsafe UnsafeBufferPointer(
            start: letters.utf8Start, count: letters.utf8CodeUnitCount)
        var at = 0
        while at < bytes.count {
            let count = min(3, bytes.count &- at)
            let word =
                unsafe UInt32(bytes[at]) << 16
                | (count > 1 ? UInt32(bytes[at &+ 1]) << 8 : 0)
                | (count > 2 ? UInt32(bytes[at &+ 2]) : 0)
            for index in 0..<4 {
                let digit = Int(word >> UInt32(18 - 6 * index) & 63)
                unsafe out.append(index <= count ? table[digit] : 0x3d)
            }
            at &+= 3
        }
    }
}
