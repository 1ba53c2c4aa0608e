// A server's demand with a 401: the first challenge of WWW-Authenticate (RFC 9110, 11.6.1), with
// its scheme and its realm. Parsed leniently; missing parts are empty. Pure.

package struct Challenge: Equatable, Sendable {
    /// `Bearer`.
    package private(set) var scheme = ""
    /// Without its quotes.
    package private(set) var realm = ""

    static let bytesMax = 8_192

    package init(_ text: String) {
        var rest = Array(text.utf8.prefix(Challenge.bytesMax))[...]
        Challenge.skipBlanks(&rest)
        scheme = String(decoding: Challenge.token(&rest), as: UTF8.self)
        Challenge.skipBlanks(&rest)
        while !rest.isEmpty {
            let name = Challenge.token(&rest)
            Challenge.skipBlanks(&rest)
            if rest.first == 0x3d {
                rest.removeFirst()
                Challenge.skipBlanks(&rest)
                let value = Challenge.value(&rest)
                if String(decoding: name, as: UTF8.self).lowercased() == "realm" {
                    realm = String(decoding: value, as: UTF8.self)
                    return
                }
            } else if !name.isEmpty, rest.first != nil, rest.first != 0x2c {
                // A word without `=`: another scheme begins.
                return
            }
            // Skips whatever fits no rule, at least one byte.
            rest = rest.drop { $0 != 0x2c }
            rest = rest.drop { $0 == 0x2c || $0 == 0x20 || $0 == 0x09 }
        }
    }

    private static func skipBlanks(_ rest: inout ArraySlice<UInt8>) {
        while let byte = rest.first, byte == 0x20 || byte == 0x09 { rest.removeFirst() }
    }

    private static func token(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let word = rest.prefix {
            $0 > 0x20 && $0 < 0x7f && !"()<>@,;:\\\"/[]?={}".utf8.contains($0)
        }
        rest = rest[word.endIndex...]
        return word
    }

    /// A word, or the text between quotes.
    private static func value(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        guard rest.first == 0x22 else { return Array(token(&rest)) }
        rest.removeFirst()
        var out: [UInt8] = []
        while let byte = rest.popFirst(), byte != 0x22 {
            if byte == 0x5c, let next = rest.popFirst() {
                out.append(next)
            } else {
                out.append(byte)
            }
        }
        return out
    }
}

extension CredentialsQuery {
    /// `Bearer`; empty: the server named none.
    public var scheme: String { challenge.map { Challenge($0).scheme } ?? "" }

    /// Empty: the server named none.
    public var realm: String { challenge.map { Challenge($0).realm } ?? "" }
}
