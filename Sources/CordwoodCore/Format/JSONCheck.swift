// Checks whether a field's text is JSON that readers may show as a value (FORMAT §8.2). The append
// path checks before it marks the field so on disk. Readers check again, because nothing on disk is
// trusted. One pass without heap or recursion: each open bracket takes one bit. No state: any
// thread, signal handlers too.
// SAFETY: bytes are read through Bytes, which checks every offset.

public enum JSONCheck {
    /// CW_TYPE_JSON: on disk it is a string of the form `json`.
    public static let fieldType: UInt32 = 6
    public static let bytesMax = 262_144
    /// The most brackets open at once. In OTLP each level needs three messages, of which its
    /// decoders accept 100; Elasticsearch accepts 20 levels.
    public static let depthMax = 20

    private enum Expected {
        case value, element, name, member, after
    }

    /// True for one value of RFC 8259 in UTF-8, with or without blanks around it, within the bounds
    /// above, whose escapes stand for whole characters.
    @safe public static func isValid(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count <= bytesMax else { return false }
        var (at, depth, objects) = (0, 0, UInt32(0))
        var expected = Expected.value
        while true {
            while isBlank(Bytes.u8(text, at)) { at &+= 1 }
            let byte = Bytes.u8(text, at)
            switch expected {
            case .after:
                if depth == 0 { return at == text.count }
                let isObject = objects & 1 << UInt32(depth) != 0
                if byte == UInt8(ascii: ",") {
                    expected = isObject ? .name : .value
                } else {
                    guard byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                        return false
                    }
                    depth &-= 1
                }
                at &+= 1
                continue
            case .element where byte == UInt8(ascii: "]"), .member where byte == UInt8(ascii: "}"):
                depth &-= 1
                at &+= 1
            case .name, .member:
                guard let end = stringEnd(text, at) else { return false }
                at = end
                while isBlank(Bytes.u8(text, at)) { at &+= 1 }
                guard Bytes.u8(text, at) == UInt8(ascii: ":") else { return false }
                at &+= 1
                expected = .value
                continue
            case .value, .element:
                if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                    guard depth < depthMax else { return false }
                    depth &+= 1
                    let bit = UInt32(1) << UInt32(depth)
                    let isObject = byte == UInt8(ascii: "{")
                    objects = isObject ? objects | bit : objects & ~bit
                    expected = isObject ? .member : .element
                    at &+= 1
                    continue
                }
                guard let end = scalarEnd(text, at, byte) else { return false }
                at = end
            }
            expected = .after
        }
    }

    public static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }

    @safe private static func scalarEnd(
        _ text: UnsafeRawBufferPointer, _ at: Int, _ first: UInt8
    ) -> Int? {
        switch first {
        case UInt8(ascii: "\""): return stringEnd(text, at)
        case UInt8(ascii: "t"): return wordEnd(text, at, "true")
        case UInt8(ascii: "f"): return wordEnd(text, at, "false")
        case UInt8(ascii: "n"): return wordEnd(text, at, "null")
        default: return numberEnd(text, at)
        }
    }

    @safe private static func wordEnd(
        _ text: UnsafeRawBufferPointer, _ at: Int, _ word: StaticString
    ) -> Int? {
        let word = Bytes.literal(word)
        guard let found = Bytes.slice(text, at, word.count), Bytes.equal(found, word) else {
            return nil
        }
        return at &+ word.count
    }

    @safe private static func numberEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int? {
        var at = start
        if Bytes.u8(text, at) == UInt8(ascii: "-") { at &+= 1 }
        let whole = digitsEnd(text, at)
        guard whole > at, whole == at &+ 1 || Bytes.u8(text, at) != UInt8(ascii: "0") else {
            return nil
        }
        at = whole
        if Bytes.u8(text, at) == UInt8(ascii: ".") {
            let end = digitsEnd(text, at &+ 1)
            guard end > at &+ 1 else { return nil }
            at = end
        }
        if Bytes.u8(text, at) | 0x20 == UInt8(ascii: "e") {
            at &+= 1
            let sign = Bytes.u8(text, at)
            if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { at &+= 1 }
            let end = digitsEnd(text, at)
            guard end > at else { return nil }
            at = end
        }
        return at
    }

    @safe private static func digitsEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var at = start
        while Bytes.u8(text, at) &- 0x30 < 10 { at &+= 1 }
        return at
    }

    /// The offset after the closing quote of the string that begins at `start`.
    @safe private static func stringEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int? {
        guard Bytes.u8(text, start) == UInt8(ascii: "\"") else { return nil }
        var at = start &+ 1
        while true {
            let byte = Bytes.u8(text, at)
            if byte == UInt8(ascii: "\"") { return at &+ 1 }
            if byte == UInt8(ascii: "\\") {
                guard let end = escapeEnd(text, at) else { return nil }
                at = end
            } else if byte < 0x80 {
                // 0 also stands for the end.
                guard byte >= 0x20 else { return nil }
                at &+= 1
            } else {
                guard let end = characterEnd(text, at) else { return nil }
                at = end
            }
        }
    }

    @safe private static func escapeEnd(_ text: UnsafeRawBufferPointer, _ at: Int) -> Int? {
        switch Bytes.u8(text, at &+ 1) {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return at &+ 2
        case UInt8(ascii: "u"):
            guard let unit = hexUnit(text, at &+ 2), unit & 0xFC00 != 0xDC00 else { return nil }
            if unit & 0xFC00 != 0xD800 { return at &+ 6 }
            guard Bytes.u16(text, at &+ 6) == 0x755C /* \u */, let low = hexUnit(text, at &+ 8),
                low & 0xFC00 == 0xDC00
            else { return nil }
            return at &+ 12
        default: return nil
        }
    }

    /// The value of four hex digits.
    @safe public static func hexUnit(_ text: UnsafeRawBufferPointer, _ at: Int) -> UInt32? {
        var unit: UInt32 = 0
        for index in 0..<4 {
            let byte = Bytes.u8(text, at &+ index)
            let letter = (byte | 0x20) &- 0x61
            if byte &- 0x30 < 10 {
                unit = unit << 4 | UInt32(byte &- 0x30)
            } else if letter < 6 {
                unit = unit << 4 | UInt32(letter &+ 10)
            } else {
                return nil
            }
        }
        return unit
    }

    /// The offset after the character of two bytes or more that begins at `at`.
    @safe private static func characterEnd(_ text: UnsafeRawBufferPointer, _ at: Int) -> Int? {
        let first = Bytes.u8(text, at)
        let second = Bytes.u8(text, at &+ 1)
        func isMore(_ offset: Int) -> Bool { Bytes.u8(text, at &+ offset) & 0xC0 == 0x80 }
        switch first {
        case 0xC2...0xDF: return isMore(1) ? at &+ 2 : nil
        case 0xE0...0xEF:
            // Neither an overlong form nor a surrogate.
            guard isMore(1), isMore(2), first != 0xE0 || second >= 0xA0,
                first != 0xED || second < 0xA0
            else { return nil }
            return at &+ 3
        case 0xF0...0xF4:
            guard isMore(1), isMore(2), isMore(3), first != 0xF0 || second >= 0x90,
                first != 0xF4 || second < 0x90
            else { return nil }
            return at &+ 4
        default: return nil
        }
    }
}
