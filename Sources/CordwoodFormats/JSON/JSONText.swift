// JSON strings: every writer of JSON escapes here. Bytes that are not UTF-8 become U+FFFD. No
// state: any thread.
// SAFETY: every index into a view stays below its count; output is an array, which grows by itself.

public enum JSONText {
    /// A JSON string; false if bytes that are not UTF-8 were replaced.
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

    /// The same, with `mark`, which needs no escapes, at its end.
    @safe package static func string(
        _ text: UnsafeRawBufferPointer, mark: String, _ out: inout [UInt8]
    ) -> Bool {
        out.append(0x22)
        let isWhole = content(text, &out)
        out.append(contentsOf: mark.utf8)
        out.append(0x22)
        return isWhole
    }

    /// Marks with a bit every byte of the word that needs an escape or is not ASCII. The lowest bit
    /// is right; others may belong to bytes after it.
    @inline(__always)
    private static func special(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let (quote, slash) = (word ^ ones &* 0x22, word ^ ones &* 0x5C)
        let found =
            (word &- ones &* 0x20) | word | (quote &- ones) & ~quote | (slash &- ones) & ~slash
        return found & (ones &* 0x80)
    }

    /// The end of the bytes from `start` on that need no escape.
    @safe package static func end(of text: UnsafeRawBufferPointer, from start: Int) -> Int {
        var at = start
        while at < text.count {
            let left = text.count &- at
            var found: UInt64
            if left >= 8 {
                found = special(unsafe text.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            } else if text.count >= 8 {
                let word = unsafe text.loadUnaligned(
                    fromByteOffset: text.count &- 8, as: UInt64.self)
                // Spaces need no escape.
                let rest = UInt64(littleEndian: word) &>> UInt64(8 &* (8 &- left))
                found = special(rest | 0x2020_2020_2020_2020 &<< UInt64(8 &* left))
            } else {
                found = special(unsafe UInt64(text[at]) | 0x2020_2020_2020_2000)
                if found == 0 {
                    at &+= 1
                    continue
                }
            }
            if found == 0 {
                at &+= min(left, 8)
                continue
            }
            at &+= found.trailingZeroBitCount / 8
            if unsafe text[at] < 0x80 { return at }
            let size = UTF8Scan.length(text, at)
            if size < 0 { return at }
            at &+= size
        }
        return at
    }

    /// Appends the escape of the byte at `at`, or of the bytes there that are not UTF-8. Returns
    /// the number of bytes that it replaced.
    @safe package static func replace(
        _ text: UnsafeRawBufferPointer, _ at: Int, _ out: inout [UInt8]
    ) -> Int {
        let byte = unsafe text[at]
        switch byte {
        case 0x22: Literal.append("\\\"", &out)
        case 0x5c: Literal.append("\\\\", &out)
        case 0x0a: Literal.append("\\n", &out)
        case 0x0d: Literal.append("\\r", &out)
        case 0x09: Literal.append("\\t", &out)
        case 0x80...:
            Literal.append("\u{FFFD}", &out)
            return max(1, -UTF8Scan.length(text, at))
        default:
            Literal.append("\\u00", &out)
            Hex.append(byte, to: &out)
        }
        return 1
    }

    /// A JSON string without its quotes.
    @safe package static func content(
        _ text: UnsafeRawBufferPointer, _ out: inout [UInt8]
    ) -> Bool {
        var isWhole = true
        var at = 0
        while at < text.count {
            let end = end(of: text, from: at)
            if at < end {
                unsafe out.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[at..<end]))
            }
            if end == text.count { break }
            if unsafe text[end] >= 0x80 { isWhole = false }
            at = end &+ replace(text, end, &out)
        }
        return isWhole
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
