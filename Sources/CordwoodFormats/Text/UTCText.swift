// Calendar arithmetic on UTC seconds, proleptic Gregorian, both ways. Pure; nothing overflows for
// years 0 … 9999, and what lies outside is refused by whoever parses.

package enum UTCText {
    /// Days since 1970-01-01.
    static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        // Years begin in March here, so that the leap day is the last of its year.
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    package static func seconds(
        year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64
    ) -> Int64 {
        days(year: year, month: month, day: day) * 86_400 + hour * 3_600 + minute * 60 + second
    }

    /// `YYYY-MM-DDThh:mm:ssZ`.
    package static func seconds(_ unixSeconds: Int64) -> String {
        let parts = parts(unixSeconds)
        return "\(pad(parts.year, 4))-\(pad(parts.month, 2))-\(pad(parts.day, 2))"
            + "T\(clock(parts.secondOfDay))Z"
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func httpDate(_ unixSeconds: Int64) -> String {
        let parts = parts(unixSeconds)
        let weekday = weekdays[Int((parts.days + 4) % 7)]
        let month = months[Int(parts.month - 1)]
        return "\(weekday), \(pad(parts.day, 2)) \(month) \(pad(parts.year, 4)) "
            + "\(clock(parts.secondOfDay)) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private struct Parts {
        var year: Int64
        var month: Int64
        var day: Int64
        var secondOfDay: Int64
        /// Since 1970-01-01, a Thursday.
        var days: Int64
    }

    private static func parts(_ unixSeconds: Int64) -> Parts {
        let clamped = min(max(unixSeconds, 0), 253_402_300_799)
        let shifted = clamped / 86_400 + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return Parts(
            year: year, month: month, day: day, secondOfDay: clamped % 86_400,
            days: clamped / 86_400)
    }

    private static func clock(_ secondOfDay: Int64) -> String {
        [secondOfDay / 3_600, secondOfDay / 60 % 60, secondOfDay % 60].map { pad($0, 2) }
            .joined(separator: ":")
    }

    private static func pad(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
