// Forms and event streams, which only their Content-Type distinguishes from other text: finds how
// far a text has that form, and the parts of event streams to replace.

import CordwoodFormats

extension TextScan {
    // MARK: Forms

    /// Items `name=value`, separated by '&', of the bytes that a form may have. `run` finds their
    /// secrets, with `items` set to `.form`.
    func form() -> Int {
        var at = text.has("\u{FEFF}", at: 0) ? 3 : 0
        while at < text.count {
            let end = text.next(UInt8(ascii: "&"), from: at)
            guard isItem(at, end), end < text.count || !isCut else { return max(0, at &- 1) }
            at = end &+ 1
        }
        return text.count
    }

    private static let nameBytesMax = 256

    private func isItem(_ from: Int, _ to: Int) -> Bool {
        let name = text.slice(from, to).next(UInt8(ascii: "="), from: 0)
        guard name <= TextScan.nameBytesMax, name < to &- from || from == to else { return false }
        for index in from..<to {
            switch text[index] {
            case 0...0x20, UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
                UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"),
                UInt8(ascii: "|"), UInt8(ascii: "}"), 0x7F:
                return false
            default: break
            }
        }
        return true
    }

    // MARK: Event streams

    /// Lines `data: …` and the like. Replaces data that is not JSON, and anything else that is more
    /// than a word.
    func events(_ edits: inout Edits) -> Int {
        var at = text.has("\u{FEFF}", at: 0) ? 3 : 0
        while at < text.count {
            let end = text.next(0x0A, from: at)
            guard end < text.count || !isCut else { return at }
            let bare = end > at && text[end &- 1] == 0x0D ? end &- 1 : end
            let colon = min(text.next(UInt8(ascii: ":"), from: at), bare)
            event(at, colon, bare, &edits)
            at = end &+ 1
        }
        return text.count
    }

    private func event(_ from: Int, _ colon: Int, _ to: Int, _ edits: inout Edits) {
        guard from < to else { return }
        let name = text.slice(from, colon)
        guard ["data", "event", "id", "retry", ""].contains(where: { name.equals($0) }) else {
            return add(from, to, &edits)
        }
        let value = text.skipSpaces(colon &+ 1)
        let isData = name.equals("data")
        if isData, text.slice(value, to).equals("[done]") { return }
        if isData, isJSON(value, to, &edits) { return }
        if !isData || to &- value <= 4, text.slice(value, to).isWord { return }
        add(value, to, &edits)
    }

    private func isJSON(_ from: Int, _ to: Int, _ edits: inout Edits) -> Bool {
        let data = piece(from, to)
        let end = JSONBody.parse(data, hasLines: false, &edits)
        guard end > 0 else { return false }
        if end < data.text.count { data.add(end, data.text.count, &edits) }
        return true
    }
}

extension ByteText {
    /// Letters, digits and joining characters, at most 64.
    fileprivate var isWord: Bool {
        guard count <= 64 else { return false }
        for index in 0..<count {
            let byte = self[index]
            guard
                ASCII.isNameByte(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
                    || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "/")
            else { return false }
        }
        return true
    }
}
