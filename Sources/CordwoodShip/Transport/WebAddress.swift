// The parts of an http or https URL that decisions depend on: scheme, host and port. Gives the same
// origin for redirects, and a text without secrets for names and logs. libcurl parses the URL it
// connects to; unusual URLs are refused here rather than guessed. Pure.

import CordwoodStore

struct WebAddress: Equatable {
    var scheme: String
    var host: String
    var port: UInt16
    /// False if the URL has only scheme and authority.
    var hasPathOrQuery: Bool

    static let bytesMax = 8192

    /// Scheme, host and port; never path, query or user, which may hold secrets.
    var origin: String {
        let isDefault = port == WebAddress.defaultPort(scheme)
        return "\(scheme)://\(host)" + (isDefault ? "" : ":\(port)")
    }

    func isSameOrigin(_ other: WebAddress) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }

    /// This machine, without a resolver: `localhost`, 127.0.0.0/8 and `[::1]`.
    var isLoopback: Bool {
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
        let isFour = numbers.count == 4 && numbers.allSatisfy { UInt8($0) != nil }
        return isFour ? numbers[0] == "127" : host == "localhost" || host == "[::1]"
    }

    init(_ text: String) throws(UploadError) {
        guard text.utf8.count <= WebAddress.bytesMax else {
            throw UploadError.argument("url is longer than \(WebAddress.bytesMax) bytes")
        }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != 0x5C }) else {
            throw UploadError.argument(
                "url '\(WebAddress.shown(text))' holds a space, control character or backslash")
        }
        let lower = text.lowercased()
        if lower.hasPrefix("http://") {
            scheme = "http"
        } else if lower.hasPrefix("https://") {
            scheme = "https"
        } else {
            throw UploadError.argument(
                "url '\(WebAddress.shown(text))' begins with neither http:// nor https://")
        }
        let rest = text.dropFirst(scheme.count + 3)
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        hasPathOrQuery = authority.endIndex != rest.endIndex
        guard !authority.contains("@") else {
            throw UploadError.argument("url holds a user name; use auth_token or headers")
        }
        var hostText = authority
        var portText: Substring = ""
        if authority.hasPrefix("[") {
            guard let close = authority.firstIndex(of: "]") else {
                throw UploadError.argument("url: the host's bracket is not closed")
            }
            hostText = authority[...close]
            portText = authority[authority.index(after: close)...]
            guard portText.isEmpty || portText.hasPrefix(":") else {
                throw UploadError.argument("url: something follows the host's bracket")
            }
            portText = portText.dropFirst()
        } else if let colon = authority.firstIndex(of: ":") {
            hostText = authority[..<colon]
            portText = authority[authority.index(after: colon)...]
        }
        guard !hostText.isEmpty, hostText.utf8.allSatisfy({ $0 != 0x7B && $0 != 0x7D }) else {
            throw UploadError.argument("url '\(WebAddress.shown(text))' has no host")
        }
        host = hostText.lowercased()
        if portText.isEmpty {
            port = WebAddress.defaultPort(scheme)
        } else {
            guard let number = UInt16(portText), number > 0 else {
                throw UploadError.argument("url: the port '\(portText.prefix(40))' is not 1…65535")
            }
            port = number
        }
    }

    /// The part of a URL that an error may show: no user, path, query or fragment, which may hold
    /// secrets.
    private static func shown(_ text: String) -> String {
        var start = text.startIndex
        if let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") {
            start = text.index(colon, offsetBy: 3)
        }
        let scheme = text[..<start]
        let rest = text[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" && $0 != "\\" }
        let host = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
        let bytes = "\(scheme)\(host)".utf8.prefix(80)
        return String(decoding: bytes.map { $0 < 0x20 ? 0x3F : $0 }, as: UTF8.self)
    }

    private static func defaultPort(_ scheme: String) -> UInt16 { scheme == "https" ? 443 : 80 }
}
