// A host's exceptions: bodies to keep although they cannot be parsed, by host and media type
// (`keep_text`), and names whose values are not secrets (`keep_keys`). Each exchange gets a bit for
// every rule that matches its URL. Never changed; any thread.

import CordwoodFormats
import CordwoodCore

struct KeepRules: Sendable {
    static let rulesMax = 64

    /// Names that only look like secrets: they say where a list continues.
    private static let pagination = [
        "nextPageToken", "prevPageToken", "previousPageToken", "pageToken", "nextToken",
        "nextSyncToken", "syncToken", "continuationToken", "nextContinuationToken",
        "paginationToken", "pagingToken", "nextPaginationToken", "skipToken", "nextSkipToken",
    ]

    private struct Text: Sendable {
        let place: Place
        /// `text/plain`; `text/`, a prefix of the type; or empty: any.
        let type: [UInt8]
        let isWhole: Bool
        /// Only answers of 4xx and 5xx.
        let isErrors: Bool
    }

    private struct Key: Sendable {
        let place: Place
        let names: SecretNames
    }

    private let texts: [Text]
    let everywhere: SecretNames
    private let keys: [Key]

    init(texts: [String], keys: [String]) throws(CordwoodError) {
        var list: [Text] = []
        for text in texts { list.append(try KeepRules.text(text)) }
        self.texts = list
        var names = KeepRules.pagination
        var placed: [Key] = []
        for key in keys {
            guard let colon = key.lastIndex(of: ":") else {
                try KeepRules.check(key, key)
                names.append(key)
                continue
            }
            let name = String(key[key.index(after: colon)...])
            try KeepRules.check(name, key)
            guard let place = Place(key[..<colon]) else { throw KeepRules.wrong("keep_keys", key) }
            placed.append(Key(place: place, names: try SecretNames(wholes: [name])))
        }
        everywhere = try SecretNames(wholes: names)
        self.keys = placed
        guard list.count <= KeepRules.rulesMax, placed.count <= KeepRules.rulesMax,
            names.count <= SecretNames.namesMax
        else {
            throw CordwoodError(
                Status.limit,
                "keep_text or keep_keys: over \(KeepRules.rulesMax) with a host, or "
                    + "over \(SecretNames.namesMax) names")
        }
    }

    private static func wrong(_ option: String, _ text: String) -> CordwoodError {
        CordwoodError(
            Status.argument,
            option == "keep_text"
                ? "keep_text: '\(text.prefix(80))' is no host and type: 'api.example.com "
                    + "text/plain', '*.example.com text/*', '* errors'"
                : "keep_keys: '\(text.prefix(80))' is no name and no host/path:name")
    }

    private static func check(_ name: String, _ text: String) throws(CordwoodError) {
        guard name.utf8.count <= SecretNames.nameBytesMax,
            name.utf8.contains(where: { ASCII.isNameByte($0) })
        else { throw wrong("keep_keys", text) }
    }

    private static func text(_ text: String) throws(CordwoodError) -> Text {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" })
        guard words.count == 2, let place = Place(words[0]) else { throw wrong("keep_text", text) }
        let type = words[1].utf8.map { ASCII.lower($0) }
        if words[1].lowercased() == "errors" {
            return Text(
                place: place, type: Array("text/plain".utf8), isWhole: true, isErrors: true)
        }
        guard type.count(where: { $0 == UInt8(ascii: "/") }) == 1 else {
            throw wrong("keep_text", text)
        }
        if type == Array("*/*".utf8) {
            return Text(place: place, type: [], isWhole: false, isErrors: false)
        }
        let isWhole = type.last != UInt8(ascii: "*")
        return Text(
            place: place, type: isWhole ? type : type.dropLast(), isWhole: isWhole,
            isErrors: false)
    }

    /// Some rules apply to single addresses.
    var hasPlaces: Bool { !texts.isEmpty || !keys.isEmpty }

    // MARK: For an exchange

    /// The entries of `keep_text` that name the address.
    func texts(_ url: ByteText, _ parts: URLParts) -> UInt64 {
        var bits: UInt64 = 0
        for index in 0..<texts.count where texts[index].place.matches(url, parts) {
            bits |= 1 << UInt64(index)
        }
        return bits
    }

    /// The entries of `keep_keys` that name the address.
    func keys(_ url: ByteText, _ parts: URLParts) -> UInt64 {
        var bits: UInt64 = 0
        for index in 0..<keys.count where keys[index].place.matches(url, parts) {
            bits |= 1 << UInt64(index)
        }
        return bits
    }

    func keepsText(_ bits: UInt64, _ contentType: ByteText, status: Int32) -> Bool {
        guard bits != 0 else { return false }
        let type = contentType.media
        for index in 0..<texts.count where bits >> UInt64(index) & 1 != 0 {
            let rule = texts[index]
            guard !rule.isErrors || status >= 400 else { continue }
            if type.begins(lower: rule.type, isWhole: rule.isWhole) { return true }
        }
        return false
    }

    /// - Parameter bits: the exchange's rules.
    func keeps(_ name: ByteText, _ bits: UInt64) -> Bool {
        for index in 0..<keys.count where bits >> UInt64(index) & 1 != 0 {
            if keys[index].names.table.contains(name) { return true }
        }
        return false
    }

    /// `*`, or a host as in `hosts`; a path after it must be a prefix of the address's path.
    private struct Place: Sendable {
        private let host: HostRule?
        private let path: [UInt8]

        init?(_ text: Substring) {
            let slash = text.firstIndex(of: "/") ?? text.endIndex
            path = Array(text[slash...].utf8)
            guard text[..<slash] != "*" else {
                host = nil
                return
            }
            guard let host = HostRule(String(text[..<slash])) else { return nil }
            self.host = host
        }

        func matches(_ url: ByteText, _ parts: URLParts) -> Bool {
            if let host, !host.matches(parts) { return false }
            guard !path.isEmpty else { return true }
            let authority = url.find("://")
            let from = url.next(UInt8(ascii: "/"), from: authority < url.count ? authority + 3 : 0)
            for index in 0..<path.count where url[from &+ index] != path[index] { return false }
            return true
        }
    }
}

extension ByteText {
    fileprivate func begins(lower word: [UInt8], isWhole: Bool) -> Bool {
        guard isWhole ? count == word.count : count >= word.count else { return false }
        for index in 0..<word.count where ASCII.lower(self[index]) != word[index] { return false }
        return true
    }
}
