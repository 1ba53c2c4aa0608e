// Information in a lane's name (FORMAT §2), and ids as text. Pure.

import CordwoodCore
import CordwoodFormats

package enum LaneName {
    /// UTC ns from `YYYYMMDDThhmmssZ-…`.
    package static func start(_ lane: String) -> UInt64? {
        let text = Array(lane.utf8.prefix(16))
        guard text.count == 16, text[8] == 0x54, text[15] == 0x5a else { return nil }
        func number(_ range: Range<Int>) -> Int64? { Digits.number(text[range]) }
        guard let year = number(0..<4), let month = number(4..<6), let day = number(6..<8),
            let hour = number(9..<11), let minute = number(11..<13), let second = number(13..<15),
            year >= 1970, year < 2500
        else { return nil }
        let seconds = Times.seconds(
            year: year, month: month, day: day, hour: hour, minute: minute, second: second)
        return seconds > 0 ? UInt64(seconds) &* 1_000_000_000 : 0
    }

    /// True for exactly `YYYYMMDDThhmmssZ-<pid>-<16 hex digits>`.
    package static func isWhole(_ name: String) -> Bool {
        let parts = name.utf8.split(separator: 0x2d, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].count == 16, (1...10).contains(parts[1].count) else {
            return false
        }
        let start = Array(parts[0])
        return start[8] == 0x54 && start[15] == 0x5a
            && (start[..<8] + start[9..<15] + parts[1]).allSatisfy(ASCII.isDigit)
            && parts[2].count == 16
            && parts[2].allSatisfy { ASCII.hex($0) < 16 && !ASCII.isUpper($0) }
    }
}

extension LaneID {
    /// 16 bytes, as stored.
    package var bytes: [UInt8] {
        [high, low].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
        }
    }

    /// Parses 32 lower-case hex digits.
    init?(hex text: some StringProtocol) {
        guard StoreFile.isIdentity(text), let high = UInt64(text.prefix(16), radix: 16),
            let low = UInt64(text.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high.byteSwapped, low: low.byteSwapped)
    }
}
