// Parts that the host's URL already has, and options that several dialects share. Pure.

import CordwoodFormats
import CordwoodStore

extension URLText {
    static func has(_ text: String, _ part: StaticString) -> Bool {
        AnswerText.has(Array(text.utf8), part)
    }
}

extension DialectOptions {
    /// True if the URL has only scheme, host and port, with or without a slash.
    var isBare: Bool {
        var rest = url[...]
        while rest.hasSuffix("/") { rest = rest.dropLast() }
        let slashes = rest.utf8.reduce(0) { $0 + ($1 == 0x2f ? 1 : 0) }
        return slashes == 2 && !rest.utf8.contains(0x3f) && !rest.utf8.contains(0x23)
    }

    /// The bare URL without its slashes.
    var bareURL: String {
        var rest = url[...]
        while rest.hasSuffix("/") { rest = rest.dropLast() }
        return String(rest)
    }

    /// For kinds whose servers accept only one method.
    func requirePost(_ kind: TargetKind) throws(UploadError) {
        guard method == nil || method == "POST" else {
            throw UploadError.argument("kind \(kind.rawValue) takes method POST only")
        }
    }

    /// `on` or `off`; nil: not given.
    func flag(_ name: String) throws(UploadError) -> Bool? {
        switch parameters[name] {
        case nil: return nil
        case "on": return true
        case "off": return false
        default: throw UploadError.argument("parameter '\(name)' is neither on nor off")
        }
    }
}

extension DialectOptions {
    /// The URL as a base for a fixed path: without query, fragment and final slashes.
    func base(of kind: TargetKind) throws(UploadError) -> String {
        let (base, query) = try baseAndQuery(of: kind)
        guard query == nil else {
            throw UploadError.argument(
                "the url of kind \(kind.rawValue) is a base without query or fragment")
        }
        return base
    }

    /// The base with its query, for kinds that pass a query on to their server.
    func baseAndQuery(
        of kind: TargetKind
    ) throws(UploadError) -> (url: String, query: String?) {
        guard !url.contains("#") else {
            throw UploadError.argument(
                "the url of kind \(kind.rawValue) is a base without fragment")
        }
        let parts = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var base = parts[0]
        while base.hasSuffix("/") { base = base.dropLast() }
        return (String(base), parts.count == 2 && !parts[1].isEmpty ? String(parts[1]) : nil)
    }
}
