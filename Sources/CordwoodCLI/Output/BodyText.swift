// A body for people: JSON is indented, even if it was cut; form fields get a line each; other text
// goes line by line; bytes appear as the start of a hex dump. Lines are escaped one by one. Pure.

import Cordwood

enum BodyText {
    /// The number of bytes shown if the body is not text.
    private static let hexBytesMax = 256

    static func append(_ message: CapturedExchange.Message, to out: inout [UInt8]) {
        let body = message.body ?? []
        let type = message.header("Content-Type") ?? ""
        if !body.isEmpty {
            if let text = text(body) {
                if BodyKind.isForm(type) {
                    form(text, &out)
                } else if let json = IndentedJSON.indented(text, isSure: BodyKind.isJSON(type)) {
                    lines(json[...], &out)
                } else {
                    lines(text, &out)
                }
            } else {
                hex(body, &out)
            }
        }
        let note = ending(message)
        if !note.isEmpty { put("  [\(note)]\n", &out) }
    }

    /// A note about parts that are not shown, or were changed.
    private static func ending(_ message: CapturedExchange.Message) -> String {
        message.isBodyWhole && message.bodyNote.isEmpty ? "" : message.extent
    }

    /// nil: not UTF-8. Drops a character that was cut at the end.
    private static func text(_ body: [UInt8]) -> ArraySlice<UInt8>? {
        for cut in 0..<min(4, body.count) {
            let rest = body[..<(body.count - cut)]
            // SAFETY: the view is read in the call only.
            guard unsafe rest.withUnsafeBytes({ UTF8Scan.isValid($0) }) else { continue }
            // Text for people contains no NUL or similar bytes.
            let isBinary = rest.contains { $0 < 0x20 && !(0x09...0x0d).contains($0) && $0 != 0x1b }
            return isBinary ? nil : rest
        }
        return nil
    }

    private static func form(_ text: ArraySlice<UInt8>, _ out: inout [UInt8]) {
        for item in CapturedURL.items(text) {
            put("  ", &out)
            ExchangeLine.bytes(item.name, &out)
            if item.hasValue {
                put(" = ", &out)
                ExchangeLine.bytes(item.value, &out)
            }
            put("\n", &out)
        }
    }

    private static func lines(_ text: ArraySlice<UInt8>, _ out: inout [UInt8]) {
        let all = text.split(separator: 0x0a, omittingEmptySubsequences: false)
        for (index, line) in all.enumerated() {
            // A newline at the end ends a line and does not begin one.
            if index == all.count - 1, line.isEmpty { break }
            put("  ", &out)
            ExchangeLine.bytes(Array(line.last == 0x0d ? line.dropLast() : line), &out)
            put("\n", &out)
        }
    }

    private static func hex(_ body: [UInt8], _ out: inout [UInt8]) {
        put("  " + Counted.text(body.count, "byte") + "\n", &out)
        let shown = body.prefix(hexBytesMax)
        for start in stride(from: 0, to: shown.count, by: 16) {
            let row = shown[start..<min(start + 16, shown.count)]
            put("  \(Hex.text(UInt64(start)).suffix(8)) ", &out)
            for index in 0..<16 {
                if index == 8 { put(" ", &out) }
                guard index < row.count else {
                    put("   ", &out)
                    continue
                }
                put(" ", &out)
                Hex.append(row[start + index], to: &out)
            }
            put("  |", &out)
            out += row.map { (0x20..<0x7f).contains($0) ? $0 : 0x2e }
            put("|\n", &out)
        }
        if body.count > hexBytesMax { put("  …\n", &out) }
    }

    private static func put(_ text: String, _ out: inout [UInt8]) {
        out.append(contentsOf: text.utf8)
    }
}

/// JSON with one member per line. Tokens are moved and never changed, so text that stops being
/// JSON, or ends too early, is shown up to its end.
enum IndentedJSON {
    /// Deeper levels are not indented further.
    private static let indentMax = 40
    /// Beyond this size, which brackets alone may reach, the rest continues unindented.
    private static func bytesMax(_ count: Int) -> Int { count * 4 + 65_536 }

    /// nil: it does not look like JSON.
    static func indented(_ text: ArraySlice<UInt8>, isSure: Bool) -> [UInt8]? {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let text = text.starts(with: mark) ? text.dropFirst(3) : text
        let first = text.first { !isSpace($0) }
        guard isSure || first == 0x7b || first == 0x5b else { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(text.count + text.count / 2)
        var depth = 0
        var isString = false
        var isEscaped = false
        var isEmptyOpen = false
        for (index, byte) in zip(text.indices, text) {
            if out.count > bytesMax(text.count) { return out + text[index...] }
            if isString {
                out.append(byte)
                if isEscaped {
                    isEscaped = false
                } else if byte == 0x5c {
                    isEscaped = true
                } else if byte == 0x22 {
                    isString = false
                }
                continue
            }
            if isSpace(byte) { continue }
            if isEmptyOpen, byte != 0x7d, byte != 0x5d { newline(depth, &out) }
            switch byte {
            case 0x7b, 0x5b:
                out.append(byte)
                depth += 1
                isEmptyOpen = true
                continue
            case 0x7d, 0x5d:
                // More brackets close than open: not JSON.
                guard depth > 0 else { return nil }
                depth -= 1
                if !isEmptyOpen { newline(depth, &out) }
                out.append(byte)
            case 0x2c:
                out.append(byte)
                newline(depth, &out)
            case 0x3a: out += [byte, 0x20]
            default:
                out.append(byte)
                isString = byte == 0x22
            }
            isEmptyOpen = false
        }
        return out
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09
    }

    private static func newline(_ depth: Int, _ out: inout [UInt8]) {
        out.append(0x0a)
        for _ in 0..<min(depth, indentMax) { out += [0x20, 0x20] }
    }
}
