// Times as text, written as bytes into a growing array.
// SAFETY: the C library's struct is on the stack, for one call.

import Glibc

package enum Times {
    /// UTC ns for servers that count in signed 64-bit numbers: until 2262.
    package static func signed(_ ns: UInt64) -> UInt64 { min(ns, UInt64(Int64.max)) }

    /// Year, month, day of a count of days since 1970 (proleptic Gregorian, years from March on).
    static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days &+ 719_468
        let era = (shifted >= 0 ? shifted : shifted &- 146_096) / 146_097
        let inEra = shifted &- era &* 146_097
        let inEraYears = (inEra &- inEra / 1_460 &+ inEra / 36_524 &- inEra / 146_096) / 365
        let inYear = inEra &- (365 &* inEraYears &+ inEraYears / 4 &- inEraYears / 100)
        let shiftedMonth = (5 &* inYear &+ 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth &+ 3 : shiftedMonth &- 9
        let year = inEraYears &+ era &* 400 &+ (month <= 2 ? 1 : 0)
        return (year, month, inYear &- (153 &* shiftedMonth &+ 2) / 5 &+ 1)
    }

    /// Days since 1970 of a date of that calendar.
    package static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        // Years begin in March here, so that the leap day is the last of its year.
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let inEraYears = shifted - era * 400
        let inYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + inEraYears * 365 + inEraYears / 4 - inEraYears / 100 + inYear
            - 719_468
    }

    package static func days(inMonth month: Int, of year: Int) -> Int {
        let (year, next) = (Int64(year), Int64(month % 12 + 1))
        let end = days(year: next == 1 ? year + 1 : year, month: next, day: 1)
        return Int(end - days(year: year, month: Int64(month), day: 1))
    }

    /// Seconds since 1970.
    package static func seconds(
        year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64
    ) -> Int64 {
        days(year: year, month: month, day: day) * 86_400 + hour * 3_600 + minute * 60 + second
    }

    /// `2026-11-21T08:15:30Z` of seconds since 1970, from that year to 9999.
    package static func text(seconds: Int64) -> String {
        var out: [UInt8] = []
        append(seconds: clamped(seconds), separator: 0x54, to: &out)
        return String(decoding: out, as: UTF8.self) + "Z"
    }

    /// `2026-11-21T08:15:30.123Z`.
    package static func text(_ ns: UInt64) -> String {
        var out: [UInt8] = []
        append(ns, digits: 3, to: &out)
        return String(decoding: out, as: UTF8.self) + "Z"
    }

    /// `12.345`, of a duration.
    package static func milliseconds(_ ns: UInt64) -> String {
        "\(ns / 1_000_000).\(Digits.text(ns / 1_000 % 1_000, width: 3))"
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT` of seconds since 1970, from that year to 9999.
    package static func httpDate(_ seconds: Int64) -> String {
        let seconds = clamped(seconds)
        let days = seconds / 86_400
        var out: [UInt8] = []
        append(seconds: seconds, separator: 0x20, to: &out)
        let text = String(decoding: out, as: UTF8.self)
        let month = months[Int(civil(days).month - 1)]
        return "\(weekdays[Int((days + 4) % 7)]), \(text.dropFirst(8).prefix(2)) \(month) "
            + "\(text.prefix(4)) \(text.suffix(8)) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func clamped(_ seconds: Int64) -> Int64 { min(max(seconds, 0), 253_402_300_799) }

    /// `2026-11-21T08:15:30` with that separator, of seconds since 1970.
    package static func append(seconds: Int64, separator: UInt8, to out: inout [UInt8]) {
        let days = seconds >= 0 ? seconds / 86_400 : (seconds &- 86_399) / 86_400
        let inDay = UInt64(seconds &- days &* 86_400)
        let (year, month, day) = civil(days)
        let years = UInt64(max(year, 0))
        if years > 9_999 { Digits.append(years / 100, to: &out) }
        // Pairs of digits, each with its separator: at most 20 bytes.
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { text in
            var at = 0
            func put(_ pair: UInt64, _ next: UInt8) {
                unsafe text[at] = 0x30 | UInt8(truncatingIfNeeded: pair / 10)
                unsafe text[at &+ 1] = 0x30 | UInt8(truncatingIfNeeded: pair % 10)
                unsafe text[at &+ 2] = next
                at &+= 3
            }
            if years <= 9_999 {
                put(years / 100, 0)
                at = 2
            }
            put(years % 100, 0x2d)
            put(UInt64(month), 0x2d)
            put(UInt64(day), separator)
            put(inDay / 3_600, 0x3a)
            put(inDay / 60 % 60, 0x3a)
            put(inDay % 60, 0)
            unsafe out.append(contentsOf: text[..<(at &- 1)])
        }
    }

    /// `2026-11-21T08:15:30.123456789Z`.
    package static func appendExact(_ ns: UInt64, to out: inout [UInt8]) {
        append(ns, digits: 9, to: &out)
        out.append(0x5a)
    }

    /// `2026-11-21T08:15:30.123` with that many digits of the second, 1 to 9, cut rather than
    /// rounded; in UTC, without a Z.
    package static func append(_ ns: UInt64, digits: Int, to out: inout [UInt8]) {
        append(seconds: Int64(ns / 1_000_000_000), separator: 0x54, to: &out)
        out.append(0x2e)
        var fraction = ns % 1_000_000_000
        for _ in digits..<9 { fraction /= 10 }
        Digits.append(fraction, to: &out, width: digits)
    }

    /// `2026-11-21 09:15:30.123+01:00`, or in UTC with a Z.
    package static func appendReadable(_ ns: UInt64, utc: Bool, to out: inout [UInt8]) {
        let seconds = Int64(ns / 1_000_000_000)
        var offset: Int64 = 0
        if !utc {
            var clock = time_t(seconds)
            var parts = unsafe tm()
            if unsafe localtime_r(&clock, &parts) != nil { offset = unsafe Int64(parts.tm_gmtoff) }
        }
        append(seconds: seconds &+ offset, separator: 0x20, to: &out)
        out.append(0x2e)
        Digits.append(ns / 1_000_000 % 1_000, to: &out, width: 3)
        if utc { return out.append(0x5a) }
        out.append(offset < 0 ? 0x2d : 0x2b)
        let minutes = UInt64(offset.magnitude / 60)
        Digits.append(minutes / 60, to: &out, width: 2)
        out.append(0x3a)
        Digits.append(minutes % 60, to: &out, width: 2)
    }
}
