// The text after the `?` of a request, as browsers write it: percent-encoded, with `+` for a blank
// (application/x-www-form-urlencoded). Pure.

import Cordwood

struct URLParameters {
    private var values: [String: String] = [:]

    /// Nil: not percent-encoded UTF-8, or a name comes twice.
    init?(_ text: String) {
        for part in text.utf8.split(separator: 0x26) {
            let sides = part.split(
                separator: 0x3d, maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = URLParameters.decoded(sides[0]),
                let value = sides.count > 1 ? URLParameters.decoded(sides[1]) : "",
                values.updateValue(value, forKey: name) == nil
            else { return nil }
        }
    }

    /// Nil: missing, or empty.
    subscript(_ name: String) -> String? {
        values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func decoded(_ text: Substring.UTF8View) -> String? {
        var out: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            switch byte {
            case 0x2b: out.append(0x20)
            case 0x25:
                guard rest.count >= 2, let decoded = Hex.bytes(rest.prefix(2)) else { return nil }
                out += decoded
                rest = rest.dropFirst(2)
            default: out.append(byte)
            }
        }
        return String(validating: out, as: UTF8.self)
    }
}
