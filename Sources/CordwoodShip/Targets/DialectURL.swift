// What a URL of the host's already holds, and options that several dialects read alike. Pure.

extension URLText {
    static func has(_ text: String, _ part: StaticString) -> Bool {
        AnswerText.has(Array(text.utf8), part)
    }
}

extension DialectOptions {
    /// True where the URL is nothing but scheme, host and port, with or without a slash.
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

    /// Kinds whose servers take one method only.
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
