// Texts within texts, decoded: JSON strings by their escapes, values of URLs and forms by their
// percent codes. The place of each byte is kept, so that findings can be replaced there.

import CordwoodCore
import CordwoodFormats

enum DecodedText {
    /// Decodes a text and calls `body` with the result; nil: no memory.
    /// - Parameter next: writes the bytes at an index by calling its last argument, and returns the
    ///   index to continue at.
    /// SAFETY: both buffers are this call's own, freed when body returns. A step writes at most as
    /// many bytes as it reads, so slice.count bytes and one offset more are enough.
    @inline(__always)
    static func make<Result>(
        _ slice: ByteText, origin: TextOrigin, at base: Int,
        next: (Int, (UInt8) -> Void) -> Int, _ body: (ByteText, TextOrigin) -> Result
    ) -> Result? {
        let count = slice.count
        guard let memory = unsafe Memory.allocate(count &* 5 &+ 8) else { return nil }
        defer { unsafe Memory.free(memory) }
        let offsets = unsafe memory.assumingMemoryBound(to: UInt32.self)
        let bytes = unsafe (memory + (count &+ 1) &* 4).assumingMemoryBound(to: UInt8.self)
        var (out, at) = (0, 0)
        while at < count {
            let start = UInt32(truncatingIfNeeded: origin.offset(base &+ at))
            at = next(at) { byte in
                guard out < count else { return }
                unsafe bytes[out] = byte
                unsafe offsets[out] = start
                out &+= 1
            }
        }
        unsafe offsets[out] = UInt32(truncatingIfNeeded: origin.offset(base &+ count))
        return unsafe body(ByteText(bytes, out), TextOrigin(offsets, out))
    }
}

/// The inside of a JSON string. Invalid escapes stay unchanged.
enum JSONString {
    static func decode<Result>(
        _ slice: ByteText, origin: TextOrigin, at base: Int = 0,
        _ body: (ByteText, TextOrigin) -> Result
    ) -> Result? {
        DecodedText.make(
            slice, origin: origin, at: base,
            next: { at, put in
                let (code, next) = unit(slice, at)
                withUTF8(code, put)
                return next
            }, body)
    }

    /// A byte (below 0x100, unchanged), or a character (0x100 and above).
    private enum Unit {
        case byte(UInt8)
        case character(UInt32)
    }

    private static func unit(_ text: ByteText, _ at: Int) -> (Unit, Int) {
        guard text[at] == UInt8(ascii: "\\") else { return (.byte(text[at]), at &+ 1) }
        let letter = text[at &+ 1]
        switch letter {
        case UInt8(ascii: "n"): return (.byte(0x0A), at &+ 2)
        case UInt8(ascii: "r"): return (.byte(0x0D), at &+ 2)
        case UInt8(ascii: "t"): return (.byte(0x09), at &+ 2)
        case UInt8(ascii: "b"), UInt8(ascii: "f"): return (.byte(0x20), at &+ 2)
        case UInt8(ascii: "u"):
            guard let code = hex(text, at &+ 2, 4) else { return (.byte(letter), at &+ 2) }
            return (.character(code), at &+ 6)
        case UInt8(ascii: "x"):
            guard let code = hex(text, at &+ 2, 2) else { return (.byte(letter), at &+ 2) }
            return (.character(code), at &+ 4)
        case 0 where at &+ 1 >= text.count: return (.byte(UInt8(ascii: "\\")), at &+ 1)
        default: return (.byte(letter), at &+ 2)
        }
    }

    private static func hex(_ text: ByteText, _ at: Int, _ digits: Int) -> UInt32? {
        guard at &+ digits <= text.count else { return nil }
        var code: UInt32 = 0
        for i in 0..<digits {
            let digit = ASCII.hex(text[at &+ i])
            guard digit < 16 else { return nil }
            code = code << 4 | UInt32(digit)
        }
        return code
    }

    /// Each half of a surrogate pair counts as a character: no listed name has any.
    private static func withUTF8(_ unit: Unit, _ body: (UInt8) -> Void) {
        switch unit {
        case .byte(let byte): body(byte)
        case .character(let code):
            if code < 0x80 { return body(UInt8(truncatingIfNeeded: code)) }
            if code < 0x800 {
                body(UInt8(truncatingIfNeeded: 0xC0 | code >> 6))
            } else {
                body(UInt8(truncatingIfNeeded: 0xE0 | code >> 12))
                body(UInt8(truncatingIfNeeded: 0x80 | code >> 6 & 0x3F))
            }
            body(UInt8(truncatingIfNeeded: 0x80 | code & 0x3F))
        }
    }
}

/// `%41` means "A", and '+' means a space. Invalid codes stay unchanged.
enum PercentCoding {
    static func decode(_ bytes: [UInt8]) -> [UInt8] {
        unsafe bytes.withUnsafeBufferPointer {
            unsafe decode(ByteText($0.baseAddress, $0.count), origin: .same, at: 0) { text, _ in
                text.array
            }
        } ?? bytes
    }

    static func decode<Result>(
        _ text: ByteText, origin: TextOrigin, at base: Int,
        _ body: (ByteText, TextOrigin) -> Result
    ) -> Result? {
        DecodedText.make(
            text, origin: origin, at: base,
            next: { at, put in
                let (high, low) = (ASCII.hex(text[at &+ 1]), ASCII.hex(text[at &+ 2]))
                if text[at] == UInt8(ascii: "%"), high < 16, low < 16 {
                    put(high << 4 | low)
                    return at &+ 3
                }
                put(text[at] == UInt8(ascii: "+") ? 0x20 : text[at])
                return at &+ 1
            }, body)
    }
}
