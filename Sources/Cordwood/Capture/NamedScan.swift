// Finds values of JSON whose name is a value, too: `{"name":"password","value":"x"}`. JSONScan
// finds the member that may hold one (`value`, `content`, …); here the members beside it are looked
// at, in front of it and behind it, for one that names a secret. Each look is bounded, so that all
// of them are linear; a string's length does not count where it is the value.

/// Which members of an object say whose value another one is.
enum NamedMembers {
    static let names = [
        "name", "key", "id", "field", "param", "parameter", "header", "k", "n", "property",
        "attribute", "attr", "variable", "option", "setting", "type",
    ]
    /// None shorter than the shortest name of a secret: names such as "id" cost nothing then.
    static let values = ["value", "values", "val", "content", "text", "data"]
}

extension TextScan {
    /// Of members on each side.
    private static let besideMax = 1_024
    private static let namedBytesMax = 96

    /// Whether the member [from, to) of an object, whose value begins at `value`, is a secret by
    /// its name or by that of another member.
    @inline(never)
    func isSecretMember(_ from: Int, _ to: Int, value: Int, hasEscapes: Bool) -> Bool {
        decoded(text.slice(from &+ 1, to), hasEscapes) { name in
            if unsafe names.contains(name) || !rules.values.table.contains(name) { return true }
            // {"type":"token","text":"…"} is text.
            let isValue =
                !(name.has("content", at: 0) || name.has("text", at: 0)
                || name.has("data", at: 0))
            let told = isNamedBefore(from, isValue: isValue)
            return told == true || isNamedBehind(value, isValue: isValue, hasName: told != nil)
        }
    }

    private func decoded(
        _ string: ByteText, _ hasEscapes: Bool, _ body: (ByteText) -> Bool
    ) -> Bool {
        guard hasEscapes else { return body(string) }
        return unsafe JSONString.decode(string, origin: .same) { name, _ in body(name) } ?? true
    }

    /// What a member says of the values beside it: nil where it is none that names them.
    private func tells(_ key: ByteText, _ value: ByteText, isValue: Bool) -> Bool? {
        guard key.count <= TextScan.namedBytesMax, value.count > 0 else { return nil }
        let isNaming = unsafe decoded(key, key.next(0x5C, from: 0) < key.count) { key in
            guard unsafe rules.namings.table.contains(key) else { return false }
            return isValue || !(key.equals("id") || key.equals("type"))
        }
        guard isNaming else { return nil }
        // Of a long one the end says what it is: spring.datasource.….password.
        let value = value.slice(value.count &- TextScan.namedBytesMax, value.count)
        return decoded(value, value.next(0x5C, from: 0) < value.count) { name in
            unsafe rules.headerNames.table.contains(name)
        }
    }

    /// Towards the object's begin; nil: nothing there tells.
    private func isNamedBefore(_ anchor: Int, isValue: Bool) -> Bool? {
        let least = max(0, anchor &- TextScan.besideMax)
        var at = solid(anchor, least)
        var told: Bool?
        while at > least, text[at &- 1] == UInt8(ascii: ",") {
            at = solid(at &- 1, least)
            let end = at
            guard at > least, let start = valueStart(end, least) else { return told }
            at = solid(start, least)
            guard at > least, text[at &- 1] == UInt8(ascii: ":") else { return told }
            at = solid(at &- 1, least)
            guard at > least, text[at &- 1] == UInt8(ascii: "\""),
                let key = quote(before: at &- 1, least)
            else { return told }
            if text[start] == UInt8(ascii: "\""),
                let tells = tells(
                    text.slice(key &+ 1, at &- 1), text.slice(start &+ 1, end &- 1),
                    isValue: isValue)
            {
                if tells { return true }
                told = false
            }
            at = solid(key, least)
        }
        // It may stand behind as well: {"id":"7","value":"x","name":"password"}.
        return told
    }

    /// Behind the last byte before that index which is not blank.
    private func solid(_ index: Int, _ least: Int) -> Int {
        var at = index
        while at > least, ASCII.isBlank(text[at &- 1]) { at &-= 1 }
        return at
    }

    /// Where a value begins that ends there; nil: further off than is looked.
    private func valueStart(_ end: Int, _ least: Int) -> Int? {
        var at = end
        var depth = 0
        while at > least {
            at &-= 1
            switch text[at] {
            case UInt8(ascii: "\""):
                guard let start = quote(before: at, least) else { return nil }
                at = start
                if depth == 0 { return at }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth &+= 1
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth &-= 1
                if depth == 0 { return at }
                if depth < 0 { return nil }
            case UInt8(ascii: ":"), UInt8(ascii: ","): if depth == 0 { return at &+ 1 }
            default: break
            }
        }
        return nil
    }

    /// The quote that begins the string which ends there.
    private func quote(before end: Int, _ least: Int) -> Int? {
        var at = end
        while at > least {
            at &-= 1
            guard text[at] == UInt8(ascii: "\"") else { continue }
            var slashes = at
            while slashes > least, text[slashes &- 1] == UInt8(ascii: "\\") { slashes &-= 1 }
            if (at &- slashes) & 1 == 0 { return at }
        }
        return nil
    }

    /// From the value on to the object's end.
    private func isNamedBehind(_ start: Int, isValue: Bool, hasName: Bool) -> Bool {
        var most = start &+ TextScan.besideMax
        var at = start
        if text[start] == UInt8(ascii: "\"") {
            at = text.stringEnd(start &+ 1) &+ 1
            most = at &+ TextScan.besideMax
        } else {
            guard let end = text.slice(0, most).valueEnd(start) else { return false }
            at = end
        }
        let window = text.slice(0, most)
        // A name that was cut off might have been a secret's.
        let isOpen = isCut && isValue && !hasName && text[start] == UInt8(ascii: "\"")
        var told: Bool?
        while true {
            at = window.skipBlank(at)
            guard at < window.count else { break }
            guard window[at] == UInt8(ascii: ",") else { return isOpen && isLast(at) }
            at = window.skipBlank(at &+ 1)
            guard at < window.count else { break }
            guard window[at] == UInt8(ascii: "\"") else { return isOpen && isLast(at) }
            let key = window.stringEnd(at &+ 1)
            let value = window.skipBlank(window.skipBlank(key &+ 1) &+ 1)
            guard value < window.count, let end = window.valueEnd(value) else { break }
            if window[value] == UInt8(ascii: "\""),
                let tells = tells(
                    window.slice(at &+ 1, key), window.slice(value &+ 1, end &- 1),
                    isValue: isValue)
            {
                if tells { return true }
                told = false
            }
            at = end
        }
        return isOpen && told == nil && window.count == text.count
    }

    /// So near to where the text was cut that it may be the beginning of an escape.
    private func isLast(_ at: Int) -> Bool { text.count &- at < 16 }
}

extension ByteText {
    /// Behind the JSON value that begins there; nil: it does not end.
    fileprivate func valueEnd(_ start: Int) -> Int? {
        var depth = 0
        var at = start
        while at < count {
            switch self[at] {
            case UInt8(ascii: "\""):
                at = stringEnd(at &+ 1)
                guard at < count else { return nil }
                if depth == 0 { return at &+ 1 }
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth &+= 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard depth > 0 else { return at }
                depth &-= 1
                if depth == 0 { return at &+ 1 }
            case UInt8(ascii: ","): if depth == 0 { return at }
            default: break
            }
            at &+= 1
        }
        return nil
    }
}
