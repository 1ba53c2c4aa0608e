// Finds members of JSON whose names are secrets', at any depth, in whatever text: one value, a line
// each, an event stream, a page with a script in it, cut or damaged. Nothing is parsed: two quotes
// with a colon behind them are a name, whatever stands around them, so that a quote too many hides
// nothing. Strings with escapes are decoded and looked through as texts of their own.

import CShims
import Glibc

extension TextScan {
    /// Strings within strings that are opened; one that is deeper is replaced whole.
    static let levelMax: UInt32 = 6

    /// As long as there are no escapes only quotes that may end a name are looked at.
    func json(_ edits: inout Edits) {
        guard let start = unsafe text.start else { return }
        let members = unsafe rules.members
        var at = 0
        // Nothing before it counts: a value that was replaced.
        var floor = 0
        // The last quote of the blocks before; -1: none that could begin a name.
        var last = -1
        scan: while true {
            var found = cwi_names()
            let block = unsafe cwi_next_names(
                start, at, text.count, members.endings, &last, &found)
            guard block < text.count else { break scan }
            if found.slashes != 0 {
                return escapedJSON(from: max(block, at), before: last, floor: floor, &edits)
            }
            while found.ends != 0 {
                let bit = found.ends.trailingZeroBitCount
                found.ends &= found.ends &- 1
                let lower = found.quotes & ((1 << UInt64(bit)) &- 1)
                let from = lower != 0 ? block &+ 63 &- lower.leadingZeroBitCount : last
                guard from >= 0, let value = member(from, block &+ bit, false, members)
                else { continue }
                floor = self.value(value, &edits)
                at = floor
                last = -1
                continue scan
            }
            if found.quotes != 0 { last = block &+ 63 &- found.quotes.leadingZeroBitCount }
            at = block &+ 64
        }
        // What made a cut string a text in a text may have been cut off.
        if isCut, last >= 0 { inner(last &+ 1, text.count, &edits) }
    }

    /// The same quote by quote.
    /// - Parameter floor: nothing before it is looked at again.
    private func escapedJSON(
        from start: Int, before quote: Int, floor: Int, _ edits: inout Edits
    ) {
        let members = unsafe rules.members
        var walk = ByteWalk(text, .quotes, from: start)
        // Where the last quote stood; -1: none yet that could begin a name.
        var before = quote
        var hasEscapes = false
        // Where text outside of quotes begins, and whether it has quotes with backslashes.
        var outside = floor
        var hasQuotes = false
        var at = walk.next()
        while at < text.count {
            guard text[at] == UInt8(ascii: "\"") else {
                hasEscapes = true
                if text[at &+ 1] == UInt8(ascii: "\"") { hasQuotes = true }
                walk.seek(at &+ 2)
                at = walk.next()
                continue
            }
            if before >= 0 {
                if let start = member(before, at, hasEscapes, members) {
                    outside = value(start, &edits)
                    walk.seek(outside)
                    before = -1
                    hasEscapes = false
                    hasQuotes = false
                    at = walk.next()
                    continue
                }
                if hasEscapes { inner(before &+ 1, at, &edits) }
            } else if hasQuotes {
                inner(outside, at, &edits)
            }
            before = at
            hasQuotes = false
            hasEscapes = false
            at = walk.next()
        }
        // A string that was cut.
        if before >= 0, hasEscapes || isCut { inner(before &+ 1, text.count, &edits) }
        if before < 0, hasQuotes { inner(outside, text.count, &edits) }
    }

    /// Where the value begins of a member whose name stands between two quotes; nil: it is no
    /// name, or no secret's.
    @inline(__always)
    private func member(
        _ from: Int, _ to: Int, _ hasEscapes: Bool, _ members: NameTable
    ) -> Int? {
        let next = text[to &+ 1]
        guard next == UInt8(ascii: ":") || next <= 0x20 else { return nil }
        guard hasEscapes || members.contains(text.slice(from &+ 1, to)) else {
            return nil
        }
        return secretMember(from, to, hasEscapes)
    }

    @inline(never)
    private func secretMember(_ from: Int, _ to: Int, _ hasEscapes: Bool) -> Int? {
        let colon = text.skipBlank(to &+ 1)
        guard text[colon] == UInt8(ascii: ":") else { return nil }
        guard !hasEscapes || isMember(text.slice(from &+ 1, to)) else { return nil }
        let value = text.skipBlank(colon &+ 1)
        return isSecretMember(from, to, value: value, hasEscapes: hasEscapes) ? value : nil
    }

    /// A name with escapes.
    @inline(never)
    private func isMember(_ name: ByteText) -> Bool {
        unsafe JSONString.decode(name, origin: .same) { decoded, _ in
            unsafe rules.members.contains(decoded)
        } ?? true
    }

    /// Notes the value that begins there, of whatever kind; returns where it ends.
    private func value(_ start: Int, _ edits: inout Edits) -> Int {
        switch text[start] {
        case UInt8(ascii: "\""):
            let end = text.stringEnd(start &+ 1)
            add(start &+ 1, end, &edits)
            return min(end &+ 1, text.count)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            let end = containerEnd(start)
            add(start, end, &edits, quotes: level)
            return end
        case UInt8(ascii: "'"):
            let end = quoted(start)?.to ?? text.count
            add(start &+ 1, end, &edits)
            return min(end &+ 1, text.count)
        default:
            var end = start
            while end < text.count, !TextScan.endsScalar(text[end]) { end &+= 1 }
            add(start, end, &edits, quotes: level)
            return end
        }
    }

    private static func endsScalar(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), 0x0A, 0x0D: return true
        default: return false
        }
    }

    /// Behind the bracket that closes the one at `start`; count: it was cut.
    private func containerEnd(_ start: Int) -> Int {
        var depth = 0
        var at = start
        while at < text.count {
            switch text[at] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth &+= 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth &-= 1
                if depth == 0 { return at &+ 1 }
            case UInt8(ascii: "\""): at = text.stringEnd(at &+ 1)
            default: break
            }
            at &+= 1
        }
        return text.count
    }

    /// A string with escapes, [from, to): what it stands for may hold secrets.
    private func inner(_ from: Int, _ to: Int, _ edits: inout Edits) {
        guard level < TextScan.levelMax, edits.mayDecode(to &- from) else {
            return add(from, to, &edits)
        }
        let slice = text.slice(from, to)
        let done: Void? = unsafe JSONString.decode(slice, origin: origin, at: from) {
            decoded, decodedOrigin in
            var scan = unsafe TextScan(rules, decoded)
            scan.origin = decodedOrigin
            scan.level = level &+ 1
            scan.isCut = isCut && to == text.count
            scan.markup(&edits, .loose)
            scan.privateKeys(&edits)
            scan.entities(&edits)
            scan.run(&edits)
        }
        // No memory to look into it.
        if done == nil { add(from, to, &edits) }
    }
}

extension ByteText {
    /// The index of the quote that ends a string of JSON; count: it was cut.
    func stringEnd(_ start: Int) -> Int {
        var walk = ByteWalk(self, .quotes, from: start)
        var at = walk.next()
        while at < count, self[at] != UInt8(ascii: "\"") {
            walk.seek(at &+ 2)
            at = walk.next()
        }
        return at
    }
}

/// The inside of a JSON string as what it stands for. What is no escape stays as it is.
enum JSONString {
    /// Calls body with the text and where each of its bytes stood; nil: no memory.
    /// SAFETY: both are this call's own, of slice.count bytes and one offset more, for a byte that
    /// comes out takes at least one that went in; freed when body returns.
    static func decode<Result>(
        _ slice: ByteText, origin: TextOrigin, at base: Int = 0,
        _ body: (ByteText, TextOrigin) -> Result
    ) -> Result? {
        let count = slice.count
        guard let memory = unsafe malloc(count &* 5 &+ 8) else { return nil }
        defer { unsafe free(memory) }
        let offsets = unsafe memory.assumingMemoryBound(to: UInt32.self)
        let bytes = unsafe (memory + (count &+ 1) &* 4).assumingMemoryBound(to: UInt8.self)
        var out = 0
        var at = 0
        while at < count {
            let start = at
            let (code, next) = unit(slice, at)
            at = next
            unsafe withUTF8(code) { byte in
                guard out < count else { return }
                unsafe bytes[out] = byte
                unsafe offsets[out] = UInt32(truncatingIfNeeded: origin.offset(base &+ start))
                out &+= 1
            }
        }
        unsafe offsets[out] = UInt32(truncatingIfNeeded: origin.offset(base &+ count))
        return unsafe body(ByteText(bytes, out), TextOrigin(offsets, out))
    }

    /// A byte as it stands (below 0x100, or what it is), or 0x100 and more: a character.
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

    /// Halves of surrogate pairs count as characters each: no name that is listed has any.
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
