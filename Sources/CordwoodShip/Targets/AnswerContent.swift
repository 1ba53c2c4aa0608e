// What the body of a 2xx says, whatever its label claims: a page for people (a sign-in page, a
// captive portal), or a JSON object that reports an error. Reads the first bytes of a page, and
// the top level of an object, also of one that was cut. Bodies come from outside: nothing is
// trusted. What begins with more blanks and comments than are looked at counts as a page; what is
// packed in a way that we cannot unpack is looked at as it is. Pure.

import CordwoodFormats

enum AnswerContent {
    /// The number of bytes in which a page must begin.
    static let lookedAtBytes = 4 << 10
    /// The number of bytes in which an object must report its error: enough for any report, and
    /// little work for a server that answers with megabytes.
    static let errorBytesMax = 256 << 10

    // ── Pages ──

    /// True if the body begins like HTML, XHTML or WML, after blanks, comments and declarations.
    static func isPage(_ outcome: TransferOutcome) -> Bool {
        guard !outcome.body.isEmpty else { return false }
        let text = text(outcome, bytesMax: lookedAtBytes)
        // Some servers label everything as HTML, also Loggly's JSON.
        let type = outcome.header("content-type")?.lowercased() ?? ""
        let first = withoutBlanks(text[...]).first
        if type.hasPrefix("text/html"), first != UInt8(ascii: "{") { return true }
        return beginsLikePage(text[...])
    }

    private static func beginsLikePage(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        var isXML = false
        while true {
            rest = withoutBlanks(rest)
            guard let next = rest.first else { return text.count >= lookedAtBytes }
            guard next == UInt8(ascii: "<") else { return false }
            if begins(rest, "<!--") {
                guard let behind = after("-->", in: rest.dropFirst(4)) else { return true }
                rest = behind
            } else if begins(rest, "<?") {
                isXML = isXML || begins(rest, "<?xml")
                guard let behind = after("?>", in: rest) else { return true }
                rest = behind
            } else if begins(rest, "<!doctype") {
                let tag = tag(rest)
                if isPageType(tag.dropFirst("<!doctype".utf8.count)) { return true }
                isXML = true
                let end = tag.contains(UInt8(ascii: "[")) ? after("]", in: rest) : rest
                guard let end, let behind = after(">", in: end) else { return false }
                rest = behind
            } else {
                return isPageElement(tag(rest), isXML: isXML)
            }
        }
    }

    /// `html`, `html:html`, `wml PUBLIC "-//WAPFORUM//DTD WML 1.1//EN"`.
    private static func isPageType(_ type: ArraySlice<UInt8>) -> Bool {
        if roots.contains(localName(type.drop(while: isBlank))) { return true }
        return ["//dtd html", "//dtd xhtml", "//dtd wml"].contains { holds(type, $0) }
    }

    private static func isPageElement(_ tag: ArraySlice<UInt8>, isXML: Bool) -> Bool {
        let name = localName(tag.dropFirst())
        if roots.contains(name) || holds(tag, "www.w3.org/1999/xhtml") { return true }
        // A prefix, or another vocabulary: XML that needs no declaration.
        guard !isXML, !tag.prefix(while: { !isBlank($0) }).contains(UInt8(ascii: ":")) else {
            return false
        }
        let isForeign = tag.indices.contains {
            isBlank(tag[$0]) && begins(tag[($0 + 1)...], "xmlns=")
        }
        return !isForeign && elements.contains(name)
    }

    private static let roots: Set<String> = ["html", "wml"]

    /// Those of the WHATWG's MIME sniffing, and others that begin a page without `<html>`.
    private static let elements: Set<String> = [
        "a", "b", "base", "body", "br", "button", "center", "div", "font", "form", "frameset",
        "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "iframe", "img", "input",
        "link", "main", "meta", "nav", "noscript", "p", "pre", "script", "section", "span",
        "strong", "style", "table", "title", "ul",
    ]

    /// Lower case, without a namespace's prefix.
    private static func localName(_ text: ArraySlice<UInt8>) -> String {
        let name = text.prefix { !isBlank($0) && !"/>[<".utf8.contains($0) }
        let local = name.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).last
        return String(decoding: (local ?? name).map(ASCII.lower), as: UTF8.self)
    }

    private static func tag(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        text.prefix { $0 != UInt8(ascii: ">") }
    }

    // ── Errors ──

    /// True if the body is a JSON object that has a member `error` or `errors` other than null,
    /// false, 0 or empty.
    static func reportsError(_ outcome: TransferOutcome) -> Bool {
        guard !outcome.body.isEmpty else { return false }
        var members = JSONMemberScan(text(outcome, bytesMax: errorBytesMax))
        while let (key, isEmpty) = members.next() {
            if !isEmpty, key == "error" || key == "errors" { return true }
        }
        return false
    }

    // ── Text ──

    /// The beginning of the body in UTF-8: unpacked, without NULs.
    private static func text(_ outcome: TransferOutcome, bytesMax: Int) -> [UInt8] {
        let body = unpacked(outcome, bytesMax: (bytesMax + 1) * unitBytesMax)
        let (first, second) = (body.first ?? 0, body.dropFirst().first ?? 0)
        var text = body
        switch (first, second) {
        case (0xFF, 0xFE): text = fromUTF16(body, isBigEndian: false)
        case (0xFE, 0xFF), (0, _): text = fromUTF16(body, isBigEndian: true)
        case (_, 0) where body.count > 1: text = fromUTF16(body, isBigEndian: false)
        default: break
        }
        // UTF-32 has become UTF-16's characters, with NULs between them.
        text.removeAll { $0 == 0 }
        return Array(text.prefix(bytesMax))
    }

    /// A character of UTF-32.
    private static let unitBytesMax = 4

    /// A server may pack what we did not ask to be packed; hosts' transports may unpack it and
    /// leave the header.
    private static func unpacked(_ outcome: TransferOutcome, bytesMax: Int) -> [UInt8] {
        let word = outcome.header("content-encoding")?.lowercased() ?? ""
        let coding = ContentCoding(word: Array(word.utf8)) ?? .gzip
        var out: [UInt8] = []
        // SAFETY: the body lives through the call; pieces are copied before they go.
        let isPacked = unsafe outcome.body.withUnsafeBytes { bytes in
            guard unsafe coding.matches(bytes) else { return false }
            let ending = unsafe coding.unpack(bytes) { piece in
                unsafe out.append(contentsOf: piece.prefix(bytesMax - out.count))
                return out.count < bytesMax
            }
            return ending != .failed
        }
        return isPacked ? out : Array(outcome.body.prefix(bytesMax))
    }

    private static func fromUTF16(_ bytes: [UInt8], isBigEndian: Bool) -> [UInt8] {
        let units = stride(from: 0, to: bytes.count - bytes.count % 2, by: 2).map { index in
            let (one, two) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            return isBigEndian ? one << 8 | two : two << 8 | one
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }

    // ── Bytes ──

    /// A byte order mark in UTF-8: wherever blanks may be, some servers put one.
    static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private static func withoutBlanks(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = text
        while true {
            rest = rest.drop(while: isBlank)
            guard rest.starts(with: mark) else { return rest }
            rest = rest.dropFirst(mark.count)
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0D).contains(byte)
    }

    /// Ignores the case; `part` is in lower case.
    private static func begins(_ text: ArraySlice<UInt8>, _ part: String) -> Bool {
        text.count >= part.utf8.count
            && zip(text, part.utf8).allSatisfy { ASCII.lower($0) == $1 }
    }

    private static func holds(_ text: ArraySlice<UInt8>, _ part: String) -> Bool {
        text.indices.contains { begins(text[$0...], part) }
    }

    private static func after(_ part: String, in text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        text.indices.first { begins(text[$0...], part) }
            .map { text[($0 + part.utf8.count)...] }
    }
}
