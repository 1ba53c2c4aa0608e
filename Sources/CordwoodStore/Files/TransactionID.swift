// The id of an application transaction, `TXN17-586AB00B-0A2C-4E61-9C53-3F4C59D1A0F7`: the number of
// a use case and a UUID in upper case, whose 16 bytes are the trace id of its records. Each id has
// one spelling; any other text is not an id. Pure.

import CordwoodFormats

public struct TransactionID: Hashable, Sendable {
    public let usecase: Int32
    /// Bytes 0…7 and 8…15 of the UUID, most significant first. Never both 0.
    public let high: UInt64
    public let low: UInt64

    /// `TXN-2147483648-` and 36 more.
    public static let bytesMax = 51
    private static let uuidBytes = 36

    /// Makes a random UUID (version 4) from these bits.
    public init(usecase: Int32, random: (UInt64, UInt64)) {
        self.usecase = usecase
        high = random.0 & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        low = random.1 & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    }

    public init?(_ text: String) {
        self.init(bytes: Array(text.utf8))
    }

    public init?(bytes: [UInt8]) {
        guard bytes.count <= TransactionID.bytesMax, bytes.starts(with: "TXN".utf8),
            bytes.count > 3 + 1 + TransactionID.uuidBytes
        else { return nil }
        let uuidAt = bytes.count - TransactionID.uuidBytes
        guard bytes[uuidAt - 1] == 0x2d,
            let usecase = TransactionID.decimal(bytes[3..<(uuidAt - 1)])
        else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        var digits = 0
        for (index, byte) in bytes[uuidAt...].enumerated() {
            if [8, 13, 18, 23].contains(index) {
                guard byte == 0x2d else { return nil }
                continue
            }
            let digit = ASCII.hex(byte)
            guard digit < 16, !ASCII.isLower(byte) else { return nil }
            if digits < 16 {
                words.0 = words.0 << 4 | UInt64(digit)
            } else {
                words.1 = words.1 << 4 | UInt64(digit)
            }
            digits += 1
        }
        // A trace id of zeros means none.
        guard words.0 | words.1 != 0 else { return nil }
        self.usecase = usecase
        high = words.0
        low = words.1
    }

    public var text: String { String(decoding: bytes, as: UTF8.self) }

    public var bytes: [UInt8] {
        var out = Array("TXN\(usecase)".utf8)
        for index in 0..<16 {
            if [0, 4, 6, 8, 10].contains(index) { out.append(0x2d) }
            Hex.append(upper: byte(index), to: &out)
        }
        return out
    }

    /// A byte of the UUID.
    public func byte(_ index: Int) -> UInt8 {
        let word = index < 8 ? high : low
        return UInt8(truncatingIfNeeded: word >> (56 &- UInt64(index & 7) &* 8))
    }

    /// Accepts only our own spelling: no plus, no leading zero, no `-0`.
    private static func decimal(_ digits: ArraySlice<UInt8>) -> Int32? {
        guard let number = Int32(String(decoding: digits, as: UTF8.self)),
            Array("\(number)".utf8) == Array(digits)
        else { return nil }
        return number
    }
}
