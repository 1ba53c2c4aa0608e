// The only way for captured text into records: all text of an exchange passes through here first. A
// body is kept only as far as it could be parsed, as JSON or XML, or by its Content-Type as a form,
// multipart or an event stream. Addresses, header lines and error texts are searched for anything
// that looks like a secret. A value on one thread.

import CordwoodCore

@safe package struct Redactor {
    // SAFETY: as in TextScan.
    unowned(unsafe) let rules: HTTPRules
    /// The entries of `keep_keys` that name the exchange's address.
    var kept: UInt64 = 0

    /// - Parameter rules: HTTPRules, which outlive the value.
    package init(_ rules: Unmanaged<AnyObject>) {
        unsafe self.rules = rules._withUnsafeGuaranteedRef {
            unsafe unsafeDowncast($0, to: HTTPRules.self)
        }
    }

    private func scan(_ text: ByteText, isCut: Bool, _ items: ItemForm = .loose) -> TextScan {
        var scan = unsafe TextScan(rules, kept: kept, text)
        scan.isCut = isCut
        scan.items = items
        return scan
    }

    /// No scan would find anything in the text, and it has no control characters.
    @inline(__always)
    private func isPlain(_ text: ByteText) -> Bool { unsafe !rules.hasPatterns && text.isPlain }

    /// An address: passwords in it, items of its query and fragment. True: as for a line.
    @discardableResult
    package func url(
        _ text: ByteText, isCut: Bool, _ edits: inout Edits, into out: inout GrowingBytes
    ) -> Bool {
        if text.next(UInt8(ascii: ":"), from: 0) == text.count, isPlain(text) {
            out.append(text)
            return true
        }
        edits.begin(text.count)
        let scan = scan(text, isCut: isCut, .url)
        scan.authority(&edits)
        scan.run(&edits)
        edits.finish(text, into: &out)
        return false
    }

    /// A header's value whose name means nothing, or an error's text. True: it has neither findings
    /// nor control characters.
    @discardableResult
    package func line(
        _ text: ByteText, isCut: Bool, _ edits: inout Edits, into out: inout GrowingBytes
    ) -> Bool {
        if isPlain(text), !text.mayBreakOff {
            out.append(text)
            return true
        }
        edits.begin(text.count)
        let scan = scan(text, isCut: isCut)
        scan.value(&edits)
        scan.pairs(&edits)
        edits.finish(text, into: &out)
        return false
    }

    /// How much of a body is kept, from its first byte on; `edits` gets the replacements
    /// (`Edits.finish` writes them). 0: it could not be parsed.
    /// - Parameter isCut: a part of it was not kept.
    /// - Parameter keepsText: also keep a body that could not be parsed.
    func body(
        _ text: ByteText, contentType: ByteText, isCut: Bool, keepsText: Bool,
        _ edits: inout Edits
    ) -> Int {
        edits.begin(text.count)
        var whole = scan(text, isCut: isCut)
        let media = contentType.media
        var end = whole.understand(contentType, media, &edits)
        if text.skipBlank(end) == text.count { end = text.count }
        // A lone bracket means nothing.
        if end < text.count, end <= 1 { end = 0 }
        let isText = keepsText && end < text.count
        if isText {
            edits.clear()
            end = text.count
        }
        guard end > 0 else {
            edits.clear()
            return 0
        }
        whole = scan(text.slice(0, end), isCut: isCut || end < text.count)
        if text.has("\u{FEFF}", at: 0) { whole = whole.piece(3, end) }
        if media.equals("application/x-www-form-urlencoded") { whole.items = .form }
        whole.run(&edits)
        if isText { whole.pairs(&edits) }
        return end
    }
}

extension ByteText {
    /// It begins like JSON or XML, and has a colon at which that may break off.
    fileprivate var mayBreakOff: Bool {
        switch self[skipBlank(0)] {
        case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "<"):
            return next(UInt8(ascii: ":"), from: 0) < count
        default: return false
        }
    }
}

extension TextScan {
    /// The end of a body's parsed part; 0: none. Only JSON and XML are recognised by their look.
    func understand(_ type: ByteText, _ media: ByteText, _ edits: inout Edits) -> Int {
        if type.has("multipart/", at: 0) { return parts(type, &edits) }
        if media.equals("application/x-www-form-urlencoded") { return form() }
        if media.equals("text/event-stream") { return events(&edits) }
        let first = text[text.skipBlank(text.has("\u{FEFF}", at: 0) ? 3 : 0)]
        if first == UInt8(ascii: "<") {
            return media.ends("html") ? 0 : XMLBody.parse(self, &edits) ?? 0
        }
        let isJSON = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        guard isJSON || media.ends("json") || text.has(")]}'", at: 0) else { return 0 }
        return JSONBody.parse(self, hasLines: true, &edits)
    }
}
