// Finds secrets that are told by how they look: `Basic` with base64 of `user:password` behind it,
// and private keys between their marks (`-----BEGIN … PRIVATE KEY-----`). Linear; what was cut is
// replaced to its end.

extension TextScan {
    private static let basicLookedAt = 1_024

    /// "Basic dXNlcjpwYXNz": what follows where it stands for text with a colon in it, or was cut.
    /// Returns where to go on.
    func basic(_ at: Int, _ edits: inout Edits) -> Int {
        guard text.has("basic", at: at) else { return at &+ 1 }
        var from = at &+ 5
        if text[from] == UInt8(ascii: "+") {
            from &+= 1
        } else if text.has("%20", at: from) {
            from &+= 3
        } else {
            let blanks = from
            from = text.skipSpaces(from)
            guard from > blanks else { return from }
        }
        var end = from
        while TextScan.value(text[end]) < 64 { end &+= 1 }
        let isOpen = isCut && end == text.count && end > from
        guard isOpen || hasColon(from, end) else { return max(from, end) }
        while text[end] == UInt8(ascii: "=") { end &+= 1 }
        add(from, end, &edits)
        return end
    }

    /// Whether base64 stands for text, as far as is looked, and for a colon in it.
    private func hasColon(_ from: Int, _ end: Int) -> Bool {
        guard end &- from >= 4, (end &- from) & 3 != 1 else { return false }
        var bits: UInt32 = 0
        var count = 0
        var hasColon = false
        for at in from..<min(end, from &+ TextScan.basicLookedAt) {
            bits = bits << 6 | UInt32(TextScan.value(text[at]))
            count &+= 6
            guard count >= 8 else { continue }
            count &-= 8
            let byte = UInt8(truncatingIfNeeded: bits >> UInt32(count))
            if byte < 0x20 || byte == 0x7F { return false }
            if byte == UInt8(ascii: ":") { hasColon = true }
        }
        return hasColon
    }

    /// 255: none of base64.
    private static func value(_ byte: UInt8) -> UInt8 {
        if ASCII.isUpper(byte) { return byte &- 0x41 }
        if ASCII.isLower(byte) { return byte &- 0x61 &+ 26 }
        if ASCII.isDigit(byte) { return byte &- 0x30 &+ 52 }
        switch byte {
        case UInt8(ascii: "+"), UInt8(ascii: "-"): return 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): return 63
        default: return 255
        }
    }

    private static let keyBytesMin = 40
    private static let markBytesMax = 64

    /// What stands between the marks of a private key.
    func privateKeys(_ edits: inout Edits) {
        guard text.count >= TextScan.keyBytesMin else { return }
        let word: StaticString = "PRIVATE KEY"
        let dashes: StaticString = "-----"
        let wanted = unsafe ByteText(word.utf8Start, word.utf8CodeUnitCount)
        let mark = unsafe ByteText(dashes.utf8Start, dashes.utf8CodeUnitCount)
        var at = text.find(wanted, from: 0)
        while at < text.count {
            let next = at &+ wanted.count
            let from = text.find(mark, from: next, before: next &+ 16) &+ mark.count
            guard isMarked(at), from <= text.count else {
                at = text.find(wanted, from: next)
                continue
            }
            let end = text.find(mark, from: from)
            add(from, end, &edits)
            at = text.find(wanted, from: end)
        }
    }

    /// The mark before, in the same line, is "-----BEGIN".
    private func isMarked(_ index: Int) -> Bool {
        var at = index &- 5
        let least = max(0, index &- TextScan.markBytesMax)
        while at >= least, text[at] != 0x0A {
            if text.has("-----", at: at) { return text.has("-----begin", at: at) }
            at &-= 1
        }
        return false
    }
}

extension ByteText {
    fileprivate func find(_ bytes: ByteText, from index: Int, before end: Int) -> Int {
        let found = slice(0, end).find(bytes, from: index)
        return found < min(end, count) ? found : count
    }
}
