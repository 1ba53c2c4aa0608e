// Finds whole UTF-8 characters in arbitrary bytes. No state: any thread.
// SAFETY: every index into a view stays below its count.

public enum UTF8Scan {
    @safe public static func isValid(_ text: UnsafeRawBufferPointer) -> Bool {
        validCount(text) == text.count
    }

    /// The number of bytes at the start that are whole characters.
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

    /// The length of the character at `at`. Negative for invalid UTF-8: the number of bytes that
    /// one U+FFFD replaces, which are the longest start of a character, at least one byte.
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

    /// At most `bytesMax`, not inside a character of UTF-8.
    @safe package static func end(of text: UnsafeRawBufferPointer, at bytesMax: Int) -> Int {
        var end = max(0, min(bytesMax, text.count))
        guard end < text.count else { return end }
        var steps = 0
        while end > 0, steps < 3, unsafe text[end] & 0xC0 == 0x80 {
            end -= 1
            steps += 1
        }
        return end
    }
}
