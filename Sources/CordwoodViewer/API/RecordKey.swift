// The name of a record in links and pages: its id, which stays the same when it is copied or
// archived, and its approximate time, so that it is found fast. Base64url without padding of 8
// bytes of time, UTC ns, big endian, and the 24 of the id. A value; any thread.

import Cordwood

struct RecordKey: Sendable, Equatable {
    static let bytes = 8 + RecordID.bytes
    private static let letters = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, letter) in letters.enumerated() { values[Int(letter)] = UInt8(value) }
        return values
    }()

    let timeNs: UInt64
    let id: RecordID

    init(_ record: borrowing RecordRef) {
        timeNs = record.timeNs
        id = record.id
    }

    init(timeNs: UInt64, id: RecordID) {
        self.timeNs = timeNs
        self.id = id
    }

    init?(_ text: String) {
        var bytes: [UInt8] = []
        var (word, bits): (UInt32, UInt32) = (0, 0)
        for letter in text.utf8 {
            let value = RecordKey.values[Int(letter)]
            guard value < 64 else { return nil }
            word = word << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: word >> bits))
            }
        }
        guard bytes.count == RecordKey.bytes, word & (1 << bits - 1) == 0,
            let id = RecordID(bytes: bytes[8...])
        else { return nil }
        timeNs = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        self.id = id
    }

    func append(to out: inout [UInt8]) {
        var (word, bits): (UInt32, UInt32) = (0, 0)
        func add(_ byte: UInt8) {
            word = word << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                out.append(RecordKey.letters[Int(word >> bits & 63)])
            }
        }
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            add(UInt8(truncatingIfNeeded: timeNs >> shift))
        }
        id.forEachByte(add)
        if bits > 0 { out.append(RecordKey.letters[Int(word << (6 - bits) & 63)]) }
    }

    var text: String {
        var out: [UInt8] = []
        append(to: &out)
        return String(decoding: out, as: UTF8.self)
    }
}
