// The header Retry-After: seconds, or an HTTP date in any of its three forms. Dates are parsed
// leniently: the weekday is ignored, a past date means now. Pure.

import CordwoodFormats

enum RetryAfter {
    /// The longest time for which a server can hold back uploads.
    static let delayMsMax: UInt64 = 24 * 3_600_000

    /// What an answer asks for; nil: nothing. A date counts from the server's own Date, because
    /// our clock may be wrong.
    static func delayMs(_ outcome: TransferOutcome, nowUnixMs: UInt64) -> UInt64? {
        guard let text = outcome.header("retry-after") else { return nil }
        let date = outcome.header("date").flatMap(dateSeconds).flatMap { UInt64(exactly: $0) }
        return delayMs(text, nowUnixMs: date.map { $0 * 1_000 } ?? nowUnixMs)
    }

    /// The delay from now; nil: the text is neither.
    static func delayMs(_ text: String, nowUnixMs: UInt64) -> UInt64? {
        let trimmed = ASCII.trimmed(text.utf8)
        guard !trimmed.isEmpty else { return nil }
        if trimmed.utf8.allSatisfy(ASCII.isDigit) {
            // A number beyond 64 bits is a long time, not an error.
            guard let seconds = UInt64(trimmed), seconds < delayMsMax / 1_000 else {
                return delayMsMax
            }
            return seconds * 1_000
        }
        guard let unixSeconds = dateSeconds(trimmed) else { return nil }
        let dateMs = unixSeconds < 0 ? 0 : UInt64(unixSeconds) * 1_000
        return dateMs <= nowUnixMs ? 0 : min(dateMs - nowUnixMs, delayMsMax)
    }

    private static let months: [String] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37
    /// 1994`.
    static func dateSeconds(_ text: String) -> Int64? {
        var month: Int64?
        var time: [Int64]?
        var numbers: [(value: Int64, digits: Int)] = []
        let words = text.lowercased().split(whereSeparator: { $0 == " " || $0 == "," || $0 == "-" })
        guard words.count <= 8 else { return nil }
        for word in words {
            if let index = months.firstIndex(of: String(word.prefix(3))), month == nil {
                month = Int64(index) + 1
            } else if word.contains(":") {
                let parts = word.split(separator: ":").map { Int64($0) }
                guard parts.count == 3, let hour = parts[0], let minute = parts[1],
                    let second = parts[2], (0...23).contains(hour), (0...59).contains(minute),
                    (0...60).contains(second)
                else { return nil }
                time = [hour, minute, second]
            } else if let value = Int64(word), value >= 0, word.utf8.count <= 4 {
                numbers.append((value, word.utf8.count))
            }
        }
        guard let month, let time, numbers.count == 2 else { return nil }
        let day = numbers[0].value
        guard (1...31).contains(day) else { return nil }
        var year = numbers[1].value
        if numbers[1].digits <= 2 { year += year < 70 ? 2_000 : 1_900 }
        return Times.seconds(
            year: year, month: month, day: day, hour: time[0], minute: time[1], second: time[2])
    }
}
