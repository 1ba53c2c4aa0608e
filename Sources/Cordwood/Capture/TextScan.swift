// Finds secrets in a text of any kind and notes which bytes of it are to be replaced; the text
// itself stays as it is. In one look each: `name=value` as queries, forms and cookies have it
// (also where the '=' is percent-encoded), passwords in URLs, JSON Web Tokens, "Bearer …". JSON,
// parts and markup are in files of their own. Linear: each byte is looked at a bounded number of
// times. One value on one thread; the text may be anybody's, cut or damaged.

import Glibc

/// How far a value of `name=value` goes.
enum ItemForm {
    /// As a form's body has it: to the next '&'.
    case form
    /// As a URL has it: to the next '&' or '#'.
    case url
    /// In whatever text: to white space, a quote, and what else no value of a URL has.
    case loose
}

/// A text made of a part of another one: where each of its bytes stood there.
@safe struct TextOrigin {
    // SAFETY: of `count` + 1 entries, the caller's, valid during the scan.
    let offsets: UnsafePointer<UInt32>?
    let count: Int

    static var same: TextOrigin { unsafe TextOrigin(nil, 0) }

    @unsafe init(_ offsets: UnsafePointer<UInt32>?, _ count: Int) {
        unsafe self.offsets = offsets
        self.count = count
    }

    func offset(_ index: Int) -> Int {
        guard let offsets = unsafe offsets else { return index }
        return unsafe Int(offsets[min(max(0, index), count)])
    }
}

@safe struct TextScan {
    let names: NameTable
    // SAFETY: the exchange holds its rules as long as it is scanned for; nothing is counted here.
    unowned(unsafe) let rules: HTTPRules
    let text: ByteText
    var origin = TextOrigin.same
    /// Strings in strings so far.
    var level: UInt32 = 0
    /// More of the text was not kept.
    var isCut = false
    var items = ItemForm.loose

    init(_ rules: HTTPRules, _ text: ByteText, items: ItemForm = .loose) {
        names = rules.keys.table
        unsafe self.rules = rules
        self.text = text
        self.items = items
    }

    /// Everything that may stand anywhere.
    func run(_ edits: inout Edits) {
        if marks(&edits) { encodedText(&edits) }
        json(&edits)
        if items != .url {
            let isJSON = looksLikeJSON
            // "{'token': …}" is a string without an escape.
            if !isJSON || text.next(0x27, from: 0) < text.count {
                pairs(&edits, quotedOnly: isJSON)
            }
        }
        if unsafe rules.hasPatterns {
            for pattern in unsafe rules.patterns {
                pattern.find(in: text) { add($0, $1, &edits) }
            }
        }
    }

    func add(_ from: Int, _ to: Int, _ edits: inout Edits, quotes: UInt32 = Edit.bare) {
        edits.add(origin.offset(from), origin.offset(to), quotes: quotes)
    }

    // MARK: Items, URLs, tokens

    /// True where percent-encoded text may be JSON or markup, or a URL with a password.
    func marks(_ edits: inout Edits) -> Bool {
        var hasQuote = false
        var (hasSlash, hasSign) = (false, false)
        var walk = ByteWalk(text, .marks, from: 0)
        var at = walk.next()
        var lastItem = 0
        while at < text.count {
            var next = at &+ 1
            switch text[at] {
            case UInt8(ascii: "="):
                next = item(at, at &+ 1, encoded: 0, since: lastItem, &edits)
                lastItem = next
            case UInt8(ascii: "%"):
                let (end, depth) = encoded(at)
                let (high, low) = (text[end], text[end &+ 1] | 0x20)
                if high == 0x33, low == 0x64 {
                    next = item(at, end &+ 2, encoded: depth, since: lastItem, &edits)
                    lastItem = next
                } else if high == 0x32 {
                    if text[end &+ 1] == 0x32 { hasQuote = true }
                    if low == 0x66 { hasSlash = true }
                    if low == 0x36, isEntity(end &+ 2) { hasQuote = true }
                } else if high == 0x33, low == 0x63 {
                    hasQuote = true
                } else if high == 0x34, text[end &+ 1] == 0x30 {
                    hasSign = true
                }
            case UInt8(ascii: "y"): next = webToken(at, &edits)
            case UInt8(ascii: "/"): next = userInfo(at &- 1, &edits)
            default: next = credentials(at, &edits)
            }
            walk.seek(max(next, at &+ 1))
            at = walk.next()
        }
        // quote() of Python leaves the slashes of an address as they are.
        return hasQuote || hasSign || hasSlash && isCut
    }

    /// What stands behind the '&' of an entity that markup in markup has.
    private func isEntity(_ at: Int) -> Bool {
        text.has("quot", at: at) || text.has("lt", at: at) || text.has("%23", at: at)
            || text.has("%25", at: at) || text.has("amp", at: at) || text[at] == UInt8(ascii: "#")
    }

    /// "%", "%25", "%2525" …: where it ends, and how often what follows is encoded.
    private func encoded(_ at: Int) -> (end: Int, depth: Int) {
        var index = at &+ 1
        var depth = 1
        while text[index] == 0x32, text[index &+ 1] == 0x35, depth < TextScan.encodedMax {
            index &+= 2
            depth &+= 1
        }
        return (index, depth)
    }

    private static let encodedMax = 8
    /// A name is looked at so far back.
    private static let nameBytesMax = 256

    /// An '=' at [at, end): replaces the value where the name before it is a secret's. Returns
    /// where to go on.
    private func item(
        _ at: Int, _ end: Int, encoded: Int, since: Int, _ edits: inout Edits
    ) -> Int {
        var nameEnd = at
        var from = end
        if items == .loose, encoded == 0 {
            // An operator; else the value begins so.
            let isOperator = text[from] == UInt8(ascii: "=") || text[from] == UInt8(ascii: "~")
            if isOperator, text[from &+ 1] <= 0x20 { return end }
            // password = x, "password" => x
            let isArrow = text[from] == UInt8(ascii: ">")
            nameEnd = spacesEnd(at)
            if isArrow {
                nameEnd = quoteEnd(text[nameEnd &- 1] == 0x5D ? nameEnd &- 1 : nameEnd)
                from = arrowValue(from &+ 1)
            } else if nameEnd < at {
                from = text.skipSpaces(from)
            }
        }
        var start = nameEnd
        let least = max(since, at &- TextScan.nameBytesMax)
        while start > least, TextScan.isNameByte(text[start &- 1]) { start &-= 1 }
        guard isSecret(text.slice(start, nameEnd), encoded: encoded) else { return end }
        if items == .loose, let (inside, to) = quoted(from) {
            add(inside, to, &edits)
            return to
        }
        // "\"password=…": a quote of a string in a string ends the value, as does the string's.
        let to = valueEnd(from, encoded: encoded)
        add(from, to, &edits)
        return max(to, end)
    }

    /// Behind "=>", also where PHP says what follows: `string(7) "x"`.
    private func arrowValue(_ index: Int) -> Int {
        let at = text.skipBlank(index)
        guard text.has("string(", at: at) else { return text.skipSpaces(index) }
        var end = at &+ 7
        while ASCII.isDigit(text[end]) { end &+= 1 }
        return text[end] == UInt8(ascii: ")") ? text.skipSpaces(end &+ 1) : at
    }

    private static let spacesMax = 16

    /// Before the blanks that end there.
    private func spacesEnd(_ index: Int) -> Int {
        var at = index
        let least = max(0, index &- TextScan.spacesMax)
        while at > least, text[at &- 1] == 0x20 || text[at &- 1] == 0x09 { at &-= 1 }
        return at
    }

    /// Before the quote that ends there, and its backslashes.
    private func quoteEnd(_ index: Int) -> Int {
        guard text[index &- 1] == 0x22 || text[index &- 1] == 0x27 else { return index }
        var at = index &- 1
        let least = max(0, at &- TextScan.spacesMax)
        while at > least, text[at &- 1] == UInt8(ascii: "\\") { at &-= 1 }
        return at
    }

    /// A value in quotes that begins there, also where those have backslashes: what is between
    /// them. Quotes with more of these are the value's own.
    func quoted(_ index: Int) -> (from: Int, to: Int)? {
        var from = index
        while text[from] == UInt8(ascii: "\\") { from &+= 1 }
        let quote = text[from]
        guard quote == 0x22 || quote == 0x27 else { return nil }
        let slashes = from &- index
        from &+= 1
        var at = text.next(quote, from: from)
        while at < text.count {
            var end = at
            while end > from, text[end &- 1] == UInt8(ascii: "\\") { end &-= 1 }
            // As in JSON a backslash may stand for itself.
            if at &- end <= slashes || slashes == 0 && (at &- end) & 1 == 0 { return (from, end) }
            at = text.next(quote, from: at &+ 1)
        }
        return (from, text.count)
    }

    /// A single quote that ends a value which began without: "don't" goes on.
    private func isClosing(_ at: Int) -> Bool {
        let next = text[at &+ 1]
        switch next {
        case 0...0x20, UInt8(ascii: ","), UInt8(ascii: ")"), UInt8(ascii: ";"), UInt8(ascii: "]"),
            UInt8(ascii: "}"), UInt8(ascii: ">"), UInt8(ascii: "\""):
            return true
        default: return false
        }
    }

    /// What a name of an item is made of, but for what ends it towards the front.
    @inline(__always)
    private static func isNameByte(_ byte: UInt8) -> Bool {
        if ASCII.isNameByte(byte) { return true }
        switch byte {
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "%"),
            UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "+"), UInt8(ascii: "$"),
            UInt8(ascii: "@"), UInt8(ascii: "~"), UInt8(ascii: "!"), UInt8(ascii: "*"):
            return true
        default: return false
        }
    }

    private func isSecret(_ name: ByteText, encoded: Int) -> Bool {
        guard name.count > 0 else { return false }
        guard name.next(UInt8(ascii: "%"), from: 0) < name.count else {
            return itemNames.contains(name)
        }
        if itemNames.contains(name) { return true }
        var decoded = name.array
        for _ in 0...encoded { decoded = PercentCoding.decode(decoded) }
        // Of `a%26token%3D` the last item counts, of `a?token%3D` likewise.
        let end = decoded.lastIndex { !TextScan.isNameByte($0) }.map { $0 + 1 } ?? 0
        return unsafe decoded[end...].withUnsafeBufferPointer {
            unsafe itemNames.contains(ByteText($0.baseAddress, $0.count))
        }
    }

    private var itemNames: NameTable {
        items == .loose ? names : unsafe rules.items.table
    }

    private func valueEnd(_ from: Int, encoded: Int) -> Int {
        var at = from
        while at < text.count {
            let byte = text[at]
            switch byte {
            case UInt8(ascii: "&"): return at
            case UInt8(ascii: "#") where items == .url: return at
            case UInt8(ascii: "%") where encoded > 0 && isEncodedAnd(at, depth: encoded): return at
            case 0...0x20, UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
                UInt8(ascii: "\\"):
                if items == .loose { return at }
            case UInt8(ascii: "'"): if items == .loose, isClosing(at) { return at }
            default: break
            }
            at &+= 1
        }
        return at
    }

    /// "%26", as often encoded as the '=' was.
    private func isEncodedAnd(_ at: Int, depth: Int) -> Bool {
        var index = at &+ 1
        for _ in 1..<max(1, depth) {
            guard text[index] == 0x32, text[index &+ 1] == 0x35 else { return false }
            index &+= 2
        }
        return text[index] == 0x32 && text[index &+ 1] == 0x36
    }

    /// "//" behind that index, where an address may begin: the password of `user:password@`.
    private func userInfo(_ at: Int, _ edits: inout Edits) -> Int {
        guard beginsAddress(at) else { return at &+ 2 }
        let from = at &+ 3
        var end = from
        var colon = 0
        var sign = 0
        loop: while end < text.count {
            switch text[end] {
            case UInt8(ascii: ":"): if colon == 0 { colon = end }
            case UInt8(ascii: "@"): sign = end
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"): break loop
            case 0...0x20, UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
                UInt8(ascii: "\\"):
                // In an address by itself they are part of it, however wrong.
                if items != .url { break loop }
            default: break
            }
            end &+= 1
        }
        if sign > 0, colon > 0, colon < sign {
            add(colon &+ 1, sign, &edits)
            return sign
        }
        // Where the '@' was cut off what looks like a port may be a password.
        if isCut, end == text.count, colon > 0, sign == 0 { add(colon &+ 1, end, &edits) }
        // What stands there may hold marks of its own.
        return from
    }

    /// A scheme's colon, or what no path ends with.
    private func beginsAddress(_ at: Int) -> Bool {
        guard at >= 0 else { return true }
        switch text[at] {
        case UInt8(ascii: ":"), 0...0x20, UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "="),
            UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: "<"),
            UInt8(ascii: ">"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "`"),
            UInt8(ascii: "|"):
            return true
        default: return false
        }
    }

    /// An address without a scheme: //user:password@host.
    func authority(_ edits: inout Edits) {
        if text.has("//", at: 0) { _ = userInfo(-1, &edits) }
    }

    /// "yJ": of "eyJ", with which every JSON Web Token begins.
    private func webToken(_ at: Int, _ edits: inout Edits) -> Int {
        guard at > 0, text[at &- 1] == UInt8(ascii: "e") else { return at &+ 1 }
        var end = at &+ 2
        var dots = 0
        while end < text.count {
            let byte = text[end]
            if byte == UInt8(ascii: ".") {
                dots &+= 1
            } else if !TextScan.isTokenByte(byte) {
                break
            }
            end &+= 1
        }
        let isOpen = isCut && end == text.count
        guard dots >= 2 && end &- at >= 12 || isOpen else { return end }
        add(at &- 1, end, &edits)
        return end
    }

    @inline(__always)
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        ASCII.isUpper(byte) || ASCII.isLower(byte) || ASCII.isDigit(byte)
            || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    /// "Bearer xyz": all that may be a token behind it. "Basic xyz" likewise (BasicScan).
    private func credentials(_ at: Int, _ edits: inout Edits) -> Int {
        guard text.has("bearer", at: at) else { return basic(at, &edits) }
        var from = at &+ 6
        if text[from] == UInt8(ascii: "+") {
            from &+= 1
        } else if text.has("%20", at: from) {
            from &+= 3
        } else {
            if text[from] == UInt8(ascii: ":") { from &+= 1 }
            let blanks = from
            from = text.skipSpaces(from)
            guard from > blanks else { return from }
        }
        if let (inside, to) = quoted(from) {
            add(inside, to, &edits)
            return to
        }
        let end = bearerEnd(from)
        // A challenge, which has parameters: Bearer realm="…".
        let word = text.slice(from, end)
        for name in ["realm=", "scope=", "error", "charset=", "resource_"] as [StaticString]
        where word.has(name, at: 0) {
            return from
        }
        add(from, end, &edits)
        return end
    }

    private func bearerEnd(_ from: Int) -> Int {
        var at = from
        while at < text.count {
            switch text[at] {
            case 0...0x20, UInt8(ascii: "\""), UInt8(ascii: ","), UInt8(ascii: "<"),
                UInt8(ascii: "&"), UInt8(ascii: "\\"):
                return at
            case UInt8(ascii: "'"): if isClosing(at) { return at }
            default: break
            }
            at &+= 1
        }
        return at
    }
}

enum PercentCoding {
    /// `%41` as "A"; what is no such code stays.
    static func decode(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var at = 0
        while at < bytes.count {
            if bytes[at] == UInt8(ascii: "%"), at + 2 < bytes.count {
                let (high, low) = (ASCII.hex(bytes[at + 1]), ASCII.hex(bytes[at + 2]))
                if high < 16, low < 16 {
                    result.append(high << 4 | low)
                    at += 3
                    continue
                }
            }
            result.append(bytes[at])
            at += 1
        }
        return result
    }

    /// The same with where each byte stood; nil: no memory.
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
        while at < count {
            unsafe offsets[out] = UInt32(truncatingIfNeeded: origin.offset(at))
            var byte = text[at]
            at &+= 1
            if byte == UInt8(ascii: "%"), at &+ 1 < count {
                let (high, low) = (ASCII.hex(text[at]), ASCII.hex(text[at &+ 1]))
                if high < 16, low < 16 {
                    byte = high << 4 | low
                    at &+= 2
                }
            } else if byte == UInt8(ascii: "+") {
                byte = 0x20
            }
            unsafe bytes[out] = byte
            out &+= 1
        }
        unsafe offsets[out] = UInt32(truncatingIfNeeded: origin.offset(count))
        return unsafe body(ByteText(bytes, out), TextOrigin(offsets, out))
    }
}
