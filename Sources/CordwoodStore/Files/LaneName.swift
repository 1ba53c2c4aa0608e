// What a lane's name says (FORMAT §2). Pure.

import CordwoodFormats

package enum LaneName {
    /// UTC ns of `YYYYMMDDThhmmssZ-…`.
    package static func start(_ lane: String) -> UInt64? {
        let text = Array(lane.utf8.prefix(16))
        guard text.count == 16, text[8] == 0x54, text[15] == 0x5a else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for character in text[range] {
                guard character >= 0x30, character <= 0x39 else { return nil }
                value = value * 10 + Int64(character - 0x30)
            }
            return value
        }
        guard let year = number(0..<4), let month = number(4..<6), let day = number(6..<8),
            let hour = number(9..<11), let minute = number(11..<13), let second = number(13..<15),
            year >= 1970, year < 2500
        else { return nil }
        let seconds = Times.seconds(
            year: year, month: month, day: day, hour: hour, minute: minute, second: second)
        return seconds > 0 ? UInt64(seconds) &* 1_000_000_000 : 0
    }
}
