// Finds secrets in free text, or in one value of a form, and notes which bytes to replace; the text
// itself is not changed. One pass looks for `name=value` as in queries, forms and cookies, for
// passwords in URLs, tokens with a known prefix, credentials after "Bearer" and "Basic", and
// private keys. Percent-encoded values are decoded and scanned as texts of their own. Linear: each
// byte is looked at a bounded number of times. A value on one thread; the text is untrusted and may
// be damaged.

import CordwoodFormats

/// The end of a value in `name=value`.
enum ItemForm {
    /// In a form's body: at the next '&'.
    case form
    /// In a URL: at the next '&' or '#'.
    case url
    /// In any text: at white space, a quote, or other characters that no URL's value has.
    case loose
}

/// The original places of a decoded text's bytes.
@safe struct TextOrigin {
    // SAFETY: nil, or of `count` + 1 entries, the caller's, valid during the scan.
    private let offsets: UnsafePointer<UInt32>?
    private let count: Int
    /// The start of a piece of that text.
    private var base = 0

    static var same: TextOrigin { unsafe TextOrigin(nil, 0) }

    @unsafe init(_ offsets: UnsafePointer<UInt32>?, _ count: Int) {
        unsafe self.offsets = offsets
        self.count = count
    }

    func offset(_ index: Int) -> Int {
        guard let offsets = unsafe offsets else { return base &+ index }
        return unsafe Int(offsets[min(max(0, base &+ index), count)])
    }

    func moved(by index: Int) -> TextOrigin {
        var moved = self
        moved.base &+= index
        return moved
    }
}

@safe struct TextScan {
    /// The number of nested texts that are opened; a deeper one is replaced whole.
    static let levelMax: UInt32 = 6
    /// The depth of brackets, elements and parts, including those of nested texts.
    static let depthMax: UInt32 = 64

    // SAFETY: the exchange holds its rules while it is scanned; nothing is counted here.
    unowned(unsafe) let rules: HTTPRules
    /// The entries of `keep_keys` that name this exchange's address.
    let kept: UInt64
    private(set) var text: ByteText
    private(set) var origin = TextOrigin.same
    /// The nesting depth of texts so far.
    private(set) var level: UInt32 = 0
    private(set) var depth: UInt32 = 0
    /// A part of the text was not kept, or of a form's last value that holds it.
    var isCut = false
    /// If `isCut`: as far as is known, only by the form's sender.
    private var isMaybeWhole = false
    var items = ItemForm.loose

    init(_ rules: HTTPRules, kept: UInt64, _ text: ByteText) {
        unsafe self.rules = rules
        self.kept = kept
        self.text = text
    }

    /// A scan of the decoded content of a piece of the text.
    func within(_ decoded: ByteText, _ origin: TextOrigin, depth: UInt32) -> TextScan {
        var inner = self
        inner.text = decoded
        inner.origin = origin
        inner.level &+= 1
        inner.depth = depth
        inner.items = .loose
        inner.isCut = false
        return inner
    }

    /// The last value may be incomplete: a form does not show whether its sender broke it off.
    var mayGoOn: Bool { isCut || items == .form }

    /// How many bytes of its secret an unfinished token at the end has at least. Many values of
    /// forms end in a prefix: lang=sk-SK.
    var openTokenBytes: Int { !mayGoOn ? .max : isCut && !isMaybeWhole ? 0 : 4 }

    /// The text up to that byte.
    func head(_ count: Int) -> TextScan {
        guard count < text.count else { return self }
        var head = self
        head.text = text.slice(0, count)
        head.isCut = true
        head.isMaybeWhole = false
        return head
    }

    /// A piece of the text by itself.
    func piece(_ from: Int, _ to: Int) -> TextScan {
        var piece = self
        piece.text = text.slice(from, to)
        piece.origin = origin.moved(by: from)
        piece.isCut = isCut && to >= text.count
        piece.depth &+= 1
        return piece
    }

    /// A value of a form: JSON or XML if it is that, otherwise free text.
    func value(_ edits: inout Edits) {
        structure(&edits)
        run(&edits)
    }

    /// Replaces text that begins as JSON, from the place where it breaks off.
    private func structure(_ edits: inout Edits) {
        let begin = text.skipBlank(0)
        switch text[begin] {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            let end = JSONBody.parse(self, hasLines: true, &edits)
            guard text.skipBlank(end) < text.count, beginsJSON(begin) else { return }
            add(end, text.count, &edits)
        case UInt8(ascii: "<"):
            if XMLBody.parse(self, &edits) == nil { add(0, text.count, &edits) }
        default: break
        }
    }

    /// More than a bracket, with which any text may begin.
    private func beginsJSON(_ index: Int) -> Bool {
        let next = text[text.skipBlank(index &+ 1)]
        return next == UInt8(ascii: "\"") || next == UInt8(ascii: "{") || next == 0
    }

    /// Finds everything that may occur anywhere.
    func run(_ edits: inout Edits) {
        marks(&edits)
        guard unsafe rules.hasPatterns else { return }
        for pattern in unsafe rules.patterns {
            pattern.find(in: text) { add($0, $1, &edits) }
        }
    }

    func add(_ from: Int, _ to: Int, _ edits: inout Edits, quotes: UInt32 = Edit.bare) {
        edits.add(origin.offset(from), origin.offset(to), quotes: quotes)
    }

    // MARK: Names

    func isSecret(_ name: ByteText) -> Bool {
        guard name.count > 0 else { return false }
        let table = unsafe items == .loose ? rules.keys : rules.items
        return table.contains(name) && !isKept(name)
    }

    /// A text that names the value beside it. In a long text the end decides:
    /// spring.datasource.….password.
    func isSecretName(_ text: ByteText) -> Bool {
        unsafe rules.headerNames.contains(text) && !isKept(text)
    }

    /// True for an entry of `keep_keys`.
    func isKept(_ name: ByteText) -> Bool {
        unsafe rules.kept.contains(name) || kept != 0 && rules.keep.keeps(name, kept)
    }

    /// A name in which some bytes may be percent-encoded. A name in another encoding than UTF-8 may
    /// belong to a secret.
    private func isSecretItem(_ name: ByteText) -> Bool {
        if isSecret(name) { return true }
        guard name.next(UInt8(ascii: "%"), from: 0) < name.count else { return false }
        let decoded = PercentCoding.decode(name.array)
        return unsafe decoded.withUnsafeBufferPointer {
            unsafe isSecret(ByteText($0.baseAddress, $0.count))
                || items != .loose && !UTF8Scan.isValid(UnsafeRawBufferPointer($0))
        }
    }

    // MARK: Marks

    /// Items, addresses, tokens and percent-encoded text.
    private func marks(_ edits: inout Edits) {
        var walk = ByteWalk(text)
        var at = walk.next()
        var lastItem = 0
        while at < text.count {
            var next = at &+ 1
            switch text[at] {
            case UInt8(ascii: "="):
                next = item(at, since: lastItem, &edits)
                lastItem = next
            case UInt8(ascii: "%"): next = encoded(at, since: lastItem, &edits)
            case UInt8(ascii: "/") where text[at &+ 1] == UInt8(ascii: "/"):
                next = userInfo(at &- 1, &edits)
            default: next = token(at, &edits)
            }
            walk.seek(max(next, at &+ 1))
            at = walk.next()
        }
    }

    /// The number of bytes searched backwards for a name.
    private static let nameBytesMax = 256

    /// An '=': replaces the value if the name before it is a secret's. Returns the index to
    /// continue at.
    private func item(_ at: Int, since: Int, _ edits: inout Edits) -> Int {
        let start = text.itemStart(before: at, least: max(since, at &- TextScan.nameBytesMax))
        guard isSecretItem(text.slice(start, at)) else { return at &+ 1 }
        if items == .loose, let (inside, to) = quoted(at &+ 1) {
            add(inside, to, &edits)
            return to
        }
        let to = valueEnd(at &+ 1)
        add(at &+ 1, to, &edits)
        return max(to, at &+ 1)
    }

    /// A quoted value that begins there: the text between the quotes.
    private func quoted(_ index: Int) -> (from: Int, to: Int)? {
        let quote = text[index]
        guard quote == 0x22 || quote == 0x27 else { return nil }
        var at = text.next(quote, from: index &+ 1)
        while at < text.count {
            var slashes = at
            while slashes > index &+ 1, text[slashes &- 1] == UInt8(ascii: "\\") { slashes &-= 1 }
            if (at &- slashes) & 1 == 0 { break }
            at = text.next(quote, from: at &+ 1)
        }
        return (index &+ 1, at)
    }

    private func valueEnd(_ from: Int) -> Int {
        var at = from
        while at < text.count {
            switch text[at] {
            case UInt8(ascii: "&"): return at
            case UInt8(ascii: "#"): if items == .url { return at }
            default: if items == .loose, endsWord(at) { return at }
            }
            at &+= 1
        }
        return at
    }

    /// White space, a quote or a bracket of markup. The quote in "don't" does not count.
    private func endsWord(_ at: Int) -> Bool {
        switch text[at] {
        case 0...0x20, UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
            UInt8(ascii: "\\"):
            return true
        case UInt8(ascii: "'"): return !ASCII.isNameByte(text[at &+ 1])
        default: return false
        }
    }

    /// A '%': if the encoded bytes may hide a secret, decodes and scans the whole value. Returns
    /// the index to continue at.
    private func encoded(_ at: Int, since: Int, _ edits: inout Edits) -> Int {
        guard TextScan.mayHide(text[at &+ 1], text[at &+ 2]) else { return at &+ 1 }
        var from = at
        while from > since, text[from &- 1] != UInt8(ascii: "&"), !endsWord(from &- 1) {
            from &-= 1
        }
        let to = valueEnd(at)
        // Within a name: its '=' decides.
        if from > since || since == 0 {
            let equals = at &+ text.slice(at, to).next(UInt8(ascii: "="), from: 0)
            if equals < to { return equals }
        }
        guard level < TextScan.levelMax, edits.mayDecode(to &- from) else {
            add(from, to, &edits)
            return to
        }
        let done: Void? = PercentCoding.decode(
            text.slice(from, to), origin: origin, at: from
        ) { decoded, origin in
            var inner = within(decoded, origin, depth: depth &+ 1)
            inner.isCut = mayGoOn && to == text.count
            inner.isMaybeWhole = !isCut || isMaybeWhole
            inner.value(&edits)
        }
        if done == nil { add(from, to, &edits) }
        return to
    }

    /// Quotes, brackets, and bytes that items, addresses, tokens, escapes and nested codes need.
    private static func mayHide(_ high: UInt8, _ low: UInt8) -> Bool {
        switch (high, low | 0x20) {
        case (0x32, 0x32), (0x32, 0x35), (0x32, 0x64...0x66), (0x33, 0x61), (0x33, 0x63),
            (0x33, 0x64), (0x34, 0x30), (0x35, 0x62...0x63), (0x35, 0x66), (0x37, 0x62):
            return true
        default: return false
        }
    }

    /// "//" after that index, where an address may begin: the password of `user:password@`.
    private func userInfo(_ at: Int, _ edits: inout Edits) -> Int {
        guard beginsAddress(at), let start = unsafe text.start else { return at &+ 2 }
        let from = at &+ 3
        var end = from
        var colon = 0
        var sign = 0
        loop: while end < text.count {
            // SAFETY: below the text's count.
            let byte = unsafe start[end]
            switch byte {
            case _ where ASCII.isNameByte(byte): break
            case UInt8(ascii: ":"): if colon == 0 { colon = end }
            case UInt8(ascii: "@"): sign = end
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"): break loop
            case 0...0x20, UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
                UInt8(ascii: "\\"):
                // In an address alone they are part of it, however wrong.
                if items != .url { break loop }
            default: break
            }
            end &+= 1
        }
        if sign > 0, colon > 0, colon < sign {
            add(colon &+ 1, sign, &edits)
            return sign
        }
        // If the '@' was cut off, text that looks like a port may be a password.
        if mayGoOn, end == text.count, colon > 0, sign == 0 { add(colon &+ 1, end, &edits) }
        // The authority may contain further marks.
        return from
    }

    /// A scheme's colon, or a byte with which no path ends.
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

    /// An authority without a scheme: `user:password@host`, the start of a Location or a Host.
    func authority(_ edits: inout Edits) {
        guard !text.has("mailto:", at: 0) else { return }
        if text.has("//", at: 0) {
            _ = userInfo(-1, &edits)
        } else if !text.has("//", at: text.next(UInt8(ascii: ":"), from: 0) &+ 1),
            text.find("://") == text.count
        {
            var end = 0
            while end < text.count, text[end] != UInt8(ascii: "/"), text[end] != 0x3F { end &+= 1 }
            let head = text.slice(0, end)
            let colon = head.next(UInt8(ascii: ":"), from: 0)
            let sign = head.next(UInt8(ascii: "@"), from: colon)
            if sign < head.count { add(colon &+ 1, sign, &edits) }
        }
    }
    // MARK: Lines

    /// `name: value` at the start of a line or after a bracket, as in header lines and settings: up
    /// to the line's end, or between quotes.
    func pairs(_ edits: inout Edits) {
        var colon = text.next(UInt8(ascii: ":"), from: 0)
        while colon < text.count {
            let from = text.skipSpaces(colon &+ 1)
            let isQuote = text[from] == 0x22 || text[from] == 0x27
            if from > colon &+ 1 || isQuote, isPairName(before: colon) {
                let end = text.next(0x0A, from: from)
                let (inside, to) = quoted(from) ?? (from, end)
                add(inside, to, &edits)
                colon = max(to, colon)
            }
            colon = text.next(UInt8(ascii: ":"), from: colon &+ 1)
        }
    }

    private func isPairName(before colon: Int) -> Bool {
        var end = colon
        if text[end &- 1] == 0x22 || text[end &- 1] == 0x27 { end &-= 1 }
        let start = text.itemStart(before: end, least: max(0, end &- TextScan.nameBytesMax))
        guard isSecretName(text.slice(start, end)) else { return false }
        var before = start
        while before > 0, text[before &- 1] == 0x20 || text[before &- 1] == 0x09 { before &-= 1 }
        guard before > 0 else { return true }
        switch text[before &- 1] {
        case 0x0A, 0x0D, UInt8(ascii: "{"), UInt8(ascii: "("), UInt8(ascii: "["),
            UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "\""), UInt8(ascii: "'"):
            return true
        default: return false
        }
    }
}
