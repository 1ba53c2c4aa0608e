// Bech32 (BIP 173) without its length limit: the encoding of age keys. Computes the checksum over
// lower case; refuses mixed case and nonzero padding. Pure; any thread.

enum Bech32 {
    enum Problem: Error, Equatable {
        case mixedCase, character, separator, checksum, padding

        var text: String {
            switch self {
            case .mixedCase: "mixes upper and lower case"
            case .character: "has a character that stands in no key"
            case .separator: "is cut, or no key at all"
            case .checksum: "has a wrong checksum: mistyped or cut"
            case .padding: "has bits left over"
            }
        }
    }

    private static let alphabet = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
    private static let checksumCharacters = 6
    private static let separator = UInt8(ascii: "1")

    /// Returns lower case; `prefix` must be lower case, too.
    static func encode(_ prefix: String, _ data: [UInt8]) -> String {
        var values = fives(data)
        let covered = expanded(Array(prefix.utf8)) + values
        let rest = polymod(covered + [UInt8](repeating: 0, count: checksumCharacters)) ^ 1
        for index in 0..<checksumCharacters {
            values.append(UInt8(truncatingIfNeeded: rest >> UInt32(5 * (5 - index))) & 31)
        }
        let text = Array(prefix.utf8) + [separator] + values.map { alphabet[Int($0)] }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the prefix in lower case, and the data.
    static func decode(
        _ text: some Collection<UInt8>
    ) throws(Problem) -> (prefix: String, data: [UInt8]) {
        let isUpper = text.contains { (0x41...0x5A).contains($0) }
        let isLower = text.contains { (0x61...0x7A).contains($0) }
        guard !isUpper || !isLower else { throw .mixedCase }
        guard text.allSatisfy({ (33...126).contains($0) }) else { throw .character }
        let lower = text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        guard let at = lower.lastIndex(of: separator), at > 0,
            lower.count - at - 1 >= checksumCharacters
        else { throw .separator }
        var values: [UInt8] = []
        for character in lower[(at + 1)...] {
            guard let value = alphabet.firstIndex(of: character) else { throw .character }
            values.append(UInt8(value))
        }
        let prefix = Array(lower[..<at])
        guard polymod(expanded(prefix) + values) == 1 else { throw .checksum }
        guard let data = eights(values.dropLast(checksumCharacters)) else { throw .padding }
        return (String(decoding: prefix, as: UTF8.self), data)
    }

    private static func expanded(_ prefix: [UInt8]) -> [UInt8] {
        prefix.map { $0 >> 5 } + [0] + prefix.map { $0 & 31 }
    }

    private static func polymod(_ values: [UInt8]) -> UInt32 {
        let generators: [UInt32] = [
            0x3B6A_57B2, 0x2650_8E6D, 0x1EA1_19FA, 0x3D42_33DD, 0x2A14_62B3,
        ]
        var sum: UInt32 = 1
        for value in values {
            let top = sum >> 25
            sum = (sum & 0x1FF_FFFF) << 5 ^ UInt32(value)
            for (bit, generator) in generators.enumerated() where top >> UInt32(bit) & 1 == 1 {
                sum ^= generator
            }
        }
        return sum
    }

    private static func fives(_ data: [UInt8]) -> [UInt8] {
        var values: [UInt8] = []
        var held: UInt32 = 0
        var bits: UInt32 = 0
        for byte in data {
            held = held << 8 & 0xFFF | UInt32(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                values.append(UInt8(truncatingIfNeeded: held >> bits) & 31)
            }
        }
        if bits > 0 { values.append(UInt8(truncatingIfNeeded: held << (5 - bits)) & 31) }
        return values
    }

    /// nil: the leftover bits are not zero, or amount to a whole value.
    private static func eights(_ values: ArraySlice<UInt8>) -> [UInt8]? {
        var data: [UInt8] = []
        var held: UInt32 = 0
        var bits: UInt32 = 0
        for value in values {
            held = (held << 5 | UInt32(value)) & 0xFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                data.append(UInt8(truncatingIfNeeded: held >> bits))
            }
        }
        let leftOver = held & ((1 << bits) - 1)
        return bits < 5 && leftOver == 0 ? data : nil
    }
}
