// The one place where what was captured becomes what is kept: every text of an exchange passes
// here before it is part of a record. It says which forms a text is looked through for; the forms
// are in TextScan, JSONScan and MarkupScan. A value on one thread.

@safe struct Redactor {
    // SAFETY: as TextScan's.
    unowned(unsafe) let rules: HTTPRules

    /// - Parameter rules: HTTPRules, which outlive the value.
    init(_ rules: Unmanaged<AnyObject>) {
        unsafe self.rules = rules._withUnsafeGuaranteedRef {
            unsafe unsafeDowncast($0, to: HTTPRules.self)
        }
    }

    /// An address: passwords in it, items of its query and fragment.
    func url(
        _ text: ByteText, isCut: Bool, _ edits: inout Edits, into out: inout ByteBuffer
    ) {
        edits.begin(text.count)
        var scan = unsafe TextScan(rules, text, items: .url)
        scan.isCut = isCut
        scan.authority(&edits)
        scan.run(&edits)
        finish(text, &edits, into: &out)
    }

    /// A header's value whose name says nothing, or an error's text. True: it has nothing special,
    /// no control characters either.
    @discardableResult
    func line(
        _ text: ByteText, isCut: Bool, _ edits: inout Edits, into out: inout ByteBuffer
    ) -> Bool {
        if unsafe !rules.hasPatterns, text.isPlain {
            out.append(text)
            return true
        }
        edits.begin(text.count)
        var scan = unsafe TextScan(rules, text)
        scan.isCut = isCut
        scan.privateKeys(&edits)
        scan.run(&edits)
        finish(text, &edits, into: &out)
        return false
    }

    /// - Parameter isCut: more of it was not kept.
    func body(
        _ text: ByteText, contentType: ByteText, isCut: Bool, _ edits: inout Edits,
        into out: inout ByteBuffer
    ) {
        edits.begin(text.count)
        var scan = unsafe TextScan(rules, text)
        scan.isCut = isCut
        if contentType.has("application/x-www-form-urlencoded", at: 0)
            || contentType.count == 0 && scan.looksLikeForm
        {
            scan.items = .form
        }
        let begin = text.has("\u{FEFF}", at: 0) ? text.skipBlank(3) : text.skipBlank(0)
        let first = text[begin]
        let isParts = contentType.has("multipart/", at: 0)
        let isJSON = scan.looksLikeJSON
        if isParts || !isJSON && Redactor.hasMark(text) { scan.parts(&edits) }
        let isMarkup = !isParts && (first == UInt8(ascii: "<") || Redactor.isMarkup(contentType))
        if !isJSON || text[text.skipBlank(begin &+ 1)] == UInt8(ascii: "&") {
            scan.privateKeys(&edits)
            scan.entities(&edits)
        }
        scan.markup(&edits, isMarkup ? .markup : isJSON ? .strings : .loose)
        scan.run(&edits)
        finish(text, &edits, into: &out)
    }

    private func finish(_ text: ByteText, _ edits: inout Edits, into out: inout ByteBuffer) {
        edits.apply(to: text, into: &out)
        edits.clear()
    }

    private static func isMarkup(_ type: ByteText) -> Bool {
        let end = type.next(UInt8(ascii: ";"), from: 0)
        let name = type.slice(0, end).trimmed
        return name.has("xml", at: name.count &- 3) || name.has("html", at: name.count &- 4)
    }

    /// A line that begins with "--", as a part's does.
    private static func hasMark(_ text: ByteText) -> Bool {
        var at = 0
        while at < text.count {
            if text[at] == 0x2D, text[at &+ 1] == 0x2D { return true }
            at = text.next(0x0A, from: at) &+ 1
        }
        return false
    }
}

extension TextScan {
    /// `key=` at the start, of what names are made of.
    var looksLikeForm: Bool {
        var at = 0
        while at < text.count, at < 256 {
            let byte = text[at]
            if byte == UInt8(ascii: "=") { return at > 0 }
            guard
                ASCII.isNameByte(byte) || byte == 0x5F || byte == 0x2D || byte == 0x2E
                    || byte == 0x25 || byte == 0x5B || byte == 0x5D || byte == 0x2B
            else { return false }
            at &+= 1
        }
        return false
    }

    /// JSON and markup within items: `data=%7B%22password%22…`.
    func encodedText(_ edits: inout Edits) {
        guard edits.mayDecode(text.count) else { return add(0, text.count, &edits) }
        let done: Void? = unsafe PercentCoding.decode(text, origin: origin) { decoded, offsets in
            var scan = unsafe TextScan(rules, decoded)
            scan.origin = offsets
            scan.isCut = isCut
            scan.level = level &+ 1
            scan.markup(&edits, .loose)
            scan.json(&edits)
            scan.entities(&edits)
            // What was encoded twice is looked into as often as JSON in JSON.
            if scan.marks(&edits), scan.level < TextScan.levelMax { scan.encodedText(&edits) }
        }
        if done == nil { add(0, text.count, &edits) }
    }
}
