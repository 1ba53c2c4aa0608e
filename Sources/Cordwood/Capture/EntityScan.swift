// Text of markup that stands for other markup or for JSON (`&lt;password&gt;…`,
// `data-props="{&quot;token&quot;:…}"`): looked through as what it stands for, as often as it is
// packed. Linear.

import Glibc

extension TextScan {
    /// What the text stands for where it has entities of quotes or angle brackets.
    func entities(_ edits: inout Edits) {
        guard level &+ 1 < TextScan.levelMax, Entities.areIn(text) else { return }
        guard edits.mayDecode(text.count) else { return add(0, text.count, &edits) }
        let done: Void? = unsafe Entities.decode(text, origin: origin) { decoded, offsets in
            var scan = unsafe TextScan(rules, decoded)
            scan.origin = offsets
            scan.isCut = isCut
            // Texts in texts of several kinds stay few.
            scan.level = level &+ 2
            scan.markup(&edits, .loose)
            scan.run(&edits)
            scan.entities(&edits)
        }
        if done == nil { add(0, text.count, &edits) }
    }
}

enum Entities {
    private static let bytesMax = 10

    /// One of those that text in text needs.
    static func areIn(_ text: ByteText) -> Bool {
        var at = text.next(UInt8(ascii: "&"), from: 0)
        while at < text.count {
            let (byte, next) = entity(text, at)
            if next > at &+ 1, byte == 0x22 || byte == 0x3C || byte == 0x27 { return true }
            // &amp;quot;
            if byte == UInt8(ascii: "&"), next > at &+ 1,
                text.has("quot;", at: next) || text.has("lt;", at: next)
                    || text[next] == UInt8(ascii: "#")
            {
                return true
            }
            at = text.next(UInt8(ascii: "&"), from: at &+ 1)
        }
        return false
    }

    /// What stands at an ampersand, and where to go on; of numbers those of ASCII.
    private static func entity(_ text: ByteText, _ at: Int) -> (UInt8, Int) {
        let none = (UInt8(ascii: "&"), at &+ 1)
        switch text[at &+ 1] | 0x20 {
        case UInt8(ascii: "q"): if text.has("quot;", at: at &+ 1) { return (0x22, at &+ 6) }
        case UInt8(ascii: "l"): if text.has("lt;", at: at &+ 1) { return (0x3C, at &+ 4) }
        case UInt8(ascii: "g"): if text.has("gt;", at: at &+ 1) { return (0x3E, at &+ 4) }
        case UInt8(ascii: "a"):
            if text.has("amp;", at: at &+ 1) { return (UInt8(ascii: "&"), at &+ 5) }
            if text.has("apos;", at: at &+ 1) { return (0x27, at &+ 6) }
        case UInt8(ascii: "#"): return number(text, at) ?? none
        default: break
        }
        return none
    }

    private static func number(_ text: ByteText, _ at: Int) -> (UInt8, Int)? {
        var index = at &+ 2
        let isHex = text[index] | 0x20 == UInt8(ascii: "x")
        if isHex { index &+= 1 }
        var code: UInt32 = 0
        let first = index
        while index &- at < bytesMax {
            let digit = ASCII.hex(text[index])
            guard digit < (isHex ? 16 : 10) else { break }
            code = code &* (isHex ? 16 : 10) &+ UInt32(digit)
            index &+= 1
        }
        guard index > first, text[index] == UInt8(ascii: ";"), code > 0, code < 0x80 else {
            return nil
        }
        return (UInt8(truncatingIfNeeded: code), index &+ 1)
    }

    /// Calls body with the text and where each of its bytes stood; nil: no memory.
    /// SAFETY: as JSONString.decode.
    static func decode<Result>(
        _ text: ByteText, origin: TextOrigin, _ body: (ByteText, TextOrigin) -> Result
    ) -> Result? {
        let count = text.count
        guard let memory = unsafe malloc(count &* 5 &+ 8) else { return nil }
        defer { unsafe free(memory) }
        let offsets = unsafe memory.assumingMemoryBound(to: UInt32.self)
        let bytes = unsafe (memory + (count &+ 1) &* 4).assumingMemoryBound(to: UInt8.self)
        var (out, at) = (0, 0)
        while at < count, out < count {
            unsafe offsets[out] = UInt32(truncatingIfNeeded: origin.offset(at))
            var byte = text[at]
            if byte == UInt8(ascii: "&") {
                (byte, at) = entity(text, at)
            } else {
                at &+= 1
            }
            unsafe bytes[out] = byte
            out &+= 1
        }
        unsafe offsets[out] = UInt32(truncatingIfNeeded: origin.offset(count))
        return unsafe body(ByteText(bytes, out), TextOrigin(offsets, out))
    }
}
